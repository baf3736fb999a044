// guarded(): nothing may be thrown into the program that a library is preloaded into, which may be in C.
// Called by the hooks, around all that is more than a call of the C library.
// Must not know: what is guarded.
#pragma once

#include <cerrno>
#include <exception>
#include <new>

namespace skillet::interpose {

// What `body` returns; when it throws, `failure` and errno. The end of a cancelled thread passes: it is no exception.
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
