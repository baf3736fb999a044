#include "npus/rockchip/compiler/placement.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/is_any_of.h"
#include "graph/ir/sign.h"
#include "npus/rockchip/compiler/choices.h"
#include "npus/rockchip/compiler/conv.h"
#include "npus/rockchip/compiler/elementwise.h"
#include "npus/rockchip/compiler/fusion.h"
#include "npus/rockchip/compiler/interleave.h"
#include "npus/rockchip/compiler/moves.h"
#include "npus/rockchip/compiler/support.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {
namespace {

using ir::OpKind;
using ir::TensorId;

constexpr int32_t kPackedMax = 4;  // channels in rows of pixels
constexpr int32_t kRowMax = 2047;  // columns of a row, as the registers count them

bool is_image_filter(OpKind kind) { return kind == OpKind::conv_2d || kind == OpKind::depthwise_conv_2d; }

class Planner {
 public:
  Planner(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning)
      : chip_(chip),
        graph_(graph),
        tuning_(tuning),
        producers_(ir::producers(graph)),
        consumers_(ir::consumers(graph)) {
    out_.folded.resize(graph.tensors.size());
    out_.homes.resize(graph.tensors.size());
    out_.forms.resize(graph.tensors.size());
  }

  Placement run(bool keep) {
    for (const ir::Op& op : graph_.ops) {
      if (tuning_.folded_pads && op.kind == OpKind::pad) fold(op);
    }
    for (const ir::Op& op : graph_.ops) {
      if (tuning_.has(hw::kPoolsMaxima) && op.kind == OpKind::pad_v2)
        out_.folded[static_cast<size_t>(op.outputs[0])] = pads_of_maxima(graph_, op);
    }
    for (const TensorId input : graph_.inputs) {
      if (lies_packed(input)) out_.forms[static_cast<size_t>(input)] = Form::pixels;
    }
    lay_in_blocks();
    out_.fused.assign(graph_.ops.size(), -1);
    if (tuning_.fused_additions && tuning_.exact_additions && !keep) out_.fused = fusable_additions(graph_);
    free_tail_.assign(graph_.tensors.size(), true);
    // From the end: the place of a joined tensor must be known before those of its pieces.
    for (auto op = graph_.ops.rbegin(); tuning_.placed_pieces && op != graph_.ops.rend(); ++op) {
      if (op->kind == OpKind::concatenation && is_of_channels(*op) && are_surfaces(graph_, op->inputs)) place(*op);
    }
    for (ir::OpId op = 0; tuning_.has(hw::kPairsOfSums) && op < static_cast<ir::OpId>(graph_.ops.size()); ++op)
      pair(op);
    for (const ir::Op& op : graph_.ops) evict(op);
    return std::move(out_);
  }

 private:
  bool is_output(TensorId id) const { return std::ranges::count(graph_.outputs, id) != 0; }
  const ir::Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  std::optional<Home>& home(TensorId id) { return out_.homes[static_cast<size_t>(id)]; }

  // ---- rows of pixels ----

  // Tensors of few channels that only convolutions read stay as they come from the host. Recorded: tensors of one
  // channel, with any reader (5.6).
  bool lies_packed(TensorId id) const {
    if (tuning_.has(hw::kSurfacesOnly)) return false;
    const int32_t channels = plane_of(tensor(id).shape).channels;
    const auto filters = [&](ir::OpId reader) {
      return is_image_filter(graph_.op(reader).kind) && graph_.op(reader).inputs[0] == id;
    };
    if (!tuning_.packed_rows) return channels == 1 && std::ranges::any_of(consumers_[static_cast<size_t>(id)], filters);
    return !is_output(id) && channels <= (tuning_.packed_pixels ? kPackedMax : 1) && is_read_packed(id, channels);
  }
  bool is_read_packed(TensorId id, int32_t channels) const {
    return std::ranges::all_of(consumers_[static_cast<size_t>(id)], [&](ir::OpId reader) {
      const ir::Op& op = graph_.op(reader);
      if (op.kind == OpKind::pad && pads_of(op.outputs[0])) return is_read_packed(op.outputs[0], channels);
      if (keeps_bytes(graph_, op, tuning_)) return !is_output(op.outputs[0]) && is_read_packed(op.outputs[0], channels);
      const bool filter = op.kind == OpKind::conv_2d || (op.kind == OpKind::depthwise_conv_2d && channels == 1);
      return filter && op.inputs[0] == id && (!tuning_.packed_rows || fits_packed(reader));
    });
  }
  bool fits_packed(ir::OpId reader) const {
    const TensorId input = graph_.op(reader).inputs[0];
    Conv conv = shape_of(with_pads(window_of(graph_, reader), pads_of(input).value_or(PadAmounts{})));
    conv.packed = true;
    const Geometry g = geometry(conv, tuning_);
    return g.row_width <= kRowMax && split(chip_, conv, g, tuning_).ok();
  }
  const std::optional<PadAmounts>& pads_of(TensorId id) const { return out_.folded[static_cast<size_t>(id)]; }

  // ---- blocks ----

  void lay_in_blocks() {
    for (ir::OpId op = 0; op < static_cast<ir::OpId>(graph_.ops.size()); ++op) {
      if (graph_.op(op).kind != OpKind::conv_2d || tuning_.choice(op, kInputBlocks) == 0) continue;
      const TensorId input = own_input(graph_, out_, tuning_, op);
      const PadAmounts pads = pads_of(graph_.op(op).inputs[0]).value_or(PadAmounts{});
      if (input != ir::kNoTensor && over_blocks(chip_, with_pads(window_of(graph_, op), pads)))
        out_.forms[static_cast<size_t>(input)] = Form::blocks;
    }
  }

  // ---- padding ----

  void fold(const ir::Op& op) {
    const TensorId padded = op.outputs[0];
    const auto pads = pad_amounts(graph_, op);
    const auto& readers = consumers_[static_cast<size_t>(padded)];
    if (!pads || is_output(padded) || readers.empty()) return;
    if (std::ranges::all_of(readers, [&](ir::OpId reader) { return can_pad(reader, padded, *pads); }))
      out_.folded[static_cast<size_t>(padded)] = pads;
  }
  // Every window must contain a pixel of the image.
  bool can_pad(ir::OpId reader, TensorId padded, const PadAmounts& pads) const {
    const ir::Op& op = graph_.op(reader);
    if (!is_image_filter(op.kind) || op.inputs[0] != padded) return false;
    const Window w = with_pads(window_of(graph_, reader), pads);
    const int32_t rows = (w.kernel_height - 1) * w.dilation_y + 1, columns = (w.kernel_width - 1) * w.dilation_x + 1;
    if (std::max(w.pad_top, w.pad_bottom) >= rows || std::max(w.pad_left, w.pad_right) >= columns) return false;
    const npu::Support support = takes_window(chip_, w);
    return support.ok && (!support.unproven || tuning_.packing != nullptr);  // with a packing each program is unproven
  }

  // ---- pieces ----

  // Whether the operation joins or divides channels.
  bool is_of_channels(const ir::Op& op) const {
    if (op.kind == OpKind::concatenation)
      return axis_from_back(tensor(op.outputs[0]).shape, op.as<ir::ConcatAttrs>().axis) == 0;
    const bool sized = op.kind == OpKind::split_v;
    const std::vector<int32_t> axis = tensor(op.inputs[sized ? 2 : 0]).values<int32_t>();
    return !axis.empty() && axis_from_back(tensor(op.inputs[sized ? 0 : 1]).shape, axis.front()) == 0;
  }

  // Channels that the operation writes at a time: pieces whose last group is not full spill past their end. 0: it
  // writes nothing.
  int32_t written_at_a_time(const ir::Op& op) const {
    using enum OpKind;
    if (is_any_of(op.kind, {conv_2d, fully_connected, space_to_depth})) return kKernelGroup;
    if (is_any_of(op.kind, {depthwise_conv_2d, average_pool_2d, max_pool_2d, mean, reduce_max, reduce_min, slice,
                            strided_slice, pad}))
      return kDepthwiseGroup;
    if (is_table(op.kind) || is_any_of(op.kind, {relu, relu6, leaky_relu, maximum, minimum, resize_bilinear,
                                                 depth_to_space, resize_nearest_neighbor}))
      return kAtom;
    switch (op.kind) {
      case OpKind::concatenation:
        if (!is_of_channels(op)) return kDepthwiseGroup;
        return are_surfaces(graph_, op.inputs) ? kAtom : kKernelGroup;
      case OpKind::split:
      case OpKind::split_v: return is_of_channels(op) ? 0 : kDepthwiseGroup;
      case OpKind::mul: return product_of(graph_, op).factor == Factor::element ? kAtom : kDepthwiseGroup;
      case OpKind::add:
        if (tuning_.has(hw::kPairsOfSums)) return kKernelGroup;
        return out_.fused[static_cast<size_t>(&op - graph_.ops.data())] >= 0 ? kKernelGroup : kAtom;
      case OpKind::sub: return tuning_.has(hw::kPairsOfSums) ? kKernelGroup : kAtom;
      case OpKind::quantize: return keeps_bytes(graph_, op, tuning_) ? 0 : kAtom;
      case OpKind::reshape:
      case OpKind::squeeze:
      case OpKind::expand_dims:
        return keeps_channels(tensor(op.inputs[0]).shape, tensor(op.outputs[0]).shape) ? 0 : kAtom;
      default: return 0;
    }
  }

  void place(const ir::Op& op) {
    const TensorId whole = op.outputs[0];
    const ir::Tensor& to = tensor(whole);
    const Limits limits = limits_of(to, activation_of(op));
    // A single atom is computed twice; the second copy is written after its end.
    if (limits.lower || limits.upper || plane_of(to.shape).pixels() == 1) return;
    int32_t first = 0;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const TensorId piece = op.inputs[i];
      const bool last = i + 1 == op.inputs.size();
      const bool tail = last && free_tail_[static_cast<size_t>(whole)];
      if (std::ranges::count(op.inputs, piece) == 1 && fits(piece, to, tail)) {
        home(piece) = Home{whole, first};
        free_tail_[static_cast<size_t>(piece)] = tail;
      }
      first += plane_of(tensor(piece).shape).channels;
    }
  }
  bool fits(TensorId piece, const ir::Tensor& to, bool free_tail) {
    const ir::OpId producer = producers_[static_cast<size_t>(piece)];
    if (producer < 0 || is_output(piece) || home(piece)) return false;
    const ir::Tensor& from = tensor(piece);
    if (from.quant != to.quant || from.dtype != to.dtype || out_.folded[static_cast<size_t>(piece)]) return false;
    const int32_t group = written_at_a_time(graph_.op(producer));
    if (group == 0) return false;
    const int32_t channels = plane_of(from.shape).channels;
    return free_tail || align_up(channels, group) == align_up(channels, kAtom);
  }

  // Operands of a sum are placed side by side, unless they have a place already.
  void pair(ir::OpId id) {
    const ir::Op& op = graph_.op(id);
    if ((op.kind != OpKind::add && op.kind != OpKind::sub) || op.inputs[0] == op.inputs[1]) return;
    for (int32_t i = 0; i < 2; ++i) {
      const TensorId operand = op.inputs[static_cast<size_t>(i)];
      const ir::OpId producer = producers_[static_cast<size_t>(operand)];
      if (producer < 0 || is_output(operand) || home(operand) || out_.folded[static_cast<size_t>(operand)]) continue;
      if (written_at_a_time(graph_.op(producer)) != 0) home(operand) = Home{.sum = id, .operand = i};
    }
  }

  // Depthwise tasks read whole groups, so not the tensor in which they write. RK3576: also others, of 32 channels.
  void evict(const ir::Op& op) {
    const bool all = tuning_.has(hw::kReadsGroups);
    if (op.outputs.empty() || !home(op.outputs[0]) || (!all && written_at_a_time(op) != kDepthwiseGroup)) return;
    const TensorId result = root(op.outputs[0]);
    if (std::ranges::any_of(op.inputs, [&](TensorId id) {
          return id != ir::kNoTensor && root(id) == result && !(all && ends_with_group(id));
        }))
      home(op.outputs[0]).reset();
  }
  bool ends_with_group(TensorId id) const { return plane_of(tensor(id).shape).channels % kKernelGroup == 0; }
  TensorId root(TensorId id) {
    while (true) {
      const ir::OpId producer = producers_[static_cast<size_t>(id)];
      if (home(id) && home(id)->sum < 0) {
        id = home(id)->whole;
      } else if (producer >= 0 && written_at_a_time(graph_.op(producer)) == 0) {
        const ir::Op& op = graph_.op(producer);
        id = op.inputs[op.kind == OpKind::split ? 1 : 0];  // a view
      } else if (out_.folded[static_cast<size_t>(id)]) {
        id = graph_.op(producer).inputs[0];
      } else {
        return id;
      }
    }
  }

  const hw::ChipRow& chip_;
  const ir::Graph& graph_;
  const Tuning& tuning_;
  const std::vector<ir::OpId> producers_;
  const std::vector<std::vector<ir::OpId>> consumers_;
  Placement out_;
  std::vector<bool> free_tail_;  // by tensor: bytes written after its end overwrite nothing
};

}  // namespace

npu::ImageShape shape_at_place(const ir::Tensor& tensor, Form form) {
  const npu::ImageShape shape = npu::image_shape(tensor);
  return form == Form::blocks ? npu::in_blocks(shape).value_or(shape) : shape;
}

npu::TensorLayout layout_of(const ir::Tensor& tensor, Form form, const Tuning& tuning) {
  const npu::ImageShape shape = shape_at_place(tensor, form);
  const bool is_signed = tensor.dtype == ir::DType::int8;
  const auto zero = static_cast<uint8_t>(register_zero(tensor, tuning));
  const auto surface_flip = static_cast<uint8_t>(is_signed && tuning.signed_tensors ? 0 : 0x80);
  const auto stored_zero = static_cast<uint8_t>(zero ^ 0x80);
  if (form == Form::surfaces) {
    npu::TensorLayout layout = npu::blocked_layout(shape, kAtom, surface_flip, stored_zero);
    if (!tuning.has(hw::kFoursOfPixels)) return layout;
    const auto blocks = layout.image / std::max<uint64_t>(layout.block_stride, 1);
    layout.block_stride = static_cast<uint64_t>(surface_pitch(plane_of(tensor.shape), tuning)) * layout.px;
    layout.size_bytes = layout.image = blocks * layout.block_stride;
    return layout;
  }
  if (form == Form::blocks) return npu::blocks_layout(shape, kAtom, surface_flip, stored_zero);
  // As unsigned bytes.
  const int64_t pitch = tuning.packed_rows ? align_up(shape.width, kAtom) : std::max<int64_t>(shape.width, kAtom);
  npu::TensorLayout layout = npu::nhwc_layout(shape, is_signed && tuning.signed_tensors ? 0x80 : 0);
  layout.row = static_cast<uint64_t>(pitch * shape.channels);
  layout.image = layout.row * static_cast<uint64_t>(shape.height);
  layout.size_bytes = layout.image;
  layout.pad_byte = zero;
  return layout;
}

bool keeps_bytes(const ir::Graph& graph, const ir::Op& op, const Tuning& tuning) {
  return op.kind == OpKind::quantize && tuning.signed_tensors &&
         ir::only_changes_sign(graph.tensor(op.inputs[0]), graph.tensor(op.outputs[0]));
}

ir::TensorId own_input(const ir::Graph& graph, const Placement& placement, const Tuning& tuning, ir::OpId conv) {
  const auto readers = ir::consumers(graph);
  const auto producers = ir::producers(graph);
  const auto is_alone = [&](TensorId id) {
    return readers[static_cast<size_t>(id)].size() == 1 && std::ranges::count(graph.outputs, id) == 0;
  };
  TensorId input = graph.op(conv).inputs[0];
  if (placement.folded[static_cast<size_t>(input)]) {
    if (!is_alone(input)) return ir::kNoTensor;
    input = graph.op(producers[static_cast<size_t>(input)]).inputs[0];
  }
  for (ir::OpId made = producers[static_cast<size_t>(input)]; made >= 0 && is_alone(input);
       made = producers[static_cast<size_t>(input)]) {
    if (!keeps_bytes(graph, graph.op(made), tuning)) break;
    input = graph.op(made).inputs[0];
  }
  const bool is_input = std::ranges::count(graph.inputs, input) == 1 && !graph.tensor(input).is_constant();
  return is_input && is_alone(input) ? input : ir::kNoTensor;
}

std::optional<PadAmounts> pads_of_maxima(const ir::Graph& graph, const ir::Op& op) {
  constexpr int32_t kMost = 7;  // rows or columns
  const TensorId padded = op.outputs[0];
  const ir::Tensor& value = graph.tensor(op.inputs[2]);
  const uint8_t lowest = graph.tensor(padded).dtype == ir::DType::int8 ? 0x80 : 0;
  if (!value.is_constant() || value.data.size() != 1 || value.data[0] != lowest) return std::nullopt;
  const auto pads = pad_amounts(graph, op);
  const auto readers = ir::consumers(graph)[static_cast<size_t>(padded)];
  if (!pads || readers.empty() || std::ranges::count(graph.outputs, padded) != 0) return std::nullopt;
  if (std::max({pads->top, pads->bottom, pads->left, pads->right}) > kMost) return std::nullopt;
  const auto takes = [&](ir::OpId reader) {
    const ir::Op& pool = graph.op(reader);
    if (pool.kind != OpKind::max_pool_2d) return false;
    const Window w = window_of(graph, reader);
    const bool is_valid = w.pad_top == 0 && w.pad_bottom == 0 && w.pad_left == 0 && w.pad_right == 0;
    return is_valid && std::max(pads->top, pads->bottom) < w.kernel_height &&
           std::max(pads->left, pads->right) < w.kernel_width;
  };
  return std::ranges::all_of(readers, takes) ? pads : std::nullopt;
}

Placement plan_placement(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning, bool keep) {
  return Planner(chip, graph, tuning).run(keep);
}

}  // namespace skillet::npus::rockchip
