// Each kernel call failing in each way, under a whole session: the result is right (on the CPU if necessary), or the
// error names what was tried and what to do. Nothing hangs or crashes.
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

#include "base/bytes.h"
#include "base/testing/in_tree.h"
#include "graph/import/import.h"
#include "kernels/api/drm_file.h"
#include "kernels/kernel_node.h"
#include "runtime/session.h"

namespace skillet::testing {
namespace {

const std::string kCase = skillet::in_tree("tests/captures/a311d_conv1x1_relu6_u8/");

// The visible outcome of one run.
struct Outcome {
  std::string kind;  // "npu", "cpu", "error"
  std::string text;  // the error, or the reason for using the CPU
};

Bytes file(const std::string& name) {
  auto bytes = read_file(kCase + name);
  EXPECT_TRUE(bytes.ok()) << name;
  return bytes.ok() ? std::move(bytes).value() : Bytes{};
}

int largest_difference(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  EXPECT_EQ(a.size(), b.size());
  int largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// Runs the model twice; the chip rounds differently, by at most one step from the reference.
Outcome run_model(const KernelNode& node, bool allow_fallback, std::optional<std::chrono::milliseconds> timeout = {}) {
  static const Bytes input = file("input_0.bin"), expected = file("output_0.bin");
  auto target = node.target();
  if (!target.ok()) return {"error", target.error().message};
  auto graph = tflite::import_file(kCase + "model.tflite");
  EXPECT_TRUE(graph.ok());
  runtime::SessionOptions options;
  options.allow_fallback = allow_fallback;
  if (timeout) options.timeout = *timeout;
  auto session = runtime::Session::create(std::move(graph).value(), *target, options);
  if (!session.ok()) return {"error", session.error().message};
  EXPECT_TRUE((*session)->set_input(0, input).ok());
  for (int i = 0; i < 2; ++i) {
    if (const auto ran = (*session)->run(); !ran.ok()) return {"error", ran.error().message};
    const std::string& fallback = (*session)->report().parts.at(0).fallback;
    EXPECT_LE(largest_difference((*session)->output(0).value(), expected), fallback.empty() ? 1 : 0);
  }
  const auto& part = (*session)->report().parts.at(0);
  return part.on_npu && part.fallback.empty() ? Outcome{"npu", ""} : Outcome{"cpu", part.fallback};
}

struct Call {
  const char* name;      // as in a FaultPlan
  int first;             // the first call that fails
  const char* expected;  // "error": when opening; "cpu"; "npu": the result does not depend on the call
};
const Call kCalls[] = {
    {"open", 1, "error"},       {"version", 1, "error"},    {"get_param", 1, "error"},
    {"get_param", 4, "error"},  // of an id
    {"gem_new", 1, "cpu"},      {"gem_new", 3, "cpu"},      {"gem_info", 1, "cpu"},
    {"mmap", 2, "cpu"},         {"gem_cpu_prep", 1, "cpu"},  // of loading
    {"gem_cpu_prep", 7, "cpu"},                              // of the second run
    {"gem_cpu_fini", 1, "cpu"}, {"submit", 1, "cpu"},        // of the set-up
    {"submit", 2, "cpu"},                                    // of the first run
    {"submit", 3, "cpu"},                                    // of the second run
    {"wait_fence", 1, "cpu"},   {"wait_fence", 3, "cpu"},    // of the second run
    {"gem_close", 1, "npu"},
};
const int kErrors[] = {ENOMEM, ENODEV, EACCES, EPERM, ETIMEDOUT, EIO, EINVAL, EBUSY, ENOSPC};

void print_row(const std::string& faults, const Outcome& outcome) {
  std::printf("%-26s -> %-5s %s\n", faults.c_str(), outcome.kind.c_str(), outcome.text.c_str());
}

TEST(Faults, EachCallInEachWay) {
  for (const Call& call : kCalls) {
    for (const int number : kErrors) {
      const std::string name = kernels::errno_name(number);
      const std::string faults = fmt::format("{}:{}-*:{}", call.name, call.first, name);
      SCOPED_TRACE(faults);
      const KernelNode node(faults);
      const auto start = node.calls()->now();
      const Outcome outcome = run_model(node, true);
      EXPECT_LT(node.calls()->now() - start, std::chrono::seconds(20));
      print_row(faults, outcome);
      EXPECT_EQ(outcome.kind, call.expected) << outcome.text;
      if (outcome.kind == "npu") continue;
      EXPECT_NE(outcome.text.find(std::string(kNode) + ": "), std::string::npos);
      EXPECT_NE(outcome.text.find(": " + name + " ("), std::string::npos);
      EXPECT_NE(outcome.text.find("): "), std::string::npos) << "no advice";
    }
  }
}

TEST(Faults, InterruptedCallsAreRepeated) {
  for (const Call& call : kCalls) {
    if (call.name == std::string("mmap")) continue;  // never interrupted
    for (const char* name : {"EINTR", "EAGAIN"}) {
      const std::string faults = fmt::format("{}:{}-{}:{}", call.name, call.first, call.first + 4, name);
      const Outcome outcome = run_model(KernelNode(faults), false);
      print_row(faults, outcome);
      EXPECT_EQ(outcome.kind, "npu") << faults << ": " << outcome.text;
    }
  }
  // ENOSPC until the kernel has released the buffers of finished jobs.
  EXPECT_EQ(run_model(KernelNode("submit:2-12:ENOSPC"), false).kind, "npu");
  // Also with the longest timeouts.
  for (const auto timeout : {std::chrono::milliseconds::max(), std::chrono::milliseconds(INT64_MAX / 1'000'000)})
    EXPECT_EQ(run_model(KernelNode("wait_fence:1-12:EINTR"), false, timeout).kind, "npu") << timeout.count();
  const Outcome outcome = run_model(KernelNode("submit:2-*:EAGAIN"), true);
  print_row("submit:2-*:EAGAIN", outcome);
  EXPECT_EQ(outcome.kind, "cpu");
}

// After a reset the kernel reports success, and the output was not written.
TEST(Faults, HungAndResetJobsAreNoticed) {
  Outcome outcome = run_model(KernelNode("submit:*:reset"), true);
  print_row("submit:*:reset", outcome);
  EXPECT_EQ(outcome.kind, "cpu");
  EXPECT_NE(outcome.text.find("did not write its output"), std::string::npos) << outcome.text;
  outcome = run_model(KernelNode("submit:*:reset"), false);
  EXPECT_EQ(outcome.kind, "error");

  outcome = run_model(KernelNode("submit:1-2:reset"), false);  // the set-up and the first job
  print_row("submit:1-2:reset", outcome);
  EXPECT_EQ(outcome.kind, "npu") << outcome.text;

  const KernelNode node("submit:*:hang");
  const auto start = node.calls()->now();
  outcome = run_model(node, true);
  print_row("submit:*:hang", outcome);
  EXPECT_EQ(outcome.kind, "cpu");
  EXPECT_NE(outcome.text.find("waiting up to 10000 ms for job 'init': ETIMEDOUT"), std::string::npos) << outcome.text;
  EXPECT_LT(node.calls()->now() - start, std::chrono::seconds(20));
}

// Tensors in shared buffers, used in place on a kernel device; lost jobs are noticed there too.
TEST(Shared, TensorsInPlace) {
  // The first job is the set-up, which is repeated after a lost job. The third run loses its job once, the fourth
  // permanently.
  const KernelNode node("submit:4:reset,submit:7-*:reset");
  auto target = node.target();
  ASSERT_TRUE(target.ok());
  auto session = runtime::Session::create(tflite::import_file(kCase + "model.tflite").value(), *target);
  ASSERT_TRUE(session.ok());
  const Bytes input = file("input_0.bin"), expected = file("output_0.bin");
  auto& context = *target->context;
  const auto in = context.shared.alloc(*context.device, input.size()).value().bytes;
  const auto out = context.shared.alloc(*context.device, expected.size()).value().bytes;
  const std::span<const uint8_t> inputs[] = {in};
  const std::span<uint8_t> outputs[] = {out};
  std::ranges::copy(input, in.begin());
  for (int run = 0; run < 4; ++run) {
    std::ranges::fill(out, uint8_t{0});
    const auto ran = (*session)->run_on(inputs, outputs);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_LE(largest_difference(out, expected), 1) << run;
    const auto& part = (*session)->report().parts.at(0);
    EXPECT_EQ(part.copied_bytes, 0u);
    EXPECT_EQ(part.fallback.empty(), run < 3) << part.fallback;
  }
}

TEST(Faults, WithoutFallbackTheErrorComesOut) {
  const Outcome outcome = run_model(KernelNode("submit:2-*:ENODEV"), false);
  EXPECT_EQ(outcome.kind, "error");
  EXPECT_NE(outcome.text.find("submitting"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("ENODEV"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace skillet::testing
