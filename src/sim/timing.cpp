#include "sim/timing.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/leaked.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/vendors.h"

#define SIMULATOR(vendor)                                                            \
  namespace skillet::sim::vendor {                                                   \
  std::span<const TimingParameter> timing_rows();                                    \
  std::unique_ptr<Timer> make_timer(std::string_view chip, TimingParameters values); \
  }
#include "vendors.inc"

namespace skillet::sim {
namespace {

struct Family {
  std::span<const TimingParameter> (*rows)();
  std::unique_ptr<Timer> (*make)(std::string_view chip, TimingParameters values);
};
const std::vector<Family>& families() {
  const auto& kFamilies = leaked([] {
    return std::vector<Family>{
#define SIMULATOR(vendor) {vendor::timing_rows, vendor::make_timer},
#include "vendors.inc"
    };
  });
  return kFamilies;
}

bool is_for(const TimingParameter& row, std::string_view chip, Jobs jobs) {
  return row.chip == chip && (row.jobs == "both" || row.jobs == kJobsNames[static_cast<size_t>(jobs)]);
}

// True if the chip has such rows, and its jobs are timed.
bool times(std::span<const TimingParameter> rows, std::string_view chip, Jobs jobs) {
  return std::ranges::any_of(
      rows, [&](const TimingParameter& row) { return row.name == "error_percent" && is_for(row, chip, jobs); });
}

constexpr std::string_view kRange = "range", kState = "state";
constexpr double kValueLeast = 1e-6, kValueMost = 1e6;

// Why a row cannot have this value: counts must be integers, divisors must not be 0. Empty: it can.
std::string_view why_not(const TimingParameter& row, double value) {
  constexpr std::array kCounts = {"channels", "kernels", "cycles", "taps",    "products",
                                  "B",        "32 KiB",  "cores",  "Cortex-A"};
  constexpr std::array kFromZero = {"us", "0 to 1", "0 or 1", "cycles/cycle", "B/B", "%"};
  const auto is_one_of = [&](const auto& units) { return std::ranges::find(units, row.unit) != units.end(); };
  if (!std::isfinite(value) || value < 0 || value > kValueMost) return "must be a number from 0 to 1000000";
  if (is_one_of(kCounts) && (value < 1 || value != std::floor(value))) return "must be a whole number, 1 or more";
  if (!is_one_of(kFromZero) && value < kValueLeast) return "must be more than 0";
  return "";
}

// " (rk3588 has)", or a similar name.
std::string who_has(std::string_view name, Jobs jobs) {
  std::vector<std::string> chips;
  std::vector<std::string_view> names;
  for (const Family& family : families()) {
    for (const TimingParameter& row : family.rows()) {
      names.push_back(row.name);
      if (row.name == name && is_for(row, row.chip, jobs)) chips.emplace_back(row.chip);
    }
  }
  return chips.empty() ? did_you_mean(name, names) : fmt::format(" (--chip {} has)", fmt::join(chips, ", "));
}

double value_of(std::span<const ParameterValue> values, std::string_view name) {
  const auto at = std::ranges::find(values, name, &ParameterValue::name);
  return at == values.end() ? 0 : at->value;
}

}  // namespace

Result<TimingParameters> TimingParameters::find(std::span<const TimingParameter> rows, std::string_view chip, Jobs jobs,
                                                std::span<const ParameterValue> overrides) {
  TimingParameters out;
  for (const TimingParameter& row : rows) {
    if (is_for(row, chip, jobs)) out.values_.push_back({std::string(row.name), row.value});
  }
  out.rows_ = out.values_;
  for (const ParameterValue& one : overrides) {
    const auto row = std::ranges::find_if(
        rows, [&](const TimingParameter& r) { return is_for(r, chip, jobs) && r.name == one.name; });
    if (row == rows.end())
      return skillet::error(ErrorCode::invalid_argument, "chip {} has no timing parameter '{}'{}", chip, one.name,
                            who_has(one.name, jobs));
    if (const std::string_view problem = why_not(*row, one.value); !problem.empty())
      return skillet::error(ErrorCode::invalid_argument, "timing parameter {} = {}: {}", one.name, one.value, problem);
    std::ranges::find(out.values_, one.name, &ParameterValue::name)->value = one.value;
  }
  return out;
}

std::string print(const Clock& clock) {
  const auto mhz = [](double ghz) { return fmt::format("{:.0f} MHz", ghz * 1e3); };
  if (clock.ghz == 0) return "";
  return fmt::format("at {}{}", mhz(clock.ghz),
                     clock.is_estimate() ? " (an estimate: published times are at " + mhz(clock.row_ghz) + ")" : "");
}

Result<ParameterValue> parse_parameter(std::string_view text) {
  const size_t at = text.find('=');
  const auto value = parse_number<double>(at == std::string_view::npos ? "" : text.substr(at + 1));
  if (!value) return skillet::error(ErrorCode::invalid_argument, "{}: must be NAME=NUMBER", text);
  return ParameterValue{std::string(text.substr(0, at)), *value};
}

double TimingParameters::get(std::string_view name) const { return value_of(values_, name); }

double TimingParameters::row(std::string_view name) const { return value_of(rows_, name); }

void Cost::set(std::span<const UnitTime> busy, double overlap, double least_us) {
  double sum = 0;
  for (size_t i = 0; i < busy.size() && i < units.size(); ++i) {
    units[i] = busy[i];
    sum += busy[i].us;
  }
  const double longest = busiest().us;
  us = std::max(least_us, longest + (1 - std::min(overlap, 1.0)) * (sum - longest));
}

const UnitTime& Cost::busiest() const { return *std::ranges::max_element(units, {}, &UnitTime::us); }

Totals total(std::span<const Cost> costs) {
  Totals sum;
  for (const Cost& cost : costs) {
    sum.us += cost.us;
    sum.cycles += cost.cycles;
    sum.read_bytes += cost.read_bytes;
    sum.written_bytes += cost.written_bytes;
  }
  return sum;
}

double Timer::wall_us(double device_us, size_t tasks, size_t jobs, size_t submissions) const {
  return device_us + (parameter("task_us") + parameter("interrupt_us")) * static_cast<double>(tasks) +
         parameter("iommu_us") * static_cast<double>(jobs) + parameter("submit_us") * static_cast<double>(submissions);
}

double Timer::way_bytes_per_us(double copy_gbps) const {
  const double layout_gbps = parameter("layout_gbps"), cache_gbps = parameter("cache_gbps");
  const double us_of_kilobyte = 1 / (layout_gbps > 0 ? layout_gbps : copy_gbps) + (cache_gbps > 0 ? 1 / cache_gbps : 0);
  return 1e3 / us_of_kilobyte;
}

std::vector<TimingState> timing_states(std::string_view chip) {
  std::vector<TimingState> out;
  for (const Family& family : families()) {
    for (const TimingParameter& row : family.rows()) {
      if (row.chip != chip || row.jobs != kState) continue;
      auto at = std::ranges::find(out, row.state, &TimingState::title);
      if (at == out.end()) at = out.insert(at, TimingState{.title = row.state, .values = {}});
      at->values.push_back({std::string(row.name), row.value});
    }
  }
  return out;
}

std::vector<ParameterValue> ends_of_ranges(std::string_view chip, bool fast, std::span<const ParameterValue> fixed) {
  std::vector<ParameterValue> out(fixed.begin(), fixed.end());
  for (const TimingParameter& row : timing_parameters()) {
    if (row.chip != chip || row.high == 0 || std::ranges::find(fixed, row.name, &ParameterValue::name) != fixed.end())
      continue;
    const bool is_time = row.unit == "us";  // lower is faster
    out.push_back({std::string(row.name), is_time == fast ? row.low : row.high});
  }
  return out;
}

Result<std::unique_ptr<Timer>> create_timer(std::string_view chip, Jobs jobs,
                                            std::span<const ParameterValue> overrides) {
  for (const Family& family : families()) {
    if (!times(family.rows(), chip, jobs)) continue;
    SK_TRY_ASSIGN(TimingParameters values, TimingParameters::find(family.rows(), chip, jobs, overrides));
    return family.make(chip, std::move(values));
  }
  return skillet::error(ErrorCode::unsupported,
                        "{} jobs of chip '{}' are not timed: there are no parameters for them (there are for {})",
                        kJobsNames[static_cast<size_t>(jobs)], chip, fmt::join(timed_chips(jobs), ", "));
}

std::vector<TimingParameter> timing_parameters() {
  std::vector<TimingParameter> all;
  for (const Family& family : families()) {
    for (const TimingParameter& row : family.rows()) {
      if (row.jobs == kState) continue;
      if (row.jobs != kRange) {
        all.push_back(row);
        continue;
      }
      for (TimingParameter& one : all)
        if (one.chip == row.chip && one.name == row.name && one.jobs != "vendor")
          one.low = row.low, one.high = row.high;
    }
  }
  return all;
}

std::vector<std::string_view> timed_chips(Jobs jobs) {
  std::vector<std::string_view> chips;
  for (const TimingParameter& row : timing_parameters()) {
    if (row.name == "error_percent" && is_for(row, row.chip, jobs)) chips.push_back(row.chip);
  }
  return chips;
}

}  // namespace skillet::sim
