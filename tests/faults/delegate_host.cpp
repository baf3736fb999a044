// A host of the TFLite delegate for the fault matrix: one inference per picture on device npu, each compared with the
// CPU kernels. Prints "cpu HASH" for the CPU's results, then a line per inference: "difference N HASH" or "error TEXT".
// usage: delegate_host MODEL.tflite PICTURE...      Exit code 2: two pictures have the same result.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "frontend/tflite_delegate/plugin.h"
#include "frontend/tflite_delegate/testing/fake_host.h"
#include "graph/import/import.h"
#include "tools/tensors/picture.h"

namespace skillet::delegate {
namespace {

int difference(ir::DType type, std::span<const uint8_t> a, std::span<const uint8_t> b) {
  int largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const int one = type == ir::DType::int8 ? static_cast<int8_t>(a[i]) : a[i];
    const int other = type == ir::DType::int8 ? static_cast<int8_t>(b[i]) : b[i];
    largest = std::max(largest, std::abs(one - other));
  }
  return largest;
}

std::vector<Bytes> outputs_of(FakeHost& host, const ir::Graph& graph) {
  std::vector<Bytes> all;
  for (const ir::TensorId id : graph.outputs) all.emplace_back(host.bytes(id).begin(), host.bytes(id).end());
  return all;
}

int difference(const ir::Graph& graph, const std::vector<Bytes>& a, const std::vector<Bytes>& b) {
  int largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, difference(graph.tensor(graph.outputs[i]).dtype, a[i], b[i]));
  return largest;
}

size_t hash(const std::vector<Bytes>& outputs) {
  std::string all;
  for (const Bytes& one : outputs) all.append(one.begin(), one.end());
  return std::hash<std::string>()(all);
}

// Returns the CPU kernels' results. They must all differ, so that a stale result shows.
std::optional<std::vector<std::vector<Bytes>>> expected(const ir::Graph& graph, const std::vector<Bytes>& inputs) {
  std::vector<std::vector<Bytes>> all;
  FakeHost host(graph);
  for (const Bytes& input : inputs) {
    std::ranges::copy(input, host.bytes(graph.inputs[0]).begin());
    if (host.invoke() != kTfLiteOk) return std::nullopt;
    std::vector<Bytes> outputs = outputs_of(host, graph);
    for (const auto& other : all) {
      if (difference(graph, other, outputs) <= 2) return std::nullopt;
    }
    all.push_back(std::move(outputs));
  }
  return all;
}

Result<std::vector<Bytes>> read_pictures(std::span<char*> paths, const ir::Tensor& input) {
  std::vector<Bytes> all;
  for (const char* path : paths) {
    SK_TRY_ASSIGN(const tools::Picture picture, tools::load_picture(path, input.shape[3]));
    SK_TRY_ASSIGN(Bytes bytes, tools::to_tensor(picture, input));
    all.push_back(std::move(bytes));
  }
  return all;
}

const char* last_error(const FakeHost& host) { return host.errors.empty() ? "no reason" : host.errors.back().c_str(); }

int run(const char* model, std::span<char*> paths) {
  auto imported = tflite::import_file(model);
  if (!imported.ok()) return 1;
  const ir::Graph& graph = *imported;
  const auto inputs = read_pictures(paths, graph.tensor(graph.inputs[0]));
  if (!inputs.ok()) return 1;
  const auto wanted = expected(graph, *inputs);
  if (!wanted) return 2;
  for (const auto& outputs : *wanted) std::printf("cpu %zx\n", hash(outputs));
  const char* keys[] = {"device", "min_macs_per_byte"};
  const char* values[] = {"npu", "0"};
  TfLiteDelegate* delegate = create(keys, values, 2, [](const char* text) { std::printf("error %s\n", text); });
  if (delegate == nullptr) return 0;
  {
    FakeHost host(graph);
    const bool applied = host.apply(delegate) == kTfLiteOk;
    if (!applied) std::printf("error %s\n", last_error(host));
    for (size_t i = 0; i < inputs->size() && applied; ++i) {
      std::ranges::copy((*inputs)[i], host.bytes(graph.inputs[0]).begin());
      if (host.invoke() == kTfLiteOk) {
        const std::vector<Bytes> outputs = outputs_of(host, graph);
        std::printf("difference %d %zx\n", difference(graph, outputs, (*wanted)[i]), hash(outputs));
      } else {
        std::printf("error %s\n", last_error(host));
      }
    }
  }
  destroy(delegate);
  return 0;
}

}  // namespace
}  // namespace skillet::delegate

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  return skillet::delegate::run(argv[1], std::span(argv + 2, argv + argc));
}
