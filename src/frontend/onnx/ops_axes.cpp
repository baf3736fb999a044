// Operations over axes: means, sums, maxima, normalizations; selection by indices.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "frontend/onnx/file_ops.h"

namespace skillet::onnx {

using ir::OpKind;
using ir::TensorId;

Result<int64_t> axis_of(Lowering& l, size_t rank, int64_t otherwise) {
  const auto all = static_cast<int64_t>(rank);
  const int64_t given = int_of(l.node(), "axis", otherwise), axis = given < 0 ? given + all : given;
  if (axis < 0 || axis >= all) return error(ErrorCode::malformed, "its axis is outside its {} dimensions", all);
  return axis;
}

namespace {

Result<std::vector<int32_t>> axes_of(Lowering& l, size_t rank) {
  std::vector<int64_t> axes = ints_of(l.node(), "axes");
  if (axes.empty()) {
    SK_TRY_ASSIGN(const auto given, l.list(1));
    if (given) axes = *given;
  }
  if (axes.empty() && int_of(l.node(), "noop_with_empty_axes", 0) != 0)
    return error(ErrorCode::unsupported, "it has no axis");
  std::vector<int32_t> out(rank);
  std::iota(out.begin(), out.end(), 0);
  if (axes.empty()) return out;
  out.clear();
  for (const int64_t one : axes) {
    const auto all = static_cast<int64_t>(rank);
    if (one < -all || one >= all) return error(ErrorCode::malformed, "axis {} is outside its {} dimensions", one, rank);
    out.push_back(static_cast<int32_t>(one < 0 ? one + all : one));
  }
  return out;
}

// `dims` with a 1 at each axis.
std::vector<int32_t> with_ones(std::vector<int32_t> dims, const std::vector<int32_t>& axes) {
  for (const int32_t axis : axes) dims[static_cast<size_t>(axis)] = 1;
  return dims;
}

template <OpKind kind>
Result<void> reduce(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  const bool keeps = int_of(l.node(), "keepdims", 1) != 0;
  const Layout layout = keeps ? l.common_layout(dims.size()) : Layout::plain;
  SK_TRY_ASSIGN(std::vector<int32_t> axes, axes_of(l, dims.size()));
  SK_TRY_ASSIGN(const InOut io, in_out(l, layout));
  for (int32_t& axis : axes) axis = Lowering::axis_in(layout, axis, dims.size());
  l.emit(kind, ir::ReduceAttrs{.keep_dims = keeps}, {io.from, l.ints(axes)}, io.to);
  return {};
}

// A sum of `before` of each element (identity: reshape), and `after` of the sum.
template <OpKind before, OpKind after>
Result<void> reduce_by(Lowering& l) {
  SK_TRY(needs_float(l));
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  SK_TRY_ASSIGN(const std::vector<int32_t> axes, axes_of(l, dims.size()));
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::plain));
  TensorId elements = io.from;
  if (before != OpKind::reshape) {
    elements = like(l, io.from);
    l.emit(before, ir::NoAttrs{}, {io.from}, elements);
  }
  const TensorId sums = after == OpKind::reshape ? io.to : like(l, io.to);
  l.emit(OpKind::sum, ir::ReduceAttrs{.keep_dims = int_of(l.node(), "keepdims", 1) != 0}, {elements, l.ints(axes)},
         sums);
  if (after != OpKind::reshape) l.emit(after, ir::NoAttrs{}, {sums}, io.to);
  return {};
}

// The largest element is subtracted first, so that no exponential is infinite.
Result<void> reduce_log_sum_exp(Lowering& l) {
  SK_TRY(needs_float(l));
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  SK_TRY_ASSIGN(const std::vector<int32_t> axes, axes_of(l, dims.size()));
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::plain));
  const std::vector<int32_t> few = with_ones(io.dims, axes);
  const TensorId most = l.temporary(few, {}), below = like(l, io.from), powers = like(l, io.from),
                 sums = l.temporary(few, {}), logs = l.temporary(few, {}), out = l.temporary(few, {});
  const ir::ReduceAttrs keep{.keep_dims = true};
  l.emit(OpKind::reduce_max, keep, {io.from, l.ints(axes)}, most);
  arithmetic(l, OpKind::sub, io.from, most, below);
  l.emit(OpKind::exp, ir::NoAttrs{}, {below}, powers);
  l.emit(OpKind::sum, keep, {powers, l.ints(axes)}, sums);
  l.emit(OpKind::log, ir::NoAttrs{}, {sums}, logs);
  arithmetic(l, OpKind::add, logs, most, out);
  l.reshape(out, io.to);
  return {};
}

// Our operation returns indices without the dimension of `axis`.
template <OpKind kind>
Result<void> arg(Lowering& l) {
  if (int_of(l.node(), "select_last_index", 0) != 0)
    return error(ErrorCode::unsupported, "select_last_index is not supported");
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::plain));
  SK_TRY_ASSIGN(const int64_t axis, axis_of(l, io.dims.size(), 0));
  std::vector<int32_t> dims = io.dims;
  dims.erase(dims.begin() + axis);
  const TensorId picked = l.temporary_of(ir::DType::int64, dims);
  l.emit(kind, ir::NoAttrs{}, {io.from, l.ints({static_cast<int32_t>(axis)})}, picked);
  l.reshape(picked, io.to);
  return {};
}

// Adds `size` to computed indices below 0, which count from the end.
TensorId from_the_front(Lowering& l, TensorId which, int32_t size) {
  const ir::DType dtype = l.graph.tensor(which).dtype;
  const std::vector<int32_t> dims = l.graph.tensor(which).shape.dims;
  const auto number = [&](int64_t value) {
    Bytes bytes(8);
    store_le(bytes.data(), value);
    bytes.resize(dtype == ir::DType::int64 ? 8 : 4);
    return l.constant(dtype, {}, std::move(bytes));
  };
  const TensorId is_below = l.temporary_of(ir::DType::boolean, dims), more = l.temporary_of(dtype, dims),
                 out = l.temporary_of(dtype, dims);
  l.emit(OpKind::less, ir::NoAttrs{}, {which, number(0)}, is_below);
  l.emit(OpKind::add, ir::ActivationAttrs{}, {which, number(size)}, more);
  l.emit(OpKind::select_v2, ir::NoAttrs{}, {is_below, more, which}, out);
  return out;
}

Result<void> gather(Lowering& l) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  SK_TRY_ASSIGN(const auto shape, l.input_dims(1));
  SK_TRY_ASSIGN(const int64_t axis, axis_of(l, dims.size(), 0));
  TensorId which = ir::kNoTensor;
  if (l.model().value(l.input(1)->value).is_constant) {
    SK_TRY_ASSIGN(const auto given, l.list(1));
    if (!given) return error(ErrorCode::malformed, "it has no indices");
    std::vector<int32_t> indices;
    const int64_t size = dims[static_cast<size_t>(axis)];
    for (const int64_t one : *given) {
      if (one < -size || one >= size) return error(ErrorCode::malformed, "its index {} is outside {}", one, size);
      indices.push_back(static_cast<int32_t>(one < 0 ? one + size : one));
    }
    which = l.ints(indices, shape);
    l.graph.tensor(which).shape.dims = shape;  // may be a scalar
  } else {
    SK_TRY_ASSIGN(const TensorId given, l.read(1, Layout::plain));
    which = from_the_front(l, given, dims[static_cast<size_t>(axis)]);
  }
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::plain));
  l.emit(OpKind::gather, ir::GatherAttrs{.axis = static_cast<int32_t>(axis)}, {io.from, which}, io.to);
  return {};
}

// Any axis: it is moved to the end first.
Result<void> softmax(Lowering& l) {
  SK_TRY(needs_float(l));
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  const auto rank = static_cast<int64_t>(dims.size());
  const bool is_old = l.node().since < 13;
  SK_TRY_ASSIGN(const int64_t axis, axis_of(l, dims.size(), is_old ? 1 : -1));
  const OpKind kind = l.unit().op == "Softmax" ? OpKind::softmax : OpKind::log_softmax;
  const ir::Attrs attrs = kind == OpKind::softmax ? ir::Attrs(ir::SoftmaxAttrs{}) : ir::Attrs(ir::NoAttrs{});
  const bool is_image = rank >= 3 && axis == 1 && !is_old;
  SK_TRY_ASSIGN(const InOut io, in_out(l, is_image ? Layout::channels_last : Layout::plain));
  if (is_image || axis == rank - 1) {
    l.emit(kind, attrs, {io.from}, io.to);
    return {};
  }
  if (is_old) {  // axis and all later dimensions count as one
    const auto inner = std::accumulate(dims.begin() + axis, dims.end(), 1, std::multiplies<>());
    const std::vector<int32_t> flat = {std::accumulate(dims.begin(), dims.begin() + axis, 1, std::multiplies<>()),
                                       inner};
    const TensorId rows = l.temporary(flat, {});
    l.reshape(io.from, rows);
    const TensorId shares = l.temporary(flat, {});
    l.emit(kind, attrs, {rows}, shares);
    l.reshape(shares, io.to);
    return {};
  }
  std::vector<int32_t> perm(dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  std::vector<int32_t> moved = dims;
  std::swap(moved[static_cast<size_t>(axis)], moved.back());
  const TensorId last = l.temporary(moved, {}), shares = l.temporary(moved, {});
  l.emit(OpKind::transpose, ir::NoAttrs{}, {io.from, l.ints(perm)}, last);
  l.emit(kind, attrs, {last}, shares);
  l.emit(OpKind::transpose, ir::NoAttrs{}, {shares, l.ints(perm)}, io.to);
  return {};
}

// 1 / sqrt(x + epsilon).
TensorId inverse_root(Lowering& l, TensorId x, float epsilon) {
  const TensorId safe = arithmetic(l, OpKind::add, x, number(l, epsilon), like(l, x));
  const TensorId by = like(l, x);
  l.emit(OpKind::rsqrt, ir::NoAttrs{}, {safe}, by);
  return by;
}

// (x - mean) / sqrt(variance + epsilon) over `axes`, then multiplied by `scale` and added to `offset`.
Result<void> normalized(Lowering& l, const InOut& io, const std::vector<int32_t>& axes, float epsilon, TensorId scale,
                        TensorId offset) {
  const ir::ReduceAttrs keep{.keep_dims = true};
  const std::vector<int32_t> few = with_ones(l.graph.tensor(io.from).shape.dims, axes);
  const TensorId mean = l.temporary(few, {}), square = like(l, io.from), variance = l.temporary(few, {});
  l.emit(OpKind::mean, keep, {io.from, l.ints(axes)}, mean);
  l.emit(OpKind::squared_difference, ir::NoAttrs{}, {io.from, mean}, square);
  l.emit(OpKind::mean, keep, {square, l.ints(axes)}, variance);
  const TensorId by = inverse_root(l, variance, epsilon);
  TensorId out = arithmetic(l, OpKind::sub, io.from, mean, like(l, io.from));
  out = arithmetic(l, OpKind::mul, out, by, like(l, io.from));
  out = arithmetic(l, OpKind::mul, out, scale, offset == ir::kNoTensor ? io.to : like(l, io.from));
  if (offset != ir::kNoTensor) arithmetic(l, OpKind::add, out, offset, io.to);
  return {};
}

Result<void> layer_norm(Lowering& l) {
  SK_TRY(needs_float(l));
  if (l.unit().outputs.size() != 1) return error(ErrorCode::unsupported, "its mean output is also used");
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::plain));
  SK_TRY_ASSIGN(int64_t axis, axis_of(l, io.dims.size(), -1));
  std::vector<int32_t> axes;
  for (; axis < std::ssize(io.dims); ++axis) axes.push_back(static_cast<int32_t>(axis));
  SK_TRY_ASSIGN(const TensorId scale, l.read(1, Layout::plain));
  TensorId offset = ir::kNoTensor;
  if (l.input(2) != nullptr) SK_TRY_INTO(offset, l.read(2, Layout::plain));
  return normalized(l, io, axes, float_of(l.node(), "epsilon", 1e-5F), scale, offset);
}

// A constant with one number for each channel, as the last dimension.
Result<TensorId> per_channel(Lowering& l, size_t i, int32_t channels) {
  SK_TRY_ASSIGN(const auto dims, l.input_dims(i));
  if (dims != std::vector<int32_t>{channels})
    return error(ErrorCode::malformed, "its input {} does not have one number per channel", i);
  return l.read(i, Layout::plain);
}

Result<void> instance_norm(Lowering& l) {
  SK_TRY(needs_float(l));
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::channels_last));
  if (io.dims.size() < 3) return error(ErrorCode::unsupported, "its input is not an image");
  SK_TRY_ASSIGN(const TensorId scale, per_channel(l, 1, io.dims[1]));
  SK_TRY_ASSIGN(const TensorId offset, per_channel(l, 2, io.dims[1]));
  std::vector<int32_t> axes(io.dims.size() - 2);
  std::iota(axes.begin(), axes.end(), 1);
  return normalized(l, io, axes, float_of(l.node(), "epsilon", 1e-5F), scale, offset);
}

// Channels in groups: [n, groups, the rest], each normalized, then scaled by channel.
Result<void> group_norm(Lowering& l) {
  SK_TRY(needs_float(l));
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::plain));
  const auto groups = int_of(l.node(), "num_groups", 0);
  if (io.dims.size() < 2 || groups < 1 || io.dims[1] % groups != 0)
    return error(ErrorCode::malformed, "its {} groups do not fit its channels", groups);
  const auto count = static_cast<int32_t>(groups);
  const bool is_by_group = l.node().since < 21;  // scale and offset
  std::array<TensorId, 2> factors{};
  for (size_t i = 0; i < 2; ++i) {
    SK_TRY_ASSIGN(const TensorId given, per_channel(l, i + 1, is_by_group ? count : io.dims[1]));
    std::vector<int32_t> dims(io.dims.size(), 1);
    dims[1] = is_by_group ? count : io.dims[1];
    if (is_by_group) dims = {1, count, 1};
    factors[i] = l.temporary(dims, {});
    l.reshape(given, factors[i]);
  }
  const int64_t rest = ir::Shape{io.dims}.elems() / io.dims[0] / groups;
  const TensorId grouped = l.temporary({io.dims[0], count, static_cast<int32_t>(rest)}, {});
  l.reshape(io.from, grouped);
  InOut inner{.dims = {}, .from = grouped, .to = like(l, grouped)};
  if (is_by_group) {
    SK_TRY(normalized(l, inner, {2}, float_of(l.node(), "epsilon", 1e-5F), factors[0], factors[1]));
    l.reshape(inner.to, io.to);
    return {};
  }
  SK_TRY(normalized(l, inner, {2}, float_of(l.node(), "epsilon", 1e-5F), number(l, 1), ir::kNoTensor));
  const TensorId back = like(l, io.from);
  l.reshape(inner.to, back);
  arithmetic(l, OpKind::add, arithmetic(l, OpKind::mul, back, factors[0], like(l, back)), factors[1], io.to);
  return {};
}

// x / sqrt(mean of squares + epsilon), over `axis` and the later dimensions.
Result<void> rms_norm(Lowering& l) {
  SK_TRY(needs_float(l));
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::plain));
  SK_TRY_ASSIGN(const int64_t axis, axis_of(l, io.dims.size(), -1));
  SK_TRY_ASSIGN(const TensorId scale, l.read(1, Layout::plain));
  std::vector<int32_t> axes(io.dims.size() - static_cast<size_t>(axis));
  std::iota(axes.begin(), axes.end(), static_cast<int32_t>(axis));
  const TensorId squares = like(l, io.from), mean = l.temporary(with_ones(io.dims, axes), {});
  l.emit(OpKind::square, ir::NoAttrs{}, {io.from}, squares);
  l.emit(OpKind::mean, ir::ReduceAttrs{.keep_dims = true}, {squares, l.ints(axes)}, mean);
  const TensorId by = inverse_root(l, mean, float_of(l.node(), "epsilon", 1e-5F));
  arithmetic(l, OpKind::mul, arithmetic(l, OpKind::mul, io.from, by, like(l, io.from)), scale, io.to);
  return {};
}

// x / norm over `axis`; 0 where the norm is 0.
Result<void> lp_norm(Lowering& l) {
  SK_TRY(needs_float(l));
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::plain));
  SK_TRY_ASSIGN(const int64_t axis, axis_of(l, io.dims.size(), -1));
  const int64_t p = int_of(l.node(), "p", 2);
  if (p != 1 && p != 2) return error(ErrorCode::malformed, "its p is {}", p);
  const std::vector<int32_t> few = with_ones(io.dims, {static_cast<int32_t>(axis)});
  const TensorId elements = like(l, io.from);
  TensorId norm = l.temporary(few, {});
  l.emit(p == 1 ? OpKind::abs : OpKind::square, ir::NoAttrs{}, {io.from}, elements);
  l.emit(OpKind::sum, ir::ReduceAttrs{.keep_dims = true}, {elements, l.ints({static_cast<int32_t>(axis)})}, norm);
  if (p == 2) {
    const TensorId root = l.temporary(few, {});
    l.emit(OpKind::sqrt, ir::NoAttrs{}, {norm}, root);
    norm = root;
  }
  const TensorId safe = l.temporary(few, {});
  l.emit(OpKind::maximum, ir::NoAttrs{}, {norm, number(l, std::numeric_limits<float>::min())}, safe);
  arithmetic(l, OpKind::div, io.from, safe, io.to);
  return {};
}

// x / (bias + alpha / size * sum of squares of neighbouring channels)^beta. TensorFlow Lite's operation leaves out the
// last neighbour.
Result<void> local_response_norm(Lowering& l) {
  SK_TRY(needs_float(l));
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::plain));
  constexpr int64_t kMost = 64;
  const int64_t size = int_of(l.node(), "size", 0);
  if (io.dims.size() < 2 || size < 1 || size > kMost)
    return error(ErrorCode::unsupported, "its size is {}, not 1 to {}", size, kMost);
  const auto rank = static_cast<int32_t>(io.dims.size()), count = static_cast<int32_t>(size);
  std::vector<int32_t> margins(io.dims.size() * 2), wide = io.dims, first(io.dims.size());
  margins[2] = (count - 1) / 2, margins[3] = count / 2;
  wide[1] += count - 1;
  const TensorId squares = like(l, io.from), padded = l.temporary(wide, {}), sum = like(l, io.from);
  l.emit(OpKind::square, ir::NoAttrs{}, {io.from}, squares);
  l.emit(OpKind::pad, ir::NoAttrs{}, {squares, l.ints(margins, {rank, 2})}, padded);
  std::vector<TensorId> neighbours;
  for (first[1] = 0; first[1] < count; ++first[1]) {
    neighbours.push_back(like(l, io.from));
    l.emit(OpKind::slice, ir::NoAttrs{}, {padded, l.ints(first), l.ints(io.dims)}, neighbours.back());
  }
  l.emit(OpKind::add_n, ir::NoAttrs{}, neighbours, sum);
  const float factor = float_of(l.node(), "alpha", 0.0001F) / static_cast<float>(size);
  const TensorId scaled = arithmetic(l, OpKind::mul, sum, number(l, factor), like(l, io.from));
  const TensorId base = arithmetic(l, OpKind::add, scaled, number(l, float_of(l.node(), "bias", 1)), like(l, io.from));
  const TensorId by = like(l, io.from);
  l.emit(OpKind::pow, ir::NoAttrs{}, {base, number(l, -float_of(l.node(), "beta", 0.75F))}, by);
  arithmetic(l, OpKind::mul, io.from, by, io.to);
  return {};
}

Result<void> cum_sum(Lowering& l) {
  SK_TRY_ASSIGN(const InOut io, in_out(l, Layout::plain));
  SK_TRY_ASSIGN(const auto axis, l.list(1));
  const auto rank = std::ssize(io.dims);
  if (!axis || axis->size() != 1 || (*axis)[0] < -rank || (*axis)[0] >= rank)
    return error(ErrorCode::malformed, "its axis is outside its {} dimensions", rank);
  l.emit(OpKind::cumsum,
         ir::CumsumAttrs{.exclusive = int_of(l.node(), "exclusive", 0) != 0,
                         .reverse = int_of(l.node(), "reverse", 0) != 0},
         {io.from, l.ints({static_cast<int32_t>((*axis)[0])}, {1})}, io.to);
  return {};
}

// A batch normalization with constants: a factor and an addend for each channel.
Result<void> batch_norm(Lowering& l) {
  SK_TRY(needs_float(l));
  SK_TRY_ASSIGN(const auto dims, l.input_dims(0));
  if (dims.size() < 2 || l.unit().inputs.size() != 5) return error(ErrorCode::malformed, "it has no channels");
  if (int_of(l.node(), "training_mode", 0) != 0) return error(ErrorCode::unsupported, "it trains");
  std::array<std::vector<double>, 4> read;  // scale, offset, mean, variance
  for (size_t i = 0; i < read.size(); ++i) {
    const auto one = l.input(i + 1) == nullptr ? std::nullopt : numbers(l.model().value(l.input(i + 1)->value));
    if (!one || std::ssize(*one) != dims[1])
      return error(ErrorCode::unsupported, "its input {} is not a constant", i + 1);
    read[i] = *one;
  }
  std::vector<float> by(read[0].size()), plus(read[0].size());
  for (size_t c = 0; c < read[0].size(); ++c) {
    const double factor = read[0][c] / std::sqrt(read[3][c] + double{float_of(l.node(), "epsilon", 1e-5F)});
    by[c] = static_cast<float>(factor);
    plus[c] = static_cast<float>(read[1][c] - read[2][c] * factor);
  }
  SK_TRY_ASSIGN(const InOut io, in_out(l, Lowering::usual(dims.size())));
  const TensorId scaled = arithmetic(l, OpKind::mul, io.from, floats(l, by, {dims[1]}), like(l, io.from));
  arithmetic(l, OpKind::add, scaled, floats(l, plus, {dims[1]}), io.to);
  return {};
}

constexpr std::array kRows = {
    LowerRow{"ReduceMean", reduce<OpKind::mean>},
    LowerRow{"ReduceSum", reduce<OpKind::sum>},
    LowerRow{"ReduceMax", reduce<OpKind::reduce_max>},
    LowerRow{"ReduceMin", reduce<OpKind::reduce_min>},
    LowerRow{"ReduceProd", reduce<OpKind::reduce_prod>},
    LowerRow{"ReduceL1", reduce_by<OpKind::abs, OpKind::reshape>},
    LowerRow{"ReduceL2", reduce_by<OpKind::square, OpKind::sqrt>},
    LowerRow{"ReduceSumSquare", reduce_by<OpKind::square, OpKind::reshape>},
    LowerRow{"ReduceLogSum", reduce_by<OpKind::reshape, OpKind::log>},
    LowerRow{"ReduceLogSumExp", reduce_log_sum_exp},
    LowerRow{"ArgMax", arg<OpKind::arg_max>},
    LowerRow{"ArgMin", arg<OpKind::arg_min>},
    LowerRow{"Gather", gather},
    LowerRow{"Softmax", softmax},
    LowerRow{"LogSoftmax", softmax},
    LowerRow{"LayerNormalization", layer_norm},
    LowerRow{"InstanceNormalization", instance_norm},
    LowerRow{"BatchNormalization", batch_norm},
    LowerRow{"GroupNormalization", group_norm},
    LowerRow{"RMSNormalization", rms_norm},
    LowerRow{"LpNormalization", lp_norm},
    LowerRow{"LRN", local_response_norm},
    LowerRow{"CumSum", cum_sum},
};

}  // namespace

std::span<const LowerRow> axis_ops() { return kRows; }

}  // namespace skillet::onnx
