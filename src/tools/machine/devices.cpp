// `skillet devices`: lists devices of this machine that can run a network, and simulated chips.
#include <nlohmann/json.hpp>

#include "runtime/device_list.h"
#include "tools/cli/verbs.h"
#include "tools/show/text_table.h"

namespace skillet::tools {
namespace {

using Rows = std::vector<runtime::ListedDevice>;

struct Options {
  bool json = false, all = false;
};

void print_json(const Rows& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const runtime::ListedDevice& row : rows)
    list.push_back({{"device", row.device},
                    {"kernel_driver", row.kernel_driver},
                    {"title", row.title},
                    {"note", row.note},
                    {"usable", row.usable}});
  out_report({{"devices", list}});
}

// Prints real devices before simulated chips.
void print_here(const Rows& rows) {
  TextTable table({"device", "usable", "kernel driver", "what", "note"});
  for (const runtime::ListedDevice& row : rows)
    if (row.is_node) table.add({row.device, row.usable ? "yes" : "no", row.kernel_driver, row.title, row.note});
  if (table.empty())
    out("No NPU here: no /dev/dri/renderD* and no /dev/accel/* (skillet doctor names what is missing)\n");
  else
    out("on this machine\n{}", table.print_wrapped());
}

void print_simulated(const Rows& rows, bool all) {
  std::string not_simulated, others;
  TextTable table({"device", "kernel driver", "what", "note"});
  for (const runtime::ListedDevice& row : rows) {
    if (!row.simulated) continue;
    if (!all && (!row.usable || !row.is_sold)) {
      std::string& list = row.is_sold ? not_simulated : others;
      list += (list.empty() ? "" : ", ") + row.device.substr(row.device.find(':') + 1);
      continue;
    }
    const bool is_unproven = row.note.find("unproven") != std::string::npos;
    const std::string note = row.usable ? row.note : "cannot be simulated: " + row.note;
    table.add({row.device, row.kernel_driver, row.title, all ? note : is_unproven ? "unproven (docs/devices.md)" : ""});
  }
  if (!table.empty()) out("\nsimulated in this process\n{}", table.print_wrapped());
  if (!not_simulated.empty())
    out("{}\n", wrapped(fmt::format("known, but cannot be simulated: {} (--all says why)", not_simulated), 2));
  if (!others.empty()) out("{}\n", wrapped(fmt::format("others (--all): {}", others), 2));
}

void devices(const Options& options) {
  const Rows rows = runtime::list_devices();
  if (options.json) return print_json(rows);
  print_here(rows);
  print_simulated(rows, options.all);
  out("\nand cpu: this processor, with reference kernels\n");
}

}  // namespace

void add_devices(CommandLine& app, Outcome& /*outcome*/) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("devices",
                             "List what can run a network: NPUs of this machine, simulated chips, the CPU.\n"
                             "The first column is what --device takes.");
  verb.flag("--all", options->all, "also chips that are known only by their ids, or cannot be simulated");
  verb.flag("--json", options->json, "machine-readable output, of all");
  verb.runs([options] { devices(*options); });
}

}  // namespace skillet::tools
