#include "runtime/record_program.h"

#include <algorithm>
#include <map>

#include "kernels/api/device.h"
#include "kernels/api/recorder.h"
#include "kernels/fake/simulated.h"
#include "runtime/loaded_program.h"

namespace skillet::runtime {
namespace {

constexpr std::chrono::seconds kTimeout{10};

// A graph that matches the program's bindings: only shapes.
ir::Graph graph_of(const npu::Program& program) {
  ir::Graph graph;
  for (const auto* list : {&program.inputs, &program.outputs, &program.intermediates}) {
    for (const npu::TensorBinding& binding : *list) {
      const auto id = static_cast<size_t>(binding.tensor);
      if (graph.tensors.size() <= id) graph.tensors.resize(id + 1);
      const npu::ImageShape& s = binding.shape;
      const auto dim = [](int64_t value) { return static_cast<int32_t>(value); };
      graph.tensors[id].dtype = s.elem_bytes == 1 ? ir::DType::uint8 : ir::DType::int16;
      graph.tensors[id].shape = ir::Shape{dim(s.images), dim(s.height), dim(s.width), dim(s.channels)};
    }
  }
  for (const npu::TensorBinding& input : program.inputs) graph.inputs.push_back(input.tensor);
  for (const npu::TensorBinding& output : program.outputs) graph.outputs.push_back(output.tensor);
  return graph;
}

RecordedProgram places_of(const LoadedProgram& loaded) {
  RecordedProgram out;
  for (const npu::TensorBinding& one : loaded.program().inputs)
    out.inputs.push_back({loaded.handle(one.buffer), one.offset_bytes});
  for (const npu::TensorBinding& one : loaded.program().outputs)
    out.outputs.push_back({loaded.handle(one.buffer), one.offset_bytes});
  return out;
}

Result<void> run(LoadedProgram& loaded, const std::vector<Bytes>& inputs) {
  std::map<ir::TensorId, Bytes> memory;
  for (const auto* list : {&loaded.program().inputs, &loaded.program().outputs}) {
    for (const npu::TensorBinding& binding : *list) memory[binding.tensor].resize(binding.shape.bytes());
  }
  const auto& bindings = loaded.program().inputs;
  for (size_t i = 0; i < std::min(inputs.size(), bindings.size()); ++i) memory[bindings[i].tensor] = inputs[i];
  return loaded.run([&](ir::TensorId id) { return std::span(memory.at(id)); });
}

}  // namespace

Result<RecordedPrograms> record_programs(const std::string& chip, std::vector<ProgramToRecord> programs) {
  RecordedPrograms out;
  SK_TRY_ASSIGN(const fake::SimulatedCore null, fake::null_core(chip));
  auto context = std::make_shared<DeviceContext>();
  SK_TRY_ASSIGN(context->device, kernels::open_core(null.core, kernels::record(null.core, null.calls, out.capture)));
  context->chip = chip;
  std::vector<std::unique_ptr<LoadedProgram>> loaded;
  for (ProgramToRecord& one : programs) {
    const ir::Graph graph = one.graph != nullptr ? *one.graph : graph_of(one.program);
    SK_TRY_INTO(loaded.emplace_back(), LoadedProgram::load(context, std::move(one.program), graph, kTimeout));
  }
  for (size_t i = 0; i < loaded.size(); ++i) SK_TRY(run(*loaded[i], programs[i].inputs));
  for (const auto& one : loaded) out.programs.push_back(places_of(*one));
  return out;
}

}  // namespace skillet::runtime
