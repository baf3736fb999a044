// Session::compare_layers: which op of an NPU part computes something else than its CPU kernel does.
#include <algorithm>
#include <cmath>

#include "runtime/session_part.h"

namespace skillet::runtime {
namespace {

size_t at(int32_t id) { return static_cast<size_t>(id); }

template <typename T>
void count_differences(std::span<const uint8_t> a, std::span<const uint8_t> b, LayerDiff& diff) {
  diff.elems = static_cast<int64_t>(a.size() / sizeof(T));
  for (size_t offset = 0; offset + sizeof(T) <= a.size(); offset += sizeof(T)) {
    const auto x = static_cast<double>(load_le<T>(a.data() + offset));
    const auto y = static_cast<double>(load_le<T>(b.data() + offset));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ++diff.differing;
    diff.max_abs_diff = std::max(diff.max_abs_diff, std::abs(x - y));
  }
}

void compare(ir::DType dtype, std::span<const uint8_t> a, std::span<const uint8_t> b, LayerDiff& diff) {
  diff.compared = true;
  switch (dtype) {
    case ir::DType::int8: return count_differences<int8_t>(a, b, diff);
    case ir::DType::int16: return count_differences<int16_t>(a, b, diff);
    case ir::DType::int32: return count_differences<int32_t>(a, b, diff);
    case ir::DType::float32: return count_differences<float>(a, b, diff);
    default: return count_differences<uint8_t>(a, b, diff);
  }
}

}  // namespace

// `known` holds, by tensor of the whole graph, the best bytes there are: the NPU's own where it keeps them, else what
// the CPU kernels make of the NPU's own earlier ones.
Result<void> Session::compare_part(const Part& part, std::vector<LayerDiff>& diffs) {
  const passes::Partition& partition = part.partition;
  std::vector<Bytes> known(graph_.tensors.size());
  std::vector<std::span<uint8_t>> spans = spans_;
  const auto set = [&](ir::TensorId id, Bytes bytes) {
    known[at(id)] = std::move(bytes);
    spans[at(id)] = known[at(id)];
  };
  for (size_t i = 0; i < partition.op_map.size(); ++i) {
    const ir::OpId op = partition.op_map[i];
    for (const ir::TensorId id : graph_.op(op).outputs) set(id, Bytes(static_cast<size_t>(graph_.tensor(id).bytes())));
    SK_TRY_ASSIGN(const std::unique_ptr<ref::Kernel> kernel, ref::prepare(graph_, op));
    SK_TRY(kernel->run(spans).with_context(ir::describe_op(graph_, op)));
    for (size_t out = 0; out < graph_.op(op).outputs.size(); ++out) {
      const ir::TensorId id = graph_.op(op).outputs[out];
      const ir::TensorId local = partition.graph.ops[i].outputs[out];
      LayerDiff& diff = diffs.emplace_back(LayerDiff{.op = op, .tensor = id});
      if (!part.loaded->has(local)) continue;
      Bytes npu(known[at(id)].size());
      SK_TRY(part.loaded->read(local, npu));
      compare(graph_.tensor(id).dtype, npu, known[at(id)], diff);
      set(id, std::move(npu));
    }
  }
  return {};
}

Result<std::vector<LayerDiff>> Session::compare_layers() {
  SK_TRY(has_results());
  std::vector<LayerDiff> diffs;
  for (const auto& part : parts_) {
    if (part->loaded) SK_TRY(compare_part(*part, diffs));
  }
  return diffs;
}

}  // namespace skillet::runtime
