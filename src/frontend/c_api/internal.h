// Shared by the files of the C interface: errors across the C boundary, and the structs behind the opaque types.
// Called inside frontend/c_api/ only.
// Must not know: anything beyond skillet.h.
#pragma once

#include <exception>
#include <string>

#include "base/caught.h"
#include "base/text.h"
#include "runtime/session.h"
#include "skillet/skillet.h"

struct skillet_device {
  skillet::runtime::Target target;
};

namespace skillet::c_api {

inline thread_local std::string last_error;

skillet_status status_of(ErrorCode code);

// Runs `body`, which returns Result<void>, and keeps the message of its error. No exception crosses the C boundary:
// bad_alloc and others become INTERNAL.
template <typename Body>
skillet_status guard(Body body) noexcept {
  try {
    const Result<void> result = body();
    if (result.ok()) return SKILLET_OK;
    last_error = printable(result.error().message);  // it may contain names from files
    return status_of(result.error().code);
  } catch (const std::exception& e) {
    try {
      last_error = printable(text_of(e));
    } catch (const std::exception&) {
      last_error.clear();
    }
    return SKILLET_INTERNAL;
  } catch (...) {
    last_error.clear();
    return SKILLET_INTERNAL;
  }
}

Error null_argument(const char* name);

// Checks a struct that the caller passes to be filled.
template <typename Info>
Result<void> check_info(const Info* out) {
  if (out == nullptr) return null_argument("out");
  if (out->struct_bytes == sizeof *out) return {};
  return error(ErrorCode::invalid_argument, "out: struct_bytes is {}, not {}", out->struct_bytes, sizeof *out);
}

// Merges the environment, `options` (null: none) and options->more; later ones have priority.
Result<runtime::SessionOptions> session_options(const skillet_options* options);

}  // namespace skillet::c_api
