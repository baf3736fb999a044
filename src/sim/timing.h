// Timer: costs of jobs on a chip: cycles, bytes and time of each task, by the same decoders as the simulated chip.
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

// Kinds of jobs. open: those of the open drivers, which can be decoded. vendor: those of a vendor's compiler, which are
// not available; they are estimated from a list of layers and the known facts about its mapping.
enum class Jobs : uint8_t { open, vendor };
constexpr std::array<std::string_view, 2> kJobsNames = {"open", "vendor"};

// One row of timing_params.def. Mark: S published, D derived, K general knowledge, F fitted by ./x calibrate.
struct TimingParameter {
  std::string_view chip, jobs, name;  // jobs: "open", "vendor", "both"; "range", "state": the row changes others
  double value = 0;
  std::string_view unit, mark, source;
  double low = 0, high = 0;  // of a range: the bounds that published times allow
  std::string_view state{};  // of a state: the condition of a board under which this value holds
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
  // Error: no rows for the chip, which is then not timed; or an override names no row, or is not positive.
  static Result<TimingParameters> find(std::span<const TimingParameter> rows, std::string_view chip, Jobs jobs,
                                       std::span<const ParameterValue> overrides);
  double get(std::string_view name) const;  // 0 where there is no row
  double row(std::string_view name) const;  // the value without an override

 private:
  std::vector<ParameterValue> values_, rows_;
};

// Clock of the NPU that times are for. If it differs from the row's, at which times were published, they are an
// estimate.
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
// Costs of one task of a job. Its units work in parallel to the degree of `overlap` (1: the task takes as long as the
// busiest unit; 0: as all units in sequence).
struct Cost {
  std::string what;
  double cycles = 0;                         // of the computing unit
  double read_bytes = 0, written_bytes = 0;  // of DRAM
  double on_chip_bytes = 0;                  // reread from on-chip memory instead of DRAM
  std::array<UnitTime, 5> units{};
  double us = 0;
  int id = -1;  // of the layer; -1: for a job

  void set(std::span<const UnitTime> busy, double overlap, double least_us);
  const UnitTime& busiest() const;
};
struct Totals {
  double us = 0, cycles = 0, read_bytes = 0, written_bytes = 0;
};
Totals total(std::span<const Cost> costs);

// One layer of a network, without weights, or of a table of measured layers.
struct Layer {
  int id = 0;
  std::string op, act = "none";
  std::vector<int> inputs;  // ids of the layers that produce them
  int64_t in_h = 0, in_w = 0, in_c = 0, out_h = 0, out_w = 0, out_c = 0;
  int64_t kh = 0, kw = 0, stride = 1, dilation = 1, weights = 0;
  int64_t memory_cycles = 0;  // time for its bytes by the table's own estimator; 0: not known
  bool fused_add = false, fp16 = false;

  int64_t in_elements() const { return in_h * in_w * in_c; }
  int64_t out_elements() const { return out_h * out_w * out_c; }
};
// Whether a vendor's compiler may merge a layer with its neighbours: layers of a network may be merged, rows of a table
// are independent.
enum class Fusion : uint8_t { network, alone };

class Timer {
 public:
  explicit Timer(TimingParameters parameters) : parameters_(std::move(parameters)) {}
  virtual ~Timer() = default;
  // The tasks of one job, in order. Jobs of a program must be passed in order: the chip keeps state between them.
  virtual Result<std::vector<Cost>> time_job(const Job& job, const Memory& memory) = 0;
  // True if command lists are in memory; false: they are passed inline with the job.
  virtual bool reads_commands() const { return false; }
  virtual Result<std::vector<Cost>> time_layers(std::span<const Layer> layers, Fusion fusion) const = 0;

  double parameter(std::string_view name) const { return parameters_.get(name); }
  Clock clock() const { return {parameters_.get("clock_ghz"), parameters_.row("clock_ghz")}; }
  // Estimated relative error of predictions (0.2: 20 %): most true times are within it.
  double error() const { return parameter("error_percent") / 100; }
  // Adds the cost of the mainline kernel: a start and an interrupt for each task, the IOMMU for each job, a call for
  // each submission.
  double wall_us(double device_us, size_t tasks, size_t jobs, size_t submissions) const;
  // Cost on the host for each program besides its submission: cache maintenance of a buffer on each side.
  double caches_us() const { return 2 * parameter("cache_us"); }
  // Rate of conversions between the host's layout and the device's, with cache maintenance for each byte. `copy_gbps`
  // is used if the chip has no measured rate, only the host's copy speed.
  double way_bytes_per_us(double copy_gbps) const;

 protected:
  const TimingParameters& parameters() const { return parameters_; }

 private:
  TimingParameters parameters_;
};

// Error unsupported, with the reason: the chip has no rows, or none for these jobs.
Result<std::unique_ptr<Timer>> create_timer(std::string_view chip, Jobs jobs,
                                            std::span<const ParameterValue> overrides = {});
// Parses "clock_ghz=0.1"; the error says what is wrong. Does not check the name.
Result<ParameterValue> parse_parameter(std::string_view text);
// The timing parameters among a simulated chip's quirks (see create()): other values of its rows for open jobs.
Result<std::vector<ParameterValue>> times_of_quirks(std::string_view chip, std::string_view quirks);
// Variants of a board: another kernel, other settings. Empty: no known variant changes times.
struct TimingState {
  std::string_view title;
  std::vector<ParameterValue> values;
};
std::vector<TimingState> timing_states(std::string_view chip);
// One end of all ranges: the fastest, or the slowest, values that published times allow; without those in `fixed`.
std::vector<ParameterValue> ends_of_ranges(std::string_view chip, bool fast, std::span<const ParameterValue> fixed);

// All rows of all families; ranges are merged into the rows that they belong to.
std::vector<TimingParameter> timing_parameters();
// Chips with rows for these jobs.
std::vector<std::string_view> timed_chips(Jobs jobs);

}  // namespace skillet::sim
