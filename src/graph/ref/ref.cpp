#include "graph/ref/ref.h"

#include <algorithm>

#include "base/stop.h"
#include "graph/ref/kernel.h"

namespace skillet::ref {
namespace {

// Names that hosts give to an operation that is a compiled part.
struct PartOfHost {
  std::string_view op, host, page;
};
constexpr PartOfHost kPartsOfHosts[] = {{"DISPATCH_OP", "LiteRT", "docs/litert.md"},
                                        {"EPContext", "ONNX Runtime", "docs/onnxruntime.md"}};

// A damaged file can declare sizes that no machine has; allocating them would abort the process.
Result<void> check_memory(const ir::Graph& graph) {
  constexpr int64_t kMaxBytes = int64_t{1} << 32;
  int64_t bytes = 0;
  for (const ir::Tensor& tensor : graph.tensors) bytes += tensor.is_constant() ? 0 : tensor.bytes();
  if (bytes <= kMaxBytes) return {};
  return error(ErrorCode::unsupported, "the computed tensors need {} bytes, the limit is {}", bytes, kMaxBytes);
}

}  // namespace

Result<std::unique_ptr<Kernel>> prepare(const ir::Graph& graph, ir::OpId op) {
  const Context context(graph, op);
  const auto is_empty = [&](ir::TensorId id) { return graph.tensor(id).shape.elems() == 0; };
  if (graph.op(op).kind != ir::OpKind::opaque && std::ranges::all_of(graph.op(op).outputs, is_empty))
    return make_kernel([](Tensors) {});
  constexpr Prepare* kKernels[] = {
#define OP(kind, ...) prepare_##kind,
#include "graph/ir/op.def"
#undef OP
  };
  const auto kind = static_cast<size_t>(graph.op(op).kind);
  if (kind < std::size(kKernels)) return kKernels[kind](context);
  const auto name = ir::op_name(graph.op(op));
  for (const auto& [of_host, host, page] : kPartsOfHosts) {
    if (name == of_host)
      return context.unsupported(
          "{} is a part compiled for {}: open the file there ({}), or use the model it was made from (skillet inspect "
          "describes it)",
          name, host, page);
  }
  return context.unsupported("no CPU kernel for {}", name);
}

Result<std::vector<Bytes>> compute(const ir::Graph& graph, ir::OpId op) {
  SK_TRY_ASSIGN(const auto kernel, prepare(graph, op));
  std::vector<std::span<uint8_t>> tensors(graph.tensors.size());
  for (const ir::TensorId id : graph.op(op).inputs) {
    if (id == ir::kNoTensor) continue;
    const std::span<const uint8_t> data = graph.tensor(id).data;
    tensors[static_cast<size_t>(id)] = {const_cast<uint8_t*>(data.data()), data.size()};  // kernels only read it
  }
  std::vector<Bytes> outputs;
  for (const ir::TensorId id : graph.op(op).outputs)
    outputs.emplace_back(static_cast<size_t>(graph.tensor(id).bytes()));
  for (size_t i = 0; i < outputs.size(); ++i) tensors[static_cast<size_t>(graph.op(op).outputs[i])] = outputs[i];
  SK_TRY(kernel->run(tensors));
  return outputs;
}

Result<Interpreter> Interpreter::create(const ir::Graph& graph) {
  SK_TRY(ir::verify(graph));
  SK_TRY(check_memory(graph));
  Interpreter interpreter;
  for (size_t i = 0; i < graph.ops.size(); ++i)
    SK_TRY_INTO(interpreter.kernels_.emplace_back(), prepare(graph, static_cast<ir::OpId>(i)));
  interpreter.storage_.resize(graph.tensors.size());
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const ir::Tensor& tensor = graph.tensors[i];
    if (tensor.is_constant()) {
      // Constants are not copied. Kernels only read their inputs, and verify() has refused ops that write a constant.
      interpreter.spans_.emplace_back(const_cast<uint8_t*>(tensor.data.data()), tensor.data.size());
    } else {
      interpreter.storage_[i] = initial_bytes(tensor);
      interpreter.spans_.emplace_back(interpreter.storage_[i]);
    }
  }
  return interpreter;
}

std::span<uint8_t> Interpreter::tensor(ir::TensorId id) { return spans_[static_cast<size_t>(id)]; }

Result<void> Interpreter::run() {
  for (const auto& kernel : kernels_) {
    SK_TRY(check_stop());
    SK_TRY(kernel->run(spans_));
  }
  return {};
}

}  // namespace skillet::ref
