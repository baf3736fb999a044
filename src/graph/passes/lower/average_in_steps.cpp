// Lowers AVERAGE_POOL_2D of adjacent windows (pyramid pooling) to two: averages of parts of each window, then the
// averages of these, for chips without such strides. Each rounds by half a step, so the result is within one step.
#include <optional>
#include <utility>

#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

constexpr int32_t kPartMax = 7;

// The largest divisor of `size` that both steps can take; nothing if there is none.
std::optional<int32_t> part_of(int32_t size) {
  for (int32_t part = kPartMax; part > 0; --part) {
    if (size % part == 0 && size / part <= kPartMax) return part;
  }
  return std::nullopt;
}

}  // namespace

void average_in_steps(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::average_pool_2d || !rewriter.may_be_off() || rewriter.level(id) != Level::refused) return;
  const auto& attrs = old.as<ir::PoolAttrs>();
  const ir::Tensor from = rewriter.tensor(old.inputs[0]), to = rewriter.tensor(old.outputs[0]);
  const auto rows = part_of(attrs.filter_h), columns = part_of(attrs.filter_w);
  const bool is_tiled = attrs.stride_h == attrs.filter_h && attrs.stride_w == attrs.filter_w;
  const bool has_padding = attrs.padding == ir::Padding::same &&
                           (from.shape[1] % attrs.filter_h != 0 || from.shape[2] % attrs.filter_w != 0);
  if (!rows || !columns || !is_tiled || has_padding || attrs.rows || !is_computed_byte(from) || !is_computed_byte(to) ||
      !same_meaning(from, to))
    return;
  ir::Op first = old, second = old;
  auto &one = std::get<ir::PoolAttrs>(first.attrs), &other = std::get<ir::PoolAttrs>(second.attrs);
  one.padding = other.padding = ir::Padding::valid;
  one.activation = ir::Activation::none;
  one.filter_h = one.stride_h = *rows, one.filter_w = one.stride_w = *columns;
  other.filter_h = other.stride_h = attrs.filter_h / *rows, other.filter_w = other.stride_w = attrs.filter_w / *columns;
  first.outputs = {
      rewriter.add_like(to, "/parts", {from.shape[0], from.shape[1] / *rows, from.shape[2] / *columns, from.shape[3]})};
  second.inputs[0] = first.outputs[0];
  rewriter.replace(id, {std::move(first), std::move(second)}, "AVERAGE_POOL_2D becomes two, of parts and of those", 1);
}

}  // namespace skillet::passes
