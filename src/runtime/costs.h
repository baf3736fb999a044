// The times that a device needs to start work, to compute and to move bytes: small networks that are timed on it, and
// the timing parameters (sim/timing.h) that explain these times.
// Called by prove.h (measures and explains), compile_for() and tools (use the stored values).
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
  std::string_view shape, filter;  // `count` convolutions in sequence, all of one shape
  int count = 1;

  ir::Graph graph() const;
};
std::span<const Benchmark> benchmarks();

struct MeasuredTime {
  double us = 0, spread_us = 0;  // the median of several runs; half of the interquartile range
};
// Error unsupported: the chip does not take it.
Result<MeasuredTime> time_benchmark(const Target& target, const Trust& trust, const Benchmark& benchmark);

struct MeasuredCost {
  std::string name;  // name of a timing parameter
  double expected = 0;
  std::optional<double> value;  // none: these times do not determine it
  double error = 0;             // the uncertainty of the value
  std::string unit;
};
// The values with which the timing model predicts the times, by name of the benchmark. For a simulated device they
// contain nothing of the host. Empty: the chip is not timed.
Result<std::vector<MeasuredCost>> explain_times(const npu::Chip& chip, const Trust& trust,
                                                const std::map<std::string, MeasuredTime>& times, bool is_simulated);

// Measured parameters of this device that are trusted, which replace the rows of its chip. Impossible values are left
// out, with a warning.
std::vector<sim::ParameterValue> measured_parameters(const npu::Chip& chip, const Trust* trust);
npu::Measured by_name(std::span<const sim::ParameterValue> values);

}  // namespace skillet::runtime
