#include <fmt/ranges.h>

#include <algorithm>

#include "base/leaked.h"
#include "base/text.h"
#include "base/vendors.h"
#include "npu/driver.h"

#define DRIVER(vendor)                  \
  namespace skillet::npus::vendor {     \
  const skillet::npu::Driver& driver(); \
  }
#include "vendors.inc"

namespace skillet::npu {
namespace {

const std::vector<const Driver*>& registry() {
  const auto& kDrivers = leaked([] {
    return std::vector<const Driver*>{
#define DRIVER(vendor) &skillet::npus::vendor::driver(),
#include "vendors.inc"
    };
  });
  return kDrivers;
}

// The list of names for no_chip(). An error is one line of at most 100 columns, so a long list is cut.
std::string known_chips(std::span<const std::string_view> names) {
  constexpr size_t kMost = 3;
  const auto shown = names.first(std::min(names.size(), kMost));
  return fmt::format("known: {}{}", names.empty() ? "none" : fmt::to_string(fmt::join(shown, ", ")),
                     shown.size() < names.size() ? ", ...; skillet devices --all" : "");
}

}  // namespace

std::optional<Tuning> tuning_from_name(std::string_view name) {
  const auto* const found = std::ranges::find(kTuningNames, name);
  if (found == kTuningNames.end()) return std::nullopt;
  return static_cast<Tuning>(found - kTuningNames.begin());
}

std::optional<Unproven> unproven_from_name(std::string_view name) {
  const auto* const found = std::ranges::find(kUnprovenNames, name);
  if (found == kUnprovenNames.end()) return std::nullopt;
  return static_cast<Unproven>(found - kUnprovenNames.begin());
}

std::optional<PerChannel> per_channel_from_name(std::string_view name) {
  const auto* const found = std::ranges::find(kPerChannelNames, name);
  if (found == kPerChannelNames.end()) return std::nullopt;
  return static_cast<PerChannel>(found - kPerChannelNames.begin());
}

std::vector<std::string_view> names_of(const std::vector<const Assumption*>& assumptions) {
  std::vector<std::string_view> out;
  for (const Assumption* one : assumptions) out.push_back(one->name);
  return out;
}

std::string why_refused(std::string_view reason, const std::vector<std::string_view>& names) {
  const std::string unseen =
      fmt::format("the whole job was never recorded{}{}", names.empty() ? "" : ": ", fmt::join(names, ", "));
  return fmt::format("{} (unproven on silicon, unproven=refuse)", reason.empty() ? unseen : reason);
}

MadeConstants Driver::made_constants(const Chip&, const ir::Graph& graph, ir::OpId op) const {
  MadeConstants out;
  for (const ir::TensorId id : graph.op(op).inputs) {
    if (id != ir::kNoTensor && graph.tensor(id).is_constant())
      out.bytes += static_cast<uint64_t>(graph.tensor(id).bytes());
  }
  return out;
}

std::span<const Driver* const> drivers() { return registry(); }

Result<Chip> find_chip(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Driver* driver : drivers()) {
    for (const Chip& chip : driver->chips()) {
      if (chip.name == name) return chip;
      if (name.ends_with(":" + chip.name))  // a device's name
        return no_chip(name, "driver", fmt::format("did you mean '{}'?", chip.name));
      known.push_back(chip.name);
    }
  }
  const std::string meant = did_you_mean(name, known);
  return no_chip(name, "driver", meant.empty() ? known_chips(known) : meant.substr(2));
}

MadeFor made_for(const ir::Graph& graph) {
  MadeFor made;
  for (const Driver* driver : drivers()) {
    if (made.accelerator.empty()) made = driver->made_for(graph);
  }
  return made;
}

std::string text_of(const MadeFor& made) {
  if (made.accelerator.empty()) return "";
  std::string devices;
  for (const Chip& chip : made.chips) devices += fmt::format(" or sim:{}", chip.name);
  return fmt::format("; it was compiled for {}{}", made.accelerator,
                     devices.empty() ? ", which is not a chip of this build"
                                     : fmt::format(": choose the device npu on a board that has it,{}", devices));
}

Result<const Driver*> driver_of(const Chip& chip) {
  for (const Driver* driver : drivers()) {
    if (driver->name() == chip.family) return driver;
  }
  return error(ErrorCode::unsupported, "this build has no driver '{}' for chip {}", chip.family, chip.name);
}

}  // namespace skillet::npu
