// Applies quirks to jobs of the units: they change a job after it is read, or end it with a hang or a fault.
// Called by nn.cpp and tp.cpp if a chip has quirks; implements quirks.def.
// Must not know: command streams, any encoder, what a graph is.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "npus/vivante/hw/vivante.h"
#include "npus/vivante/sim/nn_job.h"
#include "npus/vivante/sim/order.h"
#include "npus/vivante/sim/quirks.h"
#include "npus/vivante/sim/tp_job.h"

namespace skillet::sim::vivante {

// Ranges that jobs of this stream have written, each as its last writer wrote it.
class WrittenRanges {
 public:
  void clear() { ranges_.clear(); }
  void note(const Accesses::Range& written);
  // The start of the written range at `address`: the address itself if nothing was written there.
  uint64_t start_of(uint64_t address) const;

 private:
  struct Range {
    uint64_t begin, end, written_from;
  };
  std::vector<Range> ranges_;
};

class NnQuirks {
 public:
  using Instruction = ::skillet::vivante::hw::NnInstruction;
  // `chip` is borrowed.
  NnQuirks(const ::skillet::vivante::hw::ChipRow& chip, QuirkSet set) : chip_(chip), set_(set) {}

  bool any() const { return set_.any(); }
  void start_of_stream();
  void note_written(const Accesses::Range& written) { written_.note(written); }

  // The order of V7 weights if a quirk changes it.
  std::optional<StreamOrder> order(const Instruction& d) const;
  void change_address(Instruction& d) const;
  // Changes `job` to what the chip does. Error: the job never ends, or faults.
  Result<void> change(const Instruction& d, std::span<const Kernel> kernels, NnJob& job);
  // The changed kernels; none: unchanged.
  std::optional<std::vector<Kernel>> change_kernels(const Instruction& d, const NnJob& job,
                                                    std::span<const Kernel> kernels) const;
  void change_result(const Instruction& d, const NnJob& job, std::span<const Kernel> kernels,
                     std::span<const KernelTask> tasks) const;

 private:
  bool has(QuirkName name) const { return set_.has(name); }
  Result<void> check_ends(const Instruction& d, std::span<const Kernel> kernels) const;
  void keep_scale(const Instruction& d, NnJob& job);

  const ::skillet::vivante::hw::ChipRow& chip_;
  const QuirkSet set_;
  WrittenRanges written_;
  std::optional<Instruction> before_;
};

// Called before the job is made, and after.
Result<void> check_ends(QuirkSet set, const ::skillet::vivante::hw::TpInstruction& d);
void change(QuirkSet set, const ::skillet::vivante::hw::TpInstruction& d, TpJob& job);
void change_table(QuirkSet set, std::span<uint32_t> entries);

}  // namespace skillet::sim::vivante
