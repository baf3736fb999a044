// Threads of the emulated kernel driver rocket, and jobs for which the host has no memory.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <stdexcept>

#include "kernels/fake/kernels.h"
#include "kernels/fake/simulated.h"
#include "kernels/fake/testing/refused_threads.h"

namespace skillet::fake {
namespace {

using kernels::Handle;

// A chip that throws in some of its jobs.
class Thrower final : public sim::Device {
 public:
  using Throw = void (*)();
  explicit Thrower(Throw first) : throws_(first) {}
  Result<void> run(const sim::Job& /*job*/, const sim::Memory& /*memory*/) override {
    if (const Throw now = throws_.exchange(nullptr); now != nullptr) now();
    return {};
  }
  uint32_t cores() const override { return 3; }

 private:
  std::atomic<Throw> throws_;
};

// One open device of a chip, with a job of one buffer.
struct Opened {
  SimulatedCore simulated;
  std::unique_ptr<kernels::Device> device;
  kernels::JobId job = 0;

  Result<void> run() const {
    SK_TRY_ASSIGN(const kernels::Fence fence, device->submit({&job, 1}));
    return device->wait(fence, std::chrono::seconds(20));
  }
};

Opened open(SimulatedCore simulated) {
  Opened out{.simulated = std::move(simulated), .device = nullptr};
  out.device = kernels::open_core(out.simulated.core, out.simulated.calls).value();
  const Handle commands = out.device->alloc_commands(4096).value(), output = out.device->alloc(4096).value();
  out.job = out.device
                ->prepare({.name = "test",
                           .commands = {{commands, 0, 16}},
                           .buffers = {{.handle = output, .read = false, .write = true}}})
                .value();
  return out;
}

Opened open(const std::string& chip, Thrower::Throw first) {
  return open(core_of(std::make_unique<Thrower>(first), chip, "sim:" + chip).value());
}

std::string message(const Result<void>& result) { return result.ok() ? "" : result.error().message; }

TEST(Throwing, IsTheErrorOfItsJob) {
  struct Case {
    Thrower::Throw thrown;
    const char* message;
  };
  const Case cases[] = {{[] { throw std::bad_alloc(); }, "out of memory"},
                        {[] { throw std::length_error("a vector of 2^60 words"); }, "a vector of 2^60 words"}};
  for (const char* chip : {"rk3588", "a311d"}) {
    for (const Case& one : cases) {
      const Opened opened = open(chip, one.thrown);
      const std::string text = message(opened.run());
      EXPECT_NE(text.find(one.message), std::string::npos) << chip << ": " << text;
      EXPECT_EQ(message(opened.run()), "") << chip << ": the next job runs";
    }
  }
}

// For any thread: the submission fails, nothing waits for it, and the next one runs.
TEST(Threads, ThatCannotBeStartedFailTheSubmission) {
  if (!skillet::testing::can_refuse_threads()) GTEST_SKIP() << "sanitizers start threads themselves";
  for (int allowed = 0; allowed < 3; ++allowed) {
    const Opened opened = open("rk3588", nullptr);
    {
      const skillet::testing::RefusedThreads refused(allowed);
      const std::string text = message(opened.run());
      EXPECT_NE(text.find(fmt::format("the thread of core {} of 3 cannot be started", allowed)), std::string::npos)
          << text;
    }
    EXPECT_EQ(message(opened.run()), "") << allowed;
  }
}

// As in the device trees of boards.
TEST(Node, HasADeviceForEachCore) {
  const std::pair<const char*, std::vector<std::string>> kRows[] = {
      {"rk3588", {"fdab0000.npu", "fdac0000.npu", "fdad0000.npu"}}, {"rk3576", {"27700000.npu", "27708000.npu"}}};
  for (const auto& [chip, names] : kRows) {
    std::vector<std::string> shown;
    for (const NodePlace::Device& one : create_kernel(chip, nullptr, {})->place().cores) shown.push_back(one.name);
    EXPECT_EQ(shown, names) << chip;
  }
}

// A null device starts no threads: costs of a network can be computed even if no thread can be started.
TEST(Threads, AreNotNeededWhereNothingIsComputed) {
  if (!skillet::testing::can_refuse_threads()) GTEST_SKIP() << "sanitizers start threads themselves";
  const Opened opened = open(null_core("rk3588").value());
  const skillet::testing::RefusedThreads refused(0);
  EXPECT_EQ(message(opened.run()), "");
}

}  // namespace
}  // namespace skillet::fake
