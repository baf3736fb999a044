// Kernel: an emulated mainline kernel driver etnaviv, interface version 1.4: one device with up to four cores.
// Called by open_simulated() and the virtual device node, through the table of emulated kernel drivers, and by tests.
// Must not know: descriptors of the process, paths.
#pragma once

#include "kernels/etnaviv/abi.h"
#include "kernels/etnaviv/fake/identity.h"
#include "kernels/fake/kernel.h"
#include "sim/sim.h"

namespace skillet::fake::etnaviv {

namespace abi = ::skillet::kernels::etnaviv;
namespace drm = ::skillet::kernels::drm;

struct Core {
  std::string chip;  // "a311d"
  Identity identity;
  std::unique_ptr<sim::Device> simulator;  // null: its jobs do nothing
};

// A submission as read by the kernel driver.
struct Request {
  struct Use {
    std::shared_ptr<Buffer> buffer;
    uint64_t address = 0;
    bool writes = false;
  };
  std::vector<abi::SubmitBo> buffers;
  std::vector<abi::SubmitReloc> relocations;
  std::vector<abi::SubmitCounter> counters;
  std::vector<uint32_t> stream;
  std::vector<Use> uses;
  uint32_t pipe = 0;
};

class Kernel : public fake::Kernel {
 public:
  // At least one core.
  Kernel(std::vector<Core> cores, Options options);
  NodePlace place() const override;

  const std::vector<Core>& cores() const { return cores_; }
  // Runs a submission to its end. Requires order(). Returns 0, or -EIO if faults are errors.
  int run(const Request& request, FaultKind fault);
  // For the submission that holds order(): its memory is reused by the next one.
  Request& request() { return request_; }

 protected:
  std::shared_ptr<File> make_file(unsigned minor) override;

 private:
  Result<void> simulate(const Core& core, const Request& request) const;

  std::vector<Core> cores_;
  Request request_;
};

// One core, with the known identity of the chip.
std::unique_ptr<fake::Kernel> create(const std::string& chip, std::unique_ptr<sim::Device> simulator, Options options);
// Names of calls that a FaultPlan may use.
std::vector<std::string_view> call_names();

}  // namespace skillet::fake::etnaviv
