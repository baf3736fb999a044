// Hooks of the virtual device node that take a descriptor: ioctl, mmap, flock, close.
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "base/user_memory.h"
#include "kernels/fake/sync_file.h"
#include "lab/interpose/guard.h"
#include "lab/interpose/libc.h"
#include "lab/interpose/open_files.h"
#include "lab/interpose/redirect.h"

namespace skillet::interpose {
namespace {

constexpr unsigned kDrmType = 'd', kSyncFileType = '>', kDmaBufType = 'b';

std::shared_ptr<fake::File> file_of(int fd, int* failure = nullptr) {
  if (!OpenFiles::any() || Inside::now()) return nullptr;
  const Inside inside;
  const int number = errno;
  auto file = guarded(std::shared_ptr<fake::File>(), [&] { return OpenFiles::instance().find(fd, failure); });
  errno = number;
  return file;
}

int kernel_result(int result) {
  if (result >= 0) return result;
  errno = -result;
  return -1;
}

int sync_ioctl(int fd, unsigned long request, void* argument) {
  const Inside inside;
  const int result = libc::ioctl(fd, request, argument);
  if (result == 0 || errno != ENOTTY) return result;
  return guarded(-1, [&] {
    const auto place = OpenFiles::instance().place();
    return kernel_result(fake::sync_file_ioctl(fd, request, argument, place ? place->driver : ""));
  });
}

// DMA_BUF_IOCTL_SYNC of an exported buffer, which is coherent here. The kernel handles it for real dma-bufs.
int dma_buf_ioctl(int fd, unsigned long request, void* argument) {
  const Inside inside;
  const int number = errno;
  const int result = libc::ioctl(fd, request, argument);
  if (result == 0 || errno != ENOTTY || request != DMA_BUF_IOCTL_SYNC) return result;
  return guarded(-1, [&] {
    if (::fcntl(fd, F_GET_SEALS) < 0) return kernel_result(-ENOTTY);  // not a memfd
    errno = number;
    dma_buf_sync args{};
    if (copy_from_user(&args, reinterpret_cast<uint64_t>(argument), sizeof args) != 0) return kernel_result(-EFAULT);
    const bool is_known =
        (args.flags & ~uint64_t{DMA_BUF_SYNC_VALID_FLAGS_MASK}) == 0 && (args.flags & DMA_BUF_SYNC_RW) != 0;
    return kernel_result(is_known ? 0 : -EINVAL);
  });
}

// True for a range beyond an exported buffer: a dma-buf refuses it, a memfd accepts it.
bool is_beyond_buffer(int fd, size_t length, off_t offset) {
  struct stat status {};
  if (!OpenFiles::any() || ::fcntl(fd, F_GET_SEALS) != fake::Buffer::kSeals || ::fstat(fd, &status) != 0) return false;
  return static_cast<uint64_t>(offset) + length > static_cast<uint64_t>(status.st_size);
}

}  // namespace
}  // namespace skillet::interpose

using namespace skillet;
using namespace skillet::interpose;

SK_HOOK(int, ioctl, (int fd, unsigned long request, ...)) {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const unsigned type = _IOC_TYPE(request);
  if (OpenFiles::any() && type == kSyncFileType) return sync_ioctl(fd, request, argument);
  if (OpenFiles::any() && type == kDmaBufType) return dma_buf_ioctl(fd, request, argument);
  const auto file = type == kDrmType ? file_of(fd) : nullptr;
  if (file == nullptr) return libc::ioctl(fd, request, argument);
  const Inside inside;
  return guarded(-1, [&] {
    const int number = errno;
    const int result = file->ioctl(request, argument);
    errno = number;
    return kernel_result(result);
  });
}

SK_HOOK(void*, mmap, (void* address, size_t length, int protection, int flags, int fd, off_t offset)) {
  int failure = 0;
  const auto file = fd >= 0 ? file_of(fd, &failure) : nullptr;
  // The descriptor may still be a node, whose placeholder has no bytes to map.
  if (failure != 0) {
    errno = failure;
    return MAP_FAILED;
  }
  if (file == nullptr) {
    void* const mapped = libc::mmap(address, length, protection, flags, fd, offset);
    if (mapped == MAP_FAILED || fd < 0 || !is_beyond_buffer(fd, length, offset)) return mapped;
    ::munmap(mapped, length);
    errno = EINVAL;
    return MAP_FAILED;
  }
  const Inside inside;
  return guarded(MAP_FAILED, [&]() -> void* {
    if ((flags & MAP_TYPE) == MAP_PRIVATE && !file->takes_private_mappings()) {
      errno = EINVAL;
      return MAP_FAILED;
    }
    std::shared_ptr<fake::Buffer> buffer;
    if (const int refused = file->find_mapping(length, static_cast<uint64_t>(offset), buffer); refused != 0) {
      errno = -refused;
      return MAP_FAILED;
    }
    return libc::mmap(address, length, protection, flags, buffer->descriptor(), off_t{0});
  });
}
SK_HOOK_ALIAS(void*, mmap64, (void* address, size_t length, int protection, int flags, int fd, off_t offset), mmap);

SK_HOOK(int, flock, (int fd, int operation)) {
  const NodeTree* const tree = OpenFiles::any() ? node_tree_if_built() : nullptr;
  if (tree == nullptr || file_of(fd) == nullptr) return libc::flock(fd, operation);
  const Inside inside;
  return guarded(-1, [&] {
    const int own = OpenFiles::instance().lock_file(fd, tree->redirect(""));
    return own < 0 ? kernel_result(own) : libc::flock(own, operation);
  });
}

SK_HOOK(int, close, (int fd)) {
  if (!OpenFiles::any() || Inside::now()) return libc::close(fd);
  const Inside inside;
  return guarded(-1, [&] { return OpenFiles::instance().close(fd); });
}
