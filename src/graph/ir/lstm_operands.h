// The operands of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM, in TFLite's order. Weights are [rows, columns]; a variant
// leaves out the operands that it does not have. Called by the rule and the kernels of these operations. Must not know:
// element types.
#pragma once

#include <cstddef>

namespace skillet::ir::lstm_operand {

constexpr size_t kInput = 0;
// First operands of the four gates input, forget, cell, output. Without an input gate, input = 1 - forget.
constexpr size_t kInputWeights = 1, kRecurrentWeights = 5, kBias = 12, kLayerNorm = 20;
constexpr size_t kGates = 4;
constexpr size_t kInputGate = 0, kForgetGate = 1, kCellGate = 2, kOutputGate = 3;
// Weights of the cell state for the gates input, forget and output.
constexpr size_t kPeephole = 9, kPeepholes = 3;
constexpr size_t kProjectionWeights = 16, kProjectionBias = 17;
constexpr size_t kOutputState = 18, kCellState = 19;  // variables, read and written

}  // namespace skillet::ir::lstm_operand
