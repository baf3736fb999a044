// NodeTree: a folder with the /dev/dri and the part of /sys that a DRM device brings with it, made of real files, so
// that listing, reading and resolving links work by themselves once a path is redirected into it.
// Called by the hooks of the virtual device node.
// Must not know: ioctls, buffers.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "interpose/chip_identity.h"

namespace skillet::interpose {

constexpr unsigned kDrmMajor = 226, kCardMinor = 0, kRenderMinor = 128;

class NodeTree {
 public:
  // Fills `root`, or a new temporary folder when it is empty; that one is removed when the process exits.
  // Filling what is filled already does no harm: processes share a root.
  static Result<std::unique_ptr<NodeTree>> create(const std::string& root, const ChipIdentity& identity);
  ~NodeTree();

  // Whether `path` is one that the tree holds or hides; knows it without a tree.
  static bool covers(const char* path);
  std::string redirect(const char* path) const { return root_ + path; }
  // The path as the process shall see it.
  std::string undo(const char* path) const;
  // The minor number of the node that this file stands for.
  std::optional<unsigned> minor_of(dev_t device, ino_t inode) const;

 private:
  NodeTree() = default;
  Result<void> fill(const ChipIdentity& identity);
  Result<void> add_minor(const std::string& device, const std::string& name, unsigned minor);
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
  Node nodes_[2] = {};
  int node_count_ = 0;
};

}  // namespace skillet::interpose
