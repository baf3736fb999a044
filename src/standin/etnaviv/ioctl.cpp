// The table of ioctls: number, name, argument; unknown ones are refused as the kernel does.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "standin/etnaviv/file.h"

namespace skillet::standin::etnaviv {
namespace {

constexpr size_t kArgumentBytesMax = 128;

struct Call {
  std::string_view name;
  size_t size_bytes = 0;
  int (*run)(EtnavivFile& file, void* args, const Fault& fault) = nullptr;
};

template <typename Args, int (EtnavivFile::*kMethod)(Args&)>
constexpr Call row(std::string_view name) {
  static_assert(sizeof(Args) <= kArgumentBytesMax);
  return {name, sizeof(Args),
          [](EtnavivFile& file, void* args, const Fault&) { return (file.*kMethod)(*static_cast<Args*>(args)); }};
}
template <typename Args, int (EtnavivFile::*kMethod)(Args&, const Fault&)>
constexpr Call row(std::string_view name) {
  return {name, sizeof(Args), [](EtnavivFile& file, void* args, const Fault& fault) {
            return (file.*kMethod)(*static_cast<Args*>(args), fault);
          }};
}

using File = EtnavivFile;
// By number.
constexpr auto kCalls = [] {
  std::array<Call, 0x4c> calls{};
  calls[0x00] = row<drm::Version, &File::version>("version");
  calls[0x01] = row<drm::Unique, &File::get_unique>("get_unique");
  calls[0x02] = row<drm::Auth, &File::get_magic>("get_magic");
  calls[0x07] = row<drm::SetVersion, &File::set_version>("set_version");
  calls[0x09] = row<drm::GemClose, &File::gem_close>("gem_close");
  calls[0x0c] = row<drm::GetCap, &File::get_cap>("get_cap");
  calls[0x2d] = row<drm::PrimeHandle, &File::prime_handle_to_fd>("prime_handle_to_fd");
  calls[0x2e] = row<drm::PrimeHandle, &File::prime_fd_to_handle>("prime_fd_to_handle");
  calls[0x40] = row<abi::GetParam, &File::get_param>("get_param");
  calls[0x42] = row<abi::GemNew, &File::gem_new>("gem_new");
  calls[0x43] = row<abi::GemInfo, &File::gem_info>("gem_info");
  calls[0x44] = row<abi::GemCpuPrep, &File::gem_cpu_prep>("gem_cpu_prep");
  calls[0x45] = row<abi::GemCpuFini, &File::gem_cpu_fini>("gem_cpu_fini");
  calls[0x46] = row<abi::GemSubmit, &File::submit>("submit");
  calls[0x47] = row<abi::WaitFence, &File::wait_fence>("wait_fence");
  calls[0x48] = row<abi::GemUserptr, &File::gem_userptr>("gem_userptr");
  calls[0x49] = row<abi::GemWait, &File::gem_wait>("gem_wait");
  calls[0x4a] = row<abi::PmDomain, &File::pm_query_domain>("pm_query_dom");
  calls[0x4b] = row<abi::PmSignal, &File::pm_query_signal>("pm_query_sig");
  return calls;
}();

// What the core knows but this driver does not offer; all else is unknown.
int refuse_unknown(Kernel& kernel, unsigned number) {
  constexpr unsigned kSetClientCap = 0x0d, kSyncobjFirst = 0xbf, kSyncobjLast = 0xcf;
  if (number == kSetClientCap || (number >= kSyncobjFirst && number <= kSyncobjLast))
    return kernel.refuse(EOPNOTSUPP, "ioctl {:#04x}: etnaviv has no display and no sync objects", number);
  return kernel.refuse(EINVAL, "ioctl {:#04x}: unknown", number);
}

}  // namespace

std::vector<std::string_view> call_names() {
  std::vector<std::string_view> names = {"open", "mmap"};
  for (const Call& call : kCalls) {
    if (call.run != nullptr) names.push_back(call.name);
  }
  return names;
}

// Like the kernel: an argument shorter than ours is filled up with zeros, a longer one is cut.
int EtnavivFile::ioctl(unsigned long request, void* argument) {
  const unsigned number = _IOC_NR(request);
  if (number >= kCalls.size() || kCalls[number].run == nullptr) return refuse_unknown(kernel_, number);
  const Call& call = kCalls[number];
  const Fault fault = kernel_.next_fault(call.name);
  if (fault.kind == FaultKind::number) return kernel_.inject(fault, call.name);

  alignas(8) uint8_t args[kArgumentBytesMax];
  const size_t size = std::min<size_t>(call.size_bytes, _IOC_SIZE(request));
  std::memset(args, 0, call.size_bytes);
  if (const int failure = kernel_.copy_from_user(args, reinterpret_cast<uint64_t>(argument), size); failure != 0)
    return kernel_.refuse(-failure, "{}: bad pointer to the argument", call.name);
  const int result = call.run(*this, args, fault);
  if ((_IOC_DIR(request) & _IOC_READ) != 0) std::memcpy(argument, args, size);
  if (result == 0) kernel_.trace("{} fine", call.name);
  return result;
}

}  // namespace skillet::standin::etnaviv
