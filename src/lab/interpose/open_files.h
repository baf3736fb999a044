// OpenFiles: the emulated kernel driver of the process, and the descriptors that are open files of its nodes. Each open
// file is a separate memfd, so copies of a descriptor are recognised by the memfd, however they were made.
// Called by the hooks.
// Must not know: ioctls, paths, any specific kernel driver.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "kernels/fake/kernel.h"

namespace skillet::interpose {

class OpenFiles {
 public:
  static OpenFiles& instance();
  // Cheap: false until the first file was opened.
  static bool any() { return any_.load(std::memory_order_acquire); }

  // The device's place in /dev and /sys; nothing if the kernel cannot be made (the reason is logged).
  std::optional<fake::NodePlace> place();
  // A descriptor, or a negative errno. `flags` as for open().
  int open(unsigned minor, int flags);
  // `failure`: set to the errno if the descriptor could not be identified.
  std::shared_ptr<fake::File> find(int fd, int* failure = nullptr);
  // For flock(): a descriptor of the node's file in the tree `root`, separate for each open file. Or a negative errno.
  int lock_file(int fd, const std::string& root);
  // The minor number, if the file is one of these.
  std::optional<unsigned> minor_of(dev_t device, ino_t inode);
  // close(), and the end of the file if this was its last descriptor.
  int close(int fd);

  // Called when the process ends.
  void check_end();

  // Around fork(): a child gets consistent data, and no lock that another thread of its parent held.
  void lock_all();
  void unlock_all();

 private:
  using Identity = std::pair<dev_t, ino_t>;
  static std::optional<Identity> identify(int fd);
  struct Open {
    std::shared_ptr<fake::File> file;
    int lock = -1;  // see lock_file()
    Open() = default;
    Open(const Open&) = delete;
    ~Open();
  };
  using Files = std::map<Identity, Open>;
  fake::Kernel* kernel();
  Files take_closed();

  static inline constinit std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::unique_ptr<fake::Kernel> kernel_;
  bool kernel_failed_ = false;
  Files files_;
  pid_t owner_ = 0;
};

}  // namespace skillet::interpose
