// Paths of files in the source tree. Called by tests. Must not know: what is in them.
#pragma once

#include <string>

namespace skillet {

// The full path of `path`, which is relative to the source tree.
std::string in_tree(const std::string& path);

}  // namespace skillet
