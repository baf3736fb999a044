#include "graph/passes/rewrite.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/int_math.h"
#include "base/squares.h"
#include "graph/ir/rules.h"
#include "graph/ref/all_bytes.h"

namespace skillet::passes {
namespace {

bool has_weights(const ir::Op& op) {
  return op.kind == ir::OpKind::conv_2d || op.kind == ir::OpKind::depthwise_conv_2d ||
         op.kind == ir::OpKind::fully_connected;
}

std::vector<int32_t> sources_of(const ir::Graph& graph, const std::vector<ir::OpId>& ops, int32_t but = -1) {
  std::vector<int32_t> out;
  for (const ir::OpId id : ops) {
    const int32_t source = graph.op(id).source_index;
    if (source != but && std::ranges::find(out, source) == out.end()) out.push_back(source);
  }
  return out;
}

}  // namespace

Rewriter::Rewriter(ir::Graph& graph, const Target& target, std::string_view pass)
    : graph_(graph), target_(target), pass_(pass), tensors_(graph.tensors.size()) {
  if (target.rewrites != nullptr) refresh();
}

void Rewriter::refresh() {
  tensors_ = graph_.tensors.size();
  producers_ = ir::producers(graph_);
  consumers_ = ir::consumers(graph_);
}

npu::Support Rewriter::support(ir::OpId id) {
  const ir::Op& op = graph_.op(id);
  ir::Quant* weights = nullptr;
  ir::Quant before;
  if (has_weights(op) && op.input(1) != ir::kNoTensor && graph_.tensor(op.inputs[1]).quant.per_channel() &&
      target_.driver->weight_scales_max(target_.chip, graph_, id) != SIZE_MAX) {
    weights = &graph_.tensor(op.inputs[1]).quant;
    before = *weights;
    weights->scales = {*std::ranges::max_element(before.scales)};
    weights->zero_points.resize(1);
  }
  npu::Support support = support_of(graph_, target_, id);
  if (weights != nullptr) *weights = std::move(before);
  return support;
}

Level Rewriter::level(ir::OpId id) { return level_of(support(id)); }

Level Rewriter::level_of(const npu::Support& support) const {
  if (!support.ok || (support.rests_on_assumptions() && !target_.takes_unproven)) return Level::refused;
  return support.unproven ? Level::unproven : Level::proven;
}

ir::OpId Rewriter::only_producer(ir::TensorId tensor) const {
  if (tensor == ir::kNoTensor || only_reader(tensor) < 0) return -1;
  return producers_[static_cast<size_t>(tensor)];
}

ir::OpId Rewriter::only_reader(ir::TensorId tensor) const {
  const auto& readers = consumers_[static_cast<size_t>(tensor)];
  if (readers.size() != 1 || is_output(tensor) || graph_.tensor(tensor).is_variable) return -1;
  return std::ranges::count(graph_.op(readers[0]).inputs, tensor) == 1 ? readers[0] : -1;
}

bool Rewriter::has_neighbour(ir::OpId op, ir::TensorId from, ir::TensorId to) {
  std::vector<ir::OpId> neighbours = readers(to);
  if (producer(from) >= 0) neighbours.push_back(producer(from));
  if (std::ranges::any_of(neighbours, [&](ir::OpId one) { return level(one) != Level::refused; })) return true;
  for (const ir::OpId one : neighbours) write_down(support(one), graph_.op(one), {graph_.op(op).source_index});
  return false;
}

bool Rewriter::is_output(ir::TensorId tensor) const {
  return std::ranges::find(graph_.outputs, tensor) != graph_.outputs.end();
}

ir::TensorId Rewriter::add(ir::Tensor tensor) { return graph_.add_tensor(std::move(tensor)); }

ir::TensorId Rewriter::add_like(ir::Tensor one, std::string_view suffix, ir::Shape shape) {
  one.name += suffix;
  one.shape = std::move(shape);
  return add(std::move(one));
}

ir::TensorId Rewriter::add_constant(std::string name, ir::DType dtype, ir::Shape shape, Bytes bytes, ir::Quant quant) {
  ir::Tensor tensor{
      .name = std::move(name), .dtype = dtype, .shape = std::move(shape), .quant = std::move(quant), .owner = {}};
  constexpr size_t kWorthSharing = 1024;
  if (bytes.size() < kWorthSharing) {
    ir::set_constant(tensor, std::move(bytes));
    return add(std::move(tensor));
  }
  const uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  const auto [first, last] = made_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    auto owner = at->second.first.lock();
    if (owner == nullptr || !std::ranges::equal(at->second.second, bytes)) continue;
    tensor.data = at->second.second;
    tensor.owner = std::move(owner);
    return add(std::move(tensor));
  }
  ir::set_constant(tensor, std::move(bytes));
  made_.emplace(hash, std::pair(std::weak_ptr(tensor.owner), tensor.data));
  return add(std::move(tensor));
}

bool Rewriter::adds_sound_tensors() const { return ir::check_tensors(graph_, tensors_).ok(); }

bool Rewriter::may_keep_constants() const {
  const bool added = std::any_of(graph_.tensors.begin() + static_cast<std::ptrdiff_t>(tensors_), graph_.tensors.end(),
                                 [](const ir::Tensor& tensor) { return tensor.is_constant(); });
  return !added || constant_bytes(graph_) <= target_.constants_max;
}

ir::TensorId Rewriter::add_ints(std::string name, const std::vector<int32_t>& values, ir::Shape shape,
                                ir::Quant quant) {
  Bytes bytes(values.size() * sizeof(int32_t));
  for (size_t i = 0; i < values.size(); ++i) store_le(bytes.data() + i * sizeof(int32_t), values[i]);
  if (shape.rank() == 0) shape = {static_cast<int32_t>(values.size())};
  return add_constant(std::move(name), ir::DType::int32, std::move(shape), std::move(bytes), std::move(quant));
}

ir::Op Rewriter::reshape(ir::TensorId from, ir::TensorId to) {
  const ir::Tensor& result = tensor(to);
  ir::Op op{.kind = ir::OpKind::reshape, .attrs = ir::ReshapeAttrs{result.shape.dims}};
  const ir::TensorId shape = add_ints(result.name + "/shape", std::vector<int32_t>(result.shape.dims));
  op.inputs = {from, shape};
  op.outputs = {to};
  return op;
}

ir::Op Rewriter::transpose(ir::TensorId from, ir::TensorId to, const std::vector<int32_t>& order) {
  const ir::TensorId by = add_ints(tensor(to).name + "/order", order);
  return {.kind = ir::OpKind::transpose, .inputs = {from, by}, .outputs = {to}};
}

bool Rewriter::same_bytes(const std::vector<ir::Op>& one, const std::vector<ir::Op>& other, ir::TensorId from,
                          ir::TensorId to) const {
  if (!adds_sound_tensors()) return false;
  const auto wanted = ref::of_all_bytes(graph_, one, from, to);
  const auto got = wanted.ok() ? ref::of_all_bytes(graph_, other, from, to) : wanted;
  return got.ok() && *wanted == *got;
}

bool Rewriter::keeps_bytes(const std::vector<ir::Op>& ops, ir::TensorId from, ir::TensorId to) const {
  const auto got = ref::of_all_bytes(graph_, ops, from, to);
  if (!got.ok()) return false;
  const size_t channels = got->size() / 256;
  for (size_t i = 0; i < got->size(); ++i) {
    if ((*got)[i] != i / channels) return false;
  }
  return true;
}

bool Rewriter::same_pairs(const std::vector<ir::Op>& one, const std::vector<ir::Op>& other, ir::TensorId a,
                          ir::TensorId b, ir::TensorId to) const {
  if (!adds_sound_tensors()) return false;
  const auto wanted = ref::of_all_pairs(graph_, one, a, b, to);
  const auto got = wanted.ok() ? ref::of_all_pairs(graph_, other, a, b, to) : wanted;
  return got.ok() && *wanted == *got;
}

void Rewriter::drop() { graph_.tensors.resize(tensors_); }

void Rewriter::write_down(const npu::Support& support, const ir::Op& op, const std::vector<int32_t>& sources) {
  if (support.seen_wrong && target_.tried != nullptr)
    target_.tried->push_back({sources, fmt::format("{}: {}", ir::op_name(op), support.reason), true});
}

void Rewriter::forget(const std::vector<int32_t>& sources) {
  if (target_.tried == nullptr) return;
  std::erase_if(*target_.tried, [&](const Tried& one) {
    return one.seen_wrong && std::ranges::find_first_of(one.sources, sources) != one.sources.end();
  });
}

bool Rewriter::helps(const Replacement& replacement, const std::vector<int32_t>& sources, size_t first, Level before) {
  const size_t count = replacement.by.size();
  if (!ir::check_ops(graph_, first, count).ok()) return false;
  if (std::ranges::any_of(replacement.by, [&](const ir::Op& op) { return ir::has_empty_operand(graph_, op); }))
    return false;
  Level after = Level::proven;
  for (size_t i = first + replacement.on_cpu; i < first + count - replacement.then_cpu; ++i) {
    const npu::Support one = support(static_cast<ir::OpId>(i));
    after = std::min(after, level_of(one));
    write_down(one, graph_.ops[i], sources);
  }
  return replacement.must_help ? after > before : after >= before;
}

bool Rewriter::replace(Replacement replacement) {
  const auto keeps_values = [&](ir::OpId id) { return touches_variable(graph_, graph_.op(id)); };
  const auto is_kept = [&](ir::OpId id) { return target_.kept.contains(graph_.op(id).source_index); };
  Level before = Level::proven;
  for (const ir::OpId id : replacement.ops) before = std::min(before, level(id));
  if (std::ranges::any_of(replacement.ops, keeps_values) || !may_keep_constants() || !adds_sound_tensors() ||
      (replacement.must_help && (before == Level::proven || std::ranges::any_of(replacement.ops, is_kept)))) {
    drop();
    return false;
  }
  const std::vector<ir::Op> old = graph_.ops;
  const int32_t source = graph_.op(replacement.kept).source_index;
  const std::vector<int32_t> sources = sources_of(graph_, replacement.ops);
  const auto first = static_cast<size_t>(replacement.ops.back());
  graph_.ops.erase(graph_.ops.begin() + replacement.ops.back());
  for (ir::Op& op : replacement.by) op.source_index = source;
  graph_.ops.insert(graph_.ops.begin() + replacement.ops.back(), replacement.by.begin(), replacement.by.end());
  if (!helps(replacement, sources, first, before)) {
    graph_.ops = old;
    drop();
    return false;
  }
  if (replacement.must_help) forget(sources);
  std::vector<int32_t> absorbed = sources;
  std::erase(absorbed, source);
  for (size_t i = replacement.ops.size() - 1; i-- > 0;) graph_.ops.erase(graph_.ops.begin() + replacement.ops[i]);
  if (replacement.off != 0) replacement.text += ", up to 1 step off";
  target_.rewrites->push_back({std::string(pass_), source, std::move(absorbed), std::move(replacement.text),
                               replacement.off, replacement.must_help});
  at_ = replacement.ops.back() - std::ssize(replacement.ops);  // continues with the new ops
  refresh();
  return true;
}

bool Rewriter::bypass(const std::vector<ir::OpId>& ops, ir::TensorId instead, std::string text) {
  const ir::TensorId result = graph_.op(ops.back()).outputs[0];
  const auto& readers = consumers_[static_cast<size_t>(result)];
  const auto keeps_values = [&](ir::OpId id) { return touches_variable(graph_, graph_.op(id)); };
  if (is_output(result) || readers.empty() || std::ranges::any_of(ops, keeps_values)) return false;
  const std::vector<ir::Op> old = graph_.ops;
  for (const ir::OpId reader : readers)
    std::ranges::replace(graph_.ops[static_cast<size_t>(reader)].inputs, result, instead);
  const auto is_sound = [&](ir::OpId id) { return ir::check_ops(graph_, static_cast<size_t>(id), 1).ok(); };
  if (!std::ranges::all_of(readers, is_sound)) {
    graph_.ops = old;
    return false;
  }
  const int32_t source = graph_.op(readers[0]).source_index;
  target_.rewrites->push_back({std::string(pass_), source, sources_of(graph_, ops, source), std::move(text)});
  for (size_t i = ops.size(); i-- > 0;) graph_.ops.erase(graph_.ops.begin() + ops[i]);
  at_ = ops.back() - std::ssize(ops);
  refresh();
  return true;
}

bool same_meaning(const ir::Tensor& a, const ir::Tensor& b) { return a.dtype == b.dtype && a.quant == b.quant; }

std::optional<std::vector<int32_t>> transpose_order(const Rewriter& rewriter, const ir::Op& op) {
  if (op.kind != ir::OpKind::transpose) return std::nullopt;
  const ir::Tensor& order = rewriter.tensor(op.inputs[1]);
  if (!order.is_constant() || order.dtype != ir::DType::int32 || rewriter.tensor(op.inputs[0]).is_variable)
    return std::nullopt;
  std::vector<int32_t> out = order.values<int32_t>();
  for (int32_t& axis : out) axis += axis < 0 ? static_cast<int32_t>(out.size()) : 0;
  return out;
}

bool keeps_order(const ir::Shape& shape, const std::vector<int32_t>& order) {
  int32_t last = -1;
  for (const int32_t from : order) {
    if (shape[from] == 1) continue;
    if (from < last) return false;
    last = from;
  }
  return true;
}

bool is_computed_byte(const ir::Tensor& tensor) {
  return ir::is_8bit(tensor.dtype) && !tensor.is_constant() && !tensor.is_variable && tensor.quant.scales.size() == 1;
}

SamePads same_pads(int32_t size, int32_t kernel, int32_t stride, int32_t dilation) {
  SamePads out{.outputs = static_cast<int32_t>(ceil_div(int64_t{size}, stride))};
  const int64_t covered = int64_t{out.outputs - 1} * stride + int64_t{kernel - 1} * dilation + 1;
  const auto total = static_cast<int32_t>(std::max<int64_t>(covered - size, 0));
  out.before = total / 2;
  out.after = total - out.before;
  return out;
}

ir::Shape as_image(int32_t pixels, int32_t channels) {
  const auto side = square_root(pixels);
  if (!side) return {1, pixels, 1, channels};
  return {1, static_cast<int32_t>(*side), static_cast<int32_t>(*side), channels};
}

double conv_multiplier(const ir::Tensor& input, float filter_scale, const ir::Tensor& output) {
  const float scale = input.quant.scale();
  const double product = input.dtype == ir::DType::uint8
                             ? static_cast<double>(scale * filter_scale)
                             : static_cast<double>(scale) * static_cast<double>(filter_scale);
  return product / static_cast<double>(output.quant.scale());
}

ir::Quant repeated(ir::Quant quant, int32_t times) {
  const auto repeat = [times](auto& values) {
    if (values.size() <= 1) return;
    const auto once = values;
    for (int32_t i = 1; i < times; ++i) values.insert(values.end(), once.begin(), once.end());
  };
  repeat(quant.scales);
  repeat(quant.zero_points);
  return quant;
}

bool rounds_within_a_step(double real, double wanted) {
  constexpr double kOffMax = 1.45;
  return std::abs(real - wanted) <= kOffMax;
}

}  // namespace skillet::passes
