// Damaged files: importing never crashes, and reports why it refuses. Best run with a sanitizer.
#include <gtest/gtest.h>

#include <random>

#include "base/testing/in_tree.h"
#include "graph/import/import.h"

namespace skillet::tflite {
namespace {

class Mutation : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto file = read_file(skillet::in_tree("tests/models/") + GetParam());
    ASSERT_TRUE(file.ok()) << file.error().message;
    file_ = *std::move(file);
    ASSERT_TRUE(import(file_, "m").ok());
  }

  // True when the file was accepted.
  static bool check(std::span<const uint8_t> file) {
    const auto graph = import(file, "m");
    if (!graph.ok()) {
      EXPECT_GT(graph.error().message.size(), std::string_view("model 'm': ").size());
      return false;
    }
    EXPECT_TRUE(ir::verify(*graph).ok());
    EXPECT_TRUE(ir::parse(ir::print(*graph)).ok());
    return true;
  }

  Bytes file_;
};

TEST_P(Mutation, EveryPrefix) {
  for (size_t size = 0; size < file_.size(); ++size) check(std::span(file_).first(size));
  EXPECT_FALSE(check(std::span(file_).first(file_.size() / 2)));
}

TEST_P(Mutation, BitFlips) {
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    Bytes file = file_;
    for (int flips = 1 + i % 3; flips > 0; --flips)
      file[random() % file.size()] ^= static_cast<uint8_t>(1 << random() % 8);
    if (!check(file)) ++refused;
  }
  EXPECT_GT(refused, 100);
}

// Extreme values where a file has small integers: offsets, counts, dimensions, codes.
TEST_P(Mutation, ExtremeWords) {
  int refused = 0;
  for (size_t at = 0; at + 4 <= file_.size(); at += 4) {
    for (uint32_t word : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
      Bytes file = file_;
      store_le(&file[at], word);
      if (!check(file)) ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

INSTANTIATE_TEST_SUITE_P(Models, Mutation,
                         testing::Values("conv3x3_s2_u8.tflite", "fc64x10_i8.tflite", "concat2_i8.tflite",
                                         "state/counter.tflite", "state/sparse_blocks_i8.tflite"));

}  // namespace
}  // namespace skillet::tflite
