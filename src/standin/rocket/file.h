// RocketFile: one open file of a node: its handles, its device address space, its ioctls.
// Called by the stand-in for rocket.
// Must not know: descriptors of the process, paths.
#pragma once

#include <map>
#include <optional>

#include "base/address_space.h"
#include "standin/rocket/kernel.h"

namespace skillet::standin::rocket {

class RocketFile : public File {
 public:
  RocketFile(Kernel& kernel, unsigned minor);
  ~RocketFile() override;

  int ioctl(unsigned long request, void* argument) override;
  int find_mapping(uint64_t size_bytes, uint64_t offset, std::shared_ptr<Buffer>& out) override;

  int version(drm::Version& args);
  int get_cap(drm::GetCap& args);
  int gem_close(drm::GemClose& args);
  int prime_handle_to_fd(drm::PrimeHandle& args);
  int create_bo(abi::CreateBo& args);
  int prep_bo(abi::PrepBo& args);
  int fini_bo(abi::FiniBo& args);
  int submit(abi::Submit& args, const Fault& fault);

 private:
  using Lock = std::unique_lock<std::mutex>;
  // What the kernel reads before it queues anything.
  struct Request {
    abi::SubmitJob args;
    std::vector<abi::Task> tasks;
    std::vector<uint32_t> in, out;
    bool is_sound = true;
  };

  Mapping* find(uint32_t handle);
  int read_jobs(const abi::Submit& args, std::vector<Request>& out);
  int read_tasks(Request& request);
  std::optional<std::string> queue(const Request& request, FaultKind fault);
  int give_fault(std::string_view call);
  void list_mappings();

  Kernel& kernel_;
  // Guarded by kernel_.state():
  std::map<uint32_t, Mapping> entries_;
  std::vector<Mapping> closed_;  // a job still uses them
  AddressSpace addresses_{0, abi::kAddressEnd, abi::kPageBytes};
  Entity entity_;
  uint32_t last_handle_ = 0;
};

std::vector<std::string_view> call_names();

}  // namespace skillet::standin::rocket
