// EtnavivFile: one open file of a node: its handles, its device address space, its ioctls.
// Called by the stand-in for etnaviv.
// Must not know: descriptors of the process, paths.
#pragma once

#include <map>

#include "base/address_space.h"
#include "standin/etnaviv/kernel.h"

namespace skillet::standin::etnaviv {

class EtnavivFile : public File {
 public:
  EtnavivFile(Kernel& kernel, unsigned minor) : File(minor), kernel_(kernel) {}

  int ioctl(unsigned long request, void* argument) override;
  int find_mapping(uint64_t size_bytes, uint64_t offset, std::shared_ptr<Buffer>& out) override;

  int version(drm::Version& args);
  int get_unique(drm::Unique& args);
  int get_magic(drm::Auth& args);
  int set_version(drm::SetVersion& args);
  int get_cap(drm::GetCap& args);
  int gem_close(drm::GemClose& args);
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
  struct Entry {
    std::shared_ptr<Buffer> buffer;
    uint64_t address = 0;  // on the device, once a submission maps it
  };
  // The address of a buffer that was closed while a job uses it.
  struct Closed {
    std::shared_ptr<Buffer> buffer;
    uint64_t address = 0;
  };
  using Lock = std::unique_lock<std::mutex>;

  bool is_render_node() const { return minor() >= drm::kRenderMinor; }
  Entry* find(uint32_t handle);
  uint32_t add(std::shared_ptr<Buffer> buffer);
  int check_pipe(uint32_t pipe);
  int wait_for(std::string_view call, uint32_t handle, bool with_readers, const abi::Timespec& deadline,
               bool is_nonblocking);

  int check(const abi::GemSubmit& args);
  int read(const abi::GemSubmit& args, Request& request);
  int look_up(const abi::GemSubmit& args, Request& request);
  void reclaim();
  int place(const abi::SubmitBo& listed, bool is_softpin, Entry& entry);
  int relocate(Request& request);
  bool never_starts(const abi::GemSubmit& args, const Request& request);
  int start(abi::GemSubmit& args, Request& request, const Fault& fault);

  Kernel& kernel_;
  // Guarded by kernel_.state():
  std::map<uint32_t, Entry> entries_;
  AddressSpace addresses_{abi::kAddressStart, abi::kAddressEnd, abi::kPageBytes};
  std::vector<Closed> closed_;
  uint32_t last_handle_ = 0;
};

}  // namespace skillet::standin::etnaviv
