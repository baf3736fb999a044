#include "kernels/fake/calls.h"

#include <utility>

namespace skillet::fake {

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

int give_text(Kernel& kernel, std::string_view text, char* to, size_t& length) {
  const size_t given = std::min(std::exchange(length, text.size()), text.size());
  if (to == nullptr || kernel.copy_to_user(reinterpret_cast<uint64_t>(to), text.data(), given) == 0) return 0;
  return kernel.refuse(EFAULT, "'{}' cannot be written where it was asked for", text);
}

int give_version(Kernel& kernel, std::string_view name, std::string_view date, std::string_view description,
                 kernels::drm::Version& args) {
  if (const int failure = give_text(kernel, name, args.name, args.name_len); failure != 0) return failure;
  if (const int failure = give_text(kernel, date, args.date, args.date_len); failure != 0) return failure;
  return give_text(kernel, description, args.desc, args.desc_len);
}

}  // namespace skillet::fake
