#include "npus/ethosu/compiler/lower.h"

#include <algorithm>
#include <cmath>

#include "graph/ref/all_bytes.h"
#include "graph/ref/range.h"
#include "npu/driver.h"

namespace skillet::npus::ethosu {
namespace {

using ir::OpKind;
using npu::Remedy;
using npu::Support;

constexpr uint32_t kStrideMax = 3, kDilationMax = 2;
constexpr uint32_t kKernelHeightMax = 64, kKernelMax = 4096, kPoolHeightMax = 256, kPoolMax = 65536, kPaddedPoolMax = 8;
constexpr uint32_t kPadBeforeMax = 127, kPadAfterMax = 128;
constexpr int kOperandBits = 20;  // by which ADD and SUB shift their operands
constexpr int kLeftMax = 20;      // bits to the left of a result: sums of a byte stay within 32

Support no_activation(ir::Activation activation) {
  return Support::no(Remedy::activation, "fused activation {}; the chip has RELU, RELU6 and RELU_N1_TO_1",
                     ir::activation_name(activation));
}

Support too_large(const ir::Tensor& tensor) {
  return Support::no(Remedy::split, "'{}' is {}; the chip takes up to {} rows, columns and channels", tensor.name,
                     tensor.shape.to_string(), kExtentMax);
}
Support too_steep(const ir::Tensor& output) {
  return Support::no(Remedy::range, "the scale of '{}', {}, is too small for its inputs: results leave 32 bits",
                     output.name, output.quant.scale());
}

// Along rows or columns. `before`: given, or as `same` has it.
struct Axis {
  int64_t input = 1, output = 1, kernel = 1, stride = 1, dilation = 1;
  std::optional<int32_t> before;
  ir::Padding padding = ir::Padding::valid;
};
// Fills the padding before and behind; what no window reaches is no padding.
Support set_pads(const Axis& axis, std::string_view what, uint32_t& before, uint32_t& after) {
  const int64_t covered = (axis.output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
  int64_t first = axis.before.value_or(0);
  if (!axis.before && axis.padding == ir::Padding::same) first = std::max<int64_t>(covered - axis.input, 0) / 2;
  const int64_t last = std::max<int64_t>(covered - first - axis.input, 0);
  if (first < 0 || first > kPadBeforeMax || last > kPadAfterMax || covered - first - last < 1)
    return Support::no(Remedy::form, "{} and {} {} of padding; the chip has 0 to {} before and {} behind", first, last,
                       what, kPadBeforeMax, kPadAfterMax);
  before = static_cast<uint32_t>(first), after = static_cast<uint32_t>(last);
  return Support::yes();
}

Support check_window(const Window& window) {
  if (std::max(window.stride_h, window.stride_w) > kStrideMax)
    return Support::no(Remedy::form, "a stride of {}x{}; the chip has 1 to {}", window.stride_h, window.stride_w,
                       kStrideMax);
  if (std::max(window.dilation_h, window.dilation_w) > kDilationMax)
    return Support::no(Remedy::dilation, "a dilation of {}x{}; the chip has 1 and {}", window.dilation_h,
                       window.dilation_w, kDilationMax);
  return Support::yes();
}

class Lowerer {
 public:
  Lowerer(const ir::Graph& graph, ir::OpId id) : graph_(graph), id_(id), op_(graph.op(id)) {}

  Lowered run() {
    for (const ir::TensorId id : {op_.inputs[0], op_.outputs[0]}) {
      if (Support one = is_quantized(graph_.tensor(id)); !one.ok) return one;
    }
    operation_.op = id_;
    switch (op_.kind) {
      case OpKind::conv_2d:
      case OpKind::depthwise_conv_2d: return convolution();
      case OpKind::fully_connected: return dense();
      case OpKind::max_pool_2d:
      case OpKind::average_pool_2d: return pool();
      case OpKind::add:
      case OpKind::sub:
      case OpKind::mul: return arithmetic();
      case OpKind::maximum:
      case OpKind::minimum: return pick();
      case OpKind::quantize:
        return rescale(quantize_multiplier(static_cast<double>(input().quant.scale()) /
                                           static_cast<double>(output().quant.scale())),
                       ref::type_range(output().dtype));
      default: return function();
    }
  }

 private:
  const ir::Tensor& input() const { return graph_.tensor(op_.inputs[0]); }
  const ir::Tensor& output() const { return graph_.tensor(op_.outputs[0]); }

  Support set_maps(ir::TensorId from) {
    const auto in = whole_of(graph_, from), out = whole_of(graph_, op_.outputs[0]);
    if (!in) return too_large(graph_.tensor(from));
    if (!out) return too_large(output());
    operation_.input = *in, operation_.output = *out;
    return Support::yes();
  }
  Lowered made() { return std::vector<Operation>{std::move(operation_)}; }

  Support set_limits(ir::Activation activation) {
    const auto limits = ref::quantized_range(activation, output());
    if (!limits) return no_activation(activation);
    operation_.least = limits->min, operation_.most = limits->max;
    return Support::yes();
  }

  // Images with windows: one at a time.
  Support one_image() const {
    if (input().shape.rank() == 4 && input().shape[0] == 1) return Support::yes();
    return Support::no(Remedy::one_image, "'{}' has {} images; the chip takes one", input().name,
                       input().shape.rank() == 4 ? input().shape[0] : 0);
  }

  template <typename Attrs>
  Support set_window(const Attrs& attrs, int32_t kernel_h, int32_t kernel_w, int32_t dilation_h, int32_t dilation_w) {
    if (kernel_h > 1 << 16 || kernel_w > 1 << 16)
      return Support::no(Remedy::split, "a kernel of {}x{} is too large", kernel_h, kernel_w);
    Window& window = operation_.window;
    window = {.kernel_h = static_cast<uint32_t>(kernel_h),
              .kernel_w = static_cast<uint32_t>(kernel_w),
              .stride_h = static_cast<uint32_t>(attrs.stride_h),
              .stride_w = static_cast<uint32_t>(attrs.stride_w),
              .dilation_h = static_cast<uint32_t>(kernel_h == 1 ? 1 : dilation_h),
              .dilation_w = static_cast<uint32_t>(kernel_w == 1 ? 1 : dilation_w)};
    // A single window has no stride.
    if (output().shape[1] == 1) window.stride_h = 1;
    if (output().shape[2] == 1) window.stride_w = 1;
    if (Support one = check_window(window); !one.ok) return one;
    const ir::Shape &in = input().shape, &out = output().shape;
    const Axis rows{in[1], out[1], kernel_h, window.stride_h, window.dilation_h, {}, attrs.padding};
    const Axis columns{in[2], out[2], kernel_w, window.stride_w, window.dilation_w, {}, attrs.padding};
    Axis given = rows;
    if (attrs.rows) given.before = attrs.rows->top;
    if (Support one = set_pads(given, "rows", window.top, window.bottom); !one.ok) return one;
    return set_pads(columns, "columns", window.left, window.right);
  }

  Lowered convolution() {
    const auto& attrs = op_.as<ir::ConvAttrs>();
    const ir::Tensor& filter = graph_.tensor(op_.inputs[1]);
    if (Support one = one_image(); !one.ok) return one;
    if (Support one = set_maps(op_.inputs[0]); !one.ok) return one;
    const bool is_depthwise = op_.kind == OpKind::depthwise_conv_2d;
    const int32_t inputs = input().shape[3], outputs = output().shape[3];
    if (is_depthwise && inputs != 1 && inputs != outputs)
      return Support::no(Remedy::form, "a depth multiplier of {}; the chip has 1, or any of one channel",
                         outputs / inputs);
    if (!is_depthwise && filter.shape[3] != inputs)
      return Support::no(Remedy::groups, "{} groups of channels; the chip has one", inputs / filter.shape[3]);
    operation_.unit = is_depthwise && inputs == outputs ? Unit::depthwise : Unit::conv;
    operation_.filter_by_tap = is_depthwise;
    if (Support one = set_window(attrs, filter.shape[1], filter.shape[2], attrs.dilation_h, attrs.dilation_w); !one.ok)
      return one;
    const Window& window = operation_.window;
    if (window.dilated_h() > kKernelHeightMax || window.kernel_h * window.kernel_w > kKernelMax)
      return Support::no(Remedy::split, "a kernel of {}x{}; the chip takes {} rows and {} taps", window.kernel_h,
                         window.kernel_w, kKernelHeightMax, kKernelMax);
    if (Support one = set_limits(attrs.activation); !one.ok) return one;
    const uint64_t taps = uint64_t{window.kernel_h} * window.kernel_w * (operation_.unit == Unit::conv ? inputs : 1);
    if (Support one = set_weights(static_cast<size_t>(outputs), taps, attrs.float_product); !one.ok) return one;
    return made();
  }

  // Each row of the input is a pixel.
  Lowered dense() {
    const auto& attrs = op_.as<ir::FullyConnectedAttrs>();
    const ir::Tensor& filter = graph_.tensor(op_.inputs[1]);
    const int32_t inputs = filter.shape[1], outputs = filter.shape[0];
    const int64_t rows = output().shape.elems() / outputs;
    if (rows > kExtentMax || inputs > static_cast<int32_t>(kExtentMax) || outputs > static_cast<int32_t>(kExtentMax))
      return too_large(rows > kExtentMax ? output() : filter);
    int64_t height = 1;
    for (int64_t i = 2; i * i <= rows; ++i)
      if (rows % i == 0) height = i;
    const auto map_of = [&](ir::TensorId id, int32_t depth) {
      const ir::Tensor& tensor = graph_.tensor(id);
      const auto width = static_cast<uint32_t>(rows / height), channels = static_cast<uint32_t>(depth);
      return Map{.tensor = id,
                 .height = static_cast<uint32_t>(height),
                 .width = width,
                 .depth = channels,
                 .stride_y = uint64_t{width} * channels,
                 .stride_x = channels,
                 .is_signed = tensor.dtype == ir::DType::int8,
                 .zero_point = tensor.quant.zero_point()};
    };
    operation_.input = map_of(op_.inputs[0], inputs), operation_.output = map_of(op_.outputs[0], outputs);
    if (Support one = set_limits(attrs.activation); !one.ok) return one;
    if (Support one = set_weights(static_cast<size_t>(outputs), static_cast<uint64_t>(inputs), true); !one.ok)
      return one;
    return made();
  }

  // `taps`: products of a sum. `float_product`: as TensorFlow Lite multiplies scales where there is one for all.
  Support set_weights(size_t outputs, uint64_t taps, bool float_product) {
    const ir::Tensor& filter = graph_.tensor(op_.inputs[1]);
    if (!filter.is_constant()) return Support::no(Remedy::freeze, "its weights, '{}', are computed", filter.name);
    if (filter.dtype != input().dtype || output().dtype != input().dtype)
      return Support::no(Remedy::one_type, "{} weights and {} results of a {} input; the chip is given one type",
                         ir::dtype_name(filter.dtype), ir::dtype_name(output().dtype), ir::dtype_name(input().dtype));
    const ir::Quant& quant = filter.quant;
    if (quant.empty() || (quant.per_channel() && quant.scales.size() != outputs) || !ir::all_equal(quant.zero_points) ||
        std::abs(quant.zero_point()) > 255 || (filter.dtype == ir::DType::uint8 && !ir::all_equal(quant.scales)))
      return Support::no(Remedy::reconvert, "'{}' has {} scales for {} channels, or zero points that differ",
                         filter.name, quant.scales.size(), outputs);
    operation_.filter = op_.inputs[1], operation_.bias = op_.input(2);
    int64_t bias_max = 0;
    if (operation_.bias != ir::kNoTensor) {
      const ir::Tensor& bias = graph_.tensor(operation_.bias);
      if (!bias.is_constant() || bias.dtype != ir::DType::int32)
        return Support::no(Remedy::freeze, "its bias, '{}', is no constant of int32", bias.name);
      for (const int32_t value : bias.values<int32_t>()) bias_max = std::max(bias_max, std::abs(int64_t{value}));
    }
    int left = 0;
    const bool in_float = input().dtype == ir::DType::uint8 || (float_product && !quant.per_channel());
    for (size_t i = 0; i < outputs; ++i) {
      const float in = input().quant.scale(), weight = quant.per_channel() ? quant.scales[i] : quant.scale();
      const double product =
          in_float ? static_cast<double>(in * weight) : static_cast<double>(in) * static_cast<double>(weight);
      const auto by = quantize_multiplier(product / static_cast<double>(output().quant.scale()));
      left = std::max(left, by.shift);
      operation_.channel_scales.push_back(scale_of(by));
    }
    // The reference computes in 32 bits, the chip in more.
    const double sum_max = static_cast<double>(taps) * 255 * 255 + static_cast<double>(bias_max);
    if (std::ldexp(sum_max, left) >= 2e9 &&
        std::ldexp(true_sum_max(outputs) + static_cast<double>(bias_max), left) >= 2e9)
      return too_steep(output());
    return Support::yes();
  }

  // The largest sum of products that weights and inputs can make, without bias.
  double true_sum_max(size_t outputs) const {
    const ir::Tensor& filter = graph_.tensor(op_.inputs[1]);
    const ref::Range type = ref::type_range(input().dtype);
    const int32_t zero = input().quant.zero_point(), weight_zero = filter.quant.zero_point();
    std::vector<int64_t> sums(outputs);
    const size_t each = filter.data.size() / outputs;
    for (size_t i = 0; i < filter.data.size(); ++i) {
      const int32_t value = filter.dtype == ir::DType::int8 ? static_cast<int8_t>(filter.data[i]) : filter.data[i];
      sums[operation_.filter_by_tap ? i % outputs : i / each] += std::abs(value - weight_zero);
    }
    return static_cast<double>(*std::ranges::max_element(sums)) * std::max(type.max - zero, zero - type.min);
  }

  Lowered pool() {
    const auto& attrs = op_.as<ir::PoolAttrs>();
    const ir::Quant &in = input().quant, &out = output().quant;
    if (Support one = one_image(); !one.ok) return one;
    if (Support one = set_maps(op_.inputs[0]); !one.ok) return one;
    if (input().dtype != output().dtype || in.zero_point() != out.zero_point() ||
        std::abs(in.scale() - out.scale()) > 1e-6F)
      return Support::no(Remedy::same_scale, "input and output have different quantization");
    if (Support one = set_window(attrs, attrs.filter_h, attrs.filter_w, 1, 1); !one.ok) return one;
    if (Support one = set_limits(attrs.activation); !one.ok) return one;
    const Window& window = operation_.window;
    const bool is_average = op_.kind == OpKind::average_pool_2d, divides = is_average && window.is_padded();
    if (window.kernel_h > kPoolHeightMax || window.kernel_h * uint64_t{window.kernel_w} > kPoolMax ||
        (divides && std::max(window.kernel_h, window.kernel_w) > kPaddedPoolMax))
      return Support::no(Remedy::split,
                         "a window of {}x{}; the chip takes {} rows and {} taps, {}x{} where it averages "
                         "beside padding",
                         window.kernel_h, window.kernel_w, kPoolHeightMax, kPoolMax, kPaddedPoolMax, kPaddedPoolMax);
    operation_.unit = is_average ? Unit::average_pool : Unit::max_pool;
    if (!is_average) return made();
    // Zero points cancel out.
    operation_.input.zero_point = operation_.output.zero_point = 0;
    operation_.rounding = hw::Rounding::natural;
    if (!divides) operation_.scale = scale_of_average(window.kernel_h * window.kernel_w);
    return made();
  }

  // Half away from zero, and exact for all sums of bytes.
  static Scale scale_of_average(uint32_t count) {
    const auto bits = static_cast<uint32_t>(std::bit_width(count - 1));
    return {static_cast<uint32_t>(((uint64_t{1} << (31 + bits)) + (uint64_t{1} << bits)) / count), 31 + bits};
  }

  // The operand of the output's shape is the first for the chip; the other one may be repeated along axes.
  Support set_operands() {
    const ir::Tensor &a = input(), &b = graph_.tensor(op_.inputs[1]);
    if (Support one = is_quantized(b); !one.ok) return one;
    if (a.dtype != b.dtype || a.dtype != output().dtype)
      return Support::no(Remedy::one_type, "operands of {} and {} make {}; the chip is given one type",
                         ir::dtype_name(a.dtype), ir::dtype_name(b.dtype), ir::dtype_name(output().dtype));
    const int64_t elems = output().shape.elems();
    operation_.is_swapped = a.shape.elems() != elems;
    const ir::TensorId large = op_.inputs[operation_.is_swapped ? 1 : 0];
    const ir::TensorId small = op_.inputs[operation_.is_swapped ? 0 : 1];
    if (graph_.tensor(large).shape.elems() != elems)
      return Support::no(Remedy::shapes, "'{}' and '{}' are both repeated; the chip repeats one of them", a.name,
                         b.name);
    if (Support one = set_maps(large); !one.ok) return one;
    const Map& out = operation_.output;
    operation_.input = {.tensor = large,
                        .height = out.height,
                        .width = out.width,
                        .depth = out.depth,
                        .stride_y = out.stride_y,
                        .stride_x = out.stride_x,
                        .is_signed = out.is_signed,
                        .zero_point = graph_.tensor(large).quant.zero_point()};
    const auto second = whole_of(graph_, small);
    if (!second) return too_large(graph_.tensor(small));
    operation_.input2 = *second;
    if (graph_.tensor(small).shape.elems() == elems) {
      operation_.input2 = operation_.input;
      operation_.input2.tensor = small, operation_.input2.zero_point = graph_.tensor(small).quant.zero_point();
      return Support::yes();
    }
    const auto fits = [](uint32_t size, uint32_t whole) { return size == whole || size == 1; };
    if (!fits(second->height, out.height) || !fits(second->width, out.width) || !fits(second->depth, out.depth))
      return Support::no(Remedy::shapes, "'{}', {}, is repeated along images and not along rows",
                         graph_.tensor(small).name, graph_.tensor(small).shape.to_string());
    return Support::yes();
  }

  Lowered arithmetic() {
    if (Support one = set_operands(); !one.ok) return one;
    if (Support one = set_limits(op_.as<ir::ActivationAttrs>().activation); !one.ok) return one;
    const float a = input().quant.scale(), b = graph_.tensor(op_.inputs[1]).quant.scale(), out = output().quant.scale();
    const double twice_max = 2 * std::max(a, b);
    const bool is_product = op_.kind == OpKind::mul;
    // Float and double as in the reference kernels.
    const auto by =
        is_product ? quantize_multiplier(a * b / out) : quantize_multiplier(twice_max / ((1 << kOperandBits) * out));
    if (by.shift > (is_product ? kLeftMax - 8 : 0)) return too_steep(output());
    operation_.scale = scale_of(by);
    if (is_product) {
      operation_.unit = Unit::mul;
      return made();
    }
    operation_.unit = op_.kind == OpKind::add ? Unit::add : Unit::sub;
    // The operand of the smaller scale is scaled, the other is shifted.
    const bool scales_a = a < b;
    operation_.operand_scale = scales_a ? hw::OperandScale::a_32 : hw::OperandScale::b_32;
    operation_.operand = scale_of(quantize_multiplier(std::min(a, b) / twice_max));
    operation_.operand.shift -= kOperandBits;
    return made();
  }

  // Bytes are compared as they are.
  Lowered pick() {
    if (Support one = set_operands(); !one.ok) return one;
    operation_.unit = op_.kind == OpKind::minimum ? Unit::min : Unit::max;
    operation_.input.zero_point = operation_.input2.zero_point = operation_.output.zero_point = 0;
    set_type_range(output(), operation_);
    return made();
  }

  Lowered rescale(QuantizedMultiplier by, ref::Range limits) {
    if (Support one = set_maps(op_.inputs[0]); !one.ok) return one;
    if (by.shift > kLeftMax) return too_steep(output());
    operation_.unit = Unit::average_pool;
    operation_.scale = scale_of(by);
    operation_.least = limits.min, operation_.most = limits.max;
    return made();
  }

  // What makes a byte of a byte, whatever it is: a table, by the CPU's kernel.
  Lowered function() {
    if (input().dtype != output().dtype)
      return Support::no(Remedy::one_type, "{} becomes {}; a table of the chip keeps the type",
                         ir::dtype_name(input().dtype), ir::dtype_name(output().dtype));
    const auto results = ref::of_each_byte(graph_, std::span(&op_, 1), op_.inputs[0], op_.outputs[0]);
    if (!results.ok()) return Support::no(npu::remedy_of_op(graph_, id_), "{}", results.error().message);
    if (Support one = set_maps(op_.inputs[0]); !one.ok) return one;
    operation_.output = operation_.input;
    operation_ = make_copy(id_, operation_.input, operation_.output);
    operation_.output.tensor = op_.outputs[0];
    set_type_range(output(), operation_);
    operation_.table.emplace(256);
    const size_t first = input().dtype == ir::DType::int8 ? 0x80 : 0;
    for (size_t i = 0; i < operation_.table->size(); ++i) (*operation_.table)[i] = (*results)[i ^ first];
    return made();
  }

  const ir::Graph& graph_;
  ir::OpId id_;
  const ir::Op& op_;
  Operation operation_;
};

// Each element alone, by a function that the CPU has a kernel of.
constexpr OpKind kFunctions[] = {OpKind::relu, OpKind::relu6,    OpKind::relu_n1_to_1, OpKind::relu_0_to_1,
                                 OpKind::tanh, OpKind::logistic, OpKind::hard_swish,   OpKind::leaky_relu,
                                 OpKind::abs,  OpKind::elu,      OpKind::exp,          OpKind::gelu,
                                 OpKind::log,  OpKind::sqrt,     OpKind::rsqrt,        OpKind::byte_table};
constexpr OpKind kComputed[] = {OpKind::conv_2d,
                                OpKind::depthwise_conv_2d,
                                OpKind::fully_connected,
                                OpKind::max_pool_2d,
                                OpKind::average_pool_2d,
                                OpKind::add,
                                OpKind::sub,
                                OpKind::mul,
                                OpKind::maximum,
                                OpKind::minimum,
                                OpKind::quantize};
constexpr OpKind kSameBytes[] = {OpKind::reshape, OpKind::squeeze, OpKind::expand_dims};

template <size_t N>
bool is_one_of(const OpKind (&kinds)[N], OpKind kind) {
  return std::ranges::find(kinds, kind) != std::end(kinds);
}

}  // namespace

Support is_quantized(const ir::Tensor& tensor) {
  const ir::Quant& quant = tensor.quant;
  if (!ir::is_8bit(tensor.dtype))
    return Support::no(npu::remedy_of_type(tensor.dtype), "'{}' is {}; Skillet compiles bytes for this chip",
                       tensor.name, ir::dtype_name(tensor.dtype));
  const ref::Range limits = ref::type_range(tensor.dtype);
  if (quant.empty() || quant.per_channel() || !(quant.scale() > 0) || !std::isfinite(quant.scale()) ||
      quant.zero_point() < limits.min || quant.zero_point() > limits.max)
    return Support::no(Remedy::reconvert, "'{}' has {} scales, the first {}, and zero point {}, which mean nothing",
                       tensor.name, quant.scales.size(), quant.scale(), quant.zero_point());
  if (tensor.bytes() < 1) return Support::no(Remedy::none, "'{}' is empty", tensor.name);
  return Support::yes();
}

std::optional<Map> whole_of(const ir::Graph& graph, ir::TensorId id) {
  const ir::Tensor& tensor = graph.tensor(id);
  const npu::ImageShape shape = npu::image_shape(tensor);
  if (std::max({shape.images * shape.height, shape.width, shape.channels}) > kExtentMax) return std::nullopt;
  return Map{.tensor = id,
             .height = static_cast<uint32_t>(shape.images * shape.height),
             .width = static_cast<uint32_t>(shape.width),
             .depth = static_cast<uint32_t>(shape.channels),
             .stride_y = static_cast<uint64_t>(shape.width * shape.channels),
             .stride_x = static_cast<uint64_t>(shape.channels),
             .is_signed = tensor.dtype == ir::DType::int8,
             .zero_point = tensor.quant.zero_point()};
}

bool has_whole_rows(const ir::Graph& graph, const Map& map) {
  const auto whole = whole_of(graph, map.tensor);
  return whole && map.offset == 0 && map.first_row + map.height <= whole->height && map.width == whole->width &&
         map.depth == whole->depth && map.stride_y == whole->stride_y && map.stride_x == whole->stride_x;
}

void set_type_range(const ir::Tensor& tensor, Operation& operation) {
  const ref::Range limits = ref::type_range(tensor.dtype);
  operation.least = limits.min, operation.most = limits.max;
}

Lowered lower(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (is_one_of(kSameBytes, op.kind)) {
    const ir::Tensor& input = graph.tensor(op.inputs[0]);
    if (!ir::is_8bit(input.dtype) || input.bytes() < 1 || input.is_constant() || input.is_variable)
      return Support::no(npu::remedy_of_type(input.dtype), "'{}' is {}, or a constant; Skillet moves computed bytes",
                         input.name, ir::dtype_name(input.dtype));
    Lowered same(std::vector<Operation>{});
    same.is_same_memory = true;
    return same;
  }
  if (is_move(op.kind)) return lower_move(graph, id);
  if (op.kind == OpKind::softmax) return lower_softmax(graph, id);
  if (!is_one_of(kComputed, op.kind) && !is_one_of(kFunctions, op.kind))
    return Support::no(npu::remedy_of_op(graph, id), "Skillet has no {} for this chip", ir::op_name(op));
  return Lowerer(graph, id).run();
}

}  // namespace skillet::npus::ethosu
