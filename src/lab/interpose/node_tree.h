// NodeTree: a folder with the part of /dev and /sys that a device brings with it, made of real files, so that listing,
// reading and resolving links work by themselves once a path is redirected into it.
// Called by the hooks of the virtual device node.
// Must not know: ioctls, buffers, any single kernel driver.
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
  // Fills `root`, or a new temporary folder when it is empty; that one is removed when the process exits.
  // Filling what is filled already does no harm: processes share a root.
  static Result<std::unique_ptr<NodeTree>> create(const std::string& root, const fake::NodePlace& place);
  ~NodeTree();

  // Whether `path` is one that a tree holds or hides; knows it without a tree.
  static bool covers(const char* path);
  std::string redirect(const char* path) const { return root_ + path; }
  // The path as the process shall see it.
  std::string undo(const char* path) const;
  // The minor number of the node that this file stands for.
  std::optional<unsigned> minor_of(dev_t device, ino_t inode) const;
  // A file with the lines of `path` and those `added`; its name. Empty: it cannot be made.
  std::string write_fdinfo(const char* path, int fd, const std::string& added) const;
  // Of all nodes.
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
