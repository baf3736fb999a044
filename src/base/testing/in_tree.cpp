#include "base/testing/in_tree.h"

namespace skillet {

std::string in_tree(const std::string& path) { return std::string(SKILLET_SOURCE_DIR) + "/" + path; }

}  // namespace skillet
