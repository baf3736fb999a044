// What quirks make of jobs of the units: they change what was read of a job, or end it with a hang or a fault.
// Called by nn.cpp and tp.cpp where a chip has quirks; implements quirks.def.
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

// What jobs of this stream have written, each range as the job that was last there wrote it.
class WrittenRanges {
 public:
  void clear() { ranges_.clear(); }
  void note(const Accesses::Range& written);
  // Where what is at `address` begins: the address itself where nothing was written there.
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

  // The order of V7 weights where it is another.
  std::optional<StreamOrder> order(const Instruction& d) const;
  void change_address(Instruction& d) const;
  // After that `job` says what the chip does. Error: it does nothing.
  Result<void> change(const Instruction& d, std::span<const Kernel> kernels, NnJob& job);
  // The kernels that it takes instead; none: those.
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

// Before the job is made; after.
Result<void> check_ends(QuirkSet set, const ::skillet::vivante::hw::TpInstruction& d);
void change(QuirkSet set, const ::skillet::vivante::hw::TpInstruction& d, TpJob& job);
void change_table(QuirkSet set, std::span<uint32_t> entries);

}  // namespace skillet::sim::vivante
