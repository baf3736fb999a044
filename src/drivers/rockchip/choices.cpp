#include "drivers/rockchip/choices.h"

#include <algorithm>
#include <array>

#include "drivers/rockchip/lower.h"
#include "drivers/rockchip/tile.h"

namespace skillet::drivers::rockchip {
namespace {

constexpr int32_t kStrideMax = 7;
constexpr std::array kDivisions = {-1, 1, 2, 3, 4, 6, 8, -2, -4};

bool is_average(const ir::Op& op) { return op.kind == ir::OpKind::average_pool_2d || op.kind == ir::OpKind::mean; }

using Tasks = std::vector<std::pair<int32_t, int32_t>>;

// Of all convolutions of an op: first output lane and row of each task, and how its weights come.
Result<Tasks> tasks_of(const hw::ChipRow& chip, const std::vector<Conv>& convs, int32_t division,
                       const Tuning& tuning) {
  Tasks out;
  for (Conv conv : convs) {
    conv.division = division;
    SK_TRY_ASSIGN(const Split parts, split(chip, conv, geometry(conv, tuning), tuning));
    for (const Task& task : parts.tasks) {
      out.emplace_back(task.first_lane, task.out_top);
      out.emplace_back(task.data_banks, task.reuse_weights);
    }
  }
  return out;
}

// Those whose tasks differ from all before.
Result<void> list_divisions(const hw::ChipRow& chip, ir::OpId op, const std::vector<Conv>& convs, const Tuning& tuning,
                            std::vector<driver::Choice>& out) {
  SK_TRY_ASSIGN(Tasks usual, tasks_of(chip, convs, 0, tuning));
  std::vector<Tasks> seen = {std::move(usual)};
  for (const int32_t division : kDivisions) {
    SK_TRY_ASSIGN(Tasks tasks, tasks_of(chip, convs, division, tuning));
    if (std::ranges::find(seen, tasks) != seen.end()) continue;
    seen.push_back(std::move(tasks));
    out.push_back({op, std::string(kTaskDivision), division});
  }
  return {};
}

}  // namespace

bool may_be_dense(const Window& w) {
  return w.depthwise && w.multiplier == 1 && w.in.channels > 1 && w.in.channels <= kKernelGroup;
}

bool may_be_flat(const Window& w) {
  return w.depthwise && w.out.pixels() == 1 && w.kernel_height == w.in.height && w.kernel_width == w.in.width &&
         w.pad_top + w.pad_left + w.pad_bottom + w.pad_right == 0 && w.in.height <= kStrideMax &&
         w.in.channels % kLaneGroup == 0 && w.in.channels > kLaneGroup;
}

Result<std::vector<driver::Choice>> choices(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning) {
  std::vector<driver::Choice> out;
  if (!tuning.dense_depthwise && !tuning.flat_average && !tuning.task_division) return out;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto id = static_cast<ir::OpId>(i);
    const ir::Op& op = graph.op(id);
    if (tuning.dense_depthwise && op.kind == ir::OpKind::depthwise_conv_2d && may_be_dense(window_of(graph, id)))
      out.push_back({id, std::string(kDenseDepthwise), 1});
    if (tuning.flat_average && is_average(op) && may_be_flat(window_of(graph, id)))
      out.push_back({id, std::string(kFlatAverage), 1});
  }
  if (!tuning.task_division) return out;
  Tuning plain = tuning;
  plain.choices.clear();
  SK_TRY_ASSIGN(const Lowered lowered, lower(chip, graph, plain, false));
  std::vector<std::vector<Conv>> convs(graph.ops.size());
  for (const Operation& operation : lowered.operations) {
    const auto* const conv = std::get_if<Conv>(&operation.work);
    if (conv != nullptr && operation.op >= 0) convs[static_cast<size_t>(operation.op)].push_back(*conv);
  }
  for (size_t op = 0; op < convs.size(); ++op)
    SK_TRY(list_divisions(chip, static_cast<ir::OpId>(op), convs[op], tuning, out));
  return out;
}

}  // namespace skillet::drivers::rockchip
