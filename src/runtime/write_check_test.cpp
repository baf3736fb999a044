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
  for (const size_t size : {1, 7, 16}) {
    WriteCheck check;
    std::vector<uint8_t> witness(size);
    check.mark(witness);
    check.job_ran();
    EXPECT_FALSE(check.settle(witness)) << size;
    check.mark(witness);
    check.job_ran();
    EXPECT_FALSE(check.settle(witness)) << "with the other mark";
    check.mark(witness);
    witness = counting(size);
    check.job_ran();
    EXPECT_TRUE(check.settle(witness));
    EXPECT_EQ(witness, counting(size));
  }
}

// A job always writes the same bytes: at most one of two runs can look as if it wrote nothing.
TEST(WriteCheck, NoResultEqualsBothMarks) {
  for (int value = 0; value < 256; ++value) {
    for (const size_t size : {1, 2, 16}) {
      const std::vector<uint8_t> result(size, static_cast<uint8_t>(value));
      WriteCheck check;
      std::vector<uint8_t> witness(size);
      int runs = 0;
      do {
        check.mark(witness);
        witness = result;
        check.job_ran();
        ++runs;
      } while (!check.settle(witness) && runs < 3);
      EXPECT_LE(runs, value == 0x5a && size == 1 ? 2 : 1) << value << " " << size;
      EXPECT_EQ(witness, result);
    }
  }
}

TEST(WriteCheck, AResultThatEqualsOneMarkDiffersFromTheOther) {
  WriteCheck check;
  std::vector<uint8_t> witness(16);
  check.mark(witness);
  const std::vector<uint8_t> like_the_mark = witness;
  check.job_ran();
  EXPECT_FALSE(check.settle(witness));
  check.mark(witness);
  for (size_t i = 0; i < witness.size(); ++i) EXPECT_EQ(witness[i] ^ like_the_mark[i], 0xff) << i;
  witness = like_the_mark;
  check.job_ran();
  EXPECT_TRUE(check.settle(witness));
  EXPECT_EQ(witness, like_the_mark);
}

TEST(WriteCheck, GivesBackWhatItCovers) {
  WriteCheck check;
  std::vector<uint8_t> witness = counting(16);
  EXPECT_TRUE(check.settle(witness)) << "nothing is marked";
  check.mark(witness);
  check.mark(witness);
  EXPECT_TRUE(check.is_marked());
  EXPECT_NE(witness, counting(16));
  EXPECT_TRUE(check.settle(witness)) << "no job has run";
  EXPECT_EQ(witness, counting(16));
  check.mark(witness);
  check.forget();
  EXPECT_FALSE(check.is_marked());
}

}  // namespace
}  // namespace skillet::runtime
