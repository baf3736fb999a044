// Checks what a program from a file does with the chip, and how far each of its addresses reaches: only what compile()
// writes, without contradictions. Called by decode.cpp, which reports it to code that checks programs.
// Must not know: how a driver makes its jobs; the simulator, which checks this.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "npu/driver.h"
#include "npus/vivante/hw/vivante.h"

namespace skillet::npus::vivante {

namespace hw = ::skillet::vivante::hw;

// Each returns the first refusal: field, value, reason; empty if there is none.
std::string refused_packet(std::span<const uint32_t> stream);
std::string refused_state(uint32_t address, uint32_t value);
std::string refused_field(const bits::Descriptor& descriptor, std::span<const bits::Value> values);
std::string refused_job(const hw::ChipRow& chip, const hw::NnInstruction& nn);
std::string refused_job(const hw::ChipRow& chip, const hw::TpInstruction& tp);

// Reach of the address in the row with this name; none: not known. `coefficients`: the stored bytes from the address to
// the end of its buffer; the rest is zeros.
std::optional<npu::Reach> reach_of(const hw::ChipRow& chip, const hw::NnInstruction& nn, std::string_view row,
                                   std::span<const uint8_t> coefficients);
std::optional<npu::Reach> reach_of(const hw::ChipRow& chip, const hw::TpInstruction& tp, std::string_view row,
                                   std::span<const uint8_t> coefficients);

}  // namespace skillet::npus::vivante
