#include "npus/ethosu/compiler/program.h"

#include <algorithm>

#include "npus/ethosu/compiler/job_stream.h"

namespace skillet::npus::ethosu {
namespace {

using npu::BufferId;
using npu::BufferRole;

// One operation makes one job: each is alone in its part. Memory that an earlier one left comes first of the inputs, so
// that the others are written over it.
class Maker {
 public:
  Maker(const hw::ChipRow& chip, const ir::Graph& graph) : graph_(graph) { program_.chip = std::string(chip.name); }

  Result<npu::Program> run() {
    const auto found = std::ranges::find_if(graph_.ops, is_vela_op);
    SK_TRY(add_job(*found, static_cast<ir::OpId>(found - graph_.ops.begin())));
    for (const ir::TensorId id : graph_.inputs) {
      if (std::find(found->inputs.begin() + kArena, found->inputs.end(), id) == found->inputs.end())
        return error(ErrorCode::unsupported, "'{}' is no input of what Vela made", graph_.tensor(id).name);
      program_.inputs.push_back(binding_of(id));
    }
    for (const ir::TensorId id : graph_.outputs) program_.outputs.push_back(binding_of(id));
    return std::move(program_);
  }

 private:
  BufferId add_buffer(std::string name, BufferRole role, uint64_t size_bytes, SharedBytes contents = {}) {
    program_.buffers.push_back({.name = std::move(name),
                                .role = role,
                                .size_bytes = size_bytes,
                                .contents = std::move(contents),
                                .relocations = {}});
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }

  // supports() has seen that the memory of the file is enough for the stream; what it does not use is not there.
  Result<void> add_job(const ir::Op& op, ir::OpId id) {
    SK_TRY_ASSIGN(const JobStream stream, job_stream_of(graph_, op));
    npu::Job job{.name = graph_.tensor(op.outputs[0]).name};
    const auto use = [&](uint8_t region, BufferId buffer) {
      job.uses.push_back({.buffer = buffer, .read = true, .write = stream.needs.writes[region], .slot = region});
    };
    const auto size_of = [&](size_t operand) {
      return static_cast<uint64_t>(graph_.tensor(op.inputs[operand]).bytes());
    };
    const ir::Tensor& constants = graph_.tensor(op.inputs[kConstants]);
    if (stream.needs.bytes[kConstantsRegion] != 0)
      use(kConstantsRegion,
          add_buffer("constants", BufferRole::constant, size_of(kConstants), {constants.owner, constants.data}));
    arena_ = add_buffer("arena", BufferRole::scratch, size_of(kArena));
    use(kArenaRegion, arena_);
    if (stream.needs.bytes[kFastRegion] != 0) job.sram_bytes = size_of(kFast);
    const BufferId witness = add_buffer("witness", BufferRole::scratch, npu::kWitnessBytes);
    use(kWitnessRegion, witness);
    job.witness = {witness, 0, npu::kWitnessBytes};
    const auto words = as_bytes(std::span<const uint32_t>(stream.words));
    const BufferId commands =
        add_buffer("commands", BufferRole::commands, words.size(), Bytes(words.begin(), words.end()));
    job.commands = {{commands, 0, words.size()}};
    program_.jobs.push_back(std::move(job));
    program_.operations.push_back({.op = id, .kind = "Vela program", .macs = 0, .tasks = stream.operations});
    return {};
  }

  npu::TensorBinding binding_of(ir::TensorId id) const {
    const npu::ImageShape shape = npu::image_shape(graph_.tensor(id));
    return {.tensor = id,
            .buffer = arena_,
            .offset_bytes = *graph_.tensor(id).planned_at,
            .shape = shape,
            .layout = npu::nhwc_layout(shape)};
  }

  const ir::Graph& graph_;
  npu::Program program_;
  BufferId arena_ = 0;
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
