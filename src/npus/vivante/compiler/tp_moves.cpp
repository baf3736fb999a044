// TP jobs that move every element of an image to its own place: the loops of recorded transposes, with other steps.
#include <algorithm>

#include "npus/vivante/compiler/tp.h"
#include "npus/vivante/compiler/tp_parts.h"

namespace skillet::npus::vivante {

bool fits(const Scatter& s) {
  const auto in_fields = [](const Scatter::Loop& loop) { return loop.count <= kMaxField && loop.step <= UINT32_MAX; };
  return s.x <= kMaxWindow && s.y <= kMaxWindow && s.z <= kMaxField && in_fields(s.along_x) && in_fields(s.along_y) &&
         std::ranges::all_of(s.along_z, in_fields);
}

TpOperation scatter(const Scatter& s, SlotId input, SlotId output, uint8_t zero_point) {
  hw::TpInstruction tp = base_instruction(input, output, zero_point, zero_point);
  set_image(tp, u(s.x), u(s.y), u(s.z), u(s.x), u(int64_t{s.x} * s.y));
  set_window(tp, 0, s.x - 1, 0, s.y - 1);
  set_tile(tp, u(s.x), u(s.y));
  tp.out_base_address.offset = static_cast<uint64_t>(s.first);
  std::vector<Scatter::Loop> loops = {s.along_x, s.along_y};
  loops.insert(loops.end(), s.along_z.begin(), s.along_z.end());
  set_loops(tp, loops);
  return one_core(input, output, tp);
}

}  // namespace skillet::npus::vivante
