// A folder of this process in the folder for temporary files (TMPDIR), deleted at the end.
// Called by verbs that pass files to other programs.
// Must not know: its contents.
#pragma once

#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"

namespace skillet::tools {

class TemporaryFolder {
 public:
  // `name`: name of the verb. Error: TMPDIR is no folder, or is not writable.
  static Result<TemporaryFolder> create(const std::string& name);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~TemporaryFolder() {
    if (!path_.empty()) remove_folder(path_);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace skillet::tools
