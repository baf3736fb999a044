#include "runtime/record_program.h"

#include <algorithm>
#include <map>

#include "runtime/loaded_program.h"
#include "standin/simulated.h"
#include "uapi/device.h"
#include "uapi/recorder.h"

namespace skillet::runtime {
namespace {

constexpr std::chrono::seconds kTimeout{10};

size_t allocated_before(const driver::Program& program, size_t end) {
  const auto is_allocated = [](const driver::Buffer& buffer) { return buffer.role != driver::BufferRole::commands; };
  return static_cast<size_t>(std::ranges::count_if(std::span(program.buffers).first(end), is_allocated));
}

// A graph that the program's bindings agree with: nothing but shapes.
ir::Graph graph_of(const driver::Program& program) {
  ir::Graph graph;
  for (const auto* list : {&program.inputs, &program.outputs, &program.intermediates}) {
    for (const driver::TensorBinding& binding : *list) {
      const auto id = static_cast<size_t>(binding.tensor);
      if (graph.tensors.size() <= id) graph.tensors.resize(id + 1);
      const driver::ImageShape& s = binding.shape;
      const auto dim = [](int64_t value) { return static_cast<int32_t>(value); };
      graph.tensors[id].dtype = s.elem_bytes == 1 ? ir::DType::uint8 : ir::DType::int16;
      graph.tensors[id].shape = ir::Shape{dim(s.images), dim(s.height), dim(s.width), dim(s.channels)};
    }
  }
  for (const driver::TensorBinding& input : program.inputs) graph.inputs.push_back(input.tensor);
  for (const driver::TensorBinding& output : program.outputs) graph.outputs.push_back(output.tensor);
  return graph;
}

// Buffers are allocated in the order of the program, but for commands; the sizes show that it is still so.
Result<RecordedProgram> places_of(const driver::Program& program, const capture::Submission& submission,
                                  size_t first_buffer) {
  RecordedProgram out;
  const auto place = [&](const driver::TensorBinding& binding) -> Result<PlacedTensor> {
    const size_t index = first_buffer + allocated_before(program, binding.buffer);
    if (index >= submission.buffers.size() ||
        submission.buffers[index].size_bytes != program.buffers[binding.buffer].size_bytes)
      return error(ErrorCode::internal, "buffers are not allocated in the order of the program");
    return PlacedTensor{submission.buffers[index].handle, binding.offset_bytes};
  };
  for (const driver::TensorBinding& binding : program.inputs) {
    SK_TRY_ASSIGN(const PlacedTensor tensor, place(binding));
    out.inputs.push_back(tensor);
  }
  for (const driver::TensorBinding& binding : program.outputs) {
    SK_TRY_ASSIGN(const PlacedTensor tensor, place(binding));
    out.outputs.push_back(tensor);
  }
  return out;
}

Result<void> run(LoadedProgram& loaded, const std::vector<Bytes>& inputs) {
  std::map<ir::TensorId, Bytes> memory;
  for (const auto* list : {&loaded.program().inputs, &loaded.program().outputs}) {
    for (const driver::TensorBinding& binding : *list) memory[binding.tensor].resize(binding.shape.bytes());
  }
  const auto& bindings = loaded.program().inputs;
  for (size_t i = 0; i < std::min(inputs.size(), bindings.size()); ++i) memory[bindings[i].tensor] = inputs[i];
  return loaded.run([&](ir::TensorId id) { return std::span(memory.at(id)); });
}

}  // namespace

Result<RecordedPrograms> record_programs(const std::string& chip, std::vector<ProgramToRecord> programs) {
  RecordedPrograms out;
  SK_TRY_ASSIGN(const standin::SimulatedCore null, standin::null_core(chip));
  auto context = std::make_shared<DeviceContext>();
  SK_TRY_ASSIGN(context->device, uapi::open_core(null.core, uapi::record(null.core, null.calls, out.capture)));
  context->chip = chip;
  std::vector<std::unique_ptr<LoadedProgram>> loaded;
  for (ProgramToRecord& one : programs) {
    const ir::Graph graph = one.graph != nullptr ? *one.graph : graph_of(one.program);
    SK_TRY_ASSIGN(auto program, LoadedProgram::load(context, std::move(one.program), graph, kTimeout));
    loaded.push_back(std::move(program));
  }
  for (size_t i = 0; i < loaded.size(); ++i) SK_TRY(run(*loaded[i], programs[i].inputs));
  size_t first_buffer = 0;
  for (const auto& one : loaded) {
    SK_TRY_ASSIGN(RecordedProgram places, places_of(one->program(), out.capture.submissions.back(), first_buffer));
    out.programs.push_back(std::move(places));
    first_buffer += allocated_before(one->program(), one->program().buffers.size());
  }
  return out;
}

}  // namespace skillet::runtime
