#include "npus/vivante/compiler/weights_v7.h"

#include <gtest/gtest.h>

#include <array>

#include "base/int_math.h"
#include "base/splitmix64.h"

namespace skillet::npus::vivante {
namespace {

std::vector<uint32_t> words_of(const Bytes& bytes, size_t from) {
  std::vector<uint32_t> words((bytes.size() - from) / 4);
  std::memcpy(words.data(), bytes.data() + from, words.size() * 4);
  while (!words.empty() && words.back() == 0) words.pop_back();
  return words;
}

// Kernel of one output channel from row-major planes.
Kernels one_kernel(int32_t channels, int32_t size, const Bytes& planes, int32_t bias) {
  Kernels k{.output_channels = 1,
            .input_channels = channels,
            .height = size,
            .width = size,
            .band = channels,
            .zero_point = 3};
  auto bytes = std::make_shared<Bytes>(planes);
  k.weights = *bytes;
  k.lowered = bytes;
  k.biases = {bias};
  return k;
}

// The test vectors of the specification, section 6.2.8: wzp 3, in_zp 2, bias 100, OC 1.
struct StreamCase {
  const char* what;
  int32_t channels;
  Bytes planes;
  int32_t bias;
  int zrl_bits_max;
  std::vector<uint32_t> words;
};

TEST(VivanteWeights, StreamsEqualTheSpecifiedVectors) {
  const Bytes ramp = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const StreamCase cases[] = {
      {"plain 3x3", 1, ramp, 64, 0, {0x01000100, 0x00000040, 0x05040302, 0x09080706}},
      // The search over zrl_bits ends at 0 for this kernel, so the vector with 2 bits cannot be produced here.
      {"two planes, mostly zero points",
       2,
       {3, 3, 3, 3, 5, 6, 3, 3, 9, 3, 3, 3, 3, 3, 3, 3, 3, 3},
       78,
       2,
       {0x0C000102, 0x00000138, 0x0981805C, 0x00C03C0F}},
  };
  for (const StreamCase& c : cases) {
    const Kernels k = one_kernel(c.channels, 3, c.planes, c.bias);
    const Coefficients out = write_streams_v7(
        k, {.split = split_kernels(1, 8, 1), .nn_cores = 8, .zrl_bits_max = c.zrl_bits_max, .plane_bytes = 16});
    EXPECT_EQ(words_of(out.bytes, 64), c.words) << c.what;
    EXPECT_EQ(load_le<uint32_t>(out.bytes.data()), 64U) << c.what << ": header";
    EXPECT_EQ(out.bytes.size(), 128U) << c.what;
  }
}

TEST(VivanteWeights, PatchIsTwoRowsByThreeColumns) {
  EXPECT_EQ(patch_order(3, 3), (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(patch_order(2, 5), (std::vector<int32_t>{0, 1, 2, 5, 6, 7, 3, 4, 8, 9}));
}

// The output of one core's decoder: a plain decoder, written from the format (section 6.2.5).
struct DecodedKernels {
  std::vector<uint8_t> weights;  // in stream order
  std::vector<uint32_t> raws;    // biases and offsets in stream order
};
class StreamReader {
 public:
  StreamReader(const Bytes& bytes, size_t at, uint8_t zero_point)
      : bytes_(bytes), at_(at * 8), zero_point_(zero_point) {
    zrl_bits_ = static_cast<int>(get(8));
    count_ = static_cast<int>(get(16));
  }
  uint32_t get(int bits) {
    uint32_t value = 0;
    for (int i = 0; i < bits; ++i, ++at_) value |= uint32_t{(bytes_[at_ / 8] >> (at_ % 8)) & 1U} << i;
    return value;
  }
  uint8_t weight() {
    if (queue_ == 0 && !has_value_) {
      queue_ = get(zrl_bits_);
      value_ = static_cast<uint8_t>(get(8));
      has_value_ = true;
    }
    if (queue_ > 0) {
      --queue_;
      return zero_point_;
    }
    has_value_ = false;
    return value_;
  }
  bool idle() const { return queue_ == 0 && !has_value_; }
  int count() const { return count_; }

 private:
  const Bytes& bytes_;
  size_t at_;
  uint8_t zero_point_;
  int zrl_bits_ = 0, count_ = 0;
  uint32_t queue_ = 0;
  uint8_t value_ = 0;
  bool has_value_ = false;
};

// The bits of one core's stream for each number of bits for runs, and the resulting choice (section 6.2.5).
class RunCounter {
 public:
  void weight(bool is_zero_point) {
    ++run_;
    if (!is_zero_point) end_run();
  }
  void boundary() {
    if (run_ > 0) end_run();
  }
  void raw() {
    boundary();
    fixed_bits_ += 32;
  }
  int64_t stream_bytes(int zrl_bits) const {
    return ceil_div(24 + fixed_bits_ + symbols_[static_cast<size_t>(zrl_bits)] * (8 + zrl_bits), 32) * 4;
  }

 private:
  // A symbol encodes up to 2^bits weights, all of which but the last are the zero point.
  void end_run() {
    for (size_t b = 0; b < symbols_.size(); ++b) symbols_[b] += ceil_div(run_, int64_t{1} << b);
    run_ = 0;
  }
  int64_t run_ = 0, fixed_bits_ = 0;
  std::array<int64_t, 9> symbols_{};
};

int searched_zrl_bits(const std::vector<RunCounter>& cores, int max) {
  const auto total = [&](int bits) {
    int64_t sum = 0;
    for (const RunCounter& core : cores) sum += core.stream_bytes(bits);
    return sum;
  };
  int best = max;
  while (best > 0 && total(best - 1) <= total(best)) --best;
  return best;
}

// One in `ones_in` weights is the zero point.
Kernels random_kernels(int32_t oc, int32_t channels, int32_t size, int32_t band, uint8_t zero_point, uint64_t ones_in,
                       SplitMix64& random) {
  Kernels k{.output_channels = oc,
            .input_channels = channels,
            .height = size,
            .width = size,
            .band = band,
            .zero_point = zero_point};
  k.kernels_per_band = band == channels ? 0 : 1;
  auto bytes = std::make_shared<Bytes>(static_cast<size_t>(oc * band * size * size));
  for (uint8_t& b : *bytes) {
    const uint64_t r = random.next();
    b = r % ones_in == 0 ? zero_point : static_cast<uint8_t>(r >> 8);
  }
  k.weights = *bytes;
  k.lowered = bytes;
  for (int32_t i = 0; i < oc; ++i) k.biases.push_back(static_cast<int32_t>(random.next()));
  k.filler_bias = 77;
  return k;
}

// Reads a dense-order stream of every core and checks each weight, bias and offset against the kernels.
void expect_decodes(const Kernels& k, const CoefficientLayout& layout, const Coefficients& out) {
  size_t at = static_cast<size_t>(align_up(4 * layout.nn_cores, 64));
  const int32_t patch = k.patch_elems();
  const std::vector<int32_t> order = patch_order(k.height, k.width);
  std::vector<RunCounter> counters(static_cast<size_t>(layout.split.cores_used));
  for (int32_t core = 0; core < layout.split.cores_used; ++core) {
    RunCounter& counter = counters[static_cast<size_t>(core)];
    StreamReader reader(out.bytes, at, k.zero_point);
    ASSERT_EQ(reader.count(), layout.split.kernels_per_core);
    for (int32_t s = 0, done = 0; s < layout.split.superblocks; ++s) {
      const int32_t count = std::min(layout.split.kernels_per_superblock, layout.split.kernels_per_core - done);
      const int32_t first = s * layout.split.kernels_per_superblock * layout.split.cores_used + core * count;
      for (int32_t z = 0; z < k.input_channels; ++z) {
        for (int32_t oc = first; oc < first + count; ++oc) {
          const bool real = oc < k.output_channels;
          const int32_t inside = real ? z - k.first_channel(oc) : 0;
          for (int32_t p = 0; p < patch; ++p) {
            uint8_t want = real ? k.zero_point : 0;
            if (real && inside >= 0 && inside < k.band)
              want = k.weights[static_cast<size_t>((oc * k.band + inside) * patch + order[static_cast<size_t>(p)])];
            ASSERT_EQ(reader.weight(), want) << "core " << core << " oc " << oc << " z " << z << " p " << p;
            counter.weight(want == k.zero_point);
            if (z == 0 && p == 0) {
              counter.raw();
              ASSERT_TRUE(reader.idle());
              ASSERT_EQ(reader.get(32),
                        static_cast<uint32_t>(real ? k.biases[static_cast<size_t>(oc)] : k.filler_bias));
            }
          }
          if (z == k.input_channels - 1) {
            ASSERT_TRUE(reader.idle());
            ASSERT_EQ(reader.get(32), layout.plane_bytes * static_cast<uint32_t>(oc));
            counter.raw();
          }
        }
        if (s == layout.split.superblocks - 1) counter.boundary();
      }
      done += count;
    }
    at += load_le<uint32_t>(out.bytes.data() + 4 * core);
  }
  ASSERT_EQ(at, out.bytes.size());
  ASSERT_EQ(out.zrl_bits, searched_zrl_bits(counters, layout.zrl_bits_max));
}

TEST(VivanteWeights, RandomKernelsDecodeToThemselves) {
  struct Shape {
    int32_t oc, channels, size, band, superblocks, zrl;
  };
  const Shape shapes[] = {
      {1, 1, 3, 1, 1, 5},      {16, 4, 3, 4, 2, 5},  {13, 7, 1, 7, 1, 5},    {40, 33, 1, 33, 3, 5},
      {9, 2, 5, 2, 2, 0},      {16, 16, 3, 1, 2, 5}, {21, 21, 3, 1, 1, 5},   {64, 64, 3, 1, 4, 5},
      {3, 9, 2, 9, 1, 3},      {24, 24, 3, 1, 3, 0}, {17, 66, 1, 66, 1, 5},  {8, 67, 1, 67, 1, 5},
      {50, 200, 1, 200, 2, 5}, {2, 2, 1, 2, 1, 5},   {160, 160, 3, 1, 5, 8}, {97, 97, 3, 1, 1, 4},
      {160, 160, 3, 1, 1, 1},  {96, 96, 5, 1, 2, 7},
  };
  SplitMix64 random(1);
  int searched = 0, plain = 0;
  for (const Shape& s : shapes) {
    for (const uint8_t zero_point : {0, 130}) {
      // Near the density at which runs of zero points begin to save bits, and far from it.
      for (const uint64_t ones_in : {1, 3, 5, 7, 8, 9, 10, 12, 200}) {
        const Kernels k = random_kernels(s.oc, s.channels, s.size, s.band, zero_point, ones_in, random);
        const CoefficientLayout layout{
            .split = split_kernels(s.oc, 8, s.superblocks), .nn_cores = 8, .zrl_bits_max = s.zrl, .plane_bytes = 99};
        SCOPED_TRACE(fmt::format("oc {} channels {} size {} band {} zero point {} one in {}", s.oc, s.channels, s.size,
                                 s.band, zero_point, ones_in));
        const Coefficients out = write_streams_v7(k, layout);
        expect_decodes(k, layout, out);
        (out.zrl_bits > 0 ? searched : plain) += 1;
      }
    }
  }
  EXPECT_GT(searched, 50);
  EXPECT_GT(plain, 50);
}

// With V values for Z single zero points, a bit for runs costs V bits and saves 8 Z.
TEST(VivanteWeights, RunsPayBelowEightValuesForEachZeroPoint) {
  SplitMix64 random(2);
  for (const size_t one_in : {7, 8, 9, 10}) {
    constexpr int32_t kCores = 8, kChannels = 100, kPerCore = 95;  // runs end with each channel and bias
    Kernels k = random_kernels(kCores * kPerCore, kChannels, 1, kChannels, 130, ~uint64_t{0}, random);
    auto bytes = std::make_shared<Bytes>(k.weights.begin(), k.weights.end());
    for (size_t i = 0; i < bytes->size(); ++i) (*bytes)[i] = i / kChannels % kPerCore % one_in == one_in - 1 ? 130 : 7;
    k.weights = *bytes;
    k.lowered = bytes;
    const CoefficientLayout layout{
        .split = split_kernels(kCores * kPerCore, kCores, 1), .nn_cores = kCores, .zrl_bits_max = 5};
    const Coefficients out = write_streams_v7(k, layout);
    expect_decodes(k, layout, out);
    EXPECT_EQ(out.zrl_bits > 0, one_in < 9) << one_in;
  }
}

}  // namespace
}  // namespace skillet::npus::vivante
