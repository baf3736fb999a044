// A graph with scales at both ends of float, and zero points and biases at the ends of their types.
// Called by the tests of graph/passes/ and tests/conformance/.
// Must not know: the code under test.
#pragma once

#include <cfloat>

#include "graph/ir/testing/random_ops.h"

namespace skillet::passes {

class Extremes : RandomOps {
 public:
  explicit Extremes(uint32_t seed) : RandomOps(seed) {}

  // Tensors with equal quantization keep it equal. Returns the graph unchanged if no well-formed one was found.
  ir::Graph of(const ir::Graph& graph) {
    for (int attempt = 0; attempt < 12; ++attempt) {
      graph_ = graph;
      change();
      if (ir::verify(graph_).ok()) return std::move(graph_);
    }
    return graph;
  }

 private:
  static constexpr std::array kEnds = {0.0F,   1e-45F, 1e-41F, FLT_MIN, 1.2e-38F, 1e-30F, 1e-20F,
                                       1e-10F, 1e10F,  1e20F,  1e30F,   1e38F,    3e38F,  FLT_MAX};

  // Factors keep the ratios that passes match, while products and quotients leave the range of float.
  void change() {
    const bool factors = chance(2);
    const int one_in = range(1, 4);
    const float of_images = factor(), of_weights = factor(), of_sums = chance(2) ? of_images * of_weights : factor();
    std::vector<std::pair<ir::Quant, ir::Quant>> known;
    for (ir::Tensor& tensor : graph_.tensors) {
      if (tensor.dtype == ir::DType::int32 && tensor.is_constant() && tensor.shape.rank() == 1 && chance(8))
        biases_of(tensor);
      if (tensor.quant.empty()) continue;
      const auto at = std::ranges::find(known, tensor.quant, &std::pair<ir::Quant, ir::Quant>::first);
      ir::Quant after = at != known.end() ? at->second : tensor.quant;
      if (at == known.end()) {
        const ir::Quant before = after;
        const float by = tensor.dtype == ir::DType::int32 ? of_sums : tensor.is_constant() ? of_weights : of_images;
        for (float& scale : after.scales) {
          if (factors) scale *= by;
          if (!factors && chance(one_in)) scale = chance(2) ? any_of(kEnds) : power(-149, 128);
        }
        if (chance(3)) zero_points_of(tensor.dtype, after);
        known.emplace_back(before, after);
      }
      tensor.quant = after;
    }
  }
  float factor() { return chance(3) ? 1 : power(-140, 130); }
  void zero_points_of(ir::DType dtype, ir::Quant& quant) {
    if (!ir::is_8bit(dtype) || quant.scales.size() != 1) return;
    const int32_t lowest = dtype == ir::DType::int8 ? -128 : 0;
    quant.zero_points = {lowest + any_of(std::array{0, 1, 254, 255})};
  }
  // The graph stays well-formed only if the constant is not a list of axes or sizes.
  void biases_of(ir::Tensor& tensor) {
    Bytes bytes(tensor.data.begin(), tensor.data.end());
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4)
      if (chance(2)) store_le(bytes.data() + i, any_of(std::array{INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX}));
    ir::set_constant(tensor, std::move(bytes));
  }
};

}  // namespace skillet::passes
