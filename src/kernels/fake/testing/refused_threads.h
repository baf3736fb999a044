// RefusedThreads: limits the number of threads that the test can start, for its lifetime. Replaces pthread_create() in
// the program: link refused_threads.cpp. Called by tests. Must not know: which code starts threads.
#pragma once

namespace skillet::testing {

bool can_refuse_threads();

class RefusedThreads {
 public:
  explicit RefusedThreads(int allowed);
  ~RefusedThreads();
  RefusedThreads(const RefusedThreads&) = delete;
  RefusedThreads& operator=(const RefusedThreads&) = delete;
};

}  // namespace skillet::testing
