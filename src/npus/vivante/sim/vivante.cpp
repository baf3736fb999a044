#include "npus/vivante/sim/vivante.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/environment.h"
#include "base/log.h"
#include "base/parse_number.h"
#include "npus/vivante/sim/front_end.h"
#include "npus/vivante/sim/nn.h"
#include "npus/vivante/sim/order.h"
#include "npus/vivante/sim/tp.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

class Chip final : public Device {
 public:
  Chip(const hw::ChipRow& row, const Options& options)
      : quirks_(options.quirks), nn_(row, options), tp_(options), order_(options.order, row.tp_cores) {}
  Chip(const Chip&) = delete;
  Chip& operator=(const Chip&) = delete;

  Result<void> run(const Job& job, const Memory& memory) override {
    SK_TRY_ASSIGN(const auto stream, words_of(job));
    order_.start_of_stream();
    nn_.start_of_stream();
    const auto start = [&](Unit unit, auto& runner) {
      return [this, unit, &runner, &memory](const StartedJob& started) -> Result<void> {
        order_.start(unit, started.event, started.name, started.word,
                     [this, &runner, &memory, address = started.address]() -> Result<Accesses> {
                       SK_TRY_ASSIGN(const Accesses done, runner.run(address, memory));
                       if (quirks_.any()) nn_.note_written(done.written);
                       return done;
                     });
        return {};
      };
    };
    const Units units{.run_nn = start(kNn, nn_),
                      .run_tp = start(kTp, tp_),
                      .wait = [&](uint32_t event) { return order_.wait(event); },
                      .set_flush_control = [&](bool nn, bool tp) { order_.set_flush_control(nn, tp); },
                      .set_small_batch = [&](bool on) { order_.set_small_batch(on); },
                      .flush_all = [&] { order_.flush_all(); },
                      .check_state = [&](uint32_t state) { return check_state(state); }};
    SK_TRY(run_stream(stream, units, kept_));
    return order_.end_of_stream();
  }
  void reset(uint32_t /*core*/) override { kept_.reset(); }

 private:
  Result<void> check_state(uint32_t state) const {
    using enum hw::State;
    const bool is_of_pixels =
        state == static_cast<uint32_t>(pa_system_mode) || state == static_cast<uint32_t>(api_mode);
    if (!is_of_pixels || !quirks_.has(QuirkName::no_pixel_engine)) return {};
    return error(ErrorCode::timeout, "{} stops the front end (a quirk of this chip)", hw::state_name(state));
  }

  const QuirkSet quirks_;
  NnUnit nn_;
  TpUnit tp_;
  Order order_;
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
constexpr std::array<std::string_view, 4> kWeightOrders = {"patch", "row_wise", "linear", "well_formed"};
constexpr std::array<std::string_view, 3> kCoefficients = {"v7", "v8", "v8_raw"};

// The value of an environment variable; empty: it is not set.
std::string_view setting(const char* variable) {
  const char* const text = environment_variable(variable);
  return text == nullptr ? "" : text;
}

template <size_t N>
Result<size_t> index_of(const char* variable, std::string_view text, const std::array<std::string_view, N>& names) {
  const auto* const found = std::ranges::find(names, text);
  if (found == names.end())
    return error(ErrorCode::malformed, "{}={}: must be one of {}", variable, text, fmt::join(names, ", "));
  return static_cast<size_t>(found - names.begin());
}

// Sets an enumerator by its name in the environment, if set.
template <typename T, size_t N>
Result<void> choose(const char* variable, const std::array<std::string_view, N>& names, T& value) {
  const std::string_view text = setting(variable);
  if (text.empty()) return {};
  SK_TRY_ASSIGN(const size_t index, index_of(variable, text, names));
  value = static_cast<T>(index);
  return {};
}

Result<void> choose_seed(const char* variable, uint64_t& seed) {
  const std::string_view text = setting(variable);
  if (text.empty()) return {};
  const auto parsed = parse_number<uint64_t>(text);
  if (!parsed) return error(ErrorCode::malformed, "{}={}: must be a number from 0 to 2^64 - 1", variable, text);
  seed = *parsed;
  return {};
}

// Names of rules, separated by commas.
Result<void> choose_rules(const char* variable, Leniency& leniency) {
  const std::string_view text = setting(variable);
  if (text.empty()) return {};
  for (size_t at = 0, comma = 0; comma != std::string_view::npos; at = comma + 1) {
    comma = text.find(',', at);
    SK_TRY_ASSIGN(const size_t index, index_of(variable, text.substr(at, comma - at), kRuleNames));
    leniency.warn_of(static_cast<Rule>(index));
  }
  return {};
}

}  // namespace

Result<Options> options_from_environment() {
  Options options;
  SK_TRY(choose("SKILLET_SIM_TIE_RULE", kTieRules, options.tie_rule));
  SK_TRY(choose("SKILLET_SIM_1X1_ORDER", kPointwiseOrders, options.order_1x1));
  SK_TRY(choose("SKILLET_SIM_5X5_ORDER", kWeightOrders, options.order_5x5_ic1));
  SK_TRY(choose("SKILLET_SIM_FC_ORDER", kWeightOrders, options.order_fully_connected));
  SK_TRY(choose("SKILLET_SIM_COEFFICIENTS", kCoefficients, options.enhanced_coefficients));
  SK_TRY(choose_seed("SKILLET_SIM_SEED", options.order.seed));
  SK_TRY(choose_rules("SKILLET_SIM_WARN", options.order.leniency));
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

Result<std::unique_ptr<Device>> simulator_of(std::string_view chip, std::span<const std::string_view> quirks) {
  if (hw::find_chip(chip) == nullptr)
    return create(chip, Options{});  // returns the error, whatever the environment contains
  SK_TRY_ASSIGN(Options options, options_from_environment());
  using enum QuirkName;
  options.quirks = QuirkSet(quirks);
  if (options.quirks.has(v8_coefficients)) options.enhanced_coefficients = CoefficientAssumption::v8;
  if (options.quirks.has(raw_v8_coefficients)) options.enhanced_coefficients = CoefficientAssumption::v8_raw;
  if (options.quirks.has(relu_reads_six)) options.order_1x1 = PointwiseOrder::six;
  return create(chip, options);
}

}  // namespace skillet::sim::vivante
