// The numbers that the chip can compute with: scales that fit its fields, sums that fit its accumulators, the 8-bit
// weights of an addition; and how far each result may be from the CPU's.
// Called by support.cpp (refuses what does not fit), lower.cpp and filters.cpp (use the rest).
// Must not know: shapes of images, bit positions.
#pragma once

#include "graph/ir/graph.h"
#include "npus/vivante/hw/vivante.h"

namespace skillet::npus::vivante {

namespace hw = skillet::vivante::hw;

// A quantization whose scale is a normal positive number and whose zero point is within the type.
bool is_usable(const ir::Quant& quant, ir::DType dtype);
// Zero point on the chip's unsigned scale: int8 tensors are XORed with 0x80 on the way in and out.
uint8_t unsigned_zero_point(const ir::Tensor& tensor);
constexpr uint8_t xor_byte(ir::DType dtype) { return dtype == ir::DType::int8 ? 0x80 : 0; }

// How int8 models are converted. The chip computes with unsigned bytes.
enum class SignedBytes : uint8_t {
  raised,       // by 128
  as_they_are,  // as recorded on V7, and wrong (section 7.1)
};

// (input scale * filter scale) / output scale, in binary32, in this order.
float conv_scale(const ir::Graph& graph, ir::OpId op, float filter_scale);
// The requantization of an NN job shifts right by 0..127 bits. On V7 scales are from 2^-112 to below 2^16, on V8 all
// normal numbers below 2; other scales are refused, not masked.
bool is_nn_scale(const hw::ChipRow& chip, float scale);
// The requantization of a TP job shifts by -exponent bits, in 7 bits with sign: -64..63. From 2^-63 on; the upper end
// is lower, because of the CPU's 32 bits, see below.
bool is_tp_scale(float scale);
// TFLite shifts a value left before it multiplies, within 32 bits: the largest magnitude that is right at this scale.
int64_t largest_rescaled(float scale);

// True if bias + sum((x - input zero point) * (w - filter zero point)) stays within +-limit in every output channel for
// all inputs: the chip's accumulator has 32 bits.
bool sums_within(const ir::Graph& graph, ir::OpId op, int64_t limit);

// An addition or subtraction: acc = first * q0 + second * q1 + bias, then requantized by `scale` (section 7.7). The
// 8-bit weights are first and second plus their zero point, which is 0 except for subtractions.
struct AdditionWeights {
  int32_t first = 0, second = 0;
  uint8_t zero_point = 0;
  int32_t bias = 0;
  float scale = 1;
};
// The ratio of the operands' scales must be finite. Subtractions: only on chips with chunked additions.
AdditionWeights addition_weights(const hw::ChipRow& chip, const ir::Graph& graph, const ir::Op& op,
                                 SignedBytes signed_bytes = SignedBytes::raised);
// Error of the result before rounding, in output steps, because the weights are whole numbers (and because the CPU's
// own operands have 20 bits more).
double addition_error(const ir::Graph& graph, const ir::Op& op, const AdditionWeights& weights);

}  // namespace skillet::npus::vivante
