// Programs for open questions, from made-up cases: each possible answer gives other results on the simulated chip.
#include "vendor_variants.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "base/testing/own_folder.h"
#include "npus/rockchip/hw/testing/rk3576_words.h"
#include "npus/rockchip/sim/device.h"
#include "vendor_capture.h"

namespace skillet::golden {
namespace {

using nlohmann::json;
using npus::rockchip::testing::Shape;
using npus::rockchip::testing::window_words;
using npus::rockchip::testing::words_of;
using sim::rockchip::Options;
using sim::rockchip::Tie;

// Makes programs of one operation, with random weights.
VendorCase case_of(const std::vector<std::map<uint32_t, uint32_t>>& programs, int32_t addend,
                   const std::string& folder) {
  constexpr uint64_t kTargets[] = {0, 0x0201, 0, 0x0801, 0x1001, 0x2001};
  constexpr int kGroups = 4, kGroup = 64, kChannels = 8, kFactorAt = 48;
  VendorCase c{
      .folder = folder, .j = {{"kind", "test"}, {"tasks", json::array()}, {"shift_word", "0x0e0e"}}, .program = {}};
  for (const auto& words : programs) {
    c.j["tasks"].push_back({{"op", 1},
                            {"blocks", "conv"},
                            {"enable", "0x1d"},
                            {"words", words.size()},
                            {"offset", c.program.size()},
                            {"cbuf_base", words.at(0x103C) & 0x3FFF}});
    for (const auto& [address, value] : words) {
      Bytes word(kWordBytes);
      store_le(word.data(), kTargets[address >> 12] << 48 | uint64_t{value} << 16 | address);
      c.program.insert(c.program.end(), word.begin(), word.end());
    }
  }
  Bytes weights(4096), coefficients(kGroups * kGroup);
  std::mt19937 random(5);
  for (uint8_t& byte : weights) byte = static_cast<uint8_t>(random());
  for (int i = 0; i < kGroups * kChannels; ++i) {
    store_le(&coefficients[static_cast<size_t>(i / kChannels * kGroup + i % kChannels * 4)], addend);
    store_le(&coefficients[static_cast<size_t>(i / kChannels * kGroup + kFactorAt + i % kChannels * 2)],
             int16_t{16384});
  }
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(write_file(folder + "/weights", weights).ok() && write_file(folder + "/coefficients", coefficients).ok());
  for (const char* const role : {"weights", "coefficients"})
    c.j["buffers"].push_back({{"role", role}, {"op", 1}, {"file", role}});
  return c;
}

// Returns the bytes that the tasks of the capture write.
Bytes run(const VendorCase& c, size_t tasks, const Options& options = {}) {
  const auto made = capture_of(c, "rockchip,rk3576-rknn-core");
  EXPECT_TRUE(made.ok()) << made.error().message;
  if (!made.ok()) return {};
  const capture::Submission& one = made->submissions.at(0);
  EXPECT_EQ(one.jobs.at(0).commands.size(), tasks);
  sim::Memory memory;
  std::map<uint32_t, Bytes> contents;
  for (const auto& buffer : one.buffers) {
    Bytes& bytes = contents[buffer.handle];
    bytes.assign(buffer.bytes.begin(), buffer.bytes.end());
    bytes.resize(buffer.size_bytes);
    EXPECT_TRUE(memory.map(buffer.address, bytes, "buffer").ok());
  }
  std::vector<sim::Commands> commands;
  for (const auto& list : one.jobs[0].commands)
    commands.push_back({.bytes = {}, .address = list.address, .size_bytes = list.size_bytes});
  const auto device = sim::rockchip::create_device("rk3576", options);
  const auto ran = (*device)->run({.commands = commands}, memory);
  EXPECT_TRUE(ran.ok()) << ran.error().message;
  const auto written = std::ranges::find(one.buffers, true, &capture::BufferSnapshot::write);
  return contents.at(written->handle);
}

TEST(VendorVariants, HalvesTellThreeRulesApart) {
  constexpr int32_t kFarAbove0 = 1 << 20;  // like all sums of the case with halves
  const VendorCase c = with_halves(case_of({words_of(Shape{.out_channels = 32})}, kFarAbove0, own_path("halves")));
  const Bytes even = run(c, 1), up = run(c, 1, {.product_tie = Tie::up}), away = run(c, 1, {.product_tie = Tie::away});
  ASSERT_FALSE(even.empty());
  int below_0 = 0, above_0 = 0;
  for (size_t i = 0; i < even.size(); ++i) {
    const int e = static_cast<int8_t>(even[i]), u = static_cast<int8_t>(up[i]), a = static_cast<int8_t>(away[i]);
    EXPECT_LE(std::max({e, u, a}) - std::min({e, u, a}), 1) << i;
    if (u != a) {
      EXPECT_LE(u, 0) << i;
    }
    below_0 += u != a, above_0 += e != u && u > 0;
  }
  EXPECT_GT(below_0, 100);
  EXPECT_GT(above_0, 100);
}

TEST(VendorVariants, AThirdWindowBeginsAmongRowsOfTheSecond) {
  const VendorCase two =
      case_of({window_words(0, 6, 0, 0, 5, 0), window_words(4, 6, 2, 5, 5, 8)}, 0, own_path("windows"));
  const VendorCase three = with_three_windows(two);
  const Bytes expected = run(two, 2);
  EXPECT_EQ(run(three, 3), expected);
  EXPECT_GT(std::set(expected.begin(), expected.begin() + 10 * 8 * 16).size(), 100U);
  for (size_t i = 1; i < 3; ++i) EXPECT_EQ(value_of(three.words(three.j["tasks"][i]), 0x1018) >> 31, 1U) << i;
}

}  // namespace
}  // namespace skillet::golden
