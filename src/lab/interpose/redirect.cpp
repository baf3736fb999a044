#include "lab/interpose/redirect.h"

#include <cxxabi.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "base/environment.h"
#include "base/log.h"
#include "lab/interpose/environment.h"
#include "lab/interpose/guard.h"
#include "lab/interpose/open_files.h"

namespace skillet::interpose {
namespace {

std::atomic<NodeTree*> g_tree{nullptr};

std::mutex& tree_mutex() {
  static std::mutex* const kMutex = new std::mutex;  // never destroyed: hooks run until the very end of a process
  return *kMutex;
}

const NodeTree* build_tree() {
  static bool failed = false;
  const std::lock_guard lock(tree_mutex());
  if (NodeTree* const tree = g_tree.load(); tree != nullptr || failed) return tree;
  failed = true;
  const auto place = OpenFiles::instance().place();
  if (!place) return nullptr;
  const char* const root = environment_variable(kRootVariable);
  auto made = NodeTree::create(root == nullptr ? "" : root, *place);
  if (!made.ok()) {
    log::write(log::Level::error, made.error().message);
    return nullptr;
  }
  failed = false;
  g_tree.store(std::move(made).value().release(), std::memory_order_release);
  return g_tree.load();
}

void lock_all() {
  tree_mutex().lock();
  OpenFiles::instance().lock_all();
}

void unlock_all() {
  OpenFiles::instance().unlock_all();
  tree_mutex().unlock();
}

__attribute__((constructor)) void guard_forks() { ::pthread_atfork(lock_all, unlock_all, unlock_all); }

void end(void* /*unused*/) {
  const Inside inside;
  if (OpenFiles::any()) OpenFiles::instance().check_end();
  delete g_tree.exchange(nullptr);
}

// After the destructors of all libraries: this one's run before those of what the program is linked with, which may
// still close its devices. What is registered now runs when they have; it belongs to no library, or it would run with
// this one's.
__attribute__((destructor)) void end_last() {
  if (abi::__cxa_atexit(end, nullptr, nullptr) != 0) end(nullptr);
}

}  // namespace

const NodeTree* node_tree_if_built() { return Inside::now() ? nullptr : g_tree.load(std::memory_order_acquire); }

Redirect::Redirect(const char* path) : path_(path) {
  if (Inside::now() || !NodeTree::covers(path)) return;
  const Inside inside;
  const int number = errno;
  const auto redirected = [&] {
    tree_ = g_tree.load(std::memory_order_acquire);
    if (tree_ == nullptr) tree_ = build_tree();
    if (tree_ == nullptr) return false;
    buffer_ = tree_->redirect(path);
    return true;
  };
  if (guarded(false, redirected)) {
    path_ = buffer_.c_str();
  } else {
    tree_ = nullptr;
  }
  errno = number;
}

}  // namespace skillet::interpose
