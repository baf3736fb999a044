#include "uapi/etnaviv_file.h"

#include <fcntl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "uapi/node_access.h"

namespace skillet::uapi::etnaviv {
namespace {

struct Advice {
  int number;
  const char* name;
  ErrorCode code;
  const char* text;
};

// One row per failure that these ioctls are known to give.
constexpr Advice kAdvice[] = {
    {ENOMEM, "ENOMEM", ErrorCode::io,
     "the kernel has no memory left for it: close other programs, or run a smaller model or fewer at a time"},
    {ENODEV, "ENODEV", ErrorCode::device,
     "the device is gone: its kernel driver was unbound or unloaded (see dmesg); open it again once it is back"},
    {ENXIO, "ENXIO", ErrorCode::device, "this DRM device has no such core: see skillet devices"},
    {EACCES, "EACCES", ErrorCode::io,
     "no permission: sudo usermod -aG render $USER, then log in again (skillet doctor tells more)"},
    {EPERM, "EPERM", ErrorCode::io,
     "not permitted: a container or sandbox must let the node through (--device NODE; skillet doctor tells more)"},
    {ETIMEDOUT, "ETIMEDOUT", ErrorCode::timeout,
     "the NPU did not finish in time: it hangs or is very busy; dmesg shows 'recover hung GPU' if it was reset"},
    {EIO, "EIO", ErrorCode::device,
     "the hardware or its driver failed (see dmesg); try again, then reload the driver or reboot"},
    {EINVAL, "EINVAL", ErrorCode::device,
     "the kernel refused the arguments: a kernel that is too old (see skillet doctor), or a bug to report with the "
     "output of SKILLET_DEBUG=submit"},
    {EBUSY, "EBUSY", ErrorCode::device, "something else uses it: wait for other programs on the NPU and try again"},
    {ENOSPC, "ENOSPC", ErrorCode::out_of_range,
     "no room for it in the device's address space: run fewer models in one process"},
    {EINTR, "EINTR", ErrorCode::io, "signals kept interrupting it: block the signals of timers around the call"},
    {EAGAIN, "EAGAIN", ErrorCode::device, "the kernel kept asking to try again: the NPU is overloaded or stuck"},
    {EMFILE, "EMFILE", ErrorCode::io, "too many open files in this process: raise ulimit -n"},
    {ENFILE, "ENFILE", ErrorCode::io, "too many open files on this machine"},
    {ENOENT, "ENOENT", ErrorCode::io, "there is no such node: see skillet devices and skillet doctor"},
    {ENOTTY, "ENOTTY", ErrorCode::unsupported, "it is not a DRM device of the expected driver: see skillet devices"},
    {EFAULT, "EFAULT", ErrorCode::internal, "a bug to report"},
};

const Advice* advice_for(int number) {
  for (const Advice& row : kAdvice) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

}  // namespace

std::string errno_name(int number) {
  const Advice* row = advice_for(number);
  return row != nullptr ? row->name : fmt::format("errno {}", number);
}

Error os_error(const std::string& node, const std::string& what, int number) {
  const Advice* row = advice_for(number);
  const std::string text = std::generic_category().message(number);
  const std::string head = fmt::format("{}: {}: {} ({})", node, what, errno_name(number), text);
  if (row == nullptr) return error(ErrorCode::io, "{}: see dmesg", head);
  const std::string exact = number == EACCES || number == EPERM ? missing_permission(node) : "";
  return error(row->code, "{}: {}", head, exact.empty() ? row->text : exact);
}

Timespec deadline(std::chrono::nanoseconds timeout) {
  constexpr int64_t kSecond = 1'000'000'000;
  constexpr int64_t kForever = int64_t{365} * 24 * 3600;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t wait = std::max<int64_t>(0, timeout.count());
  const int64_t nsec = now.tv_nsec + wait % kSecond;
  return {now.tv_sec + std::min(wait / kSecond, kForever) + nsec / kSecond, nsec % kSecond};
}

Result<std::optional<File>> File::open_if_there(const std::string& node) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  int fd = -1;
  do fd = ::open(node.c_str(), O_RDWR | O_CLOEXEC);
  while (fd < 0 && errno == EINTR && std::chrono::steady_clock::now() < give_up);
  if (fd >= 0) return std::optional<File>(File(fd, node));
  if (errno == ENOENT) return std::optional<File>();
  return os_error(node, "opening", errno);
}

Result<File> File::open(const std::string& node) {
  SK_TRY_ASSIGN(std::optional<File> file, open_if_there(node));
  if (!file) return os_error(node, "opening", ENOENT);
  return std::move(*file);
}

File::File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)), node_(std::move(other.node_)) {}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

int File::try_call(unsigned long request, void* argument, std::chrono::nanoseconds patience) const {
  if (::ioctl(fd_, request, argument) == 0) return 0;
  if (errno != EINTR && errno != EAGAIN) return errno;
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < give_up) {
    ::sched_yield();
    if (::ioctl(fd_, request, argument) == 0) return 0;
    if (errno != EINTR && errno != EAGAIN) return errno;
  }
  return errno;
}

Result<void> File::call(unsigned long request, void* argument, const std::string& what,
                        std::chrono::nanoseconds patience) const {
  const int number = try_call(request, argument, patience);
  if (number != 0) return os_error(node_, what, number);
  return {};
}

Result<uint64_t> File::param(uint32_t pipe, Param param) const {
  GetParam query{.pipe = pipe, .param = param, .value = 0};
  SK_TRY(
      call(kGetParam, &query, fmt::format("reading parameter {:#x} of core {}", static_cast<uint32_t>(param), pipe)));
  return query.value;
}

Result<File::Version> File::version() const {
  std::array<char, 64> name{};
  DrmVersion query{};
  query.name_len = name.size() - 1;
  query.name = name.data();
  SK_TRY(call(kDrmVersion, &query, "reading the DRM version"));
  return Version{name.data(), query.version_major, query.version_minor};
}

}  // namespace skillet::uapi::etnaviv
