#include "runtime/toy_npu.h"

#include <algorithm>

namespace skillet::runtime {
namespace {

constexpr uint32_t kDescriptorBytes = 24;
constexpr uint8_t kXor = 0x80;

Result<std::span<uint8_t>> operand(const sim::Memory& memory, uint32_t word, uint32_t bytes) {
  if ((word & 0xF) != kToyTag) return error(ErrorCode::malformed, "operand {:#x} has lost its tag", word);
  return memory.at(uint64_t{word >> 4} << 6, bytes, "operand");
}

// `tensor` in a buffer of its own.
driver::TensorBinding binding_of(const ir::Graph& graph, ir::TensorId tensor) {
  const driver::ImageShape shape = driver::image_shape(graph.tensor(tensor));
  return {.tensor = tensor,
          .buffer = static_cast<driver::BufferId>(tensor),
          .shape = shape,
          .layout = driver::planar_layout(shape, kXor)};
}

driver::Relocation operand_address(uint32_t word, ir::TensorId tensor) {
  return {.at_byte = word * 4, .target = static_cast<driver::BufferId>(tensor), .lsb = 4, .width_bits = 26, .shift = 6};
}

// A buffer of these words, and its number.
driver::BufferId add_words(driver::Program& program, std::string name, driver::BufferRole role,
                           std::span<const uint32_t> words, std::vector<driver::Relocation> relocations) {
  const auto bytes = as_bytes(words);
  program.buffers.push_back({.name = std::move(name),
                             .role = role,
                             .size_bytes = bytes.size(),
                             .contents = Bytes(bytes.begin(), bytes.end()),
                             .relocations = std::move(relocations)});
  return static_cast<driver::BufferId>(program.buffers.size() - 1);
}

driver::ByteRange add_commands(driver::Program& program, std::span<const uint32_t> words,
                               std::vector<driver::Relocation> relocations) {
  const auto id = add_words(program, "commands", driver::BufferRole::commands, words, std::move(relocations));
  return {id, 0, words.size() * 4};
}

void add_op(const ir::Graph& graph, const ir::Op& op, driver::Program& program) {
  const ir::TensorId first = op.inputs[0], second = op.inputs.back(), target = op.outputs[0];
  const ir::Tensor& out = graph.tensor(target);
  // RELU is the maximum with the zero point; the clamp is that of MAXIMUM too, where it changes nothing.
  const auto clamp = op.kind == ir::OpKind::relu ? static_cast<uint32_t>(out.quant.zero_point()) : 0U;
  const uint32_t words[] = {kToyTag, kToyTag, kToyTag, static_cast<uint32_t>(out.bytes()), clamp, kToyRun};
  const driver::BufferId descriptor =
      add_words(program, "descriptor", driver::BufferRole::constant, words,
                {operand_address(0, first), operand_address(1, second), operand_address(2, target)});
  driver::Job job{.name = out.name};
  const uint32_t commands[] = {kToyRun, 0};
  job.commands = {add_commands(program, commands, {{.at_byte = 4, .target = descriptor}})};
  job.uses = {{descriptor, true, false}, {static_cast<driver::BufferId>(target), false, true}};
  job.uses.push_back({static_cast<driver::BufferId>(first), true, false});
  if (second != first) job.uses.push_back({static_cast<driver::BufferId>(second), true, false});
  const auto size_bytes = static_cast<uint64_t>(out.bytes()), kept_bytes = std::min(size_bytes, driver::kWitnessBytes);
  job.witness = {static_cast<driver::BufferId>(target), size_bytes - kept_bytes, kept_bytes};
  program.jobs.push_back(std::move(job));
}

}  // namespace

Result<void> ToyChip::execute(std::span<const uint32_t> stream, const sim::Memory& memory) {
  if (stream.size() == 1 && stream[0] == kToyInit) {
    ++state_.init_runs;
    return {};
  }
  if (state_.fault || state_.jobs_to_fault-- == 0) return error(ErrorCode::device, "the toy broke");
  if (stream.size() != 2 || stream[0] != kToyRun) return error(ErrorCode::malformed, "not a toy stream");
  SK_TRY_ASSIGN(const auto descriptor, memory.at(stream[1], kDescriptorBytes, "descriptor"));
  uint32_t words[6];
  std::memcpy(words, descriptor.data(), sizeof words);
  SK_TRY_ASSIGN(const auto first, operand(memory, words[0], words[3]));
  SK_TRY_ASSIGN(const auto second, operand(memory, words[1], words[3]));
  SK_TRY_ASSIGN(const auto target, operand(memory, words[2], words[3]));
  for (size_t i = 0; i < target.size(); ++i) {
    const int larger = std::max(first[i] ^ kXor, second[i] ^ kXor);
    target[i] = static_cast<uint8_t>(std::max(larger, static_cast<int>(words[4])) ^ kXor);
  }
  if (state_.runs++ == state_.wrong_run) ++target[0];
  return {};
}

Result<driver::Chip> ToyDriver::identify(const capture::DeviceInfo&) const { return driver::Chip{.name = "toy"}; }

driver::Support ToyDriver::supports(const driver::Chip&, const ir::Graph& graph, ir::OpId op) const {
  const ir::OpKind kind = graph.op(op).kind;
  if (kind == ir::OpKind::maximum && unproven) return driver::Support::yes_unproven("the toy was never made");
  if (kind == ir::OpKind::relu || kind == ir::OpKind::maximum) return driver::Support::yes();
  return driver::Support::no("the toy has no {}", ir::op_name(graph.op(op)));
}

Result<driver::Program> ToyDriver::compile(const driver::Chip&, const ir::Graph& graph,
                                           const driver::CompileOptions& options) const {
  ++compiled;
  if (refuse_compile) return error(ErrorCode::unsupported, "the toy refuses");
  driver::Program program{.chip = "toy"};
  for (const ir::Tensor& tensor : graph.tensors) {
    program.buffers.push_back({.name = tensor.name, .size_bytes = static_cast<uint64_t>(tensor.bytes())});
    if (!tensor.is_constant()) continue;
    // Constants come in the chip's layout; the tests' ones are the same everywhere, so planar or not is equal.
    program.buffers.back().role = driver::BufferRole::constant;
    Bytes contents(tensor.data.begin(), tensor.data.end());
    for (uint8_t& byte : contents) byte ^= kXor;
    program.buffers.back().contents = std::move(contents);
  }
  const uint32_t init[] = {kToyInit};
  program.init_jobs = {{.name = "init", .commands = {add_commands(program, init, {})}}};
  for (const ir::Op& op : graph.ops) add_op(graph, op, program);
  for (const ir::TensorId id : graph.inputs) program.inputs.push_back(binding_of(graph, id));
  for (const ir::TensorId id : graph.outputs) program.outputs.push_back(binding_of(graph, id));
  if (wrong_binding) program.outputs[0].layout.size_bytes -= 1;
  if (!options.keep_intermediates) return program;
  for (const ir::Op& op : graph.ops) program.intermediates.push_back(binding_of(graph, op.outputs[0]));
  return program;
}

Result<driver::Annotated> ToyDriver::decode(const driver::Chip&, const capture::Submission&) const {
  return error(ErrorCode::unsupported, "toy streams are not decoded");
}

}  // namespace skillet::runtime
