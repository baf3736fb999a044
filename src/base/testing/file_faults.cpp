#include "base/testing/file_faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

namespace skillet::testing {
namespace {

int calls_left = -1;
FileFault planned = FileFault::fails;
const char* happened = "";

// True if this call should fail; `moves_bytes`: it reads or writes, `reads`: it reads.
bool is_due(const char* name, bool moves_bytes, bool reads) {
  if (calls_left < 0) return false;
  if (planned == FileFault::end_of_file ? !reads : planned != FileFault::fails && !moves_bytes) return false;
  if (calls_left-- != 0) return false;
  happened = name;
  return true;
}

template <typename Call>
ssize_t moved(const char* name, bool reads, size_t size_bytes, Call call) {
  if (!is_due(name, true, reads)) return call(size_bytes);
  if (planned == FileFault::one_byte) return call(size_bytes < 1 ? size_bytes : 1);
  if (planned == FileFault::end_of_file) return 0;
  errno = planned == FileFault::interrupted ? EINTR : EIO;
  return -1;
}

template <typename Call>
int changed(const char* name, Call call) {
  if (!is_due(name, false, false)) return call();
  errno = EIO;
  return -1;
}

template <typename Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

std::string with_fault(int at, FileFault fault, const std::function<void()>& work) {
  planned = fault;
  happened = "";
  calls_left = at;
  work();
  calls_left = -1;
  return happened;
}

extern "C" {

#define SK_EXPORT __attribute__((visibility("default")))

SK_EXPORT ssize_t read(int fd, void* to, size_t size_bytes) {
  static const auto real = next(&::read, "read");
  return moved("read", true, size_bytes, [&](size_t size) { return real(fd, to, size); });
}
SK_EXPORT ssize_t write(int fd, const void* from, size_t size_bytes) {
  static const auto real = next(&::write, "write");
  return moved("write", false, size_bytes, [&](size_t size) { return real(fd, from, size); });
}
SK_EXPORT ssize_t pread(int fd, void* to, size_t size_bytes, off_t offset) {
  static const auto real = next(&::pread, "pread");
  return moved("pread", true, size_bytes, [&](size_t size) { return real(fd, to, size, offset); });
}
SK_EXPORT ssize_t pwrite(int fd, const void* from, size_t size_bytes, off_t offset) {
  static const auto real = next(&::pwrite, "pwrite");
  return moved("pwrite", false, size_bytes, [&](size_t size) { return real(fd, from, size, offset); });
}
SK_EXPORT int ftruncate(int fd, off_t size_bytes) noexcept {
  static const auto real = next(&::ftruncate, "ftruncate");
  return changed("ftruncate", [&] { return real(fd, size_bytes); });
}
SK_EXPORT int fsync(int fd) {
  static const auto real = next(&::fsync, "fsync");
  return changed("fsync", [&] { return real(fd); });
}
SK_EXPORT int fchmod(int fd, mode_t mode) noexcept {
  static const auto real = next(&::fchmod, "fchmod");
  return changed("fchmod", [&] { return real(fd, mode); });
}
SK_EXPORT int rename(const char* from, const char* to) noexcept {
  static const auto real = next(&::rename, "rename");
  return changed("rename", [&] { return real(from, to); });
}
SK_EXPORT int open(const char* path, int flags, ...) {
  static const auto real = next(&::open, "open");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return changed("open", [&] { return real(path, flags, mode); });
}
SK_EXPORT int mkostemp(char* pattern, int flags) {
  static const auto real = next(&::mkostemp, "mkostemp");
  return changed("mkostemp", [&] { return real(pattern, flags); });
}
SK_EXPORT int close(int fd) {
  static const auto real = next(&::close, "close");
  if (!is_due("close", false, false)) return real(fd);
  real(fd);
  errno = EIO;
  return -1;
}

}  // extern "C"

}  // namespace skillet::testing
