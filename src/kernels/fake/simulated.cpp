#include "kernels/fake/simulated.h"

#include "kernels/fake/in_process.h"
#include "kernels/fake/kernels.h"

namespace skillet::fake {
namespace {

Result<SimulatedCore> core_at(const std::string& node, std::unique_ptr<sim::Device> simulator,
                              const std::string& chip_name, bool checks_lists,
                              std::shared_ptr<JobClock> clock = nullptr) {
  SK_TRY_ASSIGN(const uint32_t schedule, schedule_from_environment());
  Options options{.faults = {},
                  .on_fault = OnFault::error,
                  .loses_jobs = simulator != nullptr && simulator->loses_jobs(),
                  .is_own_process = true,
                  .checks_lists = checks_lists,
                  .schedule = schedule,
                  .clock = std::move(clock)};
  auto calls = std::make_shared<InProcess>(create_kernel(chip_name, std::move(simulator), std::move(options)), node);
  SK_TRY_ASSIGN(const kernels::NodeReport report, kernels::ask_node(node, calls));
  return SimulatedCore{report.cores.at(0), std::move(calls)};
}

Result<SimulatedCore> simulate(const std::string& chip_name, const std::string& quirks, bool checks_lists) {
  SK_TRY_ASSIGN(std::unique_ptr<sim::Device> simulator, sim::create(chip_name, quirks));
  SK_TRY_ASSIGN(const auto times, sim::times_of_quirks(chip_name, quirks));
  auto timer = sim::create_timer(chip_name, sim::Jobs::open, times);
  auto clock = timer.ok() ? std::make_shared<JobClock>(std::move(timer).value()) : nullptr;
  const std::string node = "sim:" + chip_name + (quirks.empty() ? "" : ",quirk=" + quirks);
  return core_at(node, std::move(simulator), chip_name, checks_lists, std::move(clock));
}

}  // namespace

Result<SimulatedCore> core_of(std::unique_ptr<sim::Device> simulator, const std::string& chip_name,
                              const std::string& node) {
  return core_at(node, std::move(simulator), chip_name, false);
}

Result<SimulatedCore> simulated_core(const std::string& chip_name, const std::string& quirks) {
  return simulate(chip_name, quirks, true);
}

Result<SimulatedCore> simulated_core_for_replay(const std::string& chip_name, const std::string& quirks) {
  return simulate(chip_name, quirks, false);
}

Result<SimulatedCore> null_core(const std::string& chip_name) {
  return core_of(nullptr, chip_name, "null:" + chip_name);
}

Result<std::unique_ptr<kernels::Device>> open_simulated(const std::string& chip_name, const std::string& quirks) {
  SK_TRY_ASSIGN(const SimulatedCore simulated, simulated_core(chip_name, quirks));
  return kernels::open_core(simulated.core, simulated.calls);
}

}  // namespace skillet::fake
