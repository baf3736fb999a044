// The C library's own functions, for use inside the preloaded libraries.
// Called by the hooks and by their implementation.
// Must not know: the purpose of the calls.
#pragma once

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>

namespace skillet::interpose {

// The C library's own function that a hook replaces, found on first use.
// Constant-initialised: hooks run before any of our constructors, from the constructors of other libraries.
template <typename Function>
class Real {
 public:
  constexpr explicit Real(const char* name) : name_(name) {}

  template <typename... Args>
  auto operator()(Args... args) const {
    return address()(args...);
  }
  bool exists() const { return address() != nullptr; }

 private:
  Function* address() const {
    void* found = address_.load(std::memory_order_acquire);
    if (found == nullptr) {
      found = ::dlsym(RTLD_NEXT, name_);
      address_.store(found, std::memory_order_release);
    }
    return reinterpret_cast<Function*>(found);
  }

  const char* name_;
  mutable std::atomic<void*> address_{nullptr};
};

namespace libc {

// Before glibc 2.33 these functions have other names, and an additional argument: the version of struct stat.
template <typename... Args>
class StatCall {
 public:
  constexpr StatCall(const char* name, const char* older) : call_(name), older_(older) {}
  int operator()(Args... args) const { return call_.exists() ? call_(args...) : older_(kVersion, args...); }

 private:
#if defined(__x86_64__)
  static constexpr int kVersion = 1;
#else
  static constexpr int kVersion = 0;
#endif
  Real<int(Args...)> call_;
  Real<int(int, Args...)> older_;
};

inline constinit Real<int(const char*, int, ...)> open{"open"};
inline constinit Real<int(int, const char*, int, ...)> openat{"openat"};
inline constinit Real<int(int)> close{"close"};
inline constinit Real<int(int)> dup{"dup"};
inline constinit Real<int(int, int)> dup2{"dup2"};
inline constinit Real<int(int, int, int)> dup3{"dup3"};
inline constinit Real<int(int, int, ...)> fcntl{"fcntl"};
inline constinit Real<int(int, unsigned long, ...)> ioctl{"ioctl"};
inline constinit Real<int(int, int)> flock{"flock"};
inline constinit Real<void*(void*, size_t, int, int, int, off_t)> mmap{"mmap"};
inline constinit Real<FILE*(const char*, const char*)> fopen{"fopen"};
inline constinit Real<int(const char*, int)> access{"access"};
inline constinit Real<int(int, const char*, int, int)> faccessat{"faccessat"};
inline constinit StatCall<const char*, struct stat*> stat{"stat", "__xstat"};
inline constinit StatCall<int, struct stat*> fstat{"fstat", "__fxstat"};
inline constinit StatCall<int, const char*, struct stat*, int> fstatat{"fstatat", "__fxstatat"};
inline constinit Real<int(int, const char*, int, unsigned, struct statx*)> statx{"statx"};
inline constinit Real<DIR*(const char*)> opendir{"opendir"};
inline constinit Real<struct dirent*(DIR*)> readdir{"readdir"};
inline constinit Real<ssize_t(const char*, char*, size_t)> readlink{"readlink"};
inline constinit Real<ssize_t(int, const char*, char*, size_t)> readlinkat{"readlinkat"};
inline constinit Real<char*(const char*, char*)> realpath{"realpath"};
using GetXattr = ssize_t(const char*, const char*, void*, size_t);
inline constinit Real<GetXattr> getxattr{"getxattr"}, lgetxattr{"lgetxattr"};
using ListXattr = ssize_t(const char*, char*, size_t);
inline constinit Real<ListXattr> listxattr{"listxattr"}, llistxattr{"llistxattr"};
using ScandirFilter = int(const struct dirent*);
using ScandirCompare = int(const struct dirent**, const struct dirent**);
inline constinit Real<int(const char*, struct dirent***, ScandirFilter*, ScandirCompare*)> scandir{"scandir"};

}  // namespace libc
}  // namespace skillet::interpose

// SK_HOOK(int, close, (int fd)) { ... }: our function under the C library's name. Only the assembler gets the name, so
// there is no conflict with the library's own declaration and its attributes.
#define SK_HOOK(result, name, parameters)                                                                  \
  extern "C" __attribute__((visibility("default"), used)) result sk_hook_##name parameters __asm__(#name); \
  extern "C" result sk_hook_##name parameters
// A second name for a hook: on 64-bit machines the 64-bit-file variants are the same functions.
#define SK_HOOK_ALIAS(result, name, parameters, of)                                                       \
  extern "C" __attribute__((visibility("default"), used)) result sk_hook_##name parameters __asm__(#name) \
      __attribute__((alias(#of)))
