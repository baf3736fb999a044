#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ir/rules.h"

namespace skillet::ir {
namespace {

struct ZeroPointRange {
  int64_t min, max;
};

// Types that carry quantization, with the zero points they allow.
std::optional<ZeroPointRange> zero_point_range(DType dtype) {
  switch (dtype) {
    case DType::int4: return ZeroPointRange{-8, 7};
    case DType::int8: return ZeroPointRange{INT8_MIN, INT8_MAX};
    case DType::uint8: return ZeroPointRange{0, UINT8_MAX};
    case DType::int16: return ZeroPointRange{INT16_MIN, INT16_MAX};
    case DType::uint16: return ZeroPointRange{0, UINT16_MAX};
    case DType::int32:
    case DType::int64: return ZeroPointRange{INT32_MIN, INT32_MAX};
    case DType::uint32:
    case DType::uint64: return ZeroPointRange{0, INT32_MAX};
    default: return std::nullopt;
  }
}

Result<void> check_quant(const Tensor& tensor) {
  const Quant& quant = tensor.quant;
  if (quant.scales.size() != quant.zero_points.size()) {
    return error(ErrorCode::malformed, "{} scales but {} zero points", quant.scales.size(), quant.zero_points.size());
  }
  if (quant.empty()) return {};
  const auto range = zero_point_range(tensor.dtype);
  if (!range) return error(ErrorCode::malformed, "a tensor of this type cannot be quantized");
  // Products of two small scales, e.g. of a bias, may underflow to 0.
  const bool wide = tensor.dtype == DType::int32 || tensor.dtype == DType::int64;
  // TensorFlow Lite multiplies such a channel's sums, with the bias, by 0: its outputs are the zero point.
  const bool is_channel_of_weights = tensor.is_constant() && tensor.dtype == DType::int8 && quant.per_channel();
  // TensorFlow's converter gives constants of zeros such a scale: the initial state of an unrolled GRU or LSTM.
  const bool is_int16_constant = tensor.is_constant() && tensor.dtype == DType::int16;
  for (float scale : quant.scales) {
    if (!std::isfinite(scale) || scale < 0 || (scale == 0 && !wide && !is_channel_of_weights && !is_int16_constant)) {
      return error(ErrorCode::malformed, "scale {} is not a positive number", scale);
    }
  }
  for (int32_t zero_point : quant.zero_points) {
    if (zero_point < range->min || zero_point > range->max) {
      return error(ErrorCode::malformed, "zero point {} is outside {}..{}", zero_point, range->min, range->max);
    }
  }
  if (!quant.per_channel()) return {};
  if (quant.axis < 0 || quant.axis >= tensor.shape.rank()) {
    return error(ErrorCode::malformed, "quantized along dimension {}, which it does not have", quant.axis);
  }
  if (static_cast<size_t>(tensor.shape[quant.axis]) != quant.scales.size()) {
    return error(ErrorCode::malformed, "{} scales for {} channels", quant.scales.size(), tensor.shape[quant.axis]);
  }
  return {};
}

Result<void> check_tensor(const Tensor& tensor) {
  SK_TRY(checked_elems(tensor.shape));
  const bool sized = dtype_bytes(tensor.dtype) != 0 || tensor.dtype == DType::int4;
  if (tensor.data.data() != nullptr && sized && tensor.data.size() != static_cast<size_t>(tensor.bytes())) {
    return error(ErrorCode::malformed, "{} bytes of contents, its shape needs {}", tensor.data.size(), tensor.bytes());
  }
  return check_quant(tensor);
}

// Walks the ops in order and records which tensors have a value.
class OrderCheck {
 public:
  explicit OrderCheck(const Graph& graph) : graph_(graph), ready_(graph.tensors.size()) {
    for (size_t i = 0; i < ready_.size(); ++i) ready_[i] = graph.tensors[i].is_constant();
  }

  Result<void> run() {
    for (TensorId id : graph_.inputs) SK_TRY(define(id).with_context("graph input"));
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      SK_TRY_IN_CONTEXT(check(graph_.ops[i]), describe_op(graph_, static_cast<OpId>(i)));
    }
    for (TensorId id : graph_.outputs) SK_TRY(use(id).with_context("graph output"));
    return {};
  }

 private:
  Result<void> check(const Op& op) {
    for (TensorId id : op.inputs) {
      if (id != kNoTensor) SK_TRY(use(id));
    }
    for (TensorId id : op.outputs) SK_TRY(define(id));
    return {};
  }
  Result<void> in_range(TensorId id) const {
    if (id >= 0 && static_cast<size_t>(id) < ready_.size()) return {};
    return error(ErrorCode::malformed, "tensor index {} is outside the {} tensors", id, ready_.size());
  }
  Result<void> use(TensorId id) const {
    SK_TRY(in_range(id));
    // A variable may be read before the op that updates it: it has its value from the previous run.
    if (ready_[static_cast<size_t>(id)] || graph_.tensor(id).is_variable) return {};
    return error(ErrorCode::malformed, "{} is used before anything produces it", describe_tensor(graph_, id));
  }
  Result<void> define(TensorId id) {
    SK_TRY(in_range(id));
    if (ready_[static_cast<size_t>(id)] && !graph_.tensor(id).is_variable) {
      return error(ErrorCode::malformed, "{} already has a value", describe_tensor(graph_, id));
    }
    ready_[static_cast<size_t>(id)] = true;
    return {};
  }

  const Graph& graph_;
  std::vector<bool> ready_;
};

}  // namespace

Result<void> check_tensors(const Graph& graph, size_t first) {
  if (graph.tensors.size() > std::numeric_limits<TensorId>::max()) {
    return error(ErrorCode::unsupported, "{} tensors are too many", graph.tensors.size());
  }
  int64_t total_bytes = 0;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const auto id = static_cast<TensorId>(i);
    if (auto checked = i < first ? Result<void>() : check_tensor(graph.tensors[i]); !checked) {
      return std::move(checked).error().with_context(describe_tensor(graph, id));
    }
    total_bytes += graph.tensors[i].bytes();
    if (total_bytes > kMaxGraphBytes) {
      return error(ErrorCode::unsupported, "{}: all tensors together exceed {} bytes", describe_tensor(graph, id),
                   kMaxGraphBytes);
    }
  }
  return {};
}

Result<void> check_structure(const Graph& graph) {
  SK_TRY(check_tensors(graph));
  return OrderCheck(graph).run();
}

Result<void> check_ops(const Graph& graph, size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    const Op& op = graph.ops[i];
    Result<Shapes> shapes = check_op(graph, op);
    if (!shapes) return std::move(shapes).error().with_context(describe_op(graph, static_cast<OpId>(i)));
    for (size_t j = 0; j < shapes->size(); ++j) {
      if (graph.tensor(op.outputs[j]).shape == (*shapes)[j]) continue;
      return error(ErrorCode::malformed, "{}: output {} should have shape {}", describe_op(graph, static_cast<OpId>(i)),
                   describe_tensor(graph, op.outputs[j]), (*shapes)[j].to_string());
    }
  }
  return {};
}

Result<void> verify(const Graph& graph) {
  SK_TRY(check_structure(graph));
  return check_ops(graph, 0, graph.ops.size());
}

}  // namespace skillet::ir
