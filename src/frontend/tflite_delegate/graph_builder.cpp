#include "frontend/tflite_delegate/graph_builder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/text.h"
#include "frontend/host/element_types.h"
#include "frontend/host/reader.h"
#include "frontend/tflite_delegate/node_attrs.h"
#include "graph/import/planned_memory.h"
#include "graph/ref/ref.h"

namespace skillet::delegate {
namespace {

using ir::DType;
using ir::TensorId;

bool in_range(const TfLiteContext* context, int id) {
  return id >= 0 && static_cast<size_t>(id) < context->tensors_size;
}

// Reads one tensor. The result always has a type and a shape that the IR can hold; `problem` describes what it could
// not express.
class TensorReader {
 public:
  // `settled`: its contents are known and count as constant.
  TensorReader(const TfLiteTensor& from, bool settled) : from_(from), settled_(settled) {}

  ir::Tensor read() {
    if (from_.name != nullptr) to_.name = printable(from_.name);
    to_.is_variable = from_.is_variable;
    read_type();
    read_shape();
    if (problem.empty()) read_quant();
    if (problem.empty()) read_contents();
    return std::move(to_);
  }

  std::string problem;

 private:
  template <typename... Args>
  void refuse(fmt::format_string<Args...> format, Args&&... args) {
    if (problem.empty()) problem = fmt::format(format, std::forward<Args>(args)...);
  }

  void read_type() {
    const auto type = host::element_type(from_.type);
    if (!type) refuse("element type {} is not known", from_.type);
    to_.dtype = type.value_or(DType::variant);
    if (from_.sparsity != nullptr) refuse("it is sparse");
    if (from_.allocation_type == kTfLiteNonCpu) refuse("its memory is not readable by the CPU");
    if (from_.allocation_type == kTfLiteVariantObject) refuse("it holds an object, not elements");
  }

  void read_shape() {
    const auto dims = elements(from_.dims);
    if (std::ranges::any_of(dims, [](int dim) { return dim < 0; })) return refuse("a dimension is not known");
    to_.shape.dims.assign(dims.begin(), dims.end());
  }

  void read_quant() {
    if (!ir::is_integer(to_.dtype) || from_.quantization.type == 0 || from_.quantization.params == nullptr) return;
    if (from_.quantization.type != kTfLiteAffineQuantization)
      return refuse("quantization of kind {} is not known", from_.quantization.type);
    const auto& affine = *static_cast<const TfLiteAffineQuantization*>(from_.quantization.params);
    if (affine.scale == nullptr || affine.scale->size <= 0) return;
    const auto count = static_cast<size_t>(affine.scale->size);
    const auto zero_points = elements(affine.zero_point);
    if (zero_points.size() > 1 && zero_points.size() != count)
      return refuse("{} scales but {} zero points", count, zero_points.size());
    std::vector<int32_t> zeros(count, zero_points.empty() ? 0 : zero_points[0]);
    if (zero_points.size() > 1) zeros.assign(zero_points.begin(), zero_points.end());
    host::set_quant(to_, {affine.scale->data(), affine.scale->data() + count}, std::move(zeros),
                    affine.quantized_dimension);
  }

  void read_contents() {
    if (settled_) {
      const auto* bytes = static_cast<const uint8_t*>(from_.data);
      return ir::set_constant(to_, Bytes(bytes, bytes + from_.bytes));
    }
    if (from_.allocation_type != kTfLiteMmapRo || to_.is_variable) return;
    if (from_.bytes == 0 || from_.data == nullptr) {
      if (from_.bytes != 0) return refuse("its contents are missing");
      if (to_.bytes() == 0) ir::set_constant(to_, {});
      return;
    }
    to_.data = {static_cast<const uint8_t*>(from_.data), from_.bytes};
  }

  const TfLiteTensor& from_;
  const bool settled_;
  ir::Tensor to_;
};

class Builder {
 public:
  Builder(TfLiteContext* context, Contents contents)
      : context_(context), contents_(contents), id_of_(context->tensors_size, ir::kNoTensor) {}

  Result<HostGraph> run(std::span<const HostNode> nodes, std::span<const int> outputs,
                        std::span<const HostNode> shapes) {
    std::vector<HostNode> all(nodes.begin(), nodes.end());
    for (const HostNode& node : nodes) {
      own_.insert(node.index);
      made_.insert(node.op.outputs.begin(), node.op.outputs.end());
    }
    for (const HostNode& node : shapes) {
      if (!own_.contains(node.index)) all.push_back(node);
    }
    std::ranges::stable_sort(all, {}, &HostNode::place);
    for (const HostNode& node : all) add_op(node);
    out_.host_tensor.resize(reader_.graph.tensors.size(), -1);
    for (const int output : outputs) {
      if (in_range(context_, output) && id_of_[static_cast<size_t>(output)] != ir::kNoTensor)
        reader_.graph.outputs.push_back(id_of_[static_cast<size_t>(output)]);
    }
    add_planned_memory();
    infer_each();
    leave_out_known(all);
    add_inputs();
    SK_TRY(ir::verify(reader_.graph));
    out_.graph = std::move(reader_.graph);
    return std::move(out_);
  }

 private:
  void leave_out_known(std::span<const HostNode> all);

  // For a model from a vendor's compiler. The host does not list such memory as inputs: a plain list of bytes that no
  // node computes is memory of the operation that names it.
  void add_planned_memory() {
    const char* plan = nullptr;
    size_t size = 0;
    if (context_->GetModelMetadata == nullptr ||
        context_->GetModelMetadata(context_, tflite::kMemoryPlan.data(), &plan, &size) != kTfLiteOk || plan == nullptr)
      return;
    tflite::set_planned_places({reinterpret_cast<const uint8_t*>(plan), size}, context_->tensors_size, out_.host_tensor,
                               reader_.graph);
    std::vector<bool> is_memory(reader_.graph.tensors.size());
    for (const ir::Op& op : reader_.graph.ops) {
      for (const TensorId id : op.inputs) {
        if (op.kind != ir::OpKind::opaque || id == ir::kNoTensor) continue;
        ir::Tensor& tensor = reader_.graph.tensor(id);
        const bool is_bytes = tensor.dtype == DType::uint8 && tensor.shape.rank() == 1 && tensor.quant.scales.empty();
        const bool is_made = made_.contains(out_.host_tensor[static_cast<size_t>(id)]);
        if (!is_bytes || is_made || tensor.is_constant() || tensor.is_variable) continue;
        tflite::make_zeros(tensor);
        is_memory[static_cast<size_t>(id)] = tensor.planned_at.has_value();
        out_.own_memory.push_back(out_.host_tensor[static_cast<size_t>(id)]);
      }
    }
    for (const TensorId id : tflite::separate_values(is_memory, reader_.graph))
      out_.host_tensor.push_back(id == ir::kNoTensor ? -1 : out_.host_tensor[static_cast<size_t>(id)]);
    for (const ir::OpId op : tflite::joined_by_memory(reader_.graph))
      out_.together.push_back(reader_.graph.op(op).source_index);
  }

  // Adds tensors that no op computes, in order of first use.
  void add_inputs() {
    const auto producers = ir::producers(reader_.graph);
    const auto readers = ir::consumers(reader_.graph);
    for (size_t i = 0; i < producers.size(); ++i) {
      const ir::Tensor& tensor = reader_.graph.tensors[i];
      if (producers[i] < 0 && !readers[i].empty() && !tensor.is_constant() && !tensor.is_variable)
        reader_.graph.inputs.push_back(static_cast<TensorId>(i));
    }
  }

  void add_op(const HostNode& node) {
    ir::Op op = node.op;
    for (auto* operands : {&op.inputs, &op.outputs})
      for (TensorId& id : *operands)
        if (id != ir::kNoTensor) id = tensor(id);
    reader_.add_op(std::move(op), node.refusal);
  }

  TensorId tensor(int host) {
    TensorId& id = id_of_[static_cast<size_t>(host)];
    if (id != ir::kNoTensor) return id;
    const bool settled = !made_.contains(host) && is_shape(context_->tensors[host], contents_);
    TensorReader reader(context_->tensors[host], settled);
    ir::Tensor tensor = reader.read();
    if (settled && reader.problem.empty()) out_.settled.push_back(host);
    id = reader_.add_tensor(std::move(tensor), std::move(reader.problem));
    out_.host_tensor.resize(reader_.graph.tensors.size(), -1);  // -1: a copy that an op reads instead of its filter
    out_.host_tensor.back() = host;
    return id;
  }

  void infer_each();

  TfLiteContext* context_;
  const Contents contents_;
  std::set<int> own_;            // the host's indices of the requested nodes
  std::set<int> made_;           // the host's tensors that these nodes compute
  std::vector<TensorId> known_;  // by tensor of the graph: the constant that is read instead of it, or kNoTensor
  std::vector<TensorId> id_of_;  // by the host's tensor
  host::Reader reader_;
  HostGraph out_;
};

void Builder::infer_each() {
  known_.assign(reader_.graph.tensors.size(), ir::kNoTensor);
  for (size_t i = 0; i < reader_.graph.ops.size(); ++i) {
    ir::Op& op = reader_.graph.ops[i];
    for (TensorId& id : op.inputs) {
      if (id != ir::kNoTensor && known_[static_cast<size_t>(id)] != ir::kNoTensor) id = known_[static_cast<size_t>(id)];
    }
    const auto alone = reader_.infer(i);
    if (!alone) continue;
    for (size_t j = 0; j < op.outputs.size(); ++j)
      reader_.graph.tensor(op.outputs[j]).shape = alone->tensor(alone->outputs[j]).shape;
    std::vector<ir::Tensor> constants = ir::known_outputs(*alone, 0, ref::compute);
    for (size_t j = 0; j < constants.size(); ++j) {
      known_[static_cast<size_t>(op.outputs[j])] = reader_.graph.add_tensor(std::move(constants[j]));
      known_.push_back(ir::kNoTensor);
      out_.host_tensor.push_back(-1);
    }
  }
}

// Removes requested ops whose outputs are known, unless the graph returns them, and ops that only served to know them.
void Builder::leave_out_known(std::span<const HostNode> all) {
  std::vector<ir::Op> ops;
  std::vector<std::string> refusal;
  for (size_t i = 0; i < all.size(); ++i) {
    ir::Op& op = reader_.graph.ops[i];
    const bool is_own = own_.contains(all[i].index);
    const bool is_known = !op.outputs.empty() && std::ranges::all_of(op.outputs, [&](TensorId id) {
      return known_[static_cast<size_t>(id)] != ir::kNoTensor && !std::ranges::count(reader_.graph.outputs, id);
    });
    if (is_own && !is_known) {
      ops.push_back(std::move(op));
      refusal.push_back(std::move(reader_.refusals[i]));
      continue;
    }
    if (is_own) out_.shapes.push_back(all[i]);
    for (const int id : all[i].op.inputs) {
      if (id != ir::kNoTensor && !made_.contains(id)) out_.sized.push_back(id);
    }
  }
  reader_.graph.ops = std::move(ops);
  out_.refusal = std::move(refusal);
}

}  // namespace

bool is_shape(const TfLiteTensor& tensor, Contents contents) {
  constexpr size_t kBytesMax = 64;  // eight dimensions of 8 bytes
  const DType type = host::element_type(tensor.type).value_or(DType::variant);
  if ((type != DType::int32 && type != DType::int64) || elements(tensor.dims).size() > 1) return false;
  if (tensor.is_variable || tensor.data == nullptr || tensor.bytes == 0 || tensor.bytes > kBytesMax) return false;
  if (contents == Contents::all) return tensor.allocation_type != kTfLiteMmapRo;
  return tensor.allocation_type == kTfLitePersistentRo;
}

std::span<const int> elements(const TfLiteIntArray* array) {
  if (array == nullptr || array->size <= 0) return {};
  return {array->data(), static_cast<size_t>(array->size)};
}

Result<HostNode> read_node(TfLiteContext* context, int index) {
  TfLiteNode* node = nullptr;
  TfLiteRegistration* registration = nullptr;
  if (context->GetNodeAndRegistration(context, index, &node, &registration) != kTfLiteOk || node == nullptr ||
      registration == nullptr)
    return error(ErrorCode::malformed, "the host does not give node {}", index);
  HostNode result{.index = index, .place = index, .op = {}, .refusal = {}};
  result.op.source_index = index;
  for (const int id : elements(node->inputs))
    result.op.inputs.push_back(id == kTfLiteOptionalTensor ? ir::kNoTensor : id);
  for (const int id : elements(node->outputs)) result.op.outputs.push_back(id);
  for (const auto* operands : {&result.op.inputs, &result.op.outputs}) {
    for (const TensorId id : *operands) {
      if (!in_range(context, id) && !(id == ir::kNoTensor && operands == &result.op.inputs))
        return error(ErrorCode::malformed, "node {} has tensor {}, the host has {}", index, id, context->tensors_size);
    }
  }
  const auto kind = ir::op_kind_from_tflite_code(registration->builtin_code);
  host::make_opaque(result.op, kind ? std::string(ir::op_kind_name(*kind))
                                    : host::name_of(registration->builtin_code, registration->custom_name));
  if (!kind) return result;
  auto attrs = read_attrs(*kind, node->builtin_data, registration->version);
  if (!attrs.ok()) {
    result.refusal = attrs.error().message;
    return result;
  }
  result.op.kind = *kind;
  result.op.opaque_name.clear();
  result.op.attrs = std::move(attrs).value();
  return result;
}

Result<HostGraph> build_graph(TfLiteContext* context, std::span<const HostNode> nodes, std::span<const int> outputs,
                              Contents contents, std::span<const HostNode> shapes) {
  return Builder(context, contents).run(nodes, outputs, shapes);
}

}  // namespace skillet::delegate
