// skillet_golden_compile CHIP [--dir DIR] [--json] [--case SET/CASE] [--expect FILE] [--optional]: compiled jobs
// against recorded ones. Exit code 1 when --expect is given and a case that is not identical is not listed there, or
// the other way round.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compile_compare.h"

namespace {

using skillet::golden::Comparison;
using skillet::golden::Outcome;

struct Arguments {
  std::string chip = "a311d", dir = "../shared/golden", only, expect;
  bool json = false;
  bool optional = false;  // a missing folder is one line, not a failure
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json")
      a.json = true;
    else if (word == "--optional")
      a.optional = true;
    else if (word == "--dir" && i + 1 < argc)
      a.dir = argv[++i];
    else if (word == "--case" && i + 1 < argc)
      a.only = argv[++i];
    else if (word == "--expect" && i + 1 < argc)
      a.expect = argv[++i];
    else
      a.chip = word;
  }
  return a;
}

// Lines "set/case outcome reason..."; # starts a comment.
std::map<std::string, std::string> read_expectations(const std::string& path) {
  std::map<std::string, std::string> expected;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, outcome;
    if (words >> name >> outcome && name[0] != '#') expected[name] = outcome;
  }
  return expected;
}

int check_expectations(const std::vector<Comparison>& results, const std::string& path) {
  const auto expected = read_expectations(path);
  int wrong = 0;
  for (const Comparison& r : results) {
    if (r.outcome == Outcome::no_job) continue;
    const auto entry = expected.find(r.name);
    const std::string want = entry == expected.end() ? "identical" : entry->second;
    if (want == skillet::golden::outcome_name(r.outcome)) continue;
    fmt::print("unexpected: {} is {}, {} says {}\n", r.name, skillet::golden::outcome_name(r.outcome), path, want);
    ++wrong;
  }
  return wrong;
}

nlohmann::json to_json(const Arguments& a, const std::vector<Comparison>& results,
                       const std::map<Outcome, int>& counts) {
  nlohmann::json json{{"chip", a.chip}, {"dir", a.dir}, {"cases", nlohmann::json::array()}};
  for (int o = 0; o <= static_cast<int>(Outcome::failed); ++o) {
    const auto outcome = static_cast<Outcome>(o);
    const auto count = counts.find(outcome);
    json["counts"][std::string(outcome_name(outcome))] = count == counts.end() ? 0 : count->second;
  }
  for (const Comparison& r : results)
    json["cases"].push_back({{"name", r.name}, {"outcome", outcome_name(r.outcome)}, {"details", r.details}});
  return json;
}

void print_text(const std::vector<Comparison>& results, const std::map<Outcome, int>& counts) {
  constexpr size_t kDetails = 12;
  for (const Comparison& r : results) {
    if (r.outcome == Outcome::identical || r.outcome == Outcome::no_job) continue;
    fmt::print("{}: {}\n", r.name, outcome_name(r.outcome));
    for (size_t i = 0; i < std::min(kDetails, r.details.size()); ++i) fmt::print("    {}\n", r.details[i]);
    if (r.details.size() > kDetails) fmt::print("    ... and {} more\n", r.details.size() - kDetails);
  }
  for (const auto& [outcome, count] : counts) {
    fmt::print("{}: {}\n", outcome_name(outcome), count);
    if (outcome != Outcome::identical && outcome != Outcome::no_job) continue;
    std::string names;
    for (const Comparison& r : results) {
      if (r.outcome == outcome) names += " " + r.name;
    }
    fmt::print("   {}\n", names);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments a = parse_arguments(argc, argv);
  auto names = skillet::golden::list_captures(a.dir, a.chip);
  if (!names.ok()) {
    fmt::print(stderr, "skillet: {}\n", names.error().message);
    if (a.optional) fmt::print("no captures in {}: nothing compared\n", a.dir);
    return a.optional ? 0 : 1;
  }
  std::vector<Comparison> results;
  std::map<Outcome, int> counts;
  for (const std::string& name : *names) {
    if (!a.only.empty() && name != a.only) continue;
    results.push_back(skillet::golden::compare_case(a.dir, a.chip, name));
    ++counts[results.back().outcome];
  }
  if (a.json)
    fmt::print("{}\n", to_json(a, results, counts).dump(1));
  else
    print_text(results, counts);
  if (a.expect.empty()) return 0;
  return check_expectations(results, a.expect) == 0 ? 0 : 1;
}
