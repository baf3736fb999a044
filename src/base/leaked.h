// leaked(): an object that is not destroyed when a process ends, for tables inside functions and other statics. Threads
// of a simulated chip run until the very end, while exit() destroys every static that has a destructor. A library that
// can be unloaded destroys these objects itself, after their last use. Called by code with such an object;
// tests/lint/exit_test.py finds statics that need it. Must not know: what the object is.
#pragma once

#include <atomic>
#include <utility>

namespace skillet {

struct Leaked {
  virtual ~Leaked() = default;
  Leaked* next = nullptr;
};
void keep(Leaked* one);
// Destroys all objects of this library. None may be used afterwards.
void destroy_leaked();

// One object per place in the source, created by `make` at its first use, from any thread. A static of a function would
// be created under a lock, for which a child of fork() waits for ever if a thread of its parent held it. Concurrent
// threads create one each, and the first one is kept.
template <typename Make>
auto& leaked(Make make) {
  using T = decltype(make());
  struct Kept final : Leaked {
    explicit Kept(Make& make) : object(make()) {}
    T object;
  };
  static constinit std::atomic<T*> place{nullptr};
  if (T* const made = place.load(std::memory_order_acquire); made != nullptr) return *made;
  auto* const kept = new Kept(make);
  keep(kept);
  T* first = nullptr;
  return place.compare_exchange_strong(first, &kept->object) ? kept->object : *first;
}

}  // namespace skillet
