// EtnavivFile: one open file of a node: its handles, its device address space, its ioctls.
// Called by the emulated etnaviv.
// Must not know: descriptors of the process, paths.
#pragma once

#include "kernels/etnaviv/fake/kernel.h"
#include "kernels/fake/gem_file.h"

namespace skillet::fake::etnaviv {

class EtnavivFile : public GemFile {
 public:
  EtnavivFile(Kernel& kernel, unsigned minor)
      : GemFile(kernel, minor, {abi::kAddressStart, abi::kAddressEnd, abi::kPageBytes}), kernel_(kernel) {}

  int ioctl(unsigned long request, void* argument) override;
  std::string fdinfo() override { return memory_fdinfo(abi::kDriverName); }

  int version(drm::Version& args);
  int find_mapping(uint64_t size_bytes, uint64_t offset, std::shared_ptr<Buffer>& out) override;
  int get_unique(drm::Unique& args);
  int get_magic(drm::Auth& args);
  int set_version(drm::SetVersion& args);
  int prime_handle_to_fd(drm::PrimeHandle& args);
  int prime_fd_to_handle(drm::PrimeHandle& args);
  int get_param(abi::GetParam& args);
  int gem_new(abi::GemNew& args);
  int gem_info(abi::GemInfo& args);
  int gem_cpu_prep(abi::GemCpuPrep& args);
  int gem_cpu_fini(abi::GemCpuFini& args);
  int submit(abi::GemSubmit& args, const Fault& fault);
  int wait_fence(abi::WaitFence& args);
  int gem_userptr(abi::GemUserptr& args);
  int gem_wait(abi::GemWait& args);
  int pm_query_domain(abi::PmDomain& args);
  int pm_query_signal(abi::PmSignal& args);

 private:
  // The kernel's result for a buffer without memory when memory is needed.
  int need_memory(std::string_view call, uint32_t handle, const Buffer& buffer);
  bool is_render_node() const { return minor() >= drm::kRenderMinor; }
  int check_pipe(uint32_t pipe);
  int wait_for(std::string_view call, uint32_t handle, bool with_readers, const abi::Timespec& deadline,
               bool is_nonblocking);

  int check(const abi::GemSubmit& args);
  int read(const abi::GemSubmit& args, Request& request);
  int look_up(const abi::GemSubmit& args, Request& request);
  int place(const abi::SubmitBo& listed, bool is_softpin, Entry& entry, const Request& request);
  bool make_room(uint64_t address, uint64_t size_bytes, const Request& request);
  int relocate(Request& request);
  int check_counters(const Request& request);
  static void write_counters(const Request& request);
  bool never_starts(const abi::GemSubmit& args, const Request& request);
  int start(abi::GemSubmit& args, Request& request, const Fault& fault);

  Kernel& kernel_;
  bool has_unique_ = false;  // the device's name is known, after set_version
};

}  // namespace skillet::fake::etnaviv
