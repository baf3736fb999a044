// Summarises the times of many runs.
// Called by `skillet bench`.
// Must not know: what ran.
#pragma once

#include <cstddef>
#include <vector>

namespace skillet::tools {

struct Statistics {
  size_t count = 0;
  double min = 0, mean = 0, median = 0, p90 = 0, p99 = 0, max = 0;
};
// A percentile is a measured value: the smallest one that at least this share of the values does not exceed.
Statistics statistics_of(std::vector<double> values);

}  // namespace skillet::tools
