// Files that share the cores of the emulated rocket kernel driver.
#include "rocket_node.h"

namespace skillet::testing {
namespace {

// One core and a file that keeps it busy: another file's job does not wait for all of the first file's jobs.
TEST_F(Rocket, ACoreGoesFromFileToFile) {
  start("", fake::OnFault::reset, 1);
  const auto busy = open(), late = open();
  const Chain many = chain(*busy, 10), one = chain(*late, 1);
  const std::vector<kernels::JobId> jobs(20, many.job);
  const kernels::Fence all = busy->submit(jobs).value();
  EXPECT_TRUE(late->wait(late->submit({&one.job, 1}).value(), milliseconds(1000)).ok());
  EXPECT_FALSE(busy->wait(all, milliseconds(0)).ok()) << "the late one was the last one";
  EXPECT_TRUE(busy->wait(all, milliseconds(1000)).ok());
  EXPECT_EQ(byte(*busy, many, 10), 10);
}

// The other cores go on computing.
TEST_F(Rocket, OnlyTheCoreOfAStalledJobIsReset) {
  start();
  const auto first = open(), second = open();
  const Chain fine = chain(*first, 100), stalls = chain(*second, 0);
  const kernels::Fence computed = first->submit({&fine.job, 1}).value();
  EXPECT_TRUE(second->wait(second->submit({&stalls.job, 1}).value(), milliseconds(5000)).ok());
  EXPECT_TRUE(first->wait(computed, milliseconds(1000)).ok());
  EXPECT_EQ(resets_, std::vector<uint32_t>{1});
  EXPECT_EQ(byte(*first, fine, 100), 100);
}

// Among cores with equally many files, the first. The reset of a core shows which one a job used.
TEST_F(Rocket, AFileTakesTheCoreThatFewestOthersHave) {
  start("job:1:reset,job:3:reset,job:5:reset,job:8:reset");
  std::vector<std::unique_ptr<kernels::Device>> files;
  std::vector<std::pair<kernels::Device*, kernels::Fence>> running;
  const auto begin = [&](uint32_t steps) {
    files.push_back(open());
    const Chain one = chain(*files.back(), steps);
    running.emplace_back(files.back().get(), files.back()->submit({&one.job, 1}).value());
  };
  const auto core_of_reset = [&]() {
    begin(1);
    EXPECT_TRUE(running.back().first->wait(running.back().second, milliseconds(5000)).ok());
    return resets_.back();
  };
  for (const uint32_t idle : {0U, 1U, 2U}) {
    EXPECT_EQ(core_of_reset(), idle);
    begin(300);
  }
  begin(300);  // the second file of core 0
  EXPECT_EQ(core_of_reset(), 1);
  EXPECT_EQ(resets_.size(), 4U);
  for (const auto& [file, fence] : running) EXPECT_TRUE(file->wait(fence, milliseconds(60000)).ok());
}

// A job is lost with a reset, or runs after a reset caused by another process's job.
TEST_F(Rocket, ResetsThatAreAskedForHappen) {
  for (const auto& [fault, value] : {std::pair{"job:1:reset", 0}, {"job:1:reset_before", 2}}) {
    start(fault);
    resets_.clear();
    const auto device = open();
    const Chain one = chain(*device, 2);
    EXPECT_TRUE(device->wait(device->submit({&one.job, 1}).value(), milliseconds(1000)).ok()) << fault;
    EXPECT_EQ(resets_, std::vector<uint32_t>{0}) << fault;
    EXPECT_EQ(byte(*device, one, 2), value) << fault;
  }
}

// One wait covers all jobs of a submission.
TEST_F(Rocket, ASubmissionEndsWithTheLastOfItsJobs) {
  start();
  const auto device = open();
  const Chain brief = chain(*device, 1), longer = chain(*device, 40);
  const kernels::JobId jobs[] = {brief.job, longer.job};
  EXPECT_TRUE(device->wait(device->submit(jobs).value(), milliseconds(1000)).ok());
  EXPECT_EQ(device->map(longer.data).value()[40], 40);
}

// On a chip whose cores disturb each other, a file that waits for one submission keeps its turn for its other one.
TEST_F(Rocket, ATurnLastsUntilNoJobIsLeft) {
  start("", fake::OnFault::reset, 2);
  const kernels::Core core{
      .info = {.kernel_driver = "rocket", .node = kNode, .compatible = "rockchip,rk3576-rknn-core", .facts = {}}};
  const auto first = kernels::rocket::open_device(core, calls_), second = kernels::rocket::open_device(core, calls_);
  ASSERT_TRUE(first.ok() && second.ok());
  const Chain brief = chain(**first, 1), longer = chain(**first, 50), one = chain(**second, 1);
  const kernels::Fence ended = (*first)->submit({&brief.job, 1}).value(),
                       runs = (*first)->submit({&longer.job, 1}).value();
  EXPECT_TRUE((*first)->wait(ended, milliseconds(1000)).ok());
  std::thread other([&] {
    const auto fence = (*second)->submit({&one.job, 1});
    EXPECT_TRUE(fence.ok() && (*second)->wait(*fence, milliseconds(1000)).ok());
  });
  EXPECT_TRUE((*first)->wait(runs, milliseconds(1000)).ok());
  other.join();
  EXPECT_EQ(most_, 1) << "jobs ran at the same time";
}

TEST_F(Rocket, ATurnEndsWithASubmissionThatFails) {
  start("submit:1:EIO", fake::OnFault::reset, 2);
  const kernels::Core core{
      .info = {.kernel_driver = "rocket", .node = kNode, .compatible = "rockchip,rk3576-rknn-core", .facts = {}}};
  const auto first = kernels::rocket::open_device(core, calls_), second = kernels::rocket::open_device(core, calls_);
  ASSERT_TRUE(first.ok() && second.ok());
  const Chain fails = chain(**first, 1), runs = chain(**second, 1);
  EXPECT_FALSE((*first)->submit({&fails.job, 1}).ok());
  const auto fence = (*second)->submit({&runs.job, 1});
  ASSERT_TRUE(fence.ok()) << fence.error().message;
  EXPECT_TRUE((*second)->wait(*fence, milliseconds(1000)).ok());
}

// The next job begins when the one that stalls is reset, not when its time is over.
TEST_F(Rocket, AResetFreesTheCore) {
  std::chrono::steady_clock::duration least = std::chrono::hours(1);
  for (int i = 0; i < 3; ++i) {  // the host may be busy
    start("", fake::OnFault::reset, 1);
    const auto device = open();
    const Chain stalls = chain(*device, 0), runs = chain(*device, 1);
    const auto stalled = device->submit({&stalls.job, 1}).value();
    EXPECT_FALSE(device->wait(stalled, milliseconds(20)).ok());
    calls_->kernel().reset();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(device->wait(device->submit({&runs.job, 1}).value(), milliseconds(5000)).ok());
    least = std::min(least, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(least, milliseconds(200));
}

TEST_F(Rocket, AClosedFileHasNoTurn) {
  const auto calls = std::make_shared<fake::InProcess>(fake::rocket::create("rk3588", adder(), {}), kNode);
  const int first = calls->open(kNode), second = calls->open(kNode);
  EXPECT_EQ(calls->take_turn(first), 0);
  EXPECT_EQ(calls->take_turn(second), -EAGAIN);
  EXPECT_EQ(calls->close(first), 0);
  EXPECT_EQ(calls->take_turn(second), 0);
  EXPECT_EQ(calls->close(second), 0);
}

}  // namespace
}  // namespace skillet::testing
