#include "frontend/litert/subgraph.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "frontend/host/element_types.h"
#include "frontend/host/one_op.h"
#include "graph/import/import.h"
#include "graph/ir/settle.h"

namespace skillet::litert {
namespace {

using ir::TensorId;

Result<void> checked(Status status, std::string_view what) {
  if (status == kOk) return {};
  return error(ErrorCode::malformed, "the host does not give {} (status {})", what, status);
}

// How many, then each of them.
template <typename From, typename One>
Result<std::vector<One*>> all_of(const Table& host, From* from, Slot<From*, size_t*> count_slot,
                                 Slot<From*, size_t, One**> slot, std::string_view what) {
  size_t count = 0;
  SK_TRY(checked(host.call(count_slot, from, &count), what));
  std::vector<One*> out(count);
  for (size_t i = 0; i < count; ++i) SK_TRY(checked(host.call(slot, from, i, &out[i]), what));
  return out;
}

// The result always has a type and a shape that the IR can hold; an error says what it cannot express.
class TensorReader {
 public:
  TensorReader(const Table& host, HostTensor* from) : host_(host), from_(from) {}

  Result<void> read(ir::Tensor& to) const {
    const char* name = nullptr;
    if (host_.call(kTensorName, from_, &name) == kOk && name != nullptr) to.name = printable(name);
    to.dtype = ir::DType::variant;
    SK_TRY(read_type(to));
    SK_TRY(read_quant(to));
    return read_contents(to);
  }

 private:
  Result<void> read_type(ir::Tensor& to) const {
    int id = -1;
    RankedType type{};
    SK_TRY(checked(host_.call(kTypeId, from_, &id), "the kind of its type"));
    if (id != kRanked) return error(ErrorCode::unsupported, "its rank is not known");
    SK_TRY(checked(host_.call(kRankedType, from_, &type), "its type"));
    const auto dtype = host::element_type(type.element_type);
    if (!dtype) return error(ErrorCode::unsupported, "element type {} is not known", type.element_type);
    if (type.rank > std::size(type.dims)) return error(ErrorCode::unsupported, "it has {} dimensions", +type.rank);
    const std::span dims(type.dims, type.rank);
    if (std::ranges::any_of(dims, [](int dim) { return dim < 0; }))
      return error(ErrorCode::unsupported, "a dimension is not known");
    to.dtype = *dtype;
    to.shape.dims.assign(dims.begin(), dims.end());
    return {};
  }

  Result<void> read_quant(ir::Tensor& to) const {
    int id = kNotQuantized;
    SK_TRY(checked(host_.call(kQuantId, from_, &id), "its quantization"));
    if (id == kNotQuantized || !ir::is_integer(to.dtype)) return {};
    if (id == kPerTensor) {
      PerTensor one{};
      SK_TRY(checked(host_.call(kQuantPerTensor, from_, &one), "its scale"));
      to.quant = {{one.scale}, {static_cast<int32_t>(one.zero_point)}};
      return {};
    }
    if (id != kPerChannel) return error(ErrorCode::unsupported, "quantization of kind {} is not known", id);
    PerChannel many{};
    SK_TRY(checked(host_.call(kQuantPerChannel, from_, &many), "its scales"));
    if (many.scales == nullptr || many.zero_points == nullptr || many.count == 0)
      return error(ErrorCode::malformed, "its scales are missing");
    to.quant.scales.assign(many.scales, many.scales + many.count);
    to.quant.zero_points.assign(many.zero_points, many.zero_points + many.count);
    if (many.count > 1 && to.shape.rank() != 1) to.quant.axis = many.axis;
    return {};
  }

  Result<void> read_contents(ir::Tensor& to) const {
    HostWeights* weights = nullptr;
    const void* bytes = nullptr;
    size_t size = 0;
    if (host_.call(kWeights, from_, &weights) != kOk || weights == nullptr) return {};
    if (host_.call(kWeightBytes, weights, &bytes, &size) != kOk || size == 0) return {};
    to.data = {static_cast<const uint8_t*>(bytes), size};
    return {};
  }

  const Table& host_;
  HostTensor* from_;
};

std::string problem_of(const ir::Tensor& tensor) {
  ir::Graph alone;
  alone.add_tensor(tensor);
  const auto checked = ir::verify(alone);
  return checked.ok() ? std::string{} : checked.error().message;
}

void make_opaque(ir::Op& op, std::string name) {
  op.kind = ir::OpKind::opaque;
  op.opaque_name = printable(name);
  op.attrs = ir::default_attrs(ir::OpKind::opaque);
}

class Builder {
 public:
  explicit Builder(const Table& host) : host_(host) {}

  Result<Subgraph> run(HostSubgraph* from) {
    SK_TRY_ASSIGN(out_.ops, all_of(host_, from, kNumOps, kOp, "the operations"));
    SK_TRY_ASSIGN(const auto inputs, all_of(host_, from, kNumInputs, kInput, "the inputs"));
    SK_TRY_ASSIGN(const auto outputs, all_of(host_, from, kNumOutputs, kOutput, "the outputs"));
    for (HostOp* op : out_.ops) SK_TRY(add_op(op));
    // What nobody reads is there all the same: the host counts it.
    for (HostTensor* one : inputs) out_.graph.inputs.push_back(tensor(one));
    for (HostTensor* one : outputs) out_.graph.outputs.push_back(tensor(one));
    for (size_t i = 0; i < out_.graph.ops.size(); ++i) infer(i);
    SK_TRY(ir::verify(out_.graph));
    return std::move(out_);
  }

 private:
  Result<void> add_op(HostOp* from) {
    SK_TRY_ASSIGN(const auto inputs, all_of(host_, from, kNumOpInputs, kOpInput, "an operation's inputs"));
    SK_TRY_ASSIGN(const auto outputs, all_of(host_, from, kNumOpOutputs, kOpOutput, "an operation's outputs"));
    int code = 0;
    SK_TRY(checked(host_.call(kOpCode, from, &code), "an operation's code"));
    ir::Op op;
    op.source_index = static_cast<int32_t>(out_.graph.ops.size());
    for (HostTensor* one : inputs) op.inputs.push_back(one == nullptr ? ir::kNoTensor : tensor(one));
    for (HostTensor* one : outputs) op.outputs.push_back(tensor(one));
    std::string refusal;
    for (const auto* operands : {&op.inputs, &op.outputs}) {
      for (const TensorId id : *operands) {
        if (id == ir::kNoTensor || !refusal.empty() || problems_[static_cast<size_t>(id)].empty()) continue;
        refusal = ir::describe_tensor(out_.graph, id) + ": " + problems_[static_cast<size_t>(id)];
      }
    }
    const auto kind = ir::op_kind_from_tflite_code(code);
    make_opaque(op, kind ? std::string(ir::op_kind_name(*kind)) : name_of(from, code));
    auto attrs = kind ? read_attrs(host_, from, *kind) : Result<ir::Attrs>(op.attrs);
    if (!attrs.ok() && refusal.empty()) refusal = attrs.error().message;
    if (kind && refusal.empty()) {
      op.kind = *kind;
      op.opaque_name.clear();
      op.attrs = std::move(attrs).value();
    }
    const ir::OpId id = out_.graph.add_op(std::move(op));
    if (refusal.empty()) {
      const auto settled = ir::settle_filter(out_.graph, id);
      problems_.resize(out_.graph.tensors.size());
      if (!settled.ok()) refusal = settled.error().message;
    }
    out_.refusals.push_back(std::move(refusal));
    return {};
  }

  std::string name_of(HostOp* op, int code) const {
    constexpr int kCustom = 32;
    const char* custom = nullptr;
    if (code == kCustom && host_.call(kCustomCode, op, &custom) == kOk && custom != nullptr) return custom;
    const std::string_view name = tflite::builtin_name(code);
    return name.empty() ? fmt::format("BUILTIN_{}", code) : std::string(name);
  }

  TensorId tensor(HostTensor* from) {
    const auto known = ids_.find(from);
    if (known != ids_.end()) return known->second;
    ir::Tensor one;
    const auto read = TensorReader(host_, from).read(one);
    std::string problem = read.ok() ? problem_of(one) : read.error().message;
    if (!problem.empty()) one = {.name = one.name, .dtype = ir::DType::variant};
    problems_.push_back(std::move(problem));
    return ids_[from] = out_.graph.add_tensor(std::move(one));
  }

  // One odd operation (quantization out of range, shapes that contradict each other) stays with the host alone.
  void infer(size_t index) {
    ir::Op& op = out_.graph.ops[index];
    if (op.kind == ir::OpKind::opaque) return;
    ir::Graph alone = host::only(out_.graph, op);
    auto done = ir::infer_shapes(alone);
    if (done.ok()) done = ir::verify(alone);
    std::string refusal = done.ok() ? std::string{} : done.error().message;
    for (size_t i = 0; i < op.outputs.size() && refusal.empty(); ++i) {
      if (alone.tensor(alone.outputs[i]).shape != out_.graph.tensor(op.outputs[i]).shape)
        refusal = ir::describe_tensor(out_.graph, op.outputs[i]) + ": the host has another shape for it than follows";
    }
    if (refusal.empty()) return;
    out_.refusals[index] = std::move(refusal);
    make_opaque(op, std::string(ir::op_kind_name(op.kind)));
  }

  const Table& host_;
  std::map<HostTensor*, TensorId> ids_;
  std::vector<std::string> problems_;  // by tensor
  Subgraph out_;
};

}  // namespace

Result<Subgraph> read_subgraph(const Table& host, HostSubgraph* subgraph) { return Builder(host).run(subgraph); }

ir::Graph part_of(const Subgraph& whole, std::span<const ir::OpId> ops) {
  ir::Graph part;
  std::vector<TensorId> ids(whole.graph.tensors.size(), ir::kNoTensor);
  std::vector<TensorId> originals;
  const auto add = [&](TensorId& id) {
    if (id == ir::kNoTensor) return;
    TensorId& to = ids[static_cast<size_t>(id)];
    if (to == ir::kNoTensor) {
      originals.push_back(id);
      to = part.add_tensor(whole.graph.tensor(id));
    }
    id = to;
  };
  for (const ir::OpId id : ops) {
    ir::Op op = whole.graph.op(id);
    op.source_index = static_cast<int32_t>(part.ops.size());
    std::ranges::for_each(op.inputs, add);
    std::ranges::for_each(op.outputs, add);
    part.add_op(std::move(op));
  }
  const auto producers = ir::producers(part);
  const auto readers = ir::consumers(whole.graph);
  for (size_t i = 0; i < originals.size(); ++i) {
    const TensorId id = static_cast<TensorId>(i), original = originals[i];
    const ir::Tensor& tensor = part.tensor(id);
    if (producers[i] < 0 && !tensor.is_constant() && !tensor.is_variable) part.inputs.push_back(id);
    if (producers[i] < 0) continue;
    const auto is_outside = [&](ir::OpId reader) { return std::ranges::find(ops, reader) == ops.end(); };
    if (std::ranges::any_of(readers[static_cast<size_t>(original)], is_outside) ||
        std::ranges::count(whole.graph.outputs, original) != 0)
      part.outputs.push_back(id);
  }
  return part;
}

}  // namespace skillet::litert
