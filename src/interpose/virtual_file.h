// VirtualFile: one open file of the virtual device node: its handles, its device address space, its ioctls.
// Called by the hooks, through the registry.
// Must not know: descriptors of the process, paths.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/address_map.h"
#include "interpose/drm_core_uapi.h"
#include "interpose/gem_buffer.h"
#include "interpose/virtual_core.h"
#include "uapi/etnaviv_uapi.h"

namespace skillet::interpose {

namespace abi = ::skillet::uapi::etnaviv;

class VirtualFile {
 public:
  VirtualFile(VirtualCore& core, unsigned minor) : core_(core), minor_(minor) {}

  unsigned minor() const { return minor_; }
  // Kernel style: 0 or a negative errno. `argument` is memory of the process, not to be trusted.
  int ioctl(unsigned long request, void* argument);
  // The memory behind an offset that gem_info gave; MAP_FAILED with errno otherwise.
  void* mmap(void* address, size_t length, int protection, int flags, uint64_t offset);

  int version(abi::DrmVersion& args);
  int get_unique(DrmUnique& args);
  int get_magic(DrmAuth& args);
  int set_version(DrmSetVersion& args);
  int get_cap(DrmGetCap& args);
  int gem_close(abi::GemClose& args);
  int prime_handle_to_fd(abi::PrimeHandle& args);
  int prime_fd_to_handle(abi::PrimeHandle& args);
  int get_param(abi::GetParam& args);
  int gem_new(abi::GemNew& args);
  int gem_info(abi::GemInfo& args);
  int gem_cpu_prep(abi::GemCpuPrep& args);
  int gem_cpu_fini(abi::GemCpuFini& args);
  int submit(abi::GemSubmit& args, const Fault& fault);
  int wait_fence(abi::WaitFence& args);
  int gem_userptr(GemUserptr& args);
  int gem_wait(abi::GemWait& args);
  int pm_query_domain(PmDomain& args);
  int pm_query_signal(PmSignal& args);

 private:
  struct Entry {
    std::shared_ptr<GemBuffer> buffer;
    uint64_t offset = 0;   // for mmap
    uint64_t address = 0;  // on the device, once a submission maps it
  };
  struct Use {
    std::shared_ptr<GemBuffer> buffer;
    uint64_t address = 0;
    bool writes = false;
  };
  struct Request {
    std::vector<abi::SubmitBo> buffers;
    std::vector<abi::SubmitReloc> relocations;
    std::vector<uint32_t> stream;
    std::vector<Use> uses;
  };

  Entry* find(uint32_t handle);
  std::shared_ptr<GemBuffer> buffer(uint32_t handle);
  uint32_t add(std::shared_ptr<GemBuffer> buffer);
  int check_pipe(uint32_t pipe) const;
  int wait_for(std::string_view call, uint32_t handle, bool with_readers, abi::Timespec deadline, bool is_nonblocking);

  int check(const abi::GemSubmit& args) const;
  int read(const abi::GemSubmit& args, Request& request) const;
  int look_up(const abi::GemSubmit& args, Request& request);
  int place(const abi::SubmitBo& listed, bool is_softpin, Entry& entry);
  int relocate(Request& request) const;
  bool waits_for_ever(const abi::GemSubmit& args, const Request& request);
  int run(const Request& request, FaultKind fault);

  VirtualCore& core_;
  unsigned minor_;
  std::mutex mutex_;  // of all below
  std::map<uint32_t, Entry> entries_;
  AddressMap addresses_;
  uint32_t last_handle_ = 0;
  uint64_t next_offset_ = uint64_t{1} << 32;
};

}  // namespace skillet::interpose
