// Drivers that support a pass's results but not the ops that it replaces, and the results of a graph before and after.
// Called by the tests of graph/passes/.
// Must not know: real chips.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/testing/noise.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/testing/letters.h"
#include "graph/ref/ref.h"

namespace skillet::passes {

// Supports the results of the passes, and none of the ops that they replace.
class PlainDriver : public AddMulDriver {
 public:
  explicit PlainDriver(std::set<ir::OpKind> more = {}) : taken_(std::move(more)) {
    taken_.insert({ir::OpKind::conv_2d, ir::OpKind::depthwise_conv_2d, ir::OpKind::reshape});
  }
  npu::Support supports(const npu::Chip&, const ir::Graph& graph, ir::OpId id) const override {
    const ir::Op& op = graph.op(id);
    const auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs);
    const bool plain = conv == nullptr || (conv->dilation_h == 1 && conv->dilation_w == 1 &&
                                           conv->depth_multiplier == 1 && conv->stride_h < 3 && conv->stride_w < 3);
    const bool has_groups = op.kind == ir::OpKind::conv_2d &&
                            graph.tensor(op.inputs[1]).shape.back(0) != graph.tensor(op.inputs[0]).shape.back(0);
    if (plain && !has_groups && taken_.contains(op.kind) && is_of_channels(graph, op)) return npu::Support::yes();
    return npu::Support::no(npu::Remedy::none, "{} is not plain", ir::op_name(op));
  }

 private:
  // For ops that join or split.
  static bool is_of_channels(const ir::Graph& graph, const ir::Op& op) {
    const int32_t rank = graph.tensor(op.outputs[0]).shape.rank();
    if (op.kind == ir::OpKind::concatenation) return op.as<ir::ConcatAttrs>().axis == rank - 1;
    if (op.kind == ir::OpKind::split || op.kind == ir::OpKind::split_v)
      return graph.tensor(op.inputs[op.kind == ir::OpKind::split ? 0 : 2]).values<int32_t>() ==
             std::vector<int32_t>{rank - 1};
    return true;
  }

  std::set<ir::OpKind> taken_;
};

inline const PlainDriver kPlain;
// Chips that move data support more; for other chips the passes that make such ops must do nothing.
inline const PlainDriver kMoving({ir::OpKind::transpose, ir::OpKind::concatenation, ir::OpKind::split,
                                  ir::OpKind::split_v});

inline const PlainDriver kAdding({ir::OpKind::add});
inline const PlainDriver kTransposing({ir::OpKind::add, ir::OpKind::transpose});
// PAD by at most two, as windows are padded, and CONCATENATION with equal quantization.
class NarrowDriver : public PlainDriver {
 public:
  NarrowDriver() : PlainDriver({ir::OpKind::pad, ir::OpKind::depth_to_space, ir::OpKind::concatenation}) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const ir::Op& op = graph.op(id);
    if (op.kind == ir::OpKind::pad && std::ranges::max(graph.tensor(op.inputs[1]).values<int32_t>()) > 2)
      return npu::Support::no(npu::Remedy::none, "PAD is not narrow");
    if (pads_of(graph, op) > 2) return npu::Support::no(npu::Remedy::none, "a window's padding is not narrow");
    const auto differs = [&](ir::TensorId input) {
      return !same_meaning(graph.tensor(input), graph.tensor(op.outputs[0]));
    };
    if (op.kind == ir::OpKind::concatenation && std::ranges::any_of(op.inputs, differs))
      return npu::Support::no(npu::Remedy::none, "CONCATENATION is not of one quantization");
    return PlainDriver::supports(chip, graph, id);
  }

 private:
  static int32_t pads_of(const ir::Graph& graph, const ir::Op& op) {
    if (op.kind != ir::OpKind::conv_2d && op.kind != ir::OpKind::depthwise_conv_2d) return 0;
    const auto& attrs = op.as<ir::ConvAttrs>();
    if (attrs.padding == ir::Padding::valid) return 0;
    const ir::Shape &in = graph.tensor(op.inputs[0]).shape, &filter = graph.tensor(op.inputs[1]).shape;
    return std::max(same_pads(in[1], filter[1], attrs.stride_h, attrs.dilation_h).after,
                    same_pads(in[2], filter[2], attrs.stride_w, attrs.dilation_w).after);
  }
};
inline const NarrowDriver kNarrow;
// Reads only computed tensors.
class ComputedDriver : public PlainDriver {
 public:
  ComputedDriver() : PlainDriver({ir::OpKind::add}) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const ir::Op& op = graph.op(id);
    if (graph.tensor(op.inputs[0]).is_constant() ||
        (op.kind == ir::OpKind::add && graph.tensor(op.inputs[1]).is_constant()))
      return npu::Support::no(npu::Remedy::none, "{} of a constant", ir::op_name(op));
    return PlainDriver::supports(chip, graph, id);
  }
};
inline const ComputedDriver kComputed;
// Repeats no operands.
class OneShapeDriver : public PlainDriver {
 public:
  explicit OneShapeDriver(std::set<ir::OpKind> more) : PlainDriver(std::move(more)) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const ir::Op& op = graph.op(id);
    const bool is_plain = op.kind != ir::OpKind::add && op.kind != ir::OpKind::sub && op.kind != ir::OpKind::mul &&
                          op.kind != ir::OpKind::maximum;
    const auto is_other = [&](ir::TensorId input) {
      return graph.tensor(input).is_constant() || graph.tensor(input).shape != graph.tensor(op.outputs[0]).shape;
    };
    if (!is_plain && std::ranges::any_of(op.inputs, is_other))
      return npu::Support::no(npu::Remedy::none, "{} of other shapes", ir::op_name(op));
    return PlainDriver::supports(chip, graph, id);
  }
};
inline const OneShapeDriver kOneShape({ir::OpKind::add});
inline const PlainDriver kTables({ir::OpKind::byte_table});
inline const PlainDriver kSlicing({ir::OpKind::slice});
inline const PlainDriver kDividing({ir::OpKind::slice, ir::OpKind::strided_slice});
inline const PlainDriver kMultiplying({ir::OpKind::mul});
inline const PlainDriver kResizing({ir::OpKind::resize_nearest_neighbor});

// Does not turn an image into a row.
class ImageDriver : public PlainDriver {
 public:
  ImageDriver() : PlainDriver({ir::OpKind::fully_connected}) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const ir::Op& op = graph.op(id);
    if (op.kind == ir::OpKind::reshape && graph.tensor(op.outputs[0]).shape.rank() == 2)
      return npu::Support::no(npu::Remedy::none, "RESHAPE to rows");
    return PlainDriver::supports(chip, graph, id);
  }
};
inline const ImageDriver kImages;

// Supports one image at a time.
class SingleDriver : public PlainDriver {
 public:
  SingleDriver() : PlainDriver({ir::OpKind::add}) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const ir::Shape& shape = graph.tensor(graph.op(id).outputs[0]).shape;
    if (shape.rank() == 4 && shape[0] != 1) return npu::Support::no(npu::Remedy::one_image, "a batch of {}", shape[0]);
    return PlainDriver::supports(chip, graph, id);
  }
};
inline const SingleDriver kSingle;

// Supports equal strides down and to the right.
class EvenDriver : public PlainDriver {
 public:
  EvenDriver() : PlainDriver({ir::OpKind::concatenation}) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const auto* const conv = std::get_if<ir::ConvAttrs>(&graph.op(id).attrs);
    if (conv != nullptr && conv->stride_h != conv->stride_w) return npu::Support::no(npu::Remedy::none, "uneven");
    return PlainDriver::supports(chip, graph, id);
  }
};
inline const EvenDriver kEven;

// Null if there is none.
inline const Pass* exact_pass(std::string_view name) {
  const auto all = exact_passes();
  const auto found = std::ranges::find(all, name, &Pass::name);
  return found == all.end() ? nullptr : &*found;
}

inline const PlainDriver& driver_for(const Pass& pass) {
  if (pass.name == "split_batches") return kSingle;
  if (pass.name == "lower_tile_as_resize") return kResizing;
  if (pass.name == "fuse_byte_functions") return kTables;
  if (pass.name == "split_pad" || pass.name == "lower_transpose_conv" || pass.name == "rescale_concat") return kNarrow;
  if (pass.name == "lower_leaky_relu_as_sum" || pass.name == "lower_sub_as_sum" ||
      pass.name == "lower_max_pool_as_sums")
    return kAdding;
  if (pass.name == "lower_resize_as_conv") return kTransposing;
  if (pass.name == "flatten_in_dense") return kImages;
  if (pass.name == "lower_uneven_stride") return kEven;
  if (pass.name == "copy_constants") return kComputed;
  if (pass.name == "lower_slice_as_box") return kSlicing;
  if (pass.name == "slice_before_transpose") return kDividing;
  if (pass.name == "drop_unit_mul") return kMultiplying;
  if (pass.name == "repeat_operands") return kOneShape;
  if (pass.name == "lower_average_as_pointwise" || pass.name == "lower_concat_axis" ||
      pass.name == "lower_dilation_as_phases")
    return kMoving;
  return kPlain;
}

inline Result<std::vector<Rewrite>> rewrite(ir::Graph& graph, const Pass& pass, std::set<int32_t> kept = {}) {
  std::vector<Rewrite> rewrites;
  Target target{.driver = &driver_for(pass), .chip = {}, .per_channel = npu::PerChannel::strict};
  target.rewrites = &rewrites;
  target.kept = std::move(kept);
  pass.run(graph, target);
  SK_TRY(ir::verify(graph));
  return rewrites;
}

// The outputs for some inputs; nothing if the CPU has no kernel.
inline std::optional<std::vector<Bytes>> results(const ir::Graph& graph, uint32_t seed) {
  auto cpu = ref::Interpreter::create(graph);
  if (!cpu.ok()) return std::nullopt;
  for (const ir::TensorId id : graph.inputs) {
    const std::span<uint8_t> to = cpu->tensor(id);
    const Bytes bytes = skillet::testing::noise(to.size(), seed);
    std::copy(bytes.begin(), bytes.end(), to.begin());
  }
  if (!cpu->run().ok()) return std::nullopt;
  std::vector<Bytes> out;
  for (const ir::TensorId id : graph.outputs) out.emplace_back(cpu->tensor(id).begin(), cpu->tensor(id).end());
  return out;
}

}  // namespace skillet::passes
