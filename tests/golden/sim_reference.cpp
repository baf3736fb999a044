#include "sim_reference.h"

#include <algorithm>

#include "frontend/tflite/import.h"
#include "ref/ref.h"

namespace skillet::golden {

Result<std::vector<Bytes>> run_reference(const GoldenCase& c) {
  SK_TRY_ASSIGN(const ir::Graph graph, tflite::import_file(c.model_path));
  if (graph.inputs.size() != c.inputs.size())
    return error(ErrorCode::malformed, "{}: {} inputs, case.json has {}", c.model_path, graph.inputs.size(),
                 c.inputs.size());
  SK_TRY_ASSIGN(ref::Interpreter interpreter, ref::Interpreter::create(graph));
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::span<uint8_t> to = interpreter.tensor(graph.inputs[i]);
    if (to.size() != c.inputs[i].bytes.size())
      return error(ErrorCode::malformed, "{}: input {} has {} bytes, case.json says {}", c.model_path, i, to.size(),
                   c.inputs[i].bytes.size());
    std::copy(c.inputs[i].bytes.begin(), c.inputs[i].bytes.end(), to.begin());
  }
  SK_TRY(interpreter.run());
  std::vector<Bytes> outputs;
  for (const ir::TensorId id : graph.outputs) {
    const std::span<uint8_t> bytes = interpreter.tensor(id);
    outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return outputs;
}

LayerReference::LayerReference(const ir::Graph& graph) : graph_(graph) {
  for (const ir::Tensor& tensor : graph.tensors) {
    Bytes& value = values_.emplace_back(tensor.data.begin(), tensor.data.end());
    value.resize(static_cast<size_t>(tensor.bytes()));
  }
}

Result<void> LayerReference::run(ir::OpId op) {
  SK_TRY_ASSIGN(const auto kernel, ref::prepare(graph_, op));
  std::vector<std::span<uint8_t>> spans(values_.begin(), values_.end());
  return kernel->run(spans);
}

}  // namespace skillet::golden
