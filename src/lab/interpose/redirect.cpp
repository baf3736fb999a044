#include "lab/interpose/redirect.h"

#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "base/environment.h"
#include "base/log.h"
#include "base/parse_number.h"
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

// Registers end() to run after the destructors of all libraries. This library's destructors run before those of
// libraries that the program is linked with, which may still close their devices. The handler belongs to no library,
// because otherwise it would run with this library's destructors.
__attribute__((destructor)) void end_last() {
  if (abi::__cxa_atexit(end, nullptr, nullptr) != 0) end(nullptr);
}

// The descriptor in a path such as "/proc/self/fdinfo/3" of this process; -1 for other paths.
int fdinfo_descriptor(std::string_view path) {
  for (const std::string& folder : {std::string("/proc/self/fdinfo/"), fmt::format("/proc/{}/fdinfo/", ::getpid())}) {
    const auto fd = parse_number<int>(path.substr(std::min(folder.size(), path.size())));
    if (path.starts_with(folder) && fd) return *fd;
  }
  return -1;
}

// Writes a file in the tree with the kernel's and the driver's fdinfo lines of an open node. Empty: the driver has
// none.
std::string write_fdinfo(const char* path) {
  const int fd = fdinfo_descriptor(path);
  const auto file = fd < 0 ? nullptr : OpenFiles::instance().find(fd);
  const std::string added = file == nullptr ? "" : file->fdinfo();
  const NodeTree* const tree = g_tree.load(std::memory_order_acquire);
  return added.empty() || tree == nullptr ? "" : tree->write_fdinfo(path, fd, added);
}

}  // namespace

const NodeTree* node_tree_if_built() { return Inside::now() ? nullptr : g_tree.load(std::memory_order_acquire); }

Redirect::Redirect(const char* path) : path_(path) {
  if (OpenFiles::any() && !Inside::now() && path != nullptr && std::string_view(path).starts_with("/proc/")) {
    const Inside inside;
    const int number = errno;
    buffer_ = guarded(std::string(), [&] { return write_fdinfo(path); });
    if (!buffer_.empty()) path_ = buffer_.c_str();
    errno = number;
    return;
  }
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
