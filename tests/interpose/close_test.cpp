// A client that closes its node while a job runs. Runs with libskillet-virtual.so preloaded and a job that hangs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "kernels/rocket/abi.h"

namespace skillet {
namespace {

namespace abi = kernels::rocket;

abi::CreateBo new_buffer(int fd) {
  abi::CreateBo buffer{.size = abi::kPageBytes, .handle = 0, .dma_address = 0, .offset = 0};
  EXPECT_EQ(::ioctl(fd, abi::kCreateBo, &buffer), 0);
  return buffer;
}

int submit(int fd, const abi::CreateBo& commands, const abi::CreateBo& output) {
  const abi::Task task{static_cast<uint32_t>(commands.dma_address), 2};
  const abi::SubmitJob job{.tasks = reinterpret_cast<uintptr_t>(&task),
                           .in_bo_handles = 0,
                           .out_bo_handles = reinterpret_cast<uintptr_t>(&output.handle),
                           .task_count = 1,
                           .task_struct_size = sizeof task,
                           .in_bo_handle_count = 0,
                           .out_bo_handle_count = 1};
  abi::Submit args{
      .jobs = reinterpret_cast<uintptr_t>(&job), .job_count = 1, .job_struct_size = sizeof job, .reserved = 0};
  return ::ioctl(fd, abi::kSubmit, &args);
}

// The core's thread holds the last references to the buffers, and frees them while close() waits for it.
TEST(VirtualClose, EndsWhileAJobRuns) {
  const int fd = ::open("/dev/accel/accel0", O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const abi::CreateBo commands = new_buffer(fd), constants = new_buffer(fd), output = new_buffer(fd);
  ASSERT_EQ(submit(fd, commands, output), 0);
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  abi::PrepBo soon{.handle = output.handle, .reserved = 0, .timeout_ns = 0};
  soon.timeout_ns = now.tv_sec * 1'000'000'000 + now.tv_nsec + 50'000'000;
  EXPECT_EQ(::ioctl(fd, abi::kPrepBo, &soon), -1);
  EXPECT_EQ(errno, ETIMEDOUT) << "the job hangs";
  for (const abi::CreateBo& one : {commands, constants, output}) {
    kernels::drm::GemClose close{.handle = one.handle, .pad = 0};
    EXPECT_EQ(::ioctl(fd, kernels::drm::kGemClose, &close), 0);
  }
  EXPECT_EQ(::close(fd), 0);
}

}  // namespace
}  // namespace skillet
