#include "npus/ethosu/compiler/lower.h"

#include <algorithm>
#include <cmath>

#include "base/int_math.h"
#include "base/is_any_of.h"
#include "graph/ref/range.h"
#include "npu/driver.h"

namespace skillet::npus::ethosu {
namespace {

using ir::OpKind;
using npu::Remedy;
using npu::Support;

constexpr uint32_t kStrideMax = 3, kDilationMax = 2;
constexpr int32_t kGroupsMax = 64;  // each group is an operation
constexpr uint32_t kKernelHeightMax = 64, kKernelMax = 4096, kPoolHeightMax = 256, kPoolMax = 65536, kPaddedPoolMax = 8;
constexpr uint32_t kPadBeforeMax = 127, kPadAfterMax = 128;
constexpr uint32_t kWideAverageMax = 4096;     // with more taps, ties round differently
constexpr int64_t kSumMax = int64_t{1} << 39;  // 40-bit sums

// For rows or columns. `before`: given padding, or else by `padding`.
struct Axis {
  int64_t input = 1, output = 1, kernel = 1, stride = 1, dilation = 1;
  std::optional<int32_t> before;
  ir::Padding padding = ir::Padding::valid;
};
// Sets the padding before and after; rows that no window reaches do not count as padding.
Support set_pads(const Axis& axis, std::string_view what, uint32_t& before, uint32_t& after) {
  const int64_t covered = (axis.output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
  int64_t first = axis.before.value_or(0);
  if (!axis.before && axis.padding == ir::Padding::same) first = std::max<int64_t>(covered - axis.input, 0) / 2;
  const int64_t last = std::max<int64_t>(covered - first - axis.input, 0);
  if (first < 0 || first > kPadBeforeMax || last > kPadAfterMax || covered - first - last < 1)
    return Support::no(Remedy::form, "{} and {} {} of padding; the chip has 0 to {} before and {} after", first, last,
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
  Lowerer(const ir::Graph& graph, ir::OpId id)
      : graph_(graph), id_(id), op_(graph.op(id)), first_(op_.kind == OpKind::transpose_conv ? 2 : 0) {}

  Lowered run() {
    for (const ir::TensorId id : {op_.inputs[first_], op_.outputs[0]}) {
      if (Support one = is_activation(graph_.tensor(id)); !one.ok) return one;
    }
    operation_.op = id_;
    switch (op_.kind) {
      case OpKind::conv_2d:
      case OpKind::depthwise_conv_2d: return convolution();
      case OpKind::transpose_conv: return transposed();
      case OpKind::fully_connected: return dense();
      case OpKind::max_pool_2d:
      case OpKind::average_pool_2d: return pool();
      default:
        return rescale(quantize_multiplier(static_cast<double>(input().quant.scale()) /
                                           static_cast<double>(output().quant.scale())),
                       ref::type_range(output().dtype));
    }
  }

 private:
  const ir::Tensor& input() const { return graph_.tensor(op_.inputs[first_]); }
  const ir::Tensor& output() const { return graph_.tensor(op_.outputs[0]); }
  bool is_wide() const { return input().dtype == ir::DType::int16; }

  Support set_maps(ir::TensorId from) {
    const auto in = whole_of(graph_, from), out = whole_of(graph_, op_.outputs[0]);
    if (!in) return too_large(graph_.tensor(from));
    if (!out) return too_large(output());
    operation_.input = *in, operation_.output = *out;
    return Support::yes();
  }
  Lowered made() { return std::vector<Operation>{std::move(operation_)}; }

  Support set_limits(ir::Activation activation) { return ethosu::set_limits(activation, output(), operation_); }

  // Ops with windows support one image at a time.
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
    // A single window needs no stride.
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

  Support check_kernel() const {
    const Window& window = operation_.window;
    if (window.dilated_h() <= kKernelHeightMax && uint64_t{window.kernel_h} * window.kernel_w <= kKernelMax)
      return Support::yes();
    return Support::no(Remedy::split, "a kernel of {}x{}; the chip takes {} rows and {} taps", window.kernel_h,
                       window.kernel_w, kKernelHeightMax, kKernelMax);
  }

  Lowered convolution() {
    const auto& attrs = op_.as<ir::ConvAttrs>();
    const ir::Tensor& filter = graph_.tensor(op_.inputs[1]);
    if (Support one = one_image(); !one.ok) return one;
    if (Support one = set_maps(op_.inputs[0]); !one.ok) return one;
    const bool is_depthwise = op_.kind == OpKind::depthwise_conv_2d;
    const int32_t inputs = input().shape[3], outputs = output().shape[3];
    if (is_depthwise && inputs != 1 && inputs != outputs)
      return Support::no(Remedy::form, "a depth multiplier of {}; the chip has 1, or any for one channel",
                         outputs / inputs);
    const int32_t groups = is_depthwise ? 1 : inputs / filter.shape[3];
    if (groups > kGroupsMax)
      return Support::no(Remedy::groups, "{} groups of channels; Skillet makes up to {}", groups, kGroupsMax);
    operation_.unit = is_depthwise && inputs == outputs ? Unit::depthwise : Unit::conv;
    operation_.filter_by_tap = is_depthwise;
    if (Support one = set_window(attrs, filter.shape[1], filter.shape[2], attrs.dilation_h, attrs.dilation_w); !one.ok)
      return one;
    if (Support one = check_kernel(); !one.ok) return one;
    const Window& window = operation_.window;
    if (Support one = set_limits(attrs.activation); !one.ok) return one;
    const uint64_t taps =
        uint64_t{window.kernel_h} * window.kernel_w * (operation_.unit == Unit::conv ? inputs / groups : 1);
    if (Support one = set_weights(static_cast<size_t>(outputs), taps, attrs.float_product); !one.ok) return one;
    return groups == 1 ? made() : by_group(static_cast<uint32_t>(groups));
  }

  // One operation per group.
  Lowered by_group(uint32_t groups) {
    std::vector<Operation> out;
    const uint32_t inputs = operation_.input.depth / groups, outputs = operation_.output.depth / groups;
    for (uint32_t i = 0; i < groups; ++i) {
      Operation one = operation_;
      one.input.depth = inputs, one.input.offset = uint64_t{i} * inputs * one.input.elem_bytes();
      one.output.offset = uint64_t{i} * outputs * one.output.elem_bytes();
      take_channels(i * outputs, outputs, one);
      out.push_back(std::move(one));
    }
    return out;
  }

  // Convolves the input, with zeros between its pixels, with the filter rotated by 180 degrees.
  Lowered transposed() {
    const auto& attrs = op_.as<ir::ConvAttrs>();
    const ir::Shape &filter = graph_.tensor(op_.inputs[1]).shape, &in = input().shape, &out = output().shape;
    if (Support one = one_image(); !one.ok) return one;
    if (Support one = set_maps(op_.inputs[2]); !one.ok) return one;
    Window& window = operation_.window;
    const int32_t step = std::max(attrs.stride_h, attrs.stride_w);
    window.kernel_h = static_cast<uint32_t>(filter[1]), window.kernel_w = static_cast<uint32_t>(filter[2]);
    window.upscale = step == 1 ? hw::Upscale::none : hw::Upscale::zeros;
    for (const int i : {1, 2}) {
      const int32_t stride = i == 1 ? attrs.stride_h : attrs.stride_w;
      if (step > 2 || (stride != step && (in[i] != 1 || filter[i] != 1)))
        return Support::no(Remedy::form, "a stride of {}x{}; the chip has 1x1 and 2x2", attrs.stride_h, attrs.stride_w);
      int64_t padding = 0;  // of the forward convolution
      if (attrs.padding == ir::Padding::same)
        padding = std::max((ceil_div(int64_t{out[i]}, int64_t{stride}) - 1) * stride + filter[i] - out[i], int64_t{0});
      const Axis axis{.input = int64_t{in[i]} * step,
                      .output = out[i],
                      .kernel = filter[i],
                      .before = static_cast<int32_t>(filter[i] - 1 - padding / 2)};
      if (Support one = i == 1 ? set_pads(axis, "rows", window.top, window.bottom)
                               : set_pads(axis, "columns", window.left, window.right);
          !one.ok)
        return one;
    }
    if (Support one = check_kernel(); !one.ok) return one;
    if (Support one = set_limits(attrs.activation); !one.ok) return one;
    operation_.unit = Unit::conv, operation_.is_turned = true;
    const uint64_t taps = uint64_t{window.kernel_h} * window.kernel_w * static_cast<uint64_t>(in[3]);
    if (Support one = set_weights(static_cast<size_t>(out[3]), taps, attrs.float_product); !one.ok) return one;
    return made();
  }

  // Each row of the input becomes a pixel.
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
    operation_.input = dense_map(graph_, op_.inputs[0], height, rows / height, inputs);
    operation_.output = dense_map(graph_, op_.outputs[0], height, rows / height, outputs);
    if (Support one = set_limits(attrs.activation); !one.ok) return one;
    if (Support one = set_weights(static_cast<size_t>(outputs), static_cast<uint64_t>(inputs), true); !one.ok)
      return one;
    return made();
  }

  // `taps`: products per sum. `float_product`: the product of scales is rounded to float if there is one weight scale,
  // as in TensorFlow Lite.
  Support set_weights(size_t outputs, uint64_t taps, bool float_product) {
    const ir::Tensor& filter = graph_.tensor(op_.inputs[1]);
    if (!filter.is_constant()) return Support::no(Remedy::freeze, "its weights, '{}', are computed", filter.name);
    if (filter.dtype != (is_wide() ? ir::DType::int8 : input().dtype) || output().dtype != input().dtype)
      return Support::no(Remedy::one_type, "{} weights and {} results with {} input; Skillet compiles one type",
                         ir::dtype_name(filter.dtype), ir::dtype_name(output().dtype), ir::dtype_name(input().dtype));
    const ir::Quant& quant = filter.quant;
    if (quant.empty() || (quant.per_channel() && quant.scales.size() != outputs) || !ir::all_equal(quant.zero_points) ||
        std::abs(quant.zero_point()) > 255 || (filter.dtype == ir::DType::uint8 && !ir::all_equal(quant.scales)))
      return Support::no(Remedy::reconvert, "'{}' has {} scales for {} channels, or zero points that differ",
                         filter.name, quant.scales.size(), outputs);
    operation_.filter = op_.inputs[1], operation_.bias = op_.input(first_ == 0 ? 2 : 3);
    int64_t bias_max = 0;
    if (operation_.bias != ir::kNoTensor) {
      const ir::Tensor& bias = graph_.tensor(operation_.bias);
      if (!bias.is_constant() || (bias.dtype != ir::DType::int32 && (bias.dtype != ir::DType::int64 || !is_wide())))
        return Support::no(Remedy::freeze, "its bias, '{}', is not an int32 constant", bias.name);
      for (const int64_t value : bias_values(graph_, operation_.bias))
        bias_max = std::max(bias_max, value < -kSumMax ? kSumMax : std::abs(value));
    }
    const WideSums wide = wide_sums();
    int left = wide == WideSums::none || wide == WideSums::of_32_bits ? 0 : -31;
    const bool in_float = input().dtype == ir::DType::uint8 || (float_product && !is_wide() && !quant.per_channel());
    for (size_t i = 0; i < outputs; ++i) {
      const float in = input().quant.scale(), weight = quant.per_channel() ? quant.scales[i] : quant.scale();
      const double product =
          in_float ? static_cast<double>(in * weight) : static_cast<double>(in) * static_cast<double>(weight);
      const auto by = quantize_multiplier(product / static_cast<double>(output().quant.scale()));
      left = std::max(left, by.shift);
      operation_.channel_scales.push_back(wide == WideSums::of_64_bits ? short_scale_of(by) : scale_of(by));
    }
    if (wide == WideSums::of_64_bits || wide == WideSums::whole_scale) operation_.rounding = hw::Rounding::natural;
    // The reference uses 32 bits and the chip more, or the reference 64 and the chip 40.
    const double product_max = is_wide() ? 32768.0 * 128 : 255.0 * 255;
    double sum_max = static_cast<double>(taps) * product_max + static_cast<double>(bias_max);
    const auto fits = [&] { return std::ldexp(sum_max, left) < 2e9 && sum_max < static_cast<double>(kSumMax); };
    if (!fits()) sum_max = true_sum_max(outputs) + static_cast<double>(bias_max);
    return fits() ? Support::yes() : too_steep(output());
  }

  // How the reference kernels sum and scale int16, which depends on the bias.
  enum class WideSums : uint8_t { none, of_32_bits, of_64_bits, whole_scale };
  WideSums wide_sums() const {
    if (!is_wide()) return WideSums::none;
    const bool has_bias = operation_.bias != ir::kNoTensor;
    if (has_bias ? graph_.tensor(operation_.bias).dtype == ir::DType::int32
                 : op_.kind == OpKind::conv_2d || op_.kind == OpKind::fully_connected)
      return WideSums::of_32_bits;
    return op_.kind == OpKind::fully_connected ? WideSums::whole_scale : WideSums::of_64_bits;
  }
  // As in multiply_wide_by_quantized_multiplier().
  static Scale short_scale_of(QuantizedMultiplier by) {
    const int32_t factor = by.multiplier < 0x7fff0000 ? (by.multiplier + (1 << 15)) >> 16 : 0x7fff;
    return {static_cast<uint32_t>(factor), static_cast<uint32_t>(15 - by.shift)};
  }

  // The largest sum of products that the weights allow for any input, without the bias.
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
    if (in.zero_point() != out.zero_point() || std::abs(in.scale() - out.scale()) > 1e-6F)
      return Support::no(Remedy::same_scale, "input and output have different quantization");
    if (Support one = set_window(attrs, attrs.filter_h, attrs.filter_w, 1, 1); !one.ok) return one;
    if (Support one = set_limits(attrs.activation); !one.ok) return one;
    const Window& window = operation_.window;
    const bool is_average = op_.kind == OpKind::average_pool_2d, divides = is_average && window.is_padded();
    if (window.kernel_h > kPoolHeightMax || window.kernel_h * uint64_t{window.kernel_w} > kPoolMax ||
        (divides && std::max(window.kernel_h, window.kernel_w) > kPaddedPoolMax))
      return Support::no(
          Remedy::split,
          "a window of {}x{}; the chip takes {} rows and {} taps, {}x{} where it averages next to padding",
          window.kernel_h, window.kernel_w, kPoolHeightMax, kPoolMax, kPaddedPoolMax, kPaddedPoolMax);
    operation_.unit = is_average ? Unit::average_pool : Unit::max_pool;
    if (!is_average) return made();
    if (is_wide() && uint64_t{window.kernel_h} * window.kernel_w > kWideAverageMax)
      return Support::no(Remedy::split, "a window of {}x{}; averages of int16 are exact up to {} taps", window.kernel_h,
                         window.kernel_w, kWideAverageMax);
    // Zero points cancel out.
    operation_.input.zero_point = operation_.output.zero_point = 0;
    operation_.rounding = hw::Rounding::natural;
    if (!divides) operation_.scale = scale_of_average(window.kernel_h * window.kernel_w);
    return made();
  }

  Lowered rescale(QuantizedMultiplier by, ref::Range limits) {
    if (Support one = set_maps(op_.inputs[0]); !one.ok) return one;
    if (by.shift > (is_wide() ? kLeftMax - 8 : kLeftMax)) return too_steep(output());
    operation_.unit = Unit::average_pool;
    operation_.scale = scale_of(by);
    operation_.least = limits.min, operation_.most = limits.max;
    return made();
  }

  const ir::Graph& graph_;
  ir::OpId id_;
  const ir::Op& op_;
  size_t first_;  // index of the image operand
  Operation operation_;
};

}  // namespace

Support too_large(const ir::Tensor& tensor) {
  return Support::no(Remedy::split, "'{}' is {}; the chip takes up to {} rows, columns and channels", tensor.name,
                     tensor.shape.to_string(), kExtentMax);
}
Support too_steep(const ir::Tensor& output) {
  return Support::no(Remedy::range, "the scale of '{}', {}, is too small for its inputs: results exceed 32 bits",
                     output.name, output.quant.scale());
}

Support set_limits(ir::Activation activation, const ir::Tensor& output, Operation& operation) {
  const auto limits = ref::quantized_range(activation, output);
  if (!limits)
    return Support::no(Remedy::activation, "fused activation {}; the chip has RELU, RELU6 and RELU_N1_TO_1",
                       ir::activation_name(activation));
  operation.least = limits->min, operation.most = limits->max;
  return Support::yes();
}

Support is_quantized(const ir::Tensor& tensor) {
  const ir::Quant& quant = tensor.quant;
  if (!ir::is_8bit(tensor.dtype))
    return Support::no(npu::remedy_of_type(tensor.dtype), "'{}' is {}; Skillet compiles this operation only for bytes",
                       tensor.name, ir::dtype_name(tensor.dtype));
  const ref::Range limits = ref::type_range(tensor.dtype);
  if (quant.empty() || quant.per_channel() || !(quant.scale() > 0) || !std::isfinite(quant.scale()) ||
      quant.zero_point() < limits.min || quant.zero_point() > limits.max)
    return Support::no(Remedy::reconvert, "'{}' has {} scales, the first {}, and zero point {}, which are invalid",
                       tensor.name, quant.scales.size(), quant.scale(), quant.zero_point());
  if (tensor.bytes() < 1) return Support::no(Remedy::none, "'{}' is empty", tensor.name);
  return Support::yes();
}

Support is_activation(const ir::Tensor& tensor) {
  if (tensor.dtype != ir::DType::int16) return is_quantized(tensor);
  const ir::Quant& quant = tensor.quant;
  if (quant.empty() || quant.per_channel() || !(quant.scale() > 0) || !std::isfinite(quant.scale()) ||
      quant.zero_point() != 0)
    return Support::no(Remedy::reconvert, "'{}' is int16 with {} scales and zero point {}, instead of one and 0",
                       tensor.name, quant.scales.size(), quant.zero_point());
  if (tensor.bytes() < 1) return Support::no(Remedy::none, "'{}' is empty", tensor.name);
  return Support::yes();
}

std::vector<int64_t> bias_values(const ir::Graph& graph, ir::TensorId id) {
  if (id == ir::kNoTensor) return {};
  const ir::Tensor& bias = graph.tensor(id);
  if (bias.dtype == ir::DType::int64) return bias.values<int64_t>();
  const auto values = bias.values<int32_t>();
  return {values.begin(), values.end()};
}

Map dense_map(const ir::Graph& graph, ir::TensorId id, int64_t height, int64_t width, int64_t depth) {
  const ir::Tensor& tensor = graph.tensor(id);
  const bool is_wide = tensor.dtype == ir::DType::int16;
  const auto pixel = static_cast<uint64_t>(depth) * (is_wide ? 2 : 1);
  return {.tensor = id,
          .height = static_cast<uint32_t>(height),
          .width = static_cast<uint32_t>(width),
          .depth = static_cast<uint32_t>(depth),
          .stride_y = static_cast<uint64_t>(width) * pixel,
          .stride_x = pixel,
          .is_signed = tensor.dtype != ir::DType::uint8,
          .zero_point = tensor.quant.zero_point(),
          .precision = is_wide ? hw::Precision::bits_16 : hw::Precision::bits_8};
}

std::optional<Map> whole_of(const ir::Graph& graph, ir::TensorId id) {
  const npu::ImageShape shape = npu::image_shape(graph.tensor(id));
  if (std::max({shape.images * shape.height, shape.width, shape.channels}) > kExtentMax) return std::nullopt;
  return dense_map(graph, id, shape.images * shape.height, shape.width, shape.channels);
}

Scale scale_of_average(uint32_t count) {
  const auto bits = static_cast<uint32_t>(std::bit_width(count - 1));
  return {static_cast<uint32_t>(((uint64_t{1} << (31 + bits)) + (uint64_t{1} << bits)) / count), 31 + bits};
}

bool has_whole_rows(const ir::Graph& graph, const Map& map) {
  const auto whole = whole_of(graph, map.tensor);
  return whole && map.offset == 0 && map.first_row + map.height <= whole->height && map.width == whole->width &&
         (map.all_channels == 0 ? map.depth : map.all_channels) == whole->depth && map.stride_y == whole->stride_y &&
         map.stride_x == whole->stride_x;
}

void take_channels(uint32_t first, uint32_t depth, Operation& operation) {
  operation.output.depth = depth;
  operation.first_channel += first;
  const auto scales = operation.channel_scales.begin() + first;
  operation.channel_scales = std::vector<Scale>(scales, scales + depth);
}

void set_type_range(const ir::Tensor& tensor, Operation& operation) {
  const ref::Range limits = ref::type_range(tensor.dtype);
  operation.least = limits.min, operation.most = limits.max;
}

Lowered lower(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  if (is_any_of(op.kind, {OpKind::reshape, OpKind::squeeze, OpKind::expand_dims})) {
    const ir::Tensor& input = graph.tensor(op.inputs[0]);
    if (!is_moved(input.dtype) || input.bytes() < 1 || input.is_constant() || input.is_variable)
      return Support::no(npu::remedy_of_type(input.dtype), "'{}' is {}, or a constant; Skillet moves computed bytes",
                         input.name, ir::dtype_name(input.dtype));
    Lowered same(std::vector<Operation>{});
    same.is_same_memory = true;
    return same;
  }
  if (is_move(op.kind)) return lower_move(graph, id);
  if (is_pair(op.kind)) return lower_pair(graph, id);
  if (is_resize(op.kind)) return lower_resize(graph, id);
  if (op.kind == OpKind::mean || op.kind == OpKind::reduce_max) return lower_reduction(graph, id);
  if (op.kind == OpKind::softmax) return lower_softmax(graph, id);
  if (is_function(op.kind)) return lower_function(graph, id);
  if (!is_any_of(op.kind, {OpKind::conv_2d, OpKind::depthwise_conv_2d, OpKind::transpose_conv, OpKind::fully_connected,
                           OpKind::max_pool_2d, OpKind::average_pool_2d, OpKind::quantize}))
    return Support::no(npu::remedy_of_op(graph, id), "Skillet has no {} for this chip", ir::op_name(op));
  return Lowerer(graph, id).run();
}

}  // namespace skillet::npus::ethosu
