// Sessions whose device fails at a job, with and without a CPU that can stand in: each run is right or an error.
#include "runtime/toy_session.h"
#include "uapi/testing/forwarding_device.h"

namespace skillet::runtime {
namespace {

constexpr int kRuns = 4, kJobsPerRun = 3;

// The toy takes tensors without quantization; no CPU kernel does.
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
  // "right", an error's text, or what else came out; one for each run.
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

// Why there is nothing to read; empty when everything can be read.
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
  EXPECT_EQ(why_unreadable(*session), "the last run was on memory of the caller");
  state_.jobs_to_fault = 0;
  EXPECT_FALSE(session->run_on(in, out).ok());
  EXPECT_EQ(why_unreadable(*session), "the last run failed");
}

// A device of which one call finds no memory.
class FullDevice : public uapi::ForwardingDevice {
 public:
  FullDevice(std::unique_ptr<Device> inner, int& calls_before)
      : ForwardingDevice(std::move(inner)), left_(calls_before) {}
  Result<uapi::Handle> alloc(uint64_t size_bytes) override { return fill(), ForwardingDevice::alloc(size_bytes); }
  Result<uapi::Handle> alloc_commands(uint64_t size_bytes) override {
    return fill(), ForwardingDevice::alloc_commands(size_bytes);
  }
  Result<std::span<uint8_t>> map(uapi::Handle handle) override { return fill(), ForwardingDevice::map(handle); }
  Result<uapi::JobId> prepare(const uapi::Job& job) override { return fill(), ForwardingDevice::prepare(job); }
  Result<uapi::Fence> submit(std::span<const uapi::JobId> jobs) override {
    return fill(), ForwardingDevice::submit(jobs);
  }

 private:
  void fill() {
    if (left_-- == 0) throw std::bad_alloc();
  }
  int& left_;
};

// Wherever there is none, while a program is loaded too: the CPU does the work, and the device is fine for the next
// one.
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

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceFails, ::testing::Bool(),
                         [](const auto& cpu) { return cpu.param ? "StandsIn" : "HasNoKernels"; });

}  // namespace
}  // namespace skillet::runtime
