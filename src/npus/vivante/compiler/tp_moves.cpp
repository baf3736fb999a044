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
  tp.out_loop_0_inc = u(s.along_x.step), tp.out_loop_0_count = u(s.along_x.count);
  tp.out_loop_1_inc = u(s.along_y.step), tp.out_loop_1_count = u(s.along_y.count);
  const auto loop = [&](size_t i) { return i < s.along_z.size() ? s.along_z[i] : Scatter::Loop{}; };
  tp.out_loop_2_inc = u(loop(0).step), tp.out_loop_2_count = u(loop(0).count);
  tp.out_loop_3_inc = u(loop(1).step), tp.out_loop_3_count = u(loop(1).count);
  tp.out_loop_4_inc = u(loop(2).step), tp.out_loop_4_count = u(loop(2).count);
  tp.out_loop_5_inc = u(loop(3).step), tp.out_loop_5_count = u(loop(3).count);
  return one_core(input, output, tp);
}

}  // namespace skillet::npus::vivante
