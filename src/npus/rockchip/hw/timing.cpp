#include "npus/rockchip/hw/timing.h"

namespace skillet::rockchip::timing {
namespace {

struct Row {
  std::string_view chip, jobs, name;
  double value;
};
constexpr Row kRows[] = {
#define TIMING(chip, jobs, name, value, unit, mark, source) {#chip, #jobs, #name, value},
#define TIMING_RANGE(chip, name, low, high)
#define TIMING_STATE(chip, title, name, value)
#include "npus/rockchip/hw/timing_params.def"
#undef TIMING
#undef TIMING_RANGE
#undef TIMING_STATE
};

}  // namespace

double parameter(std::string_view chip, std::string_view jobs, std::string_view name) {
  for (const Row& row : kRows) {
    if (row.chip == chip && row.name == name && (row.jobs == jobs || row.jobs == "both")) return row.value;
  }
  return 0;
}

}  // namespace skillet::rockchip::timing
