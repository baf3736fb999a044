// Ops that select pixels and channels of an image in a regular way (SLICE, STRIDED_SLICE, SPACE_TO_DEPTH, GATHER,
// SPLIT, SPLIT_V, PAD of channels; RESHAPE, TRANSPOSE and RESHAPE that shuffle channels) become a convolution for each
// result, whose filters have a single 1 each, or none. The CPU kernel shows which element goes where: it runs on
// elements whose values are their indices.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/is_any_of.h"
#include "graph/passes/lower/picks.h"

namespace skillet::passes {
namespace {

constexpr int64_t kElemsMax = 1 << 22;   // of the image
constexpr int64_t kFilterMax = 1 << 20;  // weights: chips write depthwise filters out for all channels
constexpr int32_t kStrideMax = 7;

struct Pick {
  int32_t row = 0, column = 0, channel = 0;
  bool operator==(const Pick&) const = default;
};
// Channel `c` of output pixel (y, x) is channel picks[c].channel of input pixel (stride_h y + picks[c].row, ...).
struct Moves {
  std::vector<Pick> picks;
  int32_t stride_h = 1, stride_w = 1, kernel_h = 1, kernel_w = 1;
};

constexpr Pick kPadding = {-1, -1, -1};

Pick pick_of(const ir::Shape& from, int32_t element) {
  if (element < 0) return kPadding;
  const int32_t pixel = element / from[3];
  return {pixel / from[2], pixel % from[2], element % from[3]};
}

// The smallest window that gives as many windows as the result has pixels. A single window may have any stride: every
// chip supports 2.
int32_t window(int32_t reach, int32_t size, int32_t outputs, int32_t& stride) {
  if (outputs == 1) stride = reach < size ? 2 : 1;
  return std::max(reach, size - outputs * stride + 1);
}

std::optional<Moves> moves_of(const ir::Shape& from, const ir::Shape& to, const std::vector<int32_t>& elements) {
  const int32_t rows = to[1], columns = to[2], channels = to[3];
  const auto at = [&](int32_t y, int32_t x, int32_t c) {
    return pick_of(from, elements[static_cast<size_t>((int64_t{y} * columns + x) * channels + c)]);
  };
  Moves out;
  for (int32_t c = 0; c < channels; ++c) out.picks.push_back(at(0, 0, c));
  const auto some = std::ranges::find_if(out.picks, [](const Pick& pick) { return pick != kPadding; });
  if (some == out.picks.end()) return std::nullopt;
  const auto first_channel = static_cast<int32_t>(some - out.picks.begin());
  if (rows > 1) out.stride_h = at(1, 0, first_channel).row - some->row;
  if (columns > 1) out.stride_w = at(0, 1, first_channel).column - some->column;
  if (std::min(out.stride_h, out.stride_w) < 1 || std::max(out.stride_h, out.stride_w) > kStrideMax)
    return std::nullopt;
  for (int32_t y = 0; y < rows; ++y)
    for (int32_t x = 0; x < columns; ++x)
      for (int32_t c = 0; c < channels; ++c) {
        const Pick& first = out.picks[static_cast<size_t>(c)];
        if (first == kPadding && at(y, x, c) == kPadding) continue;
        if (at(y, x, c) != Pick{first.row + y * out.stride_h, first.column + x * out.stride_w, first.channel})
          return std::nullopt;
      }
  const auto reach = [&](int32_t Pick::*what) { return std::ranges::max(out.picks, {}, what).*what + 1; };
  out.kernel_h = window(reach(&Pick::row), from[1], rows, out.stride_h);
  out.kernel_w = window(reach(&Pick::column), from[2], columns, out.stride_w);
  return out;
}

bool is_depthwise(const Moves& moves, const ir::Shape& from) {
  if (std::ssize(moves.picks) != from[3]) return false;
  for (size_t c = 0; c < moves.picks.size(); ++c) {
    if (moves.picks[c] != Pick{moves.picks[0].row, moves.picks[0].column, static_cast<int32_t>(c)}) return false;
  }
  return true;
}

ir::Op convolution(Rewriter& rewriter, ir::TensorId image, ir::TensorId result, const Moves& moves) {
  const ir::Tensor from = rewriter.tensor(image), to = rewriter.tensor(result);
  const bool depthwise = is_depthwise(moves, from.shape);
  const int32_t inputs = from.shape[3], outputs = to.shape[3];
  ir::Shape shape{depthwise ? 1 : outputs, moves.kernel_h, moves.kernel_w, inputs};
  Bytes ones(static_cast<size_t>(shape.elems()), 0);
  for (int32_t c = 0; c < outputs; ++c) {
    const Pick& pick = moves.picks[static_cast<size_t>(c)];
    if (pick == kPadding) continue;
    const int64_t row = (depthwise ? 0 : int64_t{c} * moves.kernel_h) + pick.row;
    ones[static_cast<size_t>((row * moves.kernel_w + pick.column) * inputs + pick.channel)] = 1;
  }
  ir::ConvAttrs attrs{.padding = ir::Padding::valid, .stride_h = moves.stride_h, .stride_w = moves.stride_w};
  ir::Op op{.kind = depthwise ? ir::OpKind::depthwise_conv_2d : ir::OpKind::conv_2d, .attrs = attrs};
  op.inputs = {
      image, rewriter.add_constant(to.name + "/picks", from.dtype, std::move(shape), std::move(ones), {{1.0F}, {0}, 0}),
      ir::kNoTensor};
  op.outputs = {result};
  return op;
}

bool moves_elements(ir::OpKind kind) {
  using enum ir::OpKind;
  return is_any_of(kind, {slice, strided_slice, space_to_depth, gather, split, split_v, pad});
}

// Rows of a sequence become pixels.
ir::Shape image_of(const ir::Shape& shape) {
  return shape.rank() == 3 && shape[0] == 1 ? as_image(shape[1], shape[2]) : shape;
}

bool is_image(const ir::Tensor& one) {
  const ir::Shape image = image_of(one.shape);
  return is_computed_byte(one) && image.rank() == 4 && image[0] == 1 && image.elems() > 0 && image.elems() <= kElemsMax;
}

// The tensor itself, or a tensor of the same elements with the shape of an image.
ir::TensorId add_image(Rewriter& rewriter, ir::TensorId id) {
  const ir::Tensor& one = rewriter.tensor(id);
  return one.shape.rank() == 4 ? id : rewriter.add_like(one, "/image", image_of(one.shape));
}

void rewrite(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (!moves_elements(old.kind) || old.outputs.empty()) return;
  const ir::TensorId source = old.inputs[image_operand(old)];
  if (source == ir::kNoTensor) return;
  const ir::Tensor from = rewriter.tensor(source);
  const auto is_piece = [&](ir::TensorId to) {
    return is_image(rewriter.tensor(to)) && same_meaning(from, rewriter.tensor(to));
  };
  if (!is_image(from) || !std::ranges::all_of(old.outputs, is_piece) || rewriter.level(id) == Level::proven) return;
  const std::vector<std::vector<int32_t>> elements = picked(rewriter, old);
  if (elements.size() != old.outputs.size()) return;
  std::vector<ir::Op> ops;
  std::string text = fmt::format("{} becomes", ir::op_name(old));
  const ir::TensorId image = add_image(rewriter, source);
  const ir::Shape shape = rewriter.tensor(image).shape;
  if (image != source) ops.push_back(rewriter.reshape(source, image));
  for (size_t i = 0; i < elements.size(); ++i) {
    const ir::TensorId piece = add_image(rewriter, old.outputs[i]);
    const ir::Shape to = rewriter.tensor(piece).shape;
    if (std::ssize(elements[i]) != to.elems()) return rewriter.drop();
    const auto moves = moves_of(shape, to, elements[i]);
    if (!moves || int64_t{moves->kernel_h} * moves->kernel_w * shape[3] * to[3] > kFilterMax) return rewriter.drop();
    if (old.kind == ir::OpKind::split && moves->kernel_h > 1) return rewriter.drop();  // lower_concat_axis moves less
    ops.push_back(convolution(rewriter, image, piece, *moves));
    text += fmt::format("{} {} {}x{}", i == 0 ? "" : ",", ir::op_name(ops.back()), moves->kernel_h, moves->kernel_w);
    if (piece != old.outputs[i]) ops.push_back(rewriter.reshape(piece, old.outputs[i]));
  }
  rewriter.replace(id, std::move(ops), std::move(text));
}

// A chain of ops that move channels of an image within its pixels, ending in `id`; empty: there is none.
std::vector<ir::OpId> shuffle_before(const Rewriter& rewriter, ir::OpId id) {
  constexpr size_t kOpsMax = 8;
  const ir::TensorId result = rewriter.op(id).outputs.empty() ? ir::kNoTensor : rewriter.op(id).outputs[0];
  std::vector<ir::OpId> ops;
  bool turns = false;
  for (ir::OpId at = id; at >= 0 && ops.size() < kOpsMax; at = rewriter.only_producer(rewriter.op(at).inputs[0])) {
    const ir::Op& op = rewriter.op(at);
    const bool is_turn = op.kind == ir::OpKind::transpose;
    if (!is_turn && op.kind != ir::OpKind::reshape && op.kind != ir::OpKind::squeeze &&
        op.kind != ir::OpKind::expand_dims)
      return {};
    turns |= is_turn;
    ops.insert(ops.begin(), at);
    const ir::Tensor &from = rewriter.tensor(op.inputs[0]), &to = rewriter.tensor(result);
    if (ops.size() > 1 && turns && from.shape == to.shape && same_meaning(from, to)) return ops;
  }
  return {};
}

void rewrite_shuffle(Rewriter& rewriter, ir::OpId id) {
  const std::vector<ir::OpId> ops = shuffle_before(rewriter, id);
  if (ops.empty()) return;
  const ir::TensorId image = rewriter.op(ops[0]).inputs[0], result = rewriter.op(id).outputs[0];
  const ir::Tensor from = rewriter.tensor(image);
  if (!is_computed_byte(from) || from.shape.rank() != 4 || from.shape[0] != 1 || from.shape.elems() == 0 ||
      from.shape.elems() > kElemsMax || int64_t{from.shape[3]} * from.shape[3] > kFilterMax)
    return;
  std::vector<int32_t> elements(static_cast<size_t>(from.shape.elems()));
  std::iota(elements.begin(), elements.end(), 0);
  for (const ir::OpId op : ops) {
    const std::vector<std::vector<int32_t>> moved = picked(rewriter, rewriter.op(op));
    if (moved.size() != 1 || moved[0].size() != elements.size()) return;
    std::vector<int32_t> next;
    for (const int32_t element : moved[0]) next.push_back(elements[static_cast<size_t>(element)]);
    elements = std::move(next);
  }
  const auto moves = moves_of(from.shape, from.shape, elements);
  if (!moves || moves->kernel_h != 1 || moves->kernel_w != 1) return;
  std::vector<ir::Op> by = {convolution(rewriter, image, result, *moves)};
  rewriter.replace({.ops = ops,
                    .kept = id,
                    .by = std::move(by),
                    .text = fmt::format("{} operations that shuffle channels become CONV_2D 1x1", ops.size())});
}

}  // namespace

void lower_slice_as_conv(Rewriter& rewriter, ir::OpId id) {
  rewrite(rewriter, id);
  rewrite_shuffle(rewriter, id);
}

}  // namespace skillet::passes
