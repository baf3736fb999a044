// Lowering: units as operations of an ir::Graph, with channels last where the host has them second. Weights and axes
// are folded; a transpose is made only where an operation reads an image as rows of numbers.
// Called a unit at a time by the execution provider and by the importer of files; ops_*.cpp have the rows. Must not
// know: hosts, chips.
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
  plain,          // as the host has it
  channels_last,  // dimension 1 behind all others
  rows,           // images as rows of numbers: the numbers of channels_last, in one dimension
};

// What crosses the border of a part: for the host [n][c][hw], for the graph [n][hw][c].
struct Edge {
  int value = kNone;
  ir::TensorId tensor = ir::kNoTensor;
  int64_t n = 1, c = 1, hw = 1;
};

struct LowerRow;

// Of a file there is no host for what no unit is: values may be of any type, and what quantizes is an operation too.
struct WholeFile {
  const Links& links;
  std::array<std::span<const LowerRow>, 2> rows;  // for nodes that are no units, before those that units have
  Result<void> (*check)(const ir::Graph& alone);  // whether an operation can be run where no NPU takes it
};

class Lowering {
 public:
  // All values of 8 bits become `type`.
  Lowering(const Model& model, ir::DType type, const WholeFile* whole = nullptr)
      : model_(model), type_(type), whole_(whole) {}

  // All of the unit, or, with an error, nothing. `index`: Op::source_index.
  Result<void> add(const Unit& unit, int index);
  // The host's value in the layout that it is in, as an output of the graph.
  Result<void> add_output(int value);

  // Of a whole file: an input, with the quantization that its readers say; a QuantizeLinear node; and what `add` could
  // not, as an opaque operation, whose outputs have the quantization that their readers say. Nothing on an error.
  Result<void> add_input(int value, const ir::Quant& quant);
  Result<void> add_quantization(int node);
  Result<void> add_opaque(int node, std::span<const ir::Quant> quants);
  // The value as the file has it: its type, its order of dimensions.
  Result<ir::TensorId> as_in_file(int value);
  ir::TensorId copy_of(ir::TensorId id);

  ir::Graph graph;
  std::vector<Edge> inputs, outputs;  // as the graph has them

  // For ops_*.cpp: the unit at hand, and its operands.
  const Model& model() const { return model_; }
  const Unit& unit() const { return *unit_; }
  const Node& node() const { return model_.node(unit_->node); }
  ir::DType type() const { return type_; }
  int least() const { return type_ == ir::DType::int8 ? -128 : 0; }
  const Operand* input(size_t i) const;
  Result<std::vector<int32_t>> dims(int value) const;
  Result<std::vector<int32_t>> input_dims(size_t i) const;
  // Input `i` as a tensor: what is computed in that layout, or a constant of 8 bits (`rank`: with ones in front).
  Result<ir::TensorId> read(size_t i, Layout layout, size_t rank = 0);
  // Integers of a constant input; none: it is left out.
  Result<std::optional<std::vector<int64_t>>> list(size_t i) const;
  // The layout that a value of this rank has unless an operation needs another.
  static Layout usual(size_t rank) { return rank >= 3 ? Layout::channels_last : Layout::plain; }
  // Plain where all inputs that are computed are only that; else the usual one.
  Layout common_layout(size_t rank) const;
  // An axis of the host's, in that layout.
  static int axis_in(Layout layout, int64_t axis, size_t rank);

  // Output `i`, with the quantization that the unit says.
  Result<ir::TensorId> write(size_t i, Layout layout);
  // The rows that an image is in, for what is flattened.
  void set_rows(int value, std::vector<int32_t> image) { images_[value] = std::move(image); }
  std::optional<std::vector<int32_t>> image_of(int value) const;
  bool has(int value, Layout layout) const { return known_.contains({value, layout}); }

  ir::Quant quant(const Operand& operand) const;                       // of `type`
  ir::TensorId temporary(std::vector<int32_t> dims, ir::Quant quant);  // without a quantization of float32
  ir::TensorId temporary_of(ir::DType dtype, std::vector<int32_t> dims, ir::Quant quant = {});
  bool is_float(ir::TensorId id) const { return graph.tensor(id).dtype == ir::DType::float32; }
  ir::TensorId constant(ir::DType dtype, std::vector<int32_t> dims, Bytes bytes, ir::Quant quant = {});
  ir::TensorId ints(const std::vector<int32_t>& values, std::vector<int32_t> dims = {});
  // A constant's bytes, those of 8 bits as `type`, its dimensions in the order of `perm`.
  Result<Bytes> stored(const Operand& operand, const std::vector<int32_t>& dims, const std::vector<int>& perm) const;
  void emit(ir::OpKind kind, ir::Attrs attrs, std::vector<ir::TensorId> from, ir::TensorId to);
  void emit(ir::OpKind kind, ir::Attrs attrs, std::vector<ir::TensorId> from, std::vector<ir::TensorId> to);
  // By an operation that rounds its result to `steps`. Where those of `to` are much finer, it could be two of them
  // off: of a file it is computed in float, else that is an error.
  Result<void> emit_rounded(ir::OpKind kind, ir::Attrs attrs, std::vector<ir::TensorId> from, const ir::Quant& steps,
                            ir::TensorId to);
  // A result of an operation that keeps the quantization of `like`, where the output may have another.
  ir::TensorId before_requantize(ir::TensorId to, const ir::Quant& like);
  // Whether `sum`, in steps of the unit's sums, may start them as a whole number: what it is rounded by is less than
  // half a step of the output, and nothing overflows.
  Result<void> check_sum(double sum, double step) const;
  void requantize(ir::TensorId from, ir::TensorId to);

 private:
  Result<void> lower();
  bool is_quantized(const Operand& operand) const {
    return model_.value(operand.value).is_8bit() && !operand.quant.empty();
  }
  // Any type that the file has, but no wider quantized one.
  bool may_be_plain(const Operand& operand) const { return whole_ != nullptr && operand.quant.empty(); }
  // `done`; what was added since is gone where it is an error.
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
  std::map<int, ir::Quant> quants_;             // of values that are known
};

// Rows of operations: the name that ONNX has, and what makes it.
using Lower = Result<void> (*)(Lowering&);
struct LowerRow {
  std::string_view op;
  Lower lower;
  bool takes_activation = false;  // a Relu or Clip behind it is part of it
};
std::span<const LowerRow> weighted_ops();  // ops_weights.cpp: convolutions, matrices, pools
std::span<const LowerRow> moving_ops();    // ops_moves.cpp: what only moves values
std::span<const LowerRow> number_ops();    // ops_numbers.cpp: element by element, and over an axis

}  // namespace skillet::onnx
