// Chip: one NPU model, by name and family; the numbers of a family live in npus/<v>/hw.
// Called by the registry, tools, runtime.
// Must not know: a vendor's parameters.
#pragma once

#include <cstdint>
#include <string>

namespace skillet::npu {

struct Chip {
  std::string name;    // "a311d": what --device sim:NAME takes
  std::string family;  // "vivante": which driver
  std::string title;   // "Amlogic A311D (VIPNano-QI)"
  int32_t row = 0;     // index into the family's chip table
  // Why nothing on this chip is proven: what is assumed about it, on what evidence. Empty: it is like any other.
  std::string unproven = "";
  // There are boards with it, and this is its name there. Others are known by their ids only, or made up.
  bool is_sold = true;
  // Only one of its cores may be busy, whatever its kernel driver would do.
  bool one_core_at_a_time = false;
  // Channels, side by side, whose multipliers share one shift: those of like scales should be neighbours. 0: any may.
  int32_t channels_of_a_shift = 0;
};

}  // namespace skillet::npu
