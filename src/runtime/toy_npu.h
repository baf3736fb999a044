// A toy NPU for tests: a driver for RELU and MAXIMUM on uint8 and the chip that runs its programs.
// Called by the tests of runtime/.
// Must not know: sessions.
#pragma once

#include "driver/driver.h"
#include "sim/sim.h"

namespace skillet::runtime {

// Its tensors are planar and hold bytes ^ 0x80, so that bindings have to convert. Command words: {kToyRun, descriptor
// address}, or {kToyInit}. A descriptor is six words: tag in the low 4 bits and address >> 6 in the next 26 of each of
// source, source, target; then bytes, clamp, kToyRun.
constexpr uint32_t kToyRun = 0x70E0, kToyInit = 0x70E1, kToyTag = 0x5;

struct ToyState {
  int init_runs = 0;
  int runs = 0;
  bool fault = false;      // the next runs report a fault
  int jobs_to_fault = -1;  // after so many jobs one reports a fault
  int wrong_run = -1;      // this run adds one to its first byte
};

class ToyChip : public sim::Device {
 public:
  explicit ToyChip(ToyState& state) : state_(state) {}
  Result<void> execute(std::span<const uint32_t> stream, const sim::Memory& memory) override;

 private:
  ToyState& state_;
};

class ToyDriver : public driver::Driver {
 public:
  bool refuse_compile = false;
  bool unproven = false;  // MAXIMUM was never seen on silicon
  mutable int compiled = 0;
  bool wrong_binding = false;

  std::string_view name() const override { return "toy"; }
  std::span<const driver::Chip> chips() const override { return {}; }
  Result<driver::Chip> identify(const capture::DeviceInfo&) const override;
  driver::Support supports(const driver::Chip&, const ir::Graph& graph, ir::OpId op) const override;
  Result<driver::Program> compile(const driver::Chip&, const ir::Graph& graph,
                                  const driver::CompileOptions& options) const override;
  Result<driver::Annotated> decode(const driver::Chip&, const capture::Submission&) const override;
};

}  // namespace skillet::runtime
