// Linux's driver's check of a stream: the bytes of each region that it counts, and the streams that it refuses.
#include "npus/ethosu/hw/kernel_rules.h"

#include <gtest/gtest.h>

#include <functional>

#include "npus/ethosu/hw/testing/streams.h"

namespace skillet::ethosu::hw {
namespace {

constexpr OpElementwise kAbs{.mode = ElementwiseMode::abs};

std::string said_of(const Words& stream) {
  const auto needs = needs_of(stream);
  return needs.ok() ? "" : needs.error().message;
}

StreamNeeds needs_with(const std::function<void(Words&)>& more, const std::function<void(Words&)>& start) {
  Words stream;
  add_abs_registers(stream, 2, 3, 4, 100, 2048);
  more(stream), start(stream), add_stop(stream);
  const auto needs = needs_of(stream);
  EXPECT_TRUE(needs.ok()) << needs.error().message;
  return needs.ok() ? *needs : StreamNeeds{};
}
void start_abs(Words& stream) { add(stream, kAbs); }

TEST(KernelRules, FeatureMapsCountToTheByteAfterTheirCorners) {
  const auto none = [](Words&) {};
  const StreamNeeds plain = needs_with(none, start_abs);
  EXPECT_EQ(plain.bytes, (std::array<uint64_t, 8>{0, 2048 + 24}));
  EXPECT_EQ(plain.writes, (std::array<bool, 8>{false, true}));
  // Only the input is in region 5: 2 rows of 12 bytes. With elements of 4 bytes the last one ends 3 bytes later, and is
  // at 3 * 4 instead of 3 * 1.
  const auto in_5 = [](Words& s) { add(s, IfmRegion{.value = 5}); };
  EXPECT_EQ(needs_with(in_5, start_abs).bytes[5], 100U + 24);
  EXPECT_FALSE(needs_with(in_5, start_abs).writes[5]);
  EXPECT_EQ(
      needs_with([&](Words& s) { in_5(s), add(s, IfmPrecision{.precision = Precision::bits_32}); }, start_abs).bytes[5],
      100U + 12 + 2 * 4 + 3 * 4 + 4);
  // Bricks of 16 channels: the stride of columns is 16 elements, for any value of its register.
  EXPECT_EQ(needs_with(
                [&](Words& s) {
                  in_5(s), add(s, IfmPrecision{.format = Format::nhcwb16}), add(s, OfmDepthM1{.value = 20});
                  add(s, IfmStrideC{.value = 1000});
                },
                start_abs)
                .bytes[5],
            100U + 12 + 2 * 16 + 1000 + 3 + 1);
  // Tiles: the second row is the first of tile 2, the third column the first of tile 1.
  EXPECT_EQ(needs_with(
                [&](Words& s) {
                  in_5(s), add(s, IfmHeight0M1{.value = 1}), add(s, IfmBase2{.value = 5000}),
                      add(s, IfmWidth0M1{.value = 2});
                  add(s, IfmHeight1M1{.value = 9}), add(s, IfmBase1{.value = 9000});
                },
                start_abs)
                .bytes[5],
            9000U + 12 + 3 + 1);
  // A negative stride is a huge one.
  EXPECT_GT(
      needs_with([&](Words& s) { in_5(s), add(s, IfmStrideY{.value = (uint64_t{1} << 40) - 12}); }, start_abs).bytes[5],
      uint64_t{1} << 39);
}

TEST(KernelRules, SecondOperandsCountWhereTheyAreRead) {
  const auto second = [](Words& s) {
    add(s, Ifm2Region{.value = 3}), add(s, Ifm2Precision{}), add(s, Ifm2Width0M1{.value = 3});
    add(s, Ifm2Height0M1{.value = 2}), add(s, Ifm2Height1M1{.value = 2});
    add(s, Ifm2Base0{.value = 7}), add(s, Ifm2StrideX{.value = 4}), add(s, Ifm2StrideY{.value = 12});
  };
  const auto with = [&](Ifm2Broadcast broadcast, ElementwiseMode mode = ElementwiseMode::add) {
    return needs_with([&](Words& s) { second(s), add(s, broadcast); },
                      [&](Words& s) { add(s, OpElementwise{.mode = mode}); })
        .bytes[3];
  };
  EXPECT_EQ(with({}), 7U + 24);
  EXPECT_EQ(with({.height = true}), 7U + 12);
  EXPECT_EQ(with({.height = true, .width = true}), 7U + 4);
  EXPECT_EQ(with({.height = true, .width = true, .depth = true}), 7U + 1);
  EXPECT_EQ(with({.constant = true}), 0U);
  EXPECT_EQ(with({}, ElementwiseMode::abs), 0U);
}

// A 3x3 kernel of dilation 2 is 5x5 in the registers, and its taps are dilated again.
void add_window(Words& s) {
  add(s, KernelHeightM1{.value = 5}), add(s, KernelWidthM1{.value = 5});
  add(s, KernelStride{.x = 2, .y = 2, .dilation_x = 2, .dilation_y = 2});
  add(s, IfmPadTop{.value = 1}), add(s, IfmPadBottom{.value = 1}), add(s, IfmPadLeft{.value = 1}),
      add(s, IfmPadRight{.value = 0});
  add(s, IfmRegion{.value = 5}), add(s, IfmHeight0M1{.value = 99}), add(s, IfmWidth0M1{.value = 99});
  add(s, WeightRegion{.value = 0}), add(s, WeightBase{.value = 64}), add(s, WeightLength{.value = 160});
  add(s, ScaleRegion{.value = 4}), add(s, ScaleBase{.value = 32}), add(s, ScaleLength{.value = 40});
}

TEST(KernelRules, WindowsCountTheLastTapThatTheKernelFinds) {
  const auto start = [](Words& s) { add(s, OpConv{}); };
  const StreamNeeds needs = needs_with(add_window, start);
  // Row (2 - 1) * 2 + 4 * 2 - 2 = 8, column (3 - 1) * 2 + 4 * 2 - 1 = 11.
  EXPECT_EQ(needs.bytes[5], 100U + 8 * 12 + 11 * 4 + 3 + 1);
  EXPECT_EQ(needs.bytes[0], 64U + 160);
  EXPECT_EQ(needs.bytes[4], 0U) << "the scale of the output counts for all channels";
  const auto per_channel = [](Words& s) { add_window(s), add(s, OfmPrecision{}); };
  EXPECT_EQ(needs_with(per_channel, start).bytes[4], 32U + 40);
  EXPECT_EQ(needs_with(
                [&](Words& s) {
                  per_channel(s), add(s, Scale1Base{.value = 500}), add(s, Scale1Length{.value = 8});
                  add(s, Weight1Base{.value = 900}), add(s, Weight1Length{.value = 16});
                },
                start)
                .bytes,
            (std::array<uint64_t, 8>{916, 2072, 0, 0, 508, needs.bytes[5]}));
}

// All registers of an operand are required, even if no corner needs them (hardware specification, section 2.3, rule 5).
TEST(KernelRules, ARegisterThatAStreamLeavesOutIsNamed) {
  Words all;
  add_abs_registers(all, 2, 3, 4, 100, 2048);
  add(all, Ifm2Region{.value = 3}), add(all, Ifm2Precision{}), add(all, Ifm2Width0M1{.value = 3});
  add(all, Ifm2Height0M1{.value = 2}), add(all, Ifm2Height1M1{.value = 2}), add(all, Ifm2Base0{});
  add(all, Ifm2StrideX{.value = 4}), add(all, Ifm2StrideY{.value = 12}), add(all, Ifm2Broadcast{});
  const std::vector<uint32_t> needed = {
      IfmRegion::kAddress,     IfmPrecision::kAddress,  IfmDepthM1::kAddress,   IfmWidth0M1::kAddress,
      IfmHeight0M1::kAddress,  IfmHeight1M1::kAddress,  IfmStrideY::kAddress,   IfmStrideX::kAddress,
      IfmBase0::kAddress,      OfmRegion::kAddress,     OfmPrecision::kAddress, OfmWidthM1::kAddress,
      OfmHeightM1::kAddress,   OfmDepthM1::kAddress,    OfmWidth0M1::kAddress,  OfmHeight0M1::kAddress,
      OfmHeight1M1::kAddress,  OfmStrideY::kAddress,    OfmStrideX::kAddress,   OfmBase0::kAddress,
      Ifm2Region::kAddress,    Ifm2Precision::kAddress, Ifm2Width0M1::kAddress, Ifm2Height0M1::kAddress,
      Ifm2Height1M1::kAddress, Ifm2StrideY::kAddress,   Ifm2StrideX::kAddress,  Ifm2Base0::kAddress,
      Ifm2Broadcast::kAddress};
  for (const uint32_t left_out : needed) {
    Words stream;
    for (size_t at = 0; at < all.size();) {
      const uint32_t code = code_of(all[at]), count = words_of_code(code);
      for (uint32_t i = 0; i < count && code != left_out; ++i) stream.push_back(all[at + i]);
      at += count;
    }
    add(stream, OpElementwise{}), add_stop(stream);
    EXPECT_NE(said_of(stream).find(fmt::format("register {} was never set", find_command(left_out)->name)),
              std::string::npos)
        << find_command(left_out)->name << ": " << said_of(stream);
  }
}

TEST(KernelRules, TransfersCountAllThatTheirStridesReach) {
  const auto copy = [](StrideMode from, StrideMode to) {
    Words s;
    add(s, Dma0Size0{.value = 3}), add(s, Dma0Size1{.value = 2}), add(s, Dma0Skip0{.value = 6}),
        add(s, Dma0Skip1{.value = 100});
    add(s, Dma0SrcRegion{.region = 0, .stride_mode = from}), add(s, Dma0Src{.value = 1});
    add(s, Dma0DstRegion{.region = 1, .stride_mode = to}), add(s, Dma0Dst{.value = 2});
    add(s, Dma0Len{.value = 10}), add(s, OpDmaStart{}), add_stop(s);
    return needs_of(s).value();
  };
  EXPECT_EQ(copy(StrideMode::d1, StrideMode::d2).bytes, (std::array<uint64_t, 8>{11, 2 + 16 * 3}));
  EXPECT_EQ(copy(StrideMode::d3, StrideMode::d1).bytes,
            (std::array<uint64_t, 8>{1 + (16 * 3 + 100) * 2, 2 + (16 * 3 + 100) * 2}));
  EXPECT_EQ(copy(StrideMode::d1, StrideMode::d1).writes, (std::array<bool, 8>{false, true}));
  Words internal;
  add(internal, Dma0SrcRegion{.region = 0}), add(internal, Dma0Src{}), add(internal, Dma0Dst{});
  add(internal, Dma0DstRegion{.region = 3, .internal = true}), add(internal, Dma0Len{.value = 16});
  add(internal, OpDmaStart{}), add_stop(internal);
  EXPECT_EQ(needs_of(internal).value().bytes, (std::array<uint64_t, 8>{16}));
}

// Ethos-U85: a chained value has no memory, nor has a constant; a broadcast counts once.
TEST(KernelRules, StreamsOfEthosU85) {
  const auto needs_of_add = [](const std::function<void(Words&)>& more) {
    Words stream;
    add_abs_registers(stream, 2, 3, 4, 100, 2048);
    add(stream, IfmRegion{.value = 5}), add(stream, IfmBroadcast{.height = true, .width = true, .depth = true});
    add(stream, Ifm2BroadcastU85{.scalar = true});
    add(stream, Ifm2PrecisionU85{.storage = Storage::none}), add(stream, OpScalar{.value = 3});
    more(stream), add(stream, OpElementwise{.mode = ElementwiseMode::add}), add_stop(stream);
    return needs_of(stream, Generation::u85);
  };
  const auto plain = needs_of_add([](Words&) {});
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->bytes, (std::array<uint64_t, 8>{0, 2048 + 24, 0, 0, 0, 101}));
  const auto chained = needs_of_add([](Words& s) { add(s, OfmPrecisionU85{.storage = Storage::chained}); });
  ASSERT_TRUE(chained.ok()) << chained.error().message;
  EXPECT_EQ(chained->bytes, (std::array<uint64_t, 8>{0, 0, 0, 0, 0, 101}));
  const auto transposed = needs_of_add([](Words& s) { add(s, OfmPrecisionU85{.transpose = Transpose::chw}); });
  ASSERT_FALSE(transposed.ok());
  EXPECT_NE(transposed.error().message.find("ofm_precision.transpose is 6"), std::string::npos);
  Words resize;
  add(resize, OpResize{}), add_stop(resize);
  EXPECT_NE(needs_of(resize, Generation::u85).error().message.find("op_resize"), std::string::npos);
  EXPECT_FALSE(needs_of(resize).ok());
}

TEST(KernelRules, WhatTheKernelRefuses) {
  struct Case {
    const char* says;
    std::function<void(Words&)> make;
  };
  const auto window_but = [](auto change) {
    return [change](Words& s) { add_abs_registers(s, 2, 3, 4, 0, 0), add_window(s), change(s); };
  };
  const Case cases[] = {
      {"there are no commands", [](Words&) {}},
      {"op_stop must be the last", [](Words& s) { add_stop(s), add_stop(s); }},
      {"op_stop must be the last", [](Words& s) { add(s, OpDmaWait{}); }},
      {"the stream ends within it", [](Words& s) { s.push_back(IfmBase0::kAddress); }},
      {"0x00000001 is no command", [](Words& s) { s.push_back(1), add_stop(s); }},
      {"0x00000007 is no command", [](Words& s) { s.push_back(7), add_stop(s); }},
      {"0x00000411 is no command", [](Words& s) { s.push_back(OpDmaWait::kAddress | 0x400), add_stop(s); }},
      {"is no command", [](Words& s) { s.push_back(0x8000), add_stop(s); }},
      {"op_elementwise: register ofm_height_m1 was never set", [](Words& s) { add(s, kAbs), add_stop(s); }},
      {"register ifm2_broadcast was never set",
       [](Words& s) { add_abs_registers(s, 2, 3, 4, 0, 0), add(s, OpElementwise{}), add_stop(s); }},
      {"register kernel_stride was never set",
       [](Words& s) { add_abs_registers(s, 2, 3, 4, 0, 0), add(s, OpPool{}), add_stop(s); }},
      {"register weight1_length was never set",
       window_but([](Words& s) { add(s, Weight1Base{}), add(s, OpConv{}), add_stop(s); })},
      {"its parameter is 0x1, not 0",
       window_but([](Words& s) { s.push_back(OpConv::kAddress | 1 << 16), add_stop(s); })},
      {"ifm_precision.format 2 is unknown",
       [](Words& s) {
         add_abs_registers(s, 2, 3, 4, 0, 0), s.push_back(IfmPrecision::kAddress | 2U << 22), add(s, kAbs), add_stop(s);
       }},
      {"the last row that it reads is -2", window_but([](Words& s) {
         add(s, KernelHeightM1{.value = 1}), add(s, OfmHeightM1{.value = 1}), add(s, OpPool{}), add_stop(s);
       })},
      {"the last column that it reads is -1", window_but([](Words& s) {
         add(s, KernelWidthM1{.value = 1}), add(s, OfmWidthM1{.value = 1}), add(s, OpPool{}), add_stop(s);
       })},
      {"dma0_size0 is 0",
       [](Words& s) {
         add(s, Dma0Size0{}), add(s, Dma0Skip0{}), add(s, Dma0SrcRegion{.stride_mode = StrideMode::d2}),
             add(s, Dma0Src{});
         add(s, Dma0DstRegion{}), add(s, Dma0Dst{}), add(s, Dma0Len{}), add(s, OpDmaStart{}), add_stop(s);
       }},
  };
  for (const Case& c : cases) {
    Words stream;
    c.make(stream);
    EXPECT_NE(said_of(stream).find(c.says), std::string::npos) << c.says << ": " << said_of(stream);
  }
  // Accepted if no register contradicts it.
  Words fine;
  add_abs_registers(fine, 2, 3, 4, 0, 0), add(fine, kAbs), fine.push_back(0x3FE), add_stop(fine);
  EXPECT_EQ(said_of(fine), "") << "a register that nothing reads";
}

}  // namespace
}  // namespace skillet::ethosu::hw
