// Whole models through a session on a simulated chip, compared op by op with the CPU kernels.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/testing/in_tree.h"
#include "graph/import/import.h"
#include "kernels/etnaviv/recorder/replay.h"
#include "kernels/fake/simulated.h"
#include "runtime/session.h"

namespace skillet::runtime {
namespace {

namespace fs = std::filesystem;

const std::string kModels = skillet::in_tree("tests/captures/models/");
const std::string kGolden = skillet::in_tree("../shared/golden");
constexpr const char* kDevice = "sim:a311d";

// The chip rounds halves differently, so its result may differ by one step from the reference in each op.
constexpr double kMaxSteps = 1;

bool has_simulator() { return npu::find_chip("a311d").ok() && sim::create("a311d").ok(); }

ir::Graph import_or_die(const std::string& path) {
  auto graph = tflite::import_file(path);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return graph.ok() ? std::move(graph).value() : ir::Graph{};
}

// Fills all inputs with bytes of one pseudo-random stream.
Result<void> set_random_inputs(Session& session) {
  uint64_t state = 1;
  for (size_t i = 0; i < session.graph().inputs.size(); ++i) {
    Bytes bytes(static_cast<size_t>(session.graph().tensor(session.graph().inputs[i]).bytes()));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((state = state * 6364136223846793005U + 1) >> 56);
    SK_TRY(session.set_input(i, bytes));
  }
  return {};
}

// Text of all problems: empty if every op on the NPU agrees with its CPU kernel.
std::string judge(const std::string& model, int& ops_compared) {
  auto graph = tflite::import_file(model);
  if (!graph.ok()) return graph.error().message;
  const auto target = open_target(kDevice);
  auto session = Session::create(std::move(*graph), *target, {.allow_fallback = false, .keep_intermediates = true});
  if (!session.ok()) return session.error().message;
  if (auto set = set_random_inputs(**session); !set.ok()) return set.error().message;
  if (auto ran = (*session)->run(); !ran.ok()) return ran.error().message;
  const auto diffs = (*session)->compare_layers();
  if (!diffs.ok()) return diffs.error().message;
  std::string problems;
  for (const LayerDiff& diff : *diffs) {
    ops_compared += diff.compared ? 1 : 0;
    if (diff.max_abs_diff > kMaxSteps)
      problems +=
          fmt::format("{}: {} of {} elements differ, by up to {}\n", ir::describe_op((*session)->graph(), diff.op),
                      diff.differing, diff.elems, diff.max_abs_diff);
  }
  return problems;
}

TEST(Models, EveryOpOfSmallChainsAgreesWithItsCpuKernel) {
  if (!has_simulator()) GTEST_SKIP() << "no simulator in this build";
  int ops = 0;
  for (const char* name : {"chain_conv_dw_pw_i8", "chain_residual_add_i8"})
    EXPECT_EQ(judge(kModels + name + ".tflite", ops), "") << name;
  EXPECT_EQ(ops, 6);
}

TEST(Models, ARecordedSessionReplaysToTheSameBytes) {
  if (!has_simulator()) GTEST_SKIP() << "no simulator in this build";
  capture::Capture capture;
  const auto target = open_target(kDevice, capture::into(capture));
  auto session =
      Session::create(import_or_die(kModels + "chain_conv_dw_pw_i8.tflite"), *target, {.allow_fallback = false});
  ASSERT_TRUE(session.ok()) << session.error().message;
  ASSERT_TRUE(set_random_inputs(**session).ok());
  ASSERT_TRUE((*session)->run().ok());
  const size_t submissions = capture.submissions.size();
  ASSERT_GE(submissions, 2u) << "initialisation and at least one job";
  ASSERT_TRUE((*session)->run().ok());  // the first snapshot of this run contains the output of the first run

  const capture::Capture stored = capture::parse(capture::serialise(capture).value()).value();
  EXPECT_EQ(target->driver->identify(stored.device).value().name, "a311d");
  const fake::SimulatedCore chip = fake::simulated_core("a311d").value();
  auto replay = kernels::etnaviv::Replay::create(chip.core, chip.calls).value();
  for (size_t i = 0; i < submissions; ++i) {
    const auto ran = replay.run(stored.submissions[i]);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
  }
  int written = 0;
  for (const capture::BufferSnapshot& after : stored.submissions[submissions].buffers) {
    if (!after.write) continue;
    const auto bytes = replay.buffer(after.handle);
    ASSERT_TRUE(bytes.ok());
    capture::BufferSnapshot replayed = after;
    capture::set_contents(replayed, *bytes);
    EXPECT_EQ(replayed.bytes, after.bytes) << "buffer " << after.handle;
    written += after.bytes.empty() ? 0 : 1;
  }
  EXPECT_GT(written, 0);
}

TEST(Models, AProgramSurvivesItsFile) {
  if (!has_simulator()) GTEST_SKIP() << "no simulator in this build";
  const auto target = open_target(kDevice);
  const ir::Graph graph = import_or_die(kModels + "chain_conv_dw_pw_i8.tflite");
  const auto program = target->driver->compile(target->chip, graph, {});
  ASSERT_TRUE(program.ok()) << program.error().message;
  const auto back = npu::deserialise(npu::serialise(*program, true).value());
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, *program);
}

TEST(Models, TheGoldenSuiteAgreesOpByOp) {
  if (!has_simulator()) GTEST_SKIP() << "no simulator in this build";
  if (!fs::is_directory(kGolden)) GTEST_SKIP() << "no golden suite beside the sources";
  int models = 0, ops = 0;
  for (const char* set : {"ops", "gen", "teflon"}) {
    for (const auto& entry : fs::directory_iterator(kGolden + "/models/" + set)) {
      EXPECT_EQ(judge(entry.path(), ops), "") << entry.path();
      ++models;
    }
  }
  EXPECT_GT(models, 300);
  EXPECT_GT(ops, 250);
}

}  // namespace
}  // namespace skillet::runtime
