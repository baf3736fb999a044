#include "runtime/costs.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/stop.h"
#include "runtime/cost_model.h"
#include "runtime/trusted_driver.h"
#include "runtime/verify.h"

namespace skillet::runtime {
namespace {

constexpr Benchmark kBenchmarks[] = {
    {"one_task", "1x4x4x16", "16x1x1x16", 1},      {"tasks", "1x4x4x16", "16x1x1x16", 32},
    {"one_product", "1x32x32x64", "64x5x5x64", 1}, {"products", "1x32x32x64", "64x5x5x64", 2},
    {"one_weight", "1x4x4x512", "512x1x1x512", 1}, {"weights", "1x4x4x512", "512x1x1x512", 3},
    {"large", "1x256x256x16", "16x1x1x16", 1},
};

constexpr std::string_view kOfHost = "layout_gbps";

// The parameter that explains the difference of two times. If `parameter` does not explain it, `otherwise` does. A
// program is one job and one submission: the costs of the two are not distinguished.
struct Question {
  std::string_view more, less;  // empty: nothing
  std::string_view parameter, otherwise;
};
constexpr Question kQuestions[] = {
    {"one_task", "", "submit_us", "iommu_us"},    {"tasks", "one_task", "task_us", "interrupt_us"},
    {"products", "one_product", "clock_ghz", ""}, {"weights", "one_weight", "dram_gbps", "bus_bytes"},
    {"large", "one_task", kOfHost, ""},
};

constexpr double kFarthest = 64;      // a parameter is searched within this factor of its expected value
constexpr double kNearEnd = 0.99;     // of that range: a value this near its end is not measured
constexpr double kModelError = 0.03;  // of any value, whatever the spread of times
constexpr double kRateStep = 0.2;
constexpr double kSeen = 0.05;        // doubling a parameter must change the difference by this share to be seen
constexpr double kUnexplained = 0.1;  // of a difference: with a larger error no value counts
constexpr double kFits = 0.005;       // of a difference: within it the expected value is kept
constexpr double kSettled = 1e-3;
constexpr int kRounds = 12;

using Values = std::vector<sim::ParameterValue>;

SessionOptions options_of(const npu::Driver& driver, const Trust& trust) {
  return {.compile = {.without = refuted_switches(driver, trust), .unproven = npu::Unproven::take},
          .allow_fallback = false,
          .partition = compile::PartitionBy::all,
          .cores = 1};
}

Result<compile::Compiled> compile_benchmark(const Target& target, const Trust& trust, const Benchmark& benchmark) {
  SK_TRY_ASSIGN(compile::Compiled out, compile_for(target, benchmark.graph(), options_of(*target.driver, trust)));
  for (const compile::OpPlace& place : out.ops)
    if (!place.on_npu) return error(ErrorCode::unsupported, "the chip does not take it: {}", place.reason);
  return out;
}

class Fit {
 public:
  Fit(const npu::Chip& chip, const std::map<std::string, MeasuredTime>& times, bool is_simulated)
      : chip_(chip), times_(times), is_simulated_(is_simulated) {}

  Result<void> add(const Target& target, const Trust& trust, const Benchmark& benchmark) {
    if (!times_.contains(std::string(benchmark.name))) return {};
    auto compiled = compile_benchmark(target, trust, benchmark);
    if (!compiled.ok()) return compiled.error().code == ErrorCode::unsupported ? Result<void>() : compiled.error();
    compiled_.emplace(benchmark.name, std::move(compiled).value());
    return {};
  }

  Result<std::vector<MeasuredCost>> run() {
    std::vector<MeasuredCost> out;
    Values before;
    for (int round = 0; round < kRounds && (round == 0 || moved(before)); ++round) {
      before = values_;
      for (const Question& one : kQuestions) {
        for (const std::string_view name : {one.parameter, one.otherwise}) SK_TRY(solve(one, name, 0));
      }
    }
    bool is_explained = true;  // an unexplained difference would be assigned to the parameters after it
    for (const Question& one : kQuestions) {
      bool is_told = false;
      for (const std::string_view name : {one.parameter, one.otherwise}) {
        const sim::TimingParameter* const row = row_of(name);
        if (row == nullptr || !is_timed(one) || (is_told && is_expected(*row))) continue;
        SK_TRY_ASSIGN(const double there, difference(one, name, now(*row)));
        const auto [us, spread_us] = measured(one);
        is_explained &= std::abs(us - there) <= std::max(kUnexplained * std::abs(us), 2 * spread_us);
        SK_TRY_ASSIGN(out.emplace_back(), cost_of(one, *row));
        if (!is_explained) out.back().value.reset();
        is_told |= out.back().value.has_value();
      }
    }
    return out;
  }

 private:
  const sim::TimingParameter* row_of(std::string_view name) const {
    const auto at = std::ranges::find_if(rows_, [&](const sim::TimingParameter& row) {
      return row.chip == chip_.name && row.name == name && row.jobs != "vendor" && row.value > 0;
    });
    return at == rows_.end() ? nullptr : &*at;
  }
  bool moved(const Values& before) const {
    if (before.size() != values_.size()) return true;
    for (size_t i = 0; i < before.size(); ++i)
      if (std::abs(before[i].value - values_[i].value) > kSettled * before[i].value) return true;
    return false;
  }
  bool is_expected(const sim::TimingParameter& row) const {
    return std::abs(now(row) - row.value) <= kModelError * row.value;
  }
  bool is_timed(const Question& one) const {
    if (is_simulated_ && one.parameter == kOfHost) return false;
    return compiled_.contains(one.more) && (one.less.empty() || compiled_.contains(one.less));
  }

  Result<double> predicted(std::string_view name, const Values& values) const {
    if (name.empty()) return 0.0;
    SK_TRY_ASSIGN(const compile::CostModel cost_model, timing_cost_model(chip_, 1, values));
    double us = 0;
    for (const compile::Part& part : compiled_.find(name)->second.parts) {
      if (!part.program) continue;
      SK_TRY_ASSIGN(const compile::Times one, compile::times_on_npu(part.partition.graph, *part.program, cost_model));
      us += is_simulated_ ? one.us() - one.transfer_us : one.us();
    }
    return us;
  }
  Result<double> difference(const Question& one, std::string_view name, double value) const {
    Values values = values_;
    set(values, name, value);
    SK_TRY_ASSIGN(const double more, predicted(one.more, values));
    SK_TRY_ASSIGN(const double less, predicted(one.less, values));
    return more - less;
  }
  MeasuredTime measured(const Question& one) const {
    MeasuredTime out = times_.find(std::string(one.more))->second;
    if (one.less.empty()) return out;
    const MeasuredTime& less = times_.find(std::string(one.less))->second;
    return {out.us - less.us, out.spread_us + less.spread_us};
  }
  static void set(Values& values, std::string_view name, double value) {
    const auto at = std::ranges::find(values, name, &sim::ParameterValue::name);
    if (at == values.end())
      values.push_back({std::string(name), value});
    else
      at->value = value;
  }
  double now(const sim::TimingParameter& row) const {
    const auto at = std::ranges::find(values_, row.name, &sim::ParameterValue::name);
    return at == values_.end() ? row.value : at->value;
  }

  // The value nearest to the expected one that explains the measured difference plus `add_us` as well as any other: the
  // model is monotone in each parameter.
  Result<double> value_for(const Question& one, const sim::TimingParameter& row, double add_us) const {
    const double wanted = measured(one).us + add_us, least = row.unit == "us" ? 0 : row.value / kFarthest;
    double from = row.value;
    SK_TRY_ASSIGN(const double here, difference(one, row.name, from));
    if (std::abs(wanted - here) <= kFits * std::abs(wanted)) return from;
    SK_TRY_ASSIGN(const double low, difference(one, row.name, least));
    const bool is_down = (wanted - here) * (low - here) > 0;
    double to = is_down ? least : row.value * kFarthest;
    SK_TRY_ASSIGN(const double end, difference(one, row.name, to));
    if ((wanted - here) * (end - here) <= 0) return from;  // the parameter has no effect, or the opposite one
    for (int i = 0; i < 24; ++i) {
      const double middle = (from + to) / 2;
      SK_TRY_ASSIGN(const double there, difference(one, row.name, middle));
      const bool is_short = (wanted > here) == (there < wanted);
      (is_short ? from : to) = middle;
    }
    return to < row.value / kFarthest / 2 ? 0 : (from + to) / 2;
  }
  Result<void> solve(const Question& one, std::string_view name, double add_us) {
    const sim::TimingParameter* const row = row_of(name);
    if (row == nullptr || !is_timed(one)) return {};
    SK_TRY_ASSIGN(const double value, value_for(one, *row, add_us));
    set(values_, name, value);
    return {};
  }

  Result<MeasuredCost> cost_of(const Question& one, const sim::TimingParameter& row) const {
    MeasuredCost out{.name = std::string(row.name), .expected = row.value, .value = {}, .unit = std::string(row.unit)};
    const double value = now(row), spread = measured(one).spread_us;
    SK_TRY_ASSIGN(const double here, difference(one, row.name, value));
    // A time adds to a sum; a rate may be hidden by another, slower one.
    const bool is_time = row.unit == "us";
    const double step = is_time ? std::max(value, row.value) : value * kRateStep;
    SK_TRY_ASSIGN(const double more_of_it, difference(one, row.name, value + step));
    SK_TRY_ASSIGN(const double less_of_it, difference(one, row.name, is_time ? value : value - step));
    const auto moves = [&](double there) { return std::abs(there - here) > kSeen * std::abs(here); };
    const bool is_seen = moves(more_of_it) && (is_time || moves(less_of_it));
    if (!is_seen) return out;
    SK_TRY_ASSIGN(const double more, value_for(one, row, spread));
    SK_TRY_ASSIGN(const double less, value_for(one, row, -spread));
    out.error = std::max(kModelError * value, std::abs(more - less) / 2);
    const bool is_at_end =
        value > kNearEnd * kFarthest * row.value || (!is_time && value * kNearEnd < row.value / kFarthest);
    if (!is_at_end && out.error <= std::max(value, row.value)) out.value = value;
    return out;
  }

  const npu::Chip& chip_;
  const std::map<std::string, MeasuredTime>& times_;
  bool is_simulated_;
  const std::vector<sim::TimingParameter> rows_ = sim::timing_parameters();
  std::map<std::string_view, compile::Compiled> compiled_;
  Values values_;
};

}  // namespace

std::span<const Benchmark> benchmarks() { return kBenchmarks; }

ir::Graph Benchmark::graph() const {
  std::string text = fmt::format("graph \"{}\"\ntensor 0 \"in\" uint8 {} scale=0.05 zero=128\n", name, shape), ops;
  for (int i = 0; i < count; ++i) {
    text += fmt::format(
        "tensor {} \"filter {}\" uint8 {} scale=0.002 zero=128 const=random:{}\n"
        "tensor {} \"bias {}\" int32 {} scale=0.0001 zero=0 const=random:{}\n"
        "tensor {} \"out {}\" uint8 {} scale=0.05 zero=128\n",
        3 * i + 1, i, filter, i + 1, 3 * i + 2, i, filter.substr(0, filter.find('x')), i + 1, 3 * i + 3, i, shape);
    ops +=
        fmt::format("op {} CONV_2D in=[{} {} {}] out=[{}] padding=same\n", i, 3 * i, 3 * i + 1, 3 * i + 2, 3 * i + 3);
  }
  text += fmt::format("inputs 0\noutputs {}\n{}", 3 * count, ops);
  return ir::parse(text).value();
}

Result<MeasuredTime> time_benchmark(const Target& target, const Trust& trust, const Benchmark& benchmark) {
  constexpr int kWarmUp = 1, kRunsMost = 30;
  constexpr size_t kSame = 2;  // this many equal times: a computed clock
  SK_TRY_ASSIGN(compile::Compiled compiled, compile_benchmark(target, trust, benchmark));
  SK_TRY_ASSIGN(const auto session, Session::create(std::move(compiled), target, options_of(*target.driver, trust)));
  const std::vector<Bytes> inputs = trial_inputs(session->graph(), 0);
  std::vector<std::span<const uint8_t>> in(inputs.begin(), inputs.end());
  const ir::Graph& graph = session->graph();
  std::vector<Bytes> outputs;
  for (const ir::TensorId id : graph.outputs) outputs.emplace_back(static_cast<size_t>(graph.tensor(id).bytes()));
  const std::vector<std::span<uint8_t>> out(outputs.begin(), outputs.end());
  std::vector<double> us;
  for (int i = 0; i < kWarmUp + kRunsMost; ++i) {
    SK_TRY(check_stop());
    const auto before = target.calls->clock();
    SK_TRY(session->run_on(in, out));
    const std::chrono::duration<double, std::micro> took = target.calls->clock() - before;
    if (i >= kWarmUp) us.push_back(took.count());
    if (us.size() == kSame && std::ranges::count(us, us[0]) == kSame) break;
  }
  std::ranges::sort(us);
  return MeasuredTime{us[us.size() / 2], (us[us.size() * 3 / 4] - us[us.size() / 4]) / 2};
}

Result<std::vector<MeasuredCost>> explain_times(const npu::Chip& chip, const Trust& trust,
                                                const std::map<std::string, MeasuredTime>& times, bool is_simulated) {
  if (!timing_costs(chip).ok()) return std::vector<MeasuredCost>();
  SK_TRY_ASSIGN(const npu::Driver* const driver, npu::driver_of(chip));
  Fit fit(chip, times, is_simulated);
  const Target target{.name = chip.name, .chip = chip, .driver = driver, .context = nullptr};
  for (const Benchmark& one : kBenchmarks) SK_TRY(fit.add(target, trust, one).with_context(one.name));
  return fit.run();
}

npu::Measured by_name(std::span<const sim::ParameterValue> values) {
  npu::Measured out;
  for (const sim::ParameterValue& one : values) out[one.name] = one.value;
  return out;
}

std::vector<sim::ParameterValue> measured_parameters(const npu::Chip& chip, const Trust* trust) {
  if (trust == nullptr) return {};
  std::vector<sim::ParameterValue> values = trust->costs();
  std::erase_if(values, [&](const sim::ParameterValue& one) {
    const auto timer = sim::create_timer(chip.name, sim::Jobs::open, {&one, 1});
    if (!timer.ok())
      trust->warn_once(fmt::format("{}: its measured cost is ignored: {} (skillet trust --forget {})", chip.name,
                                   timer.error().message, one.name));
    return !timer.ok();
  });
  return values;
}

}  // namespace skillet::runtime
