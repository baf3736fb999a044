// Nobody has measured a chip of this family yet: it has no times. Its weights are decoded with the job that has them.
#include "sim/timing.h"

#include "sim/weights.h"

namespace skillet::sim::ethosu {

std::span<const TimingParameter> timing_rows() { return {}; }
std::unique_ptr<Timer> make_timer(std::string_view, TimingParameters) { return nullptr; }

Result<std::vector<std::optional<Weights>>> read_weights(std::string_view chip, const Job&, const Memory&) {
  return skillet::error(ErrorCode::unsupported, "the weights of '{}' are not listed", chip);
}

}  // namespace skillet::sim::ethosu
