// Real: the C library's own function that a hook replaces, found on first use.
// Called by all code in the preloaded libraries that must bypass its own hooks.
// Must not know: which functions are replaced.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cerrno>

namespace skillet::interpose {

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
