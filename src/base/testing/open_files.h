// Number of open files of this process: equal before and after a test unless the test leaks one.
// Called by fixtures of tests.
// Must not know: whose files they are.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace skillet::testing {

inline size_t open_files() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

}  // namespace skillet::testing
