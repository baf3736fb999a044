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
  std::string_view chip, jobs, name;  // jobs: "open", "vendor", "both"; "range", "state" of rows that change others
  double value = 0;
  std::string_view unit, mark, source;
  double low = 0, high = 0;  // of a range: what published times leave open
  std::string_view state{};  // of a state: what a board has that makes this value
};
constexpr TimingParameter range_of(std::string_view chip, std::string_view name, double low, double high) {
  return {.chip = chip,
          .jobs = "range",
          .name = name,
          .unit = {},
          .mark = {},
          .source = {},
          .low = low,
          .high = high,
          .state = {}};
}
constexpr TimingParameter state_of(std::string_view chip, std::string_view state, std::string_view name, double value) {
  return {.chip = chip,
          .jobs = "state",
          .name = name,
          .value = value,
          .unit = {},
          .mark = {},
          .source = {},
          .state = state};
}
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
  double row(std::string_view name) const;  // what it is without an override

 private:
  std::vector<ParameterValue> values_, rows_;
};

// The NPU's, that times are for. At another one than the row's, at which times were published, they are an estimate.
struct Clock {
  double ghz = 0, row_ghz = 0;  // 0: not known
  bool is_estimate() const { return ghz != row_ghz; }
};
// "at 786 MHz", "at 1000 MHz (an estimate: published times are at 786 MHz)"; empty: not known.
std::string print(const Clock& clock);

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
  Clock clock() const { return {parameters_.get("clock_ghz"), parameters_.row("clock_ghz")}; }
  // Of what is printed: the true time is believed to be within so much of it (0.2: 20 %), most of the time.
  double error() const { return parameter("error_percent") / 100; }
  // What the mainline kernel adds: a start and an interrupt for each task, the IOMMU for each job, a call for each
  // submission.
  double wall_us(double device_us, size_t tasks, size_t jobs, size_t submissions) const;
  // Of the host, for each program beside its submission: caches of a buffer on each side.
  double caches_us() const { return 2 * parameter("cache_us"); }
  // Between the host's layout and the device's, with what caches take for each byte; `copy_gbps`: where no more is
  // known than how fast the host copies.
  double way_bytes_per_us(double copy_gbps) const;

 protected:
  const TimingParameters& parameters() const { return parameters_; }

 private:
  TimingParameters parameters_;
};

// Error unsupported, with the reason: the chip has no rows, or none for these jobs.
Result<std::unique_ptr<Timer>> create_timer(std::string_view chip, Jobs jobs,
                                            std::span<const ParameterValue> overrides = {});
// "clock_ghz=0.1"; the error says what is wrong with the text. Names are not looked up.
Result<ParameterValue> parse_parameter(std::string_view text);
// Of a simulated chip's quirks (see create()) those that are times: other values of its rows for open jobs.
Result<std::vector<ParameterValue>> times_of_quirks(std::string_view chip, std::string_view quirks);
// What a board may have: another kernel, other settings. Empty: nothing is known that makes a difference.
struct TimingState {
  std::string_view title;
  std::vector<ParameterValue> values;
};
std::vector<TimingState> timing_states(std::string_view chip);
// The ends of all ranges: where everything is as fast, or as slow, as published times allow; but for `fixed`.
std::vector<ParameterValue> ends_of_ranges(std::string_view chip, bool fast, std::span<const ParameterValue> fixed);

// All rows of all families, ranges as parts of the rows that they belong to.
std::vector<TimingParameter> timing_parameters();
// Chips with rows for these jobs.
std::vector<std::string_view> timed_chips(Jobs jobs);

}  // namespace skillet::sim
