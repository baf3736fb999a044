// FULLY_CONNECTED of several rows becomes a 1x1 convolution: each row is a pixel.
#include <algorithm>
#include <utility>

#include "base/fixed_point.h"
#include "graph/passes/rewrite.h"

namespace skillet::passes {
namespace {

// TFLite rounds input scale * weight scale to float in FULLY_CONNECTED with one weight scale, but not in an int8
// CONV_2D. Returns whether both multiply their sums by the same number.
bool multiplies_alike(const ir::Tensor& input, const ir::Tensor& filter, const ir::Tensor& output) {
  if (input.dtype == ir::DType::uint8 || filter.quant.per_channel()) return true;
  const float product = input.quant.scale() * filter.quant.scale();
  const double dense = static_cast<double>(product) / static_cast<double>(output.quant.scale());
  return quantize_multiplier(dense) == quantize_multiplier(conv_multiplier(input, filter.quant.scale(), output));
}

}  // namespace

void lower_dense_as_conv(Rewriter& rewriter, ir::OpId id) {
  const ir::Op old = rewriter.op(id);
  if (old.kind != ir::OpKind::fully_connected) return;
  const ir::Tensor input = rewriter.tensor(old.inputs[0]), output = rewriter.tensor(old.outputs[0]);
  const ir::Tensor filter = rewriter.tensor(old.inputs[1]);
  const int32_t depth = filter.shape.back(0), outputs = filter.shape.back(1);
  if (!is_computed_byte(input) || !is_computed_byte(output) || !filter.is_constant() || filter.quant.empty() ||
      filter.shape.rank() != 2 || depth < 1 || output.shape.back(0) != outputs)
    return;
  // Kernels ignore any other zero point of a convolution's filter in a file (graph/ir/settle.h).
  if (filter.dtype == ir::DType::int8 && filter.quant.zero_point() != 0) return;
  const int64_t rows = input.shape.elems() / depth;
  const bool float_product = !multiplies_alike(input, filter, output);
  if (rows < 2 || rows > INT32_MAX || (float_product && rewriter.for_files()) || rewriter.level(id) == Level::proven)
    return;
  const auto pixels = static_cast<int32_t>(rows);
  const ir::TensorId from = rewriter.add_like(input, "/pixels", as_image(pixels, depth));
  const ir::TensorId weights = rewriter.add_like(filter, "/1x1", {outputs, 1, 1, depth});
  const ir::TensorId to = rewriter.add_like(output, "/pixels", as_image(pixels, outputs));
  ir::Op op{.kind = ir::OpKind::conv_2d,
            .attrs = ir::ConvAttrs{.padding = ir::Padding::valid,
                                   .activation = old.as<ir::FullyConnectedAttrs>().activation,
                                   .float_product = float_product},
            .inputs = {from, weights, old.input(2)},
            .outputs = {to}};
  rewriter.replace(id, {rewriter.reshape(old.inputs[0], from), std::move(op), rewriter.reshape(to, old.outputs[0])},
                   fmt::format("FULLY_CONNECTED of {} rows becomes CONV_2D 1x1", rows));
}

}  // namespace skillet::passes
