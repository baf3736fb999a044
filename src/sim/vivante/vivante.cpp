#include "sim/vivante/vivante.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/environment.h"
#include "base/log.h"
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

std::string chip_names() {
  std::string names;
  for (const hw::ChipRow& row : hw::chips()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names;
}

constexpr std::array<std::string_view, 4> kTieRules = {"half_up", "half_even", "half_away", "half_down"};
constexpr std::array<std::string_view, 4> kPointwiseOrders = {"well_formed", "by_relu_bit", "six", "dense"};
constexpr std::array<std::string_view, 3> kCoefficients = {"v7", "v8", "v8_raw"};

// An enumerator by its name in the environment, where that is set.
template <typename T, size_t N>
Result<void> choose(const char* variable, const std::array<std::string_view, N>& names, T& value) {
  const char* const text = environment_variable(variable);
  if (text == nullptr || *text == '\0') return {};
  const auto* const found = std::ranges::find(names, text);
  if (found == names.end())
    return error(ErrorCode::malformed, "{}={}: must be one of {}", variable, text, fmt::join(names, ", "));
  value = static_cast<T>(found - names.begin());
  return {};
}

}  // namespace

Result<Options> options_from_environment() {
  Options options;
  SK_TRY(choose("SKILLET_SIM_TIE_RULE", kTieRules, options.tie_rule));
  SK_TRY(choose("SKILLET_SIM_1X1_ORDER", kPointwiseOrders, options.order_1x1));
  SK_TRY(choose("SKILLET_SIM_COEFFICIENTS", kCoefficients, options.enhanced_coefficients));
  return options;
}

Result<std::unique_ptr<Device>> create(std::string_view chip, const Options& options) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr)
    return error(ErrorCode::invalid_argument, "no Vivante chip '{}': there are {}", chip, chip_names());
  if (!row->assumption.empty())
    log::info("simulated {}: {}; coefficients of enhanced V7 chips are read as {}", chip, row->assumption,
              kCoefficients[static_cast<size_t>(options.enhanced_coefficients)]);
  return std::unique_ptr<Device>(std::make_unique<Chip>(*row, options));
}

Result<std::unique_ptr<Device>> create(std::string_view chip) {
  if (hw::find_chip(chip) == nullptr) return create(chip, Options{});  // says so, whatever the environment does
  SK_TRY_ASSIGN(const Options options, options_from_environment());
  return create(chip, options);
}

}  // namespace skillet::sim::vivante
