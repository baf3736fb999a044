// forking N: two threads submit jobs of rocket and close their buffers at once, so that the node's own thread frees
// them, while the process forks N times. Prints the number of forks.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kernels/api/drm.h"
#include "kernels/rocket/abi.h"

namespace {

namespace abi = skillet::kernels::rocket;
namespace drm = skillet::kernels::drm;

constexpr uint64_t kOneCommand = uint64_t{0x0601} << 48;  // no block's register: the job ends at once

void close_buffer(int fd, uint32_t handle) {
  drm::GemClose closing{.handle = handle, .pad = 0};
  ::ioctl(fd, drm::kGemClose, &closing);
}

void submit_for_ever() {
  const int fd = ::open("/dev/accel/accel0", O_RDWR);
  abi::CreateBo kept{.size = 4096, .handle = 0, .dma_address = 0, .offset = 0};
  if (::ioctl(fd, abi::kCreateBo, &kept) != 0) std::exit(2);
  for (;;) {
    abi::CreateBo brief{.size = 4096, .handle = 0, .dma_address = 0, .offset = 0};
    if (::ioctl(fd, abi::kCreateBo, &brief) != 0) std::exit(2);
    void* const bytes = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(brief.offset));
    if (bytes == MAP_FAILED) std::exit(2);
    std::memcpy(bytes, &kOneCommand, sizeof kOneCommand);
    ::munmap(bytes, 4096);
    abi::Task task{.regcmd = static_cast<uint32_t>(brief.dma_address), .regcmd_count = 512};
    abi::SubmitJob job{.tasks = reinterpret_cast<uintptr_t>(&task),
                       .in_bo_handles = reinterpret_cast<uintptr_t>(&brief.handle),
                       .out_bo_handles = reinterpret_cast<uintptr_t>(&kept.handle),
                       .task_count = 1,
                       .task_struct_size = sizeof task,
                       .in_bo_handle_count = 1,
                       .out_bo_handle_count = 1};
    abi::Submit call{
        .jobs = reinterpret_cast<uintptr_t>(&job), .job_count = 1, .job_struct_size = sizeof job, .reserved = 0};
    if (::ioctl(fd, abi::kSubmit, &call) != 0) std::exit(2);
    close_buffer(fd, brief.handle);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int forks = argc < 2 ? 1 : std::atoi(argv[1]);
  for (int i = 0; i < 2; ++i) std::thread(submit_for_ever).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (int i = 0; i < forks; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::printf("%d\n", forks);
  std::fflush(stdout);
  ::_exit(0);  // the threads still run
}
