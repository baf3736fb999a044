#include "npus/ethosu/compiler/program.h"

#include <algorithm>

#include "npus/ethosu/compiler/program_maker.h"

namespace skillet::npus::ethosu {
namespace {

// One operation makes one job: each is alone in its part. Memory from an earlier operation is the first input, so that
// the other inputs overwrite it.
class Maker : ProgramMaker {
 public:
  Maker(const hw::ChipRow& chip, const ir::Graph& graph) : ProgramMaker(chip, graph) {}

  Result<npu::Program> run() {
    const auto found = std::ranges::find_if(graph_.ops, is_vela_op);
    SK_TRY(add_vela_job(*found, static_cast<ir::OpId>(found - graph_.ops.begin())));
    for (const ir::TensorId id : graph_.inputs) {
      if (std::find(found->inputs.begin() + kArena, found->inputs.end(), id) == found->inputs.end())
        return error(ErrorCode::unsupported, "'{}' is not an input of Vela's operation", graph_.tensor(id).name);
      program_.inputs.push_back(binding_of(id));
    }
    for (const ir::TensorId id : graph_.outputs) program_.outputs.push_back(binding_of(id));
    return std::move(program_);
  }

 private:
  // supports() has checked that the file's memory is enough for the stream; unused memory is left out.
  Result<void> add_vela_job(const ir::Op& op, ir::OpId id) {
    SK_TRY_ASSIGN(const JobStream stream, job_stream_of(graph_, op));
    const auto size_of = [&](size_t operand) {
      return static_cast<uint64_t>(graph_.tensor(op.inputs[operand]).bytes());
    };
    const ir::Tensor& constants = graph_.tensor(op.inputs[kConstants]);
    add_job(graph_.tensor(op.outputs[0]).name, stream.words, stream.needs, {constants.owner, constants.data},
            size_of(kConstants), size_of(kArena), stream.needs.bytes[kFastRegion] != 0 ? size_of(kFast) : 0);
    program_.operations.push_back({.op = id, .kind = "Vela program", .macs = 0, .tasks = stream.operations});
    return {};
  }

  npu::TensorBinding binding_of(ir::TensorId id) const { return binding_at(id, *graph_.tensor(id).planned_at); }
};

}  // namespace

Result<npu::Program> make_program(const hw::ChipRow& chip, const ir::Graph& graph, const npu::CompileOptions& options) {
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto id = static_cast<ir::OpId>(i);
    if (const npu::Support one = supports(chip, graph, id); !one.ok)
      return error(ErrorCode::unsupported, "{}: {}", ir::describe_op(graph, id), one.reason);
  }
  if (std::ranges::none_of(graph.ops, is_vela_op)) return make_own_program(chip, graph, options);
  return Maker(chip, graph).run();
}

}  // namespace skillet::npus::ethosu
