// OldCapture: an earlier recording at the path of a new one. It is removed only after the new one exists, and only if
// it is still the file that was there at the start: of concurrent recordings none is lost.
// Called by `skillet run --record` and `skillet capture`.
// Must not know: the content of recordings.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace skillet::tools {

class OldCapture {
 public:
  // Notes the file at `path`, or that there is none. Errors: no recording can be written there; the file is no capture
  // (of any version); another process is writing it.
  static Result<OldCapture> at(const std::string& path);
  OldCapture(OldCapture&& other) noexcept;
  OldCapture(const OldCapture&) = delete;
  ~OldCapture();  // moves it back, unless there is a new file

  // Moves it to an unpredictable name. An error if another file is at `path` by now; that one stays there.
  Result<void> set_aside();
  // Deletes the file set aside: the new recording exists.
  void discard();

 private:
  OldCapture() = default;

  std::string path_, aside_;  // aside_: empty if no file is set aside
  std::optional<struct stat> found_;
};

}  // namespace skillet::tools
