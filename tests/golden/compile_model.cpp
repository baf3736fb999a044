#include "compile_model.h"

#include <algorithm>

#include "frontend/tflite/import.h"
#include "passes/passes.h"

namespace skillet::golden {
namespace {

// Without a default, so that the compiler names a value that is missing here.
std::string_view tuning_name(driver::Tuning tuning) {
  switch (tuning) {
    case driver::Tuning::proven: return "proven";
    case driver::Tuning::tuned: return "tuned";
  }
  return "";
}

CompiledPart compile_part(const driver::Driver& driver, const driver::Chip& chip, const ir::Graph& model,
                          passes::Partition& part, const driver::CompileOptions& options) {
  std::vector<int32_t> ops;
  for (const ir::OpId op : part.op_map) ops.push_back(model.op(op).source_index);
  Result<driver::Program> program = driver.compile(chip, part.graph, options);
  std::vector<int32_t> model_inputs;
  for (const ir::TensorId input : part.graph.inputs) {
    const auto at = std::ranges::find(model.inputs, part.tensor_map[static_cast<size_t>(input)]);
    model_inputs.push_back(at == model.inputs.end() ? -1 : static_cast<int32_t>(at - model.inputs.begin()));
  }
  return {std::move(ops), std::move(part.graph), std::move(model_inputs), std::move(program)};
}

}  // namespace

std::vector<NamedTuning> tunings() {
  std::vector<NamedTuning> all;
  for (uint8_t i = 0; !tuning_name(static_cast<driver::Tuning>(i)).empty(); ++i)
    all.push_back({tuning_name(static_cast<driver::Tuning>(i)), static_cast<driver::Tuning>(i)});
  return all;
}

driver::Tuning recorded_tuning() {
  const auto all = tunings();
  const auto recorded = std::ranges::find(all, "recorded", &NamedTuning::name);
  return recorded == all.end() ? driver::Tuning::proven : recorded->tuning;
}

Result<CompiledModel> compile_model(const std::string& path, const driver::Chip& chip,
                                    const driver::CompileOptions& options) {
  SK_TRY_ASSIGN(ir::Graph graph, tflite::import_file(path));
  SK_TRY_ASSIGN(const driver::Driver* driver, driver::driver_of(chip));
  SK_TRY(passes::run_pipeline(graph));
  passes::Partitioning partitioning = passes::partition(graph, driver, chip);
  CompiledModel out{.chip = chip};
  for (size_t i = 0; i < partitioning.support.size(); ++i) {
    if (partitioning.support[i].ok) continue;
    out.refusals.push_back(
        fmt::format("{}: {}", describe_op(graph, static_cast<ir::OpId>(i)), partitioning.support[i].reason));
  }
  for (passes::Partition& part : partitioning.parts) {
    if (part.on_npu) out.parts.push_back(compile_part(*driver, chip, graph, part, options));
  }
  return out;
}

}  // namespace skillet::golden
