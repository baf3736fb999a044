// Rocket: a node of the emulated rocket kernel driver in this process, with a chip defined by the tests, and jobs for
// it.
// Called by the tests of kernels/rocket/client.
// Must not know: how the device under test is written.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/fake/in_process.h"
#include "kernels/rocket/abi.h"
#include "kernels/rocket/client/rocket.h"
#include "kernels/rocket/fake/kernel.h"

namespace skillet::testing {

using std::chrono::milliseconds;
namespace abi = ::skillet::kernels::rocket;
namespace drm = ::skillet::kernels::drm;

// One task, which writes `data`. Both are borrowed.
inline abi::SubmitJob job_of(const abi::Task& task, const abi::CreateBo& data) {
  return {.tasks = reinterpret_cast<uintptr_t>(&task),
          .in_bo_handles = 0,
          .out_bo_handles = reinterpret_cast<uintptr_t>(&data.handle),
          .task_count = 1,
          .task_struct_size = sizeof task,
          .in_bo_handle_count = 0,
          .out_bo_handle_count = 1};
}

// A command is two addresses: it stores the byte at the first, plus one, at the second. Two zeros stall the chip.
class Adder : public sim::Device {
 public:
  Adder(std::atomic<int>& most, std::vector<uint32_t>& resets, uint32_t cores)
      : most_(most), resets_(resets), cores_(cores) {}
  uint32_t cores() const override { return cores_; }
  void reset(uint32_t core) override { resets_.push_back(core); }
  Result<void> run(const sim::Job& job, const sim::Memory& memory) override {
    most_ = std::max(most_.load(), ++running_);
    auto done = run_tasks(job, memory);
    --running_;
    return done;
  }

 private:
  Result<void> run_tasks(const sim::Job& job, const sim::Memory& memory) {
    for (const sim::Commands& task : job.commands) {
      for (uint64_t at = 0; at < task.size_bytes; at += 8) {
        SK_TRY_ASSIGN(const auto command, memory.at(task.address + at, 8, "command"));
        const auto from = load_le<uint32_t>(command.data()), to = load_le<uint32_t>(command.data() + 4);
        if (from == 0 && to == 0) return error(ErrorCode::timeout, "the chip waits");
        SK_TRY_ASSIGN(const auto source, memory.at(from, 1, "source"));
        SK_TRY_ASSIGN(const auto target, memory.at(to, 1, "target"));
        SK_TRY(memory.check_written(to, "target"));
        target[0] = static_cast<uint8_t>(source[0] + 1);
        std::this_thread::sleep_for(milliseconds(2));
      }
    }
    return {};
  }
  std::atomic<int>& most_;
  std::vector<uint32_t>& resets_;
  uint32_t cores_;
  std::atomic<int> running_{0};
};

inline constexpr const char* kNode = "/dev/accel/accel0";

class Rocket : public ::testing::Test {
 protected:
  std::unique_ptr<Adder> adder(uint32_t cores = 3) { return std::make_unique<Adder>(most_, resets_, cores); }
  void start(const std::string& faults = "", fake::OnFault on_fault = fake::OnFault::reset, uint32_t cores = 3,
             uint32_t schedule = 0, bool checks_lists = true) {
    fake::Options options{.faults = fake::FaultPlan::parse(faults).value(),
                          .on_fault = on_fault,
                          .is_own_process = true,
                          .checks_lists = checks_lists,
                          .schedule = schedule,
                          .on_misuse = on_misuse_,
                          .release_time = release_time_,
                          .clock = nullptr,
                          .extensions = extensions_};
    auto kernel = fake::rocket::create(chip_, adder(cores), std::move(options));
    calls_ = std::make_shared<fake::InProcess>(std::move(kernel), kNode);
  }
  std::unique_ptr<kernels::Device> open() {
    const kernels::Core core{.info = {.kernel_driver = "rocket", .node = kNode, .compatible = {}, .facts = {}}};
    auto device = kernels::rocket::open_device(core, calls_);
    EXPECT_TRUE(device.ok()) << device.error().message;
    return std::move(device).value();
  }
  // `steps` tasks of one command: each stores its byte plus one as the next byte of `data`. Zero: one task that stalls.
  struct Chain {
    kernels::Handle data = 0, commands = 0;
    kernels::JobId job = 0;
  };
  Chain chain(kernels::Device& device, uint32_t steps) {
    Chain out{.data = device.alloc(4096).value(), .commands = device.alloc_commands(16 * (steps + 1)).value()};
    const auto address = static_cast<uint32_t>(device.address(out.data).value());
    kernels::Job job{.name = "chain", .commands = {}, .buffers = {{out.data, true, true}}};
    auto bytes = device.map(out.commands).value();
    for (uint32_t i = 0; i < std::max(steps, 1U); ++i) {
      store_le(bytes.data() + 16 * i, steps == 0 ? 0 : address + i);
      store_le(bytes.data() + 16 * i + 4, steps == 0 ? 0 : address + i + 1);
      job.commands.push_back({out.commands, 16 * i, 8});
    }
    EXPECT_TRUE(device.end_cpu(out.commands).ok());
    out.job = device.prepare(job).value();
    return out;
  }
  uint8_t byte(kernels::Device& device, const Chain& chain, size_t at) {
    EXPECT_TRUE(device.begin_cpu(chain.data, false).ok());
    return device.map(chain.data).value()[at];
  }

  std::string chip_ = "adder";
  // For tests of calls that our clients never make.
  fake::OnMisuse on_misuse_ = fake::OnMisuse::abort;
  std::chrono::milliseconds release_time_ = fake::Options().release_time;
  std::atomic<int> most_{0};       // jobs that ran at the same time
  std::optional<int> extensions_;  // see fake::Options
  std::vector<uint32_t> resets_;   // the core of each, in order
  std::shared_ptr<fake::InProcess> calls_;
};

}  // namespace skillet::testing
