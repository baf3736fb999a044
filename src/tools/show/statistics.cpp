#include "tools/show/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace skillet::tools {

Statistics statistics_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  const auto percentile = [&](double share) {
    return values[static_cast<size_t>(std::max(0.0, std::ceil(share * count) - 1))];
  };
  return {values.size(),   values.front(),  std::accumulate(values.begin(), values.end(), 0.0) / count,
          percentile(0.5), percentile(0.9), percentile(0.99),
          values.back()};
}

}  // namespace skillet::tools
