// Programs of the RK3576 with their own memory, and their results on the simulated chip. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "npus/rockchip/hw/testing/rk3576_words.h"
#include "npus/rockchip/sim/device.h"

namespace skillet::sim::rockchip {

using npus::rockchip::testing::Shape;
using Words = std::map<uint32_t, uint32_t>;

constexpr uint32_t kCommandsAt = 0x100000, kInputAt = 0x1000000, kWeightsAt = 0x2000000, kOperandsAt = 0x3000000,
                   kOutputAt = 0x4000000;

struct Ran {
  std::vector<uint8_t> out;
  std::string problem;
};

constexpr size_t kSmallBytes = 1 << 20, kLargeBytes = 8 << 20;

// The same in all runs, and only read: random ones, then zeros.
inline std::vector<uint8_t>& random_weights() {
  static std::vector<uint8_t> weights = [] {
    std::vector<uint8_t> bytes(kLargeBytes);
    std::mt19937 random(7);
    for (size_t i = 0; i < kSmallBytes; ++i) bytes[i] = static_cast<uint8_t>(random());
    return bytes;
  }();
  return weights;
}

// Nothing is added to sums, and they are multiplied by 1.
inline const std::vector<uint8_t>& plain_operands() {
  static const std::vector<uint8_t> operands = [] {
    constexpr size_t kGroup = 64, kMultipliersAt = 48;
    std::vector<uint8_t> bytes(kSmallBytes);
    for (size_t i = 0; i < kSmallBytes; i += 2) bytes[i] = i % kGroup >= kMultipliersAt ? 1 : 0;
    return bytes;
  }();
  return operands;
}

// Weights are random, sums are not multiplied.
struct Buffers {
  std::vector<uint8_t>& weights = random_weights();
  std::vector<uint8_t> commands, in, operands, out;
  std::vector<Commands> tasks;
  Memory memory;

  Buffers(const std::vector<Words>& programs, uint32_t enable, const std::vector<uint8_t>& input)
      : in(input), operands(plain_operands()) {
    constexpr uint32_t kTaskBytes = 0x1000;
    commands.resize(programs.size() * kTaskBytes), in.resize(kSmallBytes), out.resize(kSmallBytes, 0x5A);
    for (const Words& program : programs) add(program, enable, tasks.size() * kTaskBytes);
    const auto map = [&](uint64_t at, std::vector<uint8_t>& bytes) {
      EXPECT_TRUE(memory.map(at, bytes, "buffer").ok());
    };
    map(kCommandsAt, commands), map(kInputAt, in), map(kWeightsAt, weights), map(kOperandsAt, operands);
    map(kOutputAt, out);
  }

 private:
  void add(const Words& program, uint32_t enable, size_t at) {
    constexpr uint64_t kTargets[] = {0, 0x0201, 0, 0x0801, 0x1001, 0x2001, 0x4001, 0x8001};
    std::vector<uint64_t> words;
    for (const auto& [address, value] : program)
      words.push_back(kTargets[address >> 12] << 48 | uint64_t{value} << 16 | address);
    words.insert(words.end(), {0, uint64_t{0x0101} << 48 | 0x0014, uint64_t{0x0041} << 48,
                               uint64_t{0x0081} << 48 | uint64_t{enable} << 16 | 0x0008});
    for (size_t w = 0; w < words.size(); ++w) store_le(commands.data() + at + w * 8, words[w]);
    tasks.push_back({.bytes = {}, .address = kCommandsAt + at, .size_bytes = words.size() * 8});
  }
};

// Runs one task after the other, with a reset after a task that never ends.
inline Ran run(const std::vector<Words>& programs, uint32_t enable, const std::vector<uint8_t>& input,
               const Options& options = {}) {
  Buffers buffers(programs, enable, input);
  const auto npu = Npu::create("rk3576", options);
  std::string problem;
  for (const Commands& task : buffers.tasks) {
    const auto done = (*npu)->run_task(0,
                                       {.regcmd = task.address,
                                        .regcmd_count = static_cast<uint32_t>(task.size_bytes / 8),
                                        .first_of_job = &task == buffers.tasks.data(),
                                        .loses_weights = options.loses_weights_at_once},
                                       buffers.memory);
    if (problem.empty()) problem = done.ok() ? done->stall : done.error().message;
    if (done.ok() && !done->stall.empty()) (*npu)->reset(0);
  }
  return {std::move(buffers.out), problem};
}

inline Words placed(Words words) {
  words[0x1088] += kInputAt, words[0x1110] = kWeightsAt, words[0x4018] += kOutputAt;
  words[0x5020] = kOperandsAt, words[0x5024] = kOperandsAt + 0x80000;
  return words;
}

}  // namespace skillet::sim::rockchip
