#include "kernels/fake/testing/refused_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <climits>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SK_SANITIZED 1
#endif
#endif

namespace skillet::testing {
namespace {

std::atomic<int> allowed_threads{INT_MAX};

}  // namespace

RefusedThreads::RefusedThreads(int allowed) { allowed_threads = allowed; }
RefusedThreads::~RefusedThreads() { allowed_threads = INT_MAX; }

#ifdef SK_SANITIZED
bool can_refuse_threads() { return false; }
#else
bool can_refuse_threads() { return true; }

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*body)(void*), void* argument) noexcept {
  static const auto real = reinterpret_cast<decltype(&::pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (allowed_threads == INT_MAX) return real(thread, attributes, body, argument);
  if (allowed_threads.fetch_sub(1) <= 0) return EAGAIN;
  return real(thread, attributes, body, argument);
}
#endif

}  // namespace skillet::testing
