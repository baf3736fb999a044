// graph/ref/: CPU kernels, bit-exact with TFLite's reference integer kernels. Everything else is compared with them.
// Called by runtime/ (ops that stay on the CPU, fallback), tools (--compare) and tests.
// Must not know: chips, drivers, simulators.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::ref {

// One op, checked and prepared once (multipliers, packed weights, tables), then run many times.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // `tensors` is indexed by TensorId: the bytes of every operand, constants included; outputs are written.
  virtual Result<void> run(std::span<const std::span<uint8_t>> tensors) = 0;
};

// `graph` has passed ir::verify() and is borrowed for the kernel's life. An error (code unsupported) names the op and
// the unsupported property. Kernels write only outputs and variables, so the spans of constants may point into a
// read-only file.
Result<std::unique_ptr<Kernel>> prepare(const ir::Graph& graph, ir::OpId op);

// The bytes of each output of an op whose inputs are constants, or which reads only their shapes. Error: no kernel.
Result<std::vector<Bytes>> compute(const ir::Graph& graph, ir::OpId op);

// A computed tensor before the first run: a variable has its initial value, or zero.
inline Bytes initial_bytes(const ir::Tensor& tensor) {
  if (tensor.is_variable && tensor.data.data() != nullptr) return {tensor.data.begin(), tensor.data.end()};
  const bool offset = tensor.is_variable && tensor.dtype == ir::DType::int8;
  return Bytes(static_cast<size_t>(tensor.bytes()), offset ? static_cast<uint8_t>(tensor.quant.zero_point()) : 0);
}

// Runs a whole graph; owns the bytes of all tensors, so that any of them can be read after run().
class Interpreter {
 public:
  // `graph` is borrowed; create() verifies it. Error if an op has no kernel. Constants are not copied.
  static Result<Interpreter> create(const ir::Graph& graph);

  // Write inputs here before run(), read anything after it. Constants must not be written.
  std::span<uint8_t> tensor(ir::TensorId id);
  Result<void> run();
  // Runs ops one by one; `after` is called with each op's id (for per-layer comparison and timing).
  template <typename Callback>
  Result<void> run_each(Callback after) {
    for (size_t i = 0; i < kernels_.size(); ++i) {
      SK_TRY(kernels_[i]->run(spans_));
      after(static_cast<ir::OpId>(i));
    }
    return {};
  }

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::vector<uint8_t>> storage_;
  std::vector<std::span<uint8_t>> spans_;
};

}  // namespace skillet::ref
