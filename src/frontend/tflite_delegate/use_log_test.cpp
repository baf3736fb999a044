// Log messages of the delegate about the NPU's jobs (log=info) and about unproven operations.
#include <regex>
#include <string>
#include <vector>

#include "base/log.h"
#include "frontend/tflite_delegate/testing/cases.h"

namespace skillet::delegate {
namespace {

TEST(Delegate, SaysWhetherTheNpuWorks) {
  ::testing::internal::CaptureStderr();
  {
    auto state = std::make_shared<State>();
    state->options.log = log::Level::info;
    state->options.session.partition = compile::PartitionBy::all;
    state->target = std::move(runtime::open_target("sim:a311d")).value();
    const auto delegate = make_delegate(state);
    FakeHost host(digits());
    ASSERT_EQ(host.apply(&delegate->host), kTfLiteOk);
    ASSERT_EQ(host.invoke(), kTfLiteOk);
    state->told_ns -= 61'000'000'000;
    ASSERT_EQ(host.invoke(), kTfLiteOk);
    state->told_ns -= 60'000'000'000;
    ASSERT_EQ(host.invoke(), kTfLiteOk);
    ASSERT_EQ(host.invoke(), kTfLiteOk);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::regex line("sim:a311d: NPU ran ([0-9]+) jobs (in the last [0-9]+ s|in all), busy [0-9]+ ms");
  std::vector<int> jobs;
  for (std::sregex_iterator at(said.begin(), said.end(), line), end; at != end; ++at)
    jobs.push_back(std::stoi((*at)[1]));
  ASSERT_EQ(jobs.size(), 3U) << said;
  EXPECT_GT(jobs[1], 0);
  EXPECT_EQ(jobs[2], jobs[0] + 2 * jobs[1]) << "four runs, and what came before";
}

// The summary reports whether operations are verified on this device, and one line reports how.
TEST(Delegate, SaysWhatIsVerified) {
  using npu::Unproven;
  const auto said = [](Unproven unproven, log::Level level) {
    auto state = std::make_shared<State>();
    state->options.log = level;
    state->options.session.partition = compile::PartitionBy::all;
    state->options.session.compile.unproven = unproven;
    state->target = std::move(runtime::open_target("sim:a311d")).value();
    const auto delegate = make_delegate(state);
    ir::Graph graph = convolution();
    for (const ir::TensorId id : {graph.inputs[0], graph.outputs[0]}) graph.tensor(id).shape = {1, 6, 5, 8};
    FakeHost host(graph);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(host.apply(&delegate->host), kTfLiteOk);
    return ::testing::internal::GetCapturedStderr();
  };
  const struct {
    Unproven unproven;
    std::string line;
  } kRows[] = {
      {Unproven::verify, "1 of 1 ops claimed, 1 partitions; 1 unproven, verified on this device\n"},
      {Unproven::take, "1 of 1 ops claimed, 1 partitions; 1 unproven, never seen right on silicon (unproven=take)\n"},
      {Unproven::refuse, "0 of 1 ops claimed, 0 partitions; log=info"},
  };
  for (const auto& row : kRows) {
    const std::string plain = said(row.unproven, log::Level::warning), more = said(row.unproven, log::Level::info);
    EXPECT_NE(plain.find(row.line), std::string::npos) << plain;
    const std::regex compared(
        "compared with the CPU in [0-9]+ ms: right on this device: [0-9]+ assumptions?, 1 part\n");
    const auto count = std::distance(std::sregex_iterator(more.begin(), more.end(), compared), std::sregex_iterator());
    EXPECT_EQ(count, row.unproven == Unproven::verify ? 1 : 0) << more;
  }
}

}  // namespace
}  // namespace skillet::delegate
