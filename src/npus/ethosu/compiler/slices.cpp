#include "npus/ethosu/compiler/slices.h"

#include <algorithm>

#include "base/int_math.h"
#include "npus/ethosu/compiler/lower.h"
#include "npus/ethosu/compiler/placement.h"
#include "npus/ethosu/compiler/tile.h"

namespace skillet::npus::ethosu {
namespace {

constexpr uint64_t kSliceBytes = 96 * 1024;           // of weights: two slices and tensors share on-chip memory
constexpr uint64_t kWholeBytes = kFastBytes / 4 * 3;  // weights and tensors up to this size stay whole

// Channels of a slice, in whole blocks. All channels: nothing to slice, or no gain because weights are read only once.
uint32_t slice_depth(const hw::ChipRow& chip, const Operation& one) {
  const Map &in = one.input, &out = one.output;
  const uint64_t bytes = uint64_t{one.window.kernel_h} * one.window.kernel_w * in.depth * out.depth;
  const uint64_t tensors = uint64_t{in.height} * in.width * in.depth + uint64_t{out.height} * out.width * out.depth;
  if (one.unit != Unit::conv || one.filter_by_tap || one.table || bytes + tensors <= kWholeBytes) return out.depth;
  const Tile tile = tile_of(chip, one).value();
  if (out.height <= tile.height && out.width <= tile.width) return out.depth;
  const auto count = static_cast<uint32_t>(ceil_div(bytes, kSliceBytes));
  return std::min(align_up(ceil_div(out.depth, count), align_up(tile.depth, kBrick)), out.depth);
}

Operation part_of(const Operation& whole, uint32_t first, uint32_t depth) {
  Operation part = whole;
  part.output.all_channels = whole.output.depth, part.output.first_channel = first;
  take_channels(first, depth, part);
  return part;
}

}  // namespace

std::vector<Operation> slice(const hw::ChipRow& chip, std::vector<Operation> operations) {
  if (!has_fast_memory(chip)) return operations;
  std::vector<bool> is_striped(operations.size());
  for (size_t i = 0; i < operations.size(); ++i)
    if (const auto& other = operations[i].weights_of) is_striped[i] = is_striped[*other] = true;
  std::vector<Operation> out;
  std::vector<size_t> at;  // by index of the given operations
  for (size_t i = 0; i < operations.size(); ++i) {
    Operation& one = operations[i];
    at.push_back(out.size());
    if (one.weights_of) one.weights_of = at[*one.weights_of];
    const uint32_t all = one.output.depth, depth = is_striped[i] ? all : slice_depth(chip, one);
    if (depth == all) {
      out.push_back(std::move(one));
      continue;
    }
    for (uint32_t first = 0; first < all; first += depth)
      out.push_back(part_of(one, first, std::min(depth, all - first)));
  }
  return out;
}

}  // namespace skillet::npus::ethosu
