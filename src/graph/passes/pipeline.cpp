// The one ordered list of passes.
#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "base/leaked.h"
#include "base/log.h"
#include "graph/ir/rules.h"
#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

// A pass may leave work for later ones: constants first, then passes that move data, then passes that compute, each
// before the passes that it makes work for.
constexpr Pass kPasses[] = {
    {.name = "remove_dead_ops", .whole = remove_dead_ops},
    {"fold_constants", fold_constants},
    {"merge_quantizes", merge_quantizes},
    {"merge_transposes", merge_transposes},
    {"merge_reshapes", merge_reshapes},
    {"lower_tile_as_resize", lower_tile_as_resize},
    {"flatten_in_dense", flatten_in_dense},
    {"fold_space_to_batch", fold_space_to_batch},
    {"fold_pads", fold_pads},
    {"fuse_activations", fuse_activations},
    {"fold_channel_order", fold_channel_order},
    {.name = "fuse_byte_functions", .for_files = false, .whole = fuse_byte_functions},
    {.name = "split_batches", .whole = split_batches},
    {"remove_strides", remove_strides},
    {"lower_conv1d", lower_conv1d},
    {"lower_uneven_stride", lower_uneven_stride},
    {"expand_dilation", expand_dilation},
    {"lower_depthwise_as_conv", lower_depthwise_as_conv},
    {"lower_dilation_as_phases", lower_dilation_as_phases},
    {"lower_sequence_mean", lower_sequence_mean},
    {"lower_average_as_depthwise", lower_average_as_depthwise},
    {"lower_average_as_pointwise", lower_average_as_pointwise},
    {"lower_slice_as_conv", lower_slice_as_conv},
    {"repeat_operands", repeat_operands},
    {"lower_resize_as_conv", lower_resize_as_conv},
    {.name = "average_in_steps", .match = average_in_steps, .is_exact = false},  // what no convolution does exactly
    {"lower_concat_axis", lower_concat_axis},
    {"slice_before_transpose", slice_before_transpose},
    {"lower_slice_as_box", lower_slice_as_box},
    {"split_pad", split_pad},
    {"lower_transpose_conv", lower_transpose_conv},
    {"lower_leaky_relu_as_sum", lower_leaky_relu_as_sum},
    {"lower_max_pool_as_sums", lower_max_pool_as_sums},
    {"lower_sub_as_sum", lower_sub_as_sum},
    {"rescale_concat", rescale_concat},
    {.name = "fuse_affine_chains",
     .is_exact = false,
     .whole = fuse_affine_chains},  // before the ops of a chain are rewritten one by one
    {.name = "tighten_relu6", .match = tighten_relu6, .is_exact = false},
    {.name = "lower_rescale_as_depthwise", .whole = lower_rescale_as_depthwise},
    {"lower_dense_as_conv", lower_dense_as_conv,
     "in LiteRT 2.3.0 its outputs may differ by 1, because it rounds FULLY_CONNECTED once and CONV_2D twice"},
    {"copy_constants", copy_constants, {}, false},
    {"drop_unit_mul", drop_unit_mul, {}, false},  // when it is known what the CPU computes
};
// Not for model files: files keep the order of channels.
constexpr Pass kLast[] = {{.name = "sort_channels", .whole = sort_channels},
                          {.name = "share_weight_scales", .whole = share_weight_scales}};

void trace(std::string_view when, const ir::Graph& graph) {
  if (!log::debug_flag("passes")) return;
  log::write(log::Level::info, fmt::format("graph {}:\n{}", when, ir::print(graph)));
}

Result<void> run(const Pass& pass, ir::Graph& graph, const Target& target) {
  const size_t before = target.rewrites == nullptr ? 0 : target.rewrites->size();
  pass.run(graph, target);
  // A pass that recorded nothing has left the graph as it was.
  const bool only_rewrites =
      pass.whole != remove_dead_ops && pass.whole != share_weight_scales && pass.whole != sort_channels;
  if (only_rewrites && (target.rewrites == nullptr || target.rewrites->size() == before)) return {};
  SK_TRY_IN_CONTEXT(ir::verify(graph), fmt::format("after {}", pass.name));
  trace(fmt::format("after {}", pass.name), graph);
  return {};
}

}  // namespace

uint64_t constant_bytes(const ir::Graph& graph) {
  std::map<const uint8_t*, size_t> blocks;
  for (const ir::Tensor& tensor : graph.tensors) {
    if (!tensor.is_constant()) continue;
    size_t& size = blocks[tensor.data.data()];
    size = std::max(size, tensor.data.size());
  }
  uint64_t total = 0;
  for (const auto& [at, size] : blocks) total += size;
  return total;
}

uint64_t constants_max(const ir::Graph& graph) {
  constexpr uint64_t kAlways = 64ULL << 20, kPerByte = 64;
  return kAlways + kPerByte * constant_bytes(graph);
}

void Pass::run(ir::Graph& graph, const Target& target) const {
  if (whole != nullptr) return whole(graph, target);
  Rewriter rewriter(graph, target, name);
  rewriter.for_each_op([&](ir::OpId op) { match(rewriter, op); });
}

std::span<const Pass> exact_passes() {
  return leaked([] {
    std::vector<Pass> out;
    std::ranges::copy_if(kPasses, std::back_inserter(out), &Pass::is_exact);
    return out;
  });
}

Result<void> run_pipeline(ir::Graph& graph, const Target& target) {
  SK_TRY(ir::verify(graph));
  trace("before passes", graph);
  // Passes divide by dimensions, and empty ops gain nothing.
  if (std::ranges::any_of(graph.ops, [&](const ir::Op& op) { return ir::has_empty_operand(graph, op); })) return {};
  for (const Pass& pass : kPasses) SK_TRY(run(pass, graph, target));
  for (const Pass& pass : kLast) SK_TRY(run(pass, graph, target));
  return {};
}

}  // namespace skillet::passes
