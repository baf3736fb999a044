// Shared by all kernels of graph/ref/: the current op with its tensors, errors that name it, kernels built from a
// lambda; at the end, the prepare function of each row of op.def. Called by the files of graph/ref/ only.
// Must not know: the arithmetic of single ops.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/fixed_point.h"
#include "base/result.h"
#include "graph/ir/graph.h"
#include "graph/ref/range.h"
#include "graph/ref/ref.h"

namespace skillet::ref {

using Tensors = std::span<const std::span<uint8_t>>;
using KernelPtr = std::unique_ptr<Kernel>;

// An op of a graph that has passed ir::verify(): operand counts, ranks and inferable shapes agree with the op.
class Context {
 public:
  Context(const ir::Graph& graph, ir::OpId id) : graph_(graph), id_(id) {}

  const ir::Op& op() const { return graph_.op(id_); }
  template <typename T>
  const T& attrs() const {
    return op().as<T>();
  }
  size_t input_count() const { return op().inputs.size(); }
  size_t output_count() const { return op().outputs.size(); }
  bool has_input(size_t i) const { return op().input(i) != ir::kNoTensor; }
  const ir::Tensor& input(size_t i) const { return graph_.tensor(op().inputs[i]); }
  const ir::Tensor& output(size_t i = 0) const { return graph_.tensor(op().outputs[i]); }
  size_t input_index(size_t i) const { return static_cast<size_t>(op().inputs[i]); }
  size_t output_index(size_t i = 0) const { return static_cast<size_t>(op().outputs[i]); }

  // "op 3 CONV_2D -> 'x': <text>"
  template <typename... Args>
  Error unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    return refusal(fmt::format(format, std::forward<Args>(args)...));
  }
  // "op 3 CONV_2D -> 'x'", for errors of kernels that check values at run time.
  std::string describe() const { return ir::describe_op(graph_, id_); }
  // Values of an int32 or int64 operand; an error if it is not constant.
  Result<std::vector<int64_t>> constant_ints(size_t input) const;
  Result<int64_t> constant_int(size_t input) const;
  // Bytes of an element; an error for types whose elements are not whole bytes.
  Result<size_t> elem_bytes(const ir::Tensor& tensor) const;
  // Error unless the tensor is 8-bit with one scale and one zero point.
  Result<void> need_quantized(const ir::Tensor& tensor) const;
  // Error unless the tensor is int16 with one scale and the zero point 0.
  Result<void> need_int16(const ir::Tensor& tensor) const;
  // The same for the given number of first inputs, and for the output.
  Result<void> need_quantized(size_t inputs) const;
  Result<void> need_int16(size_t inputs) const;

 private:
  Error refusal(std::string text) const;

  const ir::Graph& graph_;
  ir::OpId id_;
};

template <typename Run>
class LambdaKernel final : public Kernel {
 public:
  explicit LambdaKernel(Run run) : run_(std::move(run)) {}
  Result<void> run(Tensors tensors) override {
    if constexpr (std::is_void_v<decltype(run_(tensors))>) {
      run_(tensors);
      return {};
    } else {
      return run_(tensors);
    }
  }

 private:
  Run run_;
};

// `run` takes the tensors; it returns nothing or a Result<void>.
template <typename Run>
KernelPtr make_kernel(Run run) {
  return std::make_unique<LambdaKernel<Run>>(std::move(run));
}

// Contents as elements of T. Only for tensors that are aligned for T: one-byte types, and tensors that Interpreter
// allocates. Constants may be unaligned in model files; read them through load_element().
template <typename T>
T* elements(std::span<uint8_t> bytes) {
  return reinterpret_cast<T*>(bytes.data());
}
template <typename T>
T load_element(std::span<const uint8_t> bytes, size_t i) {
  return load_le<T>(bytes.data() + i * sizeof(T));
}

// The nearest integer; saturates far outside of every 8-bit range, and is 0 for NaN.
inline int32_t round_to_int(float value) {
  return std::isnan(value) ? 0 : static_cast<int32_t>(std::clamp(std::round(value), -1e6F, 1e6F));
}

inline size_t elem_count(const ir::Tensor& tensor) { return static_cast<size_t>(tensor.shape.elems()); }
inline size_t dim(const ir::Tensor& tensor, int i) { return static_cast<size_t>(tensor.shape[i]); }

// Calls row(in, size, out) for each row of the last axis of operand 0. The output has the same shape and element type.
template <typename T, typename Row>
KernelPtr rows_kernel(const Context& c, Row row) {
  const auto size = static_cast<size_t>(c.input(0).shape.back(0));
  return make_kernel(
      [size, row, rows = elem_count(c.input(0)) / size, in = c.input_index(0), out = c.output_index()](Tensors t) {
        for (size_t r = 0; r < rows; ++r)
          row(elements<const T>(t[in]) + r * size, size, elements<T>(t[out]) + r * size);
      });
}

// Calls `body` with a value of the C++ type of an 8-bit tensor.
template <typename Body>
auto with_8bit(ir::DType dtype, Body body) {
  return dtype == ir::DType::int8 ? body(int8_t{}) : body(uint8_t{});
}

// The same for a type of quantized activations: int8, uint8 or int16.
template <typename Body>
auto with_quantized(ir::DType dtype, Body body) {
  return dtype == ir::DType::int16 ? body(int16_t{}) : with_8bit(dtype, body);
}

// out = table[in], for bytes.
using ByteTable = std::array<uint8_t, 256>;
KernelPtr look_up_kernel(const Context& c, const ByteTable& table);

// The table of f(value) clamped to the output's type; `value` is a byte of operand 0 as a number.
template <typename F>
ByteTable byte_table_of(const Context& c, F f) {
  const Range range = type_range(c.output().dtype);
  ByteTable table{};
  for (int raw = 0; raw < 256; ++raw) {
    const int32_t value = c.input(0).dtype == ir::DType::int8 ? static_cast<int8_t>(raw) : raw;
    table[static_cast<size_t>(raw)] = static_cast<uint8_t>(std::clamp<int32_t>(f(value), range.min, range.max));
  }
  return table;
}

// Range of `tensor` narrowed by a fused activation, as TFLite's CalculateActivationRangeQuantized.
Result<Range> activation_range(const Context& context, ir::Activation activation, const ir::Tensor& tensor);

// Same for float tensors.
struct FloatRange {
  float min = 0, max = 0;
};
Result<FloatRange> float_activation_range(const Context& context, ir::Activation activation);

// Rows or columns of padding before the first one, by TFLite's rule.
int32_t padding_before(ir::Padding padding, int32_t input, int32_t output, int32_t kernel, int32_t stride,
                       int32_t dilation);

using Prepare = Result<KernelPtr>(const Context& context);
#define OP(kind, ...) Prepare prepare_##kind;
#include "graph/ir/op.def"
#undef OP
Prepare prepare_float_conv_2d, prepare_float_fully_connected, prepare_float_transpose_conv;

}  // namespace skillet::ref
