// SUB becomes ADD of the negated operand; MAXIMUM and MINIMUM become a sum with a difference that ends at zero: max(a,
// b) = b + max(a - b, 0). All pairs of bytes are tested with the CPU kernels.
#include <algorithm>
#include <utility>

#include "base/squares.h"
#include "graph/passes/lower/pointwise.h"

namespace skillet::passes {
namespace {

std::vector<ir::Op> as_sums(Rewriter& rewriter, const ir::Op& old, bool by_add) {
  const ir::TensorId a = old.inputs[0], b = old.inputs[1], to = old.outputs[0];
  if (old.kind == ir::OpKind::sub) {
    if (!by_add) return {};
    std::vector<ir::Op> ops = difference(rewriter, true, a, b, to);
    if (!ops.empty()) ops.back().attrs = old.attrs;
    return ops;
  }
  return larger(rewriter, by_add, a, b, to, old.kind == ir::OpKind::minimum);
}

constexpr const char* kNegates = "{} becomes ADD of what DEPTHWISE_CONV_2D negates";

// The elements as pixels: a square image if there is one of few channels, which some chips have better evidence for.
ir::Shape image_of(const ir::Shape& shape) {
  constexpr int64_t kChannelsMax = 64;
  const auto elems = static_cast<int32_t>(shape.elems());
  const auto parts = square_parts(elems, kChannelsMax);
  const int32_t channels = parts ? static_cast<int32_t>(*parts) : shape.back(0);
  return as_image(elems / channels, channels);
}

// A difference of tensors that are no images.
void rewrite_flat(Rewriter& rewriter, ir::OpId id) {
  ir::Op flat = rewriter.op(id);
  const ir::TensorId to = flat.outputs[0];
  const ir::Tensor out = rewriter.tensor(to);
  if (out.shape.elems() < 1 || out.shape.elems() > INT32_MAX) return;
  flat.outputs[0] = rewriter.add_like(out, "/image", image_of(out.shape));
  std::vector<ir::Op> ops;
  for (ir::TensorId& input : flat.inputs) {
    const ir::Tensor one = rewriter.tensor(input);
    const ir::TensorId image = rewriter.add_like(one, "/image", image_of(out.shape));
    if (one.shape != out.shape || !is_pointwise(rewriter.tensor(image), rewriter.tensor(flat.outputs[0])))
      return rewriter.drop();
    ops.push_back(rewriter.reshape(input, image));
    input = image;
  }
  const std::vector<ir::Op> sums = as_sums(rewriter, flat, true);
  if (sums.empty() || !rewriter.same_pairs({flat}, sums, flat.inputs[0], flat.inputs[1], flat.outputs[0]))
    return rewriter.drop();
  ops.insert(ops.end(), sums.begin(), sums.end());
  ops.push_back(rewriter.reshape(flat.outputs[0], to));
  std::string text = fmt::format(kNegates, ir::op_name(flat));
  rewriter.replace(id, std::move(ops), std::move(text));
}

}  // namespace

void lower_sub_as_sum(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const bool picks = old.kind == ir::OpKind::maximum || old.kind == ir::OpKind::minimum;
  if (!picks && old.kind != ir::OpKind::sub) return;
  const ir::TensorId a = old.inputs[0], b = old.inputs[1], to = old.outputs[0];
  const ir::Tensor first = rewriter.tensor(a), second = rewriter.tensor(b), out = rewriter.tensor(to);
  if (a == b || rewriter.level(id) == Level::proven) return;
  if (!picks && out.shape.rank() != 4) return rewrite_flat(rewriter, id);
  if (!is_pointwise(first, out) || !is_pointwise(second, out) ||
      (picks && (!same_meaning(first, out) || !same_meaning(second, out))))
    return;
  for (const bool by_add : {false, true}) {
    std::vector<ir::Op> ops = as_sums(rewriter, old, by_add);
    if (ops.empty() || !rewriter.same_pairs({old}, ops, a, b, to)) {
      rewriter.drop();
      continue;
    }
    std::string text = !picks ? fmt::format(kNegates, ir::op_name(old))
                       : by_add
                           ? fmt::format("{} becomes two ADD and the DEPTHWISE_CONV_2D that negates", ir::op_name(old))
                           : fmt::format("{} becomes ADD of SUB", ir::op_name(old));
    if (rewriter.replace(id, std::move(ops), std::move(text))) return;
  }
}

}  // namespace skillet::passes
