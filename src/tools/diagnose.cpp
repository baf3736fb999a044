#include "tools/diagnose.h"

#include <fmt/format.h>

#include <cstdio>

namespace skillet::tools {
namespace {

// Boards whose NPU the mainline kernel drives, and since when.
struct Board {
  const char* compatible;
  const char* name;
  int major, minor;
  const char* core;  // in its device tree
};
constexpr Board kBoards[] = {
    {"amlogic,a311d", "Amlogic A311D", 6, 7, "npu@ff100000 in meson-g12b-a311d*.dtb"},
    {"fsl,imx8mp", "NXP i.MX 8M Plus", 6, 8, "npu@38500000 in imx8mp*.dtb"},
};

class Diagnosis {
 public:
  explicit Diagnosis(const MachineFacts& facts) : facts_(facts), search_(runtime::identify(facts.nodes)) {
    for (const std::string& compatible : facts.board_compatible) {
      for (const Board& board : kBoards) {
        if (compatible == board.compatible) board_ = &board;
      }
    }
  }

  std::vector<Finding> run() {
    container();
    kernel();
    if (search_.npus.empty()) {
      module();
      device_tree();
    }
    nodes();
    return std::move(findings_);
  }

 private:
  void add(const char* id, Severity severity, std::string what, std::string fix = {}) {
    findings_.push_back({id, severity, std::move(what), std::move(fix)});
  }
  // Missing pieces matter less once an NPU answers.
  Severity problem() const { return search_.npus.empty() ? Severity::problem : Severity::note; }
  void container();
  void kernel();
  void module();
  void device_tree();
  void nodes();
  void node(const uapi::NodeReport& report, const std::string& permission);

  const MachineFacts& facts_;
  runtime::NpuSearch search_;
  const Board* board_ = nullptr;
  std::vector<Finding> findings_;
};

void Diagnosis::container() {
  if (facts_.container.empty()) return;
  if (!facts_.nodes.empty())
    return add("container", Severity::note, fmt::format("this is a container ({})", facts_.container));
  add("container-without-node", problem(),
      fmt::format("this is a container ({}), and no /dev/dri/renderD* was handed in", facts_.container),
      "start it with --device /dev/dri --group-add \"$(getent group render | cut -d: -f3)\" (podman without root: "
      "--group-add keep-groups); run skillet doctor on the host too");
}

void Diagnosis::kernel() {
  int major = 0, minor = 0;
  if (std::sscanf(facts_.kernel_release.c_str(), "%d.%d", &major, &minor) != 2)
    return add("unknown-kernel", Severity::note, "the kernel's version cannot be read from /proc/sys/kernel/osrelease");
  const Board& least = board_ != nullptr ? *board_ : kBoards[0];
  const bool old = major < least.major || (major == least.major && minor < least.minor);
  std::string needs;
  for (const Board& board : kBoards)
    needs += fmt::format("{}{} from {}.{}", needs.empty() ? "" : ", ", board.name, board.major, board.minor);
  if (!old) return add("kernel", Severity::fine, fmt::format("Linux {} (NPU of {} on)", facts_.kernel_release, needs));
  add("old-kernel", problem(), fmt::format("Linux {} is too old (NPU of {} on)", facts_.kernel_release, needs),
      fmt::format("install Linux {}.{} or newer, with its own device tree: on Debian from backports, on Armbian the "
                  "'edge' or 'current' branch",
                  least.major, least.minor));
}

void Diagnosis::module() {
  if (!facts_.vendor_module.empty())
    add("vendor-module", Severity::problem,
        fmt::format("the vendor's kernel driver '{}' is loaded and may hold the NPU", facts_.vendor_module),
        fmt::format("echo blacklist {} | sudo tee /etc/modprobe.d/skillet.conf, then reboot", facts_.vendor_module));
  switch (facts_.module) {
    case ModuleState::loaded: return add("module", Severity::fine, "the kernel driver etnaviv is loaded");
    case ModuleState::on_disk:
      return add("module-not-loaded", Severity::problem, "the kernel driver etnaviv is installed and not loaded",
                 "sudo modprobe etnaviv; echo etnaviv | sudo tee /etc/modules-load.d/etnaviv.conf");
    case ModuleState::missing:
      return add(
          "no-module", Severity::problem,
          fmt::format("the kernel driver etnaviv is neither loaded nor in /lib/modules/{}{}", facts_.kernel_release,
                      facts_.container.empty() ? "" : " (a container does not see the host's modules)"),
          "install the package with the kernel's extra modules, or a kernel built with CONFIG_DRM_ETNAVIV=m");
  }
}

void Diagnosis::device_tree() {
  if (!facts_.has_device_tree)
    return add(
        "no-device-tree", Severity::problem,
        "this machine has no device tree: not a board whose NPU etnaviv drives (a PC, or a masked /proc and /sys)",
        "use a simulated chip: --device sim:a311d");
  const std::string board = facts_.board.empty() ? "this board" : facts_.board;
  if (!facts_.cores.empty()) {
    std::string paths;
    for (const std::string& path : facts_.cores) paths += " " + path;
    add("device-tree", Severity::fine, fmt::format("the device tree of {} has Vivante cores:{}", board, paths));
    if (facts_.module == ModuleState::loaded && facts_.nodes.empty() && facts_.container.empty())
      add("no-node", Severity::problem, "the driver is loaded and made no /dev/dri/renderD*",
          "see why it failed: dmesg | grep -i etnaviv (often a power domain or clock that the kernel lacks)");
    return;
  }
  if (!facts_.disabled_cores.empty())
    return add("disabled-in-device-tree", Severity::problem,
               fmt::format("the device tree of {} disables its Vivante core {}", board, facts_.disabled_cores[0]),
               "enable it with a device-tree overlay that sets status = \"okay\" there, then reboot");
  add("no-device-tree-node", Severity::problem,
      fmt::format("the device tree of {} has no Vivante core (compatible \"vivante,gc\")", board),
      board_ != nullptr ? fmt::format("boot with the device tree of Linux {}.{} or newer ({})", board_->major,
                                      board_->minor, board_->core)
                        : "this board has no such NPU, or its device tree lacks it: boards known to work are in "
                          "docs/devices.md");
}

void Diagnosis::node(const uapi::NodeReport& report, const std::string& permission) {
  if (!permission.empty())
    return add("no-permission", problem(), fmt::format("{} may not be opened", report.node), permission);
  if (report.error)
    return add("node-fails", problem(), report.error->message, "see dmesg | tail, and the advice in the message");
  if (report.kernel_driver != "etnaviv")
    return add("other-driver", Severity::note,
               fmt::format("{} belongs to the kernel driver '{}': a GPU", report.node, report.kernel_driver));
  std::string ids;
  for (const uapi::Core& core : report.cores)
    ids +=
        fmt::format("\n  core {}: model {:#x}, revision {:#x}, product {:#x}, customer {:#x}, eco {:#x}", core.index,
                    core.info.model, core.info.revision, core.info.product_id, core.info.customer_id, core.info.eco_id);
  for (const runtime::FoundNpu& npu : search_.npus) {
    if (npu.core.info.node == report.node)
      return add("npu", Severity::fine,
                 fmt::format("{} ({}): core {} is an NPU, {}", npu.name, report.node, npu.core.index, npu.chip.title));
  }
  add("wrong-core", problem(),
      fmt::format("{} belongs to etnaviv and holds no NPU that this version knows:{}", report.node,
                  ids.empty() ? " it has no cores" : ids),
      "a GPU cannot run networks; if one of the cores is an NPU, please report these ids with the name of the board");
}

void Diagnosis::nodes() {
  if (facts_.nodes.empty() && facts_.container.empty())
    add("no-nodes", Severity::problem, "there is no /dev/dri/renderD*: no driver of a GPU or NPU is at work",
        "mend what is listed above; then the node appears by itself");
  for (size_t i = 0; i < facts_.nodes.size(); ++i)
    node(facts_.nodes[i], i < facts_.permissions.size() ? facts_.permissions[i] : "");
}

}  // namespace

std::vector<Finding> diagnose(const MachineFacts& facts) { return Diagnosis(facts).run(); }

}  // namespace skillet::tools
