// Sessions whose device fails at a job, with and without a CPU fallback: each run is right or an error.
#include <map>

#include "kernels/api/forwarding_device.h"
#include "runtime/toy_session.h"

namespace skillet::runtime {
namespace {

constexpr int kRuns = 4, kJobsPerRun = 3;

// The toy accepts tensors without quantization; no CPU kernel does.
ir::Graph chain_without_cpu_kernels() {
  ir::Graph graph = chain();
  graph.tensor(kM).quant = graph.tensor(kR).quant = {};
  return graph;
}

// Without a zero point RELU changes nothing.
std::vector<Bytes> expected(const Inputs& inputs, bool has_kernels) {
  return has_kernels ? inputs.expected() : std::vector<Bytes>{inputs.expected_m(), inputs.expected_at_least(130)};
}

class DeviceFails : public ToySession, public ::testing::WithParamInterface<bool> {
 protected:
  // "right", an error's text, or a description of other results; one for each run.
  std::vector<std::string> outcomes(int good_jobs, bool allow_fallback) {
    state_.jobs_to_fault = -1;
    auto session =
        open(GetParam() ? chain() : chain_without_cpu_kernels(), target(), {.allow_fallback = allow_fallback});
    state_.jobs_to_fault = good_jobs;
    std::vector<std::string> texts;
    for (uint8_t seed = 0; seed < kRuns; ++seed) {
      const Inputs inputs(seed);
      const std::span<const uint8_t> spans[] = {inputs.x, inputs.y};
      auto ran = session->run(spans);
      texts.push_back(!ran.ok() ? ran.error().message : *ran == expected(inputs, GetParam()) ? "right" : "WRONG");
    }
    return texts;
  }
};

TEST_P(DeviceFails, AtAnyJob) {
  for (int good_jobs = 0; good_jobs < kRuns * kJobsPerRun; ++good_jobs) {
    SCOPED_TRACE(good_jobs);
    const auto failing_run = static_cast<size_t>(good_jobs / kJobsPerRun);
    const std::vector<std::string> texts = outcomes(good_jobs, true);
    for (size_t run = 0; run < texts.size(); ++run) {
      const bool stands_in = GetParam() || good_jobs % kJobsPerRun == 2;  // z has a kernel in both graphs
      if (run < failing_run || stands_in) {
        EXPECT_EQ(texts[run], "right") << "run " << run;
      } else {
        EXPECT_EQ(texts[run], texts[failing_run]) << "run " << run;
        EXPECT_NE(texts[run].find("the toy broke"), std::string::npos) << texts[run];
        EXPECT_NE(texts[run].find("; the CPU cannot run it either: "), std::string::npos) << texts[run];
        EXPECT_NE(texts[run].find("without quantization"), std::string::npos) << texts[run];
      }
    }
  }
}

TEST_P(DeviceFails, AtAnyJobWithoutFallback) {
  for (int good_jobs = 0; good_jobs < kRuns * kJobsPerRun; ++good_jobs) {
    const std::vector<std::string> texts = outcomes(good_jobs, false);
    for (int run = 0; run < kRuns; ++run) {
      const std::string& text = texts[static_cast<size_t>(run)];
      EXPECT_EQ(text == "right", run != good_jobs / kJobsPerRun) << good_jobs << ", run " << run << ": " << text;
      EXPECT_NE(text, "WRONG");
    }
  }
}

// A simulated chip abandons a job when the program is to end. That is no reason to stop using the chip.
TEST_F(ToySession, AJobThatAStopEndsIsNoFailureOfTheDevice) {
  auto session = open({});
  const Inputs inputs(1);
  const std::span<const uint8_t> spans[] = {inputs.x, inputs.y};
  state_.jobs_to_fault = 0;
  state_.stops_at_fault = true;
  const auto stopped = session->run(spans);
  state_.jobs_to_fault = -1;
  request_stop(0);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().message, "stopped by SIGINT");
  for (const PartReport& part : session->report().parts) EXPECT_EQ(part.fallback, "");
  const auto again = session->run(spans);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, inputs.expected());
}

// Why nothing can be read; empty: everything can be read.
std::string why_unreadable(Session& session) {
  const auto output = session.output(1);
  const auto tensor = session.tensor(kR);
  const auto layers = session.compare_layers();
  EXPECT_EQ(output.ok(), tensor.ok());
  EXPECT_EQ(output.ok(), layers.ok());
  if (output.ok()) return "";
  EXPECT_EQ(output.error().message, tensor.error().message);
  EXPECT_EQ(output.error().message, layers.error().message);
  return output.error().message;
}

TEST_F(ToySession, OnlyRunsThatSucceededHaveResults) {
  auto session = open({.allow_fallback = false});
  EXPECT_EQ(why_unreadable(*session), "nothing has run yet");
  run(*session, Inputs(1));
  EXPECT_EQ(why_unreadable(*session), "");
  state_.jobs_to_fault = 2;  // the first part has run
  EXPECT_FALSE(session->run().ok());
  EXPECT_EQ(why_unreadable(*session), "the last run failed");
  run(*session, Inputs(2));
  EXPECT_EQ(why_unreadable(*session), "");

  const Inputs inputs(3);
  std::vector<Bytes> outputs(2, Bytes(kElems));
  const std::span<const uint8_t> in[] = {inputs.x, inputs.y};
  const std::span<uint8_t> out[] = {outputs[0], outputs[1]};
  ASSERT_TRUE(session->run_on(in, out).ok());
  EXPECT_EQ(why_unreadable(*session), "the last run used the caller's memory");
  state_.jobs_to_fault = 0;
  EXPECT_FALSE(session->run_on(in, out).ok());
  EXPECT_EQ(why_unreadable(*session), "the last run failed");
}

// A device on which one call runs out of memory.
class FullDevice : public kernels::ForwardingDevice {
 public:
  FullDevice(std::unique_ptr<Device> inner, int& calls_before)
      : ForwardingDevice(std::move(inner)), left_(calls_before) {}
  Result<kernels::Handle> alloc(uint64_t size_bytes) override { return fill(), ForwardingDevice::alloc(size_bytes); }
  Result<kernels::Handle> alloc_commands(uint64_t size_bytes) override {
    return fill(), ForwardingDevice::alloc_commands(size_bytes);
  }
  Result<std::span<uint8_t>> map(kernels::Handle handle) override { return fill(), ForwardingDevice::map(handle); }
  Result<kernels::JobId> prepare(const kernels::Job& job) override { return fill(), ForwardingDevice::prepare(job); }
  Result<kernels::Fence> submit(std::span<const kernels::JobId> jobs) override {
    return fill(), ForwardingDevice::submit(jobs);
  }

 private:
  void fill() {
    if (left_-- == 0) throw std::bad_alloc();
  }
  int& left_;
};

// Memory may run out at any call, also while a program is loaded: the CPU takes over, and the device works for the next
// session.
TEST_F(ToySession, WithoutMemoryTheCpuStandsIn) {
  int left = -1;
  target();
  target_.context->device = std::make_unique<FullDevice>(std::move(target_.context->device), left);
  int fell_back = 0;
  for (int calls = 0;; ++calls) {
    ASSERT_LT(calls, 1000);
    left = calls;
    auto session = open();
    ASSERT_NE(session, nullptr) << calls;
    const Inputs inputs(static_cast<uint8_t>(calls));
    EXPECT_EQ(run(*session, inputs), inputs.expected()) << calls;
    const bool was_full = left < 0;
    left = -1;
    session = open({.allow_fallback = false});
    ASSERT_NE(session, nullptr) << calls;
    EXPECT_EQ(run(*session, inputs), inputs.expected()) << calls;
    if (!was_full) break;
    ++fell_back;
  }
  EXPECT_GT(fell_back, 6);
}

// Counts allocations and frees. One call fails, and the first submissions may be lost, as when another program's job
// makes the NPU hang.
class CountedDevice : public kernels::ForwardingDevice {
 public:
  struct Counts {
    int calls_left = -1;
    int lost = 0, submitted = 0;  // submissions
    std::map<kernels::Handle, int> buffers, accesses;
    std::map<kernels::JobId, int> jobs;

    // Empty; or the objects that were not freed, or freed twice.
    std::string left() const {
      std::string out;
      for (const auto& [handle, count] : buffers) out += count == 0 ? "" : fmt::format(" buffer {}: {}", handle, count);
      for (const auto& [handle, count] : accesses)
        out += count == 0 ? "" : fmt::format(" access {}: {}", handle, count);
      for (const auto& [id, count] : jobs) out += count == 0 ? "" : fmt::format(" job {}: {}", id, count);
      return out;
    }
  };
  CountedDevice(std::unique_ptr<Device> inner, Counts& counts) : ForwardingDevice(std::move(inner)), c_(counts) {}

  Result<kernels::Handle> alloc(uint64_t size_bytes) override {
    SK_TRY(call());
    return taken(ForwardingDevice::alloc(size_bytes));
  }
  Result<kernels::Handle> alloc_commands(uint64_t size_bytes) override {
    SK_TRY(call());
    return taken(ForwardingDevice::alloc_commands(size_bytes));
  }
  Result<void> free(kernels::Handle handle) override {
    --c_.buffers[handle];
    return ForwardingDevice::free(handle);
  }
  Result<std::span<uint8_t>> map(kernels::Handle handle) override {
    SK_TRY(call());
    return ForwardingDevice::map(handle);
  }
  Result<void> begin_cpu(kernels::Handle handle, bool write) override {
    SK_TRY(call());
    ++c_.accesses[handle];
    return ForwardingDevice::begin_cpu(handle, write);
  }
  Result<void> end_cpu(kernels::Handle handle) override {
    --c_.accesses[handle];
    SK_TRY(ForwardingDevice::end_cpu(handle));
    return call();
  }
  Result<kernels::JobId> prepare(const kernels::Job& job) override {
    SK_TRY(call());
    auto id = ForwardingDevice::prepare(job);
    if (id.ok()) ++c_.jobs[*id];
    return id;
  }
  void release(kernels::JobId id) override {
    --c_.jobs[id];
    ForwardingDevice::release(id);
  }
  Result<kernels::Fence> submit(std::span<const kernels::JobId> jobs) override {
    SK_TRY(call());
    ++c_.submitted;
    is_lost_ = c_.lost > 0;
    if (is_lost_) return --c_.lost, kernels::Fence{};
    return ForwardingDevice::submit(jobs);
  }
  Result<void> wait(kernels::Fence fence, std::chrono::nanoseconds timeout) override {
    if (is_lost_) return {};
    SK_TRY(ForwardingDevice::wait(fence, timeout));
    return call();
  }
  bool loses_jobs() const override { return true; }

 private:
  Result<void> call() {
    if (c_.calls_left-- == 0) return error(ErrorCode::device, "call refused");
    return {};
  }
  Result<kernels::Handle> taken(Result<kernels::Handle> handle) {
    if (handle.ok()) ++c_.buffers[*handle];
    return handle;
  }
  Counts& c_;
  bool is_lost_ = false;  // the last submission
};

// Whichever call fails: each run is right or an error, the next one too, and in the end everything is freed once.
TEST_F(ToySession, GivesEverythingBackWhereverACallFails) {
  CountedDevice::Counts counts;
  target();
  target_.context->device = std::make_unique<CountedDevice>(std::move(target_.context->device), counts);
  for (const bool allow_fallback : {true, false}) {
    int failures = 0;
    for (int calls = 0;; ++calls) {
      SCOPED_TRACE(calls);
      ASSERT_LT(calls, 1000);
      counts.calls_left = calls;
      auto session = Session::create(chain(), target_, {.allow_fallback = allow_fallback});
      EXPECT_TRUE(session.ok() || !allow_fallback);
      for (uint8_t run = 0; run < 3 && session.ok(); ++run) {
        const Inputs inputs(run);
        const std::span<const uint8_t> spans[] = {inputs.x, inputs.y};
        const auto outputs = (*session)->run(spans);
        EXPECT_TRUE(outputs.ok() || !allow_fallback);
        if (outputs.ok()) {
          EXPECT_EQ(*outputs, inputs.expected());
        } else {
          EXPECT_NE(outputs.error().message.find("call refused"), std::string::npos) << outputs.error().message;
        }
      }
      if (session.ok()) session->reset();
      EXPECT_EQ(counts.left(), "");
      if (counts.calls_left >= 0) break;
      ++failures;
    }
    EXPECT_GT(failures, 30);
  }
}

// Lost jobs run once more, with their inputs and the initialisation, which is a submission too; jobs lost twice give an
// error.
TEST_F(ToySession, WhatWasLostRunsOnceMore) {
  CountedDevice::Counts counts;
  target();
  target_.context->device = std::make_unique<CountedDevice>(std::move(target_.context->device), counts);
  for (const int lost : {0, 1, 2, 3}) {
    auto session = open(chain_of_one(), target_, {.allow_fallback = false});
    const Inputs inputs(5);
    const std::span<const uint8_t> spans[] = {inputs.x};
    ASSERT_TRUE(session->run(spans).ok());
    counts.submitted = 0;
    counts.lost = lost;
    const Inputs next(9);
    const std::span<const uint8_t> next_spans[] = {next.x};
    const auto ran = session->run(next_spans);
    EXPECT_EQ(ran.ok(), lost < 3);
    if (ran.ok()) {
      Bytes wanted = next.x;
      for (uint8_t& byte : wanted) byte = std::max<uint8_t>(byte, 100);
      EXPECT_EQ((*ran)[0], wanted);
    } else {
      EXPECT_NE(ran.error().message.find("did not write its output: the NPU hung"), std::string::npos)
          << ran.error().message;
    }
    EXPECT_EQ(counts.lost, 0);
    EXPECT_EQ(counts.submitted, lost == 0 ? 1 : 3);
    EXPECT_TRUE(session->run(spans).ok()) << "the one after it";
    session.reset();
    EXPECT_EQ(counts.left(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceFails, ::testing::Bool(),
                         [](const auto& cpu) { return cpu.param ? "StandsIn" : "HasNoKernels"; });

// Jobs end only when the test allows it; counts the CPU accesses to buffers meanwhile.
class SlowDevice : public kernels::ForwardingDevice {
 public:
  struct State {
    bool hangs = false;
    int waits = 0, looks = 0;
  };
  SlowDevice(std::unique_ptr<Device> inner, State& state) : ForwardingDevice(std::move(inner)), state_(state) {}
  Result<void> begin_cpu(kernels::Handle handle, bool write) override {
    state_.looks += state_.hangs && state_.waits > 0 ? 1 : 0;
    return ForwardingDevice::begin_cpu(handle, write);
  }
  Result<void> wait(kernels::Fence fence, std::chrono::nanoseconds timeout) override {
    state_.waits += state_.hangs ? 1 : 0;
    EXPECT_EQ(timeout, std::chrono::milliseconds(40));
    if (state_.hangs) return error(ErrorCode::timeout, "it hangs");
    return ForwardingDevice::wait(fence, timeout);
  }

 private:
  State& state_;
};

// The kernel waits for a job before it allows access to its buffers, without our time limit.
TEST_F(ToySession, WaitsForAnOverdueJobNoLongerThanForAnyOther) {
  SlowDevice::State state;
  target();
  target_.context->device = std::make_unique<SlowDevice>(std::move(target_.context->device), state);
  auto session = Session::create(chain(), target_, {.allow_fallback = false, .timeout = std::chrono::milliseconds(40)});
  ASSERT_TRUE(session.ok()) << session.error().message;
  const Inputs inputs(3);
  const std::span<const uint8_t> spans[] = {inputs.x, inputs.y};
  for (const bool hangs : {false, true, true, true, false}) {
    state = {.hangs = hangs, .waits = state.waits, .looks = 0};
    const auto outputs = (*session)->run(spans);
    ASSERT_EQ(outputs.ok(), !hangs);
    EXPECT_EQ(state.looks, 0);
    if (hangs) {
      EXPECT_EQ(outputs.error().code, ErrorCode::timeout);
    } else {
      EXPECT_EQ(*outputs, inputs.expected());
    }
  }
  EXPECT_EQ(state.waits, 3);
}

}  // namespace
}  // namespace skillet::runtime
