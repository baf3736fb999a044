// Open files of the virtual device node: copies, children, threads. Runs with libskillet-virtual.so preloaded.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <thread>

#include "node_testing.h"

namespace skillet::interpose_test {
namespace {

TEST(VirtualFiles, CopiesOfADescriptorAreTheSameFile) {
  auto node = std::make_unique<Node>();
  uint32_t handle = 0;
  ASSERT_EQ(node->new_buffer(kPage, handle), 0);
  const int copy = ::fcntl(node->fd(), F_DUPFD_CLOEXEC, 3), other = ::dup(copy);
  node.reset();
  abi::GemInfo info{.handle = handle, .pad = 0, .offset = 0};
  EXPECT_EQ(::ioctl(copy, abi::kGemInfo, &info), 0);
  ::close(copy);
  EXPECT_EQ(::ioctl(other, abi::kGemInfo, &info), 0);
  ::close(other);
  EXPECT_EQ(::ioctl(other, abi::kGemInfo, &info), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(VirtualFiles, AChildThatClosesEverythingLeavesItsParentAlone) {
  const Node node;
  uint32_t handle = 0;
  ASSERT_EQ(node.new_buffer(kPage, handle), 0);
  const pid_t child = ::vfork();
  if (child == 0) {
    ::close(node.fd());
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  uint8_t* bytes = nullptr;
  EXPECT_EQ(node.map(handle, kPage, bytes), 0);
}

// Makes fstat() fail in this process from now on. Returns false where such a filter is not permitted.
bool fail_fstat() {
  constexpr unsigned kNumber = offsetof(seccomp_data, nr);
  sock_filter rules[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, kNumber},     {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, __NR_newfstatat},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, __NR_fstat}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EIO},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{.len = std::size(rules), .filter = rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// The descriptor may be a node, whose placeholder file has no bytes: reading a mapping of it would raise SIGBUS.
TEST(VirtualFiles, WhatCannotBeAskedIsNotMapped) {
  const Node node;
  uint32_t handle = 0;
  ASSERT_EQ(node.new_buffer(kPage, handle), 0);
  constexpr int kNotPermitted = 255;
  const pid_t child = ::fork();
  if (child == 0) {
    abi::GemInfo info{.handle = handle, .pad = 0, .offset = 0};
    if (::ioctl(node.fd(), abi::kGemInfo, &info) != 0) ::_exit(1);
    if (!fail_fstat()) ::_exit(kNotPermitted);
    void* const mapped = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, node.fd(), static_cast<off_t>(info.offset));
    ::_exit(mapped == MAP_FAILED && errno == EIO ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotPermitted) GTEST_SKIP() << "no filters of system calls";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Uses a file inherited from the parent, and one of the child's own. Returns 0, or the number of the step that failed.
int use_node_in_child(const Node& inherited, uint32_t handle) {
  uint8_t* bytes = nullptr;
  if (inherited.map(handle, kPage, bytes) != 0) return 1;
  if (inherited.prepare(handle, abi::kPrepRead, 1000) != 0) return 2;
  const Node own;
  uint32_t fresh = 0;
  if (own.new_buffer(kPage, fresh) != 0) return 3;
  abi::GemSubmit args{};
  args.flags = abi::kSubmitSoftpin;
  if (own.submit(args, {{1, fresh, kLow}}, kNothing) != 0) return 4;
  return own.wait(args.fence, 1000) == 0 ? 0 : 5;
}

TEST(VirtualFiles, ChildrenOfAThreadedProgramUseTheNode) {
  std::atomic<bool> stops = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const Node node;
      RecordedJob job = load_job();
      ASSERT_EQ(job.allocate(node), "");
      for (uint32_t fence = 0; !stops;) ASSERT_EQ(job.submit(node, 0, fence), 0);
    });
  }
  const Node node;
  uint32_t handle = 0;
  ASSERT_EQ(node.new_buffer(kPage, handle), 0);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      ::_exit(use_node_in_child(node, handle));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "child " << i << " hangs";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "child " << i;
  }
  stops = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(VirtualFiles, ClosedFilesGiveTheirMemoryBack) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = descriptors();
  for (int i = 0; i < 3; ++i) {
    const Node node;
    uint32_t handle = 0;
    for (int k = 0; k < 50; ++k) ASSERT_EQ(node.new_buffer(kPage, handle), 0);
  }
  EXPECT_EQ(descriptors(), before);
}

TEST(VirtualFiles, ManyBuffers) {
  const Node node;
  uint32_t handle = 0;
  for (int k = 0; k < 3000; ++k) ASSERT_EQ(node.new_buffer(kPage, handle), 0) << k;
  const int fd = ::open("/dev/null", O_RDONLY);
  EXPECT_LT(fd, 1000);  // descriptors of the process stay low
  ::close(fd);
}

TEST(VirtualFiles, ThreadsShareTheNode) {
  set_up_chip(Node());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 3; ++i) {
        const Node node;
        RecordedJob job = load_job();
        ASSERT_EQ(job.allocate(node), "");
        uint32_t fence = 0;
        ASSERT_EQ(job.submit(node, 0, fence), 0);
        ASSERT_EQ(node.wait(fence, 10000), 0);
        expect_output(job);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace skillet::interpose_test
