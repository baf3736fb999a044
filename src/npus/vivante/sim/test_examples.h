// For the unit tests of npus/vivante/sim: the two jobs printed in the specification, and streams that run them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "npus/vivante/sim/test_support.h"
#include "npus/vivante/sim/vivante.h"

namespace skillet::sim::vivante::test {

using Words = std::vector<uint32_t>;

// ---- the TP example of specification 5.9: transpose of 8x8x4 ----

inline constexpr uint32_t kDescriptorAddress = 0x00600000;

inline Words tp_example() {
  return {0x00000004, 0x00080008, 0x00000004, 0x00000020, 0x00000000, 0x00070003, 0x20000018, 0x00000000,
          0x00080001, 0x00080001, 0x00500000, 0x00000000, 0x80000002, 0x00501000, 0x00000001, 0x00000040,
          0x00040008, 0x00000008, 0x00000000, 0x00010008, 0x00000000, 0x00000000, 0x00010001, 0x00000000,
          0x0000000A, 0x00000000, 0x03FFFFFF, 0x00000000, 0x03FFFFFF, 0x80000000, 0x00000080};
}
inline const Words kWait = {0x08010429, 0}, kFlush = {0x08010E03, 0xC23}, kEnd = {0x08010E03, 0xC23, 0x08010E03, 0xC23};

template <typename... Parts>
Words joined(const Parts&... parts) {
  Words all;
  (all.insert(all.end(), parts.begin(), parts.end()), ...);
  return all;
}
inline const Words kStartTp = joined(Words{0x0801042E, kDescriptorAddress}, kWait, kEnd);
inline const Words kStartNn = joined(Words{0x08010428, kDescriptorAddress}, kWait, kEnd);

inline Result<void> execute(const Words& stream, const TestMemory& memory, const Options& options = {}) {
  SK_TRY_ASSIGN(const auto device, create("a311d", options));
  return device->execute(stream, memory.get());
}

// ---- the NN example of specification 4.7: 8x8x4, 3x3, 8 output channels, SAME ----

inline Words nn_example() {
  return {0xA010010C, 0x00400200, 0xB800003F, 0x00400200, 0x10234008, 0x00014080, 0x00501000, 0x00503000,
          0x00083004, 0x00000000, 0x00000000, 0x00000800, 0x00000C00, 0x00000000, 0x00000800, 0x02400200,
          0x00080008, 0x06000008, 0x00000000, 0x03FFFFFF, 0x00000000, 0x03FFFFFF, 0x0000107F, 0x00000000,
          0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x03FFFFFF, 0x7F800000, 0xFF800000, 0x00000000};
}

struct NnExample {
  Bytes in;
  std::vector<TestKernel> kernels;
  Bytes coefficients;

  explicit NnExample(uint64_t seed, int zrl_bits = 2) {
    test::Random random(seed);
    in = random.bytes(8 * 8 * 4);
    for (uint32_t oc = 0; oc < 8; ++oc) {
      TestKernel& kernel = kernels.emplace_back();
      kernel.weights = random.bytes(36);
      for (uint8_t& weight : kernel.weights) weight = random.chance(40) ? 0x7f : weight;
      kernel.bias = static_cast<int32_t>(random.in(-2000, 2000));
      kernel.offset = oc * 64;
    }
    coefficients = test::write_coefficients(
        {.width = 3, .height = 3, .planes = 4, .kernels_per_core = 1, .zero_point = 0x7f, .zrl_bits = zrl_bits},
        kernels, 1);
  }

  Result<Bytes> run(const Words& descriptor, const Options& options = {}, size_t out_bytes = 512) const {
    TestMemory memory;
    memory.add(0x00501000, in, "input");
    memory.add(0x00502000, coefficients, "coefficients");
    const auto out = memory.add(0x00503000, Bytes(out_bytes), "output");
    memory.add_words(kDescriptorAddress, descriptor, "descriptor");
    SK_TRY(execute(kStartNn, memory, options));
    return Bytes(out.begin(), out.end());
  }

  // By the definition: zero point 0x80 outside, scale (2^15 + 0x312) / 2^23, output zero point 0x10.
  uint8_t expected(int oc, int y, int x) const {
    int64_t sum = kernels[static_cast<size_t>(oc)].bias;
    for (int i = 0; i < 36; ++i) {
      const int iy = y - 1 + i % 9 / 3, ix = x - 1 + i % 3;
      const bool inside = iy >= 0 && ix >= 0 && iy < 8 && ix < 8;
      const int pixel = inside ? in[static_cast<size_t>(i / 9 * 64 + iy * 8 + ix)] : 0x80;
      sum += pixel * (kernels[static_cast<size_t>(oc)].weights[static_cast<size_t>(i)] - 0x7f);
    }
    const double real = static_cast<double>(sum) * (32768 + 0x312) / 8388608.0;
    return static_cast<uint8_t>(std::clamp(std::floor(real + 0.5) + 0x10, 0.0, 255.0));
  }
};

inline void expect_fault(const Result<void>& result, std::string_view fault) {
  ASSERT_FALSE(result.ok()) << fault;
  EXPECT_NE(result.error().message.find(fault), std::string::npos) << result.error().message;
}
template <typename T>
inline void expect_fault(const Result<T>& result, std::string_view fault) {
  ASSERT_FALSE(result.ok()) << fault;
  expect_fault(Result<void>(result.error()), fault);
}

}  // namespace skillet::sim::vivante::test
