// The toy NPU is made up: it has no times, and no weights.
#include "sim/timing.h"

#include "sim/weights.h"

namespace skillet::sim::toy {

std::span<const TimingParameter> timing_rows() { return {}; }
std::unique_ptr<Timer> make_timer(std::string_view, TimingParameters) { return nullptr; }

Result<std::vector<std::optional<Weights>>> read_weights(std::string_view chip, const Job&, const Memory&) {
  return skillet::error(ErrorCode::unsupported, "chip '{}' has no weights", chip);
}

}  // namespace skillet::sim::toy
