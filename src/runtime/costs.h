// What a device takes to start work, to compute and to move bytes: small networks that are timed on it, and the timing
// parameters (sim/timing.h) that explain their times.
// Called by prove.h (times and explains), compile_for() and tools (use what is kept of it).
// Must not know: files, a vendor's anything.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/session.h"
#include "sim/timing.h"

namespace skillet::runtime {

struct Benchmark {
  std::string_view name;
  std::string_view shape, filter;  // `count` convolutions one after the other, all of one shape
  int count = 1;

  ir::Graph graph() const;
};
std::span<const Benchmark> benchmarks();

struct MeasuredTime {
  double us = 0, spread_us = 0;  // the median of some runs; half of what is between their quartiles
};
// Error unsupported: the chip does not take it.
Result<MeasuredTime> time_benchmark(const Target& target, const Trust& trust, const Benchmark& benchmark);

struct MeasuredCost {
  std::string name;  // of a row of timing parameters
  double expected = 0;
  std::optional<double> value;  // none: these times do not tell
  double error = 0;             // of the value
  std::string unit;
};
// The values with which the timing model gives the times, by name of the benchmark. Of a simulated device nothing of
// the host is in them. Empty: the chip is not timed.
Result<std::vector<MeasuredCost>> explain_times(const npu::Chip& chip, const Trust& trust,
                                                const std::map<std::string, MeasuredTime>& times, bool is_simulated);

// What was measured of this device and is believed, in place of the rows of its chip. Values that cannot be are left
// out, with a warning.
std::vector<sim::ParameterValue> measured_parameters(const npu::Chip& chip, const Trust* trust);
npu::Measured by_name(std::span<const sim::ParameterValue> values);

}  // namespace skillet::runtime
