// NodeTree: a folder with the parts of /dev and /sys that belong to a device, made of real files. Once a path is
// redirected into it, listing, reading and resolving links work without further code.
// Called by the hooks of the virtual device node.
// Must not know: ioctls, buffers, any specific kernel driver.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/fake/kernel.h"

namespace skillet::interpose {

class NodeTree {
 public:
  // Fills `root`, or a new temporary folder if it is empty; the temporary folder is removed when the process exits. A
  // folder may be filled again: processes share a root.
  static Result<std::unique_ptr<NodeTree>> create(const std::string& root, const fake::NodePlace& place);
  ~NodeTree();

  // True if a tree contains or hides `path`; needs no tree.
  static bool covers(const char* path);
  std::string redirect(const char* path) const { return root_ + path; }
  // The path as the process must see it.
  std::string undo(const char* path) const;
  // The minor number of the node that this file represents.
  std::optional<unsigned> minor_of(dev_t device, ino_t inode) const;
  // Writes a file with the lines of `path` and those in `added`; returns its name. Empty: it cannot be made.
  std::string write_fdinfo(const char* path, int fd, const std::string& added) const;
  // The major number of all nodes.
  unsigned major() const { return major_; }

 private:
  NodeTree() = default;
  Result<void> fill(const fake::NodePlace& place);
  Result<void> add_device(const fake::NodePlace& place, const fake::NodePlace::Device& device);
  Result<void> add_node(const fake::NodePlace& place, const std::string& device, const fake::NodePlace::Node& node);
  Result<void> folder(const std::string& path) const;
  Result<void> file(const std::string& path, const std::string& text) const;
  Result<void> link(const std::string& path, const std::string& target) const;

  struct Node {
    dev_t device;
    ino_t inode;
    unsigned minor;
  };
  std::string root_;
  bool is_own_ = false;
  pid_t owner_ = 0;
  unsigned major_ = 0;
  std::vector<Node> nodes_;
};

}  // namespace skillet::interpose
