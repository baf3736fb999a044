#include "program/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace skillet::npu {
namespace {

// The definition, one element at a time.
uint64_t place(const TensorLayout& l, int64_t n, int64_t y, int64_t x, int64_t c) {
  return static_cast<uint64_t>(n) * l.image + static_cast<uint64_t>(y) * l.row + static_cast<uint64_t>(x) * l.px +
         static_cast<uint64_t>(c / l.block) * l.block_stride + static_cast<uint64_t>(c % l.block) * l.elem;
}

Bytes plain_store(const TensorLayout& l, const ImageShape& s, const Bytes& host) {
  Bytes device(l.size_bytes, l.pad_byte);
  size_t at = 0;
  for (int64_t n = 0; n < s.images; ++n)
    for (int64_t y = 0; y < s.height; ++y)
      for (int64_t x = 0; x < s.width; ++x)
        for (int64_t c = 0; c < s.channels; ++c)
          for (int64_t b = 0; b < s.elem_bytes; ++b)
            device[place(l, n, y, x, c) + static_cast<uint64_t>(b)] = static_cast<uint8_t>(host[at++] ^ l.xor_byte);
  return device;
}

struct Random {
  std::mt19937 engine;
  int64_t range(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine); }
  Bytes bytes(uint64_t count) {
    Bytes all(count);
    for (uint8_t& b : all) b = static_cast<uint8_t>(engine());
    return all;
  }
};

// The dimensions in any order, each with a gap of 0 to 40 bytes.
TensorLayout random_layout(Random& random, const ImageShape& s) {
  TensorLayout l{.block = static_cast<int32_t>(random.range(1, s.channels + 3))};
  const auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  struct Step {
    uint64_t* stride;
    uint64_t count;
  };
  std::vector<Step> steps = {{&l.elem, u(std::min<int64_t>(l.block, s.channels))},
                             {&l.px, u(s.width)},
                             {&l.row, u(s.height)},
                             {&l.block_stride, u((s.channels + l.block - 1) / l.block)},
                             {&l.image, u(s.images)}};
  if (random.range(0, 1) == 0) std::shuffle(steps.begin(), steps.end(), random.engine);
  uint64_t reach = u(s.elem_bytes);
  for (const Step& step : steps) {
    *step.stride = reach + (random.range(0, 3) == 0 ? u(random.range(0, 40)) : 0);
    reach = *step.stride * step.count;
  }
  l.size_bytes = reach + u(random.range(0, 5));
  l.xor_byte = random.range(0, 1) == 0 ? 0x80 : 0;
  l.pad_byte = static_cast<uint8_t>(random.range(0, 255));
  return l;
}

TEST(Layout, ConversionsEqualThePlainLoopOverRandomLayouts) {
  Random random{std::mt19937(1)};
  for (int i = 0; i < 3000; ++i) {
    const int64_t most = i % 3 == 0 ? 40 : 7;
    const ImageShape s{random.range(1, 2), random.range(1, most), random.range(1, most), random.range(1, 40),
                       i % 4 == 0 ? 2 : 1};
    const TensorLayout l = random_layout(random, s);
    ASSERT_TRUE(check(l, s).ok()) << check(l, s).error().message;
    const Bytes host = random.bytes(s.bytes()), expected = plain_store(l, s, host);
    Bytes device(l.size_bytes);
    fill_padding(l, s, device);
    store(l, s, host, device);
    ASSERT_EQ(device, expected) << print(l);
    Bytes back(s.bytes());
    load(l, s, device, back);
    ASSERT_EQ(back, host) << print(l);
    ASSERT_EQ(same_as_host(l, s), device == host && l.xor_byte == 0) << print(l);
  }
}

// Sizes around the vector sizes of the fast paths, and more blocks than are copied together.
TEST(Layout, ShortBlocksOfChannels) {
  Random random{std::mt19937(2)};
  for (int64_t channels = 1; channels <= 130; ++channels) {
    for (const int64_t width : {1, 2, 5, 6, 17}) {
      const ImageShape s{.images = 2, .height = 3, .width = width, .channels = channels};
      const auto flip = static_cast<uint8_t>(channels % 2 * 0x80), pad = static_cast<uint8_t>(random.range(0, 255));
      const TensorLayout l = blocked_layout(s, 16, flip, pad);
      const Bytes host = random.bytes(s.bytes()), expected = plain_store(l, s, host);
      Bytes device(l.size_bytes), back(s.bytes());
      fill_padding(l, s, device);
      store(l, s, host, device);
      ASSERT_EQ(device, expected) << channels;
      load(l, s, device, back);
      ASSERT_EQ(back, host) << channels;
    }
  }
}

TEST(Layout, BlocksOfTwoByTwoPixels) {
  Random random{std::mt19937(3)};
  for (int64_t channels = 1; channels <= 9; ++channels) {
    for (const int64_t width : {2, 4, 6, 10, 34}) {
      const ImageShape image{.images = 1, .height = 6, .width = width, .channels = channels};
      const auto s = in_blocks(image);
      ASSERT_TRUE(s && s->bytes() == image.bytes());
      const auto flip = static_cast<uint8_t>(channels % 2 * 0x80), pad = static_cast<uint8_t>(random.range(0, 255));
      const TensorLayout l = blocks_layout(*s, channels <= 4 ? 16 : 48, flip, pad);
      ASSERT_TRUE(check(l, *s).ok());
      const Bytes host = random.bytes(s->bytes());
      Bytes device(l.size_bytes), back(s->bytes());
      fill_padding(l, *s, device);
      store(l, *s, host, device);
      ASSERT_EQ(device, plain_store(l, *s, host)) << channels << " of " << width;
      const auto at = [&](int64_t y, int64_t x, int64_t c) {
        return device[static_cast<size_t>((y / 2 * (width / 2) + x / 2) * static_cast<int64_t>(l.px) +
                                          (y % 2 * 2 + x % 2) * channels + c)];
      };
      for (int64_t i = 0; i < static_cast<int64_t>(host.size()); ++i)
        ASSERT_EQ(at(i / channels / width, i / channels % width, i % channels), host[static_cast<size_t>(i)] ^ flip);
      load(l, *s, device, back);
      ASSERT_EQ(back, host);
    }
  }
  EXPECT_FALSE(in_blocks({.height = 3, .width = 4, .channels = 3}));
  EXPECT_FALSE(in_blocks({.height = 4, .width = 5, .channels = 3}));
}

TEST(Layout, NamedLayouts) {
  const ImageShape s{.images = 1, .height = 2, .width = 3, .channels = 5};
  EXPECT_EQ(print(nhwc_layout(s)), "block 5, strides elem 1 px 5 row 15 block 5 image 30, 30 bytes");
  EXPECT_EQ(print(planar_layout(s, 0x80)), "block 1, strides elem 1 px 1 row 3 block 6 image 30, 30 bytes, xor 0x80");
  EXPECT_EQ(print(blocked_layout(s, 4, 0, 7)),
            "block 4, strides elem 1 px 4 row 12 block 24 image 48, 48 bytes, pad 0x07");
  TensorLayout longer = nhwc_layout(s);
  longer.size_bytes = 77;
  EXPECT_EQ(print(longer), "block 5, strides elem 1 px 5 row 15 block 5 image 30, 77 bytes");
  EXPECT_TRUE(same_as_host(nhwc_layout(s), s));
  EXPECT_FALSE(same_as_host(nhwc_layout(s, 1), s));
  EXPECT_FALSE(same_as_host(planar_layout(s), s));
  EXPECT_TRUE(same_as_host(planar_layout({.height = 4, .width = 4}), {.height = 4, .width = 4}));
}

// NHCWB16: blocks of 16 channels within a row.
TEST(Layout, BlocksWithinARow) {
  const ImageShape s{.height = 2, .width = 2, .channels = 20};
  const TensorLayout l{
      .block = 16, .elem = 1, .px = 16, .row = 64, .block_stride = 32, .image = 128, .size_bytes = 128};
  ASSERT_TRUE(check(l, s).ok());
  Bytes host(s.bytes()), device(128);
  std::iota(host.begin(), host.end(), uint8_t{0});
  store(l, s, host, device);
  EXPECT_EQ(device[64 + 32 + 16 + 3], host[((1 * 2) + 1) * 20 + 19]);
}

TEST(Layout, RefusesWhatOverlapsOrLeaves) {
  const ImageShape s{.images = 2, .height = 3, .width = 4, .channels = 8};
  struct Case {
    const char* expected;
    TensorLayout (*change)(TensorLayout);
  };
  const Case cases[] = {
      {"no channels in a block", [](TensorLayout l) { return l.block = 0, l; }},
      {"elements overlap", [](TensorLayout l) { return l.px = 7, l; }},
      {"elements overlap", [](TensorLayout l) { return l.elem = 0, l; }},
      {"elements overlap", [](TensorLayout l) { return l.row = 31, l; }},
      {"elements overlap", [](TensorLayout l) { return l.image = 1, l; }},
      {"elements overlap", [](TensorLayout l) { return l.block = 3, l.block_stride = 2, l; }},
      {"reach to byte 192 of 191", [](TensorLayout l) { return l.size_bytes = 191, l; }},
      {"larger than any address space", [](TensorLayout l) { return l.image = ~uint64_t{0}, l; }},
      {"larger than any address space", [](TensorLayout l) { return l.row = uint64_t{1} << 63, l; }},
  };
  for (const Case& one : cases) {
    const auto result = check(one.change(nhwc_layout(s)), s);
    ASSERT_FALSE(result.ok()) << one.expected;
    EXPECT_NE(result.error().message.find(one.expected), std::string::npos) << result.error().message;
  }
}

// For any number of bytes: exactly those that the elements need.
TEST(Layout, SmallTensorsFitToTheByte) {
  for (int64_t channels = 0; channels <= 3; ++channels) {
    const ImageShape s{.images = 1, .height = 1, .width = 1, .channels = channels};
    TensorLayout layout = nhwc_layout(s);
    EXPECT_EQ(layout.size_bytes, static_cast<uint64_t>(channels));
    EXPECT_TRUE(check(layout, s).ok()) << channels;
    if (channels == 0) continue;
    --layout.size_bytes;
    EXPECT_FALSE(check(layout, s).ok()) << channels;
  }
}

TEST(Layout, ImageShapeOfEachRank) {
  const auto of = [](ir::Shape shape) {
    return image_shape({.name = "t", .dtype = ir::DType::int16, .shape = std::move(shape)});
  };
  EXPECT_EQ(of({2, 3, 4, 5}), (ImageShape{2, 3, 4, 5, 2}));
  EXPECT_EQ(of({3, 4, 5}), (ImageShape{1, 3, 4, 5, 2}));
  EXPECT_EQ(of({5}), (ImageShape{1, 1, 1, 5, 2}));
  EXPECT_EQ(of({}), (ImageShape{1, 1, 1, 1, 2}));
  EXPECT_EQ(of({2, 3, 4, 5, 6}), (ImageShape{6, 4, 5, 6, 2}));
}

}  // namespace
}  // namespace skillet::npu
