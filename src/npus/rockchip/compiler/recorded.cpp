#include "npus/rockchip/compiler/recorded.h"

#include "npus/rockchip/compiler/window.h"

namespace skillet::npus::rockchip {
namespace {

bool is_conv(ir::OpKind kind) { return kind == ir::OpKind::conv_2d || kind == ir::OpKind::depthwise_conv_2d; }

// Why the recorded driver does not take the convolution; empty: it does.
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

Result<std::vector<RecordedConv>> recorded_plan(const ir::Graph& graph, bool strict) {
  std::vector<RecordedConv> plan(graph.ops.size());
  std::vector<ir::OpId> maker(graph.tensors.size(), -1);  // convolutions that the recorded driver takes, after fusing
  for (size_t id = 0; id < graph.ops.size(); ++id) {
    const ir::Op& op = graph.ops[id];
    const auto made_by = [&](size_t input) -> ir::OpId& { return maker[static_cast<size_t>(op.inputs[input])]; };
    ir::OpId& result = maker[static_cast<size_t>(op.outputs[0])];
    std::string why;
    if (is_conv(op.kind)) {
      why = why_not(graph, op);
      if (why.empty()) result = static_cast<ir::OpId>(id);
    } else if (op.kind != ir::OpKind::add) {
      why = ir::op_name(op);
    } else if (made_by(0) < 0) {
      why = "an addition to a tensor that no convolution makes";
    } else if (plan[static_cast<size_t>(made_by(0))].add >= 0) {
      why = "two additions to one convolution";
    } else {
      plan[static_cast<size_t>(made_by(0))] = {static_cast<ir::OpId>(id), true};
      if (made_by(1) >= 0) plan[static_cast<size_t>(made_by(1))].in_addition = true;
      result = made_by(0);
    }
    if (strict && !why.empty())
      return error(ErrorCode::unsupported, "{}: the recorded driver does not take {}",
                   describe_op(graph, static_cast<ir::OpId>(id)), why);
  }
  return plan;
}

}  // namespace skillet::npus::rockchip
