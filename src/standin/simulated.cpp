#include "standin/simulated.h"

#include "standin/in_process.h"
#include "standin/kernels.h"

namespace skillet::standin {

Result<SimulatedCore> core_of(std::unique_ptr<sim::Device> simulator, const std::string& chip_name,
                              const std::string& node) {
  Options options{.faults = {}, .on_fault = OnFault::error, .is_own_process = true};
  auto calls = std::make_shared<InProcess>(create_kernel(chip_name, std::move(simulator), std::move(options)), node);
  SK_TRY_ASSIGN(const uapi::NodeReport report, uapi::ask_node(node, calls));
  return SimulatedCore{report.cores.at(0), std::move(calls)};
}

Result<SimulatedCore> simulated_core(const std::string& chip_name) {
  SK_TRY_ASSIGN(std::unique_ptr<sim::Device> simulator, sim::create(chip_name));
  return core_of(std::move(simulator), chip_name, "sim:" + chip_name);
}

Result<SimulatedCore> null_core(const std::string& chip_name) {
  return core_of(nullptr, chip_name, "null:" + chip_name);
}

Result<std::unique_ptr<uapi::Device>> open_simulated(const std::string& chip_name) {
  SK_TRY_ASSIGN(const SimulatedCore simulated, simulated_core(chip_name));
  return uapi::open_core(simulated.core, simulated.calls);
}

}  // namespace skillet::standin
