// What a program from a file may ask of the chip, and how far each of its addresses reaches: what compile() writes, and
// nothing that contradicts itself. Called by decode.cpp, which reports it to code that checks programs.
// Must not know: how a driver makes its jobs; the simulator, which checks this.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "npu/driver.h"
#include "npus/vivante/hw/vivante.h"

namespace skillet::npus::vivante {

namespace hw = ::skillet::vivante::hw;

// Each gives words for the first thing that is refused: field, value, reason; empty: nothing is.
std::string refused_packet(std::span<const uint32_t> stream);
std::string refused_state(uint32_t address, uint32_t value);
std::string refused_field(const bits::Descriptor& descriptor, std::span<const bits::Value> values);
std::string refused_job(const hw::ChipRow& chip, const hw::NnInstruction& nn);
std::string refused_job(const hw::ChipRow& chip, const hw::TpInstruction& tp);

// Of the address in the row of that name; none: not known. Coefficients: of what is at the address, all there is to the
// end of its buffer, as far as that is stored; the rest is zeros.
std::optional<npu::Reach> reach_of(const hw::ChipRow& chip, const hw::NnInstruction& nn, std::string_view row,
                                   std::span<const uint8_t> coefficients);
std::optional<npu::Reach> reach_of(const hw::ChipRow& chip, const hw::TpInstruction& tp, std::string_view row,
                                   std::span<const uint8_t> coefficients);

}  // namespace skillet::npus::vivante
