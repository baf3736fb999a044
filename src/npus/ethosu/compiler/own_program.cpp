// A program of Skillet's own: one job with all operations, whose tensors share an arena.
#include <algorithm>
#include <vector>

#include "base/int_math.h"
#include "graph/ir/macs.h"
#include "npus/ethosu/compiler/cascade.h"
#include "npus/ethosu/compiler/encode.h"
#include "npus/ethosu/compiler/lower.h"
#include "npus/ethosu/compiler/operations.h"
#include "npus/ethosu/compiler/placement.h"
#include "npus/ethosu/compiler/program_maker.h"
#include "npus/ethosu/compiler/register_use.h"
#include "npus/ethosu/compiler/tile.h"

namespace skillet::npus::ethosu {
namespace {

constexpr uint64_t kSliceBytes = 96 * 1024;           // of weights: two slices and tensors share on-chip memory
constexpr uint64_t kWholeBytes = kFastBytes / 4 * 3;  // weights and tensors up to this size stay whole

// Channels of a slice, in whole blocks. All channels: nothing to slice, or no gain because weights are read only once.
uint32_t slice_depth(const hw::ChipRow& chip, const Operation& one) {
  const Map &in = one.input, &out = one.output;
  const uint64_t bytes = uint64_t{one.window.kernel_h} * one.window.kernel_w * in.depth * out.depth;
  const uint64_t tensors = uint64_t{in.height} * in.width * in.depth + uint64_t{out.height} * out.width * out.depth;
  if (one.unit != Unit::conv || one.filter_by_tap || one.table || bytes + tensors <= kWholeBytes) return out.depth;
  const Tile tile = tile_of(chip, one).value();
  if (out.height <= tile.height && out.width <= tile.width) return out.depth;
  const auto count = static_cast<uint32_t>(ceil_div(bytes, kSliceBytes));
  return std::min(align_up(ceil_div(out.depth, count), align_up(tile.depth, kBrick)), out.depth);
}

Operation part_of(const Operation& whole, uint32_t first, uint32_t depth) {
  Operation part = whole;
  part.output.all_channels = whole.output.depth, part.output.first_channel = first;
  take_channels(first, depth, part);
  return part;
}

// Convolutions with more weights than fit in on-chip memory, in slices of output channels: the weights of a slice are
// copied to on-chip memory while the previous slice runs. Only for chips with such memory.
std::vector<Operation> slice(const hw::ChipRow& chip, std::vector<Operation> operations) {
  if (!has_fast_memory(chip)) return operations;
  std::vector<bool> is_striped(operations.size());
  for (size_t i = 0; i < operations.size(); ++i)
    if (const auto& other = operations[i].weights_of) is_striped[i] = is_striped[*other] = true;
  std::vector<Operation> out;
  std::vector<size_t> at;  // by index of the given operations
  for (size_t i = 0; i < operations.size(); ++i) {
    Operation& one = operations[i];
    at.push_back(out.size());
    if (one.weights_of) one.weights_of = at[*one.weights_of];
    const uint32_t all = one.output.depth, depth = is_striped[i] ? all : slice_depth(chip, one);
    if (depth == all) {
      out.push_back(std::move(one));
      continue;
    }
    for (uint32_t first = 0; first < all; first += depth)
      out.push_back(part_of(one, first, std::min(depth, all - first)));
  }
  return out;
}

class OwnMaker : ProgramMaker {
 public:
  OwnMaker(const hw::ChipRow& chip, const ir::Graph& graph, const npu::CompileOptions& options)
      : ProgramMaker(chip, graph), chip_(chip), options_(options), same_as_(graph.tensors.size()) {
    for (size_t i = 0; i < same_as_.size(); ++i) same_as_[i] = static_cast<ir::TensorId>(i);
  }

  Result<npu::Program> run() {
    for (size_t i = 0; i < graph_.ops.size(); ++i) lower_op(static_cast<ir::OpId>(i));
    std::vector<uint32_t> rows(same_as_.size());
    if (!options_.keep_intermediates) {
      Cascaded cascaded = cascade(chip_, graph_, std::move(operations_), same_as_);
      operations_ = slice(chip_, std::move(cascaded.operations)), rows = std::move(cascaded.rows);
    }
    list_operations();
    std::vector<Coded> coded;
    for (const Operation& one : operations_)
      coded.push_back(one.weights_of ? coded[*one.weights_of].of_stripe() : code_of(chip_, graph_, one));
    placement_ = place(chip_, graph_, operations_, rows, coded, same_as_, scratch_bytes_, options_.keep_intermediates);
    Stream stream = encode(chip_, graph_, operations_, coded, placement_);
    add_witness(stream.words);
    add_command(stream.words, hw::OpStop{.mask = 0xFFFF});
    // Buffers have the size that the kernel computes from the stream.
    SK_TRY_ASSIGN(const hw::StreamNeeds needs, hw::needs_of(stream.words));
    const uint64_t constant_bytes = std::max<uint64_t>(needs.bytes[kConstantsRegion], stream.constants.size());
    add_job(graph_.name, stream.words, needs, std::move(stream.constants), constant_bytes,
            std::max(needs.bytes[kArenaRegion], placement_.arena_bytes),
            needs.bytes[kFastRegion] == 0 ? 0 : std::max(needs.bytes[kFastRegion], placement_.fast_bytes));
    add_debug_map(stream);
    for (const ir::TensorId id : graph_.inputs) program_.inputs.push_back(binding_of(id));
    for (const ir::TensorId id : graph_.outputs) program_.outputs.push_back(binding_of(id));
    if (!options_.keep_intermediates) return std::move(program_);
    for (const ir::Op& op : graph_.ops)
      for (const ir::TensorId id : op.outputs) program_.intermediates.push_back(binding_of(id));
    return std::move(program_);
  }

 private:
  // supports() has accepted it.
  void lower_op(ir::OpId id) {
    const ir::Op& op = graph_.op(id);
    Lowered lowered = lower(graph_, id);
    const auto root = [&](ir::TensorId tensor) { return same_as_[static_cast<size_t>(tensor)]; };
    if (lowered.is_same_memory) same_as_[static_cast<size_t>(op.outputs[0])] = root(op.inputs[0]);
    const auto first = static_cast<ir::TensorId>(scratch_bytes_.size());
    for (const uint64_t bytes : lowered.scratch_bytes) {
      scratch_bytes_.push_back(bytes);
      same_as_.push_back(static_cast<ir::TensorId>(same_as_.size()));
    }
    for (Operation& one : lowered.operations) {
      for (Map* map : {&one.input, &one.input2, &one.output})
        if (map->tensor >= static_cast<ir::TensorId>(graph_.tensors.size())) map->tensor += first;
      operations_.push_back(std::move(one));
    }
  }

  // Adds an entry for each command that starts a unit. The copy of the completion marker belongs to no operation.
  void add_debug_map(const Stream& stream) {
    const BufferId commands = program_.jobs.back().commands.front().buffer;
    size_t next = 0;
    uint32_t count = 0;
    for (uint32_t word = 0; word < stream.words.size(); word += count) {
      const uint32_t code = hw::code_of(stream.words[word]);
      count = hw::words_of_code(code);
      if (operation_of(code) == 0) continue;
      const bool is_listed = next < stream.starts.size() && stream.starts[next].word == word;
      const int32_t operation = is_listed ? listed_[stream.starts[next++].operation] : -1;
      program_.debug_map.push_back({commands, word * 4, count * 4, hw::commands().find(code)->name, operation});
    }
  }

  // Stripes of several operations alternate, so an operation can be listed more than once.
  void list_operations() {
    std::vector<bool> is_listed(graph_.ops.size());
    for (const Operation& one : operations_) {
      auto& list = program_.operations;
      if (list.empty() || list.back().op != one.op) {
        const bool is_first = !is_listed[static_cast<size_t>(one.op)];
        is_listed[static_cast<size_t>(one.op)] = true;
        list.push_back({.op = one.op,
                        .kind = std::string(ir::op_name(graph_.op(one.op))),
                        .macs = is_first ? ir::op_macs(graph_, one.op) : 0,
                        .tasks = 0});
      }
      ++list.back().tasks;
      listed_.push_back(static_cast<int32_t>(list.size()) - 1);
    }
  }

  npu::TensorBinding binding_of(ir::TensorId id) const {
    return binding_at(id, placement_.tensors[static_cast<size_t>(id)].offset);
  }

  const hw::ChipRow& chip_;
  const npu::CompileOptions& options_;
  std::vector<Operation> operations_;
  std::vector<int32_t> listed_;          // by operation: its index in Program::operations
  std::vector<ir::TensorId> same_as_;    // by tensor: the tensor whose bytes it has
  std::vector<uint64_t> scratch_bytes_;  // of tensors after the graph's
  Placement placement_;
};

}  // namespace

Result<npu::Program> make_own_program(const hw::ChipRow& chip, const ir::Graph& graph,
                                      const npu::CompileOptions& options) {
  return OwnMaker(chip, graph, options).run();
}

}  // namespace skillet::npus::ethosu
