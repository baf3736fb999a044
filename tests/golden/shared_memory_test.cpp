// Programs in their default form, whose intermediate tensors share memory, give the output bytes of programs that keep
// each tensor. Recorded jobs share nothing, and comparing layers keeps all tensors, so neither shows a tensor whose
// memory is reused too early.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/in_tree.h"
#include "base/testing/noise.h"
#include "golden_case.h"
#include "graph/import/import.h"
#include "runtime/session.h"

namespace skillet::golden {
namespace {

constexpr size_t kFewestOps = 2;             // with one operation there is no intermediate tensor
constexpr int64_t kMostBytes = 1024 * 1024;  // of all tensors: larger networks take too long

int64_t tensor_bytes(const ir::Graph& graph) {
  int64_t sum = 0;
  for (const ir::Tensor& one : graph.tensors) sum += one.is_constant() ? 0 : one.bytes();
  return sum;
}

// Returns all outputs; `shared`: whether tensors of a program shared memory.
Result<std::vector<Bytes>> run(const ir::Graph& graph, const runtime::Target& target, npu::Tuning tuning, bool keep,
                               bool& shared) {
  SK_TRY_ASSIGN(const auto session,
                runtime::Session::create(graph, target, {.compile = {.tuning = tuning}, .keep_intermediates = keep}));
  for (size_t part = 0; part < session->report().parts.size(); ++part) {
    for (const npu::Program* program : session->programs(part))
      shared |= !keep && std::ranges::count(program->buffers, "intermediates", &npu::Buffer::name) > 0;
  }
  std::vector<Bytes> inputs;
  for (const ir::TensorId id : graph.inputs)
    inputs.push_back(testing::noise(static_cast<size_t>(graph.tensor(id).bytes())));
  return session->run(std::vector<std::span<const uint8_t>>(inputs.begin(), inputs.end()));
}

struct Tally {
  int models = 0, shared = 0;
};

void compare(const std::string& path, const ir::Graph& graph, const std::string& chip, Tally& tally) {
  const auto target = runtime::open_target("sim:" + chip);
  ASSERT_TRUE(target.ok()) << target.error().message;
  for (const npu::Tuning tuning : {npu::Tuning::proven, npu::Tuning::tuned}) {
    bool shared = false;
    const auto kept = run(graph, *target, tuning, true, shared);
    const auto own = run(graph, *target, tuning, false, shared);
    ASSERT_EQ(kept.ok(), own.ok()) << path;
    if (!kept.ok()) continue;
    ++tally.models;
    tally.shared += shared ? 1 : 0;
    EXPECT_TRUE(*kept == *own) << path << " on " << chip << ", " << npu::tuning_name(tuning)
                               << ": other outputs where intermediate tensors share memory";
  }
}

class SharedMemory : public ::testing::TestWithParam<const char*> {};
TEST_P(SharedMemory, GivesTheOutputsOfKeptIntermediates) {
  const std::string chip = GetParam();
  if (!npu::find_chip(chip).ok()) GTEST_SKIP() << chip << " is not in this build";
  Tally tally;
  std::vector<std::string> folders = {in_tree("tests/golden/small/models"), in_tree("tests/rockchip/small/models"),
                                      in_tree("tests/models"), in_tree("models")};
  if (const auto golden = find_golden_dir()) folders.push_back(*golden + "/models");
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".tflite") continue;
      const auto graph = tflite::import_file(entry.path().string());
      if (!graph.ok() || graph->ops.size() < kFewestOps || tensor_bytes(*graph) > kMostBytes) continue;
      compare(entry.path().string(), *graph, chip, tally);
    }
  }
  std::printf("%s: %d programs, %d with shared memory\n", chip.c_str(), tally.models, tally.shared);
  EXPECT_GT(tally.shared, 3);
}
INSTANTIATE_TEST_SUITE_P(Chips, SharedMemory, ::testing::Values("a311d", "imx8mp", "rk3588"));

}  // namespace
}  // namespace skillet::golden
