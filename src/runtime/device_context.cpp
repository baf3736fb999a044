#include "runtime/device_context.h"

#include <atomic>

#include "base/environment.h"
#include "base/log.h"
#include "base/parse_bool.h"
#include "base/text.h"
#include "base/vendors.h"
#include "kernels/api/kernels.h"
#include "kernels/fake/simulated.h"
#include "runtime/metered_device.h"

namespace skillet::runtime {
namespace {

constexpr std::string_view kSimPrefix = "sim:", kNullPrefix = "null:";

// With SKILLET_DEBUG=capture=FILE each device has its own file; into_next_file() logs its name.
kernels::RecordSink debug_sink() {
  const std::optional<std::string> path = log::debug_value("capture");
  return path && !path->empty() ? capture::into_next_file(expand_home(*path)) : kernels::RecordSink{};
}

// In a child of fork(), data that a thread of the parent was changing may be inconsistent: freeing it may crash or
// hang. So the child keeps its copy until it ends.
void end_context(DeviceContext* context) {
  if (context->process.is_here()) {
    delete context;
    return;
  }
  if (context->device != nullptr) context->device->leave_to_parent();
  struct Kept {
    DeviceContext* context;
    Kept* next;
  };
  static std::atomic<Kept*> last = nullptr;  // kept reachable: leak checkers report nothing
  auto* const kept = new Kept{context, last};
  while (!last.compare_exchange_weak(kept->next, kept)) continue;
}

Result<std::shared_ptr<DeviceContext>> open_context(const std::string& chip, const kernels::Core& core,
                                                    const kernels::SyscallsRef& calls) {
  const std::shared_ptr<DeviceContext> context(new DeviceContext, end_context);
  context->chip = chip;
  SK_TRY_ASSIGN(auto device, kernels::open_core(core, calls));
  context->use = std::make_shared<use::Counter>(core.info.node, chip, core.info.fact(kernels::kCoresFact));
  context->device = std::make_unique<MeteredDevice>(std::move(device), context->use);
  return context;
}

// If `sink` is set, it receives what is sent to the core.
Result<Target> target_of(const NamedCore& named, const kernels::RecordSink& sink) {
  const kernels::Core& core = named.core;
  const kernels::SyscallsRef& calls = named.calls;
  Target target{.name = named.name, .chip = named.chip, .driver = named.driver, .context = nullptr};
  target.simulated = named.simulated;
  target.calls = calls;
  SK_TRY_ASSIGN(target.context,
                open_context(target.chip.name, core, sink.append ? kernels::record(calls, sink) : calls));
  // A recording comes from one file.
  const uint64_t cores = target.chip.one_core_at_a_time ? 1 : core.info.fact(kernels::kCoresFact);
  if (cores > 1 && !sink.append)
    target.pool = std::make_shared<DevicePool>(target.context, cores, [chip_name = target.chip.name, core, calls] {
      return open_context(chip_name, core, calls);
    });
  return target;
}

// For jobs of networks: recorded if the environment asks for it, with the device's trust. A null device computes
// nothing that could be compared.
Result<Target> target_with_trust(const NamedCore& named, const kernels::RecordSink& given) {
  SK_TRY_ASSIGN(Target target, target_of(named, given.append ? given : debug_sink()));
  if (!target.name.starts_with(kNullPrefix))
    target.trust = std::make_shared<Trust>(identity_of(target.chip.name, named.core.info, target.simulated),
                                           trust_folder(target.simulated));
  return target;
}

// "; did you mean 'sim:a311d'?": for a chip's name alone, suggests the simulated chip.
std::string meant_device(const std::string& name) {
  std::vector<std::string> names = {"auto", "npu", "cpu"};
  std::vector<std::string_view> chips;
  for (const kernels::KernelDriver& driver : kernels::kernel_drivers()) {
    names.push_back(fmt::format("{}0", driver.name));
    names.push_back(fmt::format("{}{}", driver.nodes.prefix, driver.nodes.first));
  }
  for (const npu::Driver* driver : npu::drivers()) {
    for (const npu::Chip& chip : driver->chips()) {
      if (!fake::simulated_core(chip.name).ok()) continue;
      names.push_back(fmt::format("{}{}", kSimPrefix, chip.name));
      chips.push_back(chip.name);
    }
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string meant = did_you_mean(name, known);
  if (!meant.empty()) return meant;
  // The prefix must not count as letters that fit: 'sim:bogus' is nearly 'sim:toy'.
  const std::string_view chip = nearest(name, std::span(chips));
  return chip.empty() ? "" : fmt::format("; did you mean '{}{}'?", kSimPrefix, chip);
}

using Simulate = Result<fake::SimulatedCore> (*)(const std::string& chip, const std::string& quirks);

// "a311d,quirk=NAME+NAME", the text after "sim:".
struct SimulatedName {
  std::string chip, quirks;
};
Result<SimulatedName> read_simulated_name(const std::string& text) {
  constexpr std::string_view kQuirk = "quirk=";
  const size_t comma = text.find(',');
  if (comma == std::string::npos) return SimulatedName{text, ""};
  const std::string option = text.substr(comma + 1);
  if (!option.starts_with(kQuirk) || option.size() == kQuirk.size())
    return error(ErrorCode::invalid_argument, "'{}' after the chip: must be quirk=NAME[+NAME...]", option);
  return SimulatedName{text.substr(0, comma), option.substr(kQuirk.size())};
}

Result<NamedCore> find_chip(const std::string& name, std::string_view prefix, Simulate simulate) {
  SK_TRY_ASSIGN(const auto read, read_simulated_name(name.substr(prefix.size())));
  const std::string& chip_name = read.chip;
  SK_TRY_ASSIGN(npu::Chip chip, npu::find_chip(chip_name));
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  auto simulated = simulate(chip_name, read.quirks);
  if (!simulated.ok() && simulated.error().code != ErrorCode::unsupported) return std::move(simulated).error();
  if (!simulated.ok())
    return error(ErrorCode::unsupported, "cannot be simulated (skillet devices --all names what is missing)");
  return NamedCore{name, std::move(chip), driver, simulated->core, simulated->calls, true};
}

NamedCore core_of(const FoundNpu& npu) {
  return {npu.core.info.node, npu.chip, npu.driver, npu.core, kernels::system_calls(), false};
}

void add_reason(std::string& text, std::string_view reason) {
  text += fmt::format("{}{}", text.empty() ? "" : "; ", reason);
}

// The chip of a core, by the first driver that knows it.
Result<FoundNpu> identify_core(const kernels::Core& core) {
  std::string reasons;
  for (const npu::Driver* driver : npu::drivers()) {
    auto chip = driver->identify(core.info);
    if (chip.ok()) return FoundNpu{.name = {}, .core = core, .chip = std::move(chip).value(), .driver = driver};
    const std::string& reason = chip.error().message;
    if (!reason.empty()) reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason);
  }
  if (reasons.empty()) reasons = core.info.node + ": no driver of this build knows it";
  return error(ErrorCode::unsupported, "{}", reasons);
}

Error no_npu(const NpuSearch& search) {
  if (search.rejected.empty())
    return error(ErrorCode::io, "no NPU here: there is no {} (see skillet doctor)", kernels::searched_nodes());
  return error(ErrorCode::io, "no NPU here: {} (skillet doctor names what is missing)", search.rejected);
}

Result<NamedCore> find_found(const NpuSearch& search, const std::string& name) {
  if (search.npus.empty()) return no_npu(search);
  std::string names, last_node;
  for (const FoundNpu& npu : search.npus) {
    if (name == "npu" || name == npu.name) {
      NamedCore core = core_of(npu);
      if (core.name == last_node) core.name = npu.name;  // a node's name means its first core
      return core;
    }
    last_node = npu.core.info.node;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", npu.name);
  }
  return error(ErrorCode::invalid_argument, "no device '{}'; there are {}", name, names);
}

// Logs nothing if there is no NPU; warns if there may be one that cannot be used.
Result<Target> open_npu_or_cpu(const kernels::RecordSink& sink) {
  const NpuSearch search = find_npus();
  const auto core = find_found(search, "npu");
  auto found = core.ok() ? target_with_trust(*core, sink) : Result<Target>(core.error());
  if (found.ok()) return found;
  const bool expected = search.npus.empty() && !search.blocked;
  log::message(expected ? log::Level::info : log::Level::warning, "running on the CPU: {}", found.error().message);
  return cpu_target(found.error().message);
}

Result<NamedCore> find_node(const std::string& node) {
  SK_TRY_ASSIGN(kernels::NodeReport report, kernels::ask_node(node));
  const NpuSearch search = identify({std::move(report)});
  if (search.npus.empty()) return error(ErrorCode::unsupported, "{}", search.rejected);
  return core_of(search.npus[0]);
}

// "etnaviv0": a supported kernel driver, then digits. Any other name is an error, not missing hardware.
bool is_device_name(const std::string& name) {
  const size_t digits = name.find_first_of("0123456789");
  return digits != std::string::npos && kernels::find_kernel_driver(name.substr(0, digits)) != nullptr &&
         name.find_first_not_of("0123456789", digits) == std::string::npos;
}

Result<fake::SimulatedCore> compute_nothing(const std::string& chip, const std::string& quirks) {
  if (quirks.empty()) return fake::null_core(chip);
  return error(ErrorCode::invalid_argument, "a device that computes nothing has no quirks");
}

Result<NamedCore> find_core_with(Simulate simulate, const std::string& name) {
  if (name.starts_with(kSimPrefix)) return find_chip(name, kSimPrefix, simulate).with_context(name);
  if (name.starts_with(kNullPrefix)) return find_chip(name, kNullPrefix, compute_nothing).with_context(name);
  if (name.starts_with("/")) return find_node(name);
  if (name == "npu" || is_device_name(name)) return find_found(find_npus(), name);
  if (name == "cpu" || name == "auto")
    return error(ErrorCode::invalid_argument,
                 "device '{}' is not an NPU: use npu, /dev/..., etnaviv0, sim:CHIP or null:CHIP", name);
  const std::string meant = meant_device(name);
  if (!meant.empty()) return error(ErrorCode::invalid_argument, "no device '{}'{}", name, meant);
  return error(ErrorCode::invalid_argument,
               "device '{}' is not one of auto, npu, cpu, /dev/..., etnaviv0, sim:CHIP, null:CHIP", name);
}

}  // namespace

Result<void> DeviceContext::check_process() const {
  if (process.is_here()) return {};
  return error(ErrorCode::invalid_argument,
               "{}: the device was opened by a parent process before a fork(), and only that process can use it: open "
               "the device and load the model in this process",
               device == nullptr ? chip : device->info().node);
}

Result<void> check_process(const Target& target) {
  return target.context == nullptr ? Result<void>() : target.context->check_process();
}

use::Totals use_of(const Target& target) {
  if (target.pool != nullptr) return target.pool->use();
  return target.context == nullptr || target.context->use == nullptr ? use::Totals{} : target.context->use->totals();
}

NpuSearch identify(const std::vector<kernels::NodeReport>& nodes) {
  NpuSearch search;
  for (const kernels::NodeReport& node : nodes) {
    if (node.error) {
      search.blocked = true;
      add_reason(search.rejected, node.error->message);
    } else if (node.cores.empty()) {
      add_reason(search.rejected,
                 fmt::format("{}: kernel driver '{}' has no NPU core here", node.node, node.kernel_driver));
    }
    for (const kernels::Core& core : node.cores) {
      auto npu = identify_core(core);
      if (!npu.ok()) {
        add_reason(search.rejected, fmt::format("core {}: {}", core.index, npu.error().message));
        continue;
      }
      npu->name = fmt::format("{}{}", core.info.kernel_driver, search.npus.size());
      search.npus.push_back(std::move(npu).value());
    }
  }
  return search;
}

NpuSearch find_npus(const std::string& root) { return identify(kernels::find_devices(root)); }

Result<NamedCore> find_core(const std::string& name) { return find_core_with(fake::simulated_core, name); }

Result<NamedCore> find_core_for_replay(const std::string& name) {
  return find_core_with(fake::simulated_core_for_replay, name);
}

Result<Target> open_for_trials(const std::string& name) {
  SK_TRY_ASSIGN(const NamedCore core, find_core(name));
  return target_of(core, {});
}

Target cpu_target(std::string why_none) {
  Target out{.name = "cpu", .chip = {}, .driver = nullptr, .context = nullptr};
  out.why_none = std::move(why_none);
  return out;
}

std::string device_meant(std::string name) {
  if (const char* const device = environment_variable("SKILLET_DEVICE"); name.empty() && device != nullptr)
    name = device;
  if (name.empty()) name = "auto";
  const char* const said = environment_variable("SKILLET_REQUIRE_NPU");
  if (name != "auto" || said == nullptr || *said == '\0') return name;
  bool required = true;  // an unknown value counts as 1
  if (!parse_bool(said, required)) log::warning("SKILLET_REQUIRE_NPU={}: must be 1 or 0; taking 1", said);
  return required ? "npu" : name;
}

Result<Target> open_target(const std::string& name, const kernels::RecordSink& sink) {
  if (name == "cpu") return cpu_target("device=cpu");
  if (name == "auto") return open_npu_or_cpu(sink);
  SK_TRY_ASSIGN(const NamedCore core, find_core(name));
  return target_with_trust(core, sink);
}

std::string refusal(const npu::Chip& chip) {
  return chip.unproven.empty() ? "" : "refused by unproven=refuse: " + chip.unproven;
}

Result<void> check_taken(const Target& target, npu::Unproven unproven) {
  if (unproven != npu::Unproven::refuse || target.chip.unproven.empty()) return {};
  return error(ErrorCode::unsupported, "{} is {}", target.name, refusal(target.chip));
}

bool computes_nothing(const Target& target) { return target.name.starts_with(kNullPrefix); }

}  // namespace skillet::runtime
