#include "runtime/write_check.h"

#include <gtest/gtest.h>

#include <vector>

namespace skillet::runtime {
namespace {

std::vector<uint8_t> counting(size_t size) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i);
  return bytes;
}

TEST(WriteCheck, TellsAJobThatWroteFromOneThatDidNot) {
  for (const size_t size : {1, 7, 16, 100}) {
    WriteCheck check;
    std::vector<uint8_t> tensor(size);
    check.mark(tensor);
    check.job_ran();
    EXPECT_FALSE(check.settle(tensor)) << size;
    check.job_ran();
    EXPECT_FALSE(check.settle(tensor)) << "with the other mark";
    tensor = counting(size);
    check.job_ran();
    EXPECT_TRUE(check.settle(tensor));
    EXPECT_EQ(tensor, counting(size));
  }
}

TEST(WriteCheck, AnOutputThatEqualsOneMarkDiffersFromTheOther) {
  WriteCheck check;
  std::vector<uint8_t> tensor(20);
  check.mark(tensor);
  const std::vector<uint8_t> like_the_mark = tensor;
  check.job_ran();
  EXPECT_FALSE(check.settle(tensor));
  tensor = like_the_mark;
  check.job_ran();
  EXPECT_TRUE(check.settle(tensor));
  EXPECT_EQ(tensor, like_the_mark);
}

TEST(WriteCheck, GivesBackWhatItCovers) {
  WriteCheck check;
  std::vector<uint8_t> tensor = counting(40);
  EXPECT_TRUE(check.settle(tensor)) << "nothing is marked";
  check.mark(tensor);
  EXPECT_NE(tensor, counting(40));
  EXPECT_TRUE(check.settle(tensor)) << "no job has run";
  EXPECT_EQ(tensor, counting(40));
  std::vector<uint8_t> empty;
  check.mark(empty);
  check.job_ran();
  EXPECT_TRUE(check.settle(empty));
}

}  // namespace
}  // namespace skillet::runtime
