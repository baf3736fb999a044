// Timer: what jobs cost on a chip: cycles, bytes and time of each task, by the same decoders as the simulated chip.
// Called by tools (`skillet plan`, `run`, `check`); implemented in npus/<v>/sim/timing*.cpp over rows of
// npus/<v>/sim/timing_params.def. Must not know: graphs, programs, drivers, what a job computes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/sim.h"

namespace skillet::sim {

// Whose jobs: those of the open drivers, which are there to be read; or those of a vendor's compiler, which nobody has,
// so that they are computed from a list of layers by what is known of its mapping.
enum class Jobs : uint8_t { open, vendor };
constexpr std::array<std::string_view, 2> kJobsNames = {"open", "vendor"};

// One row of timing_params.def. Mark: S published, D derived, K general knowledge, F fitted by ./x calibrate.
struct TimingParameter {
  std::string_view chip, jobs, name;  // jobs: "open", "vendor", "both"
  double value = 0;
  std::string_view unit, mark, source;
};
struct ParameterValue {
  std::string name;
  double value = 0;
};

// The rows of one chip for one kind of jobs, by name.
class TimingParameters {
 public:
  // Error: no rows for the chip, which is then not timed; or an override that names no row, or is not a positive
  // number.
  static Result<TimingParameters> find(std::span<const TimingParameter> rows, std::string_view chip, Jobs jobs,
                                       std::span<const ParameterValue> overrides);
  double get(std::string_view name) const;  // 0 where there is no row
  void limit(std::string_view name, double most);

 private:
  std::vector<ParameterValue> values_;
};

struct UnitTime {
  std::string_view unit;  // "MAC", "DRAM", ...
  double us = 0;
};
// What one task of a job costs. Its units work at the same time, as far as `overlap` says (1: it takes as long as the
// busiest of them; 0: as all of them one after the other).
struct Cost {
  std::string what;
  double cycles = 0;                         // of the unit that computes
  double read_bytes = 0, written_bytes = 0;  // of DRAM
  double on_chip_bytes = 0;                  // read again from on-chip memory, not from DRAM
  std::array<UnitTime, 5> units{};
  double us = 0;
  int id = -1;  // of the layer; -1: of a job

  void set(std::span<const UnitTime> busy, double overlap, double least_us);
  const UnitTime& busiest() const;
};
struct Totals {
  double us = 0, cycles = 0, read_bytes = 0, written_bytes = 0;
};
Totals total(std::span<const Cost> costs);

// One layer of a network without weights, or of a table of measured layers.
struct Layer {
  int id = 0;
  std::string op, act = "none";
  std::vector<int> inputs;  // ids of the layers that make them
  int64_t in_h = 0, in_w = 0, in_c = 0, out_h = 0, out_w = 0, out_c = 0;
  int64_t kh = 0, kw = 0, stride = 1, dilation = 1, weights = 0;
  int64_t memory_cycles = 0;  // that a table's own estimator gives to its bytes; 0: not known
  bool fused_add = false, fp16 = false;

  int64_t in_elements() const { return in_h * in_w * in_c; }
  int64_t out_elements() const { return out_h * out_w * out_c; }
};
// Whether a vendor's compiler may merge layers with their neighbours: those of a network; a row of a table stands
// alone.
enum class Fusion : uint8_t { network, alone };

class Timer {
 public:
  explicit Timer(TimingParameters parameters) : parameters_(std::move(parameters)) {}
  virtual ~Timer() = default;
  // The tasks of one job, in order. Jobs of a program are given in order: what a chip keeps between them counts.
  virtual Result<std::vector<Cost>> time_job(const Job& job, const Memory& memory) = 0;
  // Whether jobs have their commands in memory; else they are handed over with the job.
  virtual bool reads_commands() const { return false; }
  virtual Result<std::vector<Cost>> time_layers(std::span<const Layer> layers, Fusion fusion) const = 0;

  double parameter(std::string_view name) const { return parameters_.get(name); }
  // Of what is printed: the true time is believed to lie within so much of it (0.2: 20 %), most of the time.
  double error() const { return parameter("error_percent") / 100; }
  // What the mainline kernel adds: a start and an interrupt for each task, a call for each submission.
  double wall_us(double device_us, size_t tasks, size_t submissions) const;

 protected:
  const TimingParameters& parameters() const { return parameters_; }

 private:
  TimingParameters parameters_;
};

// Error unsupported, with the reason: the chip has no rows, or none for these jobs.
Result<std::unique_ptr<Timer>> create_timer(std::string_view chip, Jobs jobs,
                                            std::span<const ParameterValue> overrides = {});
// All rows of all families.
std::vector<TimingParameter> timing_parameters();
// Chips with rows for these jobs.
std::vector<std::string_view> timed_chips(Jobs jobs);

}  // namespace skillet::sim
