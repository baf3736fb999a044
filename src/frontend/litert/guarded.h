// Reports errors to the host as a status, and to the log as text. Called by the functions that the host calls.
// Must not know: what these functions do.
#pragma once

#include <exception>

#include "base/caught.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/litert/litert_abi.h"

namespace skillet::litert {

// Catches all exceptions: none may reach the host. `failed`: the status for an error.
template <typename F>
Status guarded(Status failed, F&& f) {
  const Result<void> done = caught(f);
  if (done.ok()) return kOk;
  static_cast<void>(caught([&]() -> Result<void> {
    log::message(log::Level::error, "LiteRT: {}", printable(done.error().message));
    return {};
  }));
  return failed;
}

inline Status refused(const char* why) {
  return guarded(kWrongVersion, [&]() -> skillet::Result<void> { return error(ErrorCode::unsupported, "{}", why); });
}

}  // namespace skillet::litert
