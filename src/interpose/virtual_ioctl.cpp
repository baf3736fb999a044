// The table of ioctls: number, name, argument; unknown ones are refused as the kernel does.
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "interpose/user_memory.h"
#include "interpose/virtual_file.h"

namespace skillet::interpose {
namespace {

constexpr size_t kArgumentBytesMax = 128;

struct Call {
  unsigned number;
  std::string_view name;
  size_t size_bytes;
  int (*run)(VirtualFile& file, void* args, const Fault& fault);
};

template <typename Args, int (VirtualFile::*kMethod)(Args&)>
constexpr Call row(unsigned number, std::string_view name) {
  static_assert(sizeof(Args) <= kArgumentBytesMax);
  return {number, name, sizeof(Args),
          [](VirtualFile& file, void* args, const Fault&) { return (file.*kMethod)(*static_cast<Args*>(args)); }};
}
template <typename Args, int (VirtualFile::*kMethod)(Args&, const Fault&)>
constexpr Call row(unsigned number, std::string_view name) {
  return {number, name, sizeof(Args), [](VirtualFile& file, void* args, const Fault& fault) {
            return (file.*kMethod)(*static_cast<Args*>(args), fault);
          }};
}

using File = VirtualFile;
constexpr Call kCalls[] = {
    row<abi::DrmVersion, &File::version>(0x00, "version"),
    row<DrmUnique, &File::get_unique>(0x01, "get_unique"),
    row<DrmAuth, &File::get_magic>(0x02, "get_magic"),
    row<DrmSetVersion, &File::set_version>(0x07, "set_version"),
    row<abi::GemClose, &File::gem_close>(0x09, "gem_close"),
    row<DrmGetCap, &File::get_cap>(0x0c, "get_cap"),
    row<abi::PrimeHandle, &File::prime_handle_to_fd>(0x2d, "prime_handle_to_fd"),
    row<abi::PrimeHandle, &File::prime_fd_to_handle>(0x2e, "prime_fd_to_handle"),
    row<abi::GetParam, &File::get_param>(0x40, "get_param"),
    row<abi::GemNew, &File::gem_new>(0x42, "gem_new"),
    row<abi::GemInfo, &File::gem_info>(0x43, "gem_info"),
    row<abi::GemCpuPrep, &File::gem_cpu_prep>(0x44, "gem_cpu_prep"),
    row<abi::GemCpuFini, &File::gem_cpu_fini>(0x45, "gem_cpu_fini"),
    row<abi::GemSubmit, &File::submit>(0x46, "submit"),
    row<abi::WaitFence, &File::wait_fence>(0x47, "wait_fence"),
    row<GemUserptr, &File::gem_userptr>(0x48, "gem_userptr"),
    row<abi::GemWait, &File::gem_wait>(0x49, "gem_wait"),
    row<PmDomain, &File::pm_query_domain>(0x4a, "pm_query_dom"),
    row<PmSignal, &File::pm_query_signal>(0x4b, "pm_query_sig"),
};

// What the core knows but this driver does not offer; all else is unknown.
int refuse_unknown(const VirtualCore& core, unsigned number) {
  constexpr unsigned kSetClientCap = 0x0d, kSyncobjFirst = 0xbf, kSyncobjLast = 0xcf;
  if (number == kSetClientCap || (number >= kSyncobjFirst && number <= kSyncobjLast))
    return core.refuse(EOPNOTSUPP, "ioctl {:#04x}: etnaviv has no display and no sync objects", number);
  return core.refuse(EINVAL, "ioctl {:#04x}: unknown", number);
}

}  // namespace

// Like the kernel: an argument shorter than ours is filled up with zeros, a longer one is cut.
int VirtualFile::ioctl(unsigned long request, void* argument) {
  const unsigned number = _IOC_NR(request);
  const Call* const call = std::ranges::find(kCalls, number, &Call::number);
  if (call == std::end(kCalls)) return refuse_unknown(core_, number);
  const Fault fault = core_.options().faults.next(call->name);
  if (fault.kind == FaultKind::number) return core_.refuse(fault.number, "{}: injected fault", call->name);

  alignas(8) uint8_t args[kArgumentBytesMax] = {};
  const size_t size = std::min<size_t>(call->size_bytes, _IOC_SIZE(request));
  const auto pointer = reinterpret_cast<uint64_t>(argument);
  if (const int failure = copy_from_user(args, pointer, size); failure != 0)
    return core_.refuse(-failure, "{}: bad pointer to the argument", call->name);
  const int result = call->run(*this, args, fault);
  if ((_IOC_DIR(request) & _IOC_READ) != 0) std::memcpy(argument, args, size);
  if (result == 0) core_.trace("{} fine", call->name);
  return result;
}

}  // namespace skillet::interpose
