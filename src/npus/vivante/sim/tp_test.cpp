#include <gtest/gtest.h>

#include <cmath>

#include "npus/vivante/sim/test_support.h"
#include "npus/vivante/sim/tp_job.h"

namespace skillet::sim::vivante {
namespace {

void set_identity(TpJob& job) {
  for (size_t i = 0; i < job.value.size(); ++i) job.value[i] = static_cast<uint8_t>(i);
}

struct Size {
  int64_t height, width, channels;
  int64_t bytes() const { return height * width * channels; }
};

TpJob base_job(int64_t width, int64_t height, int64_t planes) {
  TpJob job;
  job.width = width;
  job.height = height;
  job.planes = planes;
  job.stride = width;
  job.slice = width * height;
  job.z_last = planes - 1;
  job.window_x1 = width - 1;
  job.window_y1 = height - 1;
  job.increment[0] = 1;
  job.count = {1, 1, 1, 1, 1, 1};
  set_identity(job);
  return job;
}

// Specification 5.3: NHWC to planar.
TpJob transpose(Size s) {
  TpJob job = base_job(s.channels, s.width, s.height);
  job.tile_height = job.tile_y_inc = s.width;
  job.count = {
      static_cast<uint32_t>(s.width), static_cast<uint32_t>(s.channels), static_cast<uint32_t>(s.height), 1, 1, 1};
  job.increment = {1, static_cast<uint64_t>(s.height * s.width), static_cast<uint64_t>(s.width), 0, 0, 0, 0};
  return job;
}

// 5.4: planar to NHWC, the input read linearly.
TpJob detranspose(Size s) {
  TpJob job = base_job(s.height, s.width * s.channels, 1);
  job.count = {static_cast<uint32_t>(s.width),    1, static_cast<uint32_t>(s.height),
               static_cast<uint32_t>(s.channels), 1, 1};
  job.increment = {static_cast<uint64_t>(s.channels),
                   0,
                   static_cast<uint64_t>(s.width * s.channels),
                   1,
                   static_cast<uint64_t>(s.bytes()),
                   0,
                   0};
  return job;
}

// 5.5, on one core: space to depth with padding before, and output planes of `out_height` x `out_width`.
TpJob reshuffle(Size s, int64_t pad_x, int64_t pad_y, int64_t out_width, int64_t out_height, uint8_t zero_point) {
  TpJob job = base_job(s.width, s.height, s.channels);
  const auto plane = static_cast<uint64_t>(out_width * out_height);
  job.window_x0 = -pad_x;
  job.window_y0 = -pad_y;
  job.window_x1 = 2 * out_width - 1 - pad_x;
  job.window_y1 = 2 * out_height - 1 - pad_y;
  job.tile_width = job.tile_x_inc = 2 * out_width;
  job.tile_height = job.tile_y_inc = 2 * out_height;
  job.count = {2, static_cast<uint32_t>(out_width), 2, static_cast<uint32_t>(out_height), 1, 1};
  job.increment = {plane, 1, 2 * plane, static_cast<uint64_t>(out_width), 0, 0, 4 * plane};
  job.loop_1_reset = job.loop_3_reset = true;
  job.border = zero_point;
  return job;
}

// 5.6 with the same padding everywhere in x and y.
TpJob pad(Size s, int64_t by, int64_t planes_before, int64_t planes_after) {
  TpJob job = base_job(s.width, s.height, s.channels);
  const int64_t out_width = s.width + 2 * by, out_height = s.height + 2 * by;
  job.window_x0 = job.window_y0 = -by;
  job.window_x1 = s.width - 1 + by;
  job.window_y1 = s.height - 1 + by;
  job.z_first = -planes_before;
  job.z_last += planes_after;
  job.tile_width = job.tile_x_inc = out_width;
  job.tile_height = job.tile_y_inc = out_height;
  job.count = {1, static_cast<uint32_t>(out_width), static_cast<uint32_t>(out_height), 1, 1, 1};
  job.increment = {0, 1, static_cast<uint64_t>(out_width), 0, 0, 0, static_cast<uint64_t>(out_width * out_height)};
  job.border = 77;
  return job;
}

// 5.8: point-wise, in tiles of 64x16 whose ends reset the loops.
TpJob pointwise(Size s) {
  TpJob job = base_job(s.width, s.height, s.channels);
  job.tile_width = job.tile_x_inc = 64;
  job.tile_height = job.tile_y_inc = 16;
  job.count = {1, 0, 0, static_cast<uint32_t>((s.width + 63) / 64), static_cast<uint32_t>((s.height + 15) / 16), 1};
  job.increment = {0,
                   1,
                   static_cast<uint64_t>(s.width),
                   64,
                   static_cast<uint64_t>(16 * s.width),
                   0,
                   static_cast<uint64_t>(s.width * s.height)};
  job.loop_1_reset = job.loop_2_reset = true;
  for (size_t i = 0; i < 256; ++i) job.value[i] = static_cast<uint8_t>(255 - i);
  return job;
}

// Runs both ways, compares them, and returns the output.
Bytes run(const TpJob& job, const Bytes& in, int64_t out_bytes) {
  Bytes plain(static_cast<size_t>(out_bytes), 0xAA), fast = plain;
  const std::span<const uint8_t> used = std::span(in).first(static_cast<size_t>(job.in_extent()));
  const auto a = rearrange_plain(job, used, plain);
  const auto b = rearrange_fast(job, used, fast);
  EXPECT_TRUE(a.ok()) << a.error().message;
  EXPECT_TRUE(b.ok()) << b.error().message;
  EXPECT_EQ(plain, fast);
  return plain;
}

Bytes to_planar(const Bytes& nhwc, Size s) {
  Bytes planar(nhwc.size());
  for (int64_t y = 0; y < s.height; ++y)
    for (int64_t x = 0; x < s.width; ++x)
      for (int64_t c = 0; c < s.channels; ++c)
        planar[static_cast<size_t>((c * s.height + y) * s.width + x)] =
            nhwc[static_cast<size_t>((y * s.width + x) * s.channels + c)];
  return planar;
}

const Size kSizes[] = {{8, 8, 4}, {1, 1, 1}, {5, 7, 3}, {16, 1, 9}, {1, 13, 2}, {20, 70, 5}, {33, 65, 2}};

TEST(TpWalk, TransposeAndBack) {
  test::Random random(1);
  for (const Size s : kSizes) {
    const Bytes nhwc = random.bytes(static_cast<size_t>(s.bytes()));
    EXPECT_EQ(run(transpose(s), nhwc, s.bytes()), to_planar(nhwc, s));
    EXPECT_EQ(run(detranspose(s), to_planar(nhwc, s), s.bytes()), nhwc);
  }
}

TEST(TpWalk, Reshuffle) {
  test::Random random(2);
  for (const Size s : kSizes) {
    for (int64_t padding = 0; padding <= 2; ++padding) {
      const int64_t out_width = (s.width + 1) / 2 + padding, out_height = (s.height + 1) / 2 + padding,
                    plane = out_width * out_height;
      const Bytes in = random.bytes(static_cast<size_t>(s.bytes()));
      const Bytes out = run(reshuffle(s, padding, padding, out_width, out_height, 77), in, 4 * plane * s.channels);
      for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
        const int64_t parity = i / plane % 4, c = i / plane / 4;
        const int64_t x = 2 * (i % out_width) + parity % 2 - padding,
                      y = 2 * (i % plane / out_width) + parity / 2 - padding;
        const bool inside = x >= 0 && y >= 0 && x < s.width && y < s.height;
        const uint8_t expected = inside ? in[static_cast<size_t>((c * s.height + y) * s.width + x)] : 77;
        ASSERT_EQ(out[static_cast<size_t>(i)], expected) << "element " << i;
      }
    }
  }
}

TEST(TpWalk, PadAndPlanes) {
  test::Random random(3);
  for (const Size s : kSizes) {
    const Bytes in = random.bytes(static_cast<size_t>(s.bytes()));
    const int64_t width = s.width + 2, height = s.height + 2, planes = s.channels + 3;
    const Bytes out = run(pad(s, 1, 1, 2), in, width * height * planes);
    for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
      const int64_t x = i % width - 1, y = i / width % height - 1, z = i / width / height - 1;
      const bool inside = x >= 0 && y >= 0 && z >= 0 && x < s.width && y < s.height && z < s.channels;
      const uint8_t expected = inside ? in[static_cast<size_t>((z * s.height + y) * s.width + x)] : 77;
      ASSERT_EQ(out[static_cast<size_t>(i)], expected) << "element " << i;
    }
    EXPECT_EQ(run(pad(s, 0, 0, 0), in, s.bytes()), in);  // a plain copy
  }
}

TEST(TpWalk, PointwiseCoversEachElementOnce) {
  test::Random random(4);
  for (const Size s : kSizes) {
    Bytes in = random.bytes(static_cast<size_t>(s.bytes()));
    const Bytes out = run(pointwise(s), in, s.bytes());
    for (uint8_t& byte : in) byte = static_cast<uint8_t>(255 - byte);
    EXPECT_EQ(out, in);
  }
}

TpJob random_job(test::Random& random) {
  TpJob job = base_job(random.in(0, 9), random.in(0, 9), random.in(0, 4));
  job.stride = random.in(0, 12);
  job.slice = random.in(0, 100);
  job.z_first = -random.in(0, 2);
  job.z_last = job.planes - 1 + random.in(0, 2) + (job.planes == 0 ? 1 : 0);
  job.window_x0 = random.in(-3, 5);
  job.window_y0 = random.in(-3, 5);
  job.window_x1 = job.window_x0 + random.in(0, 9);
  job.window_y1 = job.window_y0 + random.in(0, 9);
  job.tile_width = random.in(1, 8);
  job.tile_height = random.in(1, 8);
  job.tile_x_inc = random.chance(70) ? job.tile_width : random.in(1, 8);
  job.tile_y_inc = random.chance(70) ? job.tile_height : random.in(1, 8);
  for (uint64_t& inc : job.increment) inc = static_cast<uint64_t>(random.in(0, 20));
  for (uint32_t& count : job.count) count = static_cast<uint32_t>(random.in(0, 7));
  job.loop_1_reset = random.chance(40);
  job.loop_2_reset = random.chance(40);
  job.loop_3_reset = random.chance(40);
  for (uint8_t& value : job.value) value = static_cast<uint8_t>(random.next());
  job.border = static_cast<uint8_t>(random.next());
  return job;
}

TEST(TpWalk, FastEqualsPlainOnRandomJobs) {
  test::Random random(5);
  int faults = 0;
  for (int round = 0; round < 5000; ++round) {
    const TpJob job = random_job(random);
    const Bytes in = random.bytes(static_cast<size_t>(job.in_extent()));
    Bytes plain(random.chance(20) ? 100 : 40000, 0xAA), fast = plain;
    const auto a = rearrange_plain(job, in, plain);
    const auto b = rearrange_fast(job, in, fast);
    ASSERT_EQ(a.ok(), b.ok()) << "round " << round;
    faults += !a.ok();
    if (a.ok()) {
      ASSERT_EQ(plain, fast) << "round " << round;
      ASSERT_EQ(*a, *b) << "round " << round;
      EXPECT_TRUE(rearrange_plain(job, in, std::span(plain).first(*a)).ok()) << "round " << round;
      EXPECT_FALSE(rearrange_plain(job, in, std::span(plain).first(*a - 1)).ok()) << "round " << round;
    }
  }
  EXPECT_GT(faults, 50);
  EXPECT_LT(faults, 2500);
}

TEST(TpWalk, ElementsAreCountedForTheLimit) {
  test::Random random(6);
  for (int round = 0; round < 200; ++round) {
    TpJob job = random_job(random);
    job.loop_1_reset = job.loop_2_reset = job.loop_3_reset = false;
    job.count = {};
    job.increment = {1, 0, 0, 0, 0, 0, 0};  // one byte after the other: the last address gives their number
    const Bytes in = random.bytes(static_cast<size_t>(job.in_extent()));
    const uint64_t expected = job.elements();
    Bytes out(expected);
    EXPECT_TRUE(rearrange_plain(job, in, out).ok());
    EXPECT_FALSE(rearrange_plain(job, in, std::span(out).first(expected - 1)).ok());
  }
}

// ---- arithmetic ----

TEST(TpArithmetic, CopiesWhenZeroPointsAreEqual) {
  for (int zero_point : {0, 3, 128, 255}) {
    const TpArithmetic arithmetic{.in_zero_point = zero_point, .out_zero_point = zero_point};
    for (int q = 0; q < 256; ++q) EXPECT_EQ(arithmetic.apply(q - zero_point), q);
  }
}

TEST(TpArithmetic, ScalesAndRounds) {
  const TpArithmetic half{.out_zero_point = 10, .shift = 1};
  EXPECT_EQ(half.apply(4), 12);
  EXPECT_EQ(half.apply(5), 13);
  EXPECT_EQ(half.apply(-5), 8);
  EXPECT_EQ(half.apply(-255), 0);
  const TpArithmetic triple{.out_zero_point = 0, .multiplier = 1 << 14, .shift = -1};
  EXPECT_EQ(triple.apply(7), 21);
  EXPECT_EQ(triple.apply(200), 255);
}

// The tables of specification 5.8.
std::array<uint32_t, kPwlEntriesUsed> relu_table() {
  std::array<uint32_t, kPwlEntriesUsed> table{};
  for (uint32_t i = 16; i < 496; ++i) table[i] = i * 0x800;
  for (uint32_t i = 496; i < 512; ++i) table[i] = 0xF7FFF;
  for (uint32_t i = 512; i < 1024; ++i) table[i] = 0x100000;
  return table;
}

TEST(TpArithmetic, TablesOfReluAndAbs) {
  const auto relu = relu_table();
  auto abs = relu;
  for (uint32_t i = 528; i < 1008; ++i) abs[i] = (i - 512) * 0x800;
  for (uint32_t i = 1008; i < 1024; ++i) abs[i] = 0xF7FFF;
  for (int v = -255; v <= 255; ++v) {
    EXPECT_EQ(table_value(relu, v), std::max(v, 0)) << v;
    EXPECT_EQ(table_value(abs, v), std::abs(v)) << v;
  }
}

TEST(TpArithmetic, Fp21) {
  EXPECT_EQ(fp21_value(0), 0.0);
  EXPECT_EQ(fp21_value(15U << 15), 1.0);
  EXPECT_EQ(fp21_value(1U << 20 | 16U << 15 | 1U << 14), -3.0);
  EXPECT_EQ(fp21_value(1), std::ldexp(1.0, -29));
}

}  // namespace
}  // namespace skillet::sim::vivante
