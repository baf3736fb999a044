// Programs of the RK3576's vendor compiler as captures that `skillet decode` and `skillet replay` read, so that owners
// of a board can run them as they are, with their own buffers. Called by skillet_golden.
// Must not know: simulators, how programs are encoded.
#pragma once

#include "capture/capture.h"
#include "vendor_files.h"

namespace skillet::golden {

// A submission for each operation, of the programs that the first core runs alone; the programs of one operation are
// the tasks of one job. Inputs hold random bytes, outputs a pattern that no program leaves.
Result<capture::Submission> submission_of(const VendorCase& c, int number);
// Of the second core (1): its own convolutions, with other places in the buffer that both share.
Result<capture::Capture> capture_of(const VendorCase& c, const std::string& compatible, int core = 0);
// DIR/CHIP/SET/CASE to FOLDER/SET.CASE.capture, and .second.capture for the second core; those of
// vendor_variants.h; of floats whose results are exact these too, in .expected/.
Result<void> write_vendor_capture(const std::string& dir, const std::string& chip, const std::string& name,
                                  const std::string& folder);

}  // namespace skillet::golden
