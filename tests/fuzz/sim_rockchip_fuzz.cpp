// Register commands and memory from fuzz bytes, into the Rockchip simulator. It must answer every input in bounded
// time, and its fast paths must give the results of its plain loops.
//
// The first byte selects: a valid program whose registers are patched by records of five bytes (register, value), or
// raw commands. The rest of the input, if any, is appended to the stream as raw commands.
#include <cstdio>
#include <cstdlib>

#include "npus/rockchip/sim/test_support.h"

namespace {

namespace rockchip = skillet::sim::rockchip;
using rockchip::testing::Program;
using rockchip::testing::Scene;
using skillet::load_le;

constexpr uint64_t kWorkLimit = uint64_t{1} << 16;
constexpr size_t kPatchBytes = 6, kPatchesMax = 32;

Program base_program(uint8_t which) {
  using rockchip::testing::Conv;
  switch (which % 6) {
    case 0: return rockchip::testing::conv_program({.in_h = 3, .in_w = 3, .out_h = 3, .out_w = 3, .kernel_w = 2});
    case 1:
      return rockchip::testing::conv_program(
          {.in_h = 3, .in_w = 3, .in_c = 40, .out_h = 3, .out_w = 3, .out_c = 40, .depthwise = true});
    case 2:
      return rockchip::testing::conv_program({.in_h = 4,
                                              .in_w = 4,
                                              .in_c = 16,
                                              .out_h = 4,
                                              .out_w = 4,
                                              .out_c = 32,
                                              .kernel_h = 1,
                                              .kernel_w = 1,
                                              .pad_top = 0,
                                              .pad_left = 0,
                                              .add = true});
    case 3:
      return rockchip::testing::per_channel_program(
          {.in_h = 2, .in_w = 2, .in_c = 16, .out_h = 2, .out_w = 2, .out_c = 32});
    case 4: return rockchip::testing::element_wise_program(24, 0x104202C0);
    default: return rockchip::testing::pool_program({});
  }
}

// Each record: a register, an operation on its value, the operand.
std::vector<uint64_t> patched_stream(std::span<const uint8_t>& data) {
  Program program = base_program(data[0] / 2);
  data = data.subspan(1);
  for (size_t i = 0; i < kPatchesMax && data.size() >= kPatchBytes; ++i, data = data.subspan(kPatchBytes)) {
    auto at = program.registers.begin();
    std::advance(at, data[0] % program.registers.size());
    const auto operand = load_le<uint32_t>(data.data() + 2);
    const uint32_t by_kind[] = {operand, at->second ^ operand, at->second + operand, at->second ^ 1U << operand % 32};
    at->second = by_kind[data[1] % 4];
  }
  return program.stream();
}

std::vector<uint64_t> stream_of(std::span<const uint8_t> data) {
  std::vector<uint64_t> words;
  if (data[0] % 2 == 0)
    words = patched_stream(data);
  else
    data = data.subspan(1);
  for (; data.size() >= 8 && words.size() < 1024; data = data.subspan(8))
    words.push_back(load_le<uint64_t>(data.data()));
  if (words.empty()) words.push_back(0);
  if (words.size() % 2 != 0) words.push_back(0);
  return words;
}

skillet::Result<skillet::Bytes> run(const std::vector<uint64_t>& words, uint32_t tasks, bool plain) {
  Scene scene(1, 0x3000);
  rockchip::Options options = rockchip::options_without_rules();  // rules would end most runs early
  options.reference_only = plain;
  options.max_macs_per_task = options.max_elements_per_task = kWorkLimit;
  auto npu = rockchip::Npu::create("rk3588", options);
  rockchip::Task task = scene.load(words);
  task.task_number = tasks;
  SK_TRY_ASSIGN(const auto result, (*npu)->run_task(0, task, scene.memory));
  if (!result.stall.empty()) return skillet::error(skillet::ErrorCode::timeout, "{}", result.stall);
  return scene.output();
}

void fail(const char* what, const std::string& detail) {
  std::fprintf(stderr, "%s: %s\n", what, detail.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::vector<uint64_t> words = stream_of({bytes, size});
  const uint32_t tasks = 1 + bytes[0] / 64;  // a stream may chain to itself
  const auto fast = run(words, tasks, false);
  const auto plain = run(words, tasks, true);
  if (fast.ok() != plain.ok()) fail("only one path faults", (fast.ok() ? plain : fast).error().message);
  if (fast.ok() && *fast != *plain) fail("different results", "fast and plain");
  return 0;
}
