// Each kernel call failing in each way, under a whole session: the result is right (the CPU stands in) or the error
// says what was tried and what to do. Nothing hangs, nothing crashes.
#include <gtest/gtest.h>

#include <cerrno>

#include "base/bytes.h"
#include "frontend/tflite/import.h"
#include "runtime/session.h"
#include "uapi/etnaviv_file.h"
#include "uapi/fake_kernel.h"

namespace skillet::testing {
namespace {

namespace kernel = uapi::etnaviv;
const std::string kCase = SKILLET_SOURCE_DIR "/tests/captures/a311d_conv1x1_relu6_u8/";

// What the outside sees of one run.
struct Outcome {
  std::string kind;  // "npu", "cpu", "error"
  std::string text;  // of the error, or why the CPU stood in
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

// Runs the model twice; the chip rounds in its own way, at most one step from the reference.
Outcome run_model(const std::string& device, bool allow_fallback) {
  static const Bytes input = file("input_0.bin"), expected = file("output_0.bin");
  auto target = runtime::open_target(device);
  if (!target.ok()) return {"error", target.error().message};
  auto graph = tflite::import_file(kCase + "model.tflite");
  EXPECT_TRUE(graph.ok());
  runtime::SessionOptions options;
  options.allow_fallback = allow_fallback;
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
  const char* name;
  unsigned long request;
  int skip;              // calls that succeed before
  const char* expected;  // "error": of opening; "cpu"; "npu": the result does not depend on it
};
const Call kCalls[] = {
    {"VERSION", kernel::kDrmVersion, 0, "error"},
    {"GET_PARAM", kernel::kGetParam, 0, "error"},
    {"GET_PARAM (of an id)", kernel::kGetParam, 3, "error"},
    {"GEM_NEW (first)", kernel::kGemNew, 0, "cpu"},
    {"GEM_NEW (third)", kernel::kGemNew, 2, "cpu"},
    {"GEM_INFO", kernel::kGemInfo, 0, "cpu"},
    {"mmap", kMmapFault, 1, "cpu"},
    {"GEM_CPU_PREP (load)", kernel::kGemCpuPrep, 0, "cpu"},
    {"GEM_CPU_PREP (second run)", kernel::kGemCpuPrep, 6, "cpu"},
    {"GEM_CPU_FINI", kernel::kGemCpuFini, 0, "npu"},
    {"GEM_SUBMIT (set-up)", kernel::kGemSubmit, 0, "cpu"},
    {"GEM_SUBMIT (first run)", kernel::kGemSubmit, 1, "cpu"},
    {"GEM_SUBMIT (second run)", kernel::kGemSubmit, 2, "cpu"},
    {"WAIT_FENCE", kernel::kWaitFence, 0, "cpu"},
    {"WAIT_FENCE (second run)", kernel::kWaitFence, 2, "cpu"},
    {"GEM_CLOSE", kernel::kGemClose, 0, "npu"},
};
const int kErrors[] = {ENOMEM, ENODEV, EACCES, EPERM, ETIMEDOUT, EIO, EINVAL, EBUSY, ENOSPC};

// The table; the node's path is in a folder made for the test.
void print_row(const FakeKernel& fake, const Call& call, const std::string& error, const Outcome& outcome) {
  std::string text = outcome.text;
  for (size_t at = 0; (at = text.find(fake.node(), at)) != std::string::npos;)
    text.replace(at, fake.node().size(), "NODE");
  std::printf("%-26s %-9s -> %-5s %s\n", call.name, error.c_str(), outcome.kind.c_str(), text.c_str());
}

TEST(Faults, EachCallInEachWay) {
  for (const Call& call : kCalls) {
    for (const int number : kErrors) {
      FakeKernel fake({kA311d});
      fake.faults = {{call.request, number, call.skip}};
      const std::string name = kernel::errno_name(number);
      SCOPED_TRACE(std::string(call.name) + " " + name);
      const auto start = std::chrono::steady_clock::now();
      const Outcome outcome = run_model(fake.node(), true);
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
      print_row(fake, call, name, outcome);
      EXPECT_EQ(outcome.kind, call.expected) << outcome.text;
      if (outcome.kind == "npu") continue;
      EXPECT_NE(outcome.text.find(fake.node() + ": "), std::string::npos);
      EXPECT_NE(outcome.text.find(": " + name + " ("), std::string::npos);
      EXPECT_NE(outcome.text.find("): "), std::string::npos) << "no advice";
    }
  }
}

TEST(Faults, InterruptedCallsAreRepeated) {
  for (const Call& call : kCalls) {
    if (call.request == kMmapFault) continue;
    for (const int number : {EINTR, EAGAIN}) {
      FakeKernel fake({kA311d});
      fake.faults = {{call.request, number, call.skip, 5}};
      const Outcome outcome = run_model(fake.node(), false);
      print_row(fake, call, kernel::errno_name(number), outcome);
      EXPECT_EQ(outcome.kind, "npu") << call.name << ": " << outcome.text;
    }
  }
  FakeKernel fake({kA311d});
  fake.faults = {{kernel::kGemSubmit, EAGAIN, 1}};
  const Outcome outcome = run_model(fake.node(), true);
  print_row(fake, {"GEM_SUBMIT (for ever)", 0, 0, ""}, "EAGAIN", outcome);
  EXPECT_EQ(outcome.kind, "cpu");
}

// After a reset the kernel reports success, and the output was not written.
TEST(Faults, HungAndResetJobsAreNoticed) {
  FakeKernel fake({kA311d});
  fake.hangs = true;
  Outcome outcome = run_model(fake.node(), true);
  print_row(fake, {"hang, then reset", 0, 0, ""}, "-", outcome);
  EXPECT_EQ(outcome.kind, "cpu");
  EXPECT_NE(outcome.text.find("left its output untouched"), std::string::npos) << outcome.text;
  outcome = run_model(fake.node(), false);
  EXPECT_EQ(outcome.kind, "error");

  fake.hangs = false;
  fake.lost = 2;  // the set-up and the first job
  outcome = run_model(fake.node(), false);
  print_row(fake, {"one reset, then well", 0, 0, ""}, "-", outcome);
  EXPECT_EQ(outcome.kind, "npu") << outcome.text;

  fake.busy = true;
  const auto start = std::chrono::steady_clock::now();
  outcome = run_model(fake.node(), true);
  print_row(fake, {"never finishes", 0, 0, ""}, "-", outcome);
  EXPECT_EQ(outcome.kind, "cpu");
  EXPECT_NE(outcome.text.find("ETIMEDOUT"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

// Tensors in shared buffers, in place on a kernel device; lost jobs are noticed there too.
TEST(Shared, TensorsInPlace) {
  FakeKernel fake({kA311d});
  auto target = runtime::open_target(fake.node());
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
    fake.lost = run == 2 ? 1 : run == 3 ? 100 : 0;
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
  FakeKernel fake({kA311d});
  fake.faults = {{kernel::kGemSubmit, ENODEV, 1}};
  const Outcome outcome = run_model(fake.node(), false);
  EXPECT_EQ(outcome.kind, "error");
  EXPECT_NE(outcome.text.find("submitting"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("ENODEV"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace skillet::testing
