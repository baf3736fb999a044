#include "graph/ir/macs.h"

#include <algorithm>
#include <initializer_list>

#include "graph/ir/lstm_operands.h"

namespace skillet::ir {
namespace {

// An op of a graph whose operands are not checked: a missing operand has no elements.
struct View {
  const Graph& graph;
  const Op& op;

  uint64_t elems(TensorId id) const {
    return id == kNoTensor ? 0 : static_cast<uint64_t>(graph.tensor(id).shape.elems());
  }
  uint64_t in(size_t i) const { return elems(op.input(i)); }
  uint64_t out() const { return op.outputs.empty() ? 0 : elems(op.outputs[0]); }
  // Dimension of operand `i`, counted from the innermost; 1 beyond its rank, 0 if there is no such operand.
  uint64_t dim(size_t i, int from_back) const {
    return op.input(i) == kNoTensor ? 0 : static_cast<uint64_t>(graph.tensor(op.input(i)).shape.back(from_back));
  }
  uint64_t out_dim(int from_back) const {
    return op.outputs.empty() ? 0 : static_cast<uint64_t>(graph.tensor(op.outputs[0]).shape.back(from_back));
  }
};

struct Operands {
  size_t first = 0, count = 1;
};

// Each vector of the input (operand 0) is multiplied once by each of these matrices.
uint64_t matrices(const View& v, std::initializer_list<Operands> weights) {
  uint64_t each = 0;
  for (const Operands& some : weights)
    for (size_t i = 0; i < some.count; ++i) each += v.in(some.first + i);
  const uint64_t size = v.dim(0, 0);
  return size == 0 ? 0 : v.in(0) / size * each;
}

uint64_t none(const View&) { return 0; }
uint64_t conv_2d(const View& v) { return v.out() * v.dim(1, 0) * v.dim(1, 1) * v.dim(1, 2); }
uint64_t depthwise_conv_2d(const View& v) { return v.out() * v.dim(1, 1) * v.dim(1, 2); }
// Each element of the input is multiplied by the filter once for each output channel.
uint64_t transpose_conv(const View& v) { return v.in(2) * v.dim(1, 1) * v.dim(1, 2) * v.out_dim(0); }
uint64_t fully_connected(const View& v) { return v.out() * v.dim(1, 0); }
uint64_t batch_matmul(const View& v) {
  const auto* attrs = std::get_if<BatchMatmulAttrs>(&v.op.attrs);
  return v.out() * v.dim(0, attrs != nullptr && attrs->transpose_a ? 1 : 0);
}

// Filters are [depth, height, width, in, out]; filters of the transposed convolution are [..., out, in].
uint64_t conv_3d(const View& v) { return v.out() * v.dim(1, 4) * v.dim(1, 3) * v.dim(1, 2) * v.dim(1, 1); }
uint64_t conv_3d_transpose(const View& v) { return v.in(2) * v.dim(1, 4) * v.dim(1, 3) * v.dim(1, 2) * v.dim(1, 1); }

uint64_t lstm(const View& v) {
  using namespace lstm_operand;
  constexpr size_t kBasicOperands = 5, kBasicWeights = 2;  // one matrix with all gates, for input and state together
  if (v.op.inputs.size() == kBasicOperands) return matrices(v, {{kBasicWeights}});
  return matrices(v, {{kInputWeights, kGates}, {kRecurrentWeights, kGates}, {kProjectionWeights}});
}
// The operands of the forward direction are those of LSTM. The operands of the backward direction follow, then those of
// a second input.
uint64_t bidirectional_lstm(const View& v) {
  using namespace lstm_operand;
  constexpr size_t kOther = kProjectionBias, kSecondInput = 40;
  return matrices(v, {{kInputWeights, 2 * kGates},
                      {kProjectionWeights},
                      {kOther + kInputWeights, 2 * kGates},
                      {kOther + kProjectionWeights},
                      {kSecondInput, 2 * kGates}});
}
// Weights of the input and of the state.
uint64_t rnn(const View& v) { return matrices(v, {{1, 2}}); }
uint64_t bidirectional_rnn(const View& v) { return matrices(v, {{1, 2}, {5, 2}, {10, 2}}); }
// Weights of the features and of time.
uint64_t svdf(const View& v) { return matrices(v, {{1, 2}}); }

using Count = uint64_t (*)(const View&);
struct NameRule {
  std::string_view name;
  Count count;
};

constexpr NameRule kByName[] = {
#define MACS_BY_NAME(name, rule) {name, rule},
#include "graph/ir/macs.def"
#undef MACS_BY_NAME
};

Count rule_of(OpKind kind) {
  constexpr Count kByKind[] = {
#define OP(kind, name, code, attrs, inputs_min, inputs_max, outputs, types, shapes, macs, ...) macs,
#include "graph/ir/op.def"
#undef OP
      none};
  return kByKind[static_cast<size_t>(kind)];
}

Count rule_of(const Op& op) {
  if (op.kind != OpKind::opaque) return rule_of(op.kind);
  const auto row = std::ranges::find(kByName, std::string_view(op.opaque_name), &NameRule::name);
  if (row != std::end(kByName)) return row->count;
  return rule_of(op_kind_from_name(op.opaque_name).value_or(OpKind::opaque));
}

}  // namespace

uint64_t op_macs(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  return op.outputs.empty() ? 0 : rule_of(op)({graph, op});
}

}  // namespace skillet::ir
