#include "graph/passes/lower/lower_conv1d.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/int_math.h"
#include "graph/passes/lower/picks.h"

namespace skillet::passes {
namespace {

constexpr int64_t kWeightsMax = 1 << 22;
constexpr int32_t kSizeMax = 4096;  // of filters including the gaps between taps, and of blocks

// For columns: output `o` of a block reads column o * stride + tap * dilation - pad of the input.
struct Blocked {
  int32_t stride = 1, dilation = 1, kernel = 1, pad = 0;
  int32_t outputs = 1;  // per block
  int32_t first = 0, taps = 1;

  int32_t inputs() const { return outputs * stride; }
  int32_t column(int32_t output, int32_t tap) const { return output * stride + tap * dilation - pad; }
};

int32_t floor_div(int32_t a, int32_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// Sets the blocks that a filter must cover; with padding `same`, equally many on both sides, as that is how images are
// padded.
void set_taps(Blocked& all, bool is_same) {
  const int32_t last = floor_div(all.column(all.outputs - 1, all.kernel - 1), all.inputs());
  all.first = floor_div(all.column(0, 0), all.inputs());
  if (is_same) {
    const int32_t reach = std::max({-all.first, last, 0});
    all.first = -reach;
    all.taps = 2 * reach + 1;
  } else {
    all.taps = last - all.first + 1;
  }
}

// The two dimensions of an image: the one divided into blocks, and the other one.
struct Axes {
  int along = 2, across = 1;
};

struct Layer {
  ir::Tensor in, filter, out;
  ir::ConvAttrs attrs;
  Axes axes;
  bool is_depthwise = false;

  int32_t stride() const { return axes.along == 2 ? attrs.stride_w : attrs.stride_h; }
  int32_t dilation() const { return axes.along == 2 ? attrs.dilation_w : attrs.dilation_h; }
  int32_t stride_across() const { return axes.along == 2 ? attrs.stride_h : attrs.stride_w; }
  int32_t dilation_across() const { return axes.along == 2 ? attrs.dilation_h : attrs.dilation_w; }
};

bool has_one_zero(const ir::Quant& quant) { return !quant.zero_points.empty() && ir::all_equal(quant.zero_points); }

std::optional<Layer> layer_of(const Rewriter& rewriter, const ir::Op& op) {
  if ((op.kind != ir::OpKind::conv_2d && op.kind != ir::OpKind::depthwise_conv_2d) || op.inputs.size() < 2)
    return std::nullopt;
  Layer out{.in = rewriter.tensor(op.inputs[0]),
            .filter = rewriter.tensor(op.inputs[1]),
            .out = rewriter.tensor(op.outputs[0]),
            .attrs = op.as<ir::ConvAttrs>(),
            .is_depthwise = op.kind == ir::OpKind::depthwise_conv_2d};
  const ir::TensorId bias = op.input(2);
  const bool bias_known =
      bias == ir::kNoTensor || (rewriter.tensor(bias).is_constant() && rewriter.tensor(bias).dtype == ir::DType::int32);
  if (!is_computed_byte(out.in) || !is_computed_byte(out.out) || out.in.shape.rank() != 4 ||
      !out.filter.is_constant() || !ir::is_8bit(out.filter.dtype) || out.filter.shape.rank() != 4 ||
      !has_one_zero(out.filter.quant) || !bias_known || out.attrs.rows || out.in.shape.elems() < 1 ||
      out.out.shape.elems() < 1 || out.filter.shape.elems() < 1 ||
      (out.is_depthwise && out.attrs.depth_multiplier != 1) ||
      (!out.is_depthwise && out.filter.shape[3] != out.in.shape[3]))
    return std::nullopt;
  if (out.in.shape[2] == 1 && out.out.shape[2] == 1 && out.filter.shape[2] == 1) out.axes = {.along = 1, .across = 2};
  return out;
}

std::optional<Blocked> blocks_of(const Layer& layer, int32_t outputs) {
  const int32_t along = layer.axes.along, across = layer.axes.across;
  const int32_t size = layer.in.shape[along], kernel = layer.filter.shape[along];
  // With one window across, the stride has no effect.
  const bool one_window = layer.in.shape[across] == 1 && layer.out.shape[across] == 1;
  if ((layer.stride_across() != 1 && !one_window) || layer.dilation_across() != 1 || kernel > kSizeMax ||
      layer.dilation() > kSizeMax || layer.stride() > kSizeMax || layer.stride() < 1 || layer.dilation() < 1 ||
      int64_t{kernel - 1} * layer.dilation() >= kSizeMax)
    return std::nullopt;
  Blocked all{.stride = layer.stride(), .dilation = layer.dilation(), .kernel = kernel, .outputs = outputs};
  const bool is_same = layer.attrs.padding == ir::Padding::same;
  if (is_same) all.pad = same_pads(size, kernel, all.stride, all.dilation).before;
  set_taps(all, is_same);
  const int32_t blocks = static_cast<int32_t>(ceil_div(int64_t{size}, all.inputs()));
  const int32_t results = is_same ? blocks : blocks - all.taps + 1;
  if (int64_t{results} * outputs != layer.out.shape[along] || (size % all.inputs() != 0 && outputs != 1))
    return std::nullopt;
  return all;
}

// [output of the block, channel][row][tap][column of the block, channel], or with rows and columns swapped.
Bytes filter_in_blocks(const Layer& layer, const Blocked& all, const ir::Shape& shape) {
  const ir::Shape& old = layer.filter.shape;
  const int32_t channels = layer.in.shape[3], results = layer.out.shape[3], other = old[layer.axes.across];
  Bytes out(static_cast<size_t>(shape.elems()), static_cast<uint8_t>(layer.filter.quant.zero_point()));
  const bool is_columns = layer.axes.along == 2;
  for (int32_t output = 0; output < all.outputs; ++output)
    for (int32_t tap = 0; tap < all.kernel; ++tap) {
      const int32_t column = all.column(output, tap) - all.first * all.inputs();
      for (int32_t result = 0; result < results; ++result)
        for (int32_t y = 0; y < other; ++y) {
          const int32_t row = is_columns ? y : column / all.inputs(), at = is_columns ? column / all.inputs() : y;
          const int64_t pixel = (int64_t{output * results + result} * shape[1] + row) * shape[2] + at;
          const auto to = static_cast<size_t>(pixel * shape[3] + int64_t{column % all.inputs()} * channels);
          const int64_t old_pixel = is_columns ? int64_t{y} * old[2] + tap : int64_t{tap} * old[2] + y;
          if (layer.is_depthwise)
            out[to + static_cast<size_t>(result)] =
                layer.filter.data[static_cast<size_t>(old_pixel * results + result)];
          else
            std::memcpy(out.data() + to,
                        layer.filter.data.data() + (int64_t{result} * old[1] * old[2] + old_pixel) * channels,
                        static_cast<size_t>(channels));
        }
    }
  return out;
}

ir::Quant of_blocks(const ir::Quant& quant, int32_t times) {
  ir::Quant out = repeated(quant, times);
  out.axis = 0;
  return out;
}

ir::TensorId bias_in_blocks(Rewriter& rewriter, ir::TensorId id, int32_t outputs) {
  if (id == ir::kNoTensor) return id;
  const ir::Tensor bias = rewriter.tensor(id);
  Bytes bytes;
  for (int32_t i = 0; i < outputs; ++i) bytes.insert(bytes.end(), bias.data.begin(), bias.data.end());
  return rewriter.add_constant(bias.name + "/blocks", ir::DType::int32,
                               {static_cast<int32_t>(bias.shape.elems()) * outputs}, std::move(bytes),
                               of_blocks(bias.quant, outputs));
}

// Adds columns at the end, up to a whole block.
ir::TensorId lengthen(Rewriter& rewriter, ir::TensorId id, int along, int32_t more, std::vector<ir::Op>& ops) {
  if (more == 0) return id;
  ir::Shape shape = rewriter.tensor(id).shape;
  shape.dims[static_cast<size_t>(along)] += more;
  const ir::TensorId longer = rewriter.add_like(rewriter.tensor(id), "/longer", std::move(shape));
  std::vector<int32_t> amounts(8, 0);
  amounts[static_cast<size_t>(along) * 2 + 1] = more;
  const ir::TensorId margins = rewriter.add_ints(rewriter.tensor(id).name + "/margins", amounts, {4, 2});
  ops.push_back({.kind = ir::OpKind::pad, .inputs = {id, margins}, .outputs = {longer}});
  return longer;
}

// Makes `image` by filters that have a single 1 for each pixel and channel of a block.
ir::Op folded(Rewriter& rewriter, ir::TensorId from, ir::TensorId image, const Axes& axes, int32_t block) {
  const ir::Tensor in = rewriter.tensor(from), out = rewriter.tensor(image);
  const int32_t channels = out.shape[3];
  ir::Shape shape{channels, 1, 1, in.shape[3]};
  shape.dims[static_cast<size_t>(axes.along)] = block;
  ir::ConvAttrs attrs{.padding = ir::Padding::valid};
  const int32_t across = in.shape[axes.across] == 1 ? block : 1;  // chips support equal strides
  attrs.stride_w = axes.along == 2 ? block : across;
  attrs.stride_h = axes.along == 2 ? across : block;
  ir::Op op{.kind = ir::OpKind::conv_2d, .attrs = attrs};
  op.inputs = {from, picks_in_order(rewriter, out.name + "/picks", in.dtype, std::move(shape)), ir::kNoTensor};
  op.outputs = {image};
  return op;
}

ir::Shape in_blocks(ir::Shape shape, int along, int32_t block) {
  shape.dims[static_cast<size_t>(along)] /= block;
  shape.dims[3] *= block;
  return shape;
}

// Shorter filters are supported by chips, so blocks of several outputs gain nothing there.
bool is_long(const Layer& layer) {
  constexpr int64_t kShort = 8;
  return int64_t{layer.filter.shape[layer.axes.along] - 1} * layer.dilation() + 1 > kShort;
}

}  // namespace

void lower_conv1d(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  const auto layer = layer_of(rewriter, old);
  if (!layer || rewriter.level(id) == Level::proven) return;
  const bool strides = layer->attrs.stride_h != 1 || layer->attrs.stride_w != 1;
  for (const Blocks by : {Blocks::by_reshape, Blocks::by_filters})
    for (const int32_t outputs : {1, 2, 3, 4, 5, 6, 8}) {
      if (outputs == 1 ? !strides : !is_long(*layer)) continue;
      std::vector<ir::Op> ops = in_blocks(rewriter, old, outputs, by);
      if (ops.empty()) continue;
      const int32_t block = outputs * layer->stride();
      std::string text =
          fmt::format("{} {}x{} becomes CONV_2D of blocks of {} {}", ir::op_name(old), layer->filter.shape[1],
                      layer->filter.shape[2], block, layer->axes.along == 2 ? "columns" : "rows");
      if (rewriter.replace(id, std::move(ops), std::move(text))) return;
    }
}

std::vector<ir::Op> in_blocks(Rewriter& rewriter, const ir::Op& op, int32_t outputs, Blocks by) {
  const auto layer = layer_of(rewriter, op);
  const auto all = layer ? blocks_of(*layer, outputs) : std::nullopt;
  if (!all) return {};
  const int along = layer->axes.along, block = all->inputs();
  ir::Shape shape{layer->out.shape[3] * outputs, layer->filter.shape[1], layer->filter.shape[2],
                  layer->in.shape[3] * block};
  shape.dims[static_cast<size_t>(along)] = all->taps;
  if (int64_t{shape[0]} * shape[3] > kWeightsMax / (int64_t{shape[1]} * shape[2])) return {};
  if (by == Blocks::by_filters && int64_t{shape[3]} * shape[3] > kWeightsMax) return {};
  std::vector<ir::Op> ops;
  const int32_t size = layer->in.shape[along], whole = static_cast<int32_t>(ceil_div(int64_t{size}, block)) * block;
  const ir::TensorId from = lengthen(rewriter, op.inputs[0], along, whole - size, ops), to = op.outputs[0];
  const ir::TensorId image =
      rewriter.add_like(rewriter.tensor(from), "/blocks", in_blocks(rewriter.tensor(from).shape, along, block));
  ops.push_back(by == Blocks::by_reshape ? rewriter.reshape(from, image)
                                         : folded(rewriter, from, image, layer->axes, block));
  const ir::ConvAttrs attrs{.padding = layer->attrs.padding,
                            .activation = layer->attrs.activation,
                            .float_product = layer->attrs.float_product};
  ir::Op conv{.kind = ir::OpKind::conv_2d, .attrs = attrs};
  conv.inputs = {image,
                 rewriter.add_constant(layer->filter.name + "/blocks", layer->filter.dtype, shape,
                                       filter_in_blocks(*layer, *all, shape), of_blocks(layer->filter.quant, outputs)),
                 bias_in_blocks(rewriter, op.input(2), outputs)};
  const ir::TensorId result =
      outputs == 1 ? to
                   : rewriter.add_like(rewriter.tensor(to), "/blocks", in_blocks(layer->out.shape, along, outputs));
  conv.outputs = {result};
  ops.push_back(std::move(conv));
  if (result != to) ops.push_back(rewriter.reshape(result, to));
  return ops;
}

}  // namespace skillet::passes
