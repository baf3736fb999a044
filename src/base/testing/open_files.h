// How many files this process has open: the same before and after a test, or one was forgotten.
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
