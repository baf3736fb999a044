#include "compile_model.h"

#include <algorithm>

#include "base/log.h"
#include "compile/report.h"
#include "graph/import/import.h"

namespace skillet::golden {
namespace {

CompiledPart from_part(const ir::Graph& model, compile::Part& part) {
  passes::Partition& partition = part.partition;
  CompiledPart out;
  for (const ir::OpId op : partition.op_map) out.ops.push_back(model.op(op).source_index);
  for (const ir::TensorId input : partition.graph.inputs) {
    const auto at = std::ranges::find(model.inputs, partition.tensor_map[static_cast<size_t>(input)]);
    out.model_inputs.push_back(at == model.inputs.end() ? -1 : static_cast<int32_t>(at - model.inputs.begin()));
  }
  out.graph = std::move(partition.graph);
  out.program = std::move(*part.program);
  return out;
}

}  // namespace

Result<CompiledModel> compile_model(const std::string& path, const npu::Chip& chip,
                                    const npu::CompileOptions& options) {
  SK_TRY_ASSIGN(ir::Graph graph, tflite::import_file(path));
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  // With `recorded`, a driver refuses what the recorded one does; otherwise a failure to compile is an error.
  compile::Options all{.driver = options, .leave_out = options.tuning == npu::Tuning::recorded};
  all.driver.unproven = npu::Unproven::take;
  const log::ScopedLevel quiet(all.leave_out ? std::optional(log::Level::error) : std::nullopt);  // a warning each
  SK_TRY_ASSIGN(compile::Compiled compiled, compile::compile(std::move(graph), {driver, chip}, all));
  CompiledModel out{.chip = chip};
  for (const compile::OpRow& row : compile::rows(compiled)) {
    if (!row.on_npu) out.refusals.push_back(fmt::format("{}: {}", describe_op(compiled.graph, row.op), row.why));
  }
  for (compile::Part& part : compiled.parts) {
    if (part.program) out.parts.push_back(from_part(compiled.graph, part));
  }
  return out;
}

}  // namespace skillet::golden
