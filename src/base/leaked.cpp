#include "base/leaked.h"

#include <atomic>

namespace skillet {
namespace {
constinit std::atomic<Leaked*> g_first{nullptr};
}

void keep(Leaked* one) {
  one->next = g_first;
  while (!g_first.compare_exchange_weak(one->next, one)) continue;
}

void destroy_leaked() {
  for (Leaked* one = g_first.exchange(nullptr); one != nullptr;) delete std::exchange(one, one->next);
}

}  // namespace skillet
