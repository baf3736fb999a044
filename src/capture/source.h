// Source of a Reader's submissions: a file, a folder, memory.
// Called inside capture/ only.
// Must not know: the reading code.
#pragma once

#include "capture/reader.h"

namespace skillet::capture {

class Reader::Source {
 public:
  virtual ~Source() = default;
  virtual size_t count() const = 0;
  // Called with 0, 1, 2, ... below count(), and with 0 again.
  virtual Result<Submission> submission(size_t index) = 0;

  DeviceInfo device;
  std::string cut_off;
};

Result<std::shared_ptr<Reader::Source>> open_golden_folder(const std::string& folder);

}  // namespace skillet::capture
