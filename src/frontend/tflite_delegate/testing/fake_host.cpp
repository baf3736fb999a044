#include "frontend/tflite_delegate/testing/fake_host.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "frontend/tflite_delegate/builtin_params.h"
#include "frontend/tflite_delegate/testing/encode_params.h"

namespace skillet::delegate {
namespace {

TfLiteEnum type_of(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::float32: return 1;
    case ir::DType::int32: return 2;
    case ir::DType::uint8: return 3;
    case ir::DType::int64: return 4;
    case ir::DType::int16: return 7;
    case ir::DType::int8: return 9;
    default: return 15;
  }
}

int code_of(const ir::Op& op) {
  for (int code = 0; code < 256; ++code) {
    if (op.kind != ir::OpKind::opaque && ir::op_kind_from_tflite_code(code) == op.kind) return code;
  }
  return kTfLiteBuiltinCustom;
}

}  // namespace

FakeHost::FakeHost(ir::Graph graph) : graph_(std::move(graph)), tensors_(graph_.tensors.size()) {
  memory_.resize(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) add_tensor(i);
  nodes_.resize(graph_.ops.size());
  std::vector<int> plan;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    add_node(i);
    plan.push_back(static_cast<int>(i));
  }
  plan_ = array(plan);
  context_.impl = this;
  context_.tensors_size = tensors_.size();
  context_.tensors = tensors_.data();
  context_.GetExecutionPlan = get_plan;
  context_.GetNodeAndRegistration = get_node;
  context_.ResizeTensor = resize_tensor;
  context_.ReportError = report_error;
  context_.PreviewDelegatePartitioning = preview;
  context_.ReplaceNodeSubsetsWithDelegateKernels = replace;
}

FakeHost::~FakeHost() {
  for (Partition& partition : partitions_) partition.registration.free(&context_, partition.node.user_data);
}

void FakeHost::add_tensor(size_t index) {
  const ir::Tensor& from = graph_.tensors[index];
  TfLiteTensor& to = tensors_[index];
  to.type = type_of(from.dtype);
  to.name = from.name.c_str();
  to.dims = array(from.shape.dims);
  to.is_variable = from.is_variable;
  if (!from.quant.empty()) {
    std::vector<int> scales(from.quant.scales.size());
    std::memcpy(scales.data(), from.quant.scales.data(), scales.size() * sizeof(float));
    quants_.push_back(
        {reinterpret_cast<TfLiteFloatArray*>(array(scales)), array(from.quant.zero_points), from.quant.axis});
    to.quantization = {kTfLiteAffineQuantization, &quants_.back()};
  }
  to.bytes = static_cast<size_t>(from.bytes());
  if (from.is_constant()) {
    to.allocation_type = kTfLiteMmapRo;
    to.data = const_cast<uint8_t*>(from.data.data());
  } else {
    to.allocation_type = 2;  // in the host's arena
    allocate(index);
  }
}

void FakeHost::add_node(size_t index) {
  const ir::Op& op = graph_.ops[index];
  Node& to = nodes_[index];
  to.node.inputs = array(op.inputs);
  to.node.outputs = array(op.outputs);
  params_.push_back(encode_params(op));
  if (!params_.back().empty()) to.node.builtin_data = params_.back().data();
  to.registration.builtin_code = code_of(op);
  to.registration.version = 1;
  if (op.kind == ir::OpKind::opaque) {
    to.registration.custom_name = graph_.ops[index].opaque_name.c_str();
    return;
  }
  auto kernel = ref::prepare(graph_, static_cast<ir::OpId>(index));
  if (kernel.ok()) to.kernel = std::move(kernel).value();
}

TfLiteIntArray* FakeHost::array(const std::vector<int>& values) {
  arrays_.push_back({static_cast<int>(values.size())});
  arrays_.back().insert(arrays_.back().end(), values.begin(), values.end());
  return reinterpret_cast<TfLiteIntArray*>(arrays_.back().data());
}

void FakeHost::allocate(size_t index) {
  memory_[index].assign(tensors_[index].bytes + 1, 0);
  tensors_[index].data = memory_[index].data();
}

void FakeHost::move_memory(ir::TensorId id) {
  const auto index = static_cast<size_t>(id);
  Bytes other(tensors_[index].bytes + 1);
  std::ranges::copy(bytes(id), other.begin() + 1);
  memory_[index] = std::move(other);
  tensors_[index].data = memory_[index].data() + 1;
}

std::span<uint8_t> FakeHost::bytes(ir::TensorId id) {
  return {static_cast<uint8_t*>(tensor(id).data), tensor(id).bytes};
}

void FakeHost::resize(ir::TensorId id, const ir::Shape& shape) {
  auto* size = static_cast<TfLiteIntArray*>(std::malloc((shape.dims.size() + 1) * sizeof(int)));
  SK_CHECK(size != nullptr);
  size->size = shape.rank();
  std::ranges::copy(shape.dims, size->data());
  resize_tensor(&context_, &tensor(id), size);
}

std::vector<int> FakeHost::partition(size_t i) const {
  const TfLiteIntArray* nodes = partitions_[i].params.nodes_to_replace;
  return {nodes->data(), nodes->data() + nodes->size};
}

TfLiteStatus FakeHost::apply(TfLiteDelegate* delegate) {
  const TfLiteStatus applied = delegate->Prepare(&context_, delegate);
  return applied == kTfLiteOk ? prepare() : applied;
}

TfLiteStatus FakeHost::prepare() {
  for (Partition& partition : partitions_) {
    const TfLiteStatus prepared = partition.registration.prepare(&context_, &partition.node);
    if (prepared != kTfLiteOk) return prepared;
  }
  return kTfLiteOk;
}

TfLiteStatus FakeHost::invoke() {
  std::vector<std::span<uint8_t>> spans;
  for (size_t i = 0; i < tensors_.size(); ++i) spans.push_back(bytes(static_cast<ir::TensorId>(i)));
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (Partition& partition : partitions_) {
      if (partition.params.nodes_to_replace->data()[0] != static_cast<int>(i)) continue;
      const TfLiteStatus ran = partition.registration.invoke(&context_, &partition.node);
      if (ran != kTfLiteOk) return ran;
    }
    if (nodes_[i].replaced) continue;
    if (nodes_[i].kernel == nullptr || !nodes_[i].kernel->run(spans).ok()) return kTfLiteError;
  }
  return kTfLiteOk;
}

TfLiteStatus FakeHost::get_plan(TfLiteContext* context, TfLiteIntArray** plan) {
  *plan = of(context).plan_;
  return kTfLiteOk;
}

TfLiteStatus FakeHost::get_node(TfLiteContext* context, int index, TfLiteNode** node,
                                TfLiteRegistration** registration) {
  FakeHost& self = of(context);
  if (index < 0 || static_cast<size_t>(index) >= self.nodes_.size()) return kTfLiteError;
  *node = &self.nodes_[static_cast<size_t>(index)].node;
  *registration = &self.nodes_[static_cast<size_t>(index)].registration;
  return kTfLiteOk;
}

TfLiteStatus FakeHost::resize_tensor(TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* size) {
  FakeHost& self = of(context);
  const auto index = static_cast<size_t>(tensor - self.tensors_.data());
  ir::Tensor& ours = self.graph_.tensors[index];
  ours.shape.dims.assign(size->data(), size->data() + size->size);
  std::free(size);
  tensor->dims = self.array(ours.shape.dims);
  tensor->bytes = static_cast<size_t>(ours.bytes());
  self.allocate(index);
  return kTfLiteOk;
}

void FakeHost::report_error(TfLiteContext* context, const char* format, ...) {
  char text[4096];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  of(context).errors.emplace_back(text);
}

std::vector<TfLiteDelegateParams> FakeHost::divide(const TfLiteIntArray* nodes, TfLiteDelegate* delegate) {
  std::vector<std::vector<int>> runs;
  for (const int index : std::vector<int>(nodes->data(), nodes->data() + nodes->size)) {
    if (runs.empty() || runs.back().back() + 1 != index) runs.emplace_back();
    runs.back().push_back(index);
  }
  std::vector<TfLiteDelegateParams> all;
  for (const std::vector<int>& run : runs) {
    std::vector<int> outputs;
    for (const int index : run) {
      for (const ir::TensorId id : graph_.op(index).outputs) {
        bool leaves = std::ranges::count(graph_.outputs, id) != 0;
        for (size_t i = 0; i < nodes_.size(); ++i) {
          const bool outside = std::ranges::count(run, static_cast<int>(i)) == 0;
          leaves |= outside && std::ranges::count(graph_.ops[i].inputs, id) != 0;
        }
        if (leaves) outputs.push_back(id);
      }
    }
    all.push_back({delegate, array(run), array({}), array(outputs)});
  }
  return all;
}

TfLiteStatus FakeHost::preview(TfLiteContext* context, const TfLiteIntArray* nodes, TfLiteDelegateParams** params,
                               int* count) {
  FakeHost& self = of(context);
  self.previewed_ = self.divide(nodes, nullptr);
  *params = self.previewed_.data();
  *count = static_cast<int>(self.previewed_.size());
  return kTfLiteOk;
}

TfLiteStatus FakeHost::replace(TfLiteContext* context, TfLiteRegistration registration, const TfLiteIntArray* nodes,
                               TfLiteDelegate* delegate) {
  FakeHost& self = of(context);
  for (const TfLiteDelegateParams& params : self.divide(nodes, delegate)) {
    Partition partition{.registration = registration, .params = params};
    partition.node.user_data =
        registration.init(context, reinterpret_cast<const char*>(&params), sizeof(TfLiteDelegateParams));
    self.partitions_.push_back(partition);
    for (int i = 0; i < params.nodes_to_replace->size; ++i)
      self.nodes_[static_cast<size_t>(params.nodes_to_replace->data()[i])].replaced = true;
  }
  return kTfLiteOk;
}

}  // namespace skillet::delegate
