// Files that a verb writes are none of those that it reads, and none of them twice.
// Called by verbs with options that name files, before anything is written.
// Must not know: what is in them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace skillet::tools {

struct NamedFile {
  std::string option;  // "--output", "MODEL"
  std::string path;    // empty: not given
};

// Error: names both options. Links are followed; what is not there yet is known by its place. Pipes and devices may be
// written by several.
Result<void> check_apart(const std::vector<NamedFile>& read, const std::vector<NamedFile>& written);

}  // namespace skillet::tools
