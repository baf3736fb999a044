// OpenFiles: the emulated kernel driver of the process, and which descriptors are open files of its nodes. Each open
// file is a memfd of its own, so copies of a descriptor are recognised by what they refer to, however they were made.
// Called by the hooks.
// Must not know: ioctls, paths, any single kernel driver.
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

  // How the device shows; nothing when the kernel cannot be made (the reason is logged).
  std::optional<fake::NodePlace> place();
  // A descriptor, or a negative errno. `flags` as for open().
  int open(unsigned minor, int flags);
  // `failure`: set to the errno where the descriptor could not be asked what it is.
  std::shared_ptr<fake::File> find(int fd, int* failure = nullptr);
  // For flock(): a descriptor of a file of the node in the tree `root`, which no other open file of ours has. Or a
  // negative errno.
  int lock_file(int fd, const std::string& root);
  // The minor number, when one of our files is behind it.
  std::optional<unsigned> minor_of(dev_t device, ino_t inode);
  // close(), and the end of the file when this was its last descriptor.
  int close(int fd);

  // When the process ends.
  void check_end();

  // Around fork(): a child gets everything whole, and no lock that a thread of its parent held.
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
