// Layers without weights, as the vendor's compiler maps them: tiles as in the known driver, an image tile read once for
// all superblocks, tensors of a concatenation written in place, each other layer one operation of the runtime.
#include "npus/vivante/sim/timing.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

constexpr int64_t kTileWidthMax = 64;

bool is_free(const Layer& layer) {
  for (const std::string_view op :
       {"input", "output", "concat", "slice", "softmax", "reshape", "quantize", "dequantize"}) {
    if (layer.op == op) return true;
  }
  return false;
}

int64_t interleave(const hw::Generation& generation, int64_t width, int64_t kernel_height) {
  const int64_t reach = kernel_height - 1 + width;
  if (reach > 36) return 1;
  const int64_t most = width > 32 ? 1 : width > 16 ? 2 : width > 8 ? 4 : 8;
  return std::min<int64_t>(most, reach > 18 ? generation.interleave_wide : generation.interleave_narrow);
}

// Specification 9.1 to 9.3.
void set_tile(const hw::ChipRow& chip, int64_t stride, Shape& s) {
  const hw::Generation& generation = hw::generation_of(chip);
  s.tile_width = std::min(s.out_width, kTileWidthMax);
  const int64_t rows = interleave(generation, s.tile_width, s.kernel_height);
  const int64_t most = std::min<int64_t>(generation.tile_rows_max, rows * chip.accum_buffer_depth);
  int64_t height = std::min({chip.input_buffer_depth * rows - s.kernel_height + 1, most, s.out_height});
  if (stride > 1 && is_odd(height)) --height;
  s.tile_height = std::max<int64_t>(height, 1);
}

class Mapping {
 public:
  Mapping(const hw::ChipRow& chip, const TimingParameters& parameters) : chip_(chip), parameters_(parameters) {}

  Work work(const Layer& layer) const {
    const auto in = static_cast<double>(layer.in_elements()), out = static_cast<double>(layer.out_elements());
    if (layer.op == "conv" || layer.op == "dwconv" || layer.op == "fc") return convolution(layer, in, out);
    const bool two = layer.op == "add" || layer.op == "mul";
    Work work{.read_bytes = two ? 2 * in : in, .written_bytes = out};
    if (layer.act == "swish" || layer.act == "sigmoid") work.moved_bytes = 2 * out;
    return work;
  }

 private:
  Work convolution(const Layer& layer, double in, double out) const {
    const bool depthwise = layer.op == "dwconv", native = depthwise && chip_.has(hw::kDepthwise);
    Shape s = shape(layer, depthwise && native);
    // Stride 2: space-to-depth, with four times the planes and a filter half as large; or keeping one pixel of four.
    const bool pixels = layer.stride == 2 && depthwise, planes = layer.stride == 2 && !depthwise && layer.kw > 1;
    if (pixels) s.out_width *= 2, s.out_height *= 2;
    if (planes) {
      s.kernel_width = ceil_div(s.kernel_width, int64_t{2});
      s.kernel_height = ceil_div(s.kernel_height, int64_t{2});
      s.planes *= 4;
    }
    set_tile(chip_, layer.stride, s);
    Work work{.nn_cycles = static_cast<double>(nn_cycles(multipliers_of(chip_, parameters_), s)),
              .moved_bytes = planes ? 2 * in : 0,
              .read_bytes = in + coefficient_bytes(layer, native),
              .written_bytes = out};
    if (depthwise && !native) work.nn_cycles *= zero_factor(parameters_, 1.0 / static_cast<double>(layer.in_c));
    if (layer.act == "swish") work.moved_bytes += 2 * out;
    return work;
  }

  static Shape shape(const Layer& layer, bool native_depthwise) {
    if (layer.op == "fc")
      return {.out_width = 1,
              .out_height = 1,
              .kernels = layer.out_c,
              .in_width = 1,
              .in_height = 1,
              .planes = layer.in_elements()};
    return {.out_width = layer.out_w,
            .out_height = layer.out_h,
            .kernels = layer.out_c,
            .in_width = layer.in_w,
            .in_height = layer.in_h,
            .planes = layer.in_c,
            .kernel_width = layer.kw,
            .kernel_height = layer.kh,
            .depthwise = native_depthwise};
  }

  // Raw weights times a ratio parameter. Zeros of lowered depthwise filters are runs; the longest runs give the size.
  double coefficient_bytes(const Layer& layer, bool native) const {
    const auto weights = static_cast<double>(layer.weights);
    if (layer.op != "dwconv") return weights * parameters_.get("dense_ratio");
    if (native) return weights * parameters_.get("depthwise_ratio");
    const double lowered = weights * static_cast<double>(layer.in_c);
    return weights + (lowered - weights) * parameters_.get("zero_run_ratio");
  }

  const hw::ChipRow& chip_;
  const TimingParameters& parameters_;
};

}  // namespace

Result<std::vector<Cost>> price_layers(const hw::ChipRow& chip, const TimingParameters& parameters,
                                       std::span<const Layer> layers, Fusion fusion) {
  const Mapping mapping(chip, parameters);
  std::vector<Cost> costs;
  for (const Layer& layer : layers) {
    if (is_free(layer) && fusion == Fusion::network) continue;
    costs.push_back(price(parameters, mapping.work(layer), layer.op));
    costs.back().id = layer.id;
  }
  return costs;
}

}  // namespace skillet::sim::vivante
