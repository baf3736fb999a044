// RocketFile: one open file of a node: its handles, its device address space, its ioctls.
// Called by the emulated rocket.
// Must not know: descriptors of the process, paths.
#pragma once

#include "kernels/fake/gem_file.h"
#include "kernels/rocket/fake/kernel.h"

namespace skillet::fake::rocket {

class RocketFile : public GemFile {
 public:
  RocketFile(Kernel& kernel, unsigned minor);
  ~RocketFile() override;

  int ioctl(unsigned long request, void* argument) override;
  void check_close() override;
  // Memory that jobs can reach: every buffer of the file, and closed ones until they are released. Requires
  // Kernel::state().
  std::vector<Mapping> mappings() const;

  int version(drm::Version& args);
  int prime_handle_to_fd(drm::PrimeHandle& args);
  bool takes_private_mappings() const override { return false; }
  int create_bo(abi::CreateBo& args);
  int gem_close(drm::GemClose& args);
  int prep_bo(abi::PrepBo& args);
  int fini_bo(abi::FiniBo& args);
  int submit(abi::Submit& args, const Fault& fault);

 private:
  // Data that the kernel reads before it queues a job.
  struct Request {
    abi::SubmitJob args;
    std::vector<abi::Task> tasks;
    std::vector<uint32_t> in, out;
  };

  int read_jobs(const abi::Submit& args, std::vector<abi::SubmitJob>& out);
  int check_flags(const abi::Submit& args);
  int read_lists(Request& request);
  void trace(const Request& request);
  void find_unordered(QueuedJob& job) const;
  std::optional<std::string> queue(const abi::SubmitJob& args, FaultKind fault);
  void enqueue(const Request& request, QueuedJob&& job);
  int give_fault(std::string_view call);
  bool is_in_use(const Buffer& buffer) const override;

  Kernel& kernel_;
  // Guarded by kernel_.state():
  Entity entity_{.file = *this};
};

}  // namespace skillet::fake::rocket
