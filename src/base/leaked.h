// leaked(): an object that is not destroyed when a process ends, for tables inside functions and other statics. Threads
// of a simulated chip go on until the very end: exit() destroys every static that has a destructor while they still
// read it. A library that can be unloaded gives such objects back itself, once nobody can use them. Called by whatever
// keeps such an object; tests/lint/exit_test.py finds those that do not. Must not know: what the object is.
#pragma once

#include <utility>

namespace skillet {

struct Leaked {
  virtual ~Leaked() = default;
  Leaked* next = nullptr;
};
void keep(Leaked* one);
// All of this library. None may be in use, now or later.
void destroy_leaked();

template <typename T, typename... Args>
T& leaked(Args&&... args) {
  struct Kept final : Leaked {
    explicit Kept(Args&&... args) : object(std::forward<Args>(args)...) {}
    T object;
  };
  auto* const kept = new Kept(std::forward<Args>(args)...);
  keep(kept);
  return kept->object;
}

}  // namespace skillet
