// Redirect: maps a path into the node tree while a hook calls the C library's function with it.
// Called by the hooks of the virtual device node.
// Must not know: ioctls, buffers.
#pragma once

#include <string>

#include "lab/interpose/node_tree.h"

namespace skillet::interpose {

// While an Inside exists, hooks of its thread pass all calls on: our own calls must not be redirected.
class Inside {
 public:
  Inside() { ++depth_; }
  ~Inside() { --depth_; }
  Inside(const Inside&) = delete;
  static bool now() { return depth_ > 0; }

 private:
  __attribute__((tls_model("initial-exec"))) static inline thread_local int depth_ = 0;
};

class Redirect {
 public:
  explicit Redirect(const char* path);
  const char* path() const { return path_; }
  bool is_active() const { return tree_ != nullptr; }
  const NodeTree& tree() const { return *tree_; }

 private:
  const NodeTree* tree_ = nullptr;
  const char* path_;
  std::string buffer_;
};

// The tree, once one of its paths was used; null before, and inside.
const NodeTree* node_tree_if_built();

}  // namespace skillet::interpose
