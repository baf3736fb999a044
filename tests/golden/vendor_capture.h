// Programs of the RK3576's vendor compiler as captures for `skillet decode` and `skillet replay`, so that owners of a
// board can run them unchanged, with their own buffers. Called by skillet_golden.
// Must not know: simulators, how programs are encoded.
#pragma once

#include "capture/capture.h"
#include "vendor_files.h"

namespace skillet::golden {

// Returns a submission for one operation, with the programs that the first core runs alone; they are the tasks of one
// job. Inputs contain random bytes, outputs a pattern that every program overwrites.
Result<capture::Submission> submission_of(const VendorCase& c, int number);
// `core` 1: the second core's own convolutions, with other places in the buffer that both cores share.
Result<capture::Capture> capture_of(const VendorCase& c, const std::string& compatible, int core = 0);
// Writes DIR/CHIP/SET/CASE to FOLDER/SET.CASE.capture, and .second.capture for the second core; also the captures of
// vendor_variants.h; and exact results of floats, in .expected/.
Result<void> write_vendor_capture(const std::string& dir, const std::string& chip, const std::string& name,
                                  const std::string& folder);

}  // namespace skillet::golden
