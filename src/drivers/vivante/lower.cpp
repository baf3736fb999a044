#include "drivers/vivante/lower.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/int_math.h"
#include "drivers/vivante/filters.h"
#include "drivers/vivante/support.h"
#include "drivers/vivante/tp.h"

namespace skillet::drivers::vivante {
namespace {

using driver::BufferRole;
using driver::Layout;
using ir::OpKind;
using ir::TensorId;

class Lowerer {
 public:
  Lowerer(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning)
      : chip_(chip), graph_(graph), tuning_(tuning) {
    slots_of_.assign(graph.tensors.size(), {kNoSlot, kNoSlot});
  }

  Result<Lowered> run() {
    for (const TensorId input : graph_.inputs) {
      const SlotId slot = add_slot(graph_.tensor(input).name, tensor_bytes(input), BufferRole::input);
      slot_of(input, Layout::nhwc) = slot;
      out_.inputs.push_back({input, slot, Layout::nhwc});
    }
    for (op_ = 0; op_ < static_cast<ir::OpId>(graph_.ops.size()); ++op_) {
      const driver::Support support = supports(chip_, graph_, op_);
      if (!support.ok) return error(ErrorCode::unsupported, "{}: {}", describe_op(graph_, op_), support.reason);
      lower_op(graph_.op(op_));
    }
    for (const TensorId output : graph_.outputs) lower_output(output);
    note_intermediates();
    return std::move(out_);
  }

 private:
  // ---- slots ----

  uint64_t tensor_bytes(TensorId tensor) const { return static_cast<uint64_t>(graph_.tensor(tensor).shape.elems()); }
  Image image(TensorId tensor) const { return image_of(graph_.tensor(tensor).shape); }
  uint8_t zero_point(TensorId tensor) const { return unsigned_zero_point(graph_.tensor(tensor)); }

  SlotId add_slot(std::string name, uint64_t size_bytes, BufferRole role = BufferRole::scratch) {
    out_.slots.push_back({.name = std::move(name), .size_bytes = size_bytes, .role = role});
    return static_cast<SlotId>(out_.slots.size() - 1);
  }
  SlotId& slot_of(TensorId tensor, Layout layout) {
    return slots_of_[static_cast<size_t>(tensor)][static_cast<size_t>(layout)];
  }
  bool has(TensorId tensor, Layout layout) { return slot_of(tensor, layout) != kNoSlot; }
  Layout any_layout(TensorId tensor) { return has(tensor, Layout::nchw_planar) ? Layout::nchw_planar : Layout::nhwc; }

  // A tensor that a job has written; where both layouts are the same bytes it counts as both.
  void define(TensorId tensor, Layout layout, SlotId slot) {
    slot_of(tensor, layout) = slot;
    if (image(tensor).layouts_coincide()) slot_of(tensor, Layout::nhwc) = slot_of(tensor, Layout::nchw_planar) = slot;
  }
  SlotId define_new(TensorId tensor, Layout layout) {
    const SlotId slot = add_slot(graph_.tensor(tensor).name, tensor_bytes(tensor));
    define(tensor, layout, slot);
    return slot;
  }

  // ---- operations ----

  template <typename Job>
  void emit(std::string kind, Job job, bool inserted = false) {
    out_.operations.push_back({inserted ? -1 : op_, std::move(kind), std::move(job)});
  }
  int tp_cores() const { return chip_.tp_cores; }

  // The tensor in this layout; converts it by a TP job when it is not there yet.
  SlotId in_layout(TensorId tensor, Layout layout) {
    if (has(tensor, layout)) return slot_of(tensor, layout);
    if (tuning_.skip_idle_transposes && image(tensor).layouts_coincide()) return slot_of(tensor, any_layout(tensor));
    const bool to_planar = layout == Layout::nchw_planar;
    const SlotId from = slot_of(tensor, to_planar ? Layout::nhwc : Layout::nchw_planar);
    const SlotId to =
        add_slot(graph_.tensor(tensor).name + (to_planar ? " (planar)" : " (NHWC)"), tensor_bytes(tensor));
    if (!to_planar || tuning_.share_transposes) slot_of(tensor, layout) = to;
    if (to_planar)
      emit("TP transpose", transpose(image(tensor), from, to, zero_point(tensor)), true);
    else
      emit("TP detranspose", detranspose(image(tensor), from, to, zero_point(tensor)), true);
    return to;
  }

  // A slot with these bytes that may be placed inside another: itself, or a copy when its place is already fixed.
  SlotId placeable(SlotId slot, const Image& shape, uint8_t zp) {
    if (out_.slots[slot].parent == kNoSlot) return slot;
    const SlotId copy = add_slot(out_.slots[slot].name + " (copy)", out_.slots[slot].size_bytes);
    emit("TP copy", pad({.x = shape.width, .y = shape.height, .z = shape.channels}, slot, copy, zp, tp_cores()), true);
    return copy;
  }
  void place(SlotId child, SlotId parent, uint64_t offset_bytes) {
    out_.slots[child].parent = parent;
    out_.slots[child].offset_bytes = offset_bytes;
  }

  void lower_op(const ir::Op& op) {
    switch (op.kind) {
      case OpKind::conv_2d:
      case OpKind::depthwise_conv_2d:
      case OpKind::fully_connected: return lower_conv(op);
      case OpKind::add: return lower_add(op);
      case OpKind::concatenation: return lower_concatenation(op);
      case OpKind::split: return lower_split(op);
      case OpKind::pad: return lower_pad(op);
      case OpKind::reshape: return lower_reshape(op);
      case OpKind::transpose: return lower_transpose(op);
      case OpKind::relu: return lower_table(op, TableFunction::relu);
      case OpKind::abs: return lower_table(op, TableFunction::abs);
      case OpKind::logistic: return lower_table(op, TableFunction::logistic);
      default: return;  // supports() refused it
    }
  }

  // A planar copy of a stride-2 convolution's input, four planes per channel, padding included.
  SlotId reshuffled(TensorId input, SlotId planar, const ConvShape& s, Image& in) {
    Reshuffle r{.in = s.in, .pad_x = s.pad_x, .pad_y = s.pad_y};
    r.out_width = s.out.width + ceil_div(s.kernel_width, 2) - 1;
    r.out_height = s.out.height + ceil_div(s.kernel_height, 2) - 1;
    in = {r.out_width, r.out_height, 4 * s.in.channels};
    const SlotId slot = add_slot(graph_.tensor(input).name + " (reshuffled)", static_cast<uint64_t>(in.bytes()));
    // One core for these: the recorded driver's rule, its reason unknown (section 5.5).
    const bool single =
        (s.in.channels == 1 && s.in.height <= 8) || (s.in.channels == 3 && (s.in.height == 320 || s.in.height == 224));
    emit("TP reshuffle", reshuffle(r, planar, slot, zero_point(input), single ? 1 : tp_cores()), true);
    return slot;
  }

  void lower_conv(const ir::Op& op) {
    const TensorId input = op.input(0), output = op.outputs[0];
    const ConvShape s = conv_shape(graph_, op_);
    const StrideMethod method = stride_method(s);
    NnOperation nn{.in = s.in, .out = s.out, .offset_x = -s.pad_x, .offset_y = -s.pad_y, .stride = s.stride};
    // A fully connected layer reads its input as a vector, which counts in NHWC order.
    nn.input = in_layout(input, op.kind == OpKind::fully_connected ? Layout::nhwc : Layout::nchw_planar);
    FilterTransform transform = FilterTransform::none;
    if (method == StrideMethod::reshuffle) {
      nn.input = reshuffled(input, nn.input, s, nn.in);
      nn.offset_x = nn.offset_y = 0;
      transform = FilterTransform::space_to_depth;
    } else if (s.kernel_height == 1 && s.kernel_width == 1 && s.in.channels == 1) {
      transform = FilterTransform::widen_to_2x2;
    }
    nn.first_pixel = method == StrideMethod::first_pixel;
    nn.kernels = make_kernels(graph_, op_, s, transform);
    nn.relu = fused_activation(op) != ir::Activation::none;
    // At output zero point 0 the clamp of the 8-bit output does what the relu bit would do.
    if (tuning_.six_channel_relu && nn.kernels.patch_elems() == 1 && zero_point(output) == 0) nn.relu = false;
    nn.six_channel_order = nn.kernels.patch_elems() == 1 && !nn.relu;
    nn.search_zero_runs = !nn.six_channel_order;
    nn.input_zero_point = zero_point(input);
    nn.output_zero_point = zero_point(output);
    nn.scale = conv_scale(graph_, op_);
    nn.output = define_new(output, Layout::nchw_planar);
    emit(fmt::format("NN {} {}x{}",
                     s.depthwise                          ? "depthwise"
                     : op.kind == OpKind::fully_connected ? "fully connected"
                                                          : "conv",
                     s.kernel_height, s.kernel_width),
         std::move(nn));
  }

  static ir::Activation fused_activation(const ir::Op& op) {
    return op.kind == OpKind::fully_connected ? op.as<ir::FullyConnectedAttrs>().activation
                                              : op.as<ir::ConvAttrs>().activation;
  }

  // acc = W*q0 + A*q1 + bias with 8-bit W and A (section 7.7).
  struct AdditionWeights {
    uint8_t first = 0, second = 0;
    int32_t bias = 0;
    float scale = 1;
  };
  AdditionWeights addition_weights(const ir::Op& op) const {
    const float s0 = graph_.tensor(op.input(0)).quant.scale(), s1 = graph_.tensor(op.input(1)).quant.scale();
    const int32_t zp0 = zero_point(op.input(0)), zp1 = zero_point(op.input(1));
    const float ratio = s1 / s0;
    const auto step = static_cast<float>(std::max(double{ratio}, 1.0) / 255.0);
    AdditionWeights w;
    w.first = static_cast<uint8_t>(std::min(std::round(1.0 / step), 255.0));
    w.second = static_cast<uint8_t>(std::min(std::round(double{ratio} / step), 255.0));
    const double correction = std::round((zp0 - zp1) * double{s1} / (double{step} * s0));
    w.bias = static_cast<int32_t>(correction) - w.second * zp0 - w.first * zp0;
    w.scale = s0 * step / graph_.tensor(op.outputs[0]).quant.scale();
    return w;
  }

  void lower_add(const ir::Op& op) {
    const TensorId a = op.input(0), b = op.input(1), output = op.outputs[0];
    const Layout layout = has(a, Layout::nhwc) && has(b, Layout::nhwc) ? Layout::nhwc : Layout::nchw_planar;
    const Image shape = image(a);
    const SlotId slot_a = placeable(in_layout(a, layout), shape, zero_point(a));
    const SlotId both = add_slot(graph_.tensor(output).name + " (operands)", 2 * tensor_bytes(a));
    place(slot_a, both, 0);
    place(placeable(in_layout(b, layout), shape, zero_point(b)), both, tensor_bytes(a));
    const AdditionShape size = *addition_shape(graph_.tensor(a).shape);
    const AdditionWeights weights = addition_weights(op);
    NnOperation nn{.input = both, .in = {size.width, size.height, 2}, .out = {size.width, size.height, 1}};
    nn.search_zero_runs = false;
    // Tiles as recorded: from the transposed image. The cut of the buffer into rows is arbitrary anyway.
    nn.tile_basis_width = size.height;
    nn.tile_basis_height = size.width;
    nn.input_zero_point = zero_point(a);
    nn.output_zero_point = zero_point(output);
    nn.scale = weights.scale;
    auto pixels = std::make_shared<const Bytes>(Bytes{weights.first, 0, 0, 0, weights.second, 0, 0, 0});
    nn.kernels = {.output_channels = 1,
                  .input_channels = 2,
                  .height = 2,
                  .width = 2,
                  .band = 2,
                  .weights = *pixels,
                  .lowered = pixels,
                  .biases = {weights.bias}};
    nn.output = define_new(output, layout);
    emit("NN add", std::move(nn));
  }

  void lower_concatenation(const ir::Op& op) {
    const TensorId output = op.outputs[0];
    const SlotId whole = define_new(output, Layout::nchw_planar);
    uint64_t offset = 0;
    for (const TensorId input : op.inputs) {
      place(placeable(in_layout(input, Layout::nchw_planar), image(input), zero_point(input)), whole, offset);
      offset += tensor_bytes(input);
    }
  }

  void lower_split(const ir::Op& op) {
    const SlotId whole = in_layout(op.input(1), Layout::nchw_planar);
    uint64_t offset = 0;
    for (const TensorId output : op.outputs) {
      place(define_new(output, Layout::nchw_planar), whole, offset);
      offset += tensor_bytes(output);
    }
  }

  void lower_pad(const ir::Op& op) {
    const TensorId input = op.input(0), output = op.outputs[0];
    const Layout layout = any_layout(input);
    const Image i = image(input);
    const PadAmounts p = pad_amounts(graph_, op_);
    const PadShape planar{i.width,    i.height,  i.channels, p.before_w, p.after_w,
                          p.before_h, p.after_h, p.before_c, p.after_c};
    const PadShape nhwc{i.channels, i.width,   i.height,   p.before_c, p.after_c,
                        p.before_w, p.after_w, p.before_h, p.after_h};
    const SlotId from = slot_of(input, layout);
    const SlotId to = define_new(output, layout);
    emit("TP pad",
         pad(layout == Layout::nhwc ? nhwc : planar, from, to, zero_point(output), i.height == 1 ? 1 : tp_cores()));
  }

  void lower_reshape(const ir::Op& op) { define(op.outputs[0], Layout::nhwc, in_layout(op.input(0), Layout::nhwc)); }

  // (0, 3, 1, 2): the output's linear order is the input's planar one. (0, 2, 3, 1): the other way round.
  void lower_transpose(const ir::Op& op) {
    const bool to_planar = graph_.tensor(op.input(1)).values<int32_t>()[1] == 3;
    const SlotId slot = in_layout(op.input(0), to_planar ? Layout::nchw_planar : Layout::nhwc);
    define(op.outputs[0], to_planar ? Layout::nhwc : Layout::nchw_planar, slot);
  }

  void lower_table(const ir::Op& op, TableFunction function) {
    const TensorId input = op.input(0), output = op.outputs[0];
    const Layout layout = any_layout(input);
    const Image i = image(input);
    const TableShape shape{i.channels,
                           i.width,
                           i.height,
                           zero_point(input),
                           zero_point(output),
                           graph_.tensor(input).quant.scale(),
                           graph_.tensor(output).quant.scale()};
    const bool single = function != TableFunction::abs && i.height < 6;
    const SlotId from = slot_of(input, layout);
    const SlotId to = define_new(output, layout);
    emit(fmt::format("TP {}", op_kind_name(op.kind)),
         table_function(function, shape, from, to, single ? 1 : tp_cores()));
  }

  void lower_output(TensorId output) {
    const SlotId slot = in_layout(output, Layout::nhwc);
    if (out_.slots[slot].role == BufferRole::scratch) out_.slots[slot].role = BufferRole::output;
    out_.outputs.push_back({output, slot, Layout::nhwc});
  }

  void note_intermediates() {
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      const auto tensor = static_cast<TensorId>(i);
      const Layout layout = has(tensor, Layout::nhwc) ? Layout::nhwc : Layout::nchw_planar;
      if (has(tensor, layout)) out_.intermediates.push_back({tensor, slot_of(tensor, layout), layout});
    }
  }

  const hw::ChipRow& chip_;
  const ir::Graph& graph_;
  const Tuning& tuning_;
  Lowered out_;
  std::vector<std::array<SlotId, 2>> slots_of_;  // by tensor, by layout
  ir::OpId op_ = 0;
};

}  // namespace

Result<Lowered> lower(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning) {
  return Lowerer(chip, graph, tuning).run();
}

Place place_of(const std::vector<Slot>& slots, SlotId slot) {
  Place place{slot, 0};
  while (slots[place.root].parent != kNoSlot) {
    place.offset_bytes += slots[place.root].offset_bytes;
    place.root = slots[place.root].parent;
  }
  return place;
}

}  // namespace skillet::drivers::vivante
