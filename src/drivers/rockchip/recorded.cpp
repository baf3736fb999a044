#include "drivers/rockchip/recorded.h"

#include "drivers/rockchip/window.h"

namespace skillet::drivers::rockchip {
namespace {

bool is_conv(ir::OpKind kind) { return kind == ir::OpKind::conv_2d || kind == ir::OpKind::depthwise_conv_2d; }

// Empty: it takes the convolution.
std::string why_not(const ir::Graph& graph, const ir::Op& op) {
  const auto& attrs = op.as<ir::ConvAttrs>();
  const ir::Tensor& to = graph.tensor(op.outputs[0]);
  if (is_per_channel(graph.tensor(op.inputs[1]).quant)) return "scales per channel";
  if (attrs.dilation_h != 1 || attrs.dilation_w != 1) return "dilation";
  if (attrs.activation == ir::Activation::relu6 && limits_of(to, attrs.activation).upper) return "RELU6 below the top";
  if (op.input(2) == ir::kNoTensor) return "no bias";
  return "";
}

}  // namespace

Result<std::vector<RecordedConv>> recorded_plan(const ir::Graph& graph) {
  std::vector<RecordedConv> plan(graph.ops.size());
  std::vector<ir::OpId> producer = ir::producers(graph);  // after fusing
  const auto refuse = [&](size_t id, std::string_view what) {
    return error(ErrorCode::unsupported, "{}: the recorded driver does not take {}",
                 describe_op(graph, static_cast<ir::OpId>(id)), what);
  };
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const ir::Op& op = graph.ops[id];
    if (is_conv(op.kind)) {
      if (const std::string why = why_not(graph, op); !why.empty()) return refuse(id, why);
      continue;
    }
    if (op.kind != ir::OpKind::add) return refuse(id, ir::op_name(op));
    const auto made_by = [&](size_t input) { return producer[static_cast<size_t>(op.inputs[input])]; };
    const ir::OpId first = made_by(0), second = made_by(1);
    if (first < 0) return refuse(id, "an addition to what no convolution makes");
    RecordedConv& fused = plan[static_cast<size_t>(first)];
    if (fused.add >= 0) return refuse(id, "two additions to one convolution");
    fused = {static_cast<ir::OpId>(id), true};
    if (second >= 0) plan[static_cast<size_t>(second)].in_addition = true;
    producer[static_cast<size_t>(op.outputs[0])] = first;
  }
  return plan;
}

}  // namespace skillet::drivers::rockchip
