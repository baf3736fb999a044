// Lowers operations of the graph to operations of the chip: lower.cpp convolutions, lower_elements.cpp functions of
// elements, lower_moves.cpp operations that move, join or average.
// Called by these files only.
// Must not know: tasks, registers, programs.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "base/int_math.h"
#include "npus/rockchip/compiler/lower.h"
#include "npus/rockchip/compiler/moves.h"
#include "npus/rockchip/compiler/placement.h"
#include "npus/rockchip/compiler/recorded.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {

inline uint64_t surfaces(int32_t channels) { return static_cast<uint64_t>(ceil_div(channels, kAtom)); }

class Lowerer {
 public:
  Lowerer(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning, bool keep)
      : chip_(chip),
        graph_(graph),
        tuning_(tuning),
        places_(graph.tensors.size()),
        producers_(ir::producers(graph)),
        plan_(plan_placement(chip, graph, tuning, keep)) {}

  Result<Lowered> run();

 private:
  const ir::Tensor& tensor(ir::TensorId id) const { return graph_.tensor(id); }
  std::optional<PlacedTensor>& placed(ir::TensorId id) { return places_[static_cast<size_t>(id)]; }
  bool is_output(ir::TensorId id) const { return std::ranges::count(graph_.outputs, id) != 0; }

  // ---- memory ----

  uint64_t surface_bytes(const Plane& plane) const {
    return static_cast<uint64_t>(surface_pitch(plane, tuning_)) * kAtom;
  }

  // Padding that the readers of a PAD's output do themselves.
  const std::optional<PadAmounts>& pads_of(ir::TensorId id) const { return plan_.folded[static_cast<size_t>(id)]; }
  ir::TensorId unpadded(ir::TensorId id) const {
    return pads_of(id) ? graph_.op(producers_[static_cast<size_t>(id)]).inputs[0] : id;
  }

  PlacedTensor& define(ir::TensorId id, npu::BufferRole role);
  // The place of an operation's output; recorded: also of one that a later operation makes.
  Place place_of(ir::TensorId id) {
    if (placed(id)) return placed(id)->place;
    return define(id, is_output(id) ? npu::BufferRole::output : npu::BufferRole::scratch).place;
  }
  void touch(const Place& place, uint64_t bytes) {
    if (!tuning_.whole_groups) return;
    uint64_t& size = out_.slots[place.slot].size_bytes;
    size = std::max(size, place.offset_bytes + bytes);
  }
  bool comes_from_host(const Place& place) const { return out_.slots[place.slot].role == npu::BufferRole::input; }

  // Gives a tensor the memory of another one. The host must not write and read the same memory.
  Result<void> alias(ir::TensorId from, ir::TensorId to, uint64_t offset_bytes);
  // The pixels of `from` with the channels of `to`.
  ir::Tensor view(ir::TensorId from, ir::TensorId to) const;

  // ---- operations ----

  void share_weights(Conv& conv);  // operations with equal weights share them
  void emit(std::string kind, Conv conv);
  void emit_with_rest(const std::string& kind, const Conv& whole);
  void emit(std::string kind, Pointwise work) { out_.operations.push_back({op_, std::move(kind), std::move(work)}); }

  npu::Support recorded_support() const;
  Result<void> lower_op(const ir::Op& op);
  Result<void> lower_conv(const ir::Op& op);
  Result<void> emit_passes(const ir::Op& op, std::vector<Conv> passes);
  Place temporary(const ir::Tensor& like) { return temporary(like.name + " (a part)", plane_of(like.shape)); }
  Place temporary(std::string name, const Plane& plane) {
    out_.slots.push_back({std::move(name), npu::BufferRole::scratch, surface_bytes(plane) * surfaces(plane.channels)});
    return {static_cast<SlotId>(out_.slots.size() - 1), 0};
  }

  // Recorded, RK3576: the LEAKY_RELU that the convolution also does, because it alone reads the result; -1: none.
  ir::OpId slope_of(ir::OpId conv) const;
  bool is_slope(ir::OpId op) const;
  Result<void> lower_as_recorded(const ir::Op& op);
  // `first_channel`: of the output; of depthwise convolutions also of the input.
  Result<void> emit_conv(const ir::Op& op, Conv conv, const Place& output, std::string_view what,
                         int32_t first_channel = 0);
  Result<void> lower_average(const ir::Op& op);
  Result<void> lower_average_parts(const ir::Op& op, const Window& w);
  Result<void> emit_move(std::string kind, ir::TensorId from, ir::TensorId to, const Move& move, Conv conv);
  Result<void> lower_moves(const ir::Op& op);
  Result<void> lower_blocks(const ir::Op& op);
  Result<void> emit_from_to(std::string kind, ir::TensorId from, ir::TensorId to, Conv conv) {
    SK_TRY_ASSIGN(conv.input, surfaces_of(from));
    conv.output = place_of(to);
    emit(std::move(kind), std::move(conv));
    return {};
  }
  // Readers of surfaces cannot read packed rows. Tensors that are packed or in blocks have other readers only.
  Result<Place> surfaces_of(ir::TensorId id) {
    const Place place = place_of(id);
    if (placed(id)->form != Form::surfaces)
      return error(ErrorCode::internal, "'{}' is not in surfaces", tensor(id).name);
    return place;
  }

  bool is_fused() const {
    return !tuning_.exact_additions &&
           std::ranges::any_of(recorded_, [&](const RecordedConv& conv) { return conv.add == op_; });
  }
  Result<void> lower_sum(const ir::Op& op);
  // The ADD and the convolution that makes an operand for it alone: in one pass, or as two.
  Result<void> lower_fused(const ir::Op& add);
  Result<void> emit_sum(const ir::Op& op);
  Result<void> emit_pair(const ir::Op& op);
  // Memory for both operands of a sum.
  Place pair_place(ir::OpId sum, int32_t operand);
  // ---- elements ----

  Result<void> lower_product(const ir::Op& op);
  Result<void> lower_leaky(const ir::Op& op);
  Result<void> lower_table(const ir::Op& op);
  static int64_t atoms_of(const Plane& plane) { return plane.pixels() * ceil_div(plane.channels, kAtom); }

  Result<void> lower_selection(const ir::Op& op);
  // Pooling by the pooling unit.
  Result<void> lower_pool(const ir::Op& op);
  // ---- pixels ----

  Result<void> lower_maximum(const ir::Op& op);
  // The larger of each atom and the one `pixels` further on. The last `pixels` atoms have no partner and are left out.
  Place larger(const Place& from, int32_t pixels, const Plane& plane, int64_t& atoms);

  Result<void> lower_enlarged(const ir::Op& op);
  template <typename Make>
  void emit_copies(const std::string& kind, int32_t times, int32_t row_pixels, const Place& from, const Place& to,
                   const Make& make);

  Result<void> copy(const ir::Tensor& from, ir::TensorId to, const Place& input, const Place& output,
                    const PadAmounts& pads, ir::Activation activation);
  Result<void> lower_copy(const ir::Op& op, const PadAmounts& pads);
  Result<void> lower_concatenation(const ir::Op& op);
  Result<void> lower_joined(const ir::Op& op);
  Result<void> copy_pieces(const ir::Op& op, Place output);
  Result<void> lower_division(const ir::Op& op);
  Result<void> lower_reshape(const ir::Op& op);
  Result<void> lower_interleave(const ir::Op& op);
  Result<Lowered> finish();

  const hw::ChipRow& chip_;
  const ir::Graph& graph_;
  const Tuning& tuning_;
  std::vector<RecordedConv> recorded_;  // by op; empty: nothing is as recorded
  std::vector<std::optional<PlacedTensor>> places_;
  const std::vector<ir::OpId> producers_;
  const Placement plan_;
  std::unordered_map<ir::OpId, SlotId> pairs_;            // by ADD or SUB
  std::unordered_multimap<size_t, SharedBytes> weights_;  // by hash
  Lowered out_;
  ir::OpId op_ = 0;
};

}  // namespace skillet::npus::rockchip
