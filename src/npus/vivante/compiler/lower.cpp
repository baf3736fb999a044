#include "npus/vivante/compiler/lower.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "npus/vivante/compiler/addition.h"
#include "npus/vivante/compiler/byte_table.h"
#include "npus/vivante/compiler/choices.h"
#include "npus/vivante/compiler/filters.h"
#include "npus/vivante/compiler/groups.h"
#include "npus/vivante/compiler/moves.h"
#include "npus/vivante/compiler/support.h"
#include "npus/vivante/compiler/tp.h"
#include "npus/vivante/compiler/weights.h"

namespace skillet::npus::vivante {
namespace {

using ir::OpKind;
using ir::TensorId;
using npu::BufferRole;

class Lowerer {
 public:
  Lowerer(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning, bool keep_intermediates)
      : chip_(chip), graph_(graph), tuning_(tuning), keep_intermediates_(keep_intermediates) {
    slots_of_.assign(graph.tensors.size(), {kNoSlot, kNoSlot});
    grouped_.resize(graph.tensors.size());
  }

  Result<Lowered> run() {
    // The caller has checked the graph, or made it from a checked one. A mistake there must not become an index here.
    SK_TRY(ir::verify(graph_));
    for (const TensorId input : graph_.inputs) {
      if (!ir::is_8bit(graph_.tensor(input).dtype))
        return error(ErrorCode::unsupported, "graph input {} is not 8-bit", describe_tensor(graph_, input));
      const SlotId slot = add_slot(graph_.tensor(input).name, tensor_bytes(input), BufferRole::input);
      slot_of(input, Layout::nhwc) = slot;
      out_.inputs.push_back({input, slot, Layout::nhwc});
    }
    for (op_ = 0; op_ < static_cast<ir::OpId>(graph_.ops.size()); ++op_) {
      const npu::Support support = supports(chip_, graph_, op_);
      if (!support.ok) return error(ErrorCode::unsupported, "{}: {}", describe_op(graph_, op_), support.reason);
      if (graph_.op(op_).kind != OpKind::conv_2d && graph_.op(op_).kind != OpKind::depthwise_conv_2d) {
        for (const TensorId input : graph_.op(op_).inputs) sort_planes(input);
      }
      SK_TRY_IN_CONTEXT(lower_op(graph_.op(op_)), describe_op(graph_, op_));
      SK_TRY(lower_outputs_of(graph_.op(op_)));
    }
    for (const TensorId output : graph_.outputs) SK_TRY(lower_output(output));
    note_intermediates();
    SK_TRY(check_slots(out_));
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

  // Marks a tensor as written by a job. If both layouts are the same bytes, both count.
  void define(TensorId tensor, Layout layout, SlotId slot) {
    slot_of(tensor, layout) = slot;
    if (image(tensor).layouts_coincide()) slot_of(tensor, Layout::nhwc) = slot_of(tensor, Layout::nchw_planar) = slot;
  }
  SlotId define_new(TensorId tensor, Layout layout) {
    const SlotId slot = add_slot(graph_.tensor(tensor).name, tensor_bytes(tensor));
    define(tensor, layout, slot);
    return slot;
  }

  // Planes in the order of the job groups that wrote them. Convolutions read them in that order, with weights in the
  // same order; for all other readers a job sorts them into the model's order.
  struct Grouped {
    SlotId slot = kNoSlot;
    PlaneOrder order;
  };
  void sort_planes(TensorId tensor) {
    if (tensor == ir::kNoTensor) return;
    const Grouped& from = grouped_[static_cast<size_t>(tensor)];
    if (from.slot == kNoSlot || has(tensor, Layout::nchw_planar)) return;
    const Image shape = image(tensor);
    NnOperation nn{.input = from.slot, .in = shape, .out = shape};
    nn.sram_caches = chip_.has(hw::kSramCaches) || tuning_.sram_caches;
    choose_coefficients(nn);
    nn.kernels = sorting_kernels(from.order, hw::generation_of(chip_).pixel_center, zero_point(tensor));
    order_weights({.in = shape, .out = shape, .pointwise = true}, nn);
    nn.input_zero_point = nn.output_zero_point = zero_point(tensor);
    nn.output = define_new(tensor, Layout::nchw_planar);
    emit("NN sort channels", std::move(nn), true);
  }

  // ---- operations ----

  template <typename Job>
  void emit(std::string kind, Job job, bool inserted = false) {
    out_.operations.push_back({inserted ? -1 : op_, std::move(kind), std::move(job)});
  }
  template <typename Job>
  void emit_all(const std::string& kind, std::vector<Job> jobs, bool inserted = false) {
    for (Job& job : jobs) emit(kind, std::move(job), inserted);
  }
  int tp_cores() const { return chip_.tp_cores; }

  // The tensor's slot. Internal error if nothing has written it: constants, for instance, have no slot.
  Result<SlotId> any_slot(TensorId tensor) {
    const SlotId slot = slot_of(tensor, any_layout(tensor));
    if (slot != kNoSlot) return slot;
    return error(ErrorCode::internal, "{} is not in device memory", describe_tensor(graph_, tensor));
  }

  // The slot of the tensor in this layout; a TP job converts it if needed.
  Result<SlotId> in_layout(TensorId tensor, Layout layout) {
    if (has(tensor, layout)) return slot_of(tensor, layout);
    SK_TRY_ASSIGN(const SlotId from, any_slot(tensor));
    if (tuning_.skip_idle_transposes && image(tensor).layouts_coincide()) return from;
    const bool to_planar = layout == Layout::nchw_planar;
    const SlotId to =
        add_slot(graph_.tensor(tensor).name + (to_planar ? " (planar)" : " (NHWC)"), tensor_bytes(tensor));
    if (!to_planar || tuning_.share_transposes) slot_of(tensor, layout) = to;
    if (to_planar)
      emit_all("TP transpose", transpose(image(tensor), from, to, zero_point(tensor)), true);
    else
      emit_all("TP detranspose", detranspose(image(tensor), from, to, zero_point(tensor)), true);
    return to;
  }

  // A slot with these bytes that can be placed inside another: itself, or a copy if its place is already fixed.
  SlotId placeable(SlotId slot, const Image& shape, uint8_t zp) {
    if (out_.slots[slot].parent == kNoSlot) return slot;
    const SlotId copy = add_slot(out_.slots[slot].name + " (copy)", out_.slots[slot].size_bytes);
    emit_all("TP copy", vivante::copy(shape, slot, copy, zp, tp_cores()), true);
    return copy;
  }
  void place(SlotId child, SlotId parent, uint64_t offset_bytes) {
    out_.slots[child].parent = parent;
    out_.slots[child].offset_bytes = offset_bytes;
  }

  Result<void> lower_op(const ir::Op& op) {
    if (is_sign_change(graph_, op)) return lower_sign_change(op);
    if (byte_input(graph_, op) >= 0) return lower_byte_function(op);
    switch (op.kind) {
      case OpKind::conv_2d:
      case OpKind::depthwise_conv_2d:
      case OpKind::fully_connected: return lower_conv(op);
      case OpKind::add:
      case OpKind::sub: return lower_add(op);
      case OpKind::concatenation: return lower_concatenation(op);
      case OpKind::split:
      case OpKind::split_v: return lower_split(op);
      case OpKind::pad: return lower_pad(op);
      case OpKind::reshape: return lower_reshape(op);
      case OpKind::transpose: return lower_transpose(op);
      case OpKind::depth_to_space:
      case OpKind::resize_nearest_neighbor: return lower_moves(op);
      case OpKind::relu: return lower_table(op, TableFunction::relu);
      case OpKind::abs: return lower_table(op, TableFunction::abs);
      case OpKind::logistic: return lower_table(op, TableFunction::logistic);
      default: return error(ErrorCode::internal, "supports() takes what lower() does not know");
    }
  }

  // A planar copy of a stride-2 convolution's input, four planes per channel, padding included.
  SlotId reshuffled(TensorId input, SlotId planar, const ConvShape& s, Image& in) {
    Reshuffle r{.in = s.in, .pad_x = s.pad_x, .pad_y = s.pad_y};
    in = tuning_.tight_reshuffle ? reshuffled_image(s) : recorded_reshuffled_image(s);
    r.out_width = in.width;
    r.out_height = in.height;
    const SlotId slot = add_slot(graph_.tensor(input).name + " (reshuffled)", static_cast<uint64_t>(in.bytes()));
    // One core only: the recorded driver's rule, for an unknown reason (section 5.5).
    const bool single =
        (s.in.channels == 1 && s.in.height <= 8) || (s.in.channels == 3 && (s.in.height == 320 || s.in.height == 224));
    emit("TP reshuffle", reshuffle(r, planar, slot, zero_point(input), single ? 1 : tp_cores()), true);
    return slot;
  }

  Result<void> lower_conv(const ir::Op& op) {
    const TensorId input = op.input(0), output = op.outputs[0];
    ConvShape s = conv_shape(chip_, graph_, op_);
    s.pointwise &= tuning_.pointwise_always || fused_activation(op) != ir::Activation::relu6;
    const bool chosen = tuning_.choice(op_, kFirstPixel) != 0 && may_keep_first_pixel(chip_, s);
    const StrideMethod method = chosen ? StrideMethod::first_pixel : stride_method(chip_, s);
    NnOperation nn{.in = s.in, .out = s.out, .offset_x = -s.pad_x, .offset_y = -s.pad_y, .stride = s.stride};
    nn.depthwise = is_native_depthwise(chip_, s);
    nn.tile_rows = tuning_.choice(op_, kTileRows);
    nn.sram_caches = chip_.has(hw::kSramCaches) || tuning_.sram_caches;
    choose_coefficients(nn);
    const Grouped& grouped = grouped_[static_cast<size_t>(input)];
    // A native depthwise job needs its planes in the order of its kernels.
    const bool as_grouped = op.kind != OpKind::fully_connected && !nn.depthwise && grouped.slot != kNoSlot;
    if (as_grouped) {
      nn.input = grouped.slot;
    } else {
      sort_planes(input);
      SK_TRY_ASSIGN(nn.input, in_layout(input, conv_layout(op)));
    }
    FilterTransform transform = op.kind == OpKind::fully_connected ? FilterTransform::linear : FilterTransform::none;
    if (method == StrideMethod::reshuffle) {
      nn.input = reshuffled(input, nn.input, s, nn.in);
      nn.offset_x = nn.offset_y = 0;
      transform = FilterTransform::space_to_depth;
    } else if (s.pointwise && s.in.channels == 1) {
      transform = FilterTransform::widen_to_2x2;
    }
    nn.first_pixel = method == StrideMethod::first_pixel;
    if (!tuning_.image_tiles) {
      nn.tile_basis_width = s.out.height * (nn.first_pixel ? 2 : 1);
      nn.tile_basis_height = s.out.width * (nn.first_pixel ? 2 : 1);
    }
    nn.input_zero_point = zero_point(input);
    nn.output_zero_point = zero_point(output);
    const Kernels kernels = make_kernels(chip_, graph_, op_, s, transform, signed_bytes());
    const std::string kind = fmt::format("NN {} {}x{}",
                                         s.depthwise                          ? "depthwise"
                                         : op.kind == OpKind::fully_connected ? "fully connected"
                                                                              : "conv",
                                         s.kernel_height, s.kernel_width);
    const auto groups = channel_groups(graph_.tensor(op.input(1)).quant, s.out.channels);
    if (groups.size() > 1 && !tuning_.scale_groups)
      return error(ErrorCode::unsupported, "{}: weights have {} scales, a job has one", describe_op(graph_, op_),
                   groups.size());
    const int32_t parts = tuning_.choice(op_, kChannelGroups);
    if (parts > 1 && groups.size() == 1 && !as_grouped && method != StrideMethod::reshuffle &&
        may_divide_channels(chip_, kernels, parts))
      emit_parts(kind, s, nn, kernels, groups[0].scale, parts);
    else
      emit_groups(kind, s, nn, kernels, groups, as_grouped ? grouped.order : PlaneOrder{});
    return {};
  }

  // Jobs of equally many channels, each on its own planes.
  void emit_parts(const std::string& kind, ConvShape s, const NnOperation& whole, const Kernels& all, float scale,
                  int32_t parts) {
    const TensorId output = graph_.op(op_).outputs[0];
    const SlotId planes = define_new(output, Layout::nchw_planar);
    const int32_t center = hw::generation_of(chip_).pixel_center - zero_point(graph_.op(op_).input(0));
    for (int32_t part = 0; part < parts; ++part) {
      NnOperation nn = whole;
      nn.kernels = channel_part(all, part, parts, center);
      nn.in.channels = nn.kernels.input_channels;
      nn.out.channels = s.out.channels = nn.kernels.output_channels;
      nn.relu = fused_activation(graph_.op(op_)) != ir::Activation::none && !relu_is_idle(graph_.op(op_), nn.kernels);
      order_weights(s, nn);
      nn.scale = conv_scale(graph_, op_, scale);
      nn.input = piece(whole.input, nn.in, part);
      nn.output = piece(planes, nn.out, part);
      emit(kind, std::move(nn));
    }
  }
  SlotId piece(SlotId whole, const Image& image, int32_t index) {
    const SlotId slot = add_slot(out_.slots[whole].name, static_cast<uint64_t>(image.bytes()));
    place(slot, whole, static_cast<uint64_t>(image.bytes() * index));
    return slot;
  }

  // A job for each scale of the weights.
  void emit_groups(const std::string& kind, ConvShape s, const NnOperation& whole, const Kernels& all,
                   const std::vector<ChannelGroup>& groups, const PlaneOrder& input_order) {
    const ir::Op& op = graph_.op(op_);
    const TensorId output = op.outputs[0];
    const SlotId planes = define_groups(output, plane_order(groups));
    const bool is_divided = groups.size() > 1 || !input_order.empty();
    const Kernels source = is_divided && all.kernels_per_band != 0 ? without_bands(all, all.zero_point) : all;
    int64_t first = 0;
    for (const ChannelGroup& group : groups) {
      NnOperation nn = whole;
      nn.kernels = is_divided ? select_kernels(source, group.channels, input_order) : source;
      nn.out.channels = s.out.channels = nn.kernels.output_channels;
      nn.relu = fused_activation(op) != ir::Activation::none && !relu_is_idle(op, nn.kernels);
      order_weights(s, nn);
      nn.scale = conv_scale(graph_, op_, group.scale);
      nn.output = planes;
      if (groups.size() > 1) {
        nn.output = add_slot(graph_.tensor(output).name, static_cast<uint64_t>(nn.out.bytes()));
        place(nn.output, planes, static_cast<uint64_t>(first * nn.out.plane_bytes()));
      }
      first += nn.out.channels;
      emit(kind, std::move(nn));
    }
  }
  SlotId define_groups(TensorId output, PlaneOrder order) {
    if (order.empty()) return define_new(output, Layout::nchw_planar);
    const SlotId slot = add_slot(graph_.tensor(output).name + " (grouped)", tensor_bytes(output));
    grouped_[static_cast<size_t>(output)] = {slot, std::move(order)};
    return slot;
  }

  void choose_coefficients(NnOperation& nn) const {
    if (tuning_.smallest_symbol_map) nn.symbol_map = SymbolMapChoice::smallest;
    nn.v8_coefficients = tuning_.v8_coefficients && chip_.has(hw::kCoefficientEnhancement);
    nn.raw_weights = tuning_.raw_weights && nn.v8_coefficients && hw::generation_of(chip_).generation == 7;
  }

  SignedBytes signed_bytes() const {
    const bool raised = tuning_.unsigned_bytes || hw::generation_of(chip_).recorded_raises_int8;
    return raised ? SignedBytes::raised : SignedBytes::as_they_are;
  }

  // V7: order of the weights of filters that are 1x1 after lowering. Recorded: of filters that are treated as 1x1, with
  // more than 8 output channels on any number of cores; and all those without zero runs.
  void order_weights(const ConvShape& s, NnOperation& nn) const {
    constexpr int32_t kRecordedDenseChannels = 8;
    const bool is_1x1 = nn.kernels.patch_elems() == 1;
    const bool recorded = s.pointwise && s.out.channels > kRecordedDenseChannels;
    nn.six_channel_order = is_1x1 && (tuning_.six_channels ? !nn.relu : recorded);
    const bool plain = is_1x1 && (tuning_.six_channels ? !nn.relu : s.pointwise);
    nn.search_zero_runs = !plain || tuning_.zero_runs;
  }

  // A fully connected layer reads its input as an NHWC vector. Recorded jobs also transpose vectors, without need.
  Layout conv_layout(const ir::Op& op) {
    if (op.kind != OpKind::fully_connected) return Layout::nchw_planar;
    const bool recorded = hw::generation_of(chip_).linear_filters && image(op.input(0)).plane_bytes() == 1;
    return recorded ? Layout::nchw_planar : Layout::nhwc;
  }

  // At output zero point 0 the 8-bit output clamps as the relu bit would.
  bool relu_is_idle(const ir::Op& op, const Kernels& kernels) const {
    if (zero_point(op.outputs[0]) != 0) return false;
    const hw::Generation& generation = hw::generation_of(chip_);
    const bool recorded = op.kind == OpKind::fully_connected;
    return recorded || (tuning_.six_channels && generation.channel_groups && kernels.patch_elems() == 1);
  }

  static ir::Activation fused_activation(const ir::Op& op) {
    return op.kind == OpKind::fully_connected ? op.as<ir::FullyConnectedAttrs>().activation
                                              : op.as<ir::ConvAttrs>().activation;
  }

  Result<void> lower_add(const ir::Op& op) {
    const TensorId a = op.input(0), b = op.input(1), output = op.outputs[0];
    const Layout layout = has(a, Layout::nhwc) && has(b, Layout::nhwc) ? Layout::nhwc : Layout::nchw_planar;
    const Image shape = image(a);
    SK_TRY_ASSIGN(const SlotId from_a, in_layout(a, layout));
    const SlotId slot_a = placeable(from_a, shape, zero_point(a));
    const SlotId both = add_slot(graph_.tensor(output).name + " (operands)", 2 * tensor_bytes(a));
    place(slot_a, both, 0);
    SK_TRY_ASSIGN(const SlotId from_b, in_layout(b, layout));
    place(placeable(from_b, shape, zero_point(b)), both, tensor_bytes(a));
    const AdditionWeights weights = addition_weights(chip_, graph_, op, signed_bytes());
    NnOperation nn = addition_job(chip_, shape, weights, tuning_.square_additions);
    if (tuning_.addition_tiles && hw::generation_of(chip_).chunked_additions)
      nn.tile_basis_width = nn.tile_basis_height = 0;
    nn.input = both;
    nn.input_zero_point = zero_point(a);
    nn.output_zero_point = zero_point(output);
    choose_coefficients(nn);
    nn.output = define_new(output, layout);
    emit(op.kind == OpKind::sub ? "NN subtract" : "NN add", std::move(nn));
    return {};
  }

  Result<void> lower_concatenation(const ir::Op& op) {
    const SlotId whole = define_new(op.outputs[0], Layout::nchw_planar);
    uint64_t offset = 0;
    for (const TensorId input : op.inputs) {
      SK_TRY_ASSIGN(const SlotId part, in_layout(input, Layout::nchw_planar));
      place(placeable(part, image(input), zero_point(input)), whole, offset);
      offset += tensor_bytes(input);
    }
    return {};
  }

  Result<void> lower_split(const ir::Op& op) {
    SK_TRY_ASSIGN(const SlotId whole, in_layout(op.input(op.kind == OpKind::split ? 1 : 0), Layout::nchw_planar));
    uint64_t offset = 0;
    for (const TensorId output : op.outputs) {
      place(define_new(output, Layout::nchw_planar), whole, offset);
      offset += tensor_bytes(output);
    }
    return {};
  }

  Result<void> lower_pad(const ir::Op& op) {
    const Layout layout = any_layout(op.input(0));
    const int cores = image(op.input(0)).height == 1 ? 1 : tp_cores();
    SK_TRY_ASSIGN(const SlotId from, any_slot(op.input(0)));
    const SlotId to = define_new(op.outputs[0], layout);
    emit("TP pad", pad(pad_shape(graph_, op_, layout), from, to, zero_point(op.outputs[0]), cores));
    return {};
  }

  Result<void> lower_reshape(const ir::Op& op) {
    SK_TRY_ASSIGN(const SlotId slot, in_layout(op.input(0), Layout::nhwc));
    define(op.outputs[0], Layout::nhwc, slot);
    return {};
  }

  // (0, 3, 1, 2): the output's linear order is the input's planar one. (0, 2, 3, 1): the reverse.
  Result<void> lower_transpose(const ir::Op& op) {
    const std::vector<int32_t> order = graph_.tensor(op.input(1)).values<int32_t>();
    const bool to_planar = order == std::vector<int32_t>{0, 3, 1, 2};
    if (!to_planar && order != std::vector<int32_t>{0, 2, 3, 1}) return lower_moves(op);
    SK_TRY_ASSIGN(const SlotId slot, in_layout(op.input(0), to_planar ? Layout::nchw_planar : Layout::nhwc));
    define(op.outputs[0], to_planar ? Layout::nhwc : Layout::nchw_planar, slot);
    return {};
  }

  // The same bytes under another name, in all layouts that exist.
  Result<void> lower_sign_change(const ir::Op& op) {
    if (!tuning_.sign_changes)
      return error(ErrorCode::unsupported, "{}: the recorded driver does not take it", describe_op(graph_, op_));
    SK_TRY(any_slot(op.input(0)));
    for (const Layout layout : {Layout::nhwc, Layout::nchw_planar})
      if (has(op.input(0), layout)) slot_of(op.outputs[0], layout) = slot_of(op.input(0), layout);
    return {};
  }

  TableShape table_shape(TensorId input, uint8_t zero, TensorId output) const {
    const Image i = image(input);
    const ir::Quant &from = graph_.tensor(input).quant, &to = graph_.tensor(output).quant;
    return {i.channels, i.width, i.height, zero, zero_point(output), from.scale(), to.scale(), tuning_.carry_in_tables};
  }

  // make(shape, from, to, cores) returns the jobs.
  template <typename Make>
  Result<void> lower_by_table(const ir::Op& op, TensorId input, uint8_t zero, int cores, Make make) {
    const Layout layout = any_layout(input);
    SK_TRY_ASSIGN(const SlotId from, any_slot(input));
    const SlotId to = define_new(op.outputs[0], layout);
    emit_all(fmt::format("TP {}", op_kind_name(op.kind)),
             make(table_shape(input, zero, op.outputs[0]), from, to, cores));
    return {};
  }
  Result<void> lower_table(const ir::Op& op, TableFunction function) {
    const bool single = function != TableFunction::abs && image(op.input(0)).height < 6;
    return lower_by_table(op, op.input(0), zero_point(op.input(0)), single ? 1 : tp_cores(),
                          [&](auto... job) { return table_function(function, job...); });
  }
  Result<void> lower_byte_function(const ir::Op& op) {
    const auto table = byte_table(graph_, op);
    if (!table) return error(ErrorCode::internal, "supports() takes what has no table");
    return lower_by_table(op, op.inputs[static_cast<size_t>(byte_input(graph_, op))], table->zero_point, tp_cores(),
                          [&](auto... job) { return byte_function(table->entries, job...); });
  }

  Result<void> lower_moves(const ir::Op& op) {
    SK_TRY_ASSIGN(const Moves moves, moves_of(graph_, op));
    SK_TRY_ASSIGN(const SlotId from, in_layout(op.input(0), moves.layout));
    const SlotId to = define_new(op.outputs[0], moves.layout);
    for (const Scatter& job : moves.jobs)
      emit(fmt::format("TP {}", op_kind_name(op.kind)), scatter(job, from, to, zero_point(op.input(0))));
    return {};
  }

  // The copy for the caller follows the operation at once, as recorded.
  Result<void> lower_outputs_of(const ir::Op& op) {
    for (const TensorId output : op.outputs) {
      const bool is_output = std::ranges::find(graph_.outputs, output) != graph_.outputs.end();
      if (is_output || keep_intermediates_) sort_planes(output);
      if (is_output) SK_TRY(in_layout(output, Layout::nhwc));
    }
    return {};
  }
  Result<void> lower_output(TensorId output) {
    SK_TRY_ASSIGN(const SlotId slot, in_layout(output, Layout::nhwc));
    if (out_.slots[slot].role == BufferRole::scratch) out_.slots[slot].role = BufferRole::output;
    out_.outputs.push_back({output, slot, Layout::nhwc});
    return {};
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
  const bool keep_intermediates_;
  Lowered out_;
  std::vector<std::array<SlotId, 2>> slots_of_;  // by tensor, by layout
  std::vector<Grouped> grouped_;                 // by tensor
  ir::OpId op_ = 0;
};

}  // namespace

Result<Lowered> lower(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning, bool keep_intermediates) {
  return Lowerer(chip, graph, tuning, keep_intermediates).run();
}

}  // namespace skillet::npus::vivante
