#include "npus/vivante/compiler/assumptions.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "npus/vivante/compiler/addition.h"
#include "npus/vivante/compiler/byte_table.h"
#include "npus/vivante/compiler/support.h"
#include "npus/vivante/compiler/tp.h"

namespace skillet::npus::vivante {
namespace {

using ir::OpKind;

constexpr int32_t kMaxProvenKernel = 5;

// The operation that the functions check.
struct Question {
  const hw::ChipRow& chip;
  const ir::Graph& graph;
  ir::OpId id;
  ConvShape shape = has_filter() ? conv_shape(chip, graph, id) : ConvShape();

  const ir::Op& op() const { return graph.op(id); }
  bool is_conv() const { return op().kind == OpKind::conv_2d || op().kind == OpKind::depthwise_conv_2d; }
  bool has_filter() const { return is_conv() || op().kind == OpKind::fully_connected; }
  Image image(ir::TensorId tensor) const { return image_of(graph.tensor(tensor).shape); }
  ir::Activation activation() const {
    return is_conv() ? op().as<ir::ConvAttrs>().activation : op().as<ir::FullyConnectedAttrs>().activation;
  }
};

// Filter size in jobs: space-to-depth halves filters.
int32_t job_filter(const hw::ChipRow& chip, const ConvShape& s) {
  const int32_t size = std::max(s.kernel_height, s.kernel_width);
  return stride_method(chip, s) == StrideMethod::reshuffle ? ceil_div(size, 2) : size;
}

// One function for each row of assumptions.def: whether an operation that the chip takes stands on this row.
namespace stands_on {

bool like_its_generation(const Question& q) { return !q.chip.assumption.empty(); }

bool narrow_depthwise(const Question& q) {
  const ConvShape& s = q.shape;
  return is_native_depthwise(q.chip, s) && s.out.channels > 1 && s.out.channels < q.chip.nn_cores;
}

bool depth_multiplier(const Question& q) { return q.shape.multiplier != 1; }

bool large_filters(const Question& q) { return q.is_conv() && job_filter(q.chip, q.shape) > kMaxProvenKernel; }

bool oblong_filters(const Question& q) { return q.is_conv() && q.shape.kernel_height != q.shape.kernel_width; }

bool oblong_images(const Question& q) { return q.is_conv() && q.shape.in.width != q.shape.in.height; }

bool several_scales(const Question& q) {
  if (!q.has_filter()) return false;
  const std::vector<float>& scales = q.graph.tensor(q.op().input(1)).quant.scales;
  return std::ranges::count(scales, scales[0]) != std::ssize(scales);
}

// If no core has more than one kernel all orders of weights are the same. At zero point 0 the bit is not set.
bool relu_reads_dense(const Question& q) {
  if (!q.has_filter() || q.activation() == ir::Activation::none) return false;
  if (unsigned_zero_point(q.graph.tensor(q.op().outputs[0])) == 0) return false;
  return hw::generation_of(q.chip).channel_groups && job_filter(q.chip, q.shape) == 1 &&
         q.shape.out.channels > q.chip.nn_cores;
}

bool fully_connected_as_conv(const Question& q) {
  return q.op().kind == OpKind::fully_connected && !hw::generation_of(q.chip).linear_filters;
}

bool additions_in_rows(const Question& q) {
  const bool is_addition = q.op().kind == OpKind::add || q.op().kind == OpKind::sub;
  if (!is_addition || byte_input(q.graph, q.op()) >= 0) return false;
  const auto geometry = addition_geometry(q.chip, q.image(q.op().input(0)));
  return geometry && !geometry->recorded;
}

bool splits_in_place(const Question& q) { return q.op().kind == OpKind::split || q.op().kind == OpKind::split_v; }

bool byte_tables(const Question& q) { return byte_input(q.graph, q.op()) >= 0 && !is_sign_change(q.graph, q.op()); }

bool tp_steps(const Question& q) {
  const OpKind kind = q.op().kind;
  return kind == OpKind::depth_to_space || kind == OpKind::resize_nearest_neighbor ||
         (kind == OpKind::transpose && !is_other_layout(q.graph, q.op()));
}

// Whether the op's result may have to become NHWC: for the caller, the CPU, or an op that counts in that order.
bool may_leave_planar(const Question& q, ir::TensorId tensor) {
  if (std::ranges::count(q.graph.outputs, tensor) != 0) return true;
  for (size_t i = 0; i < q.graph.ops.size(); ++i) {
    const ir::Op& op = q.graph.ops[i];
    if (std::ranges::count(op.inputs, tensor) == 0) continue;
    const bool nhwc = op.kind == OpKind::reshape || op.kind == OpKind::transpose || op.kind == OpKind::fully_connected;
    if (nhwc || !check_op(q.chip, q.graph, static_cast<ir::OpId>(i)).ok) return true;
  }
  return false;
}

bool large_layouts(const Question& q) {
  const auto reads_large = [&](ir::TensorId id) {
    return id != ir::kNoTensor && !q.graph.tensor(id).is_constant() && !has_recorded_transpose(q.image(id));
  };
  const auto writes_large = [&](ir::TensorId id) {
    return !has_recorded_detranspose(q.image(id)) && may_leave_planar(q, id);
  };
  return std::ranges::any_of(q.op().inputs, reads_large) || std::ranges::any_of(q.op().outputs, writes_large);
}

}  // namespace stands_on

constexpr std::array kAssumptions = {
#define QUESTION(number, row)
#define NO_ROW(number, why)
#define ASSUMPTION(name, reason, what, sections, probe) npu::Assumption{#name, what, sections, probe},
#include "npus/vivante/compiler/assumptions.def"
#undef ASSUMPTION
};
struct Row {
  bool (*applies)(const Question&);
  std::string_view reason;
};
constexpr std::array kRows = {
#define ASSUMPTION(name, reason, what, sections, probe) Row{stands_on::name, reason},
#include "npus/vivante/compiler/assumptions.def"
#undef ASSUMPTION
#undef QUESTION
#undef NO_ROW
};
static_assert(kRows.size() == kAssumptions.size());

}  // namespace

std::span<const npu::Assumption> assumptions() { return kAssumptions; }

std::vector<const npu::Assumption*> assumptions_of(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId op) {
  std::vector<const npu::Assumption*> out;
  const Question question{chip, graph, op};
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].applies(question)) out.push_back(&kAssumptions[i]);
  }
  return out;
}

std::string_view reason_of(const npu::Assumption& assumption) {
  return kRows[static_cast<size_t>(&assumption - kAssumptions.data())].reason;
}

}  // namespace skillet::npus::vivante
