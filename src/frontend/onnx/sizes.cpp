// Sizes and types of outputs by the ONNX standard, one row for each operation.
#include "frontend/onnx/sizes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/text.h"

namespace skillet::onnx {
namespace {

Result<Outputs> same(Sizes& s) { return Outputs(s.node.outputs.size(), s.in(0)); }

Result<Outputs> of_both(Sizes& s, std::initializer_list<size_t> which) {
  Dims out;
  for (const size_t i : which) {
    if (s.id(i) == kNone) continue;
    const auto both = broadcast(out, s.in(i));
    if (!both) return misfit("its inputs have incompatible sizes");
    out = *both;
  }
  return Outputs{out};
}
Result<Outputs> elementwise(Sizes& s) {
  Dims out;
  for (size_t i = 0; i < s.node.inputs.size(); ++i) {
    const auto both = broadcast(out, s.in(i));
    if (!both) return misfit("its inputs have incompatible sizes");
    out = *both;
  }
  return Outputs{out};
}
Result<Outputs> qlinear_elementwise(Sizes& s) { return of_both(s, {0, 3}); }

Result<Outputs> concat_of(Sizes& s, size_t first, size_t step) {
  Dims out = s.in(first);
  if (s.unknown) return Outputs();
  SK_TRY_ASSIGN(const size_t axis, s.axis(int_of(s.node, "axis", 1), out.size()));
  for (size_t i = first + step; i < s.node.inputs.size(); i += step) {
    const Dims& next = s.in(i);
    if (s.unknown) return Outputs();
    if (next.size() != out.size()) return misfit("its inputs have different ranks");
    for (size_t d = 0; d < out.size(); ++d)
      if (d != axis && next[d] != out[d]) return misfit("its inputs have different sizes");
    out[axis] += next[axis];
  }
  return Outputs{out};
}
Result<Outputs> concat(Sizes& s) { return concat_of(s, 0, 1); }
Result<Outputs> qlinear_concat(Sizes& s) { return concat_of(s, 2, 3); }

Result<Outputs> reshape(Sizes& s) {
  const Dims& from = s.in(0);
  const auto given = s.list("shape", 1);
  if (s.unknown || !given) return Outputs();
  Dims out = *given;
  int64_t elems = 1, known = 1;
  for (const int64_t dim : from) elems = std::min(elems * dim, kMostSize);
  const bool keeps_zero = int_of(s.node, "allowzero", 0) != 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == 0 && !keeps_zero) {
      if (i >= from.size()) return misfit("its shape keeps a dimension that does not exist");
      out[i] = from[i];
    }
    if (out[i] < -1) return misfit("its shape has a negative size");
    if (out[i] >= 0) known = std::min(known * std::min(out[i], kMostSize), kMostSize);
  }
  const auto open = std::ranges::find(out, -1);
  if (open != out.end()) *open = known == 0 ? 0 : elems / known;
  if (open != out.end() ? known == 0 || elems % known != 0 : elems != known)
    return error(ErrorCode::malformed, "{} elements do not fit its shape [{}]", elems, fmt::join(*given, ", "));
  return Outputs{out};
}

Result<Outputs> flatten(Sizes& s) {
  const Dims& from = s.in(0);
  if (s.unknown) return Outputs();
  const int64_t given = int_of(s.node, "axis", 1), all = std::ssize(from);
  if (given < -all || given > all) return misfit("its axis is outside its dimensions");
  Dims out = {1, 1};
  for (int64_t i = 0; i < all; ++i) {
    int64_t& size = out[i < (given < 0 ? given + all : given) ? 0 : 1];
    size = std::min(size * from[static_cast<size_t>(i)], kMostSize);
  }
  return Outputs{out};
}

Result<Outputs> squeeze(Sizes& s) {
  const Dims& from = s.in(0);
  const auto axes = s.list("axes", 1);
  if (s.unknown) return Outputs();
  std::vector<bool> gone(from.size());
  for (const int64_t one : axes.value_or(Dims())) {
    SK_TRY_ASSIGN(const size_t axis, s.axis(one, from.size()));
    if (from[axis] != 1) return misfit("it drops a dimension that is not 1");
    gone[axis] = true;
  }
  Dims out;
  for (size_t i = 0; i < from.size(); ++i)
    if (axes ? !gone[i] : from[i] != 1) out.push_back(from[i]);
  return Outputs{out};
}

Result<Outputs> unsqueeze(Sizes& s) {
  const Dims& from = s.in(0);
  const auto axes = s.list("axes", 1);
  if (s.unknown || !axes) return Outputs();
  if (axes->size() > 16) return misfit("it adds more than 16 dimensions");
  std::vector<bool> is_new(from.size() + axes->size());
  for (const int64_t one : *axes) {
    SK_TRY_ASSIGN(const size_t axis, s.axis(one, is_new.size()));
    if (is_new[axis]) return misfit("it adds a dimension twice");
    is_new[axis] = true;
  }
  Dims out;
  size_t next = 0;
  for (const bool one : is_new) out.push_back(one ? 1 : from[next++]);
  return Outputs{out};
}

Result<Outputs> transpose(Sizes& s) {
  const Dims& from = s.in(0);
  if (s.unknown) return Outputs();
  const Dims perm = ints_of(s.node, "perm");
  Dims out(from.rbegin(), from.rend());
  if (perm.empty()) return Outputs{out};
  if (perm.size() != from.size()) return misfit("its permutation does not fit its input");
  for (size_t i = 0; i < perm.size(); ++i) {
    SK_TRY_ASSIGN(const size_t axis, s.axis(perm[i], from.size()));
    out[i] = from[axis];
  }
  return Outputs{out};
}

Result<Outputs> slice(Sizes& s) {
  Dims out = s.in(0);
  const auto starts = s.list("starts", 1), ends = s.list("ends", 2), axes = s.list("axes", 3),
             steps = s.list("steps", 4);
  if (s.unknown || !starts || !ends) return Outputs();
  if (starts->size() != ends->size() || (axes && axes->size() != starts->size()) ||
      (steps && steps->size() != starts->size()))
    return misfit("it does not have one limit per axis");
  for (size_t i = 0; i < starts->size(); ++i) {
    SK_TRY_ASSIGN(const size_t axis, s.axis(axes ? (*axes)[i] : static_cast<int64_t>(i), out.size()));
    const int64_t dim = out[axis], step = steps ? (*steps)[i] : 1;
    if (step == 0) return misfit("its step is 0");
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    const auto limit = [&](int64_t at) { return std::clamp(at < 0 ? std::max(at, -dim - 1) + dim : at, low, high); };
    const int64_t span = (limit((*ends)[i]) - limit((*starts)[i])) * (step > 0 ? 1 : -1);
    const int64_t by = step > 0 ? step : step < -kMostSize ? kMostSize : -step;
    out[axis] = span <= 0 ? 0 : (span - 1) / by + 1;
  }
  return Outputs{out};
}

Result<Outputs> split(Sizes& s) {
  const Dims& from = s.in(0);
  const auto given = s.list("split", 1);
  if (s.unknown) return Outputs();
  SK_TRY_ASSIGN(const size_t axis, s.axis(int_of(s.node, "axis", 0), from.size()));
  const size_t count = s.node.outputs.size();
  if (given && given->size() != count) return misfit("it does not have one size per output");
  Outputs out(count, from);
  const int64_t share = (from[axis] + static_cast<int64_t>(count) - 1) / static_cast<int64_t>(count);
  int64_t left = from[axis];
  for (size_t i = 0; i < count; ++i) {
    out[i][axis] = given ? (*given)[i] : std::min(share, left);
    if (out[i][axis] < 0 || out[i][axis] > left) return misfit("its sizes do not add up");
    left -= out[i][axis];
  }
  if (left != 0) return misfit("its sizes do not add up");
  return out;
}

Result<Outputs> pad(Sizes& s) {
  Dims out = s.in(0);
  const auto pads = s.list("pads", 1), axes = s.list("axes", 3);
  if (s.unknown || !pads) return Outputs();
  const size_t count = axes ? axes->size() : out.size();
  if (pads->size() != 2 * count) return misfit("its pads are not two for each dimension");
  for (size_t i = 0; i < count; ++i) {
    SK_TRY_ASSIGN(const size_t axis, s.axis(axes ? (*axes)[i] : static_cast<int64_t>(i), out.size()));
    const int64_t before = (*pads)[i], after = (*pads)[i + count];
    if (std::abs(before) > kMostSize || std::abs(after) > kMostSize) return misfit("a pad is not a size");
    out[axis] = std::max<int64_t>(out[axis] + before + after, 0);
  }
  return Outputs{out};
}

// Inputs are scales, then sizes; each has one element for each dimension.
Result<Outputs> resize(Sizes& s) {
  const Dims& from = s.in(0);
  const bool is_upsample = s.node.op == "Upsample" || s.node.since < 11;
  const int scales_id = s.id(is_upsample ? 1 : 2), sizes_id = is_upsample ? kNone : s.id(3);
  const bool is_stretched = string_of(s.node, "keep_aspect_ratio_policy", "stretch") == "stretch";
  if (s.unknown || s.node.attributes.contains("axes") || !is_stretched) return s.unknown = true, Outputs();
  Dims out;
  if (sizes_id != kNone) {
    const auto sizes = integers(s.model.value(sizes_id));
    if (!sizes) return s.unknown = true, Outputs();
    out = *sizes;
  } else {
    auto scales = scales_id == kNone ? std::nullopt : numbers(s.model.value(scales_id));
    if (const auto old = s.node.attributes.find("scales"); old != s.node.attributes.end())
      scales = std::vector<double>(old->second.floats.begin(), old->second.floats.end());
    if (!scales) return s.unknown = true, Outputs();
    for (size_t i = 0; i < scales->size() && i < from.size(); ++i) {
      const double size = std::floor(static_cast<double>(from[i]) * (*scales)[i]);
      if (!(size >= 0 && size < static_cast<double>(kMostSize))) return misfit("its scale is not a number above 0");
      out.push_back(static_cast<int64_t>(size));
    }
  }
  if (out.size() != from.size()) return misfit("it does not have one size per dimension");
  return Outputs{out};
}

Result<Outputs> gather(Sizes& s) {
  const Dims &from = s.in(0), &which = s.in(1);
  if (s.unknown) return Outputs();
  SK_TRY_ASSIGN(const size_t axis, s.axis(int_of(s.node, "axis", 0), from.size()));
  Dims out(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(axis));
  out.insert(out.end(), which.begin(), which.end());
  out.insert(out.end(), from.begin() + static_cast<std::ptrdiff_t>(axis) + 1, from.end());
  return Outputs{out};
}

Result<Outputs> reduce(Sizes& s) {
  const Dims& from = s.in(0);
  const auto axes = s.list("axes", 1);
  if (s.unknown) return Outputs();
  const bool keeps = int_of(s.node, "keepdims", 1) != 0;
  const bool all = !axes || axes->empty();
  if (all && int_of(s.node, "noop_with_empty_axes", 0) != 0) return Outputs{from};
  std::vector<bool> gone(from.size(), all);
  for (const int64_t one : axes.value_or(Dims())) {
    SK_TRY_ASSIGN(const size_t axis, s.axis(one, from.size()));
    gone[axis] = true;
  }
  Dims out;
  for (size_t i = 0; i < from.size(); ++i) {
    if (gone[i] && !keeps) continue;
    out.push_back(gone[i] ? 1 : from[i]);
  }
  return Outputs{out};
}

Result<Outputs> arg(Sizes& s) {
  Dims out = s.in(0);
  if (s.unknown) return Outputs();
  SK_TRY_ASSIGN(const size_t axis, s.axis(int_of(s.node, "axis", 0), out.size()));
  if (int_of(s.node, "keepdims", 1) != 0)
    out[axis] = 1;
  else
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  return Outputs{out};
}

Result<Outputs> top_k(Sizes& s) {
  Dims out = s.in(0);
  const auto k = s.list("k", 1);
  if (s.unknown || !k || k->size() != 1) return Outputs();
  SK_TRY_ASSIGN(const size_t axis, s.axis(int_of(s.node, "axis", -1), out.size()));
  if (k->front() < 0 || k->front() > out[axis]) return misfit("it picks more elements than exist");
  out[axis] = k->front();
  return Outputs{out, out};
}

Result<Outputs> shape(Sizes& s) {
  const auto rank = static_cast<int64_t>(s.in(0).size());
  const auto limit = [&](const char* name, int64_t otherwise) {
    const int64_t at = int_of(s.node, name, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  return Outputs{{std::max<int64_t>(limit("end", rank) - limit("start", 0), 0)}};
}

Result<Outputs> range(Sizes& s) {
  std::array<double, 3> limits{};  // first, end, step
  for (size_t i = 0; i < 3; ++i) {
    const auto read = s.id(i) == kNone ? std::nullopt : numbers(s.model.value(s.id(i)));
    if (!read || read->size() != 1) return s.unknown = true, Outputs();
    limits[i] = read->front();
  }
  const double count = std::ceil((limits[1] - limits[0]) / limits[2]);
  if (!(std::abs(count) < static_cast<double>(kMostSize))) return misfit("its range has no end");
  return Outputs{{static_cast<int64_t>(std::max(count, 0.0))}};
}

Result<Outputs> scalar(Sizes&) { return Outputs{Dims()}; }

Result<Outputs> expand(Sizes& s) {
  const Dims& from = s.in(0);
  const auto to = s.list("shape", 1);
  if (s.unknown || !to) return Outputs();
  const auto both = broadcast(from, *to);
  if (!both) return misfit("its shape does not fit its input");
  return Outputs{*both};
}

Result<Outputs> of_shape(Sizes& s) {
  const auto to = s.list("shape", 0);
  if (s.unknown || !to) return Outputs();
  return Outputs{*to};
}

Result<Outputs> tile(Sizes& s) {
  Dims out = s.in(0);
  const auto repeats = s.list("repeats", 1);
  if (s.unknown || !repeats) return Outputs();
  if (repeats->size() != out.size()) return misfit("it does not have one repeat per dimension");
  for (size_t i = 0; i < out.size(); ++i) {
    if ((*repeats)[i] < 0 || (*repeats)[i] > kMostSize) return misfit("a repeat is not a number");
    out[i] *= (*repeats)[i];
  }
  return Outputs{out};
}

Result<Outputs> blocks(Sizes& s) {
  Dims out = s.in(0);
  const int64_t size = int_of(s.node, "blocksize", 0);
  if (s.unknown) return Outputs();
  if (out.size() != 4 || size < 1 || size > 1 << 10) return misfit("its blocks do not fit its input");
  const bool to_space = s.node.op == "DepthToSpace";
  if (to_space ? out[1] % (size * size) != 0 : out[2] % size != 0 || out[3] % size != 0)
    return misfit("its blocks do not fit its input");
  out[1] = to_space ? out[1] / (size * size) : out[1] * size * size;
  for (const size_t i : {2, 3}) out[i] = to_space ? out[i] * size : out[i] / size;
  return Outputs{out};
}

// LSTM, GRU and RNN: input [steps, batch, features], recurrent weights [directions, gates * hidden, hidden].
Result<Outputs> recurrent(Sizes& s) {
  const Dims &input = s.in(0), &weights = s.in(2);
  if (s.unknown) return Outputs();
  if (input.size() != 3 || weights.size() != 3) return misfit("its input and its weights do not have three dimensions");
  if (int_of(s.node, "layout", 0) != 0) return Outputs();
  const Dims last = {weights[0], input[1], weights[2]};
  return Outputs{{input[0], weights[0], input[1], weights[2]}, last, last};
}

// The type of a row's output: that of input `i` (of_i), of an attribute, or a fixed type.
enum class Type { of_0, of_1, of_2, of_4, of_5, of_7, of_to, whole, truth, of_quant };
struct Row {
  std::string_view ops;  // separated by blanks, also at both ends
  Rule rule;
  Type type = Type::of_0;
};
constexpr Row kRows[] = {
    {" Relu Sigmoid Tanh Exp Log Abs Neg Sqrt Floor Ceil Round Sign Sin Cos Erf Gelu HardSigmoid HardSwish LeakyRelu "
     "Elu Celu Acos Acosh Asin Asinh Atan Atanh Cosh Sinh Tan Shrink ThresholdedRelu "
     "Selu Softplus Softsign Mish Clip Softmax LogSoftmax Reciprocal LayerNormalization BatchNormalization CumSum "
     "InstanceNormalization LRN PRelu Dropout Identity LpNormalization Not Trilu QLinearSigmoid "
     "QLinearLeakyRelu GroupNormalization RMSNormalization Swish ",
     same},
    {" Cast ", same, Type::of_to},
    {" QuantizeLinear ", same, Type::of_quant},
    {" DequantizeLinear ", same, Type::of_1},
    {" QLinearSoftmax ", same, Type::of_4},
    {" Add Sub Mul Div Pow Max Min Sum Mean Mod BitwiseAnd BitwiseOr BitwiseXor BitShift ", elementwise},
    {" And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual ", elementwise, Type::truth},
    {" IsNaN IsInf ", same, Type::truth},
    {" Where ", elementwise, Type::of_1},
    {" QLinearAdd QLinearMul ", qlinear_elementwise},
    {" Conv ", conv},
    {" QLinearConv ", qlinear_conv, Type::of_7},
    {" ConvTranspose ", conv_transpose},
    {" MaxPool AveragePool LpPool QLinearAveragePool ", pool},
    {" GlobalAveragePool GlobalMaxPool GlobalLpPool QLinearGlobalAveragePool ", global_pool},
    {" Gemm ", gemm},
    {" QGemm ", qgemm},
    {" MatMul ", matmul},
    {" QLinearMatMul ", qlinear_matmul, Type::of_7},
    {" Concat ", concat},
    {" QLinearConcat ", qlinear_concat, Type::of_2},
    {" Reshape ", reshape},
    {" Flatten ", flatten},
    {" Squeeze ", squeeze},
    {" Unsqueeze ", unsqueeze},
    {" Transpose ", transpose},
    {" Slice ", slice},
    {" Split ", split},
    {" Pad ", pad},
    {" Resize Upsample ", resize},
    {" Gather ", gather},
    {" ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum "
     "ReduceLogSumExp ",
     reduce},
    {" ArgMax ArgMin ", arg, Type::whole},
    {" TopK ", top_k},
    {" Shape ", shape, Type::whole},
    {" Size ", scalar, Type::whole},
    {" Range ", range},
    {" Expand ", expand},
    {" ConstantOfShape ", of_shape, Type::of_to},
    {" Tile ", tile},
    {" DepthToSpace SpaceToDepth ", blocks},
    {" LSTM GRU RNN ", recurrent},
};

std::optional<ir::DType> type_of(const Model& model, const Node& node, Type type) {
  const auto of = [&](size_t i) -> std::optional<ir::DType> {
    if (i >= node.inputs.size() || node.inputs[i] == kNone) return std::nullopt;
    return model.value(node.inputs[i]).dtype;
  };
  switch (type) {
    case Type::of_0: return of(0);
    case Type::of_1: return of(1);
    case Type::of_2: return of(2);
    case Type::of_4: return of(4);
    case Type::of_5: return of(5);
    case Type::of_7: return of(7);
    case Type::whole: return ir::DType::int64;
    case Type::truth: return ir::DType::boolean;
    case Type::of_to:
      if (const auto value = node.attributes.find("value"); value != node.attributes.end() && value->second.tensor)
        return value->second.tensor->dtype;
      return dtype_of(int_of(node, "to", 1));
    case Type::of_quant:
      if (const auto zero = of(2)) return zero;
      return dtype_of(int_of(node, "output_dtype", 2));
  }
  return std::nullopt;
}

const Row* row_of(const Node& node) {
  if (!node.domain.empty() && node.domain != "com.microsoft") return nullptr;
  const std::string name = " " + node.op + " ";
  if (node.op.find(' ') != std::string::npos || node.op.empty()) return nullptr;
  const auto found = std::ranges::find_if(kRows, [&](const Row& row) { return row.ops.find(name) != row.ops.npos; });
  return found == std::end(kRows) ? nullptr : &*found;
}

}  // namespace

std::optional<std::vector<int64_t>> broadcast(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1, right = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (left != right && left != 1 && right != 1) return std::nullopt;
    out[out.size() - 1 - i] = left == 1 ? right : left;
  }
  return out;
}

Result<void> infer(Model& model, const Node& node) {
  const Row* row = row_of(node);
  if (row == nullptr) return {};
  Sizes sizes{model, node};
  SK_TRY_ASSIGN(const Outputs made, row->rule(sizes));
  const auto dtype = type_of(model, node, row->type);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    Value& out = model.values[static_cast<size_t>(node.outputs[i])];
    if (dtype && *dtype != ir::DType::variant && i == 0) out.dtype = *dtype;
    if ((node.op == "Split" || row->rule == recurrent) && dtype) out.dtype = *dtype;
    if (node.op == "TopK" && i == 1) out.dtype = ir::DType::int64;
    if (sizes.unknown || i >= made.size()) continue;
    for (const int64_t dim : made[i]) {
      if (dim < 0 || dim >= kMostSize) return error(ErrorCode::malformed, "its output has a dimension of {}", dim);
    }
    out.dims = made[i];
  }
  return {};
}

}  // namespace skillet::onnx
