// A folder for the files of one test process, so that other runs on the machine do not see them.
// Called by tests, for every path that they write to. A rule of tests/lint forbids other temporary names.
// Must not know: what is in the files.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace skillet {

class OwnFolder {
 public:
  OwnFolder() {
    if (::mkdtemp(path_.data()) != nullptr) return;
    std::perror(path_.c_str());
    std::abort();  // never continue with a path that others write to
  }
  ~OwnFolder() {
    std::error_code ignored;
    if (::getpid() == process_) std::filesystem::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::path(::testing::TempDir()) / "skillet-test-XXXXXX").string();
  const pid_t process_ = ::getpid();  // children of fork() do not remove it
};

// A path in it, which exists only if this process has created it.
inline std::string own_path(const std::string& name) {
  static const OwnFolder folder;
  return folder.path() + "/" + name;
}

}  // namespace skillet
