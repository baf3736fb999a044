#include "graph/quantize/samples.h"

#include <algorithm>
#include <cmath>

#include "base/splitmix64.h"
#include "graph/passes/lower/weight_scales.h"

namespace skillet::quantize {
namespace {

// More rows hardly change the weights and take time; depthwise layers have a matrix for each channel.
constexpr size_t kRowsMax = 4096, kDepthwiseRowsMax = 2048;
constexpr size_t kValuesMax = size_t{1} << 26;
constexpr size_t kSpreadRows = 1024;

size_t dim(const ir::Shape& shape, int i) { return static_cast<size_t>(shape[i]); }

// Zeros before the first row or column, as TensorFlow Lite pads.
int64_t padding_before(ir::Padding padding, int64_t input, int64_t output, int64_t kernel, int64_t stride,
                       int64_t dilation) {
  if (padding == ir::Padding::valid) return 0;
  return std::max<int64_t>(0, (output - 1) * stride + (kernel - 1) * dilation + 1 - input) / 2;
}

// Draws `count` of the `all` places of an inference: one from each section of equal length.
std::vector<size_t> draw(size_t all, size_t count, SplitMix64& random) {
  std::vector<size_t> out;
  for (size_t i = 0; i < count; ++i) {
    const size_t from = i * all / count, end = std::max((i + 1) * all / count, from + 1);
    out.push_back(from + random.next() % (end - from));
  }
  return out;
}

class Sampler {
 public:
  Sampler(const ir::Graph& graph, ir::OpId id)
      : op_(graph.op(id)),
        input_(graph.tensor(op_.inputs[passes::layer_operands(op_).image])),
        filter_(graph.tensor(op_.inputs[1])),
        output_(graph.tensor(op_.outputs[0])),
        depthwise_(op_.kind == ir::OpKind::depthwise_conv_2d),
        random_(static_cast<uint64_t>(id)) {}

  Samples run(std::span<const std::span<const uint8_t>> inputs) {
    const size_t most = set_shape(depthwise_ ? kDepthwiseRowsMax : kRowsMax);
    const size_t places = static_cast<size_t>(output_.shape.elems()) / channels();
    const size_t each = std::min(places, std::max<size_t>(1, most / std::max<size_t>(1, inputs.size())));
    out_.rows = inputs.size() * each;
    out_.values.assign(out_.matrices * out_.taps * out_.rows, 0);
    size_t row = 0;
    for (const auto input : inputs) {
      for (const size_t place : draw(places, each, random_)) take(input, place, row++);
    }
    return std::move(out_);
  }

  // Each row is followed by its mirror image, so that the mean is the middle.
  Samples spread() {
    out_.rows = std::max<size_t>(2, set_shape(kSpreadRows) / 2 * 2);
    out_.values.resize(out_.matrices * out_.taps * out_.rows);
    for (size_t matrix = 0; matrix < out_.matrices; ++matrix) {
      for (size_t tap = 0; tap < out_.taps; ++tap) {
        for (size_t row = 0; row < out_.rows; row += 2) {
          const auto byte = static_cast<uint8_t>(random_.next());
          put(matrix, tap, row, byte);
          put(matrix, tap, row + 1, static_cast<uint8_t>(~byte));
        }
      }
    }
    return std::move(out_);
  }

 private:
  size_t channels() const { return dim(output_.shape, output_.shape.rank() - 1); }
  // Returns the number of rows, up to `most`, that fit.
  size_t set_shape(size_t most) {
    const bool has_groups = op_.kind == ir::OpKind::conv_2d;
    out_.matrices = depthwise_ ? channels() : has_groups ? dim(input_.shape, 3) / dim(filter_.shape, 3) : 1;
    out_.taps = filter_.data.size() / channels();
    return std::min(most, kValuesMax / (out_.taps * out_.matrices));
  }
  void take(std::span<const uint8_t> input, size_t place, size_t row) {
    if (op_.kind == ir::OpKind::fully_connected) {
      for (size_t tap = 0; tap < out_.taps; ++tap) put(0, tap, row, input[place * out_.taps + tap]);
    } else {
      take_window(input, place, row);
    }
  }
  // Copies the input of a place: its window; for TRANSPOSE_CONV, the pixels whose windows reach the place. Missing taps
  // are 0.
  void take_window(std::span<const uint8_t> input, size_t place, size_t row) {
    const auto& attrs = op_.as<ir::ConvAttrs>();
    const ir::Shape &in = input_.shape, &out = output_.shape, &filter = filter_.shape;
    const auto x = static_cast<int64_t>(place % dim(out, 2)),
               y = static_cast<int64_t>(place / dim(out, 2) % dim(out, 1));
    const size_t batch = place / dim(out, 2) / dim(out, 1);
    for (int64_t ky = 0; ky < filter[1]; ++ky) {
      for (int64_t kx = 0; kx < filter[2]; ++kx) {
        const int64_t iy = source(1, y, ky, attrs.stride_h, attrs.dilation_h);
        const int64_t ix = source(2, x, kx, attrs.stride_w, attrs.dilation_w);
        if (iy < 0 || ix < 0 || iy >= in[1] || ix >= in[2]) continue;
        const size_t at = (batch * dim(in, 1) + static_cast<size_t>(iy)) * dim(in, 2) + static_cast<size_t>(ix);
        take_pixel(input.subspan(at * dim(in, 3), dim(in, 3)), static_cast<size_t>(ky * filter[2] + kx), row);
      }
    }
  }
  // The row (axis 1) or column (2) of the input that a tap reads for a place of the output; none if outside.
  int64_t source(int axis, int64_t place, int64_t tap, int32_t stride, int32_t dilation) const {
    const int32_t in = input_.shape[axis], out = output_.shape[axis], filter = filter_.shape[axis];
    const ir::Padding padding = op_.as<ir::ConvAttrs>().padding;
    if (op_.kind != ir::OpKind::transpose_conv)
      return place * stride - padding_before(padding, in, out, filter, stride, dilation) + tap * dilation;
    const int64_t at = place + padding_before(padding, out, in, filter, stride, 1) - tap;
    return at < 0 || at % stride != 0 ? -1 : at / stride;
  }
  void take_pixel(std::span<const uint8_t> pixel, size_t window_tap, size_t row) {
    if (!depthwise_) {
      const size_t each = pixel.size() / out_.matrices;
      for (size_t i = 0; i < pixel.size(); ++i) put(i / each, window_tap * each + i % each, row, pixel[i]);
      return;
    }
    const size_t multiplier = out_.matrices / pixel.size();
    for (size_t c = 0; c < out_.matrices; ++c) put(c, window_tap, row, pixel[c / multiplier]);
  }
  void put(size_t matrix, size_t tap, size_t row, uint8_t byte) {
    out_.values[(matrix * out_.taps + tap) * out_.rows + row] =
        static_cast<float>(static_cast<int8_t>(byte) - input_.quant.zero_point());
  }

  const ir::Op& op_;
  const ir::Tensor &input_, &filter_, &output_;
  bool depthwise_;
  SplitMix64 random_;
  Samples out_;
};

ir::Activation activation_of(const ir::Op& op) {
  if (op.kind == ir::OpKind::fully_connected) return op.as<ir::FullyConnectedAttrs>().activation;
  return op.as<ir::ConvAttrs>().activation;
}

}  // namespace

bool can_sample(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Shape &in = graph.tensor(op.inputs[passes::layer_operands(op).image]).shape,
                  &filter = graph.tensor(op.inputs[1]).shape;
  const ir::Shape& out = graph.tensor(op.outputs[0]).shape;
  if (in.elems() <= 0 || out.elems() <= 0 || filter.elems() <= 0) return false;
  if (op.kind == ir::OpKind::fully_connected) return filter.rank() == 2 && in.elems() % filter[1] == 0;
  if (op.as<ir::ConvAttrs>().rows || in.rank() != 4 || filter.rank() != 4 || out.rank() != 4) return false;
  if (op.kind == ir::OpKind::conv_2d) return in[3] % filter[3] == 0 && out[3] % (in[3] / filter[3]) == 0;
  return op.kind == ir::OpKind::depthwise_conv_2d ? out[3] % in[3] == 0 : filter[3] == in[3];
}

Samples sample(const ir::Graph& graph, ir::OpId op, std::span<const std::span<const uint8_t>> inputs) {
  return Sampler(graph, op).run(inputs);
}

bool varies(const ir::Graph& graph, ir::OpId id, std::span<const std::span<const uint8_t>> inputs) {
  const ir::Op& op = graph.op(id);
  const size_t operand = op.kind == ir::OpKind::fully_connected ? 1 : passes::layer_operands(op).image;
  const ir::Shape& shape = graph.tensor(op.inputs[operand]).shape;
  const size_t period = dim(shape, shape.rank() - 1);
  return std::ranges::any_of(inputs, [&](std::span<const uint8_t> one) {
    return !std::ranges::equal(one.first(period), inputs[0].first(period)) ||
           !std::equal(one.begin() + static_cast<std::ptrdiff_t>(period), one.end(), one.begin());
  });
}

Samples spread_evenly(const ir::Graph& graph, ir::OpId op) { return Sampler(graph, op).spread(); }

Limits output_limits(const ir::Graph& graph, ir::OpId id) {
  const ir::Quant& quant = graph.tensor(graph.op(id).outputs[0]).quant;
  const double zero = quant.zero_point(), scale = quant.scale();
  Limits out{-128 - zero, 127 - zero};
  const auto narrow = [&](double low, double high) {
    out = {std::max(out.low, std::round(low / scale)), std::min(out.high, std::round(high / scale))};
  };
  switch (activation_of(graph.op(id))) {
    case ir::Activation::relu: narrow(0, HUGE_VAL); break;
    case ir::Activation::relu6: narrow(0, 6); break;
    case ir::Activation::relu_n1_to_1: narrow(-1, 1); break;
    default: break;
  }
  return out;
}

}  // namespace skillet::quantize
