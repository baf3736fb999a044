// Times of many runs in a few numbers.
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
// Percentiles are values that occurred: the smallest one that so many percent are not above.
Statistics statistics_of(std::vector<double> values);

}  // namespace skillet::tools
