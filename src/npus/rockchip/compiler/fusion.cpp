// A convolution on its own stores q = round(sum * gain) + offset, limited to a byte or less; an addition reads q and
// computes round((main * (q - zero) + other * (second + ...)) / 2^step). In one pass
//   BS  multiplies the sum by the gain, and rounds as the output converter would
//   BN  adds the offset minus the lowest q, multiplies by `main`, limits: main * (q - lowest)
//   EW  adds other * (second + ... + more)
// so the sum is too large by `main * (lowest - zero)`. `more` turns this excess into a multiple of twice the sum's
// step, which the output's offset subtracts without an effect on rounding. `other` is odd, so such a `more` exists.
#include "npus/rockchip/compiler/fusion.h"

#include <algorithm>
#include <cstdlib>

#include "npus/rockchip/compiler/numerics.h"
#include "npus/rockchip/compiler/tile.h"
#include "npus/rockchip/compiler/window.h"

namespace skillet::npus::rockchip {
namespace {

constexpr int64_t kSumMax = int64_t{1} << 30;

int32_t byte_of(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, -128, 127)); }

// Returns the x nearest to 0 with factor * x = value modulo 2^bits. An odd factor is its own inverse modulo 8; each
// step doubles the number of correct bits.
int64_t divided(int64_t value, int64_t factor, int32_t bits) {
  const auto odd = static_cast<uint64_t>(factor);
  uint64_t inverse = odd;
  for (int known = 3; known < 64; known *= 2) inverse *= 2 - odd * inverse;
  const uint64_t size = uint64_t{1} << bits, found = static_cast<uint64_t>(value) * inverse & (size - 1);
  return found > size / 2 ? static_cast<int64_t>(found) - static_cast<int64_t>(size) : static_cast<int64_t>(found);
}

}  // namespace

std::vector<ir::OpId> fusable_additions(const ir::Graph& graph) {
  const std::vector<ir::OpId> producers = ir::producers(graph);
  const std::vector<std::vector<ir::OpId>> consumers = ir::consumers(graph);
  std::vector<ir::OpId> fused(graph.ops.size(), -1);
  const auto maker = [&](ir::TensorId id) -> ir::OpId {
    const ir::OpId producer = producers[static_cast<size_t>(id)];
    const bool alone = consumers[static_cast<size_t>(id)].size() == 1 && std::ranges::count(graph.outputs, id) == 0;
    const bool taken = producer >= 0 && graph.op(producer).kind == ir::OpKind::conv_2d && alone &&
                       plane_of(graph.tensor(id).shape).pixels() >= kSurfaceMin;
    return taken ? producer : -1;
  };
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const ir::Op& op = graph.ops[id];
    if (op.kind != ir::OpKind::add || op.inputs[0] == op.inputs[1]) continue;
    const ir::OpId later = std::max(maker(op.inputs[0]), maker(op.inputs[1]));
    if (later < 0) continue;
    fused[id] = later;
    fused[static_cast<size_t>(later)] = static_cast<ir::OpId>(id);
  }
  return fused;
}

bool fuse(Conv& conv, const Conv& sum) {
  if (conv.depthwise || conv.addition || sum.multipliers.empty() || !sum.addition) return false;
  const bool per_channel = !conv.multipliers.empty();
  const Gain own = conv.out_gain, one = power_of_two(0);
  if (per_channel ? own.scale != one.scale || own.shift != one.shift : own.scale > INT16_MAX) return false;

  const int32_t lowest = byte_of(conv.clamp.on ? conv.out_offset : -128);
  const int32_t highest = conv.clamp.limit ? byte_of(multiplied(*conv.clamp.limit, own) + conv.out_offset) : 127;
  const int32_t main = sum.multipliers[0], step = sum.out_gain.shift - kOneLog2;
  const int64_t other = sum.addition->gain.scale;
  int64_t more = 0, excess = int64_t{main} * (-lowest - sum.bias[0]);
  if (excess != 0) {
    if (sum.addition->clamp.on) return false;  // it limits at 0
    more = divided(-excess, other, step + 1);
    excess += more * other;
  }
  const int64_t second_max = (std::abs(more) + 512) * other;
  if (main <= 0 || second_max > kSumMax || std::abs(excess) > kSumMax) return false;

  if (!per_channel) {
    conv.multipliers.assign(conv.bias.size(), static_cast<int16_t>(own.scale));
    conv.multiplier_shift = own.shift;
  }
  conv.rounded = Rounded{conv.out_offset - lowest, main, main * (highest - lowest)};
  conv.clamp = {};
  conv.addition = sum.addition;
  conv.addition->offset += static_cast<int32_t>(more);
  conv.out_gain = sum.out_gain;
  conv.out_offset = sum.out_offset - static_cast<int32_t>(excess >> step);
  return true;
}

}  // namespace skillet::npus::rockchip
