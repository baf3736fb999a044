// leaked(): an object that is not destroyed when a process ends, for tables inside functions and other statics. Threads
// of a simulated chip go on until the very end: exit() destroys every static that has a destructor while they still
// read it. A library that can be unloaded gives such objects back itself, once nobody can use them. Called by whatever
// keeps such an object; tests/lint/exit_test.py finds those that do not. Must not know: what the object is.
#pragma once

#include <atomic>
#include <utility>

namespace skillet {

struct Leaked {
  virtual ~Leaked() = default;
  Leaked* next = nullptr;
};
void keep(Leaked* one);
// All of this library. None may be in use, now or later.
void destroy_leaked();

// The object of one place in the source, which `make` gives at its first use, from any thread. A static of a function
// would be made under a lock, for which a child of fork() waits for ever if a thread of its parent had it. Threads that
// come at the same time make one each, and the first one stays.
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
