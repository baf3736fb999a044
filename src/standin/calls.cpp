#include "standin/calls.h"

namespace skillet::standin {

int refuse_unknown(Kernel& kernel, unsigned number) {
  constexpr unsigned kSetClientCap = 0x0d, kSyncobjFirst = 0xbf, kSyncobjLast = 0xcf;
  if (number == kSetClientCap || (number >= kSyncobjFirst && number <= kSyncobjLast))
    return kernel.refuse(EOPNOTSUPP, "ioctl {:#04x}: the driver has no display and no sync objects", number);
  return kernel.refuse(EINVAL, "ioctl {:#04x}: unknown", number);
}

std::string_view errno_name(int result) {
  if (result == 0) return "fine";
  const char* const name = ::strerrorname_np(-result);
  return name == nullptr ? "?" : name;
}

void give_text(std::string_view text, char* to, size_t& length) {
  if (to != nullptr) std::memcpy(to, text.data(), std::min(length, text.size()));
  length = text.size();
}

}  // namespace skillet::standin
