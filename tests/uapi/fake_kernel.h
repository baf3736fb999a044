// FakeKernel: etnaviv's ioctls answered inside this process, with the kernel's own checks, faults to order and a
// simulated chip behind them.
// Called by the tests of uapi/etnaviv and of sessions on it; ioctl() and mmap() reach it through -Wl,--wrap.
// Must not know: how the device under test is written.
#pragma once

#include <sys/types.h>

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/sim.h"
#include "uapi/etnaviv_uapi.h"

namespace skillet::testing {

struct KernelCore {
  std::array<uint32_t, 5> ids;  // model, revision, product, customer, eco
};
constexpr KernelCore kA311d{{0x8000, 0x7120, 0x45080009, 0x88, 0x0}};
constexpr KernelCore kGpu{{0x7000, 0x6214, 0x0, 0x0, 0x0}};

struct Fault {
  unsigned long request = 0;
  int number = 0;       // errno
  int skip = 0;         // calls that still succeed
  int count = 1 << 30;  // then this many fail
};
constexpr unsigned long kMmapFault = 1;  // as Fault::request: mmap()

class FakeKernel {
 public:
  // Lives at root()/dev/dri/renderD<minor>; one at a time.
  explicit FakeKernel(std::vector<KernelCore> cores, int minor = 128);
  ~FakeKernel();
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  const std::string& root() const { return root_; }
  std::string node() const { return node_; }
  int calls(unsigned long request) const;
  size_t live_buffers() const;

  std::vector<Fault> faults;
  std::string driver_name = "etnaviv";
  int version_minor = 4;
  uint64_t softpin_start = 0x00400000;
  bool busy = false;            // submissions are taken and do not finish
  bool hangs = false;           // submissions finish and have written nothing, as after a reset
  int lost = 0;                 // so many of the next submissions do so
  std::set<int> lost_jobs;      // and these, counted from 1
  std::set<int> resets_before;  // the core has been reset since the one before, as when a job of another process hung

  // What ioctl() and mmap() do with a descriptor of the node.
  static FakeKernel* of(int fd);
  int ioctl(int fd, unsigned long request, void* argument);
  void* map(size_t size, off_t offset);

 private:
  struct Buffer {
    int memory = -1;  // memfd
    uint64_t size_bytes = 0;
    uint8_t* bytes = nullptr;
    uint64_t address = 0;  // once a submission mapped it
  };
  int fault(unsigned long request);
  int version(uapi::etnaviv::DrmVersion& query) const;
  int get_param(uapi::etnaviv::GetParam& query) const;
  int gem_new(uapi::etnaviv::GemNew& query);
  int submit(uapi::etnaviv::GemSubmit& query);
  int place(const uapi::etnaviv::SubmitBo& bo);
  int export_buffer(uapi::etnaviv::PrimeHandle& query);
  int import_buffer(uapi::etnaviv::PrimeHandle& query);
  int close_buffer(uint32_t handle);
  int dispatch(unsigned long request, void* argument);
  uint32_t add_buffer(int memory, uint64_t size_bytes);

  std::string root_, node_;
  std::vector<KernelCore> cores_;
  std::map<uint32_t, Buffer> buffers_;
  std::map<unsigned long, int> calls_;
  uint32_t last_handle_ = 0, last_fence_ = 0;
  std::unique_ptr<sim::Device> chip_;
};

}  // namespace skillet::testing
