#include "sim_reference.h"

#include <algorithm>

#include "graph/import/import.h"
#include "graph/ref/ref.h"

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

namespace {

// If the case's inputs were recorded, the outputs must have the recorded hashes.
Result<std::vector<Bytes>> reference_outputs(const ReplayCase& c) {
  SK_TRY_ASSIGN(std::vector<Bytes> outputs, run_reference(c.golden));
  if (outputs.size() != c.golden.outputs.size())
    return error(ErrorCode::malformed, "{} reference outputs, {} recorded", outputs.size(), c.golden.outputs.size());
  for (size_t i = 0; c.inputs_recorded && i < outputs.size(); ++i)
    SK_TRY(
        compare_output(c.golden.outputs[i], outputs[i]).with_context("the reference kernels, against the recording"));
  return outputs;
}

}  // namespace

Result<std::vector<Bytes>> expected_outputs(const ReplayCase& c) {
  std::vector<Bytes> outputs;
  for (const CaseOutput& tensor : c.golden.outputs) {
    if (!tensor.expected) return reference_outputs(c);
    outputs.push_back(*tensor.expected);
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
