#include "frontend/onnx/lowering.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "frontend/host/one_op.h"

namespace skillet::onnx {
namespace {

using ir::OpKind;
using ir::TensorId;

constexpr int64_t kElemsMax = 1 << 30;

int64_t product(std::span<const int32_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

std::vector<int32_t> in_layout(std::vector<int32_t> values, Layout layout) {
  if (layout == Layout::channels_last && values.size() >= 3)
    std::rotate(values.begin() + 1, values.begin() + 2, values.end());
  return values;
}

const Operand* Lowering::input(size_t i) const {
  return i < unit_->inputs.size() && unit_->inputs[i].value != kNone ? &unit_->inputs[i] : nullptr;
}

Result<std::vector<int32_t>> Lowering::dims(int value) const {
  const Value& one = model_.value(value);
  const auto problem = [&](std::string_view what) {
    return error(ErrorCode::unsupported, "'{}' {}", printable(one.name), what);
  };
  if (!one.dims) return problem("has a shape that is not known before the run");
  std::vector<int32_t> out;
  int64_t elems = 1;
  for (const int64_t dim : *one.dims) {
    if (dim < 0 && whole_ != nullptr) return problem("has a size that is not known before the run");
    if (dim < 0)
      return problem("has a size that is not known before the run (fix it with add_free_dimension_override_by_name)");
    if (dim == 0) return problem("has no elements");
    elems = dim > kElemsMax ? kElemsMax + 1 : elems * dim;
    if (elems > kElemsMax) return problem("has more elements than a part allows");
    out.push_back(static_cast<int32_t>(dim));
  }
  return out;
}

Result<std::vector<int32_t>> Lowering::input_dims(size_t i) const {
  if (input(i) == nullptr) return error(ErrorCode::malformed, "input {} is missing", i);
  return dims(unit_->inputs[i].value);
}

Result<std::optional<std::vector<int64_t>>> Lowering::list(size_t i) const {
  if (input(i) == nullptr) return std::optional<std::vector<int64_t>>();
  auto values = integers(model_.value(unit_->inputs[i].value));
  if (!values)
    return error(ErrorCode::unsupported, "input {} '{}' is not a constant of integers", i,
                 printable(model_.value(unit_->inputs[i].value).name));
  return std::optional(std::move(*values));
}

int Lowering::axis_in(Layout layout, int64_t axis, size_t rank) {
  const auto all = static_cast<int64_t>(rank);
  if (axis < 0) axis += all;
  if (layout != Layout::channels_last || rank < 3 || axis <= 0) return static_cast<int>(axis);
  return static_cast<int>(axis == 1 ? all - 1 : axis - 1);
}

Layout Lowering::common_layout(size_t rank) const {
  bool is_known = false;
  for (const Operand& one : unit_->inputs) {
    if (one.value == kNone || model_.value(one.value).is_constant) continue;
    if (!has(one.value, Layout::plain) || has(one.value, Layout::channels_last)) return usual(rank);
    is_known = true;
  }
  return is_known ? Layout::plain : usual(rank);
}

ir::Quant Lowering::quant(const Operand& operand) const {
  ir::Quant out = operand.quant;
  const ir::DType from = model_.value(operand.value).dtype;
  const int shift = from == type_ ? 0 : type_ == ir::DType::int8 ? -128 : 128;
  for (int32_t& zero : out.zero_points) zero += shift;
  return out;
}

Result<ir::Tensor> Lowering::tensor_of(int value, const ir::Quant& quant, Layout layout) const {
  const Value& from = model_.value(value);
  ir::Tensor tensor{.name = printable(from.name), .dtype = from.dtype, .quant = quant, .owner = {}};
  if (from.is_8bit() && !quant.empty()) tensor.dtype = type_;
  SK_TRY_ASSIGN(tensor.shape.dims, dims(value));
  if (layout == Layout::rows) {
    const auto image = image_of(value);
    if (!image) return error(ErrorCode::internal, "'{}' is not an image", tensor.name);
  } else {
    tensor.shape.dims = in_layout(std::move(tensor.shape.dims), layout);
  }
  return tensor;
}

std::optional<std::vector<int32_t>> Lowering::image_of(int value) const {
  const auto found = images_.find(value);
  return found == images_.end() ? std::nullopt : std::optional(found->second);
}

ir::TensorId Lowering::temporary(std::vector<int32_t> dims, ir::Quant quant) {
  const ir::DType dtype = quant.empty() ? ir::DType::float32 : type_;
  return temporary_of(dtype, std::move(dims), std::move(quant));
}

ir::TensorId Lowering::temporary_of(ir::DType dtype, std::vector<int32_t> dims, ir::Quant quant) {
  ir::Tensor tensor{
      .name = unit_ == nullptr ? "" : printable(node().op), .dtype = dtype, .quant = std::move(quant), .owner = {}};
  tensor.shape.dims = std::move(dims);
  return graph.add_tensor(std::move(tensor));
}

ir::TensorId Lowering::constant(ir::DType dtype, std::vector<int32_t> dims, Bytes bytes, ir::Quant quant) {
  const std::string name = unit_ == nullptr ? "" : printable(node().name);
  ir::Tensor tensor{.name = name, .dtype = dtype, .quant = std::move(quant), .owner = {}};
  tensor.shape.dims = std::move(dims);
  ir::set_constant(tensor, std::move(bytes));
  return graph.add_tensor(std::move(tensor));
}

ir::TensorId Lowering::ints(const std::vector<int32_t>& values, std::vector<int32_t> dims) {
  Bytes bytes(values.size() * 4);
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  if (dims.empty()) dims = {static_cast<int32_t>(values.size())};
  return constant(ir::DType::int32, std::move(dims), std::move(bytes));
}

Result<Bytes> Lowering::stored(const Operand& operand, const std::vector<int32_t>& dims,
                               const std::vector<int>& perm) const {
  const Value& value = model_.value(operand.value);
  const bool fits = is_quantized(operand) || may_be_plain(operand);
  const auto elem = static_cast<size_t>(ir::dtype_bytes(value.dtype));
  if (!value.is_constant || !fits || elem == 0)
    return error(ErrorCode::unsupported, "'{}' is not a quantized 8-bit constant", printable(value.name));
  if (value.data.size() != static_cast<size_t>(product(dims)) * elem)
    return error(ErrorCode::malformed, "'{}' has {} bytes, not {}", printable(value.name), value.data.size(),
                 product(dims) * static_cast<int64_t>(elem));
  Bytes out = permuted(value, {dims.begin(), dims.end()}, {perm.begin(), perm.end()});
  if (is_quantized(operand) && value.dtype != type_)
    for (uint8_t& byte : out) byte ^= 0x80;
  return out;
}

void Lowering::emit(OpKind kind, ir::Attrs attrs, std::vector<TensorId> from, TensorId to) {
  emit(kind, std::move(attrs), std::move(from), std::vector{to});
}

void Lowering::emit(OpKind kind, ir::Attrs attrs, std::vector<TensorId> from, std::vector<TensorId> to) {
  ir::Op op{.kind = kind, .attrs = std::move(attrs), .inputs = std::move(from), .outputs = std::move(to)};
  op.source_index = index_;
  // Tables and means have many names in files.
  if (unit_ != nullptr && (kind == OpKind::byte_table || kind == OpKind::mean)) op.opaque_name = printable(unit_->op);
  graph.add_op(std::move(op));
}

void Lowering::reshape(TensorId from, TensorId to) {
  const std::vector<int32_t> dims = graph.tensor(to).shape.dims;
  emit(OpKind::reshape, ir::ReshapeAttrs{dims}, {from, ints(dims)}, to);
}

TensorId Lowering::before_requantize(TensorId to, const ir::Quant& like) {
  return graph.tensor(to).quant == like ? to : temporary(graph.tensor(to).shape.dims, like);
}

void Lowering::requantize(TensorId from, TensorId to) {
  if (from != to) emit(OpKind::quantize, ir::NoAttrs{}, {from}, to);
}

Result<void> Lowering::emit_rounded(OpKind kind, ir::Attrs attrs, std::vector<TensorId> from, const ir::Quant& steps,
                                    TensorId to) {
  const float ratio = is_float(to) ? 1 : steps.scale() / graph.tensor(to).quant.scale();
  // Limit: half a coarse step, half a fine one, and up to a quarter for the error of a chip's scale of few bits. A
  // larger image also has weights, which are rounded.
  const bool is_finer = kind == OpKind::resize_bilinear ? ratio > 1 : ratio >= 1.5F;
  if (is_finer && whole_ == nullptr)
    return error(ErrorCode::unsupported, "its result would be rounded to {:g} before it is rounded to {:g}",
                 steps.scale(), graph.tensor(to).quant.scale());
  const TensorId result = is_finer ? temporary(graph.tensor(to).shape.dims, {}) : before_requantize(to, steps);
  if (is_finer && !is_float(from[0])) {
    const TensorId plain = temporary(graph.tensor(from[0]).shape.dims, {});
    emit(OpKind::dequantize, ir::NoAttrs{}, {from[0]}, plain);
    from[0] = plain;
  }
  emit(kind, std::move(attrs), std::move(from), result);
  requantize(result, to);
  return {};
}

Result<TensorId> Lowering::read(size_t i, Layout layout, size_t rank) {
  const Operand* operand = input(i);
  if (operand == nullptr) return error(ErrorCode::malformed, "input {} is missing", i);
  const Value& value = model_.value(operand->value);
  if (!is_quantized(*operand) && !may_be_plain(*operand))
    return error(ErrorCode::unsupported, "'{}' is {}; parts for the NPU have 8 bits and scales", printable(value.name),
                 operand->quant.empty() ? "not quantized" : ir::dtype_name(value.dtype));
  if (operand->quant.per_channel())
    return error(ErrorCode::unsupported, "'{}' has a scale per channel", printable(value.name));
  if (!value.is_constant) {
    SK_TRY(dims(operand->value));
    quants_.try_emplace(operand->value, quant(*operand));
    SK_TRY_ASSIGN(const TensorId id, find(operand->value, layout));
    const ir::Quant& made = graph.tensor(id).quant;
    if (!is_quantized(*operand) && (graph.tensor(id).dtype != value.dtype || !made.empty()))
      return error(ErrorCode::unsupported, "'{}' is read without its scale", printable(value.name));
    if (is_quantized(*operand) && made != quant(*operand))
      return error(ErrorCode::unsupported, "'{}' is read with other scales than it is written with",
                   printable(value.name));
    return id;
  }
  SK_TRY_ASSIGN(std::vector<int32_t> shape, dims(operand->value));
  if (shape.size() < rank) shape.insert(shape.begin(), rank - shape.size(), 1);
  std::vector<int> perm(shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  if (layout == Layout::channels_last && perm.size() >= 3) std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  SK_TRY_ASSIGN(Bytes bytes, stored(*operand, shape, perm));
  const ir::DType dtype = is_quantized(*operand) ? type_ : value.dtype;
  return constant(dtype, in_layout(shape, layout), std::move(bytes), quant(*operand));
}

Result<TensorId> Lowering::write(size_t i, Layout layout) {
  if (i >= unit_->outputs.size()) return error(ErrorCode::malformed, "output {} is missing", i);
  const Operand& operand = unit_->outputs[i];
  const Value& value = model_.value(operand.value);
  if (!is_quantized(operand) && !may_be_plain(operand))
    return error(ErrorCode::unsupported, "its output '{}' is {}; parts for the NPU have 8 bits and scales",
                 printable(value.name), value.is_8bit() ? "without a scale" : ir::dtype_name(value.dtype));
  SK_TRY_ASSIGN(ir::Tensor tensor, tensor_of(operand.value, quant(operand), layout));
  quants_.try_emplace(operand.value, tensor.quant);
  const TensorId id = graph.add_tensor(std::move(tensor));
  known_[{operand.value, layout}] = id;
  return id;
}

// A value that no operation here computes becomes an input, once for each layout in which it is read: the host's copy
// transposes it.
Result<TensorId> Lowering::find(int value, Layout layout) {
  if (const auto known = known_.find({value, layout}); known != known_.end()) return known->second;
  for (const Layout other : {Layout::plain, Layout::channels_last, Layout::rows}) {
    const auto known = known_.find({value, other});
    if (known == known_.end()) continue;
    const bool is_input = std::ranges::count(inputs, known->second, &Edge::tensor) != 0;
    if (!is_input || whole_ != nullptr) return convert(value, layout);
  }
  if (whole_ != nullptr) {
    const int producer = whole_->links.producer[static_cast<size_t>(value)];
    if (producer == kNone || !is_dequantize(model_.node(producer)))
      return error(ErrorCode::unsupported, "'{}' is not computed in this part", printable(model_.value(value).name));
    SK_TRY(add_quantization(producer));
    return find(value, layout);
  }
  SK_TRY_ASSIGN(ir::Tensor tensor, tensor_of(value, quants_.at(value), layout));
  const TensorId id = graph.add_tensor(std::move(tensor));
  SK_TRY_INTO(inputs.emplace_back(), edge(value, layout, id));
  known_[{value, layout}] = id;
  return id;
}

// Rows become an image first. An image of one channel or one pixel only needs a reshape.
Result<TensorId> Lowering::convert(int value, Layout layout) {
  SK_TRY_ASSIGN(const std::vector<int32_t> host, dims(value));
  const bool was_last = known_.contains({value, Layout::channels_last});
  const bool was_rows = !was_last && !known_.contains({value, Layout::plain});
  if (layout == Layout::rows) return error(ErrorCode::internal, "'{}' is not an image", model_.value(value).name);
  TensorId from = known_.at({value, was_rows ? Layout::rows : was_last ? Layout::channels_last : Layout::plain});
  const ir::Quant quant = graph.tensor(from).quant;
  const ir::DType dtype = graph.tensor(from).dtype;
  const auto reshape_to = [&](std::vector<int32_t> to) {
    const TensorId id = temporary_of(dtype, std::move(to), quant);
    reshape(from, id);
    from = id;
  };
  const std::vector<int32_t> image = was_rows ? images_.at(value) : host;
  if (image.size() < 3)
    return error(ErrorCode::unsupported, "'{}' has {} dimensions and is read as an image",
                 printable(model_.value(value).name), image.size());
  if (was_rows) reshape_to(in_layout(image, Layout::channels_last));
  std::vector<int32_t> perm(image.size());
  std::iota(perm.begin(), perm.end(), 0);
  if (was_last || was_rows)
    std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  else
    std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  const std::vector<int32_t> now = was_last || was_rows ? image : in_layout(image, Layout::channels_last);
  if (image[1] == 1 || product(std::span(image).subspan(2)) == 1) {
    reshape_to(now);
  } else {
    const TensorId id = temporary_of(dtype, now, quant);
    emit(OpKind::transpose, ir::NoAttrs{}, {from, ints(perm)}, id);
    from = id;
  }
  if (was_rows) {
    reshape_to(host);
    if (layout == Layout::channels_last)
      return error(ErrorCode::unsupported, "'{}' is flattened and read as an image", model_.value(value).name);
  }
  known_[{value, layout}] = from;
  return from;
}

Result<void> Lowering::check_sum(double sum, double step) const {
  constexpr double kMost = 1 << 30;  // leaves room for as much again
  if (!(std::abs(sum) <= kMost))
    return error(ErrorCode::unsupported, "it adds {} steps of its sums, more than 32 bits can hold", sum);
  const ir::Quant& out = unit_->outputs.at(0).quant;
  if (out.scales.size() == 1 && std::abs(sum - std::nearbyint(sum)) * step > out.scale() / 2)
    return error(ErrorCode::unsupported,
                 "it adds {}, which is not a multiple of its sums' step, and that is coarser than its output",
                 sum * step);
  return {};
}

Result<Edge> Lowering::edge(int value, Layout layout, TensorId id) const {
  SK_TRY_ASSIGN(std::vector<int32_t> all, dims(value));
  if (layout == Layout::rows) all = images_.at(value);
  Edge out{.value = value, .tensor = id};
  if (layout == Layout::plain || all.size() < 3) {
    out.n = product(all);
    return out;
  }
  out.n = all[0];
  out.c = all[1];
  out.hw = product(std::span(all).subspan(2));
  return out;
}

Result<void> Lowering::add_output(int value) {
  for (const Layout layout : {Layout::plain, Layout::channels_last, Layout::rows}) {
    const auto known = known_.find({value, layout});
    if (known == known_.end()) continue;
    SK_TRY_INTO(outputs.emplace_back(), edge(value, layout, known->second));
    return {};
  }
  return error(ErrorCode::internal, "'{}' is not computed in this part", model_.value(value).name);
}

Result<void> Lowering::lower() {
  const bool is_plain = std::ranges::all_of(unit_->outputs, [&](const Operand& one) { return may_be_plain(one); });
  std::vector<std::span<const LowerRow>> all = {weighted_ops(), moving_ops(), number_ops()};
  if (is_plain) all.insert(all.begin(), whole_->rows.begin(), whole_->rows.end());
  for (const auto rows : all) {
    const auto row = std::ranges::find(rows, std::string_view(unit_->op), &LowerRow::op);
    if (row == rows.end()) continue;
    if (!row->takes_activation && unit_->activation != ir::Activation::none)
      return error(ErrorCode::unsupported, "a Relu or Clip follows it");
    return row->lower(*this);
  }
  return error(ErrorCode::unsupported, "operation {} is not supported", printable(unit_->op));
}

Result<void> Lowering::check(size_t first_op) {
  for (size_t i = first_op; i < graph.ops.size(); ++i) {
    const ir::Graph alone = host::only(graph, graph.ops[i]);
    SK_TRY(ir::verify(alone));
    if (whole_ != nullptr) SK_TRY(whole_->check(alone));
  }
  return {};
}

Result<void> Lowering::add(const Unit& unit, int index) {
  unit_ = &unit;
  index_ = index;
  const size_t ops = graph.ops.size(), tensors = graph.tensors.size(), edges = inputs.size();
  Result<void> done = lower();
  if (done.ok()) done = check(ops);
  unit_ = nullptr;  // its pointer is borrowed
  if (!done.ok()) {
    inputs.resize(edges);
    for (const Operand& out : unit.outputs) images_.erase(out.value);
  }
  return or_undone(std::move(done), ops, tensors);
}

Result<void> Lowering::or_undone(Result<void> done, size_t ops, size_t tensors) {
  if (done.ok()) return done;
  graph.ops.resize(ops);
  graph.tensors.resize(tensors);
  std::erase_if(known_, [&](const auto& one) { return static_cast<size_t>(one.second) >= tensors; });
  return done;
}

}  // namespace skillet::onnx
