// skillet_golden CHIP: compares our jobs with recorded jobs (or, --simulate, recorded jobs on our simulator with
// TensorFlow Lite), and each case with its expected outcome. Exit code: 0 as expected, 1 not, 2 other errors.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/testing/in_tree.h"
#include "captures.h"
#include "compile_compare.h"
#include "expectations.h"
#include "npu/driver.h"
#include "replay_row.h"
#include "tools/cli/command_line.h"
#include "vendor_case.h"
#ifdef SKILLET_GOLDEN_VIVANTE
#include "sim_replay.h"
#endif
#ifdef SKILLET_GOLDEN_ROCKCHIP
#include "replay.h"
#include "vendor_capture.h"
#include "vendor_run.h"
#endif

namespace skillet::golden {
namespace {

struct Options {
  std::string chip, dir = skillet::in_tree("../shared/golden"), expect, captures, tuning = "recorded";
  std::vector<std::string> cases;
  bool simulate = false, update = false, json = false, optional = false, switches = false;

  std::string usual() const { return simulate ? "exact" : "identical"; }
  bool has_expectations() const { return tuning == "recorded" || !expect.empty(); }
  std::string expectations() const {
    if (!expect.empty()) return expect;
    if (tuning != "recorded") return "";
    return skillet::in_tree(fmt::format("tests/expectations/{}-{}.txt", simulate ? "simulate" : "golden", chip));
  }
};

struct Row {
  Outcome outcome;
  int64_t elements = 0, differing = 0;
  double milliseconds = 0;
  std::set<std::string> rests_on;
  InputCounts inputs;
};

// Distinguishes two results of one class. For exact results the outcome suffices.
std::string summary_of(const ReplayRow& replay) {
  if (replay.result == ReplayClass::exact) return {};
  if (replay.result == ReplayClass::fault) return hash_text(XXH64(replay.reason.data(), replay.reason.size(), 0));
  if (replay.output_hash == 0) return {};
  if (replay.result == ReplayClass::not_comparable) return hash_text(replay.output_hash);
  return fmt::format("{} of {}, most {}, {}", replay.differing, replay.elements, replay.max_difference,
                     hash_text(replay.output_hash));
}

Row row_of(const ReplayRow& replay) {
  Row row{{replay.name, std::string(replay_class_name(replay.result)), {}, summary_of(replay)},
          replay.elements,
          replay.differing,
          replay.simulated_ms,
          replay.rests_on};
  if (!replay.reason.empty()) row.outcome.details.push_back(replay.reason);
  if (replay.differing > 0)
    row.outcome.details.push_back(fmt::format("{} of {} elements differ, at most by {}", replay.differing,
                                              replay.elements, replay.max_difference));
  return row;
}

// Returns the function that runs recorded jobs of a family; null: none.
SimulateCase simulator_of(const npu::Chip& chip) {
  constexpr std::pair<std::string_view, SimulateCase> kFamilies[] = {
#ifdef SKILLET_GOLDEN_VIVANTE
      {"vivante", simulate_case},
#endif
#ifdef SKILLET_GOLDEN_ROCKCHIP
      {"rockchip", rockchip_replay::simulate_case},
#endif
      {"", nullptr},
  };
  const auto* const found =
      std::ranges::find(kFamilies, std::string_view(chip.family), [](const auto& one) { return one.first; });
  return found == std::end(kFamilies) ? nullptr : found->second;
}

Row compared(const Options& options, const npu::Chip& chip, const std::string& name) {
  Row row;
  if (is_vendor_case(options.dir, chip.name, name)) {
    row.outcome = compare_vendor_case(options.dir, chip, name);
    return row;
  }
  row.outcome = compare_case(options.dir, chip, name, {.tuning = *npu::tuning_from_name(options.tuning)}, &row.inputs);
  return row;
}

std::vector<Row> run_case(const Options& options, const npu::Chip& chip, const std::string& name) {
  if (!options.simulate) return {compared(options, chip, name)};
  std::vector<Row> rows;
#ifdef SKILLET_GOLDEN_ROCKCHIP
  if (is_vendor_case(options.dir, chip.name, name)) {
    for (const ReplayRow& replay : run_vendor_case(options.dir, chip, name)) rows.push_back(row_of(replay));
    return rows;
  }
#endif
  for (const ReplayRow& replay : simulator_of(chip)(options.dir, chip.name, name)) rows.push_back(row_of(replay));
  return rows;
}

struct Summary {
  std::map<std::string, int> counts;
  int64_t elements = 0, differing = 0;
  double milliseconds = 0;
};
std::map<std::string, Summary> summarise(const std::vector<Row>& rows) {
  std::map<std::string, Summary> sets;
  for (const Row& row : rows) {
    for (const std::string& set : {row.outcome.name.substr(0, row.outcome.name.find('/')), std::string("~all")}) {
      Summary& summary = sets[set];
      ++summary.counts[row.outcome.outcome];
      summary.elements += row.elements;
      summary.differing += row.differing;
      summary.milliseconds += row.milliseconds;
    }
  }
  return sets;
}

// Groups cases by the simulator's assumption that their result depends on.
std::map<std::string, std::vector<std::string>> by_assumption(const std::vector<Row>& rows) {
  std::map<std::string, std::vector<std::string>> cases;
  for (const Row& row : rows) {
    for (const std::string& assumption : row.rests_on) cases[assumption].push_back(row.outcome.name);
  }
  return cases;
}

void print_assumptions(const std::vector<Row>& rows) {
  constexpr size_t kNames = 30;
  for (const auto& [assumption, names] : by_assumption(rows)) {
    const std::span<const std::string> some(names.data(), std::min(kNames, names.size()));
    fmt::print("{} cases rest on {}: {}{}\n", names.size(), assumption, fmt::join(some, " "),
               names.size() > kNames ? " ..." : "");
  }
}

void print_inputs(const std::vector<Row>& rows) {
  InputCounts all;
  for (const Row& row : rows) {
    for (int InputCounts::*count :
         {&InputCounts::by_bytes, &InputCounts::by_hash, &InputCounts::by_host_bytes, &InputCounts::not_written,
          &InputCounts::not_kept, &InputCounts::made_by_cpu, &InputCounts::not_found})
      all.*count += row.inputs.*count;
  }
  fmt::print(
      "graph inputs: {} compared as the host writes them ({} by bytes, {} by hash, {} as the host has them); not "
      "compared: "
      "{} that the recorded host left zero, {} not kept, {} not found; {} inputs of parts come from CPU operations\n",
      all.judged(), all.by_bytes, all.by_hash, all.by_host_bytes, all.not_written, all.not_kept, all.not_found,
      all.made_by_cpu);
}

void print_text(const Options& options, const std::vector<Row>& rows, const Expectations& expectations) {
  constexpr size_t kDetails = 12;
  for (const Row& row : rows) {
    const Outcome& o = row.outcome;
    const bool surprising = options.has_expectations() && !expectations.holds(o);
    if (!surprising && options.cases.empty()) continue;
    fmt::print("{}: {}{}{}\n", o.name, o.outcome, o.summary.empty() ? "" : " [" + o.summary + "]",
               surprising ? ", expected another " + expectations.expected(o.name) : "");
    for (size_t i = 0; i < std::min(kDetails, o.details.size()); ++i) fmt::print("    {}\n", o.details[i]);
    if (o.details.size() > kDetails) fmt::print("    ... and {} more\n", o.details.size() - kDetails);
  }
  const auto sets = summarise(rows);
  const auto& all = sets.at("~all").counts;
  fmt::print("{:8}", "set");
  for (const auto& [outcome, count] : all) fmt::print(" {:>14}", outcome);
  fmt::print("{}\n", options.simulate ? "       elements      differing         ms" : "");
  for (const auto& [set, summary] : sets) {
    fmt::print("{:8}", set == "~all" ? "all" : set);
    for (const auto& [outcome, count] : all)
      fmt::print(" {:>14}", summary.counts.contains(outcome) ? summary.counts.at(outcome) : 0);
    if (options.simulate)
      fmt::print(" {:>14} {:>14} {:>10.0f}", summary.elements, summary.differing, summary.milliseconds);
    fmt::print("\n");
  }
  print_assumptions(rows);
  if (!options.simulate) print_inputs(rows);
}

constexpr int kJsonVersion = 1;  // of the forms in docs/json/developers/golden.json

nlohmann::json to_json(const InputCounts& inputs) {
  return {{"by_bytes", inputs.by_bytes},       {"by_hash", inputs.by_hash},   {"by_host_bytes", inputs.by_host_bytes},
          {"not_written", inputs.not_written}, {"not_kept", inputs.not_kept}, {"made_by_cpu", inputs.made_by_cpu},
          {"not_found", inputs.not_found}};
}

nlohmann::json to_json(const Options& options, const std::vector<Row>& rows, const Expectations& expectations) {
  nlohmann::json json{{"version", kJsonVersion},
                      {"chip", options.chip},
                      {"dir", options.dir},
                      {"tuning", options.tuning},
                      {"cases", nlohmann::json::array()}};
  for (const auto& [set, summary] : summarise(rows)) {
    nlohmann::json& place = set == "~all" ? json["all"] : json["sets"][set];
    place["counts"] = summary.counts;
    if (options.simulate) place.update({{"elements", summary.elements}, {"differing", summary.differing}});
  }
  for (const Row& row : rows)
    json["cases"].push_back({{"name", row.outcome.name},
                             {"outcome", row.outcome.outcome},
                             {"summary", row.outcome.summary},
                             {"expected", expectations.expected(row.outcome.name)},
                             {"details", row.outcome.details},
                             {"rests_on", row.rests_on},
                             {"inputs", to_json(row.inputs)}});
  for (const auto& [assumption, names] : by_assumption(rows)) json["rest_on"][assumption] = names.size();
  return json;
}

Result<int> judge(const Options& options, const std::vector<Row>& rows) {
  SK_TRY_ASSIGN(const Expectations expectations, Expectations::read(options.expectations(), options.usual()));
  if (options.json)
    fmt::print("{}\n", to_json(options, rows, expectations).dump(1));
  else
    print_text(options, rows, expectations);
  if (!options.has_expectations()) return 0;
  std::vector<Outcome> outcomes;
  for (const Row& row : rows) outcomes.push_back(row.outcome);
  const auto wrong = expectations.check(outcomes);
  if (!options.update) {
    fmt::print(stderr, "{}{} of {} cases as expected\n", wrong.empty() ? "all " : "", rows.size() - wrong.size(),
               rows.size());
    return wrong.empty() ? 0 : 1;
  }
  const std::string text = expectations.updated(outcomes);
  SK_TRY(write_file(options.expectations(), std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size())));
  fmt::print(stderr, "{}: {} lines changed\n", options.expectations(), wrong.size());
  return 0;
}

// Lists each switch, the first tuning that has it, and the number of cases whose jobs it changes alone.
Result<int> print_switches(const Options& options, const npu::Chip& chip, const std::vector<std::string>& names) {
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  nlohmann::json rows = nlohmann::json::array();
  for (const npu::TuningSwitch& row : driver->switches()) {
    int changed = 0;
    for (const std::string& name : names) {
      SK_TRY_ASSIGN(const bool changes, switch_changes_jobs(options.dir, chip, name, row.name));
      changed += changes;
    }
    const std::string_view since = row.since ? tuning_name(*row.since) : "none";
    rows.push_back({{"name", row.name},
                    {"since", since},
                    {"changes_results", row.changes_results},
                    {"reason", row.reason},
                    {"cases", changed}});
    if (!options.json)
      fmt::print("{:20} {:7} {:4} of {} cases{}\n    {}\n", row.name, since, changed, names.size(),
                 row.changes_results ? ", may change results" : "", row.reason);
  }
  if (options.json)
    fmt::print(
        "{}\n",
        nlohmann::json{{"version", kJsonVersion}, {"chip", options.chip}, {"cases", names.size()}, {"switches", rows}}
            .dump(1));
  return 0;
}

// Writes programs of a vendor's compiler as captures for `skillet decode` and `skillet replay`.
Result<int> write_captures([[maybe_unused]] const Options& options, const std::vector<std::string>& names) {
  int written = 0;
  for (const std::string& name : names) {
    if (!is_vendor_case(options.dir, options.chip, name))
      return error(ErrorCode::unsupported, "{}: --captures is for programs of the RK3576's vendor compiler", name);
#ifdef SKILLET_GOLDEN_ROCKCHIP
    SK_TRY(write_vendor_capture(options.dir, options.chip, name, options.captures));
    ++written;
#endif
  }
  fmt::print("{} captures in {}\n", written, options.captures);
  return 0;
}

Result<int> run(const Options& options) {
  SK_TRY_ASSIGN(const npu::Chip chip, npu::find_chip(options.chip));
  if (options.optional && !std::filesystem::exists(options.dir + "/" + options.chip)) {
    fmt::print("no captures of {} in {}: nothing compared\n", options.chip, options.dir);
    return 0;
  }
  SK_TRY_ASSIGN(const std::vector<std::string> names, list_captures(options.dir, options.chip));
  if (options.simulate && simulator_of(chip) == nullptr)
    return error(ErrorCode::unsupported, "nothing here runs recorded jobs of the {} family", chip.family);
  if (options.switches) return print_switches(options, chip, options.cases.empty() ? names : options.cases);
  if (!options.captures.empty()) return write_captures(options, options.cases.empty() ? names : options.cases);
  std::vector<Row> rows;
  for (const std::string& name : options.cases.empty() ? names : options.cases) {
    if (!std::binary_search(names.begin(), names.end(), name))
      return error(ErrorCode::invalid_argument, "{}/{}: no case {}", options.dir, options.chip, name);
    std::ranges::move(run_case(options, chip, name), std::back_inserter(rows));
  }
  return judge(options, rows);
}

}  // namespace
}  // namespace skillet::golden

int main(int argc, char** argv) {
  skillet::golden::Options options;
  skillet::tools::CommandLine app("Recorded jobs of a driver that works on silicon, against ours", "golden");
  app.option("CHIP", options.chip, "whose jobs, for example a311d").required();
  app.option("--dir", options.dir, "folder with CHIP/SET/CASE, models/ and cases/");
  app.option("--case", options.cases, "only this SET/CASE, with all details; may be given many times");
  app.option("--expect", options.expect, "expected outcomes (default: tests/expectations/{golden,simulate}-CHIP.txt)");
  app.flag("--simulate", options.simulate, "run the recorded jobs on the simulator");
  app.option("--tuning", options.tuning, "compile with this one (default: recorded; others have no expectations)")
      .check(skillet::tools::one_of(skillet::npu::kTuningNames));
  app.flag("--switches", options.switches, "print what tells the tunings apart, and how many cases each changes");
  app.option("--captures", options.captures, "write the programs here, as captures that skillet replay runs (rk3576)");
  app.flag("--update", options.update, "write the outcomes of this run to the file of expected ones");
  app.flag("--json", options.json, "machine-readable output");
  app.flag("--optional", options.optional, "a missing folder is one line, not a failure");
  const auto said = app.parse(argc, argv);
  if (!said.ok()) {
    fmt::print(stderr, "golden: {} (see golden --help)\n", said.error().message);
    return 2;
  }
  if (!said->empty()) {
    fmt::print("{}", *said);
    return 0;
  }
  const auto done = skillet::golden::run(options);
  if (done.ok()) return *done;
  fmt::print(stderr, "golden: {}\n", done.error().message);
  return 2;
}
