// Hooks of the virtual device node that take a descriptor: ioctl, mmap, close.
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdarg>

#include "kernels/fake/sync_file.h"
#include "lab/interpose/guard.h"
#include "lab/interpose/libc.h"
#include "lab/interpose/open_files.h"
#include "lab/interpose/redirect.h"

namespace skillet::interpose {
namespace {

constexpr unsigned kDrmType = 'd', kSyncFileType = '>';

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
  // It may be a node all the same, whose place holder has no bytes to map.
  if (failure != 0) {
    errno = failure;
    return MAP_FAILED;
  }
  if (file == nullptr) return libc::mmap(address, length, protection, flags, fd, offset);
  const Inside inside;
  return guarded(MAP_FAILED, [&]() -> void* {
    std::shared_ptr<fake::Buffer> buffer;
    if (const int failure = file->find_mapping(length, static_cast<uint64_t>(offset), buffer); failure != 0) {
      errno = -failure;
      return MAP_FAILED;
    }
    return libc::mmap(address, length, protection, flags, buffer->descriptor(), off_t{0});
  });
}
SK_HOOK_ALIAS(void*, mmap64, (void* address, size_t length, int protection, int flags, int fd, off_t offset), mmap);

SK_HOOK(int, close, (int fd)) {
  if (!OpenFiles::any() || Inside::now()) return libc::close(fd);
  const Inside inside;
  return guarded(-1, [&] { return OpenFiles::instance().close(fd); });
}
