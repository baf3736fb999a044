#include "interpose/redirect.h"

#include <atomic>
#include <cerrno>
#include <mutex>

#include "base/log.h"
#include "interpose/virtual_options.h"

namespace skillet::interpose {
namespace {

std::atomic<NodeTree*> g_tree{nullptr};

const NodeTree* build_tree() {
  static std::mutex* const kMutex = new std::mutex;
  static bool failed = false;
  const std::lock_guard lock(*kMutex);
  if (NodeTree* const tree = g_tree.load(); tree != nullptr || failed) return tree;
  const VirtualOptions options = VirtualOptions::from_environment();
  auto made = NodeTree::create(options.root, identity_of(options.chip));
  failed = !made.ok();
  if (failed) {
    log::write(log::Level::error, made.error().message);
    return nullptr;
  }
  g_tree.store(std::move(made).value().release(), std::memory_order_release);
  return g_tree.load();
}

__attribute__((destructor)) void remove_tree() {
  const Inside inside;
  delete g_tree.exchange(nullptr);
}

}  // namespace

const NodeTree* node_tree_if_built() { return Inside::now() ? nullptr : g_tree.load(std::memory_order_acquire); }

Redirect::Redirect(const char* path) : path_(path) {
  if (Inside::now() || !NodeTree::covers(path)) return;
  const Inside inside;
  const int number = errno;
  tree_ = node_tree_if_built() != nullptr ? node_tree_if_built() : build_tree();
  errno = number;
  if (tree_ == nullptr) return;
  buffer_ = tree_->redirect(path);
  path_ = buffer_.c_str();
}

}  // namespace skillet::interpose
