// SK_CHECK: stops the process on a broken invariant of this code, in release builds too.
// Never for untrusted input: that gets a Result with a message.
// Must not know: anything above base/.
#pragma once

#include <cstdio>
#include <cstdlib>

#define SK_CHECK(condition)                                                                            \
  do {                                                                                                 \
    if (!(condition)) [[unlikely]] {                                                                   \
      std::fprintf(stderr, "skillet: bug: %s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                    \
    }                                                                                                  \
  } while (0)
