#include "kernels/fake/sync_file.h"

#include <linux/sync_file.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace skillet::fake {
namespace {

// Accepts a real sync file, of a real device in the same process, too.
bool is_fence(int fd) {
  char path[64], target[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(path, target, sizeof target);
  if (length <= 0) return false;
  const std::string_view name(target, static_cast<size_t>(length));
  return name == "anon_inode:[eventfd]" || name == "anon_inode:sync_file";
}

int merge(int fd, sync_merge_data& args) {
  const SyncState other = sync_state(args.fd2);
  if (args.flags != 0 || args.pad != 0) return -EINVAL;
  if (other == SyncState::not_a_fence) return -ENOENT;
  const int merged = create_sync_file();
  if (merged < 0) return merged;
  if (other == SyncState::signalled && sync_state(fd) == SyncState::signalled) signal_sync_file(merged);
  args.fence = merged;
  return 0;
}

int describe(int fd, sync_file_info& args, const std::string& driver) {
  if (args.flags != 0 || args.pad != 0) return -EINVAL;
  const int status = sync_state(fd) == SyncState::signalled ? 1 : 0;
  if (args.num_fences > 0 && args.sync_fence_info != 0) {
    sync_fence_info one{};
    std::snprintf(one.obj_name, sizeof one.obj_name, "npu");
    std::snprintf(one.driver_name, sizeof one.driver_name, "%s", driver.c_str());
    one.status = status;
    std::memcpy(reinterpret_cast<void*>(args.sync_fence_info), &one, sizeof one);
  }
  std::snprintf(args.name, sizeof args.name, "skillet");
  args.status = status;
  args.num_fences = 1;
  return 0;
}

}  // namespace

int create_sync_file() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return fd < 0 ? -errno : fd;
}

void signal_sync_file(int fd) { ::eventfd_write(fd, 1); }

SyncState sync_state(int fd) {
  if (fd < 0 || !is_fence(fd)) return SyncState::not_a_fence;
  pollfd poll{fd, POLLIN, 0};
  return ::poll(&poll, 1, 0) == 1 && (poll.revents & POLLIN) != 0 ? SyncState::signalled : SyncState::waiting;
}

int sync_file_ioctl(int fd, unsigned long request, void* argument, const std::string& driver) {
  if (argument == nullptr || !is_fence(fd)) return -ENOTTY;
  if (request == SYNC_IOC_MERGE) return merge(fd, *static_cast<sync_merge_data*>(argument));
  if (request == SYNC_IOC_FILE_INFO) return describe(fd, *static_cast<sync_file_info*>(argument), driver);
  return -ENOTTY;
}

}  // namespace skillet::fake
