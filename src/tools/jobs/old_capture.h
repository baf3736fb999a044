// OldCapture: an earlier recording where a new one is to be. It gives way when there is a new one, not before, and
// only if it is the one that was there when the work began: of recordings at the same time none is lost.
// Called by `skillet run --record` and `skillet capture`.
// Must not know: what is recorded.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace skillet::tools {

class OldCapture {
 public:
  // What is at `path`, or that nothing is. Errors: no new recording can be put there; what is there is no capture (of
  // whatever version); somebody is writing it.
  static Result<OldCapture> at(const std::string& path);
  OldCapture(OldCapture&& other) noexcept;
  OldCapture(const OldCapture&) = delete;
  ~OldCapture();  // puts it back, where nothing new is

  // Moves it to a name nobody foresees. An error when something else is at `path` by now, which then stays there.
  Result<void> set_aside();
  // Removes what was set aside: there is a new recording.
  void discard();

 private:
  OldCapture() = default;

  std::string path_, aside_;  // aside_: empty when nothing is set aside
  std::optional<struct stat> found_;
};

}  // namespace skillet::tools
