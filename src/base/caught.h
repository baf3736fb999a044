// caught(): runs a body and returns its exception as an error: for our threads, where nothing could catch it.
// Called by code that starts threads, has to clean up before an exception goes on, or must not throw.
// Must not know: what the body does.
#pragma once

#include <exception>
#include <new>
#include <string_view>

#include "base/log.h"
#include "base/result.h"

namespace skillet {

// Needs no memory: the text is short enough for the string's inline buffer.
inline Error out_of_memory() noexcept { return Error{ErrorCode::io, "out of memory"}; }

// The message to show.
inline const char* text_of(const std::exception& thrown) noexcept {
  return dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr ? "out of memory" : thrown.what();
}

template <typename Body>
Result<void> caught(Body&& body) noexcept {
  try {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    } catch (const std::exception& thrown) {
      return Error{ErrorCode::internal, thrown.what()};
    }
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

// For destructors: an error of `body` is logged as a warning, if there is memory for it.
template <typename Body>
void tidy(std::string_view what, Body&& body) noexcept {
  const Result<void> done = caught(body);
  if (done.ok()) return;
  static_cast<void>(caught([&]() -> Result<void> {
    log::warning("{}: {}", what, done.error().message);
    return {};
  }));
}

}  // namespace skillet
