#include "frontend/litert/subgraph.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "frontend/host/element_types.h"
#include "frontend/host/reader.h"

namespace skillet::litert {
namespace {

using ir::TensorId;

Result<void> checked(Status status, std::string_view what) {
  if (status == kOk) return {};
  return error(ErrorCode::malformed, "the host does not give {} (status {})", what, status);
}

// Reads a list: its length, then each element.
template <typename From, typename One>
Result<std::vector<One*>> all_of(const Table& host, From* from, Slot<From*, size_t*> count_slot,
                                 Slot<From*, size_t, One**> slot, std::string_view what) {
  size_t count = 0;
  SK_TRY(checked(host.call(count_slot, from, &count), what));
  std::vector<One*> out(count);
  for (size_t i = 0; i < count; ++i) SK_TRY(checked(host.call(slot, from, i, &out[i]), what));
  return out;
}

// Reads one tensor. The result always has a type and a shape that the IR can hold; the error reports what it cannot
// express.
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
    SK_TRY(checked(host_.call(kTypeId, from_, &id), "its type's kind"));
    if (id != kRanked) return error(ErrorCode::unsupported, "its rank is not known");
    SK_TRY(checked(host_.call(kRankedType, from_, &type), "its type"));
    const auto dtype = host::element_type(type.element_type);
    if (!dtype) return error(ErrorCode::unsupported, "element type {} is not known", type.element_type);
    if (type.rank > std::size(type.dims)) return error(ErrorCode::unsupported, "it has {} dimensions", +type.rank);
    const std::span dims(type.dims, type.rank);
    if (!dims.empty() && dims[0] < 0) dims[0] = 1;  // dynamic batch: the host runs one
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
    host::set_quant(to, {many.scales, many.scales + many.count}, {many.zero_points, many.zero_points + many.count},
                    many.axis);
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

class Builder {
 public:
  explicit Builder(const Table& host) : host_(host) {}

  Result<Subgraph> run(HostSubgraph* from) {
    SK_TRY_ASSIGN(auto ops, all_of(host_, from, kNumOps, kOp, "the operations"));
    SK_TRY_ASSIGN(const auto inputs, all_of(host_, from, kNumInputs, kInput, "the inputs"));
    SK_TRY_ASSIGN(const auto outputs, all_of(host_, from, kNumOutputs, kOutput, "the outputs"));
    for (HostOp* op : ops) SK_TRY(add_op(op));
    ir::Graph& graph = reader_.graph;
    // Inputs and outputs that no operation uses are kept: the host counts them.
    for (HostTensor* one : inputs) graph.inputs.push_back(tensor(one));
    for (HostTensor* one : outputs) graph.outputs.push_back(tensor(one));
    for (size_t i = 0; i < graph.ops.size(); ++i) infer(i);
    SK_TRY(ir::verify(graph));
    return Subgraph{std::move(graph), std::move(ops), std::move(reader_.refusals)};
  }

 private:
  Result<void> add_op(HostOp* from) {
    SK_TRY_ASSIGN(const auto inputs, all_of(host_, from, kNumOpInputs, kOpInput, "an operation's inputs"));
    SK_TRY_ASSIGN(const auto outputs, all_of(host_, from, kNumOpOutputs, kOpOutput, "an operation's outputs"));
    constexpr int kCustom = 32;
    int code = 0;
    const char* custom = nullptr;
    SK_TRY(checked(host_.call(kOpCode, from, &code), "an operation's code"));
    if (code == kCustom && host_.call(kCustomCode, from, &custom) != kOk) custom = nullptr;
    const auto kind = ir::op_kind_from_tflite_code(code);
    ir::Op op;
    op.source_index = static_cast<int32_t>(reader_.graph.ops.size());
    for (HostTensor* one : inputs) op.inputs.push_back(one == nullptr ? ir::kNoTensor : tensor(one));
    for (HostTensor* one : outputs) op.outputs.push_back(tensor(one));
    host::make_opaque(op, kind ? std::string(ir::op_kind_name(*kind)) : host::name_of(code, custom));
    std::string refusal;
    if (kind) {
      auto attrs = read_attrs(host_, from, *kind);
      op.kind = *kind;
      op.opaque_name.clear();
      if (attrs.ok())
        op.attrs = std::move(attrs).value();
      else
        refusal = attrs.error().message;
    }
    reader_.add_op(std::move(op), std::move(refusal));
    return {};
  }

  TensorId tensor(HostTensor* from) {
    const auto known = ids_.find(from);
    if (known != ids_.end()) return known->second;
    ir::Tensor one;
    const auto read = TensorReader(host_, from).read(one);
    return ids_[from] = reader_.add_tensor(std::move(one), read.ok() ? "" : read.error().message);
  }

  void infer(size_t index) {
    const auto alone = reader_.infer(index);
    for (size_t i = 0; alone && i < alone->outputs.size(); ++i) {
      const TensorId own = reader_.graph.ops[index].outputs[i];
      if (alone->tensor(alone->outputs[i]).shape == reader_.graph.tensor(own).shape) continue;
      return reader_.refuse(
          index, ir::describe_tensor(reader_.graph, own) + ": the host has another shape than the inputs give");
    }
  }

  const Table& host_;
  std::map<HostTensor*, TensorId> ids_;
  host::Reader reader_;
};

}  // namespace

Result<Subgraph> read_subgraph(const Table& host, HostSubgraph* subgraph) { return Builder(host).run(subgraph); }

}  // namespace skillet::litert
