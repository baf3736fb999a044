// What the delegate says of the NPU's jobs with log=info.
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

}  // namespace
}  // namespace skillet::delegate
