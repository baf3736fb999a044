// Lowering: units as operations of an ir::Graph, with channels last instead of second. Weights and axes are permuted in
// advance; a transpose is added only where an operation reads an image as rows of numbers. Called for each unit by the
// execution provider and by the importer of files; ops_*.cpp have the rows. Must not know: hosts, chips.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx/units.h"

namespace skillet::onnx {

enum class Layout : uint8_t {
  plain,          // the host's order
  channels_last,  // dimension 1 after all others
  rows,           // flattened images: the numbers of channels_last, in one dimension
};
// `values`, one for each of the host's dimensions, in the order of `layout`.
std::vector<int32_t> in_layout(std::vector<int32_t> values, Layout layout);

// A value that crosses the border of a part: [n][c][hw] for the host, [n][hw][c] for the graph.
struct Edge {
  int value = kNone;
  ir::TensorId tensor = ir::kNoTensor;
  int64_t n = 1, c = 1, hw = 1;
};

struct LowerRow;

// For whole files, which have no host for nodes outside of units: values may have any type, and QuantizeLinear is an
// operation too.
struct WholeFile {
  const Links& links;
  std::array<std::span<const LowerRow>, 4> rows;  // for nodes outside of units; they come before the rows of units
  Result<void> (*check)(const ir::Graph& alone);  // an error if the CPU cannot run the operation
};

class Lowering {
 public:
  // All 8-bit values become `type`.
  Lowering(const Model& model, ir::DType type, const WholeFile* whole = nullptr)
      : model_(model), type_(type), whole_(whole) {}

  // Adds the whole unit or, on an error, nothing. `index`: Op::source_index.
  Result<void> add(const Unit& unit, int index);
  // Adds the host's value, in its current layout, as an output of the graph.
  Result<void> add_output(int value);

  // For whole files. Add an input with the quantization of its readers, a QuantizeLinear node, or an opaque operation
  // for a node that add() refuses; `quants`: the quantization of its outputs by their readers. On an error nothing is
  // added.
  Result<void> add_input(int value, const ir::Quant& quant);
  Result<void> add_quantization(int node);
  Result<void> add_opaque(int node, std::span<const ir::Quant> quants);
  // Returns the value with the type and the order of dimensions of the file.
  Result<ir::TensorId> as_in_file(int value);
  ir::TensorId copy_of(ir::TensorId id);

  ir::Graph graph;
  std::vector<Edge> inputs, outputs;  // in the order of the graph's

  // For ops_*.cpp: the current unit and its operands.
  const Model& model() const { return model_; }
  const Unit& unit() const { return *unit_; }
  const Node& node() const { return model_.node(unit_->node); }
  ir::DType type() const { return type_; }
  int least() const { return type_ == ir::DType::int8 ? -128 : 0; }
  const Operand* input(size_t i) const;
  Result<std::vector<int32_t>> dims(int value) const;
  Result<std::vector<int32_t>> input_dims(size_t i) const;
  // Input `i` as a tensor: a computed value in that layout, or a constant of 8 bits (`rank`: filled up with leading
  // ones).
  Result<ir::TensorId> read(size_t i, Layout layout, size_t rank = 0);
  // Integers of a constant input; none: the input is left out.
  Result<std::optional<std::vector<int64_t>>> list(size_t i) const;
  // The default layout of a value of this rank.
  static Layout usual(size_t rank) { return rank >= 3 ? Layout::channels_last : Layout::plain; }
  // Plain if all computed inputs are only plain; else the usual layout.
  Layout common_layout(size_t rank) const;
  // The index in `layout` of an axis of the host.
  static int axis_in(Layout layout, int64_t axis, size_t rank);

  // Creates output `i`, with the unit's quantization.
  Result<ir::TensorId> write(size_t i, Layout layout);
  // Records the image that `value` is flattened from.
  void set_rows(int value, std::vector<int32_t> image) { images_[value] = std::move(image); }
  std::optional<std::vector<int32_t>> image_of(int value) const;
  bool has(int value, Layout layout) const { return known_.contains({value, layout}); }

  ir::Quant quant(const Operand& operand) const;                       // converted to `type`
  ir::TensorId temporary(std::vector<int32_t> dims, ir::Quant quant);  // without a quantization: float32
  ir::TensorId temporary_of(ir::DType dtype, std::vector<int32_t> dims, ir::Quant quant = {});
  bool is_float(ir::TensorId id) const { return graph.tensor(id).dtype == ir::DType::float32; }
  ir::TensorId constant(ir::DType dtype, std::vector<int32_t> dims, Bytes bytes, ir::Quant quant = {});
  ir::TensorId ints(const std::vector<int32_t>& values, std::vector<int32_t> dims = {});
  // Bytes of a constant, 8 bits converted to `type`, with dimensions in the order of `perm`.
  Result<Bytes> stored(const Operand& operand, const std::vector<int32_t>& dims, const std::vector<int>& perm) const;
  void emit(ir::OpKind kind, ir::Attrs attrs, std::vector<ir::TensorId> from, ir::TensorId to);
  void emit(ir::OpKind kind, ir::Attrs attrs, std::vector<ir::TensorId> from, std::vector<ir::TensorId> to);
  // Emits a reshape to the dimensions of `to`.
  void reshape(ir::TensorId from, ir::TensorId to);
  // Emits an operation that rounds its result to `steps`. If the steps of `to` are much finer, the result could be off
  // by two of them: for a file it is then computed in float, else that is an error.
  Result<void> emit_rounded(ir::OpKind kind, ir::Attrs attrs, std::vector<ir::TensorId> from, const ir::Quant& steps,
                            ir::TensorId to);
  // Result tensor of an operation that keeps the quantization of `like`; requantize() then converts it to `to`.
  ir::TensorId before_requantize(ir::TensorId to, const ir::Quant& like);
  // An error if `sum`, in steps of `step`, cannot be rounded to an integer as the start of the unit's sums: if the
  // rounding error is more than half a step of the output, or if it may overflow.
  Result<void> check_sum(double sum, double step) const;
  void requantize(ir::TensorId from, ir::TensorId to);

 private:
  Result<void> lower();
  bool is_quantized(const Operand& operand) const {
    return model_.value(operand.value).is_8bit() && !operand.quant.empty();
  }
  // True if the operand may have any type of the file that is not quantized.
  bool may_be_plain(const Operand& operand) const { return whole_ != nullptr && operand.quant.empty(); }
  // Returns `done`; on an error removes all that was added since.
  Result<void> or_undone(Result<void> done, size_t ops, size_t tensors);
  Result<Layout> layout_of(int value) const;
  void add_ours(int value, ir::TensorId id);
  Result<void> check(size_t first_op);
  Result<ir::TensorId> find(int value, Layout layout);
  Result<ir::TensorId> convert(int value, Layout layout);
  Result<ir::Tensor> tensor_of(int value, const ir::Quant& quant, Layout layout) const;
  Result<Edge> edge(int value, Layout layout, ir::TensorId id) const;

  const Model& model_;
  const ir::DType type_;
  const WholeFile* whole_;
  const Unit* unit_ = nullptr;
  int index_ = -1;
  std::map<std::pair<int, Layout>, ir::TensorId> known_;
  std::map<int, std::vector<int32_t>> images_;  // the host's N, C, H, W of values in Layout::rows
  std::map<int, ir::Quant> quants_;             // of known values
};

// Rows of operations: ONNX's name, and the function that lowers it.
using Lower = Result<void> (*)(Lowering&);
struct LowerRow {
  std::string_view op;
  Lower lower;
  bool takes_activation = false;  // a following Relu or Clip is merged
};
std::span<const LowerRow> weighted_ops();  // ops_weights.cpp: convolutions, matrices, pools
std::span<const LowerRow> moving_ops();    // ops_moves.cpp: operations that only move values
std::span<const LowerRow> number_ops();    // ops_numbers.cpp: element by element, and over an axis

}  // namespace skillet::onnx
