#include "sim/weights.h"

#include "base/leaked.h"
#include "base/vendors.h"

#define SIMULATOR(vendor)                                                                         \
  namespace skillet::sim::vendor {                                                                \
  Result<std::vector<std::optional<Weights>>> read_weights(std::string_view chip, const Job& job, \
                                                           const Memory& memory);                 \
  }
#include "vendors.inc"

namespace skillet::sim {
namespace {

using ReadWeights = decltype(&read_weights);
const std::vector<ReadWeights>& families() {
  const auto& kFamilies = leaked([] {
    return std::vector<ReadWeights>{
#define SIMULATOR(vendor) vendor::read_weights,
#include "vendors.inc"
    };
  });
  return kFamilies;
}

}  // namespace

Result<std::vector<std::optional<Weights>>> read_weights(std::string_view chip, const Job& job, const Memory& memory) {
  for (const ReadWeights read : families()) {
    auto weights = read(chip, job, memory);
    if (weights.ok() || weights.error().code != ErrorCode::unsupported) return weights;
  }
  return error(ErrorCode::unsupported, "weights of chip '{}' cannot be read", chip);
}

}  // namespace skillet::sim
