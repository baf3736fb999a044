#pragma once

#include <string>

namespace skillet {

// `path`, which is relative to the source tree, as a full path, for tests.
std::string in_tree(const std::string& path);

}  // namespace skillet
