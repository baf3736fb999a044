// Refuses descriptors that use something the simulator does not model: one decision per field, from modelled.def and
// ignored.def. Bits outside all rows must be 0.
// Called by front_end.cpp, nn.cpp and tp.cpp right after unpacking.
// Must not know: what the fields do.
#pragma once

#include <vector>

#include "base/result.h"
#include "bits/bits.h"
#include "sim/sim.h"

namespace skillet::sim::vivante {

// The error names descriptor, field and value, or the word with bits outside all rows. `chip_flags`: some fields exist
// only on chips with a feature.
Result<void> check_fields(const bits::Descriptor& descriptor, const bits::Unpacked& unpacked, uint32_t chip_flags = 0);

// The words of a descriptor in memory; errors contain its name.
Result<std::vector<uint32_t>> descriptor_words(const Memory& memory, uint64_t address, uint32_t count,
                                               std::string_view name);

// Error of a field with an impossible value: "nn_instruction.in_x_size = 0: <why>".
template <typename... Args>
Error field_error(std::string_view field, int64_t value, fmt::format_string<Args...> why, Args&&... args) {
  return error(ErrorCode::device, "{} = {}: {}", field, value, fmt::format(why, std::forward<Args>(args)...));
}

}  // namespace skillet::sim::vivante
