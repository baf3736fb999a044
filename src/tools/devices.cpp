// `skillet devices`: what this machine has that could run a network, and the chips that we simulate.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/device_list.h"
#include "tools/text_table.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

Result<void> devices(bool json) {
  const std::vector<runtime::ListedDevice> rows = runtime::list_devices();
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const runtime::ListedDevice& row : rows)
      list.push_back({{"device", row.device},
                      {"kernel_driver", row.kernel_driver},
                      {"title", row.title},
                      {"note", row.note},
                      {"usable", row.usable}});
    out_json(list);
    return {};
  }
  TextTable table({"device", "usable", "kernel driver", "what", "note"});
  for (const runtime::ListedDevice& row : rows)
    table.add({row.device, row.usable ? "yes" : "no", row.kernel_driver, row.title, row.note});
  out("{}", table.print());
  if (std::ranges::none_of(rows, &runtime::ListedDevice::is_node))
    out("No /dev/dri/renderD* and no /dev/accel/* here: no NPU (or GPU) driver is loaded "
        "(skillet doctor tells more).\n");
  return {};
}

}  // namespace

void add_devices(CommandLine& app, Outcome& outcome) {
  auto json = std::make_shared<bool>(false);
  const Verb verb = app.verb("devices",
                             "List what can run a network: NPUs of this machine, simulated chips, the CPU.\n"
                             "The first column is what --device takes.");
  verb.flag("--json", *json, "machine-readable output");
  verb.runs([json, &outcome] { outcome.finish(devices(*json)); });
}

}  // namespace skillet::tools
