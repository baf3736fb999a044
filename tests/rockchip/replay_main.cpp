// skillet_rockchip_replay [--dir DIR] [--case SET/CASE] [--operations] [--plain] [--expect FILE] [--update FILE]
//   [--optional]: recorded jobs on the simulator, results against TensorFlow Lite's. Exit code 1 when an outcome is not
//   the one that FILE (or,
// for cases that it does not name, "exact or within_1") says; --update writes such a FILE. --optional: a missing DIR is
// one line, not an error.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "replay.h"

namespace {

using skillet::rockchip_replay::CaseRows;
using skillet::rockchip_replay::Outcome;
using skillet::rockchip_replay::outcome_name;
using skillet::rockchip_replay::Row;

struct Arguments {
  std::string dir = "../shared/golden", only, expect, update;
  bool operations = false, plain = false, optional = false;
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--dir" && i + 1 < argc) a.dir = argv[++i];
    if (word == "--case" && i + 1 < argc) a.only = argv[++i];
    if (word == "--expect" && i + 1 < argc) a.expect = argv[++i];
    if (word == "--update" && i + 1 < argc) a.update = argv[++i];
    if (word == "--operations") a.operations = true;
    if (word == "--plain") a.plain = true;
    if (word == "--optional") a.optional = true;
  }
  return a;
}

// "set/case outcome reason" per line; # starts a comment.
std::map<std::string, std::string> read_expectations(const std::string& path) {
  std::map<std::string, std::string> expected;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, outcome;
    if (words >> name >> outcome) expected[name] = outcome;
  }
  return expected;
}

struct Summary {
  std::map<Outcome, int> counts;
  int64_t elements = 0, differing = 0;
  double milliseconds = 0;
};

void print_row(const Row& row) {
  fmt::print("{}: {}", row.name, outcome_name(row.outcome));
  if (row.differing > 0)
    fmt::print(", {} of {} elements differ, at most by {}", row.differing, row.elements, row.max_difference);
  fmt::print("{}{}\n", row.reason.empty() ? "" : ": ", row.reason);
}

bool is_good(const Row& row) { return row.outcome == Outcome::exact || row.outcome == Outcome::within_1; }

void print_summary(const char* what, const std::vector<Row>& rows) {
  std::map<std::string, Summary> sets;
  for (const Row& row : rows) {
    for (Summary* s : {&sets[row.name.substr(0, row.name.find('/'))], &sets["~all"]}) {
      ++s->counts[row.outcome];
      s->elements += row.elements;
      s->differing += row.differing;
      s->milliseconds += row.simulated_ms;
    }
  }
  fmt::print("{:11} {:>6} {:>9} {:>6} {:>15} {:>6} {:>10} {:>10} {:>8}\n", what, "exact", "within 1", "worse",
             "not comparable", "fault", "elements", "differing", "ms");
  for (auto& [name, s] : sets)
    fmt::print("{:11} {:>6} {:>9} {:>6} {:>15} {:>6} {:>10} {:>10} {:>8.0f}\n", name == "~all" ? "all" : name,
               s.counts[Outcome::exact], s.counts[Outcome::within_1], s.counts[Outcome::worse],
               s.counts[Outcome::not_comparable], s.counts[Outcome::fault], s.elements, s.differing, s.milliseconds);
}

void write_expectations(const std::vector<Row>& rows, const std::string& path) {
  std::ofstream file(path);
  file << "# Cases of the RK3588 captures whose recorded jobs, run on the simulator, are not within 1 of TensorFlow "
          "Lite,\n"
          "# each with what the recorded driver is known to get wrong there: set/case  outcome  reason.\n"
          "# Written by skillet_rockchip_replay --update; a test checks that no operation differs without such a "
          "reason.\n";
  for (const Row& row : rows) {
    if (!is_good(row)) file << fmt::format("{:<36} {:<6} {}\n", row.name, outcome_name(row.outcome), row.reason);
  }
}

int count_unexpected(const std::vector<Row>& rows, const Arguments& a) {
  const auto expected = read_expectations(a.expect);
  int unexpected = 0;
  for (const Row& row : rows) {
    const auto found = expected.find(row.name);
    const bool as_expected = found != expected.end() ? found->second == outcome_name(row.outcome) : is_good(row);
    if (as_expected) continue;
    ++unexpected;
    fmt::print("unexpected: {} is {}, {} says {}\n", row.name, outcome_name(row.outcome),
               a.expect.empty() ? "the rule" : a.expect, found != expected.end() ? found->second : "exact or within_1");
  }
  return unexpected;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments a = parse_arguments(argc, argv);
  if (a.optional && !std::filesystem::is_directory(a.dir + "/rk3588")) {
    fmt::print("no recorded jobs in {}: not run\n", a.dir);
    return 0;
  }
  const skillet::sim::rockchip::Options options{.reference_only = a.plain};
  auto cases = a.only.empty() ? skillet::rockchip_replay::replay_all(a.dir, options)
                              : std::vector{skillet::rockchip_replay::replay_case(a.dir, a.only, options)};
  if (!cases.ok()) {
    fmt::print(stderr, "skillet: {}\n", cases.error().message);
    return 1;
  }
  std::vector<Row> finals, operations;
  for (const CaseRows& c : *cases) {
    finals.push_back(c.final);
    operations.insert(operations.end(), c.each.begin(), c.each.end());
  }
  for (const Row& row : a.operations ? operations : finals) {
    if (!is_good(row) || !a.only.empty()) print_row(row);
  }
  if (!a.update.empty()) write_expectations(finals, a.update);
  print_summary("operations", operations);
  print_summary("results", finals);
  return count_unexpected(finals, a) == 0 ? 0 : 1;
}
