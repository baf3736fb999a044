#include "npus/ethosu/compiler/support.h"

#include <algorithm>

#include "npus/ethosu/compiler/job_stream.h"
#include "npus/ethosu/compiler/lower.h"
#include "npus/ethosu/compiler/tile.h"

namespace skillet::npus::ethosu {
namespace {

using npu::Remedy;
using npu::Support;

constexpr std::string_view kVelaOp = "ethos-u";

#define QUESTION(number, row)
#define NO_ROW(number, why)
enum class Name : uint8_t {
#define ASSUMPTION(name, ...) name,
#include "npus/ethosu/compiler/assumptions.def"
#undef ASSUMPTION
};
constexpr std::array kAssumptions = {
#define ASSUMPTION(name, what, sections, probe) npu::Assumption{#name, what, sections, probe},
#include "npus/ethosu/compiler/assumptions.def"
#undef ASSUMPTION
};
#undef QUESTION
#undef NO_ROW
constexpr std::pair<ir::OpKind, Name> kNamed[] = {{ir::OpKind::softmax, Name::words},
                                                  {ir::OpKind::transpose_conv, Name::transposed},
                                                  {ir::OpKind::resize_bilinear, Name::enlarged},
                                                  {ir::OpKind::resize_nearest_neighbor, Name::enlarged},
                                                  {ir::OpKind::mean, Name::ones}};
const npu::Assumption* row_of(Name name) { return &kAssumptions[static_cast<size_t>(name)]; }

Support for_another_chip(const hw::ChipRow& chip, const hw::PayloadConfig& config) {
  return Support::no(Remedy::vendor_compiler, "it was compiled for {}; this chip is an {}",
                     accelerator_of(config, hw::find_configuration(config)), chip.accelerator);
}

// Checks that an input or output is within the arena.
Support in_arena(const ir::Graph& graph, ir::TensorId id, uint64_t arena_bytes) {
  const ir::Tensor& tensor = graph.tensor(id);
  if (!tensor.planned_at)
    return Support::no(Remedy::vendor_compiler, "the file lacks the place of '{}' in memory (OfflineMemoryAllocation)",
                       tensor.name);
  const auto size = static_cast<uint64_t>(tensor.bytes());
  if (size == 0 || size > arena_bytes || *tensor.planned_at > arena_bytes - size)
    return Support::no(Remedy::vendor_compiler, "'{}', {} bytes at {}, is outside its memory of {} bytes", tensor.name,
                       size, *tensor.planned_at, arena_bytes);
  return Support::yes();
}

}  // namespace

bool is_vela_op(const ir::Op& op) { return op.kind == ir::OpKind::opaque && op.opaque_name == kVelaOp; }

std::string accelerator_of(const hw::PayloadConfig& config, const hw::ChipRow* made_for) {
  if (made_for != nullptr) return std::string(made_for->accelerator);
  return fmt::format("another accelerator ({} multiply-adds a cycle of product {})", uint64_t{1} << config.macs_log2,
                     static_cast<int>(config.product));
}

namespace {

// Operations that Skillet compiles itself: everything that the chip computes in blocks that fit in its SHRAM.
Support supports_own(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  if (chip.generation() == hw::Generation::u85)
    return Support::no(Remedy::vendor_compiler,
                       "Skillet compiles for Ethos-U55 and U65; for this chip use Arm's compiler Vela");
  const ir::Op& op = graph.op(id);
  for (const auto* operands : {&op.inputs, &op.outputs})
    for (const ir::TensorId tensor : *operands)
      if (tensor != ir::kNoTensor && graph.tensor(tensor).is_variable)
        return Support::no(Remedy::none, "'{}' keeps its value between runs", graph.tensor(tensor).name);
  const Lowered lowered = lower(graph, id);
  if (!lowered.support.ok) return lowered.support;
  for (const Operation& one : lowered.operations) {
    const Map& out = one.output;
    if (std::max({out.height, out.width, out.depth, one.input.height, one.input.width}) > kExtentMax ||
        !has_tile(chip, one))
      return Support::no(Remedy::split, "{}x{}x{} with a window of {}x{} is too large for the chip's buffers",
                         out.height, out.width, out.depth, one.window.kernel_h, one.window.kernel_w);
  }
  Support taken = Support::yes();
  taken.stands_on = {row_of(Name::own_streams)};
  const bool is_sum = op.kind == ir::OpKind::add || op.kind == ir::OpKind::sub;
  if (is_sum && graph.tensor(op.inputs[0]).quant.scale() == graph.tensor(op.inputs[1]).quant.scale())
    taken.stands_on.push_back(row_of(Name::equal_scales));
  for (const auto& [kind, name] : kNamed)
    if (op.kind == kind) taken.stands_on.push_back(row_of(name));
  if (std::ranges::any_of(lowered.operations, &Operation::is_wide)) taken.stands_on.push_back(row_of(Name::wide));
  return taken;
}

Support supports_vela(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (op.inputs.size() <= kFirstInput || op.outputs.empty())
    return Support::no(Remedy::vendor_compiler, "it has {} operands and {} results; Vela makes 5 and 1 or more",
                       op.inputs.size(), op.outputs.size());
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const bool is_given = i >= kFirstInput;
    const ir::TensorId tensor = op.inputs[i];
    if (tensor == ir::kNoTensor || (!is_given && tensor != op.inputs[kArena] && !graph.tensor(tensor).is_constant()))
      return Support::no(Remedy::vendor_compiler, "its operand {} is missing", i);
    if (is_given && graph.tensor(tensor).is_constant())
      return Support::no(Remedy::vendor_compiler, "its operand {}, '{}', is a constant instead of an input", i,
                         graph.tensor(tensor).name);
  }
  const auto shares_memory = [&](const ir::Op& other) {
    return is_vela_op(other) && other.inputs.size() > kArena && other.inputs[kArena] == op.inputs[kArena];
  };
  if (std::ranges::count_if(graph.ops, shares_memory) > 1)
    return Support::no(
        Remedy::vendor_compiler,
        "Vela compiled the network in several parts that share values in memory, which is not supported");
  const auto payload = read_payload(graph.tensor(op.inputs[kCommands]).data);
  if (!payload.ok()) return Support::no(Remedy::vendor_compiler, "{}", payload.error().message);
  const hw::PayloadConfig& config = payload->config;
  if (!chip.has(config)) return for_another_chip(chip, config);
  if (!hw::is_known(config))
    return Support::no(Remedy::vendor_compiler,
                       "it was compiled for command version {}, architecture {}.{}{}, which is not supported",
                       config.stream_version, config.arch_major, config.arch_minor,
                       config.custom_dma ? " and a DMA unit of the vendor" : "");
  const auto stream = job_stream_of(graph, op);
  if (!stream.ok())
    return Support::no(Remedy::none, "Linux's driver does not accept its commands: {}", stream.error().message);
  for (const auto& [region, operand] :
       {std::pair(kConstantsRegion, kConstants), {kArenaRegion, kArena}, {kFastRegion, kFast}}) {
    const auto size = static_cast<uint64_t>(graph.tensor(op.inputs[operand]).bytes());
    if (stream->needs.bytes[region] > size)
      return Support::no(Remedy::vendor_compiler, "its commands use {} bytes of region {}, but the file has {} for it",
                         stream->needs.bytes[region], region, size);
  }
  const auto arena_bytes = static_cast<uint64_t>(graph.tensor(op.inputs[kArena]).bytes());
  std::vector<ir::TensorId> moved(op.inputs.begin() + kFirstInput, op.inputs.end());
  moved.insert(moved.end(), op.outputs.begin(), op.outputs.end());
  for (const ir::TensorId tensor : moved) {
    if (Support one = in_arena(graph, tensor, arena_bytes); !one.ok) return one;
  }
  Support taken = Support::yes();
  taken.alone = true;  // other operations may need its results in memory, where its own inputs go
  return taken;
}

}  // namespace

std::span<const npu::Assumption> assumptions() { return kAssumptions; }

Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  return is_vela_op(graph.op(id)) ? supports_vela(chip, graph, id) : supports_own(chip, graph, id);
}

}  // namespace skillet::npus::ethosu
