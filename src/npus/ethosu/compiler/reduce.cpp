// MEAN and REDUCE_MAX as windows over all values of a result: a depthwise convolution of ones, whose scale divides as
// the CPU kernel does (hardware specification, sections 4.5 and 4.14), or a pool.
#include <algorithm>
#include <bit>

#include "base/int_math.h"
#include "graph/ref/range.h"
#include "npus/ethosu/compiler/lower.h"

namespace skillet::npus::ethosu {
namespace {

using npu::Remedy;
using npu::Support;

constexpr uint32_t kOnesHeightMax = 64, kOnesMax = 4096, kPoolHeightMax = 256, kPoolMax = 65536, kSubkernel = 8;

// Each result reduces `reduced` values, `inner` apart; there are `outer` contiguous groups of results.
struct Extent {
  int64_t outer = 1, reduced = 1, inner = 1;
};

std::optional<Extent> extent_of(const ir::Graph& graph, const ir::Op& op) {
  const ir::Shape& shape = graph.tensor(op.inputs[0]).shape;
  const ir::Tensor& axes = graph.tensor(op.inputs[1]);
  if (!axes.is_constant() || axes.dtype != ir::DType::int32) return std::nullopt;
  std::vector<bool> is_reduced(shape.dims.size());
  for (const int32_t axis : axes.values<int32_t>())
    is_reduced[static_cast<size_t>(axis < 0 ? axis + shape.rank() : axis)] = true;
  Extent out;
  for (size_t i = 0; i < shape.dims.size(); ++i) {
    if (shape.dims[i] == 1) continue;
    if (is_reduced[i] && out.inner != 1) return std::nullopt;  // not adjacent to the reduced axes before
    (is_reduced[i] ? out.reduced : out.reduced == 1 ? out.outer : out.inner) *= shape.dims[i];
  }
  return out;
}

// Number of window rows for the fewest parts of 8x8; 1 if other results are next to it.
uint32_t rows_of(const Extent& extent, uint32_t height_max) {
  const auto count = static_cast<uint32_t>(extent.reduced);
  const auto parts = [&](uint32_t rows) { return ceil_div(rows, kSubkernel) * ceil_div(count / rows, kSubkernel); };
  uint32_t best = 1;
  if (extent.outer != 1) return best;
  for (uint32_t rows = 2; rows <= std::min(count, height_max); ++rows)
    if (count % rows == 0 && parts(rows) < parts(best)) best = rows;
  return best;
}

Support set_mean(const ir::Tensor& input, const ir::Tensor& output, int64_t count, Operation& out) {
  const double ratio = static_cast<double>(input.quant.scale()) / static_cast<double>(output.quant.scale());
  const QuantizedMultiplier by = divide_multiplier(quantize_multiplier(ratio), count);
  const int most =
      (out.is_wide() ? kLeftMax - 8 : kLeftMax) - static_cast<int>(std::bit_width(static_cast<uint64_t>(count)));
  if (by.shift > most) return too_steep(output);
  out.unit = Unit::depthwise;
  out.taps.assign(static_cast<size_t>(count), 1);
  out.channel_scales.assign(out.output.depth, scale_of(by));
  return Support::yes();
}

}  // namespace

Lowered lower_reduction(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const ir::Tensor &input = graph.tensor(op.inputs[0]), &output = graph.tensor(op.outputs[0]);
  for (const ir::Tensor* tensor : {&input, &output})
    if (Support one = is_activation(*tensor); !one.ok) return one;
  const bool is_mean = op.kind == ir::OpKind::mean;
  const auto extent = extent_of(graph, op);
  if (!extent) return Support::no(Remedy::form, "its axes are computed, or not adjacent");
  const auto [outer, reduced, inner] = *extent;
  const uint32_t most = is_mean ? kOnesMax : kPoolMax;
  if (std::max({outer, reduced, inner}) > kExtentMax || reduced > most)
    return Support::no(Remedy::split, "{} results of {} values by {}; the chip takes {} values and {} of each axis",
                       outer, reduced, inner, most, kExtentMax);
  if (!is_mean && input.quant != output.quant)
    return Support::no(Remedy::same_scale, "input and output have different quantization");
  const uint32_t rows = rows_of(*extent, is_mean ? kOnesHeightMax : kPoolHeightMax);
  Operation made{.op = id,
                 .input = dense_map(graph, op.inputs[0], outer == 1 ? rows : outer, reduced / rows, inner),
                 .output = dense_map(graph, op.outputs[0], outer, 1, inner),
                 .window = {.kernel_h = rows, .kernel_w = static_cast<uint32_t>(reduced) / rows}};
  set_type_range(output, made);
  if (is_mean) {
    if (Support one = set_mean(input, output, reduced, made); !one.ok) return one;
  } else {
    made.unit = Unit::max_pool;
    made.input.zero_point = made.output.zero_point = 0;
  }
  return std::vector<Operation>{std::move(made)};
}

}  // namespace skillet::npus::ethosu
