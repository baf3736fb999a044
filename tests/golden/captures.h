// The folder of recorded cases: DIR/CHIP/SET/CASE/capture.json.
// Called by skillet_golden and its tests. Must not know: the contents of captures.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace skillet::golden {

// Lists all "set/case" names of DIR/CHIP, sorted. Error when there are none.
Result<std::vector<std::string>> list_captures(const std::string& dir, const std::string& chip);

}  // namespace skillet::golden
