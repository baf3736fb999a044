// Hooks of the virtual device node that take a path: they redirect it into the node tree, whose nodes appear as
// devices.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "lab/interpose/guard.h"
#include "lab/interpose/libc.h"
#include "lab/interpose/open_files.h"
#include "lab/interpose/redirect.h"

namespace skillet::interpose {
namespace {

constexpr mode_t kNodeMode = S_IFCHR | 0660;
constexpr int kFollowLinks = 0;

std::optional<unsigned> minor_of(dev_t device, ino_t inode) {
  const NodeTree* const tree = node_tree_if_built();
  if (tree == nullptr) return std::nullopt;
  if (const auto minor_number = tree->minor_of(device, inode)) return minor_number;
  if (!OpenFiles::any()) return std::nullopt;
  const Inside inside;
  return guarded(std::optional<unsigned>(), [&] { return OpenFiles::instance().minor_of(device, inode); });
}

// Reports a node of the tree, or an open file of one, as a character device with the right number.
int disguise(int result, struct stat* status) {
  if (result != 0 || !S_ISREG(status->st_mode)) return result;
  if (const auto minor_number = minor_of(status->st_dev, status->st_ino)) {
    status->st_mode = kNodeMode;
    status->st_rdev = makedev(node_tree_if_built()->major(), *minor_number);
    status->st_size = 0;
    status->st_blocks = 0;
  }
  return result;
}

int disguise(int result, struct statx* status) {
  if (result != 0 || !S_ISREG(status->stx_mode)) return result;
  if (const auto minor_number = minor_of(makedev(status->stx_dev_major, status->stx_dev_minor), status->stx_ino)) {
    status->stx_mode = kNodeMode;
    status->stx_rdev_major = node_tree_if_built()->major();
    status->stx_rdev_minor = *minor_number;
    status->stx_size = 0;
    status->stx_blocks = 0;
  }
  return result;
}

// Replaces a node of the tree, opened by any path, by an open file of the device.
int open_node(int fd, int flags) {
  const NodeTree* const tree = node_tree_if_built();
  struct stat status {};
  if (fd < 0 || tree == nullptr || libc::fstat(fd, &status) != 0) return fd;
  const auto minor_number = tree->minor_of(status.st_dev, status.st_ino);
  if (!minor_number || (flags & O_PATH) != 0) return fd;
  const Inside inside;
  libc::close(fd);
  const int opened = guarded(-ENOMEM, [&] { return OpenFiles::instance().open(*minor_number, flags); });
  if (opened >= 0) return opened;
  errno = -opened;
  return -1;
}

int open_at(int folder, const char* path, int flags, mode_t mode) {
  const Redirect redirect(path);
  return open_node(libc::openat(folder, redirect.path(), flags, mode), flags);
}

mode_t mode_argument(int flags, va_list arguments) {
  const bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_mode ? va_arg(arguments, mode_t) : 0;
}

int stat_at(int folder, const char* path, struct stat* status, int flags) {
  const Redirect redirect(path);
  return disguise(libc::fstatat(folder, redirect.path(), status, flags), status);
}

// realpath() of a covered path: resolves it in the tree, then returns the path outside of the tree.
char* resolve(const Redirect& redirect, char* resolved) {
  char inside_tree[PATH_MAX];
  if (libc::realpath(redirect.path(), inside_tree) == nullptr) return nullptr;
  return guarded(static_cast<char*>(nullptr), [&] {
    const std::string path = redirect.tree().undo(inside_tree);
    if (resolved == nullptr) return ::strdup(path.c_str());
    std::memcpy(resolved, path.c_str(), path.size() + 1);
    return resolved;
  });
}

// Reports directory entries of the tree's nodes as devices, like their stat().
struct dirent* disguise_entry(DIR* folder, struct dirent* entry) {
  if (entry == nullptr || entry->d_type != DT_REG || node_tree_if_built() == nullptr) return entry;
  struct stat status {};
  if (libc::fstat(::dirfd(folder), &status) != 0) return entry;
  if (node_tree_if_built()->minor_of(status.st_dev, entry->d_ino)) entry->d_type = DT_CHR;
  return entry;
}

}  // namespace
}  // namespace skillet::interpose

using namespace skillet::interpose;

SK_HOOK(int, open, (const char* path, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}
SK_HOOK_ALIAS(int, open64, (const char* path, int flags, ...), open);

SK_HOOK(int, openat, (int folder, const char* path, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return open_at(folder, path, flags, mode);
}
SK_HOOK_ALIAS(int, openat64, (int folder, const char* path, int flags, ...), openat);

// Called by fortified programs.
SK_HOOK(int, __open_2, (const char* path, int flags)) { return open_at(AT_FDCWD, path, flags, 0); }
SK_HOOK_ALIAS(int, __open64_2, (const char* path, int flags), __open_2);
SK_HOOK(int, __openat_2, (int folder, const char* path, int flags)) { return open_at(folder, path, flags, 0); }
SK_HOOK_ALIAS(int, __openat64_2, (int folder, const char* path, int flags), __openat_2);

SK_HOOK(FILE*, fopen, (const char* path, const char* mode)) {
  const Redirect redirect(path);
  return libc::fopen(redirect.path(), mode);
}
SK_HOOK_ALIAS(FILE*, fopen64, (const char* path, const char* mode), fopen);

SK_HOOK(int, access, (const char* path, int mode)) {
  const Redirect redirect(path);
  return libc::access(redirect.path(), mode);
}
SK_HOOK(int, faccessat, (int folder, const char* path, int mode, int flags)) {
  const Redirect redirect(path);
  return libc::faccessat(folder, redirect.path(), mode, flags);
}

SK_HOOK(int, stat, (const char* path, struct stat* status)) { return stat_at(AT_FDCWD, path, status, kFollowLinks); }
SK_HOOK_ALIAS(int, stat64, (const char* path, struct stat* status), stat);
SK_HOOK(int, lstat, (const char* path, struct stat* status)) {
  return stat_at(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
SK_HOOK_ALIAS(int, lstat64, (const char* path, struct stat* status), lstat);
SK_HOOK(int, fstat, (int fd, struct stat* status)) { return disguise(libc::fstat(fd, status), status); }
SK_HOOK_ALIAS(int, fstat64, (int fd, struct stat* status), fstat);
SK_HOOK(int, fstatat, (int folder, const char* path, struct stat* status, int flags)) {
  return stat_at(folder, path, status, flags);
}
SK_HOOK_ALIAS(int, fstatat64, (int folder, const char* path, struct stat* status, int flags), fstatat);
SK_HOOK(int, statx, (int folder, const char* path, int flags, unsigned mask, struct statx* status)) {
  const Redirect redirect(path);
  return disguise(libc::statx(folder, redirect.path(), flags, mask, status), status);
}

// Called by programs built before glibc 2.33; on 64 bits the version number always means today's struct.
SK_HOOK(int, __xstat, (int, const char* path, struct stat* status)) {
  return stat_at(AT_FDCWD, path, status, kFollowLinks);
}
SK_HOOK_ALIAS(int, __xstat64, (int version, const char* path, struct stat* status), __xstat);
SK_HOOK(int, __lxstat, (int, const char* path, struct stat* status)) {
  return stat_at(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
SK_HOOK_ALIAS(int, __lxstat64, (int version, const char* path, struct stat* status), __lxstat);
SK_HOOK(int, __fxstat, (int, int fd, struct stat* status)) { return disguise(libc::fstat(fd, status), status); }
SK_HOOK_ALIAS(int, __fxstat64, (int version, int fd, struct stat* status), __fxstat);
SK_HOOK(int, __fxstatat, (int, int folder, const char* path, struct stat* status, int flags)) {
  return stat_at(folder, path, status, flags);
}
SK_HOOK_ALIAS(int, __fxstatat64, (int version, int folder, const char* path, struct stat* status, int flags),
              __fxstatat);

SK_HOOK(DIR*, opendir, (const char* path)) {
  const Redirect redirect(path);
  return libc::opendir(redirect.path());
}
SK_HOOK(struct dirent*, readdir, (DIR * folder)) { return disguise_entry(folder, libc::readdir(folder)); }
SK_HOOK_ALIAS(struct dirent*, readdir64, (DIR * folder), readdir);
SK_HOOK(int, scandir,
        (const char* path, struct dirent*** names, libc::ScandirFilter* filter, libc::ScandirCompare* compare)) {
  const Redirect redirect(path);
  return libc::scandir(redirect.path(), names, filter, compare);
}
SK_HOOK_ALIAS(int, scandir64,
              (const char* path, struct dirent*** names, libc::ScandirFilter* filter, libc::ScandirCompare* compare),
              scandir);

SK_HOOK(ssize_t, readlink, (const char* path, char* target, size_t size)) {
  const Redirect redirect(path);
  return libc::readlink(redirect.path(), target, size);
}
SK_HOOK(ssize_t, readlinkat, (int folder, const char* path, char* target, size_t size)) {
  const Redirect redirect(path);
  return libc::readlinkat(folder, redirect.path(), target, size);
}
SK_HOOK(ssize_t, __readlink_chk, (const char* path, char* target, size_t size, size_t buffer_size)) {
  const Redirect redirect(path);
  return libc::readlink(redirect.path(), target, std::min(size, buffer_size));
}

SK_HOOK(char*, realpath, (const char* path, char* resolved)) {
  const Redirect redirect(path);
  return redirect.is_active() ? resolve(redirect, resolved) : libc::realpath(path, resolved);
}
SK_HOOK(char*, __realpath_chk, (const char* path, char* resolved, size_t)) {
  const Redirect redirect(path);
  return redirect.is_active() ? resolve(redirect, resolved) : libc::realpath(path, resolved);
}
SK_HOOK(char*, canonicalize_file_name, (const char* path)) {
  const Redirect redirect(path);
  return redirect.is_active() ? resolve(redirect, nullptr) : libc::realpath(path, static_cast<char*>(nullptr));
}

// `ls -l` reads extended attributes of all entries.
SK_HOOK(ssize_t, getxattr, (const char* path, const char* name, void* value, size_t size)) {
  const Redirect redirect(path);
  return libc::getxattr(redirect.path(), name, value, size);
}
SK_HOOK(ssize_t, lgetxattr, (const char* path, const char* name, void* value, size_t size)) {
  const Redirect redirect(path);
  return libc::lgetxattr(redirect.path(), name, value, size);
}
SK_HOOK(ssize_t, listxattr, (const char* path, char* list, size_t size)) {
  const Redirect redirect(path);
  return libc::listxattr(redirect.path(), list, size);
}
SK_HOOK(ssize_t, llistxattr, (const char* path, char* list, size_t size)) {
  const Redirect redirect(path);
  return libc::llistxattr(redirect.path(), list, size);
}
