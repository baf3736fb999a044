#include "npus/toy/compiler/encode.h"

#include <algorithm>

namespace skillet::npus::toy {
namespace {

using npu::BufferId;
using npu::BufferRole;

// The buffers of a program: one for each tensor, with the tensor's number, followed by descriptors and commands.
BufferId buffer_of(ir::TensorId tensor) { return static_cast<BufferId>(tensor); }

npu::TensorBinding binding_of(const ir::Graph& graph, ir::TensorId tensor) {
  const npu::ImageShape shape = npu::image_shape(graph.tensor(tensor));
  return {.tensor = tensor, .buffer = buffer_of(tensor), .shape = shape, .layout = npu::planar_layout(shape, hw::kXor)};
}

class Encoder {
 public:
  Encoder(const ir::Graph& graph, npu::Program& program) : graph_(graph), program_(program) {}

  void add_tensors() {
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      const ir::Tensor& tensor = graph_.tensors[i];
      const npu::TensorBinding binding = binding_of(graph_, static_cast<ir::TensorId>(i));
      npu::Buffer& buffer = program_.buffers.emplace_back();
      buffer.name = tensor.name;
      buffer.size_bytes = std::max<uint64_t>(binding.layout.size_bytes, 1);
      if (!tensor.is_constant()) continue;
      Bytes contents(binding.layout.size_bytes);
      npu::store(binding.layout, binding.shape, tensor.data, contents);
      buffer.role = BufferRole::constant;
      buffer.contents = std::move(contents);
    }
  }

  // The chip must be set up once.
  Result<void> add_init_job() {
    SK_TRY_ASSIGN(const npu::ByteRange commands, add_commands({.opcode = hw::Opcode::init}));
    program_.init_jobs.push_back({.name = "init", .commands = {commands}});
    return {};
  }

  Result<void> add_job(const Operation& operation) {
    // An address is a buffer's number until the program is loaded.
    hw::Descriptor fields;
    fields.first.symbol = buffer_of(operation.first);
    fields.second.symbol = buffer_of(operation.second);
    fields.result.symbol = buffer_of(operation.result);
    fields.bytes = operation.elems;
    fields.least = operation.least;
    SK_TRY_ASSIGN(const BufferId descriptor, add_packed("descriptor", BufferRole::constant, fields));
    hw::Command command{.opcode = hw::Opcode::run};
    command.job_address.symbol = descriptor;
    SK_TRY_ASSIGN(const npu::ByteRange commands, add_commands(command));
    program_.operations.push_back({.op = operation.op, .kind = "MAX", .tasks = 1});
    program_.jobs.push_back({.name = graph_.tensor(operation.result).name,
                             .commands = {commands},
                             .uses = uses_of(operation, descriptor),
                             .witness = end_of(operation)});
    return {};
  }

 private:
  // A buffer of the words of one descriptor; its addresses become relocations.
  template <typename T>
  Result<BufferId> add_packed(std::string name, BufferRole role, const T& fields) {
    std::vector<bits::AddressSlot> slots;
    SK_TRY_ASSIGN(const bits::Words<T> words, bits::pack(fields, &slots));
    const auto bytes = as_bytes(std::span<const uint32_t>(words));
    npu::Buffer buffer{.name = std::move(name), .role = role, .size_bytes = bytes.size()};
    buffer.contents = Bytes(bytes.begin(), bytes.end());
    for (const bits::AddressSlot& slot : slots) {
      const bits::Piece piece = slot.row->where.pieces[0];
      buffer.relocations.push_back({.at_byte = piece.word * uint64_t{4},
                                    .target = slot.address.symbol,
                                    .target_offset_bytes = slot.address.offset,
                                    .lsb = piece.lsb,
                                    .width_bits = piece.width,
                                    .shift = static_cast<uint8_t>(slot.row->codec.argument)});
    }
    program_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }

  Result<npu::ByteRange> add_commands(const hw::Command& command) {
    SK_TRY_ASSIGN(const BufferId id, add_packed("commands", BufferRole::commands, command));
    return npu::ByteRange{id, 0, program_.buffers[id].size_bytes};
  }

  static std::vector<npu::BufferUse> uses_of(const Operation& operation, BufferId descriptor) {
    std::vector<npu::BufferUse> uses = {{descriptor, true, false}, {buffer_of(operation.result), false, true}};
    uses.push_back({buffer_of(operation.first), true, false});
    if (operation.second != operation.first) uses.push_back({buffer_of(operation.second), true, false});
    return uses;
  }

  static npu::ByteRange end_of(const Operation& operation) {
    const uint64_t size_bytes = operation.elems, kept_bytes = std::min(size_bytes, npu::kWitnessBytes);
    return {buffer_of(operation.result), size_bytes - kept_bytes, kept_bytes};
  }

  const ir::Graph& graph_;
  npu::Program& program_;
};

}  // namespace

Result<npu::Program> encode(const hw::ChipRow& chip, const ir::Graph& graph, const std::vector<Operation>& operations,
                            const npu::CompileOptions& options) {
  npu::Program program{.chip = std::string(chip.name)};
  program.constant_align = 64;
  Encoder encoder(graph, program);
  encoder.add_tensors();
  SK_TRY(encoder.add_init_job());
  for (const Operation& operation : operations) SK_TRY(encoder.add_job(operation));
  for (const ir::TensorId id : graph.inputs) program.inputs.push_back(binding_of(graph, id));
  for (const ir::TensorId id : graph.outputs) program.outputs.push_back(binding_of(graph, id));
  if (!options.keep_intermediates) return program;
  for (const Operation& operation : operations) program.intermediates.push_back(binding_of(graph, operation.result));
  return program;
}

}  // namespace skillet::npus::toy
