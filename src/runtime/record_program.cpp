#include "runtime/record_program.h"

#include <algorithm>
#include <map>

#include "runtime/loaded_program.h"
#include "uapi/device.h"

namespace skillet::runtime {
namespace {

constexpr std::chrono::seconds kTimeout{10};

// A graph that the program's bindings agree with: nothing but sizes.
ir::Graph graph_of(const driver::Program& program) {
  ir::Graph graph;
  for (const auto* list : {&program.inputs, &program.outputs, &program.intermediates}) {
    for (const driver::TensorBinding& binding : *list) {
      const auto id = static_cast<size_t>(binding.tensor);
      if (graph.tensors.size() <= id) graph.tensors.resize(id + 1);
      graph.tensors[id].dtype = ir::DType::uint8;
      graph.tensors[id].shape = ir::Shape{1, static_cast<int32_t>(binding.size_bytes)};
    }
  }
  return graph;
}

// Buffers are allocated in the order of the program; the sizes show that it is still so.
Result<RecordedProgram> places_of(const driver::Program& program, const capture::Submission& submission,
                                  size_t first_buffer) {
  RecordedProgram out;
  const auto place = [&](const driver::TensorBinding& binding) -> Result<PlacedTensor> {
    const size_t index = first_buffer + binding.buffer;
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
  const driver::Program& program = loaded.program();
  std::map<ir::TensorId, Bytes> bytes;
  for (const auto* bindings : {&program.inputs, &program.outputs}) {
    for (const driver::TensorBinding& one : *bindings) bytes[one.tensor].resize(one.size_bytes);
  }
  for (size_t i = 0; i < std::min(inputs.size(), program.inputs.size()); ++i)
    bytes[program.inputs[i].tensor] = inputs[i];
  return loaded.run([&](ir::TensorId id) { return std::span<uint8_t>(bytes.at(id)); });
}

}  // namespace

Result<RecordedPrograms> record_programs(const std::string& chip, std::vector<ProgramToRecord> programs) {
  RecordedPrograms out;
  SK_TRY_ASSIGN(auto device, uapi::open_null(chip));
  auto context = std::make_shared<DeviceContext>();
  context->chip = chip;
  context->device = uapi::record(std::move(device), out.capture);
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
    first_buffer += one->program().buffers.size();
  }
  for (capture::Submission& submission : out.capture.submissions) submission.chip = chip;
  return out;
}

}  // namespace skillet::runtime
