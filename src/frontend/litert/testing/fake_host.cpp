#include "frontend/litert/testing/fake_host.h"

#include <algorithm>

namespace skillet::litert {
namespace {

Status op_code(HostOp* op, int* out) {
  constexpr int kCustom = 32, kCodes = 210;
  *out = kCustom;
  for (int code = 0; code < kCodes; ++code)
    if (code != kCustom && ir::op_kind_from_tflite_code(code) == op->op->kind) *out = code;
  return kOk;
}

Status ranked_type(HostTensor* from, RankedType* out) {
  *out = {};
  for (int number = 1; number < 20; ++number)
    if (host::element_type(number) == from->tensor->dtype) out->element_type = number;
  const std::vector<int32_t>& dims = from->tensor->shape.dims;
  out->rank = static_cast<uint32_t>(dims.size());
  std::ranges::copy(dims, out->dims);
  return kOk;
}

void set_tensors(FakeTable& table) {
  table.set(
      kTensorName, +[](HostTensor* from, const char** out) {
        *out = from->tensor->name.c_str();
        return kOk;
      });
  table.set(
      kTypeId, +[](HostTensor*, int* out) {
        *out = kRanked;
        return kOk;
      });
  table.set(kRankedType, ranked_type);
  table.set(
      kQuantId, +[](HostTensor* from, int* out) {
        *out = from->scales.empty() ? kNotQuantized : from->scales.size() == 1 ? kPerTensor : kPerChannel;
        return kOk;
      });
  table.set(
      kQuantPerTensor, +[](HostTensor* from, PerTensor* out) {
        *out = {from->scales[0], from->zero_points[0]};
        return kOk;
      });
  table.set(
      kQuantPerChannel, +[](HostTensor* from, PerChannel* out) {
        *out = {from->tensor->quant.axis, from->scales.size(), from->scales.data(), from->zero_points.data()};
        return kOk;
      });
  table.set(
      kWeights, +[](HostTensor* from, HostWeights** out) {
        *out = &from->weights;
        return kOk;
      });
  table.set(
      kWeightBytes, +[](HostWeights* from, const void** out, size_t* size) {
        *out = from->data.data();
        *size = from->data.size();
        return kOk;
      });
}

}  // namespace

FakeTable compiler_context() {
  FakeTable table;
  table.set_list(
      kNumSubgraphs, kSubgraph, [](HostModel & from) -> auto& { return from.subgraphs; });
  table.set_list(
      kNumOps, kOp, [](HostSubgraph & from) -> auto& { return from.ops; });
  table.set_list(
      kNumInputs, kInput, [](HostSubgraph & from) -> auto& { return from.inputs; });
  table.set_list(
      kNumOutputs, kOutput, [](HostSubgraph & from) -> auto& { return from.outputs; });
  table.set_list(
      kNumOpInputs, kOpInput, [](HostOp & from) -> auto& { return from.inputs; });
  table.set_list(
      kNumOpOutputs, kOpOutput, [](HostOp & from) -> auto& { return from.outputs; });
  table.set(kOpCode, op_code);
  set_tensors(table);
#define SLOT(kind, field, at) table.set_attribute<ir::OpKind::kind, &ir::AttrsOf<ir::OpKind::kind>::field>(at);
#include "frontend/litert/slots.def"
#undef SLOT
  constexpr uint16_t kWeightsFormat = 536;
  table.set(
      Slot<HostOp*, uint32_t*>{kWeightsFormat}, +[](HostOp*, uint32_t* out) {
        *out = 0;
        return kOk;
      });
  table.set(
      kPushOp, +[](HostOpList* list, HostOp* op, size_t part) {
        list->ops.emplace_back(op, part);
        return kOk;
      });
  return table;
}

FakeTable runtime_context() {
  FakeTable table;
  table.set(
      kCreateRequirements, +[](int, const int*, size_t bytes, int, const uint32_t*, HostRequirements** out) {
        (*out)->bytes = bytes;
        return kOk;
      });
  table.set(
      kBufferType, +[](HostBuffer*, int* out) {
        *out = kHostMemory;
        return kOk;
      });
  table.set(
      kBufferSize, +[](HostBuffer* buffer, size_t* out) {
        *out = buffer->bytes.size();
        return kOk;
      });
  table.set(
      kLock, +[](HostBuffer* buffer, void** out, int) {
        ++buffer->locks;
        *out = buffer->bytes.data();
        return kOk;
      });
  table.set(
      kUnlock, +[](HostBuffer* buffer) {
        --buffer->locks;
        return kOk;
      });
  return table;
}

}  // namespace skillet::litert
