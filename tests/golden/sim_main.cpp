// skillet_golden_sim CHIP [--dir DIR] [--case SET/CASE] [--json]: recorded jobs on the simulator, results against
// TensorFlow Lite's. Exit code 1 when a job is a fault.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "sim_replay.h"

namespace {

using skillet::golden::ReplayClass;
using skillet::golden::ReplayRow;

struct Arguments {
  std::string chip = "a311d", dir = "../shared/golden", only;
  bool json = false;
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json")
      a.json = true;
    else if (word == "--dir" && i + 1 < argc)
      a.dir = argv[++i];
    else if (word == "--case" && i + 1 < argc)
      a.only = argv[++i];
    else
      a.chip = word;
  }
  return a;
}

constexpr ReplayClass kClasses[] = {ReplayClass::exact, ReplayClass::within_1, ReplayClass::worse,
                                    ReplayClass::not_comparable, ReplayClass::fault};

// Per set, and in all.
struct Summary {
  std::map<ReplayClass, int> counts;
  int64_t elements = 0, differing = 0;
  double milliseconds = 0;
};
std::map<std::string, Summary> summarise(const std::vector<ReplayRow>& rows) {
  std::map<std::string, Summary> sets;
  for (const ReplayRow& row : rows) {
    Summary& set = sets[row.name.substr(0, row.name.find('/'))];
    ++set.counts[row.result];
    set.elements += row.elements;
    set.differing += row.differing;
    set.milliseconds += row.simulated_ms;
  }
  return sets;
}

void print_text(const std::vector<ReplayRow>& rows) {
  for (const ReplayRow& row : rows) {
    if (row.result == ReplayClass::exact || row.result == ReplayClass::within_1) continue;
    fmt::print("{}: {}", row.name, replay_class_name(row.result));
    if (row.differing > 0)
      fmt::print(", {} of {} elements differ, at most by {}", row.differing, row.elements, row.max_difference);
    fmt::print("{}{}\n", row.reason.empty() ? "" : ": ", row.reason);
  }
  fmt::print("{:8} {:>7} {:>9} {:>7} {:>15} {:>7} {:>12} {:>12} {:>10}\n", "set", "exact", "within 1", "worse",
             "not comparable", "fault", "elements", "differing", "ms");
  for (const auto& [name, set] : summarise(rows)) {
    const auto count = [&set = set](ReplayClass c) { return set.counts.contains(c) ? set.counts.at(c) : 0; };
    fmt::print("{:8} {:>7} {:>9} {:>7} {:>15} {:>7} {:>12} {:>12} {:>10.0f}\n", name, count(kClasses[0]),
               count(kClasses[1]), count(kClasses[2]), count(kClasses[3]), count(kClasses[4]), set.elements,
               set.differing, set.milliseconds);
  }
}

nlohmann::json to_json(const Arguments& a, const std::vector<ReplayRow>& rows) {
  nlohmann::json json{{"chip", a.chip}, {"dir", a.dir}, {"cases", nlohmann::json::array()}};
  for (const auto& [name, set] : summarise(rows)) {
    for (const ReplayClass c : kClasses)
      json["sets"][name][std::string(replay_class_name(c))] = set.counts.contains(c) ? set.counts.at(c) : 0;
    json["sets"][name]["elements"] = set.elements;
    json["sets"][name]["differing"] = set.differing;
  }
  for (const ReplayRow& row : rows)
    json["cases"].push_back({{"name", row.name},
                             {"result", replay_class_name(row.result)},
                             {"elements", row.elements},
                             {"differing", row.differing},
                             {"max_difference", row.max_difference},
                             {"reason", row.reason},
                             {"simulated_ms", row.simulated_ms}});
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments a = parse_arguments(argc, argv);
  auto rows = a.only.empty() ? skillet::golden::simulate(a.dir, a.chip)
                             : skillet::Result(skillet::golden::simulate_case(a.dir, a.chip, a.only));
  if (!rows.ok()) {
    fmt::print(stderr, "skillet: {}\n", rows.error().message);
    return 1;
  }
  if (a.json)
    fmt::print("{}\n", to_json(a, *rows).dump(1));
  else
    print_text(*rows);
  for (const ReplayRow& row : *rows) {
    if (row.result == ReplayClass::fault) return 1;
  }
  return 0;
}
