// Checks that a verb writes no file that it reads, and no file twice.
// Called by verbs with options that name files, before anything is written.
// Must not know: contents of files.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace skillet::tools {

struct NamedFile {
  std::string option;  // "--output", "MODEL"
  std::string path;    // empty: not given
};

// Error: names both options. Links are followed; files that do not exist yet are compared by path. Pipes and devices
// may be written by several options.
Result<void> check_apart(const std::vector<NamedFile>& read, const std::vector<NamedFile>& written);

}  // namespace skillet::tools
