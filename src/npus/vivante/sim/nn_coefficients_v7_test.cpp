#include <gtest/gtest.h>

#include "npus/vivante/sim/nn_coefficients.h"
#include "npus/vivante/sim/test_support.h"

namespace skillet::sim::vivante {
namespace {

using test::TestKernel;
using test::TestShape;

const test::hw::ChipRow& kChip = *test::hw::find_chip("a311d");
constexpr int kCores = 8, kZrlMax = 5;

Result<int64_t> coefficient_bytes(const Bytes& header) {
  return kCoefficientFormatV7.buffer_bytes(header, kChip, CoefficientShape{});
}

Result<Coefficients> decode(const Bytes& buffer, const CoefficientShape& shape) {
  SK_TRY_ASSIGN(const int64_t size, coefficient_bytes(buffer));
  if (size > static_cast<int64_t>(buffer.size())) return error(ErrorCode::internal, "test buffer too small");
  return kCoefficientFormatV7.decode(buffer, kChip, shape);
}

Bytes buffer_of(const std::vector<uint32_t>& stream) {
  Bytes buffer(128);
  store_le(buffer.data(), uint32_t{64});
  std::memcpy(buffer.data() + 64, stream.data(), stream.size() * 4);
  return buffer;
}

const CoefficientShape k3x3{.kernel_width = 3, .kernel_height = 3, .planes = 1, .kernels_per_core = 1, .zero_point = 3};
const std::vector<uint32_t> kPlainStream = {0x01000100, 0x00000040, 0x05040302, 0x09080706, 0x00000000};
const std::vector<uint32_t> kRunStream = {0x04000102, 0x00000100, 0x05011020, 0x02007018, 0x00000009, 0x00000000};
const std::vector<int16_t> kOneToNineLessThree = {-2, -1, 0, 1, 2, 3, 4, 5, 6};

// Specification 6.2.8, first and second vector: weights 1..9, zero point 3.
TEST(NnCoefficients, VectorsOfTheSpecification) {
  for (const auto& stream : {kPlainStream, kRunStream}) {
    const auto decoded = decode(buffer_of(stream), k3x3);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    ASSERT_EQ(decoded->kernels.size(), 1u);
    EXPECT_EQ(decoded->kernels[0].bias, 64);
    EXPECT_EQ(decoded->kernels[0].output_offset, 0u);
    EXPECT_EQ(decoded->kernels[0].weights, kOneToNineLessThree);
    EXPECT_EQ(decoded->kernels[0].magnitude, 24);
  }
}

// Third vector: two planes; the second has only zero points and is therefore left out.
TEST(NnCoefficients, VectorWithAnEmptyPlane) {
  CoefficientShape shape = k3x3;
  shape.planes = 2;
  const auto decoded = decode(buffer_of({0x0C000102, 0x00000138, 0x0981805C, 0x00C03C0F, 0x00000000}), shape);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->kernels[0].bias, 78);
  EXPECT_EQ(decoded->kernels[0].planes, std::vector<uint32_t>{0});
  EXPECT_EQ(decoded->kernels[0].weights, (std::vector<int16_t>{0, 0, 0, 0, 2, 3, 0, 0, 6}));
}

std::vector<TestKernel> random_kernels(test::Random& random, const TestShape& shape, int count) {
  std::vector<TestKernel> kernels(static_cast<size_t>(count));
  for (TestKernel& kernel : kernels) {
    kernel.weights = random.bytes(static_cast<size_t>(shape.planes * shape.height * shape.width));
    const int zeros = static_cast<int>(random.in(0, 100));
    for (uint8_t& weight : kernel.weights) {
      if (random.chance(zeros)) weight = shape.zero_point;
    }
    kernel.bias = static_cast<int32_t>(random.next());
    kernel.offset = static_cast<uint32_t>(random.next());
  }
  return kernels;
}

Bytes dense_weights(const Kernel& kernel, const CoefficientShape& shape) {
  const auto taps = static_cast<size_t>(shape.taps());
  Bytes weights(static_cast<size_t>(shape.planes) * taps, shape.zero_point);
  for (size_t i = 0; i < kernel.weights.size(); ++i) {
    const size_t at = kernel.planes[i / taps] * taps + i % taps;
    weights[at] = static_cast<uint8_t>(kernel.weights[i] + shape.zero_point);
  }
  return weights;
}

TEST(NnCoefficients, ReadsBackWhatTheTestWriterWrote) {
  test::Random random(7);
  for (int round = 0; round < 300; ++round) {
    CoefficientShape shape{.kernel_width = static_cast<int>(random.in(1, 7)),
                           .kernel_height = static_cast<int>(random.in(1, 7)),
                           .planes = random.in(1, 20),
                           .kernels_per_core = random.in(1, 5),
                           .zero_point = static_cast<uint8_t>(random.next()),
                           .order = static_cast<StreamOrder>(round % 4)};
    if (shape.order == StreamOrder::six_planes) shape.kernel_width = shape.kernel_height = 1;
    const bool dense = shape.order == StreamOrder::dense || shape.order == StreamOrder::dense_rows;
    const TestShape writer{.width = shape.kernel_width,
                           .height = shape.kernel_height,
                           .planes = static_cast<int>(shape.planes),
                           .kernels_per_core = static_cast<int>(shape.kernels_per_core),
                           .zero_point = shape.zero_point,
                           .zrl_bits = static_cast<int>(random.in(0, kZrlMax)),
                           .group = dense                                    ? 1
                                    : shape.order == StreamOrder::six_planes ? 6
                                                                             : static_cast<int>(shape.planes),
                           .patches = shape.order == StreamOrder::dense};
    const int per_core = static_cast<int>(random.in(1, 9));
    const auto kernels = random_kernels(random, writer, per_core * static_cast<int>(random.in(1, kCores)));
    const auto decoded = decode(test::write_coefficients(writer, kernels, per_core), shape);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    ASSERT_EQ(decoded->kernels.size(), kernels.size());
    EXPECT_EQ(decoded->kernels_per_core, per_core);
    for (size_t k = 0; k < kernels.size(); ++k) {
      ASSERT_EQ(decoded->kernels[k].bias, kernels[k].bias) << "round " << round << " kernel " << k;
      ASSERT_EQ(decoded->kernels[k].output_offset, kernels[k].offset);
      ASSERT_EQ(dense_weights(decoded->kernels[k], shape), kernels[k].weights) << "round " << round << " kernel " << k;
    }
  }
}

struct BadStream {
  const char* name;
  std::vector<uint32_t> stream;
  const char* fault;
};

TEST(NnCoefficients, FaultsNameTheirCause) {
  CoefficientShape wide = k3x3;
  wide.planes = 100;
  const auto truncated = decode(buffer_of(kPlainStream), wide);
  ASSERT_FALSE(truncated.ok());
  EXPECT_NE(truncated.error().message.find("truncated coefficient stream"), std::string::npos)
      << truncated.error().message;
  EXPECT_NE(truncated.error().message.find("core 0"), std::string::npos);

  std::vector<uint32_t> dirty = kPlainStream;
  dirty.push_back(0x100);
  std::vector<uint32_t> zrl = kPlainStream;
  zrl[0] = 0x01000106;
  std::vector<uint32_t> none = kPlainStream;
  none[0] = 0x01000000;
  // A run that starts before the bias: zrl_bits 2, first symbol run 1.
  std::vector<uint32_t> run = kRunStream;
  run[0] |= 0x01000000;
  for (const BadStream& bad :
       {BadStream{"padding", dirty, "padding"}, BadStream{"zrl", zrl, "zrl_bits = 6"},
        BadStream{"no kernels", none, "kernel count = 0"}, BadStream{"run", run, "reaches over the bias"}}) {
    const auto decoded = decode(buffer_of(bad.stream), k3x3);
    ASSERT_FALSE(decoded.ok()) << bad.name;
    EXPECT_NE(decoded.error().message.find(bad.fault), std::string::npos) << decoded.error().message;
  }
}

TEST(NnCoefficients, HeaderFaults) {
  Bytes header(64);
  EXPECT_FALSE(coefficient_bytes(header).ok());
  store_le(header.data(), uint32_t{65});
  EXPECT_NE(coefficient_bytes(header).error().message.find("multiple of 64"), std::string::npos);
  store_le(header.data(), uint32_t{0});
  store_le(header.data() + 4, uint32_t{64});
  EXPECT_NE(coefficient_bytes(header).error().message.find("core 0 has none"), std::string::npos);
  store_le(header.data(), uint32_t{128});
  EXPECT_EQ(*coefficient_bytes(header), 64 + 128 + 64);
  Bytes longer = buffer_of(kPlainStream);  // the stream needs 64 bytes, the header has 128
  store_le(longer.data(), uint32_t{128});
  longer.resize(64 + 128);
  EXPECT_NE(decode(longer, k3x3).error().message.find("stream size 128"), std::string::npos);
}

}  // namespace
}  // namespace skillet::sim::vivante
