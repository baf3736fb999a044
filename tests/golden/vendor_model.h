// The operations of a case of the RK3576's vendor compiler, as graphs with the numbers that its float model and its
// quantization give. Called by vendor_case.cpp and the tests.
// Must not know: programs.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::golden {

// Real values of a tensor between `zero` and the others are scale * (byte - zero).
struct Quantized {
  float scale = 1;
  int32_t zero = 0;
};

// The registers of a convolution that its model does not have: of tensors between operations nobody keeps the ranges.
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
// By the formulas of the set that the case is in; error: there are none.
Result<FloatConv> float_conv(const std::string& name, int number, const VendorOp& op);

// Weights of one kernel after another with a scale and zero point each.
struct QuantizedConv {
  std::vector<int32_t> weights;  // less their zero points; OIHW
  std::vector<float> scales;
  std::vector<int32_t> zeros;
};
QuantizedConv quantize(const FloatConv& conv, size_t kernels);
Quantized quantize(double least, double most);

// A graph of the one operation, with PAD in front where its padding is neither SAME nor VALID. `is_made`: the input is
// no input of the graph but made by a pool in front.
Result<ir::Graph> conv_graph(const VendorOp& op, const FloatConv& conv, const Quantized& in, const Quantized& out,
                             const ConvWords& words, bool is_made);
Result<ir::Graph> pool_graph(const VendorOp& op, const Quantized& in);

// The range of input scales for which the biases give `sums`, what is added to each channel; and of those for which the
// gain gives the multiplier.
struct ScaleRange {
  double least = 0, most = 1e30;
  void meet(double a, double b) { least = std::max(least, a), most = std::min(most, b); }
  double middle() const { return (least + most) / 2; }
};
void meet_sums(const FloatConv& conv, const QuantizedConv& q, int32_t zero, const std::vector<int32_t>& sums,
               ScaleRange& range);

}  // namespace skillet::golden
