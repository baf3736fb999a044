#include "npus/ethosu/compiler/placement.h"

#include <algorithm>

#include "base/int_math.h"
#include "npus/ethosu/compiler/job_stream.h"
#include "npus/ethosu/compiler/lower.h"
#include "program/memory_plan.h"

namespace skillet::npus::ethosu {
namespace {

constexpr uint64_t kAlign = 16;
constexpr uint32_t kAhead = 2;      // operations before the operation whose weights are copied that may still run
constexpr uint32_t kPaddedMax = 3;  // at most a third more bytes than without bricks

// A candidate for fast memory.
struct Item {
  npu::Lifetime lifetime;
  double saved_bytes = 0;  // traffic saved on the other memory
  size_t index = 0;        // index of a tensor or an operation
  bool is_weights = false;

  double worth() const {
    return saved_bytes / (static_cast<double>(lifetime.size_bytes) * (lifetime.last - lifetime.first + 1));
  }
};

class Planner {
 public:
  Planner(const hw::ChipRow& chip, const ir::Graph& graph, std::span<const Operation> operations,
          std::span<const uint32_t> rows, std::span<const Coded> coded, std::span<const ir::TensorId> same_as,
          std::span<const uint64_t> scratch, bool keeps)
      : graph_(graph),
        operations_(operations),
        rows_(rows),
        coded_(coded),
        same_as_(same_as),
        keeps_(keeps),
        has_fast_memory_(has_fast_memory(chip)),
        end_(static_cast<uint32_t>(operations.size())),
        uses_(same_as.size()),
        scratch_(scratch) {}

  Placement run() {
    find_uses();
    choose_bricks();
    out_.tensors.resize(uses_.size());
    out_.weights.resize(operations_.size());
    std::vector<Item> arena, maybe;
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (uses_[i].is_used) (has_fast_memory_ && !uses_[i].is_fixed ? maybe : arena).push_back(tensor_item(i));
    }
    if (!keeps_)
      for (size_t i = 0; i < operations_.size(); ++i)
        if (has_weights(operations_[i].unit) && !operations_[i].weights_of) maybe.push_back(weights_item(i));
    if (has_fast_memory_) {
      std::vector<Item> fast;
      out_.fast_bytes = fill(kFastRegion, fast, std::move(maybe), kFastBytes, arena);
      std::vector<Item> none;
      out_.arena_bytes = fill(kArenaRegion, arena, {}, UINT64_MAX, none);
    } else {
      std::vector<Item> left;
      const uint64_t most = plan_of(arena).size_bytes;
      out_.arena_bytes = fill(kArenaRegion, arena, std::move(maybe), most, left);
    }
    for (size_t i = 0; i < operations_.size(); ++i)
      if (const auto& other = operations_[i].weights_of) out_.weights[i] = out_.weights[*other];
    for (size_t i = 0; i < same_as_.size(); ++i) out_.tensors[i] = out_.tensors[static_cast<size_t>(same_as_[i])];
    return std::move(out_);
  }

 private:
  struct Use {
    bool is_used = false, is_fixed = false;  // is_fixed: the host accesses its bytes too
    uint32_t first = 0, last = 0;
    double moved = 0;  // how many times it is read or written as a whole
    bool is_bricks = false;
  };

  size_t root(ir::TensorId id) const { return static_cast<size_t>(same_as_[static_cast<size_t>(id)]); }
  bool is_scratch(size_t index) const { return index >= graph_.tensors.size(); }
  bool is_placed(ir::TensorId id) const {
    return id != ir::kNoTensor && (is_scratch(static_cast<size_t>(id)) || !graph_.tensor(id).is_constant());
  }

  void need(ir::TensorId id, uint32_t step, double moved = 0) {
    if (!is_placed(id)) return;
    Use& use = uses_[root(id)];
    use.first = use.is_used ? std::min(use.first, step) : step;
    use.last = use.is_used ? std::max(use.last, step) : step;
    use.is_used = true, use.moved += moved;
  }
  void fix(ir::TensorId id, uint32_t step) {
    need(id, step);
    if (is_placed(id)) uses_[root(id)].is_fixed = true;
  }

  void find_uses() {
    for (const ir::TensorId id : graph_.inputs) fix(id, 0);
    for (uint32_t step = 0; step < end_; ++step) {
      const Operation& one = operations_[step];
      for (const Map* map : {&one.input, &one.input2, &one.output}) need(map->tensor, step, 1);
    }
    for (const ir::TensorId id : graph_.outputs) fix(id, end_);
    if (!keeps_) return;
    for (const ir::TensorId id : graph_.inputs) fix(id, end_);
    for (const ir::Op& op : graph_.ops)
      for (const ir::TensorId id : op.outputs) fix(id, 0), fix(id, end_);
  }

  // Operations read and write bricks in longer bursts. Operations that use a tensor with another shape, or a part of
  // it, need contiguous channels.
  void choose_bricks() {
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      const auto whole =
          uses_[i].is_used && !uses_[i].is_fixed ? whole_of(graph_, static_cast<ir::TensorId>(i)) : std::nullopt;
      uses_[i].is_bricks = whole && whole->precision == hw::Precision::bits_8 &&
                           align_up(whole->depth, kBrick) - whole->depth <= whole->depth / kPaddedMax;
    }
    for (size_t i = 0; i < same_as_.size(); ++i)
      if (static_cast<size_t>(same_as_[i]) != i) uses_[root(static_cast<ir::TensorId>(i))].is_bricks = false;
    for (const Operation& one : operations_) {
      for (const Map* map : {&one.input, &one.input2, &one.output})
        if (is_placed(map->tensor) && !is_scratch(static_cast<size_t>(map->tensor)) && !has_whole_rows(graph_, *map))
          uses_[root(map->tensor)].is_bricks = false;
    }
  }

  Item tensor_item(size_t index) const {
    const Use& use = uses_[index];
    const auto id = static_cast<ir::TensorId>(index);
    uint64_t size =
        is_scratch(index) ? scratch_[index - graph_.tensors.size()] : static_cast<uint64_t>(graph_.tensor(id).bytes());
    if (use.is_bricks || rows_[index] != 0) {
      const Map whole = *whole_of(graph_, id);
      size = uint64_t{rows_[index] == 0 ? whole.height : rows_[index]} * whole.width *
             (use.is_bricks ? align_up(whole.depth, kBrick) : whole.depth) * whole.elem_bytes();
    }
    return {.lifetime = {.size_bytes = size, .first = use.first, .last = use.last},
            .saved_bytes = use.moved * static_cast<double>(size),
            .index = index};
  }
  // Weights are read once for each block of a plane. If copied, they are read once, while another operation runs.
  Item weights_item(size_t index) const {
    const auto step = static_cast<uint32_t>(index);
    const Tile& tile = coded_[index].tile;
    double reads = 0;
    uint32_t last = step;
    for (uint32_t i = step; i < end_; ++i) {
      const Operation& one = operations_[i];
      if (i != step && one.weights_of != index) continue;
      reads += ceil_div(one.output.height, tile.height) * ceil_div(one.output.width, tile.width);
      last = i;
    }
    const uint64_t size = coded_[index].bytes.size();
    return {.lifetime = {.size_bytes = size, .first = step - std::min(step, kAhead), .last = last},
            .saved_bytes = static_cast<double>(size) * (reads - 0.5),
            .index = index,
            .is_weights = true};
  }

  static npu::MemoryPlan plan_of(std::span<const Item> items) {
    std::vector<npu::Lifetime> lifetimes;
    for (const Item& one : items) lifetimes.push_back(one.lifetime);
    return npu::plan_memory(lifetimes, kAlign);
  }

  // Places `items`, and the most valuable of `maybe`, in `most` bytes of a region; the rest goes to `left`.
  uint64_t fill(uint32_t region, std::vector<Item>& items, std::vector<Item> maybe, uint64_t most,
                std::vector<Item>& left) {
    const size_t fixed = items.size();
    std::vector<uint64_t> live(end_ + 1);
    const auto add = [&](const Item& one) {
      for (uint32_t step = one.lifetime.first; step <= one.lifetime.last; ++step)
        live[step] += align_up(one.lifetime.size_bytes, kAlign);
    };
    const auto fits = [&](const Item& one) {
      for (uint32_t step = one.lifetime.first; step <= one.lifetime.last; ++step)
        if (live[step] + align_up(one.lifetime.size_bytes, kAlign) > most) return false;
      return true;
    };
    for (const Item& one : items) add(one);
    std::ranges::stable_sort(maybe, [](const Item& a, const Item& b) { return a.worth() > b.worth(); });
    for (Item& one : maybe) {
      if (!fits(one)) {
        left.push_back(one);
        continue;
      }
      add(one);
      items.push_back(one);
    }
    npu::MemoryPlan plan = plan_of(items);
    for (; items.size() > fixed && plan.size_bytes > most; plan = plan_of(items)) {
      left.push_back(items.back());
      items.pop_back();
    }
    for (size_t i = 0; i < items.size(); ++i) {
      const Item& one = items[i];
      if (one.is_weights)
        out_.weights[one.index] = Place{.region = region, .offset = plan.offsets[i]};
      else
        out_.tensors[one.index] = {region, plan.offsets[i], uses_[one.index].is_bricks, rows_[one.index]};
    }
    std::erase_if(left, [](const Item& one) { return one.is_weights; });  // weights stay in the constants
    return plan.size_bytes;
  }

  const ir::Graph& graph_;
  std::span<const Operation> operations_;
  std::span<const uint32_t> rows_;
  std::span<const Coded> coded_;
  std::span<const ir::TensorId> same_as_;
  bool keeps_, has_fast_memory_;
  uint32_t end_;
  std::vector<Use> uses_;              // by tensor; only for tensors with bytes of their own
  std::span<const uint64_t> scratch_;  // sizes of the tensors after the graph's
  Placement out_;
};

}  // namespace

Placement place(const hw::ChipRow& chip, const ir::Graph& graph, std::span<const Operation> operations,
                std::span<const uint32_t> rows, std::span<const Coded> coded, std::span<const ir::TensorId> same_as,
                std::span<const uint64_t> scratch, bool keeps) {
  return Planner(chip, graph, operations, rows, coded, same_as, scratch, keeps).run();
}

}  // namespace skillet::npus::ethosu
