// The order of 1x1 weights, which is in no field of descriptor or stream: the streams that each assumption reads.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "npus/vivante/sim/test_support.h"
#include "npus/vivante/sim/vivante.h"

namespace skillet::sim::vivante {
namespace {

using test::TestKernel;
using test::TestMemory;
using test::TestShape;
namespace hw = ::skillet::vivante::hw;
using Words = std::vector<uint32_t>;

constexpr uint32_t kDescriptorAddress = 0x00600000;
const Words kStartNn = {0x08010428, kDescriptorAddress, 0x08010429, 0,
                        0x08010E03, hw::kFlushBatch,    0x08010E03, hw::kFlushBatch};

// 16 kernels of 1x1 on 8 cores, with weights in groups of `group` channels.
struct PointwiseExample {
  Bytes in;
  std::vector<TestKernel> kernels;
  int planes;
  mutable Options options;

  explicit PointwiseExample(int channels) : planes(channels) {
    test::Random random(3);
    in = random.bytes(static_cast<size_t>(64 * channels));
    for (uint32_t oc = 0; oc < 16; ++oc)
      kernels.push_back(
          {random.bytes(static_cast<size_t>(channels)), static_cast<int32_t>(random.in(-999, 999)), oc * 64});
  }
  // 8x8 px, scale (2^15 + 0x312) / 2^23, output zero point 0x10.
  hw::NnInstruction instruction(bool relu) const {
    return {.kernel_x_size = 1,
            .kernel_y_size = 1,
            .kernel_z_size = static_cast<uint32_t>(planes),
            .kernels_per_core = 2,
            .pooling_xy_size = 1,
            .nn_layer_flush = true,
            .in_x_size = 8,
            .in_y_size = 8,
            .relu = relu,
            .post_multiplier = 0x312,
            .post_shift = 23,
            .out_x_size = 8,
            .out_y_size = 8,
            .out_z_size = 16,
            .rounding_mode = 1,
            .out_tile_x_size = 8,
            .out_tile_y_size = 8,
            .kernel_address = {bits::Address::kAbsolute, 0x00502000},
            .in_address = {bits::Address::kAbsolute, 0x00501000},
            .out_address = {bits::Address::kAbsolute, 0x00503000},
            .out_y_stride = 8,
            .in_x_stride = 8,
            .in_y_stride = 8,
            .out_x_stride = 8,
            .out_circular_buf_end = hw::kCircularBufferOff,
            .in_circular_buf_end = hw::kCircularBufferOff,
            .coef_zero_point = 0x7f,
            .out_zero_point = 0x10};
  }
  Result<Bytes> run(int group, bool relu, PointwiseOrder order) const {
    const auto d = instruction(relu);
    const auto words = bits::pack(d);
    if (!words.ok()) return words.error();
    const TestShape shape{.planes = planes, .kernels_per_core = 2, .zero_point = 0x7f, .group = group};
    TestMemory memory;
    memory.add(0x00501000, in, "input");
    memory.add(0x00502000, test::write_coefficients(shape, kernels, 2), "coefficients");
    const auto out = memory.add(0x00503000, Bytes(1024), "output");
    memory.add_words(kDescriptorAddress, Words(words->begin(), words->end()), "descriptor");
    options.order_1x1 = order;
    SK_TRY_ASSIGN(const auto device, create("a311d", options));
    SK_TRY(device->execute(kStartNn, memory.get()));
    return Bytes(out.begin(), out.end());
  }
  // The assumptions about the order of its weights.
  std::set<std::string> rests_on(int group, bool relu) const {
    std::set<std::string> names;
    options = {.on_assumption = [&names](std::string_view name) { names.emplace(name); }};
    EXPECT_TRUE(run(group, relu, PointwiseOrder::well_formed).ok());
    options = {};
    return names;
  }
  Bytes expected(bool relu) const {
    Bytes out;
    for (const TestKernel& kernel : kernels) {
      for (size_t px = 0; px < 64; ++px) {
        int64_t sum = kernel.bias;
        for (size_t z = 0; z < kernel.weights.size(); ++z) sum += in[z * 64 + px] * (kernel.weights[z] - 0x7f);
        const double real = std::floor(static_cast<double>(sum) * (32768 + 0x312) / 8388608.0 + 0.5);
        out.push_back(static_cast<uint8_t>(std::clamp((relu ? std::max(real, 0.0) : real) + 0x10, 0.0, 255.0)));
      }
    }
    return out;
  }
};

// No field contains the order of a 1x1 filter's weights, but a wrong order gives invalid output offsets.
TEST(NnUnit, OrderOfPointwiseWeightsIsAnAssumption) {
  constexpr int kDense = 1, kSix = 6;
  const PointwiseExample any(8), ambiguous(7);  // 7: both orders end alike
  for (const bool relu : {false, true}) {
    const Bytes right = any.expected(relu), alike = ambiguous.expected(relu);
    const int by_bit = relu ? kDense : kSix;
    for (const int group : {kDense, kSix}) {
      const auto named = group == kSix ? PointwiseOrder::six : PointwiseOrder::dense;
      const auto other = group == kSix ? PointwiseOrder::dense : PointwiseOrder::six;
      EXPECT_EQ(*any.run(group, relu, PointwiseOrder::well_formed), right) << group << relu;
      EXPECT_EQ(*any.run(group, relu, named), right) << group << relu;
      EXPECT_FALSE(any.run(group, relu, other).ok()) << group << relu;
      EXPECT_EQ(any.run(group, relu, PointwiseOrder::by_relu_bit).ok(), group == by_bit) << group << relu;
      EXPECT_EQ(*ambiguous.run(group, relu, named), alike) << group << relu;
      EXPECT_EQ(*ambiguous.run(group, relu, PointwiseOrder::well_formed) == alike, group == by_bit) << group << relu;
    }
  }
}

// With one channel all orders are the same.
TEST(NnUnit, SaysWhatTheOrderOfWeightsRestsOn) {
  EXPECT_EQ(PointwiseExample(8).rests_on(6, false), std::set<std::string>{"order_1x1"});
  EXPECT_EQ(PointwiseExample(7).rests_on(1, true), std::set<std::string>{"order_1x1"});
  EXPECT_TRUE(PointwiseExample(1).rests_on(1, false).empty());
}

}  // namespace
}  // namespace skillet::sim::vivante
