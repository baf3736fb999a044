#include "npus/rockchip/sim/fault.h"

#include <algorithm>
#include <atomic>
#include <deque>

#include "base/leaked.h"
#include "base/log.h"

namespace skillet::sim::rockchip {
namespace {

// Whether the rule is broken for the first time in this process.
bool is_first(size_t rule) {
  auto& told = leaked([] { return std::deque<std::atomic<bool>>(option_rows().size()); });
  return !told[rule].exchange(true);
}

}  // namespace

Result<void> broken(Enforce how, std::string_view rule, Error error) {
  if (how == Enforce::off) return {};
  const auto row = std::ranges::find(option_rows(), rule, &OptionRow::member);
  error.message += fmt::format(" (rule {}: {})", row->variable, row->what);
  if (how == Enforce::fault) return error;
  if (is_first(static_cast<size_t>(row - option_rows().begin())))
    log::warning("simulated NPU: {}; said once", error.message);
  return {};
}

}  // namespace skillet::sim::rockchip
