#include "npus/vivante/compiler/choices.h"

#include <algorithm>

#include "npus/vivante/compiler/lower.h"
#include "npus/vivante/compiler/tile.h"

namespace skillet::npus::vivante {
namespace {

constexpr int32_t kPartsMax = 32;
constexpr int32_t kFirstPixelMax = 5;  // px of a filter: sizes recorded with first-pixel pooling
constexpr int32_t kSmallImageMax = 7;  // px: recorded jobs avoid it up to this size (section 8.1)

bool has_filter(const ir::Op& op) {
  return op.kind == ir::OpKind::conv_2d || op.kind == ir::OpKind::depthwise_conv_2d ||
         op.kind == ir::OpKind::fully_connected;
}

void list_op(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId op, const Tuning& tuning, const NnOperation& job,
             std::vector<npu::Choice>& groups, std::vector<npu::Choice>& rows, std::vector<npu::Choice>& pixels) {
  const ConvShape s = conv_shape(chip, graph, op);
  if (tuning.first_pixel && may_keep_first_pixel(chip, s)) pixels.push_back({op, std::string(kFirstPixel), 1});
  for (int32_t parts = 2; tuning.channel_groups && parts <= kPartsMax; parts *= 2) {
    if (stride_method(chip, s) != StrideMethod::reshuffle && may_divide_channels(chip, job.kernels, parts))
      groups.push_back({op, std::string(kChannelGroups), parts});
  }
  if (!tuning.tile_rows) return;
  for (const int32_t count : other_tile_rows(chip, job)) rows.push_back({op, std::string(kTileRows), count});
}

}  // namespace

bool may_keep_first_pixel(const hw::ChipRow& chip, const ConvShape& s) {
  const bool dense = !hw::generation_of(chip).linear_filters && !s.depthwise && !s.pointwise;
  return dense && chip.has(hw::kFirstPixelPooling) && stride_method(chip, s) == StrideMethod::reshuffle &&
         std::max(s.kernel_width, s.kernel_height) <= kFirstPixelMax && s.kernel_width > 1 && s.kernel_height > 1 &&
         std::min(s.in.width, s.in.height) > kSmallImageMax;
}

// Each core must have kernels to compute.
bool may_divide_channels(const hw::ChipRow& chip, const Kernels& kernels, int32_t parts) {
  const int32_t channels = kernels.input_channels;
  return !chip.has(hw::kDepthwise) && kernels.kernels_per_band > 0 && kernels.band == 1 && channels % parts == 0 &&
         channels / parts * kernels.kernels_per_band % chip.nn_cores == 0;
}

Result<std::vector<npu::Choice>> choices(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning) {
  std::vector<npu::Choice> pixels, groups, rows;
  if (!tuning.first_pixel && !tuning.channel_groups && !tuning.tile_rows) return pixels;
  Tuning plain = tuning;
  plain.choices.clear();
  SK_TRY_ASSIGN(const Lowered lowered, lower(chip, graph, plain));
  ir::OpId last = -1;
  for (const Operation& operation : lowered.operations) {
    const auto* const job = std::get_if<NnOperation>(&operation.job);
    if (job == nullptr || operation.op < 0 || operation.op == last || !has_filter(graph.op(operation.op))) continue;
    last = operation.op;
    list_op(chip, graph, operation.op, tuning, *job, groups, rows, pixels);
  }
  pixels.insert(pixels.end(), groups.begin(), groups.end());
  pixels.insert(pixels.end(), rows.begin(), rows.end());
  return pixels;
}

}  // namespace skillet::npus::vivante
