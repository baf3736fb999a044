// The table of ioctls.
#include <array>

#include "kernels/etnaviv/fake/describe.h"
#include "kernels/etnaviv/fake/file.h"
#include "kernels/fake/calls.h"

namespace skillet::fake::etnaviv {
namespace {

using File = EtnavivFile;
// By number.
constexpr auto kCalls = [] {
  std::array<Call<File>, 0x4c> calls{};
  calls[0x00] = call_row<File, drm::Version, &File::version>("version", drm::kVersion);
  calls[0x01] = call_row<File, drm::Unique, &File::get_unique>("get_unique", drm::kGetUnique);
  calls[0x02] = call_row<File, drm::Auth, &File::get_magic>("get_magic", drm::kGetMagic);
  calls[0x07] = call_row<File, drm::SetVersion, &File::set_version>("set_version", drm::kSetVersion);
  calls[0x09] = call_row<File, drm::GemClose, &File::gem_close>("gem_close", drm::kGemClose);
  calls[0x0c] = call_row<File, drm::GetCap, &File::get_cap>("get_cap", drm::kGetCap);
  calls[0x2d] =
      call_row<File, drm::PrimeHandle, &File::prime_handle_to_fd>("prime_handle_to_fd", drm::kPrimeHandleToFd);
  calls[0x2e] =
      call_row<File, drm::PrimeHandle, &File::prime_fd_to_handle>("prime_fd_to_handle", drm::kPrimeFdToHandle);
  calls[0x40] = call_row<File, abi::GetParam, &File::get_param>("get_param", abi::kGetParam);
  calls[0x42] = call_row<File, abi::GemNew, &File::gem_new>("gem_new", abi::kGemNew);
  calls[0x43] = call_row<File, abi::GemInfo, &File::gem_info>("gem_info", abi::kGemInfo);
  calls[0x44] = call_row<File, abi::GemCpuPrep, &File::gem_cpu_prep>("gem_cpu_prep", abi::kGemCpuPrep);
  calls[0x45] = call_row<File, abi::GemCpuFini, &File::gem_cpu_fini>("gem_cpu_fini", abi::kGemCpuFini);
  calls[0x46] = call_row<File, abi::GemSubmit, &File::submit>("submit", abi::kGemSubmit);
  calls[0x47] = call_row<File, abi::WaitFence, &File::wait_fence>("wait_fence", abi::kWaitFence);
  calls[0x48] = call_row<File, abi::GemUserptr, &File::gem_userptr>("gem_userptr", abi::kGemUserptr);
  calls[0x49] = call_row<File, abi::GemWait, &File::gem_wait>("gem_wait", abi::kGemWait);
  calls[0x4a] = call_row<File, abi::PmDomain, &File::pm_query_domain>("pm_query_dom", abi::kPmQueryDomain);
  calls[0x4b] = call_row<File, abi::PmSignal, &File::pm_query_signal>("pm_query_sig", abi::kPmQuerySignal);
  return calls;
}();

}  // namespace

std::vector<std::string_view> call_names() { return names_of<File>(kCalls); }

int EtnavivFile::ioctl(unsigned long request, void* argument) {
  return run_call<EtnavivFile>(kCalls, kernel_, *this, request, argument);
}

}  // namespace skillet::fake::etnaviv
