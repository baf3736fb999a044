// A program of Skillet's own: one job of all operations, whose tensors share an arena.
#include <algorithm>

#include "graph/ir/macs.h"
#include "npus/ethosu/compiler/encode.h"
#include "npus/ethosu/compiler/lower.h"
#include "npus/ethosu/compiler/program_maker.h"
#include "program/memory_plan.h"

namespace skillet::npus::ethosu {
namespace {

constexpr uint64_t kTensorAlign = 16;

class OwnMaker : ProgramMaker {
 public:
  OwnMaker(const hw::ChipRow& chip, const ir::Graph& graph, const npu::CompileOptions& options)
      : ProgramMaker(chip, graph), chip_(chip), options_(options), same_as_(graph.tensors.size()) {
    for (size_t i = 0; i < same_as_.size(); ++i) same_as_[i] = static_cast<ir::TensorId>(i);
  }

  Result<npu::Program> run() {
    for (size_t i = 0; i < graph_.ops.size(); ++i) lower_op(static_cast<ir::OpId>(i));
    place();
    Stream stream = encode(chip_, graph_, operations_, [&](ir::TensorId id) { return offset_of(id); });
    add_witness(stream.words);
    add_command(stream.words, hw::OpStop{.mask = 0xFFFF});
    // Buffers are as large as the kernel counts what the stream uses.
    SK_TRY_ASSIGN(const hw::StreamNeeds needs, hw::needs_of(stream.words));
    const uint64_t constant_bytes = std::max<uint64_t>(needs.bytes[kConstantsRegion], stream.constants.size());
    add_job(graph_.name, stream.words, needs, std::move(stream.constants), constant_bytes,
            std::max(needs.bytes[kArenaRegion], plan_.size_bytes));
    for (const ir::TensorId id : graph_.inputs) program_.inputs.push_back(binding_of(id));
    for (const ir::TensorId id : graph_.outputs) program_.outputs.push_back(binding_of(id));
    if (!options_.keep_intermediates) return std::move(program_);
    for (const ir::Op& op : graph_.ops)
      for (const ir::TensorId id : op.outputs) program_.intermediates.push_back(binding_of(id));
    return std::move(program_);
  }

 private:
  // supports() has taken it.
  void lower_op(ir::OpId id) {
    const ir::Op& op = graph_.op(id);
    Lowered lowered = lower(graph_, id);
    const auto root = [&](ir::TensorId tensor) { return same_as_[static_cast<size_t>(tensor)]; };
    if (lowered.is_same_memory) same_as_[static_cast<size_t>(op.outputs[0])] = root(op.inputs[0]);
    if (!lowered.operations.empty())
      program_.operations.push_back({.op = id,
                                     .kind = std::string(ir::op_name(op)),
                                     .macs = ir::op_macs(graph_, id),
                                     .tasks = static_cast<uint32_t>(lowered.operations.size())});
    for (Operation& one : lowered.operations) operations_.push_back(std::move(one));
  }

  // When each tensor is needed, by operations of the graph. Kept ones, and what is given and returned, have bytes that
  // nobody else writes from or to then.
  void place() {
    std::vector<npu::Lifetime> lifetimes;
    lifetime_of_.assign(graph_.tensors.size(), kNone);
    const auto last = static_cast<uint32_t>(graph_.ops.size());
    const auto need = [&](ir::TensorId id, uint32_t step) {
      if (id == ir::kNoTensor || graph_.tensor(id).is_constant()) return;
      const ir::TensorId root = same_as_[static_cast<size_t>(id)];
      size_t& at = lifetime_of_[static_cast<size_t>(root)];
      const auto size = static_cast<uint64_t>(graph_.tensor(root).bytes());
      if (at == kNone) {
        at = lifetimes.size();
        lifetimes.push_back({.size_bytes = size, .first = step, .last = step});
      }
      lifetimes[at].first = std::min(lifetimes[at].first, step),
      lifetimes[at].last = std::max(lifetimes[at].last, step);
    };
    for (const ir::TensorId id : graph_.inputs) need(id, 0);
    for (uint32_t step = 0; step < last; ++step) {
      const ir::Op& op = graph_.ops[step];
      for (const ir::TensorId id : op.inputs) need(id, step);
      for (const ir::TensorId id : op.outputs) need(id, options_.keep_intermediates ? 0 : step), need(id, step);
      if (!options_.keep_intermediates) continue;
      for (const ir::TensorId id : op.outputs) need(id, last);
    }
    if (options_.keep_intermediates)
      for (const ir::TensorId id : graph_.inputs) need(id, last);
    for (const ir::TensorId id : graph_.outputs) need(id, last);
    plan_ = npu::plan_memory(lifetimes, kTensorAlign);
  }
  uint64_t offset_of(ir::TensorId id) const {
    const size_t at = lifetime_of_[static_cast<size_t>(same_as_[static_cast<size_t>(id)])];
    return at == kNone ? 0 : plan_.offsets[at];
  }

  npu::TensorBinding binding_of(ir::TensorId id) const { return binding_at(id, offset_of(id)); }

  static constexpr size_t kNone = SIZE_MAX;

  const hw::ChipRow& chip_;
  const npu::CompileOptions& options_;
  std::vector<Operation> operations_;
  std::vector<ir::TensorId> same_as_;  // by tensor: whose bytes it has
  std::vector<size_t> lifetime_of_;    // by tensor that is itself
  npu::MemoryPlan plan_;
};

}  // namespace

Result<npu::Program> make_own_program(const hw::ChipRow& chip, const ir::Graph& graph,
                                      const npu::CompileOptions& options) {
  return OwnMaker(chip, graph, options).run();
}

}  // namespace skillet::npus::ethosu
