// guarded(): keeps exceptions out of the program that a library is preloaded into, which may be in C.
// Called by the hooks, around all code that does more than a call of the C library.
// Must not know: the code that is guarded.
#pragma once

#include <cerrno>
#include <exception>
#include <new>

namespace skillet::interpose {

// Returns the result of `body`; if it throws, sets errno and returns `failure`. The cancellation of a thread passes
// through: it is not an exception.
template <typename Result, typename Body>
Result guarded(Result failure, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
  } catch (const std::exception&) {
    errno = EIO;
  }
  return failure;
}

}  // namespace skillet::interpose
