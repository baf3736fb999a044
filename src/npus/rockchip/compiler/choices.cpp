#include "npus/rockchip/compiler/choices.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "npus/rockchip/compiler/conv.h"
#include "npus/rockchip/compiler/lower.h"
#include "npus/rockchip/compiler/placement.h"
#include "npus/rockchip/compiler/support_rules.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {
namespace {

constexpr int32_t kStrideMax = 7;
constexpr std::array kDivisions = {-1, 1, 2, 3, 4, 6, 8, -2, -4};

bool is_average(const ir::Op& op) { return op.kind == ir::OpKind::average_pool_2d || op.kind == ir::OpKind::mean; }

using Tasks = std::vector<std::pair<int32_t, int32_t>>;

// Two pairs for each task of an op's convolutions: first output lane and row; input banks and whether it reuses
// weights.
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

void list_blocks(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning, std::vector<npu::Choice>& out) {
  const Placement plan = plan_placement(chip, graph, tuning, false);
  for (ir::OpId id = 0; id < static_cast<ir::OpId>(graph.ops.size()); ++id) {
    const ir::Op& op = graph.op(id);
    if (op.kind != ir::OpKind::conv_2d || own_input(graph, plan, tuning, id) == ir::kNoTensor) continue;
    const PadAmounts pads = plan.folded[static_cast<size_t>(op.inputs[0])].value_or(PadAmounts{});
    if (over_blocks(chip, with_pads(window_of(graph, id), pads))) out.push_back({id, std::string(kInputBlocks), 1});
  }
}

// Lists the divisions whose tasks differ from those of all divisions before.
Result<void> list_divisions(const hw::ChipRow& chip, ir::OpId op, const std::vector<Conv>& convs, const Tuning& tuning,
                            std::vector<npu::Choice>& out) {
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

std::optional<Window> dense_rest(const hw::ChipRow& chip, const Window& w) {
  const int32_t rest = w.in.channels % kDepthwiseGroup;
  if (!w.depthwise || w.multiplier != 1 || w.in.channels < kDepthwiseGroup || rest == 0 || rest > kKernelGroup)
    return std::nullopt;
  Window r = w;
  r.in.channels = r.out.channels = rest;
  r.depthwise = false;
  const npu::Support support = fits(chip, r);
  return support.ok && !support.unproven ? std::optional(r) : std::nullopt;
}

bool may_be_flat(const Window& w) {
  return w.depthwise && w.out.pixels() == 1 && w.kernel_height == w.in.height && w.kernel_width == w.in.width &&
         w.pad_top + w.pad_left + w.pad_bottom + w.pad_right == 0 && w.in.height <= kStrideMax &&
         w.in.channels % kLaneGroup == 0 && w.in.channels > kLaneGroup;
}

// A tap of a row or column becomes a tap of blocks: whole blocks of padding before, and as many after as windows reach.
std::optional<Window> over_blocks(const hw::ChipRow& chip, const Window& w) {
  constexpr int32_t kSide = 2;
  const bool fine = !w.depthwise && w.stride_y == kSide && w.stride_x == kSide && w.dilation_y == 1 &&
                    w.dilation_x == 1 && w.in.height % kSide == 0 && w.in.width % kSide == 0 &&
                    w.in.channels * kSide * kSide <= kAtom && w.pad_top >= 0 && w.pad_left >= 0 && w.pad_bottom >= 0 &&
                    w.pad_right >= 0;
  if (!fine) return std::nullopt;
  const auto taps = [](int32_t pad, int32_t kernel) {
    return ceil_div(ceil_div(pad, kSide) * kSide - pad + kernel, kSide);
  };
  Window b = w;
  b.in = {w.in.height / kSide, w.in.width / kSide, w.in.channels * kSide * kSide};
  b.kernel_height = taps(w.pad_top, w.kernel_height), b.kernel_width = taps(w.pad_left, w.kernel_width);
  b.stride_y = b.stride_x = 1;
  b.pad_top = ceil_div(w.pad_top, kSide), b.pad_left = ceil_div(w.pad_left, kSide);
  b.pad_bottom = std::max(w.out.height - 1 + b.kernel_height - b.in.height - b.pad_top, 0);
  b.pad_right = std::max(w.out.width - 1 + b.kernel_width - b.in.width - b.pad_left, 0);
  const npu::Support support = fits(chip, b);
  return support.ok && !support.unproven ? std::optional(b) : std::nullopt;
}

Result<std::vector<npu::Choice>> choices(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning) {
  std::vector<npu::Choice> out;
  Tuning plain = tuning;
  plain.choices.clear();
  if (tuning.input_blocks) list_blocks(chip, graph, plain, out);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto id = static_cast<ir::OpId>(i);
    const ir::Op& op = graph.op(id);
    if (tuning.dense_depthwise && op.kind == ir::OpKind::depthwise_conv_2d && may_be_dense(window_of(graph, id)))
      out.push_back({id, std::string(kDenseDepthwise), 1});
    if (tuning.dense_rest && op.kind == ir::OpKind::depthwise_conv_2d && dense_rest(chip, window_of(graph, id)))
      out.push_back({id, std::string(kDenseRest), 1});
    if (tuning.flat_average && is_average(op) && may_be_flat(window_of(graph, id)))
      out.push_back({id, std::string(kFlatAverage), 1});
  }
  if (!tuning.task_division) return out;
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

void read_blocks(Conv& conv) {
  const int32_t channels = conv.in.channels, top = conv.pad_top % 2, left = conv.pad_left % 2;
  const int32_t rows = ceil_div(top + conv.kernel_height, 2), columns = ceil_div(left + conv.kernel_width, 2);
  Bytes blocks(static_cast<size_t>(conv.out.channels * rows * columns * channels * 4),
               static_cast<uint8_t>(conv.weight_zero ^ conv.weight_flip));
  const uint8_t* from = conv.weights.data();
  for (int32_t k = 0; k < conv.out.channels; ++k) {
    for (int32_t y = top; y < top + conv.kernel_height; ++y) {
      for (int32_t x = left; x < left + conv.kernel_width; ++x, from += channels) {
        const int32_t tap = (k * rows + y / 2) * columns + x / 2, pixel = y % 2 * 2 + x % 2;
        std::copy_n(from, channels, blocks.begin() + static_cast<ptrdiff_t>((tap * 4 + pixel) * channels));
      }
    }
  }
  conv.weights = std::move(blocks);
  conv.in = {conv.in.height / 2, conv.in.width / 2, channels * 4};
  conv.kernel_height = rows, conv.kernel_width = columns;
  conv.stride_y = conv.stride_x = 1;
  conv.pad_top = ceil_div(conv.pad_top, 2), conv.pad_left = ceil_div(conv.pad_left, 2);
  conv.pad_bottom = std::max(conv.out.height - 1 + rows - conv.in.height - conv.pad_top, 0);
  conv.pad_right = std::max(conv.out.width - 1 + columns - conv.in.width - conv.pad_left, 0);
}

}  // namespace skillet::npus::rockchip
