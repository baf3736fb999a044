// RefusedThreads: while one lives, the system starts no more than some threads of the test. Takes the place of
// pthread_create() in the program: link refused_threads.cpp. Called by tests. Must not know: who starts threads.
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
