// The fields of an archive's header by POSIX, and its checksum.
#include "base/tar.h"

#include <gtest/gtest.h>

namespace skillet {
namespace {

std::string field(std::span<const uint8_t> archive, size_t at, size_t size) {
  return {archive.begin() + static_cast<std::ptrdiff_t>(at), archive.begin() + static_cast<std::ptrdiff_t>(at + size)};
}

TEST(Tar, FieldsAreWherePosixHasThem) {
  using namespace std::string_literals;
  const Bytes body(513, 7);
  const Bytes archive = tar({{"report.txt", body}, {std::string(120, 'n'), {}}});
  ASSERT_EQ(archive.size(), 6U * 512);  // header, two blocks, header, two blocks of zeros
  struct Row {
    size_t at;
    std::string text;
  };
  const Row rows[] = {{0, "report.txt" + std::string(90, '\0')},
                      {100, "0000644\0"s},
                      {108, "0000000\0"s},
                      {116, "0000000\0"s},
                      {124, "00000001001\0"s},
                      {136, "00000000000\0"s},
                      {156, "0" + std::string(100, '\0')},
                      {257, "ustar\00000"s},
                      {265, std::string(247, '\0')}};
  for (const Row& row : rows) EXPECT_EQ(field(archive, row.at, row.text.size()), row.text) << row.at;
  EXPECT_TRUE(std::equal(body.begin(), body.end(), archive.begin() + 512));
  EXPECT_EQ(field(archive, 512 + 513, 511), std::string(511, '\0'));
  EXPECT_EQ(field(archive, 3 * 512, 100), std::string(100, 'n'));
  EXPECT_EQ(field(archive, 4 * 512, 1024), std::string(1024, '\0'));
}

// The checksum adds all bytes of the header, with its own field as blanks: six octal digits, a zero and a blank.
TEST(Tar, HeadersAreSummed) {
  const Bytes archive = tar({{"a", Bytes(1)}});
  unsigned sum = 8 * ' ';
  for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? 0 : archive[i];
  EXPECT_EQ(field(archive, 148, 8), fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

}  // namespace
}  // namespace skillet
