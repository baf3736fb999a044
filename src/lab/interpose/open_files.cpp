#include "lab/interpose/open_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <set>
#include <string>

#include "base/environment.h"
#include "base/log.h"
#include "base/vendors.h"
#include "kernels/fake/kernels.h"
#include "lab/interpose/environment.h"
#include "lab/interpose/libc.h"

namespace skillet::interpose {
namespace {

std::string variable(const char* name, const char* otherwise = "") {
  const char* const value = environment_variable(name);
  return value == nullptr ? otherwise : value;
}

// "1.N": the interface version of an out-of-tree kernel of rocket.
std::optional<int> extensions() {
  constexpr int kLast = 6;
  const std::string version = variable(kInterfaceVariable, "0.0");
  for (int minor = 0; minor <= kLast; ++minor)
    if (version == fmt::format("1.{}", minor)) return minor;
  if (version != "0.0") log::warning("{}={}: must be 0.0, or 1.0 to 1.6; taking 0.0", kInterfaceVariable, version);
  return std::nullopt;
}

// Invalid values are logged and ignored: no caller could receive an error.
fake::Options options(const std::string& chip) {
  fake::Options options;
  options.traces = variable(kTraceVariable, "0") != "0";
  const std::string fault = variable(kFaultVariable, "reset");
  if (fault == "error") options.on_fault = fake::OnFault::error;
  if (fault != "error" && fault != "reset")
    log::warning("{}={}: must be reset or error; taking reset", kFaultVariable, fault);
  const std::string misuse = variable(kMisuseVariable, "report");
  if (misuse != "abort") options.on_misuse = fake::OnMisuse::report;
  if (misuse != "abort" && misuse != "report")
    log::warning("{}={}: must be report or abort; taking report", kMisuseVariable, misuse);
  const long release_ms = std::atol(variable(kReleaseVariable).c_str());
  options.extensions = extensions();
  if (release_ms > 0) options.release_time = std::chrono::milliseconds(release_ms);
  auto faults = fake::FaultPlan::parse(variable(kFailVariable), chip);
  if (faults.ok()) {
    options.faults = std::move(faults).value();
  } else {
    log::warning("{}: {}; injecting nothing", kFailVariable, faults.error().message);
  }
  return options;
}

// "null:CHIP" computes nothing, to time the software before the device.
Result<std::unique_ptr<fake::Kernel>> make_kernel(const std::string& chip) {
  constexpr std::string_view kNull = "null:";
  if (!chip.starts_with(kNull)) return fake::create_kernel(chip, options(chip));
  const std::string name = chip.substr(kNull.size());
  return fake::create_kernel(name, nullptr, options(name));
}

std::string path_of(const fake::NodePlace& place, unsigned minor) {
  std::string path = place.folder + "/";
  for (const fake::NodePlace::Node& node : place.nodes)
    if (node.minor == minor) path += node.name;
  return path;
}

}  // namespace

OpenFiles& OpenFiles::instance() {
  static OpenFiles* const kInstance = new OpenFiles;  // never destroyed: hooks run until the very end of a process
  return *kInstance;
}

OpenFiles::Open::~Open() {
  if (lock >= 0) libc::close(lock);
}

std::optional<OpenFiles::Identity> OpenFiles::identify(int fd) {
  struct stat status {};
  if (fd < 0 || libc::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

fake::Kernel* OpenFiles::kernel() {
  if (kernel_ == nullptr && !kernel_failed_) {
    auto made = make_kernel(variable(kChipVariable, default_chip().data()));
    kernel_failed_ = !made.ok();
    if (made.ok()) {
      kernel_ = std::move(made).value();
      owner_ = ::getpid();
    } else {
      log::write(log::Level::error, "virtual device node: " + made.error().message);
    }
  }
  return kernel_.get();
}

std::optional<fake::NodePlace> OpenFiles::place() {
  const std::lock_guard lock(mutex_);
  fake::Kernel* const device = kernel();
  if (device == nullptr) return std::nullopt;
  return device->place();
}

int OpenFiles::open(unsigned minor, int flags) {
  std::shared_ptr<fake::File> file;
  Files closed;
  const std::lock_guard lock(mutex_);
  fake::Kernel* const device = kernel();
  if (device == nullptr) return -ENODEV;
  if (const int failure = device->open(minor, file); failure != 0) return failure;
  closed = take_closed();
  // The name is for observers outside the process.
  const std::string name = kNodeName + path_of(device->place(), minor);
  const int fd = ::memfd_create(name.c_str(), (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
  if (fd < 0) return -errno;
  const std::optional<Identity> identity = identify(fd);
  if (!identity) {
    libc::close(fd);
    return -EIO;
  }
  files_[*identity].file = std::move(file);
  any_.store(true, std::memory_order_release);
  return fd;
}

std::shared_ptr<fake::File> OpenFiles::find(int fd, int* failure) {
  errno = 0;
  const std::optional<Identity> identity = identify(fd);
  if (!identity && failure != nullptr) *failure = errno;
  if (!identity) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(*identity);
  return found == files_.end() ? nullptr : found->second.file;
}

int OpenFiles::lock_file(int fd, const std::string& root) {
  const std::optional<Identity> identity = identify(fd);
  const std::lock_guard lock(mutex_);
  const auto found = identity ? files_.find(*identity) : files_.end();
  if (found == files_.end()) return -EBADF;
  Open& open = found->second;
  const std::string path = root + path_of(kernel_->place(), open.file->minor());
  if (open.lock < 0) open.lock = libc::open(path.c_str(), O_RDWR | O_CLOEXEC);
  return open.lock < 0 ? -errno : open.lock;
}

std::optional<unsigned> OpenFiles::minor_of(dev_t device, ino_t inode) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find({device, inode});
  if (found == files_.end()) return std::nullopt;
  return found->second.file->minor();
}

// Removes the files that no descriptor of the process refers to any more. A file waits for its jobs when it ends, and a
// job may call hooks, so it must not end under our lock.
OpenFiles::Files OpenFiles::take_closed() {
  Files closed;
  if (files_.empty() || owner_ != ::getpid()) return closed;
  DIR* const folder = libc::opendir("/proc/self/fd");
  if (folder == nullptr) return closed;
  std::set<Identity> alive;
  while (const dirent* const entry = libc::readdir(folder)) {
    if (const auto identity = identify(std::atoi(entry->d_name))) alive.insert(*identity);
  }
  ::closedir(folder);
  for (auto file = files_.begin(); file != files_.end();) {
    const auto next = std::next(file);
    if (!alive.contains(file->first)) closed.insert(files_.extract(file));
    file = next;
  }
  return closed;
}

// A child after fork(), or vfork() with its parent's memory, must not close the parent's files.
int OpenFiles::close(int fd) {
  const std::optional<Identity> identity = owner_ == ::getpid() ? identify(fd) : std::nullopt;
  const int result = libc::close(fd);
  const int number = errno;
  if (identity) {
    Files closed;
    const std::lock_guard lock(mutex_);
    if (files_.contains(*identity)) closed = take_closed();
  }
  errno = number;
  return result;
}

// Checks the files that the kernel would close at the end of the process.
void OpenFiles::check_end() {
  const std::lock_guard lock(mutex_);
  if (owner_ != ::getpid()) return;
  for (const auto& [identity, open] : files_) open.file->check_close();
}

void OpenFiles::lock_all() {
  mutex_.lock();
  if (kernel_ != nullptr) kernel_->lock_all();
}

void OpenFiles::unlock_all() {
  if (kernel_ != nullptr) kernel_->unlock_all();
  mutex_.unlock();
}

}  // namespace skillet::interpose
