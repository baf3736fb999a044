// is_asleep(): whether the guest's kernel, a process of the host, is waiting and not computing.
// Called by the server, before it interrupts the guest. Must not know: devices.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace skillet::mmio {

// Also true if nothing is known of the process.
inline bool is_asleep(pid_t process) {
  std::array<char, 512> text{};
  const int file = ::open(fmt::format("/proc/{}/stat", process).c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t size_bytes = file < 0 ? 0 : ::read(file, text.data(), text.size());
  if (file >= 0) ::close(file);
  const std::string_view stat(text.data(), static_cast<size_t>(std::max<ssize_t>(size_bytes, 0)));
  const size_t name_end = stat.rfind(')');
  return name_end == std::string_view::npos || name_end + 2 >= stat.size() || stat[name_end + 2] == 'S';
}

}  // namespace skillet::mmio
