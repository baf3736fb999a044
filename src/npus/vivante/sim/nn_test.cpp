#include <gtest/gtest.h>

#include "npus/vivante/sim/nn_job.h"
#include "npus/vivante/sim/test_support.h"

namespace skillet::sim::vivante {
namespace {

TEST(Requant, TieRules) {
  struct Case {
    int64_t value;
    int64_t up, even, away, down;
  };
  for (const Case& c : {Case{3, 2, 2, 2, 1}, Case{1, 1, 0, 1, 0}, Case{-1, 0, 0, -1, -1}, Case{-3, -1, -2, -2, -2}}) {
    EXPECT_EQ(round_shift(c.value, 1, TieRule::half_up), c.up);
    EXPECT_EQ(round_shift(c.value, 1, TieRule::half_even), c.even);
    EXPECT_EQ(round_shift(c.value, 1, TieRule::half_away), c.away);
    EXPECT_EQ(round_shift(c.value, 1, TieRule::half_down), c.down);
    const double half = static_cast<double>(c.value) / 2;
    EXPECT_EQ(round_real(half, TieRule::half_up), c.up);
    EXPECT_EQ(round_real(half, TieRule::half_even), c.even);
    EXPECT_EQ(round_real(half, TieRule::half_away), c.away);
    EXPECT_EQ(round_real(half, TieRule::half_down), c.down);
  }
  EXPECT_EQ(round_shift(-5, 2, TieRule::half_even), -1);  // -1.25
  EXPECT_EQ(round_shift(7, 2, TieRule::half_down), 2);    // 1.75
  EXPECT_EQ(round_shift(INT64_C(1) << 46, 100, TieRule::half_up), 0);
  EXPECT_EQ(round_shift(-(INT64_C(1) << 46), 100, TieRule::half_up), 0);
}

TEST(Requant, MatchesRealArithmetic) {
  test::Random random(3);
  for (int i = 0; i < 20000; ++i) {
    const Requant q{.multiplier = static_cast<uint32_t>(random.in(1 << 15, (1 << 16) - 1)),
                    .shift = static_cast<int>(random.in(0, 40)),
                    .relu = random.chance(50),
                    .zero_point = static_cast<uint8_t>(random.next()),
                    .rule = TieRule::half_up};
    const int64_t sum = random.in(-(INT64_C(1) << 31), (INT64_C(1) << 31) - 1) >> random.in(0, 20);
    const auto real = static_cast<long double>(sum) * q.multiplier / static_cast<long double>(uint64_t{1} << q.shift);
    long double rounded = std::floor(real + 0.5L);
    if (q.relu) rounded = std::max(rounded, 0.0L);
    const auto expected = static_cast<uint8_t>(std::clamp(rounded + q.zero_point, 0.0L, 255.0L));
    ASSERT_EQ(requantize(sum, q), expected) << sum << " * " << q.multiplier << " >> " << q.shift;
  }
}

TEST(Requant, ManyEqualOneByOne) {
  test::Random random(4);
  for (int i = 0; i < 2000; ++i) {
    const Requant q{
        .multiplier = static_cast<uint32_t>(random.chance(5) ? INT64_C(0x80000001) : random.in(1 << 15, (1 << 16) - 1)),
        .shift = static_cast<int>(random.in(0, 63)),
        .relu = random.chance(50),
        .zero_point = static_cast<uint8_t>(random.next()),
        .rule = static_cast<TieRule>(random.in(0, 3))};
    if (q.multiplier > INT32_MAX && q.shift < 1) continue;  // products of one by one end at 61 bits
    std::vector<int32_t> sums(static_cast<size_t>(random.in(0, 40)));
    for (int32_t& sum : sums) sum = static_cast<int32_t>(random.in(INT32_MIN / 4, INT32_MAX / 4) >> random.in(0, 28));
    Bytes expected, out(sums.size());
    for (const int32_t sum : sums) expected.push_back(requantize(int64_t{sum}, q));
    requantize(std::span(sums), q, out.data());
    ASSERT_EQ(out, expected) << q.multiplier << " >> " << q.shift;
  }
}

struct RandomJob {
  NnJob job;
  std::vector<Kernel> kernels;
  Bytes in;
};

// Weights of one job: bytes minus a zero point, which fit a matrix product of bytes; or larger ones.
struct WeightRange {
  int64_t low = -255, high = 255;
};

Kernel random_kernel(test::Random& random, const NnJob& job, const WeightRange& range) {
  Kernel kernel;
  kernel.bias = static_cast<int32_t>(random.in(-1000000, 1000000));
  const int used = static_cast<int>(random.in(0, 100));
  for (int64_t plane = 0; plane < job.in_planes; ++plane) {
    if (!random.chance(used)) continue;
    kernel.planes.push_back(static_cast<uint32_t>(plane));
    for (int64_t tap = 0; tap < job.taps(); ++tap) {
      const int64_t edge = random.chance(50) ? range.low : range.high;
      kernel.weights.push_back(static_cast<int16_t>(random.chance(10) ? edge : random.in(range.low, range.high)));
      kernel.magnitude += std::abs(kernel.weights.back());
    }
  }
  return kernel;
}

RandomJob random_job(test::Random& random) {
  RandomJob all;
  NnJob& job = all.job;
  job.in_width = random.in(1, 20);
  job.in_height = random.in(1, 20);
  job.in_planes = random.in(1, 40);
  job.in_row_bytes = job.in_width + random.in(0, 3);
  job.in_plane_bytes = job.in_row_bytes * (job.in_height + random.in(0, 2));
  job.border = static_cast<uint8_t>(random.next());
  job.out_width = random.in(1, 24);
  job.out_height = random.in(1, 24);
  job.out_planes = random.in(1, 12);
  job.out_row_bytes = job.out_width + random.in(0, 3);
  job.out_plane_bytes = job.out_row_bytes * job.out_height;
  job.kernel_width = static_cast<int>(random.in(1, 7));
  job.kernel_height = static_cast<int>(random.in(1, 7));
  job.offset_x = random.in(-8, 7);
  job.offset_y = random.in(-8, 7);
  job.step = random.chance(30) ? 2 : 1;
  job.requant = {.multiplier = static_cast<uint32_t>(random.in(1 << 15, (1 << 16) - 1)),
                 .shift = static_cast<int>(random.in(20, 32)),
                 .relu = random.chance(50),
                 .zero_point = static_cast<uint8_t>(random.next()),
                 .rule = static_cast<TieRule>(random.in(0, 3))};
  const int64_t zero_point = random.in(0, 255);
  const WeightRange range = random.chance(30) ? WeightRange{} : WeightRange{-zero_point, 255 - zero_point};
  for (int64_t k = 0; k < job.out_planes; ++k) all.kernels.push_back(random_kernel(random, job, range));
  all.in = random.bytes(static_cast<size_t>(job.in_extent()));
  return all;
}

TEST(NnConvolution, FastEqualsPlain) {
  test::Random random(11);
  int distinct = 0;
  for (int round = 0; round < 300; ++round) {
    const RandomJob all = random_job(random);
    Bytes plain(static_cast<size_t>(all.job.out_plane_bytes * all.job.out_planes), 0xAA);
    Bytes fast = plain;
    std::vector<KernelTask> plain_tasks, fast_tasks;
    for (size_t k = 0; k < all.kernels.size(); ++k) {
      const size_t offset = k * static_cast<size_t>(all.job.out_plane_bytes);
      ASSERT_TRUE(sums_fit(all.kernels[k]));
      plain_tasks.push_back({&all.kernels[k], plain.data() + offset});
      fast_tasks.push_back({&all.kernels[k], fast.data() + offset});
    }
    const auto done = convolve_plain(all.job, plain_tasks, all.in);
    ASSERT_TRUE(done.ok()) << done.error().message;
    PackedKernels packed;
    convolve_fast(all.job, fast_tasks, all.in, packed);
    ASSERT_EQ(fast, plain) << "round " << round;
    distinct +=
        std::count_if(plain.begin(), plain.end(), [](uint8_t v) { return v != 0 && v != 255 && v != 0xAA; }) > 0;
  }
  EXPECT_GT(distinct, 150);  // the jobs are not all saturated
}

// Packed kernels are reused for another image, and packed again for other kernels.
TEST(NnConvolution, KeepsPackedKernels) {
  test::Random random(12);
  for (int round = 0; round < 50; ++round) {
    RandomJob all = random_job(random);
    PackedKernels packed;
    for (int run = 0; run < 3; ++run) {
      Bytes plain(static_cast<size_t>(all.job.out_plane_bytes * all.job.out_planes)), fast = plain;
      std::vector<KernelTask> plain_tasks, fast_tasks;
      for (size_t k = run == 2 ? 1 : 0; k < all.kernels.size(); ++k) {
        const size_t offset = k * static_cast<size_t>(all.job.out_plane_bytes);
        plain_tasks.push_back({&all.kernels[k], plain.data() + offset});
        fast_tasks.push_back({&all.kernels[k], fast.data() + offset});
      }
      ASSERT_TRUE(convolve_plain(all.job, plain_tasks, all.in).ok());
      convolve_fast(all.job, fast_tasks, all.in, packed);
      ASSERT_EQ(fast, plain) << "round " << round << " run " << run;
      all.in = random.bytes(all.in.size());
    }
  }
}

TEST(NnConvolution, AccumulatorOverflowIsAFault) {
  NnJob job;
  job.in_width = job.in_height = job.in_planes = job.out_width = job.out_height = job.out_planes = 1;
  job.in_row_bytes = job.in_plane_bytes = job.out_row_bytes = job.out_plane_bytes = 1;
  job.requant = {.multiplier = 1 << 15, .shift = 30};
  struct Row {
    int32_t bias;
    int8_t weight;
    bool fits;
  };
  for (const auto& [bias, weight, fits] :
       {Row{INT32_MAX, 1, false}, {INT32_MAX - 1, 1, true}, {INT32_MIN, -1, false}, {INT32_MIN + 1, -1, true}}) {
    const Kernel kernel{.bias = bias, .planes = {0}, .weights = {weight}, .magnitude = 1};
    EXPECT_FALSE(sums_fit(kernel) && !fits);
    const Bytes in = {1};
    uint8_t out = 0;
    const KernelTask task{&kernel, &out};
    const auto done = convolve_plain(job, std::span(&task, 1), in);
    EXPECT_EQ(done.ok(), fits) << bias;
    if (!fits) {
      EXPECT_NE(done.error().message.find("leaves 32 bits"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace skillet::sim::vivante
