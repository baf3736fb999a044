// The places of a lowered graph's tensors.
#include <algorithm>

#include "npus/vivante/compiler/operations.h"

namespace skillet::npus::vivante {

Result<void> check_slots(const Lowered& lowered) {
  const auto check = [&](SlotId slot) -> Result<void> {
    if (slot < lowered.slots.size()) return {};
    return error(ErrorCode::internal, "an operation uses slot {} of {}", slot, lowered.slots.size());
  };
  for (const Slot& slot : lowered.slots) {
    if (slot.parent != kNoSlot) SK_TRY(check(slot.parent));
  }
  for (const Operation& op : lowered.operations)
    SK_TRY(std::visit([&](const auto& job) { return check(std::max(job.input, job.output)); }, op.job));
  for (const auto* list : {&lowered.inputs, &lowered.outputs, &lowered.intermediates}) {
    for (const PlacedTensor& placed : *list) SK_TRY(check(placed.slot));
  }
  return {};
}

Place place_of(const std::vector<Slot>& slots, SlotId slot) {
  Place place{slot, 0};
  while (slots[place.root].parent != kNoSlot) {
    place.offset_bytes += slots[place.root].offset_bytes;
    place.root = slots[place.root].parent;
  }
  return place;
}

}  // namespace skillet::npus::vivante
