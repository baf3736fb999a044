// Memory of an emulated kernel driver: its owner, access to it, and the jobs that use it.
#include "kernels/fake/buffer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/fake/jobs.h"

namespace skillet::fake {
namespace {

// A read waits for writers, a write for all jobs.
TEST(Buffer, KnowsWhichJobsUseIt) {
  Jobs jobs;
  std::shared_ptr<Buffer> buffer;
  ASSERT_EQ(Buffer::create(1, Backing::own, buffer), 0);
  const JobId reader = jobs.begin(), writer = jobs.begin(), late_reader = jobs.begin();
  EXPECT_EQ(buffer->busy(jobs, true), std::nullopt) << "there are jobs, but none of them uses it";
  buffer->add_job(jobs, reader, false);
  EXPECT_EQ(buffer->busy(jobs, false), std::nullopt);
  EXPECT_EQ(buffer->busy(jobs, true), reader);
  EXPECT_EQ(buffer->last_writer(jobs), std::nullopt);
  buffer->add_job(jobs, writer, true);
  buffer->add_job(jobs, late_reader, false);
  EXPECT_EQ(buffer->busy(jobs, false), writer);
  EXPECT_EQ(buffer->busy(jobs, true), reader);
  EXPECT_EQ(buffer->last_writer(jobs), writer);
  jobs.finish(writer);
  EXPECT_EQ(buffer->busy(jobs, false), std::nullopt);
  EXPECT_EQ(buffer->last_writer(jobs), std::nullopt);
  jobs.finish(reader);
  EXPECT_EQ(buffer->busy(jobs, true), late_reader);
}

TEST(Buffer, IsWholePagesWhicheverItsMemory) {
  for (const Backing backing : {Backing::own, Backing::shared}) {
    for (const auto& [size, whole] : {std::pair<uint64_t, uint64_t>{1, 4096}, {4096, 4096}, {4097, 8192}}) {
      std::shared_ptr<Buffer> buffer;
      ASSERT_EQ(Buffer::create(size, backing, buffer), 0);
      EXPECT_EQ(buffer->size_bytes(), whole);
      EXPECT_TRUE(std::ranges::all_of(buffer->bytes(), [](uint8_t byte) { return byte == 0; }));
      EXPECT_TRUE(buffer->is_present());
      std::ranges::fill(buffer->bytes(), uint8_t{5});
      const uint8_t* const place = buffer->bytes().data();
      const int fd = buffer->descriptor();
      ASSERT_GE(fd, 0);
      EXPECT_EQ(buffer->descriptor(), fd) << "made once";
      EXPECT_EQ(buffer->bytes().data(), place) << "its memory stays where it is";
      buffer->bytes()[whole - 1] = 9;
      uint8_t ends[2];
      ASSERT_EQ(::pread(fd, &ends[0], 1, 0) + ::pread(fd, &ends[1], 1, static_cast<off_t>(whole - 1)), 2);
      EXPECT_EQ(ends[0], 5);
      EXPECT_EQ(ends[1], 9) << "who has the descriptor sees what is written later";
      EXPECT_NE(::ftruncate(fd, 0), 0) << "who has it must not cut it off";
      EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
      buffer.reset();
      EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << "it goes with the buffer";
    }
  }
}

TEST(Buffer, ImportsFilesOfWholePages) {
  struct Row {
    off_t size;
    int result;
  };
  for (const Row& row : {Row{0, -EINVAL}, Row{4095, -EINVAL}, Row{4096, 0}, Row{4097, -EINVAL}, Row{8192, 0}}) {
    const int fd = ::memfd_create("camera", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(fd, row.size), 0);
    std::shared_ptr<Buffer> buffer;
    EXPECT_EQ(Buffer::import(fd, buffer), row.result) << row.size;
    if (row.result == 0) {
      EXPECT_EQ(buffer->size_bytes(), static_cast<uint64_t>(row.size));
      EXPECT_NE(::ftruncate(fd, 0), 0) << "sealed";
      EXPECT_EQ(Buffer::identify(fd), Buffer::identify(buffer->descriptor()));
      buffer->bytes()[1] = 7;
      uint8_t byte = 0;
      EXPECT_EQ(::pread(fd, &byte, 1, 1), 1);
      EXPECT_EQ(byte, 7);
    }
    ::close(fd);
  }
  std::shared_ptr<Buffer> buffer;
  const int unsealed = ::memfd_create("camera", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(unsealed, 4096), 0);
  EXPECT_EQ(Buffer::import(unsealed, buffer), -EPERM) << "its maker could cut it off";
  ::close(unsealed);
  FILE* const file = std::tmpfile();
  ASSERT_EQ(::ftruncate(fileno(file), 8192), 0);
  EXPECT_EQ(Buffer::import(fileno(file), buffer), -EPERM) << "so could anybody";
  std::fclose(file);
  EXPECT_EQ(Buffer::import(-1, buffer), -EBADF);
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  EXPECT_EQ(Buffer::import(pipe[0], buffer), -EBADF);
  EXPECT_EQ(Buffer::identify(pipe[0]), std::nullopt);
  ::close(pipe[0]), ::close(pipe[1]);
}

// In a separate process with few descriptors, where those of buffers are close to the others.
TEST(BufferDeathTest, MayHaveTheDescriptorZero) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto import = [] {
    const rlimit few{256, 256};
    const int fd = ::memfd_create("camera", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    std::shared_ptr<Buffer> buffer;
    const bool is_ready = ::setrlimit(RLIMIT_NOFILE, &few) == 0 && ::ftruncate(fd, 4096) == 0 && ::close(0) == 0;
    const bool is_taken = is_ready && Buffer::import(fd, buffer) == 0 && buffer->descriptor() == 0;
    std::_Exit(is_taken ? 7 : 1);
  };
  EXPECT_EXIT(import(), testing::ExitedWithCode(7), "");
}

TEST(Buffer, OfUserMemoryIsThereWhileItIsMapped) {
  void* const memory = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::shared_ptr<Buffer> buffer;
  ASSERT_EQ(Buffer::of_user_memory(reinterpret_cast<uintptr_t>(memory), 8192, buffer), 0);
  EXPECT_EQ(buffer->bytes().data(), memory);
  EXPECT_TRUE(buffer->is_present());
  EXPECT_EQ(buffer->descriptor(), -EINVAL) << "memory of a process cannot be exported";
  ::munmap(static_cast<uint8_t*>(memory) + 4096, 4096);
  EXPECT_FALSE(buffer->is_present());
  buffer.reset();
  static_cast<uint8_t*>(memory)[0] = 1;  // still mapped in the process
  std::shared_ptr<Buffer> gone;
  ASSERT_EQ(Buffer::of_user_memory(reinterpret_cast<uintptr_t>(memory), 8192, gone), 0);
  EXPECT_FALSE(gone->is_present());
  ::munmap(memory, 4096);
}

// Only unfinished jobs are kept.
TEST(Buffer, ForgetsJobsThatHaveEnded) {
  Jobs jobs;
  std::shared_ptr<Buffer> buffer;
  ASSERT_EQ(Buffer::create(1, Backing::own, buffer), 0);
  for (int i = 0; i < 3; ++i) {
    const JobId job = jobs.begin();
    buffer->add_job(jobs, job, true);
    EXPECT_EQ(buffer->last_writer(jobs), job);
    EXPECT_EQ(buffer->busy(jobs, false), job);
    jobs.finish(job);
    EXPECT_EQ(buffer->last_writer(jobs), std::nullopt);
  }
}

}  // namespace
}  // namespace skillet::fake
