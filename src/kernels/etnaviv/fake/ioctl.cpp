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
  add_gem_calls<&File::prime_fd_to_handle>(calls);
  add_call<drm::Unique, &File::get_unique>(calls, "get_unique", drm::kGetUnique);
  add_call<drm::Auth, &File::get_magic>(calls, "get_magic", drm::kGetMagic);
  add_call<drm::SetVersion, &File::set_version>(calls, "set_version", drm::kSetVersion);
  add_call<abi::GetParam, &File::get_param>(calls, "get_param", abi::kGetParam);
  add_call<abi::GemNew, &File::gem_new>(calls, "gem_new", abi::kGemNew);
  add_call<abi::GemInfo, &File::gem_info>(calls, "gem_info", abi::kGemInfo);
  add_call<abi::GemCpuPrep, &File::gem_cpu_prep>(calls, "gem_cpu_prep", abi::kGemCpuPrep);
  add_call<abi::GemCpuFini, &File::gem_cpu_fini>(calls, "gem_cpu_fini", abi::kGemCpuFini);
  add_call<abi::GemSubmit, &File::submit>(calls, "submit", abi::kGemSubmit);
  add_call<abi::WaitFence, &File::wait_fence>(calls, "wait_fence", abi::kWaitFence);
  add_call<abi::GemUserptr, &File::gem_userptr>(calls, "gem_userptr", abi::kGemUserptr);
  add_call<abi::GemWait, &File::gem_wait>(calls, "gem_wait", abi::kGemWait);
  add_call<abi::PmDomain, &File::pm_query_domain>(calls, "pm_query_dom", abi::kPmQueryDomain);
  add_call<abi::PmSignal, &File::pm_query_signal>(calls, "pm_query_sig", abi::kPmQuerySignal);
  return calls;
}();

}  // namespace

std::vector<std::string_view> call_names() { return names_of<File>(kCalls); }

int EtnavivFile::ioctl(unsigned long request, void* argument) {
  return run_call<EtnavivFile>(kCalls, kernel_, *this, request, argument);
}

}  // namespace skillet::fake::etnaviv
