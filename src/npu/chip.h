// Chip: one NPU model, by name and family; the parameters of a family are in npus/<v>/hw.
// Called by the registry, tools, runtime.
// Must not know: a vendor's parameters.
#pragma once

#include <cstdint>
#include <string>

namespace skillet::npu {

struct Chip {
  std::string name;    // "a311d": the name in --device sim:NAME
  std::string family;  // "vivante": which driver
  std::string title;   // "Amlogic A311D (VIPNano-QI)"
  int32_t row = 0;     // index into the family's chip table
  // Why no operation on this chip is proven: the assumptions about it and their evidence. Empty: operations are proven
  // as usual.
  std::string unproven = "";
  // Boards with this chip exist under this name. Other chips are known only by their ids, or are made up.
  bool is_sold = true;
  // Only one of its cores may be busy at a time, although its kernel driver may allow more.
  bool one_core_at_a_time = false;
  // Number of adjacent channels whose multipliers share one shift: channels with similar scales should be adjacent. 0:
  // no restriction.
  int32_t channels_of_a_shift = 0;
};

}  // namespace skillet::npu
