// Kernel: an emulated mainline kernel driver ethosu, interface version 1.0: one node, one core. Command streams are
// checked when they are created; a job runs when it is submitted.
// Called by open_simulated() and the virtual device node, through the table of emulated kernel drivers, and by tests.
// Must not know: descriptors of the process, paths, commands.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/ethosu/fake/identity.h"
#include "kernels/fake/kernel.h"
#include "sim/sim.h"

namespace skillet::fake::ethosu {

namespace abi = ::skillet::kernels::ethosu;
namespace drm = ::skillet::kernels::drm;

struct Stream {
  std::vector<uint32_t> words;
  StreamNeeds needs;
};
// A job with its resolved buffers.
struct Launch {
  std::shared_ptr<const Stream> stream;
  std::array<std::shared_ptr<Buffer>, abi::kRegions> regions;
  uint32_t sram_bytes = 0;
};

class Kernel : public fake::Kernel {
 public:
  Kernel(std::string chip, const Identity& identity, std::unique_ptr<sim::Device> simulator, Options options);
  NodePlace place() const override;

  const Identity& identity() const { return identity_; }
  // Runs a job to its end. Requires order(). Returns 0, or -EIO if faults are errors.
  int run(const Launch& launch, FaultKind fault);

 protected:
  std::shared_ptr<File> make_file(unsigned minor) override;

 private:
  Result<void> simulate(const Launch& launch) const;

  std::string chip_;
  Identity identity_;
  std::unique_ptr<sim::Device> simulator_;  // null: jobs do nothing
};

// True if the chip belongs to this kernel driver.
bool has(std::string_view chip);
std::unique_ptr<fake::Kernel> create(const std::string& chip, std::unique_ptr<sim::Device> simulator, Options options);
// Names of calls that a FaultPlan may use.
std::vector<std::string_view> call_names();

}  // namespace skillet::fake::ethosu
