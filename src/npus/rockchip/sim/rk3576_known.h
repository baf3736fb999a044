// Registers of the RK3576 with few known values; errors for all others.
// Called by rk3576.cpp, rk3576_alone.cpp, rk3576_stages.cpp. Must not know: jobs.
#pragma once

#include <algorithm>

#include "npus/rockchip/sim/dpu.h"
#include "npus/rockchip/sim/fault.h"
#include "npus/rockchip/sim/registers.h"

namespace skillet::sim::rockchip::rk3576 {

namespace r = hw::rk3576;

constexpr int64_t kAtom = 16;
constexpr uint32_t kEwOff = 0x010041C1;

// Registers that are known as whole values only.
template <typename T>
Result<void> expect(Registers& registers, std::initializer_list<uint32_t> known) {
  const uint32_t value = registers.word(T::kAddress);
  if (std::ranges::find(known, value) != known.end()) return {};
  return not_modelled("{} = 0x{:x}: no known program has it", T::descriptor().name, value);
}
template <typename... T>
Result<void> expect_zero(Registers& registers) {
  Result<void> all;
  ((all = all.ok() ? expect<T>(registers, {0}) : std::move(all)), ...);
  return all;
}
template <typename Min, typename Max>
Result<void> expect_no_limits(Registers& registers) {
  SK_TRY(expect<Min>(registers, {static_cast<uint32_t>(INT32_MIN)}));
  return expect<Max>(registers, {static_cast<uint32_t>(INT32_MAX)});
}

inline Result<void> expect_no_tables(Registers& registers) {
  return expect_zero<r::DpuLutInfo, r::DpuLutLeStart0, r::DpuLutLeStart1, r::DpuLutLeStart2, r::DpuLutLeStart3,
                     r::DpuLut4120, r::DpuLut4130, r::DpuLutLoEnd0, r::DpuLutLoEnd1, r::DpuLutLoEnd2, r::DpuLutLoEnd3,
                     r::DpuLut4150, r::DpuLut4154, r::DpuLut4160, r::DpuLut4170, r::DpuLut4174, r::DpuLut4184,
                     r::DpuLut4188, r::DpuLut418C, r::DpuLut4190, r::DpuLut4194>(registers);
}

// Registers that no program sets when the DPU writes a tensor.
inline Result<void> expect_unused(Registers& registers) {
  return expect_zero<r::DpuDataFormat, r::DpuZero4014, r::DpuZero4028, r::DpuZero403C, r::DpuZero4090, r::DpuZero4094,
                     r::DpuZero409C, r::DpuZero40BC, r::DpuZero40C8, r::DpuRdmaZero5030, r::DpuRdmaZero5048,
                     r::DpuRdmaZero5064, r::DpuRdmaZero5078, r::DpuRdmaZero507C>(registers);
}

constexpr uint32_t kEwAdds = 0x8002C0C0, kEwMultiplies = 0x810F4094, kEwLookup = 0x01004140;
constexpr uint32_t kBnOff = 0x903, kBnLimits = 0x902, kBnSlope = 0x402, kBnFactor = 0x20;

// The second tensor that a program adds or multiplies by, with its own numbers and surfaces.
Result<void> read_second(Registers& registers, EwOp op, DpuJob& job);
// If the program has any: BN's multiplier, of the whole tensor or of values below 0; and the tables that it looks up
// in.
Result<void> read_bn_tensor(Registers& registers, DpuJob& job);
Result<void> read_tables(Registers& registers, DpuJob& job);
// The scale and rounding of the output.
void read_output_scale(Registers& registers, DpuJob& job);

// A program of the DPU alone.
Result<DpuJob> read_lone_dpu_job(Registers& registers);

}  // namespace skillet::sim::rockchip::rk3576
