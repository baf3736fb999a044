// Shared by the LSTM kernels: sizes, and indices of the operands.
// Called by the kernels of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM.
// Must not know: arithmetic.
#pragma once

#include "graph/ir/lstm_operands.h"
#include "graph/ref/kernel.h"

namespace skillet::ref {

struct LstmSizes {
  size_t steps = 1, batch = 1, inputs = 0, cells = 0, outputs = 0;
  bool time_major = true;

  // Element of step `s`, batch `b` of a tensor with `width` elements each.
  size_t at(size_t s, size_t b, size_t width) const { return (time_major ? s * batch + b : b * steps + s) * width; }
};

LstmSizes lstm_sizes(const Context& context);

// The peephole of each gate; the cell update has none.
inline constexpr std::array<size_t, ir::lstm_operand::kGates> kPeepholeOf = {
    ir::lstm_operand::kPeephole, ir::lstm_operand::kPeephole + 1, SIZE_MAX, ir::lstm_operand::kPeephole + 2};

// Calls op.step(input, output, cell) for each step and batch; `output` and `cell` are the states.
template <typename T, typename Cell, typename Lstm>
KernelPtr steps_kernel(const Context& c, Lstm op) {
  using namespace ir::lstm_operand;
  return make_kernel([op = std::move(op), in = c.input_index(kInput), output = c.input_index(kOutputState),
                      cell = c.input_index(kCellState), out = c.output_index()](Tensors t) {
    const LstmSizes& n = op.sizes;
    for (size_t s = 0; s < n.steps; ++s) {
      for (size_t b = 0; b < n.batch; ++b) {
        T* state = elements<T>(t[output]) + b * n.outputs;
        op.step(elements<const T>(t[in]) + n.at(s, b, n.inputs), state, elements<Cell>(t[cell]) + b * n.cells);
        std::copy_n(state, n.outputs, elements<T>(t[out]) + n.at(s, b, n.outputs));
      }
    }
  });
}

Prepare prepare_float_lstm, prepare_integer_lstm;

}  // namespace skillet::ref
