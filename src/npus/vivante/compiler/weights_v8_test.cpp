// Compares the V8 coefficient writer with the simulator's decoder, which was written from the format alone.
#include "npus/vivante/compiler/weights_v8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/int_math.h"
#include "base/splitmix64.h"
#include "npus/vivante/compiler/huffman_v8.h"
#include "npus/vivante/sim/nn_coefficients.h"

namespace skillet::npus::vivante {
namespace {

namespace sim = ::skillet::sim::vivante;

const hw::ChipRow& kChip = *hw::find_chip("imx8mp");

class Random : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;
  int32_t in(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
};

struct RandomFilter {
  sim::CoefficientShape shape;
  Bytes weights;
  std::vector<int32_t> biases;
  int32_t superblocks = 1;

  FilterView view() const {
    return {.output_channels = static_cast<int32_t>(shape.output_planes),
            .weights_per_kernel = static_cast<int32_t>((shape.depthwise ? 1 : shape.planes) * shape.taps()),
            .depthwise = shape.depthwise,
            .zero_point = shape.zero_point,
            .weights = weights,
            .biases = biases};
  }
  KernelSplit split() const { return split_kernels(view().output_channels, kChip.nn_cores, superblocks); }
};

// Weights around the zero point, as in models.
uint8_t random_weight(Random& random, uint8_t zero_point, int32_t spread) {
  const int32_t sum = random.in(-spread, spread) + random.in(-spread, spread);
  return static_cast<uint8_t>(std::clamp(zero_point + sum, 0, 255));
}

RandomFilter random_filter(Random& random) {
  RandomFilter f;
  f.shape = {.kernel_width = random.in(1, 7),
             .kernel_height = random.in(1, 7),
             .planes = random.in(1, 30),
             .zero_point = static_cast<uint8_t>(random.next()),
             .depthwise = random.in(0, 3) == 0,
             .output_planes = random.in(1, 40),
             .plane_bytes = 10};
  if (f.shape.depthwise) f.shape.planes = f.shape.output_planes;
  const auto kernels = static_cast<int32_t>(f.shape.output_planes);
  const int32_t per_core = ceil_div(kernels, std::min(kernels, kChip.nn_cores));
  f.shape.kernels_per_core = random.in(1, per_core);
  f.superblocks = ceil_div(per_core, static_cast<int32_t>(f.shape.kernels_per_core));
  f.shape.kernels_per_core = f.split().kernels_per_superblock;
  const int32_t spread = random.in(0, 100);
  f.weights.resize(static_cast<size_t>(int64_t{kernels} * f.view().weights_per_kernel));
  for (uint8_t& weight : f.weights) weight = random_weight(random, f.shape.zero_point, spread);
  f.biases.resize(static_cast<size_t>(kernels));
  for (int32_t& bias : f.biases) bias = static_cast<int32_t>(random.next());
  return f;
}

Result<sim::Coefficients> decode(const Bytes& buffer, const sim::CoefficientShape& shape) {
  SK_TRY_ASSIGN(const int64_t size, sim::kCoefficientFormatV8.buffer_bytes(buffer, kChip, shape));
  if (size != static_cast<int64_t>(buffer.size()))
    return error(ErrorCode::internal, "{} bytes, the header says {}", buffer.size(), size);
  return sim::kCoefficientFormatV8.decode(buffer, kChip, shape);
}

void expect_kernel(const RandomFilter& f, const sim::Kernel& kernel) {
  const auto channel = static_cast<size_t>(kernel.output_offset / f.shape.plane_bytes);
  const auto n = static_cast<size_t>(f.view().weights_per_kernel), taps = static_cast<size_t>(f.shape.taps());
  std::vector<int16_t> weights(n);
  for (size_t i = 0; i < kernel.weights.size(); ++i) {
    const size_t plane = f.shape.depthwise ? 0 : kernel.planes[i / taps];
    ASSERT_TRUE(!f.shape.depthwise || kernel.planes[0] == channel);
    weights[plane * taps + i % taps] = kernel.weights[i];
  }
  int64_t bias = f.biases[channel];
  for (size_t i = 0; i < n; ++i) {
    const int deviation = f.weights[channel * n + i] - f.shape.zero_point;
    ASSERT_EQ(weights[i], deviation) << "channel " << channel << " weight " << i;
    bias -= 128 * deviation;
  }
  ASSERT_EQ(kernel.bias, bias);
}

TEST(WeightsV8, DecodeToWhatWasWritten) {
  Random random(5);
  int depthwise = 0, superblocks = 0;
  for (int round = 0; round < 400; ++round) {
    const RandomFilter f = random_filter(random);
    depthwise += f.shape.depthwise;
    superblocks += f.superblocks > 1;
    std::array<size_t, 2> sizes{};
    for (const SymbolMapChoice choice : {SymbolMapChoice::recorded, SymbolMapChoice::smallest}) {
      const Coefficients written = write_streams_v8(f.view(), f.split(), choice);
      sizes[static_cast<size_t>(choice)] = written.bytes.size();
      const auto decoded = decode(written.bytes, f.shape);
      ASSERT_TRUE(decoded.ok()) << "round " << round << ": " << decoded.error().message;
      ASSERT_EQ(decoded->kernels.size(), static_cast<size_t>(f.shape.output_planes));
      for (const sim::Kernel& kernel : decoded->kernels) expect_kernel(f, kernel);
    }
    EXPECT_LE(sizes[1], sizes[0]);
  }
  EXPECT_GT(depthwise, 50);
  EXPECT_GT(superblocks, 50);
}

// Specification 6.3.10.
TEST(WeightsV8, VectorOfTheSpecification) {
  const Bytes weights = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<int32_t> biases = {0x940};
  const FilterView filter{
      .output_channels = 1, .weights_per_kernel = 9, .zero_point = 3, .weights = weights, .biases = biases};
  const Bytes bytes = write_streams_v8(filter, split_kernels(1, 6, 1), SymbolMapChoice::recorded).bytes;
  ASSERT_EQ(bytes.size(), 132u);
  EXPECT_EQ(load_le<uint32_t>(bytes.data() + 20), 0x76501423u);
  EXPECT_EQ(load_le<uint32_t>(bytes.data() + 28), 63u);
  EXPECT_EQ(load_le<uint32_t>(bytes.data() + 64), 0x0C91ECF3u);
  EXPECT_EQ(load_le<uint32_t>(bytes.data() + 68), 0x29124B00u);
  EXPECT_EQ(load_le<uint32_t>(bytes.data() + 128), 0x940u);
}

// All 40,320 maps one by one, with padding that decides and without.
TEST(WeightsV8, NoMapIsSmaller) {
  Random random(9);
  for (int round = 0; round < 12; ++round) {
    std::vector<huffman::LengthHistogram> streams(static_cast<size_t>(random.in(1, 6)));
    for (huffman::LengthHistogram& lengths : streams) {
      for (int64_t& count : lengths) count = random.in(0, 4) == 0 ? 0 : random.in(0, round < 6 ? 60 : 3000);
    }
    const auto cost = [&](const huffman::SymbolMap& map) {
      std::pair<int64_t, int64_t> sum;
      for (const huffman::LengthHistogram& lengths : streams) {
        const int64_t bits = huffman::stream_bits(lengths, map);
        sum.first += align_up(bits, 512);
        sum.second += bits;
      }
      return sum;
    };
    huffman::SymbolMap map;
    std::iota(map.begin(), map.end(), uint8_t{0});
    auto best = cost(map);
    while (std::next_permutation(map.begin(), map.end())) best = std::min(best, cost(map));
    EXPECT_EQ(cost(huffman::smallest_map(streams, 512)).first, best.first) << "round " << round;
  }
}

TEST(WeightsV8, SizesAreThoseOfTheBuffers) {
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    const RandomFilter f = random_filter(random);
    const CoefficientSizes sizes = sizes_v8(f.view(), f.split());
    const auto size = [&](SymbolMapChoice choice) {
      return static_cast<int64_t>(write_streams_v8(f.view(), f.split(), choice).bytes.size());
    };
    EXPECT_EQ(sizes.recorded, size(SymbolMapChoice::recorded));
    EXPECT_EQ(sizes.smallest, size(SymbolMapChoice::smallest));
    EXPECT_LT(sizes.format, sizes.smallest);
    EXPECT_LE(sizes.entropy, sizes.format);
  }
}

}  // namespace
}  // namespace skillet::npus::vivante
