#include "sim/sim.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/environment.h"
#include "base/leaked.h"
#include "base/text.h"
#include "base/vendors.h"
#include "sim/timing.h"

#define SIMULATOR(vendor)                                                                                        \
  namespace skillet::sim::vendor {                                                                               \
  Result<std::unique_ptr<Device>> simulator_of(std::string_view chip, std::span<const std::string_view> quirks); \
  std::vector<Quirk> quirks(std::string_view chip);                                                              \
  }
#include "vendors.inc"

namespace skillet::sim {
namespace {

// One row per linked family. For unknown names a factory returns invalid_argument with its own names.
struct Family {
  Result<std::unique_ptr<Device>> (*create)(std::string_view chip, std::span<const std::string_view> quirks);
  std::vector<Quirk> (*quirks)(std::string_view chip);
};
const std::vector<Family>& families() {
  const auto& kFamilies = leaked([] {
    return std::vector<Family>{
#define SIMULATOR(vendor) {vendor::simulator_of, vendor::quirks},
#include "vendors.inc"
    };
  });
  return kFamilies;
}

Error no_quirk(std::string_view chip, std::string_view name, const std::vector<Quirk>& known) {
  std::vector<std::string_view> names;
  for (const Quirk& one : known) names.push_back(one.name);
  if (names.empty()) return error(ErrorCode::invalid_argument, "no quirk '{}': {} has none", name, chip);
  return error(ErrorCode::invalid_argument, "no quirk '{}'{}; {} can have {}", name, did_you_mean(name, names), chip,
               fmt::join(names, ", "));
}

struct Chosen {
  std::vector<std::string_view> names;
  std::vector<ParameterValue> times;
};

// Parses the names in `text`: quirks of the chip, or values of its timing parameters.
Result<void> add_quirks(std::string_view chip, std::string_view text, Chosen& to) {
  if (text.empty()) return {};
  const std::vector<Quirk> known = quirks(chip);
  for (size_t at = 0, plus = 0; plus != std::string_view::npos; at = plus + 1) {
    plus = text.find('+', at);
    const std::string_view name = text.substr(at, plus - at);
    if (name.find('=') != std::string_view::npos) {
      SK_TRY_INTO(to.times.emplace_back(), parse_parameter(name));
      SK_TRY(create_timer(chip, Jobs::open, {&to.times.back(), 1}));
      continue;
    }
    const auto row = std::ranges::find(known, name, &Quirk::name);
    if (row == known.end()) return no_quirk(chip, name, known);
    to.names.push_back(row->name);
  }
  return {};
}

Result<Chosen> quirks_of(std::string_view chip, std::string_view given) {
  constexpr const char* kVariable = "SKILLET_SIM_QUIRK";
  Chosen names;
  const bool alone = given.starts_with('!');
  SK_TRY(add_quirks(chip, given.substr(alone ? 1 : 0), names));
  const char* const set = alone ? nullptr : environment_variable(kVariable);
  if (set != nullptr) SK_TRY(add_quirks(chip, set, names).with_context(fmt::format("{}={}", kVariable, set)));
  return names;
}

}  // namespace

Result<std::span<const uint32_t>> words_of(const Job& job) {
  if (job.commands.size() != 1 || job.commands[0].size_bytes != 0)
    return error(ErrorCode::malformed, "a job of {} lists of commands; the chip takes one, passed with the job",
                 job.commands.size());
  const std::span<const uint8_t> bytes = job.commands[0].bytes;
  if (bytes.size() % 4 != 0 || reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint32_t) != 0)
    return error(ErrorCode::malformed, "{} bytes of commands; the chip takes whole words", bytes.size());
  return std::span(reinterpret_cast<const uint32_t*>(bytes.data()), bytes.size() / 4);
}

Result<void> Device::execute(std::span<const uint32_t> words, const Memory& memory) {
  const Commands commands{.bytes = {reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()}};
  return run({.commands = {&commands, 1}}, memory);
}

Result<std::vector<ParameterValue>> times_of_quirks(std::string_view chip, std::string_view quirks) {
  SK_TRY_ASSIGN(Chosen chosen, quirks_of(chip, quirks));
  return std::move(chosen.times);
}

std::vector<Quirk> quirks(std::string_view chip) {
  for (const Family& family : families()) {
    std::vector<Quirk> rows = family.quirks(chip);
    if (!rows.empty()) return rows;
  }
  return {};
}

Result<std::unique_ptr<Device>> create(std::string_view chip, std::string_view quirks) {
  const auto chosen = quirks_of(chip, quirks);
  std::string reasons;
  for (const Family& family : families()) {
    auto device = family.create(chip, chosen.ok() ? chosen->names : std::vector<std::string_view>());
    if (device.ok() && !chosen.ok()) return chosen.error();
    if (device.ok() || device.error().code != ErrorCode::invalid_argument) return device;
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", device.error().message);
  }
  return no_chip(chip, "simulator", reasons.empty() ? "this build has no simulators" : reasons);
}

}  // namespace skillet::sim
