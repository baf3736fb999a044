// Errors for the host: a status for it, a line for people. Called by the functions that it calls.
// Must not know: what they do.
#pragma once

#include <exception>

#include "base/caught.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/litert/litert_abi.h"

namespace skillet::litert {

// Nothing may be thrown into the host. `failed`: the status of an error.
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
