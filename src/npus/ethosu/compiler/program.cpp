#include "npus/ethosu/compiler/program.h"

#include <algorithm>

namespace skillet::npus::ethosu {
namespace {

using npu::BufferId;
using npu::BufferRole;

constexpr uint32_t kConstantAlign = 16;

class Maker {
 public:
  Maker(const hw::ChipRow& chip, const ir::Graph& graph) : graph_(graph) { program_.chip = std::string(chip.name); }

  Result<npu::Program> run() {
    program_.constant_align = kConstantAlign;
    arenas_.resize(graph_.ops.size());
    for (size_t i = 0; i < graph_.ops.size(); ++i) SK_TRY(add_job(static_cast<ir::OpId>(i)));
    SK_TRY(bind_inputs());
    SK_TRY(bind_outputs());
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

  Result<void> add_job(ir::OpId id) {
    const ir::Op& op = graph_.op(id);
    SK_TRY_ASSIGN(const Payload payload, read_payload(graph_.tensor(op.inputs[kCommands]).data));
    npu::Job job{.name = graph_.tensor(op.outputs[0]).name};
    hw::Launch launch{.stream_bytes = static_cast<uint32_t>(payload.stream.size() * 4)};
    const auto use = [&](uint32_t region, BufferId buffer, bool writes) {
      (launch.*hw::kRegionBases[region]).symbol = buffer;
      const auto is_listed = [&](const npu::BufferUse& one) { return one.buffer == buffer; };
      if (std::ranges::none_of(job.uses, is_listed))
        job.uses.push_back({.buffer = buffer, .read = true, .write = writes, .slot = static_cast<uint8_t>(region)});
    };
    const ir::Tensor& constants = graph_.tensor(op.inputs[kConstants]);
    if (!constants.data.empty())
      use(0,
          add_buffer(fmt::format("constants:op{}", id), BufferRole::constant, constants.data.size(),
                     {constants.owner, constants.data}),
          false);
    const BufferId arena = add_arena("arena", id, kArena);
    use(1, arena, true);
    if (op.inputs[kFast] == op.inputs[kArena])
      use(2, arena, true);
    else if (!graph_.tensor(op.inputs[kFast]).data.empty())
      use(2, add_arena("fast", id, kFast), true);
    arenas_[static_cast<size_t>(id)] = arena;
    const BufferId status = add_buffer(fmt::format("status:op{}", id), BufferRole::scratch, hw::kStatusBytes);
    launch.status.symbol = status;
    job.uses.push_back({.buffer = status, .read = false, .write = true, .slot = hw::kRegions - 1});
    job.witness = {status, 0, hw::kStatusBytes};
    const auto stream = as_bytes(std::span<const uint32_t>(payload.stream));
    const BufferId code = add_buffer(fmt::format("stream:op{}", id), BufferRole::constant, stream.size(),
                                     Bytes(stream.begin(), stream.end()));
    launch.stream.symbol = code;
    job.uses.push_back({.buffer = code, .read = true, .write = false, .slot = hw::kRegions - 2});
    SK_TRY_ASSIGN(const BufferId commands, add_commands(id, launch));
    job.commands = {{commands, 0, program_.buffers[commands].size_bytes}};
    program_.jobs.push_back(std::move(job));
    program_.operations.push_back(
        {.op = id, .kind = "Vela program", .macs = 0, .tasks = operations_in(payload.stream)});
    return {};
  }

  BufferId add_arena(std::string_view name, ir::OpId id, size_t operand) {
    const ir::Tensor& tensor = graph_.tensor(graph_.op(id).inputs[operand]);
    return add_buffer(fmt::format("{}:op{}", name, id), BufferRole::scratch, tensor.data.size());
  }

  Result<BufferId> add_commands(ir::OpId id, const hw::Launch& launch) {
    std::vector<bits::AddressSlot> slots;
    SK_TRY_ASSIGN(const bits::Words<hw::Launch> head, bits::pack(launch, &slots));
    Bytes bytes(as_bytes(std::span<const uint32_t>(head)).begin(), as_bytes(std::span<const uint32_t>(head)).end());
    const uint64_t size_bytes = bytes.size();
    const BufferId buffer =
        add_buffer(fmt::format("commands:op{}", id), BufferRole::commands, size_bytes, std::move(bytes));
    for (const bits::AddressSlot& slot : slots) {
      const bits::Piece piece = slot.row->where.pieces[0];
      program_.buffers[buffer].relocations.push_back({.at_byte = piece.word * uint64_t{4},
                                                      .target = slot.address.symbol,
                                                      .target_offset_bytes = 0,
                                                      .lsb = piece.lsb,
                                                      .width_bits = piece.width,
                                                      .shift = 0});
    }
    return buffer;
  }

  static uint32_t operations_in(std::span<const uint32_t> stream) {
    uint32_t count = 0;
    for (size_t at = 0; at < stream.size(); at += hw::words_of_code(hw::code_of(stream[at]))) {
      const uint32_t code = hw::code_of(stream[at]);
      count += code >= hw::OpConv::kAddress && code < hw::OpDmaStart::kAddress ? 1 : 0;
    }
    return count;
  }

  npu::TensorBinding binding_of(ir::TensorId id, ir::OpId op) const {
    const npu::ImageShape shape = npu::image_shape(graph_.tensor(id));
    return {.tensor = id,
            .buffer = arenas_[static_cast<size_t>(op)],
            .offset_bytes = *graph_.tensor(id).planned_at,
            .shape = shape,
            .layout = npu::nhwc_layout(shape)};
  }

  // The operation that reads it. The planned memory of two is not one: what goes from one to the other goes through the
  // host.
  Result<void> bind_inputs() {
    for (const ir::TensorId id : graph_.inputs) {
      std::vector<ir::OpId> readers;
      for (size_t i = 0; i < graph_.ops.size(); ++i) {
        const std::vector<ir::TensorId>& inputs = graph_.ops[i].inputs;
        if (std::find(inputs.begin() + kFirstInput, inputs.end(), id) != inputs.end())
          readers.push_back(static_cast<ir::OpId>(i));
      }
      if (readers.size() != 1)
        return error(ErrorCode::unsupported, "'{}' is an input of {} operations that Vela made; one at a time is taken",
                     graph_.tensor(id).name, readers.size());
      program_.inputs.push_back(binding_of(id, readers[0]));
    }
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      for (size_t k = kFirstInput; k < graph_.ops[i].inputs.size(); ++k)
        SK_TRY(check_from_host(graph_.ops[i].inputs[k]));
    }
    return {};
  }
  Result<void> check_from_host(ir::TensorId id) const {
    if (std::ranges::find(graph_.inputs, id) != graph_.inputs.end()) return {};
    return error(ErrorCode::unsupported, "'{}' goes from one operation that Vela made to another without the host",
                 graph_.tensor(id).name);
  }

  Result<void> bind_outputs() {
    const std::vector<ir::OpId> producer = ir::producers(graph_);
    for (const ir::TensorId id : graph_.outputs) {
      if (producer[static_cast<size_t>(id)] < 0)
        return error(ErrorCode::unsupported, "'{}' is made by no operation", graph_.tensor(id).name);
      program_.outputs.push_back(binding_of(id, producer[static_cast<size_t>(id)]));
    }
    return {};
  }

  const ir::Graph& graph_;
  npu::Program program_;
  std::vector<BufferId> arenas_;  // by operation
};

}  // namespace

Result<npu::Program> make_program(const hw::ChipRow& chip, const ir::Graph& graph, const npu::CompileOptions&) {
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto id = static_cast<ir::OpId>(i);
    if (const npu::Support one = supports(chip, graph, id); !one.ok)
      return error(ErrorCode::unsupported, "{}: {}", ir::describe_op(graph, id), one.reason);
  }
  return Maker(chip, graph).run();
}

}  // namespace skillet::npus::ethosu
