#include <gtest/gtest.h>

#include "npus/vivante/sim/nn_coefficients.h"
#include "npus/vivante/sim/test_support.h"

namespace skillet::sim::vivante {
namespace {

const test::hw::ChipRow& kChip = *test::hw::find_chip("imx8mp");
const CoefficientShape k3x3{.kernel_width = 3, .kernel_height = 3, .zero_point = 3};
constexpr size_t kStreamAt = 64, kBiasAt = 128;

// Specification 6.3.10: weights 1..9, zero point 3, bias 100 with input zero point 2.
Bytes example() {
  Bytes buffer(kBiasAt + 4);
  buffer[0] = 0x10;
  store_le(buffer.data() + 20, uint32_t{0x76501423});
  store_le(buffer.data() + 28, uint32_t{63});
  store_le(buffer.data() + kStreamAt, uint32_t{0x0C91ECF3});
  store_le(buffer.data() + kStreamAt + 4, uint32_t{0x29124B00});
  store_le(buffer.data() + kBiasAt, uint32_t{0x940});
  return buffer;
}

Result<Coefficients> decode(const Bytes& buffer, const CoefficientShape& shape) {
  SK_TRY_ASSIGN(const int64_t size, kCoefficientFormatV8.buffer_bytes(buffer, kChip, shape));
  if (size != static_cast<int64_t>(buffer.size())) return error(ErrorCode::internal, "{} bytes wanted", size);
  return kCoefficientFormatV8.decode(buffer, kChip, shape);
}

TEST(NnCoefficientsV8, VectorOfTheSpecification) {
  const auto decoded = decode(example(), k3x3);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  ASSERT_EQ(decoded->kernels.size(), 1u);
  EXPECT_EQ(decoded->kernels[0].weights, (std::vector<int16_t>{-2, -1, 0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(decoded->kernels[0].bias, 100 - 2 * 18);  // for raw pixels, without the input zero point's share
  EXPECT_EQ(decoded->kernels[0].output_offset, 0u);
  EXPECT_EQ(decoded->cache_bytes, 132);
}

TEST(NnCoefficientsV8, FaultsNameTheirCause) {
  struct Case {
    size_t byte;
    uint8_t value;
    const char* fault;
  };
  for (const Case& c : {
           Case{0, 0x11, "version and data type, byte 0 = 0x11"},
           Case{0, 0x20, "version and data type"},
           Case{1, 4, "run_length_size"},
           Case{19, 1, "run_length_table"},
           Case{20, 0x33, "symbol map 0x76501433"},
           Case{23, 0x86, "no permutation"},
           Case{24, 1, "avg_bias"},
           Case{26, 1, "unknown bytes"},
           Case{28, 62, "stream size 62 bits, but its 11 bytes end at bit 63"},
           Case{28, 64, "stream size 64 bits, but its 11 bytes end at bit 63"},
           Case{28, 0, "stream size of core 0 = 0"},
           Case{28, 40, "truncated"},
           Case{32, 8, "stream size of core 1 = 8 bits, but 1 of 6"},
           Case{63, 1, "byte 63"},
           Case{kStreamAt + 8, 1, "padding after the stream is not 0 at bit 64"},
           Case{kStreamAt, 0xF2, "core 0"},
       }) {
    Bytes bad = example();
    bad[c.byte] = c.value;
    const auto decoded = decode(bad, k3x3);
    ASSERT_FALSE(decoded.ok()) << c.fault;
    EXPECT_NE(decoded.error().message.find(c.fault), std::string::npos) << decoded.error().message;
  }
}

// Every bit of the stream has a meaning.
TEST(NnCoefficientsV8, EveryFlippedBitShows) {
  int faults = 0, dummies = 0;
  for (size_t bit = 0; bit < 512; ++bit) {
    Bytes bad = example();
    bad[kStreamAt + bit / 8] = static_cast<uint8_t>(bad[kStreamAt + bit / 8] ^ 1U << bit % 8);
    const auto decoded = decode(bad, k3x3);
    faults += !decoded.ok();
    dummies += !decoded.ok() && decoded.error().message.find("after the last byte") != std::string::npos;
    if (decoded.ok()) {
      EXPECT_NE(decoded->kernels[0].weights, decode(example(), k3x3)->kernels[0].weights) << bit;
    }
  }
  EXPECT_LT(faults, 512);
  EXPECT_GT(dummies, 0);
}

TEST(NnCoefficientsV8, ShapeMustFitTheStream) {
  CoefficientShape wide = k3x3;
  wide.planes = 1 << 19;
  EXPECT_NE(decode(example(), wide).error().message.find("cannot hold"), std::string::npos);
  CoefficientShape small = k3x3;
  small.kernel_width = 2;  // the block of 9 stays, but the last three weights are unused
  EXPECT_NE(decode(example(), small).error().message.find("only fills up a block"), std::string::npos);
}

}  // namespace
}  // namespace skillet::sim::vivante
