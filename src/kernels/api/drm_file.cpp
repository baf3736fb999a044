#include "kernels/api/drm_file.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "base/caught.h"
#include "kernels/api/node_access.h"

namespace skillet::kernels {
namespace {

struct Advice {
  int number;
  const char* name;
  ErrorCode code;
  const char* text;
};

// One row for each known failure of these calls.
constexpr Advice kAdvice[] = {
    {ENOMEM, "ENOMEM", ErrorCode::io,
     "the kernel is out of memory for it: close other programs, or run a smaller model or fewer at a time"},
    {ENODEV, "ENODEV", ErrorCode::device,
     "the device was removed: its kernel driver was unbound or unloaded (see dmesg); open it again when it is back"},
    {ENXIO, "ENXIO", ErrorCode::device, "this DRM device has no such core: see skillet devices"},
    {EACCES, "EACCES", ErrorCode::io,
     "no permission: sudo usermod -aG render $USER, then log in again (skillet doctor shows more)"},
    {EPERM, "EPERM", ErrorCode::io,
     "not permitted: a container or sandbox must pass the node through (--device NODE; skillet doctor shows more)"},
    {ETIMEDOUT, "ETIMEDOUT", ErrorCode::timeout,
     "the NPU did not finish in time: it hangs, or other programs keep it busy; dmesg shows whether it was reset"},
    {EIO, "EIO", ErrorCode::device,
     "the hardware or its driver failed (see dmesg); try again, then reload the driver or reboot"},
    {EINVAL, "EINVAL", ErrorCode::device,
     "the kernel refused the arguments: it is too old (see skillet doctor), or this is a bug to report with the output "
     "of SKILLET_DEBUG=submit"},
    {EBUSY, "EBUSY", ErrorCode::device, "something else uses it: wait for other programs on the NPU and try again"},
    {ENOSPC, "ENOSPC", ErrorCode::out_of_range, "the device's address space is full: run fewer models in one process"},
    {EINTR, "EINTR", ErrorCode::io, "signals kept interrupting it: block timer signals around the call"},
    {EAGAIN, "EAGAIN", ErrorCode::device, "the kernel kept asking to try again: the NPU is overloaded or stuck"},
    {EMFILE, "EMFILE", ErrorCode::io, "too many open files in this process: raise ulimit -n"},
    {ENFILE, "ENFILE", ErrorCode::io, "too many open files on this machine"},
    {ENOENT, "ENOENT", ErrorCode::io, "see skillet devices"},
    {ENOTTY, "ENOTTY", ErrorCode::unsupported, "it is not a DRM device of the expected driver: see skillet devices"},
    {EFAULT, "EFAULT", ErrorCode::internal, "a bug to report"},
};

const Advice* advice_for(int number) {
  for (const Advice& row : kAdvice) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

Error os_error(const std::string& node, std::string_view what, int number) {
  const Advice* row = advice_for(number);
  const std::string text = std::generic_category().message(number);
  const std::string head = fmt::format("{}: {}: {} ({})", node, what, errno_name(number), text);
  if (row == nullptr) return error(ErrorCode::io, "{}: see dmesg", head);
  const std::string exact = number == EACCES || number == EPERM ? missing_permission(node) : "";
  return error(row->code, "{}: {}", head, exact.empty() ? row->text : exact);
}

// EINTR, EAGAIN, or another error that is temporary.
bool is_passing(int result, int passing) { return result == -EINTR || result == -EAGAIN || result == -passing; }

// Repeats `attempt`, which returns 0 or more or a negative errno, for at most `patience` while the error is temporary:
// a few times at once, as after a signal, then with increasing pauses.
template <typename Attempt>
int patiently(Syscalls& calls, std::chrono::nanoseconds patience, int passing, Attempt attempt) {
  constexpr int kAtOnce = 8;
  constexpr std::chrono::microseconds kFirstPause{50}, kLongestPause{2'000};
  int result = attempt();
  if (!is_passing(result, passing)) return result;
  const auto give_up = calls.now() + patience;
  auto pause = kFirstPause;
  for (int i = 0; calls.now() < give_up; ++i) {
    if (i >= kAtOnce) {
      calls.pause(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
    result = attempt();
    if (!is_passing(result, passing)) return result;
  }
  return result;
}

}  // namespace

int64_t deadline(std::chrono::nanoseconds timeout) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t start = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  return timeout.count() > INT64_MAX - start ? INT64_MAX : start + std::max<int64_t>(0, timeout.count());
}

std::string errno_name(int number) {
  const Advice* row = advice_for(number);
  return row != nullptr ? row->name : fmt::format("errno {}", number);
}

Result<std::optional<DrmFile>> DrmFile::open_if_there(const SyscallsRef& calls, const std::string& node) {
  const int fd = patiently(*calls, kPatience, EINTR, [&] { return calls->open(node); });
  if (fd >= 0) return std::optional<DrmFile>(DrmFile(calls, fd, node));
  if (fd == -ENOENT) return std::optional<DrmFile>();
  return os_error(node, "opening", -fd);
}

Result<DrmFile> DrmFile::open(const SyscallsRef& calls, const std::string& node) {
  SK_TRY_ASSIGN(std::optional<DrmFile> file, open_if_there(calls, node));
  if (!file) return os_error(node, "opening", ENOENT);
  return std::move(*file);
}

DrmFile DrmFile::borrow(const SyscallsRef& calls, int fd, const std::string& node) {
  DrmFile file(calls, fd, node);
  file.is_own_ = false;
  return file;
}

DrmFile::DrmFile(DrmFile&& other) noexcept
    : calls_(other.calls_),
      fd_(other.fd_),
      node_(std::move(other.node_)),
      is_own_(std::exchange(other.is_own_, false)) {}

DrmFile::~DrmFile() { close(); }

void DrmFile::close() {
  if (std::exchange(is_own_, false)) calls_->close(fd_);
}

int DrmFile::try_call(unsigned long request, void* argument, std::chrono::nanoseconds patience, int passing) const {
  if (was_interrupted_) patience = std::min<std::chrono::nanoseconds>(patience, kShortPatience);
  const int result = patiently(*calls_, patience, passing, [&] { return calls_->ioctl(fd_, request, argument); });
  was_interrupted_ = is_passing(result, passing);
  return result < 0 ? -result : 0;
}

Result<void> DrmFile::call(unsigned long request, void* argument, std::string_view what,
                           std::chrono::nanoseconds patience) const {
  const int number = try_call(request, argument, patience);
  if (number != 0) return failure(number, what);
  return {};
}

void DrmFile::close_buffer(uint32_t handle) const {
  drm::GemClose request{.handle = handle, .pad = 0};
  if (const int number = try_call(drm::kGemClose, &request); number != 0)
    tidy("closing a buffer", [&]() -> Result<void> { return failure(number, fmt::format("handle {}", handle)); });
}

Result<void> DrmFile::map_buffer(uint32_t handle, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) const {
  const int result = calls_->mmap(fd_, size_bytes, offset, bytes);
  if (result < 0) return failure(-result, fmt::format("mapping buffer {} ({} bytes)", handle, size_bytes));
  return {};
}

Result<int> DrmFile::export_buffer(uint32_t handle) const {
  drm::PrimeHandle request{.handle = handle, .flags = drm::kPrimeCloexec | drm::kPrimeReadWrite, .fd = -1};
  SK_TRY(call(drm::kPrimeHandleToFd, &request, fmt::format("exporting buffer {} as a dma-buf", handle)));
  return request.fd;
}

Result<void> DrmFile::take_turn() const {
  constexpr std::chrono::seconds kTurnTimeout{10};
  constexpr std::chrono::microseconds kBetweenTurns{100};
  const auto end = std::chrono::steady_clock::now() + kTurnTimeout;
  while (calls_->take_turn(fd_) == -EAGAIN) {
    if (std::chrono::steady_clock::now() > end)
      return error(ErrorCode::timeout,
                   "{}: another program, or another device in this one, has run jobs on this NPU for {} s; its cores "
                   "cannot run at the same time, so stop one",
                   node_, kTurnTimeout.count());
    std::this_thread::sleep_for(kBetweenTurns);
  }
  return {};
}

Error DrmFile::failure(int number, std::string_view what) const {
  Error general = os_error(node_, what, number);
  // The caller of a wait that timed out describes the timeout better.
  const std::string reason = number == ETIMEDOUT ? "" : calls_->reason();
  if (reason.empty()) return general;
  return error(general.code == ErrorCode::device ? ErrorCode::fault : general.code, "{}: {}", node_, reason);
}

Error DrmFile::access_failure(int number, uint32_t handle, bool write, std::chrono::seconds timeout) const {
  return failure(number,
                 fmt::format("waiting up to {} s to {} buffer {}", timeout.count(), write ? "write" : "read", handle));
}

Result<DrmFile::Version> DrmFile::version() const {
  std::array<char, 64> name{};
  drm::Version query{};
  query.name_len = name.size() - 1;
  query.name = name.data();
  SK_TRY(call(drm::kVersion, &query, "reading the DRM version"));
  return Version{name.data(), query.version_major, query.version_minor};
}

}  // namespace skillet::kernels
