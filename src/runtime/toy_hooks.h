// The toy NPU (npus/toy/compiler, npus/toy/sim) with hooks for tests: it counts calls and fails on request.
// Called by the tests of runtime/.
// Must not know: sessions.
#pragma once

#include <csignal>

#include "base/stop.h"
#include "npu/driver.h"
#include "npus/toy/hw/toy.h"
#include "sim/sim.h"

namespace skillet::runtime {

struct ToyState {
  int init_runs = 0;
  int runs = 0;
  bool fault = false;           // the next runs report a fault
  int jobs_to_fault = -1;       // after so many jobs one reports a fault
  bool stops_at_fault = false;  // and asks the program to stop
  int wrong_run = -1;           // a byte of this run's result is off
  size_t wrong_byte = 0;
  uint8_t wrong_by = 1;  // towards the middle of the range
};

class ToyChip : public sim::Device {
 public:
  explicit ToyChip(ToyState& state) : state_(state) {}

  Result<void> run(const sim::Job& job, const sim::Memory& memory) override {
    SK_TRY_ASSIGN(const auto stream, sim::words_of(job));
    const auto command = bits::read<toy::hw::Command>(stream);
    const bool is_init = command.opcode == toy::hw::Opcode::init;
    if (!is_init && (state_.fault || state_.jobs_to_fault-- == 0)) {
      if (state_.stops_at_fault) request_stop(SIGINT);
      return error(ErrorCode::device, "the toy broke");
    }
    SK_TRY(chip_->run(job, memory));
    if (is_init) {
      ++state_.init_runs;
    } else if (state_.runs++ == state_.wrong_run) {
      SK_TRY(spoil(command, memory));
    }
    return {};
  }
  void reset(uint32_t core) override { chip_->reset(core); }

 private:
  Result<void> spoil(const toy::hw::Command& command, const sim::Memory& memory) const {
    bits::Words<toy::hw::Descriptor> words;
    SK_TRY_ASSIGN(const auto bytes, memory.at(command.job_address.offset, sizeof words, "descriptor"));
    std::memcpy(words.data(), bytes.data(), sizeof words);
    const uint64_t result = bits::read<toy::hw::Descriptor>(words).result.offset;
    SK_TRY_ASSIGN(const auto first, memory.at(result + state_.wrong_byte, 1, "result"));
    const bool is_low = static_cast<int8_t>(first[0]) < 0;  // the toy's bytes are signed
    first[0] = static_cast<uint8_t>(is_low ? first[0] + state_.wrong_by : first[0] - state_.wrong_by);
    return {};
  }

  ToyState& state_;
  std::unique_ptr<sim::Device> chip_ = sim::create("toy").value();
};

class ToyDriver : public npu::Driver {
 public:
  bool refuse_compile = false;
  bool unproven = false;  // MAXIMUM was never seen on silicon
  mutable int compiled = 0;
  bool wrong_binding = false;
  uint32_t init_argument = 0;  // the chip is set up with another one

  std::string_view name() const override { return toy_.name(); }
  std::span<const npu::Chip> chips() const override { return toy_.chips(); }
  Result<npu::Chip> identify(const capture::DeviceInfo& info) const override { return toy_.identify(info); }
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    if (unproven && graph.op(op).kind == ir::OpKind::maximum)
      return npu::Support::yes_unproven("the toy was never made");
    return toy_.supports(chip, graph, op);
  }
  Result<npu::Program> compile(const npu::Chip& chip, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override {
    ++compiled;
    if (refuse_compile) return error(ErrorCode::unsupported, "the toy refuses");
    npu::CompileOptions without_switches = options;
    without_switches.switches.clear();
    auto program = toy_.compile(chip, graph, without_switches);
    if (program.ok() && wrong_binding) program->outputs[0].layout.size_bytes -= 1;
    if (program.ok() && init_argument != 0) {
      toy::hw::Command command{.opcode = toy::hw::Opcode::init};
      command.job_address.offset = uint64_t{init_argument} << 6;
      const auto words = bits::pack(command);
      if (!words.ok()) return words.error();
      const npu::ByteRange range = program->init_jobs[0].commands[0];
      auto& contents = program->buffers[range.buffer].contents;
      Bytes bytes(contents.begin(), contents.end());
      std::memcpy(bytes.data() + range.offset_bytes, words->data(), sizeof *words);
      contents = std::move(bytes);
    }
    return program;
  }
  Result<npu::Annotated> decode_as(const npu::Chip& chip, const capture::Submission& submission,
                                   npu::Detail detail) const override {
    return toy_.decode_as(chip, submission, detail);
  }

 private:
  const npu::Driver& toy_ = *npu::driver_of({.name = "toy", .family = "toy"}).value();
};

}  // namespace skillet::runtime
