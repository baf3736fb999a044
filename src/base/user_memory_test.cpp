// Copies from and to pointers of a process.
#include "base/user_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>

namespace skillet {
namespace {

TEST(UserMemory, IsReadAndWrittenWhereTheProcessMay) {
  constexpr size_t kPage = 4096;
  void* const memory = ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const bytes = static_cast<uint8_t*>(memory);
  bytes[kPage - 1] = 7;
  ASSERT_EQ(::mprotect(bytes + kPage, kPage, PROT_READ), 0);
  ASSERT_EQ(::mprotect(bytes + 2 * kPage, kPage, PROT_NONE), 0);
  const auto last = reinterpret_cast<uint64_t>(bytes + kPage - 1);
  std::array<uint8_t, 2> two{};
  EXPECT_EQ(copy_from_user(two.data(), last, 2), 0);
  EXPECT_EQ(two, (std::array<uint8_t, 2>{7, 0}));
  two = {3, 4};
  EXPECT_EQ(copy_to_user(last, two.data(), 1), 0);
  EXPECT_EQ(bytes[kPage - 1], 3);
  EXPECT_EQ(copy_to_user(last, two.data(), 2), -EFAULT) << "the second may only be read";
  EXPECT_EQ(copy_from_user(two.data(), last + kPage, 2), -EFAULT) << "the second may not be read";
  for (const uint64_t nowhere : {uint64_t{0}, reinterpret_cast<uint64_t>(bytes + 2 * kPage), UINT64_MAX}) {
    EXPECT_EQ(copy_from_user(two.data(), nowhere, 1), -EFAULT) << nowhere;
    EXPECT_EQ(copy_to_user(nowhere, two.data(), 1), -EFAULT) << nowhere;
    EXPECT_EQ(copy_from_user(two.data(), nowhere, 0), 0) << "nothing is copied";
    EXPECT_EQ(copy_to_user(nowhere, two.data(), 0), 0);
  }
  ::munmap(memory, 3 * kPage);
}

}  // namespace
}  // namespace skillet
