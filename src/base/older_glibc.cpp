// Lets binaries built with the C library of Debian 12 run with that of Ubuntu 20.04 and others from glibc 2.28 on: the
// linker redirects calls of the functions in older_glibc.def to this file (--wrap).
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>

#if defined(__x86_64__)
#define SKILLET_BASE_VERSION "GLIBC_2.2.5"
#define SKILLET_STAT_VERSION 1
#elif defined(__aarch64__)
#define SKILLET_BASE_VERSION "GLIBC_2.17"
#define SKILLET_STAT_VERSION 0
#endif

#ifdef SKILLET_BASE_VERSION
extern "C" {

#define NEWER(name)
#define OLDER(type, name, parameters, arguments)                              \
  type skillet_older_##name parameters;                                       \
  __asm__(".symver skillet_older_" #name "," #name "@" SKILLET_BASE_VERSION); \
  __attribute__((visibility("hidden"))) type __wrap_##name parameters;        \
  type __wrap_##name parameters { return skillet_older_##name arguments; }
#include "base/older_glibc.def"
#undef OLDER
#undef NEWER

#define SKILLET_HIDDEN __attribute__((visibility("hidden")))

// Functions of newer C libraries, looked up at load time, when no thread forks and no lock of the loader is held.
static struct {
  int (*wait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  int (*find)(void*, dl_find_object*);
} g_newer;
__attribute__((constructor)) static void look_up_newer() {
  g_newer.wait = reinterpret_cast<decltype(g_newer.wait)>(::dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
  g_newer.find = reinterpret_cast<decltype(g_newer.find)>(::dlsym(RTLD_DEFAULT, "_dl_find_object"));
}

// ---- until 2.32 stat() was in the part of the C library that is linked in ----

int __xstat(int version, const char* path, struct stat* out);
int __lxstat(int version, const char* path, struct stat* out);
int __fxstat(int version, int file, struct stat* out);

SKILLET_HIDDEN int __wrap_stat(const char* path, struct stat* out) { return __xstat(SKILLET_STAT_VERSION, path, out); }
SKILLET_HIDDEN int __wrap_lstat(const char* path, struct stat* out) {
  return __lxstat(SKILLET_STAT_VERSION, path, out);
}
SKILLET_HIDDEN int __wrap_fstat(int file, struct stat* out) { return __fxstat(SKILLET_STAT_VERSION, file, out); }
SKILLET_HIDDEN int __wrap_fstat64(int file, struct stat* out) { return __fxstat(SKILLET_STAT_VERSION, file, out); }

// ---- 2.30 ----

// If the C library cannot wait by another clock, the remaining time is converted to the real-time clock. Such a wait
// ends early or late if that clock is set.
SKILLET_HIDDEN int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                                 const timespec* until) {
  if (g_newer.wait != nullptr) return g_newer.wait(condition, mutex, clock, until);
  constexpr int64_t kSecond = 1'000'000'000;
  timespec now{}, real{};
  if (clock == CLOCK_REALTIME) return ::pthread_cond_timedwait(condition, mutex, until);
  if (::clock_gettime(clock, &now) != 0 || ::clock_gettime(CLOCK_REALTIME, &real) != 0) return EINVAL;
  int64_t seconds = int64_t{until->tv_sec} - now.tv_sec + real.tv_sec;
  int64_t ns = int64_t{until->tv_nsec} - now.tv_nsec + real.tv_nsec;
  for (; ns < 0; ns += kSecond) --seconds;
  for (; ns >= kSecond; ns -= kSecond) ++seconds;
  const timespec there{seconds, ns};
  return ::pthread_cond_timedwait(condition, mutex, &there);
}

// ---- 2.32; null: a name that neither Skillet nor its tests use ----

#define SKILLET_NAME(name) \
  { name, #name }
struct Name {
  int number;
  const char* name;
};
constexpr Name kErrors[] = {
    SKILLET_NAME(EPERM),     SKILLET_NAME(ENOENT),    SKILLET_NAME(ESRCH),     SKILLET_NAME(EINTR),
    SKILLET_NAME(EIO),       SKILLET_NAME(ENXIO),     SKILLET_NAME(E2BIG),     SKILLET_NAME(EBADF),
    SKILLET_NAME(EAGAIN),    SKILLET_NAME(ENOMEM),    SKILLET_NAME(EACCES),    SKILLET_NAME(EFAULT),
    SKILLET_NAME(EBUSY),     SKILLET_NAME(EEXIST),    SKILLET_NAME(EXDEV),     SKILLET_NAME(ENODEV),
    SKILLET_NAME(ENOTDIR),   SKILLET_NAME(EISDIR),    SKILLET_NAME(EINVAL),    SKILLET_NAME(ENFILE),
    SKILLET_NAME(EMFILE),    SKILLET_NAME(ENOTTY),    SKILLET_NAME(EFBIG),     SKILLET_NAME(ENOSPC),
    SKILLET_NAME(EROFS),     SKILLET_NAME(EPIPE),     SKILLET_NAME(ERANGE),    SKILLET_NAME(ENAMETOOLONG),
    SKILLET_NAME(ENOSYS),    SKILLET_NAME(ELOOP),     SKILLET_NAME(EOVERFLOW), SKILLET_NAME(EOPNOTSUPP),
    SKILLET_NAME(ETIMEDOUT), SKILLET_NAME(ECANCELED), SKILLET_NAME(ERESTART),  SKILLET_NAME(ETIME)};
constexpr Name kSignals[] = {{SIGHUP, "HUP"}, {SIGINT, "INT"}, {SIGTERM, "TERM"}};

extern "C++" template <size_t N>
const char* name_of(const Name (&names)[N], int number) {
  const auto* const found = std::find_if(names, names + N, [&](const Name& one) { return one.number == number; });
  return found == names + N ? nullptr : found->name;
}
SKILLET_HIDDEN const char* __wrap_strerrorname_np(int number) { return name_of(kErrors, number); }
SKILLET_HIDDEN const char* __wrap_sigabbrev_np(int number) { return name_of(kSignals, number); }

SKILLET_HIDDEN char __wrap___libc_single_threaded = 0;  // reference counts of shared pointers are always atomic

// ---- 2.36 ----

SKILLET_HIDDEN uint32_t __wrap_arc4random() {
  uint32_t out = 0;
  if (::getrandom(&out, sizeof out, 0) != sizeof out) std::abort();  // so few bytes are never truncated
  return out;
}

// ---- 2.35: the unwinder looks up the object that contains an address of code ----

static int holds(dl_phdr_info* info, size_t, void* data) {
  auto& out = *static_cast<dl_find_object*>(data);
  const auto pc = reinterpret_cast<uintptr_t>(out.dlfo_map_start);
  const ElfW(Phdr)* frames = nullptr;
  bool is_here = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type == PT_GNU_EH_FRAME) frames = &part;
    is_here = is_here || (part.p_type == PT_LOAD && pc - info->dlpi_addr - part.p_vaddr < part.p_memsz);
  }
  if (!is_here || frames == nullptr) return 0;
  out.dlfo_eh_frame = reinterpret_cast<void*>(info->dlpi_addr + frames->p_vaddr);
  return 1;
}
// The unwinder reads only `dlfo_eh_frame`.
SKILLET_HIDDEN int __wrap__dl_find_object(void* pc, dl_find_object* out) {
  if (g_newer.find != nullptr) return g_newer.find(pc, out);
  *out = {};
  out->dlfo_map_start = pc;
  return ::dl_iterate_phdr(holds, out) == 1 ? 0 : -1;
}

// ---- 2.34: the C library runs a program's constructors; earlier, the program's start code did ----

int skillet_older_start(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(int, char**, char**),
                        void (*fini)(), void (*loader_fini)(), void* stack_end);
__asm__(".symver skillet_older_start,__libc_start_main@" SKILLET_BASE_VERSION);

using Constructor = void (*)(int, char**, char**);
extern Constructor __preinit_array_start[] __attribute__((weak, visibility("hidden")));
extern Constructor __preinit_array_end[] __attribute__((weak, visibility("hidden")));
extern Constructor __init_array_start[] __attribute__((weak, visibility("hidden")));
extern Constructor __init_array_end[] __attribute__((weak, visibility("hidden")));

static void construct(int argc, char** argv, char** environment) {
  for (Constructor* one = __preinit_array_start; one != __preinit_array_end; ++one) (*one)(argc, argv, environment);
  for (Constructor* one = __init_array_start; one != __init_array_end; ++one) (*one)(argc, argv, environment);
}

SKILLET_HIDDEN int __wrap___libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, Constructor,
                                            void (*)(), void (*loader_fini)(), void* stack_end) {
  return skillet_older_start(main, argc, argv, construct, nullptr, loader_fini, stack_end);
}

}  // extern "C"
#endif
