#include "tools/machine/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace skillet::tools {
namespace {

using kernels::Board;
using kernels::KernelDriver;

class Diagnosis {
 public:
  explicit Diagnosis(const MachineFacts& facts) : facts_(facts), search_(runtime::identify(facts.nodes)) {
    for (const DriverFacts& one : facts.drivers) {
      if (board_of(*one.driver) != nullptr || !one.cores.empty() || !one.disabled_cores.empty())
        wanted_.push_back(&one);
    }
    if (!wanted_.empty()) return;
    for (const DriverFacts& one : facts.drivers) wanted_.push_back(&one);  // it is not known which one is needed
  }

  std::vector<Finding> run() {
    container();
    for (const DriverFacts* one : wanted_) {
      kernel(*one->driver);
      if (search_.npus.empty()) module(*one);
      if (search_.npus.empty() && facts_.has_device_tree) device_tree(*one);
    }
    if (search_.npus.empty() && !facts_.has_device_tree) no_device_tree();
    nodes();
    return std::move(findings_);
  }

 private:
  void add(const char* id, Severity severity, std::string what, std::string fix = {}) {
    findings_.push_back({id, severity, std::move(what), std::move(fix)});
  }
  // Missing parts are only notes if an NPU works.
  Severity problem() const { return search_.npus.empty() ? Severity::problem : Severity::note; }
  std::string board_name() const { return facts_.board.empty() ? "this board" : facts_.board; }
  const Board* board_of(const KernelDriver& driver) const;
  void container();
  void kernel(const KernelDriver& driver);
  void module(const DriverFacts& one);
  void no_device_tree();
  void device_tree(const DriverFacts& one);
  void no_core(const KernelDriver& driver);
  void nodes();
  void node(const kernels::NodeReport& report, const std::string& permission);
  void found(const runtime::FoundNpu& npu);

  const MachineFacts& facts_;
  runtime::NpuSearch search_;
  std::vector<const DriverFacts*> wanted_;  // drivers that this machine may need
  std::vector<Finding> findings_;
};

// The pattern of nodes that hold NPUs: "/dev/dri/renderD*".
std::string node_names(const KernelDriver& driver) { return fmt::format("{}*", driver.nodes.prefix); }

std::string node_names() {
  std::string names;
  for (const KernelDriver& driver : kernels::kernel_drivers()) {
    const std::string one = node_names(driver);
    if (names.find(one) == std::string::npos) names += (names.empty() ? "" : " or ") + one;
  }
  return names;
}

// This machine's board, if the driver supports its NPU.
const Board* Diagnosis::board_of(const KernelDriver& driver) const {
  for (const Board& board : driver.boards) {
    if (std::ranges::find(facts_.board_compatible, board.compatible) != facts_.board_compatible.end()) return &board;
  }
  return nullptr;
}

void Diagnosis::container() {
  if (facts_.container.empty()) return;
  if (!facts_.nodes.empty())
    return add("container", Severity::note, fmt::format("this is a container ({})", facts_.container));
  std::vector<std::string> folders;
  for (const auto* one : wanted_) {
    const std::string_view prefix = one->driver->nodes.prefix;
    std::string folder = fmt::format("--device {}", prefix.substr(0, prefix.rfind('/')));
    if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(std::move(folder));
  }
  add("container-without-node", problem(),
      fmt::format("this is a container ({}) without access to any {}", facts_.container, node_names()),
      fmt::format("start it with {} --group-add \"$(getent group render | cut -d: -f3)\" (podman without root: "
                  "--group-add keep-groups); also run skillet doctor on the host",
                  fmt::join(folders, " or ")));
}

void Diagnosis::kernel(const KernelDriver& driver) {
  kernels::Release now;
  if (std::sscanf(facts_.kernel_release.c_str(), "%d.%d", &now.major, &now.minor) != 2)
    return add("unknown-kernel", Severity::note, "the kernel's version cannot be read from /proc/sys/kernel/osrelease");
  const Board* const board = board_of(driver);
  const kernels::Release least = board != nullptr ? board->since : driver.since;
  std::string needs;
  for (const Board& one : driver.boards)
    needs += fmt::format("{}{} from {}.{}{}", needs.empty() ? "" : ", ", one.name, one.since.major, one.since.minor,
                         one.patches.empty() ? "" : " with patches");
  if (board != nullptr && !board->patches.empty())
    add("kernel-patches", Severity::note,
        fmt::format("no mainline kernel drives the NPU of the {}: it needs {}", board->name, board->patches));
  if (now >= least)
    return add("kernel", Severity::fine, fmt::format("Linux {} (NPU of {} on)", facts_.kernel_release, needs));
  add("old-kernel", problem(), fmt::format("Linux {} is too old (NPU of {} on)", facts_.kernel_release, needs),
      fmt::format("install Linux {}.{} or newer, with its own device tree: on Debian from backports, on Armbian the "
                  "'edge' or 'current' branch",
                  least.major, least.minor));
}

void Diagnosis::module(const DriverFacts& one) {
  const KernelDriver& driver = *one.driver;
  if (!one.vendor_module.empty())
    add("vendor-module", Severity::problem,
        fmt::format("the vendor's kernel driver '{}' is loaded and may hold the NPU", one.vendor_module),
        fmt::format("echo blacklist {} | sudo tee /etc/modprobe.d/skillet.conf, then reboot", one.vendor_module));
  switch (one.module) {
    case ModuleState::loaded:
      return add("module", Severity::fine, fmt::format("the kernel driver {} is loaded", driver.module));
    case ModuleState::on_disk:
      return add("module-not-loaded", Severity::problem,
                 fmt::format("the kernel driver {} is installed but not loaded", driver.module),
                 fmt::format("sudo modprobe {0}; echo {0} | sudo tee /etc/modules-load.d/{0}.conf", driver.module));
    case ModuleState::missing:
      return add("no-module", Severity::problem,
                 fmt::format("the kernel driver {} is neither loaded nor in /lib/modules/{}{}", driver.module,
                             facts_.kernel_release,
                             facts_.container.empty() ? "" : " (a container does not see the host's modules)"),
                 fmt::format("install the package with the kernel's extra modules, or a kernel built with {}=m",
                             driver.config));
  }
}

void Diagnosis::no_device_tree() {
  add("no-device-tree", Severity::problem,
      "this machine has no device tree: it is not a board with an NPU of the mainline kernel (a PC, or a masked /proc "
      "and /sys)",
      "use a simulated chip: --device sim:a311d");
}

void Diagnosis::device_tree(const DriverFacts& one) {
  const KernelDriver& driver = *one.driver;
  if (one.cores.empty() && one.disabled_cores.empty()) return no_core(driver);
  if (one.cores.empty())
    return add(
        "disabled-in-device-tree", Severity::problem,
        fmt::format("the device tree of {} disables its {} {}", board_name(), driver.cores, one.disabled_cores[0]),
        "enable it with a device-tree overlay that sets status = \"okay\" there, then reboot");
  add("device-tree", Severity::fine,
      fmt::format("the device tree of {} has {}s: {}", board_name(), driver.cores, fmt::join(one.cores, " ")));
  if (one.module == ModuleState::loaded && facts_.nodes.empty() && facts_.container.empty())
    add("no-node", Severity::problem, fmt::format("the driver is loaded but created no {}", node_names(driver)),
        fmt::format("see why it failed: dmesg | grep -i {} (often a power domain or clock that the kernel lacks)",
                    driver.module));
}

void Diagnosis::no_core(const KernelDriver& driver) {
  const Board* const board = board_of(driver);
  add("no-device-tree-node", Severity::problem,
      fmt::format("the device tree of {} has no {} (compatible \"{}\")", board_name(), driver.cores,
                  fmt::join(driver.compatibles, "\", \"")),
      board != nullptr
          ? fmt::format("boot with the device tree of Linux {}.{} or newer ({})", board->since.major,
                        board->since.minor, board->core)
          : "this board has no such NPU, or its device tree lacks it: docs/devices.md lists boards known to work");
}

void Diagnosis::found(const runtime::FoundNpu& npu) {
  const std::string& node = npu.core.info.node;
  if (!npu.chip.unproven.empty() && facts_.takes_unproven)
    return add("unproven-npu", Severity::note,
               fmt::format("{} ({}): core {} is an NPU, {}; its operations are compared with the CPU before use: {}",
                           npu.name, node, npu.core.index, npu.chip.title, npu.chip.unproven));
  if (!npu.chip.unproven.empty())
    return add("unproven-npu", Severity::problem,
               fmt::format("{} ({}): core {} is an NPU, {}, {}", npu.name, node, npu.core.index, npu.chip.title,
                           runtime::refusal(npu.chip)),
               "leave SKILLET_UNPROVEN at its default, verify: the NPU then runs what it computes correctly");
  return add("npu", Severity::fine,
             fmt::format("{} ({}): core {} is an NPU, {}", npu.name, node, npu.core.index, npu.chip.title));
}

void Diagnosis::node(const kernels::NodeReport& report, const std::string& permission) {
  if (!permission.empty())
    return add("no-permission", problem(), fmt::format("{} may not be opened", report.node), permission);
  if (report.error)
    return add("node-fails", problem(), report.error->message, "see dmesg | tail, and the advice in the message");
  const KernelDriver* const driver = kernels::find_kernel_driver(report.kernel_driver);
  if (driver == nullptr)
    return add("other-driver", Severity::note,
               fmt::format("{} belongs to the kernel driver '{}': a GPU, or an NPU that this version does not know",
                           report.node, report.kernel_driver));
  bool has_any = false;
  for (const runtime::FoundNpu& npu : search_.npus) {
    if (npu.core.info.node != report.node) continue;
    const std::string_view hint = kernels::notes_of(npu.core.info).hint;
    if (!hint.empty() && !std::exchange(has_any, true)) add("driver-hint", Severity::note, std::string(hint));
    has_any = true;
    found(npu);
  }
  if (has_any) return;
  std::string ids;
  for (const kernels::Core& core : report.cores)
    ids += fmt::format("\n  core {}: {}", core.index, capture::print(core.info));
  add("wrong-core", problem(),
      fmt::format("{} belongs to {} and holds no NPU that this version knows:{}", report.node, driver->name,
                  ids.empty() ? " it has no cores" : ids),
      fmt::format("{} cannot run networks; if one of the cores is an NPU, please report these ids with the name of the "
                  "board",
                  driver->others));
}

void Diagnosis::nodes() {
  if (facts_.nodes.empty() && facts_.container.empty())
    add("no-nodes", Severity::problem, fmt::format("there is no {}: no GPU or NPU driver is active", node_names()),
        "fix the problems above; then the node appears by itself");
  for (size_t i = 0; i < facts_.nodes.size(); ++i)
    node(facts_.nodes[i], i < facts_.permissions.size() ? facts_.permissions[i] : "");
}

}  // namespace

std::vector<Finding> diagnose(const MachineFacts& facts) { return Diagnosis(facts).run(); }

}  // namespace skillet::tools
