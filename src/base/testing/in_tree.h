// Where files of the source tree are. Called by tests. Must not know: what is in them.
#pragma once

#include <string>

namespace skillet {

// `path`, relative to the source tree, as a full path.
std::string in_tree(const std::string& path);

}  // namespace skillet
