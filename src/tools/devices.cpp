// `skillet devices`: what this machine has that could run a network, and the chips that we simulate.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "driver/driver.h"
#include "runtime/device_context.h"
#include "tools/text_table.h"
#include "tools/verbs.h"
#include "uapi/device.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string device, kernel_driver, title, note;
  bool usable = false;
};

// Name of the kernel driver behind a device node, from sysfs; empty where it does not say.
std::string kernel_driver_of(const fs::path& node) {
  const char* kind = node.parent_path().filename() == "accel" ? "accel" : "drm";
  std::error_code ignored;
  return fs::read_symlink(fs::path("/sys/class") / kind / node.filename() / "device/driver", ignored)
      .filename()
      .string();
}

// "core 1" of several that are asked for one by one, "3 cores" that the kernel shares out.
std::string cores_text(const uapi::Core& core) {
  const uint64_t cores = core.info.fact(uapi::kCoresFact);
  return cores > 1 ? fmt::format("{} cores", cores) : fmt::format("core {}", core.index);
}

// One row a core: NPUs under the names that --device takes, and the others with the reason why they are none.
std::vector<Row> real_devices() {
  std::vector<Row> rows;
  const std::vector<uapi::NodeReport> nodes = uapi::find_devices();
  const runtime::NpuSearch all = runtime::identify(nodes);
  for (const runtime::FoundNpu& npu : all.npus)
    rows.push_back({.device = npu.core.info.node,
                    .kernel_driver = npu.core.info.kernel_driver,
                    .title = npu.chip.title,
                    .note = fmt::format("{}; also called {}{}{}", cores_text(npu.core), npu.name,
                                        npu.chip.unproven.empty() ? "" : "; ", runtime::refusal(npu.chip)),
                    .usable = npu.chip.unproven.empty()});
  for (const uapi::NodeReport& node : nodes) {
    const runtime::NpuSearch search = runtime::identify({node});
    if (!search.npus.empty()) continue;
    const std::string driver = node.kernel_driver.empty() ? kernel_driver_of(node.node) : node.kernel_driver;
    rows.push_back({.device = node.node, .kernel_driver = driver, .title = "", .note = search.rejected});
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.device < b.device; });
  return rows;
}

std::string note_of(const driver::Chip& chip) {
  const std::string note = "simulated in this process";
  return chip.unproven.empty() ? note : fmt::format("{}; unproven: {}", note, chip.unproven);
}

std::vector<Row> simulated_devices() {
  std::vector<Row> rows;
  for (const driver::Driver* driver : driver::drivers()) {
    for (const driver::Chip& chip : driver->chips()) {
      const std::string device = "sim:" + chip.name;
      const auto target = runtime::open_target(device);
      rows.push_back({.device = device,
                      .kernel_driver = target.ok() ? target->context->device->info().kernel_driver : "",
                      .title = chip.title,
                      .note = target.ok() ? note_of(chip) : target.error().message,
                      .usable = target.ok()});
    }
  }
  return rows;
}

Result<void> devices(bool json) {
  std::vector<Row> rows = real_devices();
  const size_t real_count = rows.size();
  std::ranges::copy(simulated_devices(), std::back_inserter(rows));
  rows.push_back(
      {.device = "cpu", .kernel_driver = "", .title = "this processor", .note = "reference kernels", .usable = true});
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Row& row : rows)
      list.push_back({{"device", row.device},
                      {"kernel_driver", row.kernel_driver},
                      {"title", row.title},
                      {"note", row.note},
                      {"usable", row.usable}});
    out_json(list);
    return {};
  }
  TextTable table({"device", "usable", "kernel driver", "what", "note"});
  for (const Row& row : rows)
    table.add({row.device, row.usable ? "yes" : "no", row.kernel_driver, row.title, row.note});
  out("{}", table.print());
  if (real_count == 0)
    out("No /dev/dri/renderD* and no /dev/accel/* here: no NPU (or GPU) driver is loaded "
        "(skillet doctor tells more).\n");
  return {};
}

}  // namespace

void add_devices(CLI::App& app, Outcome& outcome) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand("devices",
                                      "List what can run a network: NPUs of this machine, simulated chips, the CPU.\n"
                                      "The first column is what --device takes.");
  verb->add_flag("--json", *json, "machine-readable output");
  verb->callback([json, &outcome] { outcome.finish(devices(*json)); });
}

}  // namespace skillet::tools
