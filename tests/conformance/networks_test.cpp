// Whole networks with real weights and pictures, if they are beside the source tree (../shared/models or
// SKILLET_MODELS): every network that the kernels cover runs, and the classifier recognises its picture.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/testing/in_tree.h"
#include "graph/import/import.h"
#include "graph/ref/ref.h"
#include "tools/tensors/picture.h"

namespace skillet {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> find_models() {
  const char* from_env = std::getenv("SKILLET_MODELS");
  fs::path path = from_env != nullptr ? from_env : skillet::in_tree("../shared/models");
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return path;
  return std::nullopt;
}

// Returns the index of the highest score.
Result<size_t> classify(const fs::path& model, const fs::path& picture_file) {
  SK_TRY_ASSIGN(const ir::Graph graph, tflite::import_file(model));
  SK_TRY_ASSIGN(ref::Interpreter interpreter, ref::Interpreter::create(graph));
  const ir::Tensor& input = graph.tensor(graph.inputs[0]);
  SK_TRY_ASSIGN(const tools::Picture picture, tools::load_picture(picture_file, 3));
  SK_TRY_ASSIGN(const Bytes pixels, tools::to_tensor(picture, input));
  std::copy(pixels.begin(), pixels.end(), interpreter.tensor(graph.inputs[0]).begin());
  SK_TRY(interpreter.run());
  const auto scores = interpreter.tensor(graph.outputs[0]);
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

TEST(Networks, ClassifiersKnowTheUniform) {
  const auto models = find_models();
  if (!models) GTEST_SKIP() << "no models (../shared/models or SKILLET_MODELS)";
  for (const char* name : {"mobilenet_v1_1.0_224_quant.tflite", "mobilenet_v2_1.0_224_quant.tflite"}) {
    const Result<size_t> best = classify(*models / name, *models / "grace_hopper.bmp");
    ASSERT_TRUE(best.ok()) << best.error().message;
    EXPECT_EQ(*best, 653U) << name;
  }
}

TEST(Networks, AllRun) {
  const auto models = find_models();
  if (!models) GTEST_SKIP() << "no models (../shared/models or SKILLET_MODELS)";
  for (const auto& entry : fs::directory_iterator(*models)) {
    if (entry.path().extension() != ".tflite") continue;
    const auto graph = tflite::import_file(entry.path());
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    auto interpreter = ref::Interpreter::create(*graph);
    ASSERT_TRUE(interpreter.ok()) << entry.path() << ": " << interpreter.error().message;
    const auto result = interpreter->run();
    EXPECT_TRUE(result.ok()) << result.error().message;
  }
}

// Results of the published runtime (ai-edge-litert 2.3.0, default kernels) for the last of some runs.
struct Sequence {
  const char* file;
  std::vector<double> expected;
  int runs = 4;
};
const std::vector<Sequence> kSequences = {
    {"counter.tflite", {0.53125, 0.828125, 1.125, 1.421875, 1.71875, 2.015625}},
    {"stream_i8.tflite", {-48, -97, -104, -48, -87}},
    {"sparse_rows_i8.tflite", {37, 7, -10, -20, 2, -16, 13, 6}},
    {"sparse_blocks_i8.tflite", {-89, 4, 76, 22, -67, -17, -45, 5}},
    {"svdf_i8.tflite", {-27, 10, 3}},
    {"loops.tflite", {0.178529859, -0.130104154, 0.002492727}},
    {"branch.tflite", {1.75, 2, 2.25, 2.5, 2.75, 3}},
    {"branch.tflite", {0, 0.478388399, 0.859491348, 1.136642456, 1.346937656, 1.521151781}, 1}};

std::vector<double> numbers_of(const ir::Tensor& tensor, std::span<const uint8_t> bytes) {
  std::vector<double> out;
  for (size_t i = 0; i < static_cast<size_t>(tensor.shape.elems()); ++i)
    out.push_back(tensor.dtype == ir::DType::float32 ? load_le<float>(&bytes[4 * i]) : static_cast<int8_t>(bytes[i]));
  return out;
}

void fill(const ir::Tensor& tensor, int run, std::span<uint8_t> bytes) {
  for (int i = 0; i < static_cast<int>(tensor.shape.elems()); ++i) {
    if (tensor.dtype == ir::DType::float32)
      store_le(&bytes[static_cast<size_t>(4 * i)], static_cast<float>(i + run) / 8);
    else
      bytes[static_cast<size_t>(i)] = static_cast<uint8_t>((i * 37 + run * 11) % 200 - 100);
  }
}

TEST(Networks, KeepValuesBetweenRunsTakeBranchesAndReadSparseWeights) {
  for (const Sequence& one : kSequences) {
    SCOPED_TRACE(one.file);
    const auto graph = tflite::import_file(skillet::in_tree("tests/models/state/") + one.file);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    for (size_t i = 0; i < graph->ops.size(); ++i) EXPECT_EQ(graph->ops[i].source_index, i) << "counts and MACs by it";
    auto interpreter = ref::Interpreter::create(*graph);
    ASSERT_TRUE(interpreter.ok()) << interpreter.error().message;
    for (int run = 0; run < one.runs; ++run) {
      fill(graph->tensor(graph->inputs[0]), run, interpreter->tensor(graph->inputs[0]));
      ASSERT_TRUE(interpreter->run().ok());
    }
    const ir::TensorId output = graph->outputs[0];
    const std::vector<double> numbers = numbers_of(graph->tensor(output), interpreter->tensor(output));
    ASSERT_EQ(numbers.size(), one.expected.size());
    const double error = graph->tensor(output).dtype == ir::DType::float32 ? 1e-6 : 0;
    for (size_t i = 0; i < numbers.size(); ++i) EXPECT_NEAR(numbers[i], one.expected[i], error) << i;
  }
}

}  // namespace
}  // namespace skillet
