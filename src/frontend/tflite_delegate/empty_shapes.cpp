#include "frontend/tflite_delegate/empty_shapes.h"

#include <algorithm>

namespace skillet::delegate {
namespace {

constexpr int kSize = 64;  // in place of 0, and twice as much: strides divide both

// Other sizes for tensors of the host, for a while.
class OtherDims {
 public:
  OtherDims(TfLiteContext* context, const std::set<int>& ids, int in_place_of_0) : context_(context) {
    for (const int id : ids) {
      TfLiteTensor& tensor = context->tensors[id];
      const auto dims = elements(tensor.dims);
      std::vector<int> array = {static_cast<int>(dims.size())};
      for (const int size : dims) array.push_back(size == 0 ? in_place_of_0 : size);
      kept_.push_back({id, tensor.dims, std::move(array)});
      tensor.dims = reinterpret_cast<TfLiteIntArray*>(kept_.back().array.data());
    }
  }
  OtherDims(const OtherDims&) = delete;
  OtherDims& operator=(const OtherDims&) = delete;
  ~OtherDims() {
    for (const Kept& one : kept_) context_->tensors[one.id].dims = one.dims;
  }

 private:
  struct Kept {
    int id;
    TfLiteIntArray* dims;
    std::vector<int> array;
  };
  TfLiteContext* context_;
  std::vector<Kept> kept_;
};

}  // namespace

std::set<int> empty_inputs(const TfLiteContext* context, std::span<const HostNode> nodes) {
  std::set<int> made, empty;
  for (const HostNode& node : nodes) made.insert(node.op.outputs.begin(), node.op.outputs.end());
  for (const HostNode& node : nodes) {
    if (node.op.kind == ir::OpKind::opaque) continue;  // what it computes is not known from shapes
    for (const int id : node.op.inputs) {
      if (id == ir::kNoTensor || made.contains(id) || context->tensors[id].dims == nullptr) continue;
      if (std::ranges::count(elements(context->tensors[id].dims), 0) != 0) empty.insert(id);
    }
  }
  return empty;
}

Result<std::vector<std::pair<int, ir::Shape>>> empty_shapes(TfLiteContext* context, const std::set<int>& empty,
                                                            std::span<const HostNode> nodes,
                                                            std::span<const int> outputs,
                                                            std::span<const HostNode> shapes) {
  std::vector<std::pair<int, ir::Shape>> out;
  for (const int size : {kSize, 2 * kSize}) {
    const OtherDims other(context, empty, size);
    SK_TRY_ASSIGN(const HostGraph host, build_graph(context, nodes, outputs, Contents::prepared, shapes));
    for (size_t i = 0; i < host.refusal.size(); ++i) {
      if (!host.refusal[i].empty())
        return error(ErrorCode::unsupported, "{}: {}", ir::describe_op(host.graph, static_cast<ir::OpId>(i)),
                     host.refusal[i]);
    }
    for (size_t i = 0; i < host.graph.outputs.size(); ++i) {
      const ir::TensorId id = host.graph.outputs[i];
      const ir::Shape& shape = host.graph.tensor(id).shape;
      if (size == kSize) {
        out.emplace_back(host.host_tensor[static_cast<size_t>(id)], shape);
        continue;
      }
      ir::Shape& first = out.at(i).second;
      if (first.rank() != shape.rank()) return error(ErrorCode::unsupported, "the rank hangs on the sizes");
      for (int32_t d = 0; d < shape.rank(); ++d)
        first.dims[static_cast<size_t>(d)] = std::max(0, 2 * first[d] - shape[d]);
    }
  }
  for (const auto& [id, shape] : out) {
    if (shape.elems() != 0) return error(ErrorCode::unsupported, "values of nothing, in tensor {}", id);
  }
  return out;
}

}  // namespace skillet::delegate
