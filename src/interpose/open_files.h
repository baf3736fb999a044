// OpenFiles: which descriptors of the process are open files of the virtual node. Each open file is a memfd of its own,
// so copies of a descriptor are recognised by what they refer to, however they were made.
// Called by the hooks.
// Must not know: ioctls, paths.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "interpose/virtual_file.h"

namespace skillet::interpose {

class OpenFiles {
 public:
  static OpenFiles& instance();
  // Cheap: false until the first file was opened.
  static bool any() { return any_.load(std::memory_order_acquire); }

  // A descriptor, or a negative errno. `flags` as for open().
  int open(unsigned minor, int flags);
  std::shared_ptr<VirtualFile> find(int fd);
  std::optional<unsigned> minor_of(dev_t device, ino_t inode);
  // close(), and the end of the file when this was its last descriptor.
  int close(int fd);

 private:
  using Identity = std::pair<dev_t, ino_t>;
  static std::optional<Identity> identify(int fd);
  VirtualCore* core();
  void drop_closed();

  static inline constinit std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::unique_ptr<VirtualCore> core_;
  bool core_failed_ = false;
  std::map<Identity, std::shared_ptr<VirtualFile>> files_;
  pid_t owner_ = 0;
};

}  // namespace skillet::interpose
