// The compiler's weight streams, read by the simulator's decoder, which was written independently and reads Vela's
// streams.
#include "npus/ethosu/compiler/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "npus/ethosu/sim/weights.h"

namespace skillet {
namespace {

namespace ours = npus::ethosu;
namespace theirs = sim::ethosu;

// Distribution of the values of one stream.
struct Draw {
  const char* name;
  double spread;  // around 0
  double zeros;   // their share
  int16_t least, most;
};
constexpr Draw kDraws[] = {{"wide", 40, 0, -127, 127},   {"narrow", 3, 0, -128, 127}, {"sparse", 20, 0.9, -127, 127},
                           {"half", 10, 0.5, -255, 255}, {"zeros", 1, 1, 0, 0},       {"even", 1e6, 0, -255, 255},
                           {"few", 1e6, 0, -3, 4},       {"one", 1e6, 0, 77, 77},     {"high", 8, 0, 100, 255}};

std::vector<int16_t> values_of(const Draw& draw, size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int16_t> out(count);
  for (int16_t& value : out) {
    if (std::uniform_real_distribution<double>()(random) < draw.zeros) continue;
    if (draw.spread > 1e5) {
      value = static_cast<int16_t>(std::uniform_int_distribution<int>(draw.least, draw.most)(random));
    } else {
      const double drawn = std::normal_distribution<double>(0, draw.spread)(random);
      value = static_cast<int16_t>(std::clamp<double>(drawn, draw.least, draw.most));
    }
  }
  return out;
}

double entropy_bits(const std::vector<int16_t>& values) {
  std::map<int16_t, double> counts;
  for (const int16_t value : values) ++counts[value];
  double bits = 0;
  for (const auto& [value, count] : counts) bits -= count * std::log2(count / static_cast<double>(values.size()));
  return bits;
}

TEST(EthosuWeightStreams, AreReadAsTheyWereWritten) {
  for (const Draw& draw : kDraws) {
    for (const size_t count : {1U, 2U, 7U, 12U, 13U, 64U, 100U, 4096U, 32768U, 32769U, 100'000U}) {
      const auto values = values_of(draw, count, static_cast<uint32_t>(count));
      const Bytes stream = ours::encode_weights(values);
      ASSERT_EQ(stream.size() % 16, 0U);
      const auto read = theirs::decode_weights(stream, count);
      ASSERT_TRUE(read.ok()) << draw.name << " " << count << ": " << read.error().message;
      EXPECT_EQ(*read, values) << draw.name << " " << count;
    }
  }
}

// No code of single values is shorter than the entropy, and no code of this kind uses less than a bit for a nonzero
// value.
TEST(EthosuWeightStreams, AreShort) {
  for (const Draw& draw : kDraws) {
    if (draw.most - draw.least == 155) continue;  // the code is made for values around 0
    const auto values = values_of(draw, 65536, 3);
    const auto bits = static_cast<double>(ours::encode_weights(values).size() * 8);
    EXPECT_LT(bits, std::max(entropy_bits(values) * 1.12, 65536 * 1.05) + 2000) << draw.name;
  }
  EXPECT_EQ(ours::encode_weights(std::vector<int16_t>(64)).size(), 16U);
}

// A palette has up to 32 values. These are far apart, and equally frequent.
TEST(EthosuWeightStreams, OfAsManyDifferentValuesAsAPaletteHasAndMore) {
  for (const int distinct : {2, 16, 17, 31, 32, 33, 34}) {
    std::vector<int16_t> values(4096);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int16_t>(7 * (static_cast<int>(i) % distinct) - 112);
    const auto read = theirs::decode_weights(ours::encode_weights(values), values.size());
    ASSERT_TRUE(read.ok()) << distinct << ": " << read.error().message;
    EXPECT_EQ(*read, values) << distinct;
  }
}

TEST(EthosuWeightStreams, HaveTheOrderOfTheChip) {
  std::mt19937 random(1);
  const auto draw = [&](uint32_t least, uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(least, most)(random);
  };
  for (int i = 0; i < 200; ++i) {
    const auto traversal = static_cast<theirs::Traversal>(i % 3);
    const bool is_depthwise = traversal == theirs::Traversal::depthwise;
    const theirs::WeightOrder read{.traversal = traversal,
                                   .output_depth = draw(1, 70),
                                   .input_depth = is_depthwise ? 1 : draw(1, 70),
                                   .kernel_height = draw(1, 11),
                                   .kernel_width = draw(1, 11),
                                   .dilation_y = draw(1, 2),
                                   .dilation_x = draw(1, 2),
                                   .block_depth = draw(1, 8) * 8,
                                   .ublock_depth = draw(1, 2) * 4};
    const ours::WeightOrder written{.traversal = static_cast<ours::Traversal>(traversal),
                                    .outputs = read.output_depth,
                                    .inputs = read.input_depth,
                                    .kernel_h = read.kernel_height,
                                    .kernel_w = read.kernel_width,
                                    .dilation_h = read.dilation_y,
                                    .dilation_w = read.dilation_x,
                                    .block_depth = read.block_depth,
                                    .ublock_depth = read.ublock_depth};
    std::vector<int16_t> weights(size_t{read.kernel_height} * read.kernel_width * read.output_depth * read.input_depth);
    for (int16_t& weight : weights) weight = static_cast<int16_t>(draw(0, 255)) - 128;
    const int64_t outputs = read.output_depth, inputs = read.input_depth;
    const auto values = ours::in_order(
        written, {.first = weights.data(), .per_output = inputs, .per_tap = outputs * inputs, .per_input = 1});
    ASSERT_EQ(values.size(), theirs::count_of(read));
    const auto back = theirs::ordered(values, read);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, weights) << i;
  }
}

}  // namespace
}  // namespace skillet
