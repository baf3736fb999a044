// Reader of a folder with capture.json, as the golden captures are kept.
// Called by capture::read.
// Must not know: what the bytes mean.
#pragma once

#include <string>

#include "capture/capture.h"

namespace skillet::capture {

Result<Capture> read_golden_folder(const std::string& folder);

}  // namespace skillet::capture
