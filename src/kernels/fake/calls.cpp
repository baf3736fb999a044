#include "kernels/fake/calls.h"

#include <utility>

#include "kernels/api/drm.h"

namespace skillet::fake {
namespace {

// Results of DRM's core on the three kinds of nodes, for an argument of zeros and a driver without display. As seen in
// Linux 7.2.13; other numbers are EINVAL.
struct CoreRow {
  unsigned first, last;
  int render, primary, accel;
};
constexpr CoreRow kCore[] = {
    {0x05, 0x06, EACCES, 0, 0},
    {0x07, 0x07, EACCES, 0, EACCES},
    {0x0a, 0x0b, EACCES, ENOENT, ENOENT},
    {0x0d, 0x0d, EACCES, EOPNOTSUPP, EOPNOTSUPP},
    {0x10, 0x11, EACCES, EINVAL, EACCES},
    {0x12, 0x13, EACCES, 0, EACCES},
    {0x1e, 0x1f, EACCES, 0, EINVAL},
    {0x27, 0x28, EACCES, 0, EACCES},
    {0x2c, 0x2c, EACCES, 0, 0},
    {0x3a, 0x3c, EACCES, EOPNOTSUPP, EOPNOTSUPP},
    {0x3f, 0x3f, EACCES, 0, EACCES},
    {0xa0, 0xa1, EACCES, EOPNOTSUPP, EOPNOTSUPP},
    {0xa2, 0xa3, EACCES, EOPNOTSUPP, EACCES},
    {0xa4, 0xa4, EACCES, EOPNOTSUPP, EOPNOTSUPP},
    {0xa5, 0xa5, EACCES, EOPNOTSUPP, EACCES},
    {0xa6, 0xa7, EACCES, EOPNOTSUPP, EOPNOTSUPP},
    {0xa8, 0xa9, EACCES, 0, EACCES},
    {0xaa, 0xaa, EACCES, EOPNOTSUPP, EOPNOTSUPP},
    {0xab, 0xab, EACCES, EOPNOTSUPP, EACCES},
    {0xac, 0xaf, EACCES, EOPNOTSUPP, EOPNOTSUPP},
    {0xb0, 0xb1, EACCES, EOPNOTSUPP, EACCES},
    {0xb2, 0xb4, EACCES, ENOSYS, ENOSYS},
    {0xb5, 0xb6, EACCES, EOPNOTSUPP, EOPNOTSUPP},
    {0xb7, 0xb7, EACCES, EOPNOTSUPP, EACCES},
    {0xb8, 0xb9, EACCES, EOPNOTSUPP, EOPNOTSUPP},
    {0xba, 0xbc, EACCES, EOPNOTSUPP, EACCES},
    {0xbd, 0xbe, EACCES, EOPNOTSUPP, EOPNOTSUPP},
    {0xbf, 0xc5, EOPNOTSUPP, EOPNOTSUPP, EOPNOTSUPP},
    {0xc6, 0xc9, EACCES, EOPNOTSUPP, EACCES},
    {0xca, 0xcd, EOPNOTSUPP, EOPNOTSUPP, EOPNOTSUPP},
    {0xce, 0xce, EACCES, EINVAL, EINVAL},
    {0xcf, 0xcf, EOPNOTSUPP, EOPNOTSUPP, EOPNOTSUPP},
    {0xd0, 0xd0, EACCES, EOPNOTSUPP, EOPNOTSUPP},
    {0xd1, 0xd1, 0, 0, 0},
};
constexpr unsigned kGetUniqueNr = 0x01, kGetMagicNr = 0x02;

}  // namespace

int answer_unknown(Kernel& kernel, const File& file, unsigned number) {
  const bool is_accel = kernel.place().subsystem == "accel";
  if (is_accel && (number == kGetUniqueNr || number == kGetMagicNr))
    kernel.punish(
        fmt::format("ioctl {:#04x} (get_unique, get_magic): a NULL pointer is followed in a stock kernel, as nodes "
                    "of accel have no master",
                    number));
  for (const CoreRow& row : kCore) {
    if (number < row.first || number > row.last) continue;
    const int answer = is_accel ? row.accel : file.minor() >= kernels::drm::kRenderMinor ? row.render : row.primary;
    return answer == 0 ? 0 : kernel.refuse(answer, "ioctl {:#04x}: DRM's core refuses it on this node", number);
  }
  return kernel.refuse(EINVAL, "ioctl {:#04x}: unknown", number);
}

int give_text(Kernel& kernel, std::string_view text, char* to, size_t& length) {
  const size_t given = std::min(std::exchange(length, text.size()), text.size());
  if (to == nullptr || kernel.copy_to_user(reinterpret_cast<uint64_t>(to), text.data(), given) == 0) return 0;
  return kernel.refuse(EFAULT, "'{}' cannot be written to the given address", text);
}

int give_version(Kernel& kernel, std::string_view name, std::string_view date, std::string_view description,
                 kernels::drm::Version& args) {
  if (const int failure = give_text(kernel, name, args.name, args.name_len); failure != 0) return failure;
  if (const int failure = give_text(kernel, date, args.date, args.date_len); failure != 0) return failure;
  return give_text(kernel, description, args.desc, args.desc_len);
}

}  // namespace skillet::fake
