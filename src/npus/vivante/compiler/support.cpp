#include "npus/vivante/compiler/support.h"

#include <algorithm>
#include <cmath>

#include "base/int_math.h"
#include "npu/driver.h"
#include "npus/vivante/compiler/addition.h"
#include "npus/vivante/compiler/assumptions.h"
#include "npus/vivante/compiler/byte_table.h"
#include "npus/vivante/compiler/groups.h"
#include "npus/vivante/compiler/moves.h"
#include "npus/vivante/compiler/tp.h"

namespace skillet::npus::vivante {
namespace {

using ir::OpKind;
using npu::Remedy;
using npu::Support;

constexpr int64_t kMaxImageSize = 8191;  // 13-bit fields
constexpr int64_t kMaxChannels = 16383;  // 14-bit field
constexpr int64_t kMaxPadded = 32768;    // the last column of a TP window is a signed 16-bit number
constexpr int32_t kMaxPad = 2;
// The finest output of LOGISTIC for which its table (16 entries an octave, linear interpolation) is exact enough: the
// error of interpolation is at most 2e-4.
constexpr float kMinLogisticScale = 0x1p-11F;
// A difference below n + 1 steps is one of at most n. The chip's rounding adds up to 0.5, the CPU's two roundings 0.75,
// the 15-bit multiplier almost nothing; the rest is the error that the weights of an addition may have.
constexpr double addition_error_max(int steps) { return steps + 1 - 0.5 - 0.75 - 0.05; }
constexpr int kAdditionStepsMax = 2;
constexpr float kAdditionScaleEnd = 0x1p108F;

#define RETURN_IF_NO(expression) \
  if (auto support = (expression); !support.ok) return support

Support check_activation_tensor(const ir::Tensor& t) {
  if (!ir::is_8bit(t.dtype))
    return Support::no(npu::remedy_of_type(t.dtype), "'{}' is {}; the chip works on 8-bit tensors", t.name,
                       dtype_name(t.dtype));
  if (t.is_variable) return Support::no(Remedy::none, "'{}' keeps its value between runs", t.name);
  if (t.quant.empty()) return Support::no(Remedy::quantize, "'{}' is not quantized", t.name);
  if (t.quant.per_channel())
    return Support::no(Remedy::reconvert, "'{}' is an activation quantized per channel", t.name);
  if (!is_usable(t.quant, t.dtype))
    return Support::no(Remedy::reconvert, "'{}' has scale {} and zero point {}, which are invalid to {}", t.name,
                       t.quant.scale(), t.quant.zero_point(), dtype_name(t.dtype));
  if (t.shape.elems() == 0) return Support::no(Remedy::none, "'{}' has no elements", t.name);
  if (image_of(t.shape).bytes() == t.shape.elems()) return Support::yes();
  if (t.shape.rank() > 4 && t.shape[0] == 1)
    return Support::no(Remedy::four_dimensions, "'{}' has shape {}; the chip takes rows, columns and channels", t.name,
                       t.shape.to_string());
  return Support::no(Remedy::one_image, "'{}' has shape {}; the chip runs batch 1", t.name, t.shape.to_string());
}

bool same_quantization(const ir::Tensor& a, const ir::Tensor& b) {
  return a.dtype == b.dtype && a.quant.scale() == b.quant.scale() && a.quant.zero_point() == b.quant.zero_point();
}

// Whether the type ends at or below 6, as the CPU computes it.
bool saturates_at_six(const ir::Tensor& out) {
  const float steps = std::round(6.0F / out.quant.scale());
  return steps + static_cast<float>(unsigned_zero_point(out)) >= 255.0F;
}

Support check_activation(const ir::Tensor& out, ir::Activation activation) {
  switch (activation) {
    case ir::Activation::none:
    case ir::Activation::relu: return Support::yes();
    case ir::Activation::relu6:
      if (saturates_at_six(out)) return Support::yes();
      return Support::no(Remedy::range, "fused RELU6, but '{}' reaches beyond 6 (scale {}, zero point {})", out.name,
                         out.quant.scale(), out.quant.zero_point());
    default:
      return Support::no(Remedy::activation, "fused activation {} is not available", activation_name(activation));
  }
}

Support check_filter_quantization(const ir::Graph& graph, ir::OpId id) {
  const ir::Tensor& filter = graph.tensor(graph.op(id).input(1));
  if (filter.quant.empty()) return Support::no(Remedy::quantize, "filter '{}' is not quantized", filter.name);
  if (filter.quant.per_channel() && std::ranges::count(filter.quant.scales, 0.0F) != 0)
    return Support::no(Remedy::range, "filter '{}' has a channel with scale 0, which the chip cannot use", filter.name);
  // Equal scales count as one scale.
  const size_t scales = ir::count_distinct(filter.quant.scales);
  const bool has_meaning = scales == 1 || filter.dtype == ir::DType::int8;
  const std::vector<int32_t>& zero_points = filter.quant.zero_points;
  if (!has_meaning || std::ranges::count(zero_points, zero_points[0]) != std::ssize(zero_points) ||
      scales > kMaxChannelGroups)
    return Support::no(Remedy::share_scales, "filter '{}' is quantized per channel; the chip has one scale per job",
                       filter.name);
  if (!is_usable(filter.quant, filter.dtype))
    return Support::no(Remedy::reconvert, "filter '{}' has scale {} and zero point {}, which are invalid to {}",
                       filter.name, filter.quant.scale(), filter.quant.zero_point(), dtype_name(filter.dtype));
  return Support::yes();
}

Support check_filter(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor &input = graph.tensor(op.input(0)), &filter = graph.tensor(op.input(1));
  const ir::Tensor& output = graph.tensor(op.outputs[0]);
  if (filter.dtype != input.dtype || output.dtype != input.dtype)
    return Support::no(Remedy::one_type, "input, filter '{}' and output are {}, {} and {}", filter.name,
                       dtype_name(input.dtype), dtype_name(filter.dtype), dtype_name(output.dtype));
  RETURN_IF_NO(check_filter_quantization(graph, id));
  if (op.input(2) == ir::kNoTensor) return Support::yes();
  const ir::Tensor& bias = graph.tensor(op.input(2));
  if (bias.dtype != ir::DType::int32)
    return Support::no(Remedy::reconvert, "bias '{}' is {}", bias.name, dtype_name(bias.dtype));
  if (bias.shape.elems() != output.shape.back(0))
    return Support::no(Remedy::reconvert, "bias '{}' has {} elements", bias.name, bias.shape.elems());
  return Support::yes();
}

// Checks the scale, and the sums at that scale. It is the last check because it reads all weights.
Support check_arithmetic(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  for (const float filter_scale : graph.tensor(op.input(1)).quant.scales) {
    const float product = graph.tensor(op.input(0)).quant.scale() * filter_scale;
    if (!std::isnormal(product))
      return Support::no(Remedy::reconvert, "the product of the input and filter scales, {}, is not a normal number",
                         product);
    const float scale = conv_scale(graph, id, filter_scale);
    if (!is_nn_scale(chip, scale))
      return Support::no(Remedy::range, "requantization scale {} is outside the chip's range", scale);
  }
  const float largest = conv_scale(graph, id, std::ranges::max(graph.tensor(op.input(1)).quant.scales));
  if (!sums_within(graph, id, largest_rescaled(largest)))
    return Support::no(Remedy::range, "sums can exceed 32 bits at requantization scale {}", largest);
  return Support::yes();
}

// Checks the sizes of the NN job.
Support check_conv_size(const hw::ChipRow& chip, const ConvShape& s) {
  const StrideMethod method = stride_method(chip, s);
  const bool reshuffled = method == StrideMethod::reshuffle;
  const int64_t channels = int64_t{s.in.channels} * (reshuffled ? 4 : 1);
  if (std::max<int64_t>(channels, s.out.channels) > kMaxChannels)
    return Support::no(Remedy::split, "more than {} channels", kMaxChannels);
  // Padding needs no check: it is less than half of the filter, which the offset fields hold.
  const int64_t kernel = ceil_div(int64_t{std::max(s.kernel_height, s.kernel_width)}, reshuffled ? 2 : 1);
  if (kernel > chip.kernel_size_max)
    return Support::no(Remedy::split, "filter larger than {} px", chip.kernel_size_max);
  const Image in = reshuffled ? reshuffled_image(s) : s.in;
  const int64_t scale = method == StrideMethod::first_pixel ? 2 : 1;
  if (std::max<int64_t>(in.width, in.height) > kMaxImageSize ||
      std::max<int64_t>(s.out.width, s.out.height) * scale > kMaxImageSize)
    return Support::no(Remedy::split, "image larger than {} px", kMaxImageSize);
  const int64_t written_channels = is_native_depthwise(chip, s) ? 1 : channels;
  if (written_channels * s.out.channels * s.kernel_height * s.kernel_width > INT32_MAX)
    return Support::no(Remedy::split, "more than {} weights when written out for all channels", INT32_MAX);
  return Support::yes();
}

Support check_conv(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const auto& attrs = op.as<ir::ConvAttrs>();
  RETURN_IF_NO(check_filter(graph, id));
  RETURN_IF_NO(check_activation(graph.tensor(op.outputs[0]), attrs.activation));
  if (attrs.dilation_h != 1 || attrs.dilation_w != 1)
    return Support::no(Remedy::form, "dilation {}x{}", attrs.dilation_h, attrs.dilation_w);
  if (attrs.stride_h != attrs.stride_w || (attrs.stride_h != 1 && attrs.stride_h != 2))
    return Support::no(Remedy::form, "stride {}x{}; the chip supports 1x1 and 2x2", attrs.stride_h, attrs.stride_w);
  const ConvShape shape = conv_shape(chip, graph, id);
  if (!shape.depthwise && graph.tensor(op.input(1)).shape.back(0) != shape.in.channels)
    return Support::no(Remedy::groups, "grouped convolution");
  RETURN_IF_NO(check_conv_size(chip, shape));
  return check_arithmetic(chip, graph, id);
}

// Whether the caller passes several images; otherwise the rows are parts of one image.
bool is_batch(const ir::Graph& graph) {
  return std::ranges::any_of(graph.inputs, [&](ir::TensorId id) {
    const ir::Shape& shape = graph.tensor(id).shape;
    return shape.rank() > 0 && shape[0] > 1;
  });
}

Support check_fully_connected(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  RETURN_IF_NO(check_filter(graph, id));
  RETURN_IF_NO(check_activation(graph.tensor(op.outputs[0]), op.as<ir::FullyConnectedAttrs>().activation));
  const int64_t depth = graph.tensor(op.input(1)).shape.back(0);
  if (graph.tensor(op.input(0)).shape.elems() != depth)
    return Support::no(is_batch(graph) ? Remedy::one_image : Remedy::pixels,
                       "more than one row of input; the chip multiplies one");
  RETURN_IF_NO(check_conv_size(chip, conv_shape(chip, graph, id)));
  return check_arithmetic(chip, graph, id);
}

// The chip adds with 8-bit weights, TFLite in 32 bits: both have limits.
Support check_addition_scales(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op) {
  const float s0 = graph.tensor(op.input(0)).quant.scale(), s1 = graph.tensor(op.input(1)).quant.scale();
  const float out = graph.tensor(op.outputs[0]).quant.scale(), larger = std::max(s0, s1);
  if (!std::isfinite(s1 / s0))
    return Support::no(Remedy::range, "operands of scales {} and {} are too far apart", s0, s1);
  if (std::max(larger, out) >= kAdditionScaleEnd)
    return Support::no(Remedy::reconvert, "scales of {} to {}: TFLite's product with 2^20 is not a number", larger,
                       out);
  const AdditionWeights weights = addition_weights(chip, graph, op);
  // Larger than an operand's scale by the 255 steps of a weight; a product of small scales must not lose bits.
  if (!is_nn_scale(chip, weights.scale) || !std::isnormal(larger / 255))
    return Support::no(Remedy::range, "requantization scale {} is outside the chip's range", weights.scale);
  constexpr int64_t kLargestSum = int64_t{255} << 20;
  if (largest_rescaled(0x1p-19F * larger / out) < kLargestSum)
    return Support::no(Remedy::range, "sums can exceed 32 bits: scales {} and {} to {}", s0, s1, out);
  const double off = addition_error(graph, op, weights);
  if (!(off <= addition_error_max(kAdditionStepsMax)))
    return Support::no(
        Remedy::range,
        "the chip's 8-bit weights for scales {} and {} would be up to {:.1f} steps off at output scale {}", s0, s1, off,
        out);
  return Support::yes();
}

Support check_add(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor &a = graph.tensor(op.input(0)), &b = graph.tensor(op.input(1));
  const ir::Tensor& out = graph.tensor(op.outputs[0]);
  if (op.kind == OpKind::sub && !hw::generation_of(chip).chunked_additions)
    return Support::no(Remedy::none, "no known program of the NPU computes {}", op_name(op));
  if (a.shape != b.shape)
    return Support::no(Remedy::shapes, "operands of shapes {} and {}: the chip does not broadcast", a.shape.to_string(),
                       b.shape.to_string());
  const ir::Activation activation = op.as<ir::ActivationAttrs>().activation;
  RETURN_IF_NO(check_activation(out, activation));
  if (activation != ir::Activation::none && unsigned_zero_point(out) != 0)
    return Support::no(Remedy::activation,
                       "fused activation on an addition whose output zero point is not the lowest value");
  RETURN_IF_NO(check_addition_scales(chip, graph, op));
  if (!addition_geometry(chip, image_of(a.shape)))
    return Support::no(Remedy::split, "{} elements cannot be divided into rows and columns of at most {}",
                       a.shape.elems(), kMaxImageSize);
  return Support::yes();
}

bool is_channel_axis(const ir::Shape& shape, int32_t axis) { return axis == -1 || axis == shape.rank() - 1; }

Support check_concatenation(const hw::ChipRow&, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor& out = graph.tensor(op.outputs[0]);
  const auto& attrs = op.as<ir::ConcatAttrs>();
  if (!is_channel_axis(out.shape, attrs.axis))
    return Support::no(Remedy::channels, "axis {}; the chip's layout only allows concatenating channels", attrs.axis);
  if (attrs.activation != ir::Activation::none)
    return Support::no(Remedy::activation, "fused activation {}", activation_name(attrs.activation));
  for (const ir::TensorId input : op.inputs) {
    const ir::Tensor& t = graph.tensor(input);
    if (!same_quantization(t, out))
      return Support::no(Remedy::same_scale, "'{}' is quantized differently from the output", t.name);
  }
  return Support::yes();
}

Support check_split(const hw::ChipRow&, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const bool sized = op.kind == OpKind::split_v;
  const ir::Tensor& input = graph.tensor(op.input(sized ? 0 : 1));
  const std::vector<int32_t> axis = graph.tensor(op.input(sized ? 2 : 0)).values<int32_t>();
  if (axis.size() != 1 || !is_channel_axis(input.shape, axis[0]))
    return Support::no(Remedy::channels, "the chip's layout only allows splitting channels");
  for (const ir::TensorId output : op.outputs) {
    if (!same_quantization(graph.tensor(output), input))
      return Support::no(Remedy::same_scale, "'{}' is quantized differently", graph.tensor(output).name);
  }
  return Support::yes();
}

Support check_same_bytes(const hw::ChipRow&, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (!same_quantization(graph.tensor(op.input(0)), graph.tensor(op.outputs[0])))
    return Support::no(Remedy::same_scale, "input and output are quantized differently");
  return Support::yes();
}

Support check_byte_function(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  RETURN_IF_NO(check_activation_tensor(graph.tensor(op.inputs[static_cast<size_t>(byte_input(graph, op))])));
  RETURN_IF_NO(check_activation_tensor(graph.tensor(op.outputs[0])));
  if (is_sign_change(graph, op)) return Support::yes();
  const auto table = byte_table(graph, op);
  if (!table) return Support::no(Remedy::reconvert, "the CPU has no kernel for {} of these types", op_name(op));
  if (table->off > kTableOffMax)
    return Support::no(Remedy::function, "the chip's table of {}, linear between its entries, would be {} steps off",
                       op_name(op), table->off);
  return Support::yes();
}

Support check_pad(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  RETURN_IF_NO(check_same_bytes(chip, graph, id));
  const PadAmounts pad = pad_amounts(graph, id);
  if (pad.batch != 0) return Support::no(Remedy::form, "pads the batch");
  if (pad.largest() > kMaxPad)
    return Support::no(Remedy::form, "pads by {}; the chip supports at most {}", pad.largest(), kMaxPad);
  const Image out = image_of(graph.tensor(graph.op(id).outputs[0]).shape);
  if (std::max({out.width, out.height, out.channels}) > kMaxPadded)
    return Support::no(Remedy::split, "a dimension larger than {} after padding", kMaxPadded);
  return Support::yes();
}

// Moves by TP jobs that no driver is recorded with.
Support check_moves(const ir::Graph& graph, ir::OpId id) {
  const auto moves = moves_of(graph, graph.op(id));
  if (!moves.ok()) return Support::no(Remedy::form, "{}", moves.error().message);
  return Support::yes();
}

Support check_transpose(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  RETURN_IF_NO(check_same_bytes(chip, graph, id));
  return is_other_layout(graph, graph.op(id)) ? Support::yes() : check_moves(graph, id);
}

Support check_blocks(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  RETURN_IF_NO(check_same_bytes(chip, graph, id));
  return check_moves(graph, id);
}

Support check_table(const hw::ChipRow&, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const float in = graph.tensor(op.input(0)).quant.scale(), out = graph.tensor(op.outputs[0]).quant.scale();
  const bool logistic = op.kind == OpKind::logistic;
  const float scale = (logistic ? 1.0F : in) / out;
  if (!is_tp_scale(scale) || (!logistic && largest_rescaled(scale) < 255))
    return Support::no(Remedy::range, "requantization scale {} is outside the chip's range", scale);
  if (logistic && out < kMinLogisticScale)
    return Support::no(Remedy::range, "output scale {} is finer than the chip's table, {}", out, kMinLogisticScale);
  return Support::yes();
}

// The inputs that hold activations; all others (filter, bias, axis, shape, ...) are constants or left out.
enum class Activations : uint8_t { first, second, all };

struct SupportRow {
  OpKind kind;
  Activations activations;
  size_t inputs_min;
  Support (*check)(const hw::ChipRow&, const ir::Graph&, ir::OpId);
};
constexpr SupportRow kRows[] = {
    {OpKind::conv_2d, Activations::first, 2, check_conv},
    {OpKind::depthwise_conv_2d, Activations::first, 2, check_conv},
    {OpKind::fully_connected, Activations::first, 2, check_fully_connected},
    {OpKind::add, Activations::all, 2, check_add},
    {OpKind::sub, Activations::all, 2, check_add},
    {OpKind::concatenation, Activations::all, 1, check_concatenation},
    {OpKind::split, Activations::second, 2, check_split},
    {OpKind::split_v, Activations::first, 3, check_split},
    {OpKind::pad, Activations::first, 2, check_pad},
    {OpKind::reshape, Activations::first, 1, check_same_bytes},
    {OpKind::transpose, Activations::first, 2, check_transpose},
    {OpKind::depth_to_space, Activations::first, 1, check_blocks},
    {OpKind::resize_nearest_neighbor, Activations::first, 2, check_blocks},
    {OpKind::relu, Activations::first, 1, check_table},
    {OpKind::abs, Activations::first, 1, check_table},
    {OpKind::logistic, Activations::first, 1, check_table},
};

const SupportRow* row_of(const ir::Op& op) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const auto& r) { return r.kind == op.kind; });
  return row == std::end(kRows) ? nullptr : row;
}

bool is_activation(const SupportRow& row, size_t input) {
  return row.activations == Activations::all || input == (row.activations == Activations::second ? 1 : 0);
}

Support check_operands(const SupportRow& row, const ir::Graph& graph, const ir::Op& op) {
  for (size_t i = 0; i < std::max(op.inputs.size(), row.inputs_min); ++i) {
    if (op.input(i) == ir::kNoTensor) {
      if (i < row.inputs_min || is_activation(row, i)) return Support::no(Remedy::reconvert, "input {} is missing", i);
      continue;
    }
    const ir::Tensor& t = graph.tensor(op.input(i));
    if (is_activation(row, i) && !ir::is_8bit(t.dtype)) return check_activation_tensor(t);
    if (is_activation(row, i) && t.is_constant())
      return Support::no(npu::remedy_of_constant(graph, op),
                         "'{}' is constant; the chip takes only tensors that jobs or the caller write", t.name);
    if (!is_activation(row, i) && !t.is_constant()) return Support::no(Remedy::freeze, "'{}' is not constant", t.name);
    if (is_activation(row, i)) RETURN_IF_NO(check_activation_tensor(t));
  }
  for (const ir::TensorId id : op.outputs) RETURN_IF_NO(check_activation_tensor(graph.tensor(id)));
  return Support::yes();
}

std::string why_none(const ir::Graph& graph, const ir::Op& op) {
  switch (op.kind) {
    case OpKind::mul:
      return std::ranges::any_of(op.inputs, [&](ir::TensorId id) { return graph.tensor(id).is_constant(); })
                 ? "no unit of the chip multiplies by a constant, except as a filter"
                 : "no unit of the chip multiplies two tensors";
    case OpKind::softmax:
    case OpKind::arg_max:
    case OpKind::arg_min: return "no unit of the chip divides or compares channels";
    case OpKind::resize_bilinear: return "interpolated pixels have weights that depend on their position";
    case OpKind::max_pool_2d:
      return "the chip's pooling was never recorded, and sums over this window are slower than the CPU";
    default: return fmt::format("no known program of the NPU computes {}", op_name(op));
  }
}

}  // namespace

Support check_op(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (byte_input(graph, op) >= 0) return check_byte_function(graph, id);
  const SupportRow* row = row_of(op);
  if (row == nullptr) return Support::no(Remedy::none, "{}", why_none(graph, op));
  RETURN_IF_NO(check_operands(*row, graph, op));
  return row->check(chip, graph, id);
}

Support supports(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  Support support = check_op(chip, graph, id);
  if (support.ok) support.stands_on = assumptions_of(chip, graph, id);
  support.unproven = !support.stands_on.empty();
  if (!support.unproven) return support;
  support.reason = reason_of(*support.stands_on[0]);
  if (support.stands_on.size() == 1 && support.stands_on[0]->name == "several_scales")
    support.remedy = Remedy::one_job;  // the only reason
  if (!chip.assumption.empty()) support.reason += fmt::format(" {}", chip.title);
  return support;
}

int tolerance(const hw::ChipRow& chip, const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if ((op.kind != OpKind::add && op.kind != OpKind::sub) || !check_op(chip, graph, id).ok) return 1;
  const double off = addition_error(graph, op, addition_weights(chip, graph, op));
  return off <= addition_error_max(1) ? 1 : kAdditionStepsMax;
}

}  // namespace skillet::npus::vivante
