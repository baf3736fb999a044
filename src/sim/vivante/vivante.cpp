#include "sim/vivante/vivante.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "sim/vivante/front_end.h"
#include "sim/vivante/nn.h"
#include "sim/vivante/tp.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

class Chip final : public Device {
 public:
  Chip(const hw::ChipRow& row, const Options& options) : nn_(row, options), tp_(row, options) {}
  Chip(const Chip&) = delete;
  Chip& operator=(const Chip&) = delete;

  Result<void> run(const Job& job, const Memory& memory) override {
    SK_TRY_ASSIGN(const auto stream, words_of(job));
    tp_.start_of_stream();
    visibility_.start_of_stream();
    const Units units{.run_nn = [&](uint64_t address) { return nn_.run(address, memory, visibility_); },
                      .run_tp = [&](uint64_t address) { return tp_.run(address, memory, visibility_); },
                      .set_flush_control = [&](bool nn, bool tp) { visibility_.set_control(nn, tp); },
                      .flush_all = [&] { visibility_.flush_all(); }};
    SK_TRY(run_stream(stream, units, kept_));
    SK_TRY(tp_.end_of_stream());
    return visibility_.end_of_stream();
  }
  void reset(uint32_t /*core*/) override { kept_.reset(); }

 private:
  NnUnit nn_;
  TpUnit tp_;
  Visibility visibility_;
  KeptStates kept_;
};

// Why a chip of the family cannot be simulated; empty: it can.
std::string_view missing(const hw::ChipRow& row) {
  if (row.generation == 7 && row.has(hw::kCoefficientEnhancement)) return "its coefficient format is not known";
  return {};
}

std::string chip_names() {
  std::string names;
  for (const hw::ChipRow& row : hw::chips()) {
    if (missing(row).empty()) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names;
}

// Empty: not set.
std::string_view from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

constexpr std::array<std::string_view, 4> kPointwiseOrders = {"well_formed", "by_relu_bit", "six", "dense"};

}  // namespace

Result<Options> options_from_environment() {
  Options options;
  if (const std::string_view name = from_environment("SKILLET_SIM_TIE_RULE"); !name.empty()) {
    const std::optional<TieRule> rule = tie_rule_from_name(name);
    if (!rule)
      return error(ErrorCode::invalid_argument,
                   "SKILLET_SIM_TIE_RULE={}: must be half_up, half_even, half_away or half_down", name);
    options.tie_rule = *rule;
  }
  if (const std::string_view name = from_environment("SKILLET_SIM_1X1_ORDER"); !name.empty()) {
    const auto* const order = std::ranges::find(kPointwiseOrders, name);
    if (order == kPointwiseOrders.end())
      return error(ErrorCode::invalid_argument, "SKILLET_SIM_1X1_ORDER={}: must be {}", name,
                   fmt::join(kPointwiseOrders, ", "));
    options.order_1x1 = static_cast<PointwiseOrder>(order - kPointwiseOrders.begin());
  }
  return options;
}

Result<std::unique_ptr<Device>> create(std::string_view chip, const Options& options) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr)
    return error(ErrorCode::invalid_argument, "no Vivante chip '{}': there are {}", chip, chip_names());
  if (const std::string_view reason = missing(*row); !reason.empty())
    return error(ErrorCode::unsupported, "chip {} ({}) cannot be simulated: {}", chip, row->title, reason);
  return std::unique_ptr<Device>(std::make_unique<Chip>(*row, options));
}

Result<std::unique_ptr<Device>> create(std::string_view chip) {
  SK_TRY_ASSIGN(const Options options, options_from_environment());
  return create(chip, options);
}

}  // namespace skillet::sim::vivante
