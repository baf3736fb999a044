// The operations of a case of the RK3576's vendor compiler as graphs, with the numbers of its float model and its
// quantization. Called by vendor_case.cpp and the tests.
// Must not know: programs.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::golden {

// Quantization of a tensor: real value = scale * (byte - zero).
struct Quantized {
  float scale = 1;
  int32_t zero = 0;
};

// Registers of a convolution that its model does not determine: the case lacks ranges of tensors between operations.
struct ConvWords {
  int32_t pad = 0, out_offset = 0, limit = 0;
  uint32_t multiplier = 0, shift = 0;
  bool is_limited = false, has_slope = false;
};

struct VendorOp {
  std::string type;
  int32_t in_channels = 0, out_channels = 0, in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int32_t kernel_height = 1, kernel_width = 1, stride_y = 1, stride_x = 1, pad_top = 0, pad_left = 0;
};

// Weights and biases of a float convolution, OIHW.
struct FloatConv {
  std::vector<float> weights, bias;
};
// Computes them by the formulas of the case's set; error: the set has none.
Result<FloatConv> float_conv(const std::string& name, int number, const VendorOp& op);

// Quantized weights, one kernel after another, with a scale and zero point each.
struct QuantizedConv {
  std::vector<int32_t> weights;  // less their zero points; OIHW
  std::vector<float> scales;
  std::vector<int32_t> zeros;
};
QuantizedConv quantize(const FloatConv& conv, size_t kernels);
Quantized quantize(double least, double most);

// Returns a graph of one operation, with PAD in front if its padding is neither SAME nor VALID. `is_made`: a pool in
// front makes the input, instead of the graph's input.
Result<ir::Graph> conv_graph(const VendorOp& op, const FloatConv& conv, const Quantized& in, const Quantized& out,
                             const ConvWords& words, bool is_made);
Result<ir::Graph> pool_graph(const VendorOp& op, const Quantized& in);

// The range of input scales for which the biases give `sums` (the values added to each channel) and the gain gives the
// multiplier.
struct ScaleRange {
  double least = 0, most = 1e30;
  void meet(double a, double b) { least = std::max(least, a), most = std::min(most, b); }
  double middle() const { return (least + most) / 2; }
};
void meet_sums(const FloatConv& conv, const QuantizedConv& q, int32_t zero, const std::vector<int32_t>& sums,
               ScaleRange& range);

}  // namespace skillet::golden
