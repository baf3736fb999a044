#include "interpose/virtual_options.h"

#include <cstdlib>
#include <string_view>

#include "base/log.h"

namespace skillet::interpose {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

VirtualOptions VirtualOptions::from_environment() {
  VirtualOptions options;
  options.chip = variable(kChipVariable);
  if (options.chip.empty()) options.chip = "a311d";
  options.root = variable(kRootVariable);
  const std::string traces = variable(kTraceVariable);
  options.traces = !traces.empty() && traces != "0";
  const std::string fault = variable(kFaultVariable);
  options.fault_is_error = fault == "error";
  if (!fault.empty() && fault != "error" && fault != "reset")
    log::warning("{}={}: must be reset or error; taking reset", kFaultVariable, fault);
  auto faults = FaultPlan::parse(variable(kFailVariable));
  if (faults.ok()) {
    options.faults = std::move(faults).value();
  } else {
    log::warning("{}: {}; injecting nothing", kFailVariable, faults.error().message);
  }
  return options;
}

}  // namespace skillet::interpose
