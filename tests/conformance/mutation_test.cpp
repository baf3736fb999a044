// Damaged models: those that the importer and the verifier accept must be refused or run within their buffers. Useful
// mainly with -DSKILLET_SANITIZE=address,undefined.
#include <gtest/gtest.h>

#include <random>

#include "base/testing/in_tree.h"
#include "golden_case.h"
#include "graph/import/import.h"
#include "graph/ref/ref.h"

namespace skillet::golden {
namespace {

constexpr int64_t kMaxElems = 1 << 20;  // larger graphs are fine but slow

bool small(const ir::Graph& graph) {
  int64_t elems = 0;
  for (const ir::Tensor& tensor : graph.tensors) elems += tensor.shape.elems();
  return elems <= kMaxElems;
}

// True when the damaged model ran.
bool run_damaged(const Bytes& model, std::mt19937& random) {
  Bytes damaged = model;
  const size_t count = 1 + random() % 4;
  for (size_t i = 0; i < count; ++i) {
    uint8_t& byte = damaged[random() % damaged.size()];
    byte = random() % 2 == 0 ? static_cast<uint8_t>(byte ^ (1U << (random() % 8))) : static_cast<uint8_t>(random());
  }
  const Result<ir::Graph> graph = tflite::import(damaged, "damaged");
  if (!graph.ok() || !small(*graph)) return false;
  Result<ref::Interpreter> interpreter = ref::Interpreter::create(*graph);
  if (!interpreter.ok()) {
    EXPECT_FALSE(interpreter.error().message.empty());
    return false;
  }
  for (ir::TensorId id : graph->inputs) {
    for (uint8_t& byte : interpreter->tensor(id)) byte = static_cast<uint8_t>(random());
  }
  return interpreter->run().ok();
}

TEST(Mutation, DamagedModelsStayWithinTheirBuffers) {
  const std::string folder = skillet::in_tree("tests/conformance");
  const auto ids = list_cases(folder);
  ASSERT_TRUE(ids.ok()) << ids.error().message;
  std::mt19937 random(1);
  int ran = 0;
  for (const CaseId& id : *ids) {
    const auto golden = load_case(folder, id.set, id.name);
    ASSERT_TRUE(golden.ok()) << golden.error().message;
    const auto model = read_file(golden->model_path);
    ASSERT_TRUE(model.ok()) << model.error().message;
    for (int i = 0; i < 40; ++i) ran += run_damaged(*model, random) ? 1 : 0;
  }
  // With fewer, the damage is so heavy that only the importer is tested.
  EXPECT_GT(ran, 500);
}

}  // namespace
}  // namespace skillet::golden
