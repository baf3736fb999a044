// Operations that only move values: concatenations, shapes, slices, resized images.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "frontend/onnx/lowering.h"

namespace skillet::onnx {
namespace {

using ir::OpKind;
using ir::TensorId;

std::vector<int32_t> narrowed(const std::vector<int64_t>& values) {
  std::vector<int32_t> out;
  for (const int64_t one : values) out.push_back(static_cast<int32_t>(std::clamp<int64_t>(one, INT32_MIN, INT32_MAX)));
  return out;
}

Result<int> axis_of(int64_t axis, size_t rank) {
  const auto all = static_cast<int64_t>(rank);
  if (axis < -all || axis >= all)
    return error(ErrorCode::malformed, "axis {} is outside its {} dimensions", axis, rank);
  return static_cast<int>(axis < 0 ? axis + all : axis);
}

Result<void> concat(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  SK_TRY_ASSIGN(const int axis, axis_of(int_of(l.node(), "axis", 1), dims.size()));
  const Layout layout = l.common_layout(dims.size());
  std::vector<TensorId> from;
  for (size_t i = 0; i < l.unit().inputs.size(); ++i) SK_TRY_INTO(from.emplace_back(), l.read(i, layout));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, layout));
  // Inputs with another quantization than the result are requantized first.
  for (TensorId& one : from) {
    const ir::Quant quant = l.graph.tensor(to).quant;
    if (l.graph.tensor(one).quant == quant) continue;
    const TensorId same = l.temporary(l.graph.tensor(one).shape.dims, quant);
    l.emit(OpKind::quantize, ir::NoAttrs{}, {one}, same);
    one = same;
  }
  l.emit(OpKind::concatenation, ir::ConcatAttrs{.axis = Lowering::axis_in(layout, axis, dims.size())}, from, to);
  return {};
}

// Reshape, Flatten, Squeeze, Unsqueeze: the host has inferred the output shape.
Result<void> reshape(Lowering& l) {
  SK_TRY_ASSIGN(const auto from_dims, l.input_dims(0));
  if (l.unit().outputs.size() != 1) return error(ErrorCode::malformed, "it has no output");
  const int value = l.unit().outputs[0].value;
  SK_TRY_ASSIGN(const auto to_dims, l.dims(value));
  const auto size = [](const std::vector<int32_t>& all, size_t first) {
    return std::accumulate(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(), int64_t{1},
                           std::multiplies<>());
  };
  if (size(from_dims, 0) != size(to_dims, 0)) return error(ErrorCode::malformed, "its shapes do not fit");
  const bool is_image = l.has(l.input(0)->value, Layout::channels_last) && from_dims.size() >= 3;
  const bool is_mixed = is_image && from_dims[1] != 1 && size(from_dims, 2) != 1;
  const bool rows = is_mixed && to_dims.size() == 2 && to_dims[0] == from_dims[0];
  // The channels stay; only rows and columns are reshaped.
  const bool pixels =
      is_mixed && to_dims.size() >= 3 && std::equal(to_dims.begin(), to_dims.begin() + 2, from_dims.begin());
  SK_TRY_ASSIGN(const TensorId from, l.read(0, rows || pixels ? Layout::channels_last : Layout::plain));
  if (rows) l.set_rows(value, from_dims);
  SK_TRY_ASSIGN(const TensorId to, l.write(0, rows ? Layout::rows : pixels ? Layout::channels_last : Layout::plain));
  const TensorId same = l.before_requantize(to, l.graph.tensor(from).quant);
  l.reshape(from, same);
  l.requantize(same, to);
  return {};
}

// A transpose to or from channels last is only a reshape, because the layout here is channels last.
Result<void> transpose(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  std::vector<int64_t> perm = ints_of(l.node(), "perm");
  if (perm.empty()) {
    perm.resize(dims.size());
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  std::vector<int64_t> sorted = perm, all(dims.size());
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) return error(ErrorCode::malformed, "its permutation is not one of {} dimensions", dims.size());
  std::vector<int64_t> last = all, first = all;
  if (all.size() >= 3) {
    std::rotate(last.begin() + 1, last.begin() + 2, last.end());
    std::rotate(first.begin() + 1, first.end() - 1, first.end());
  }
  const bool to_last = perm == last && all.size() >= 3, to_first = perm == first && all.size() >= 3;
  SK_TRY_ASSIGN(const TensorId from, l.read(0, to_last ? Layout::channels_last : Layout::plain));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, to_first && !to_last ? Layout::channels_last : Layout::plain));
  const TensorId same = l.before_requantize(to, l.graph.tensor(from).quant);
  if (to_last || to_first)
    l.reshape(from, same);
  else
    l.emit(OpKind::transpose, ir::NoAttrs{}, {from, l.ints(narrowed(perm))}, same);
  l.requantize(same, to);
  return {};
}

// One operation may stand for several nodes of the host: nodes that read the same value use its layout.
Result<Layout> layout_of_input(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  const int value = l.input(0)->value;
  const bool is_plain = l.has(value, Layout::plain) && !l.has(value, Layout::channels_last);
  return is_plain ? Layout::plain : Lowering::usual(dims.size());
}

// Numbers of an input, or of the attribute that older versions of the operation have in its place.
Result<std::optional<std::vector<int64_t>>> list_or(const Lowering& l, size_t i, const char* attribute) {
  if (l.node().attributes.contains(attribute)) return std::optional(ints_of(l.node(), attribute));
  return l.list(i);
}

Result<void> slice(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  std::array<std::optional<std::vector<int64_t>>, 4> given;
  SK_TRY_INTO(given[0], list_or(l, 1, "starts"));
  SK_TRY_INTO(given[1], list_or(l, 2, "ends"));
  SK_TRY_INTO(given[2], list_or(l, 3, "axes"));
  SK_TRY_INTO(given[3], list_or(l, 4, "steps"));
  if (!given[0] || !given[1]) return error(ErrorCode::unsupported, "its limits are not constants");
  const size_t count = given[0]->size();
  std::vector<int32_t> begin(dims.size(), 0), end = dims, step(dims.size(), 1);
  for (size_t i = 0; i < count; ++i) {
    const auto of = [&](size_t list, int64_t otherwise) {
      return !given[list] ? otherwise : i < given[list]->size() ? (*given[list])[i] : otherwise;
    };
    SK_TRY_ASSIGN(const int axis, axis_of(of(2, static_cast<int64_t>(i)), dims.size()));
    const auto at = static_cast<size_t>(axis);
    const int64_t dim = dims[at], by = of(3, 1), low = by > 0 ? 0 : -1, high = by > 0 ? dim : dim - 1;
    if (by == 0 || by < -dim || by > dim)
      return error(ErrorCode::unsupported, "its step {} is 0 or outside -{}..{}", by, dim, dim);
    const auto limit = [&](int64_t one) {
      return std::clamp(one < 0 ? std::max(one, -dim - 1) + dim : one, low, high);
    };
    const int64_t first = limit(of(0, by > 0 ? 0 : high)), last = limit(of(1, by > 0 ? high : low));
    if (by > 0 ? first >= last : first <= last)
      return error(ErrorCode::unsupported, "dimension {} becomes empty", axis);
    begin[at] = static_cast<int32_t>(first);
    end[at] = static_cast<int32_t>(last < 0 ? -dim - 1 : last);  // -1 would be the last element
    step[at] = static_cast<int32_t>(by);
  }
  SK_TRY_ASSIGN(const Layout layout, layout_of_input(l));
  SK_TRY_ASSIGN(const TensorId from, l.read(0, layout));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, layout));
  const TensorId same = l.before_requantize(to, l.graph.tensor(from).quant);
  if (std::ranges::all_of(step, [](int32_t one) { return one == 1; })) {
    std::vector<int32_t> size;
    for (size_t i = 0; i < dims.size(); ++i) size.push_back(end[i] - begin[i]);
    l.emit(OpKind::slice, ir::NoAttrs{}, {from, l.ints(in_layout(begin, layout)), l.ints(in_layout(size, layout))},
           same);
  } else {
    l.emit(OpKind::strided_slice, ir::StridedSliceAttrs{},
           {from, l.ints(in_layout(begin, layout)), l.ints(in_layout(end, layout)), l.ints(in_layout(step, layout))},
           same);
  }
  l.requantize(same, to);
  return {};
}

Result<void> split(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  SK_TRY_ASSIGN(const int axis, axis_of(int_of(l.node(), "axis", 0), dims.size()));
  SK_TRY_ASSIGN(const Layout layout, layout_of_input(l));
  SK_TRY_ASSIGN(const TensorId from, l.read(0, layout));
  std::vector<int32_t> sizes;
  std::vector<TensorId> outputs, same;
  for (size_t i = 0; i < l.unit().outputs.size(); ++i) {
    SK_TRY_ASSIGN(const auto out, l.dims(l.unit().outputs[i].value));
    if (out.size() != dims.size()) return error(ErrorCode::malformed, "its outputs do not fit");
    sizes.push_back(out[static_cast<size_t>(axis)]);
    SK_TRY_ASSIGN(const TensorId to, l.write(i, layout));
    outputs.push_back(to);
    same.push_back(l.before_requantize(to, l.graph.tensor(from).quant));
  }
  const TensorId at = l.ints({Lowering::axis_in(layout, axis, dims.size())});
  const auto count = static_cast<int32_t>(sizes.size());
  if (ir::all_equal(sizes))
    l.emit(OpKind::split, ir::SplitAttrs{.count = count}, {at, from}, same);
  else
    l.emit(OpKind::split_v, ir::SplitAttrs{.count = count}, {from, l.ints(sizes), at}, same);
  for (size_t i = 0; i < same.size(); ++i) l.requantize(same[i], outputs[i]);
  return {};
}

// What the margins of a Pad get, as a real number.
Result<double> filler_of(const Lowering& l) {
  if (l.node().attributes.contains("value")) return float_of(l.node(), "value", 0);
  const Operand* value = l.input(2);
  if (value == nullptr) return 0.0;
  const auto read = numbers(l.model().value(value->value));
  if (!read || read->size() != 1) return error(ErrorCode::unsupported, "its fill value is not a constant");
  const double real =
      value->quant.empty() ? read->front() : (read->front() - value->quant.zero_point()) * value->quant.scale();
  if (std::isnan(real)) return error(ErrorCode::malformed, "its fill value is not a number");
  return real;
}

// Selects along each axis: the nearest element, or, from the other end, the next ones. `margins`: before and after, by
// axis.
void repeat_into_margins(Lowering& l, TensorId from, const std::vector<int32_t>& margins, bool wraps, TensorId to) {
  std::vector<int32_t> dims = l.graph.tensor(from).shape.dims;
  const ir::Quant quant = l.graph.tensor(from).quant;
  bool is_done = false;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int32_t before = margins[2 * axis], size = dims[axis], last = size + margins[2 * axis + 1];
    if (before == 0 && last == size) continue;
    std::vector<int32_t> which;
    for (int32_t i = -before; i < last; ++i)
      which.push_back(wraps ? ((i % size) + size) % size : std::clamp(i, 0, size - 1));
    dims[axis] = static_cast<int32_t>(which.size());
    const TensorId next = l.temporary_of(l.graph.tensor(from).dtype, dims, quant);
    l.emit(OpKind::gather, ir::GatherAttrs{.axis = static_cast<int32_t>(axis)}, {from, l.ints(which)}, next);
    from = next;
    is_done = true;
  }
  if (is_done)
    l.graph.ops.back().outputs = {to};
  else
    l.reshape(from, to);
}

// `from`: the image and the margins. `out`: how the result is quantized in the end.
Result<void> fill_margins(Lowering& l, std::vector<TensorId> from, TensorId to, const ir::Quant& out) {
  SK_TRY_ASSIGN(const double real, filler_of(l));
  const ir::Quant quant = l.graph.tensor(from[0]).quant;
  TensorId filler = ir::kNoTensor;  // 0
  if (l.graph.tensor(from[0]).dtype == ir::DType::float32) {
    Bytes bytes(sizeof(float));
    const auto value = static_cast<float>(real);
    std::memcpy(bytes.data(), &value, bytes.size());
    if (real != 0) filler = l.constant(ir::DType::float32, {1}, std::move(bytes));
  } else {
    const double stored = std::nearbyint(real / quant.scale()) + quant.zero_point();
    if (!(stored >= l.least() && stored <= l.least() + 255))
      return error(ErrorCode::unsupported, "its fill value {} is outside the range of its input", real);
    // A rounding error of a coarse input step can be many steps of a finer output.
    const double held = (stored - quant.zero_point()) * static_cast<double>(quant.scale());
    if (!out.empty() && std::abs(held - real) > out.scale() / 2)
      return error(ErrorCode::unsupported, "its fill value {} is not a step of its input", real);
    if (static_cast<int>(stored) != quant.zero_point())
      filler = l.constant(l.type(), {1}, {static_cast<uint8_t>(static_cast<int>(stored))}, quant);
  }
  const bool is_zero = filler == ir::kNoTensor;
  if (!is_zero) from.push_back(filler);
  l.emit(is_zero ? OpKind::pad : OpKind::pad_v2, ir::NoAttrs{}, std::move(from), to);
  return {};
}

Result<void> pad(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  SK_TRY_ASSIGN(auto given, list_or(l, 1, "pads"));
  SK_TRY_ASSIGN(const auto axes, l.list(3));
  if (!given || axes || given->size() != 2 * dims.size())
    return error(ErrorCode::unsupported, "its pads are not two constants per dimension");
  const std::string mode = string_of(l.node(), "mode", "constant");
  std::vector<int32_t> before = narrowed({given->begin(), given->begin() + std::ssize(dims)});
  std::vector<int32_t> after = narrowed({given->begin() + std::ssize(dims), given->end()});
  if (std::ranges::min(*given) < 0 || std::ranges::max(*given) > 1 << 15)
    return error(ErrorCode::unsupported, "its pads are not numbers from 0 to 32768");
  SK_TRY_ASSIGN(const Layout layout, layout_of_input(l));
  SK_TRY_ASSIGN(const TensorId from, l.read(0, layout));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, layout));
  before = in_layout(std::move(before), layout);
  after = in_layout(std::move(after), layout);
  std::vector<int32_t> both;
  for (size_t i = 0; i < dims.size(); ++i) both.insert(both.end(), {before[i], after[i]});
  const TensorId margins = l.ints(both, {static_cast<int32_t>(dims.size()), 2});
  const TensorId same = l.before_requantize(to, l.graph.tensor(from).quant);
  if (mode == "reflect")
    l.emit(OpKind::mirror_pad, ir::MirrorPadAttrs{}, {from, margins}, same);
  else if (mode == "edge" || mode == "wrap")
    repeat_into_margins(l, from, both, mode == "wrap", same);
  else if (mode != "constant")
    return error(ErrorCode::unsupported, "its mode is {}", mode);
  else
    SK_TRY(fill_margins(l, {from, margins}, same, l.graph.tensor(to).quant));
  l.requantize(same, to);
  return {};
}

// ONNX places pixels by the given scale, our operation by the sizes. Even a small difference selects another nearest
// pixel.
Result<void> check_scales(Lowering& l, const std::vector<int32_t>& in, const std::vector<int32_t>& out) {
  const size_t at = l.node().op == "Upsample" || l.node().since < 11 ? 1 : 2;
  auto scales = l.input(at) == nullptr ? std::nullopt : numbers(l.model().value(l.input(at)->value));
  if (const auto old = l.node().attributes.find("scales"); old != l.node().attributes.end())
    scales = std::vector<double>(old->second.floats.begin(), old->second.floats.end());
  const std::vector<int64_t> axes = ints_of(l.node(), "axes");  // none: all of them
  const bool is_nearest = string_of(l.node(), "mode", "nearest") == "nearest";
  for (size_t i = 0; scales && i < scales->size(); ++i) {
    const int64_t given = axes.empty() ? static_cast<int64_t>(i) : i < axes.size() ? axes[i] : std::ssize(in);
    const auto axis = static_cast<size_t>(given < 0 ? given + std::ssize(in) : given);
    if (axis >= in.size()) return error(ErrorCode::malformed, "it does not have one scale per axis");
    if (std::abs(in[axis] * (*scales)[i] - out[axis]) > (is_nearest ? 0 : 1e-3))
      return error(ErrorCode::unsupported, "its scale {} of {} pixels does not give a whole number", (*scales)[i],
                   in[axis]);
  }
  return {};
}

// For integer factors several of ONNX's rules select the same nearest pixel.
Result<void> resize(Lowering& l) {
  SK_TRY_ASSIGN(const auto in, l.input_dims(0));
  SK_TRY_ASSIGN(const auto out, l.dims(l.unit().outputs.at(0).value));
  if (in.size() != 4 || out.size() != 4 || in[0] != out[0] || in[1] != out[1])
    return error(ErrorCode::unsupported, "it resizes dimensions other than rows and columns");
  const Node& node = l.node();
  if (const std::string policy = string_of(node, "keep_aspect_ratio_policy", "stretch"); policy != "stretch")
    return error(ErrorCode::unsupported, "its keep_aspect_ratio_policy is {}, not stretch", policy);
  SK_TRY(check_scales(l, in, out));
  const bool is_old = node.op == "Upsample" || node.since < 11;  // these versions have no attributes for the rules
  const std::string mode = string_of(node, "mode", "nearest");
  const std::string rule = string_of(node, "coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel");
  const std::string nearest = string_of(node, "nearest_mode", is_old ? "floor" : "round_prefer_floor");
  const bool half = rule == "half_pixel" || rule == "pytorch_half_pixel", asymmetric = rule == "asymmetric";
  const bool is_whole = out[2] % in[2] == 0 && out[3] % in[3] == 0;
  ir::ResizeAttrs attrs;
  OpKind kind = OpKind::resize_nearest_neighbor;
  if (mode == "linear" && int_of(node, "antialias", 0) == 0 && (half || asymmetric || rule == "align_corners")) {
    kind = OpKind::resize_bilinear;
    attrs = {.align_corners = rule == "align_corners", .half_pixel_centers = half};
    if (rule == "pytorch_half_pixel" && (out[2] == 1 || out[3] == 1))
      return error(ErrorCode::unsupported, "pytorch_half_pixel with one row or column");
  } else if (mode != "nearest" || !is_whole ||
             !((asymmetric && nearest == "floor") || (half && nearest != "ceil" && nearest != "floor"))) {
    return error(ErrorCode::unsupported,
                 "it is {} with {}, {}, from {}x{} to {}x{}; nearest by whole factors with "
                 "asymmetric and floor, or half_pixel, is taken, and linear",
                 mode, rule, nearest, in[2], in[3], out[2], out[3]);
  }
  SK_TRY_ASSIGN(const TensorId from, l.read(0, Layout::channels_last));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, Layout::channels_last));
  const TensorId size = l.ints({out[2], out[3]});
  const ir::Quant quant = l.graph.tensor(from).quant;
  if (kind == OpKind::resize_bilinear) return l.emit_rounded(kind, attrs, {from, size}, quant, to);
  const TensorId same = l.before_requantize(to, quant);
  l.emit(kind, attrs, {from, size}, same);
  l.requantize(same, to);
  return {};
}

// Reorders channels from CRD, where the pixels of a block are adjacent, to DCR, where the channels are.
TensorId depths_in_front(Lowering& l, TensorId from, int32_t size) {
  const std::vector<int32_t> dims = l.graph.tensor(from).shape.dims;
  const int32_t pixels = size * size, channels = dims.back() / pixels;
  std::vector<int32_t> order;
  for (int32_t pixel = 0; pixel < pixels; ++pixel)
    for (int32_t channel = 0; channel < channels; ++channel) order.push_back(channel * pixels + pixel);
  const TensorId to = l.temporary_of(l.graph.tensor(from).dtype, dims, l.graph.tensor(from).quant);
  l.emit(OpKind::gather, ir::GatherAttrs{.axis = static_cast<int32_t>(dims.size()) - 1}, {from, l.ints(order)}, to);
  return to;
}

template <OpKind kind>
Result<void> blocks(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  const int64_t size = int_of(l.node(), "blocksize", 0);
  const std::string mode = string_of(l.node(), "mode", "DCR");
  if (dims.size() != 4 || size < 2 || size > 64 || (mode != "DCR" && mode != "CRD"))
    return error(ErrorCode::unsupported, "its blocks have mode {} or an unsupported size", mode);
  SK_TRY_ASSIGN(TensorId from, l.read(0, Layout::channels_last));
  if (mode == "CRD" && kind == OpKind::depth_to_space) from = depths_in_front(l, from, static_cast<int32_t>(size));
  SK_TRY_ASSIGN(const TensorId to, l.write(0, Layout::channels_last));
  const TensorId same = l.before_requantize(to, l.graph.tensor(from).quant);
  l.emit(kind, ir::BlockAttrs{.block_size = static_cast<int32_t>(size)}, {from}, same);
  l.requantize(same, to);
  return {};
}

constexpr std::array kRows = {
    LowerRow{"Concat", concat},
    LowerRow{"Reshape", reshape},
    LowerRow{"Flatten", reshape},
    LowerRow{"Squeeze", reshape},
    LowerRow{"Unsqueeze", reshape},
    LowerRow{"Transpose", transpose},
    LowerRow{"Slice", slice},
    LowerRow{"Split", split},
    LowerRow{"Pad", pad},
    LowerRow{"Resize", resize},
    LowerRow{"Upsample", resize},
    LowerRow{"DepthToSpace", blocks<OpKind::depth_to_space>},
    LowerRow{"SpaceToDepth", blocks<OpKind::space_to_depth>},
};

}  // namespace

std::span<const LowerRow> moving_ops() { return kRows; }

}  // namespace skillet::onnx
