// EthosuFile: one open file of a node: its handles, its command streams, its ioctls.
// Called by the emulated ethosu.
// Must not know: descriptors of the process, paths.
#pragma once

#include <map>
#include <set>

#include "kernels/ethosu/fake/kernel.h"
#include "kernels/fake/gem_file.h"

namespace skillet::fake::ethosu {

class EthosuFile : public GemFile {
 public:
  // Buffers have no addresses here.
  EthosuFile(Kernel& kernel, unsigned minor)
      : GemFile(kernel, minor, {0, abi::kPageBytes, abi::kPageBytes}), kernel_(kernel) {}

  int ioctl(unsigned long request, void* argument) override;
  int find_mapping(uint64_t size_bytes, uint64_t offset, std::shared_ptr<Buffer>& out) override;

  int version(drm::Version& args);
  int gem_close(drm::GemClose& args);
  int prime_handle_to_fd(drm::PrimeHandle& args);
  int dev_query(abi::DevQuery& args);
  int bo_create(abi::BoCreate& args);
  int bo_wait(abi::BoWait& args);
  int bo_mmap_offset(abi::BoMmapOffset& args);
  int cmdstream_bo_create(abi::CmdstreamBoCreate& args);
  int submit(abi::Submit& args, const Fault& fault);

 private:
  int read_job(const abi::SubmitJob& args, Launch& launch);
  int read_region(const abi::SubmitJob& args, size_t region, Launch& launch);
  int start(const Launch& launch, FaultKind fault);

  Kernel& kernel_;
  // Guarded by kernel_.state(), by handle:
  std::map<uint32_t, std::shared_ptr<const Stream>> streams_;
  std::set<uint32_t> unmappable_;
};

}  // namespace skillet::fake::ethosu
