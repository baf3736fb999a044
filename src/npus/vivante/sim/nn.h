// The NN unit: reads an NN instruction, checks it, decodes its coefficients and computes its output planes.
// Called by vivante.cpp for each job that the front end starts.
// Must not know: command streams, what a graph is.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "npus/vivante/hw/vivante.h"
#include "npus/vivante/sim/job_quirks.h"
#include "npus/vivante/sim/nn_job.h"
#include "npus/vivante/sim/order.h"
#include "npus/vivante/sim/vivante.h"

namespace skillet::sim::vivante {

// The form of a fully connected layer: a window of the inputs, as the recorded driver makes it.
bool is_connected_window(const ::skillet::vivante::hw::NnInstruction& d);

class NnUnit {
 public:
  // `chip` is borrowed for the unit's life (the table of chips).
  NnUnit(const ::skillet::vivante::hw::ChipRow& chip, const Options& options);

  Result<Accesses> run(uint64_t descriptor_address, const Memory& memory);
  // For chips with quirks, some of which depend on earlier jobs.
  void start_of_stream() { quirks_.start_of_stream(); }
  void note_written(const Accesses::Range& written) { quirks_.note_written(written); }

  // The instruction, checked field by field; and its kernels. For code that reads jobs without running them.
  using Instruction = ::skillet::vivante::hw::NnInstruction;
  Result<Instruction> instruction(uint64_t descriptor_address, const Memory& memory) const;
  // A decoded buffer of coefficients.
  struct Known {
    Coefficients decoded;
    PackedKernels packed;
  };
  Result<std::shared_ptr<Known>> coefficients(const Instruction& d, const Memory& memory);
  // The kernels in every order that the buffer and the instruction allow, including those of recorded jobs; likeliest
  // first, without duplicates. Error: no order is well-formed.
  Result<std::vector<Coefficients>> readings(const Instruction& d, const Memory& memory) const;

 private:
  struct Stored {
    CoefficientShape shape;
    std::span<const uint8_t> bytes;
  };
  Result<Stored> stored(const Instruction& d, const Memory& memory) const;
  Result<std::shared_ptr<Known>> with_quirks(const Instruction& d, NnJob& job, std::shared_ptr<Known> known);
  void report_assumptions(const Instruction& d, const Stored& from, const Coefficients& taken) const;
  std::vector<StreamOrder> stream_orders(const Instruction& d, const CoefficientShape& shape) const;

  const ::skillet::vivante::hw::ChipRow& chip_;
  Options options_;
  const CoefficientFormat& format_;
  NnQuirks quirks_;

  // By the current bytes of the buffer, whatever wrote them: weights rarely change between inferences.
  using CacheKey = std::pair<uint64_t, uint64_t>;
  std::map<CacheKey, std::shared_ptr<Known>> cache_;
  uint64_t cached_bytes_ = 0;
};

}  // namespace skillet::sim::vivante
