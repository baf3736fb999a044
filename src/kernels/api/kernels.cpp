// The supported kernel drivers, and the search for their devices.
#include "kernels/api/kernels.h"

#include <algorithm>
#include <array>

#include "base/leaked.h"
#include "kernels/ethosu/client/ethosu.h"
#include "kernels/etnaviv/client/etnaviv.h"
#include "kernels/rocket/client/rocket.h"

namespace skillet::kernels {
namespace {

std::vector<NodeRange> node_ranges() {
  std::vector<NodeRange> ranges;
  for (const KernelDriver& driver : kernel_drivers()) {
    if (std::ranges::find(ranges, driver.nodes) == ranges.end()) ranges.push_back(driver.nodes);
  }
  return ranges;
}

Result<void> ask(const DrmFile& file, NodeReport& report) {
  SK_TRY_ASSIGN(const DrmFile::Version version, file.version());
  report.kernel_driver = version.name;
  const KernelDriver* const driver = find_kernel_driver(version.name);
  if (driver == nullptr) return {};
  const bool is_later = version.major > driver->major && version.major <= driver->last_major;
  if (!is_later && (version.major != driver->major || version.minor < driver->minor))
    return error(ErrorCode::unsupported,
                 "{}: {} interface {}.{}; identifying the NPU needs {}.{} or newer: Linux {}.{} or newer", report.node,
                 driver->name, version.major, version.minor, driver->major, driver->minor, driver->since.major,
                 driver->since.minor);
  SK_TRY_ASSIGN(report.cores, driver->ask(file));
  return {};
}

Result<const KernelDriver*> driver_of(const Core& core) {
  const KernelDriver* const driver = find_kernel_driver(core.info.kernel_driver);
  if (driver != nullptr) return driver;
  return error(ErrorCode::unsupported, "{}: this build does not support the kernel driver '{}'", core.info.node,
               core.info.kernel_driver);
}

}  // namespace

std::span<const KernelDriver> kernel_drivers() {
  return leaked([] { return std::array{etnaviv::kernel_driver(), rocket::kernel_driver(), ethosu::kernel_driver()}; });
}

const KernelDriver* find_kernel_driver(std::string_view name) {
  const auto all = kernel_drivers();
  const auto found = std::ranges::find(all, name, &KernelDriver::name);
  return found == all.end() ? nullptr : &*found;
}

Notes notes_of(const capture::DeviceInfo& info) {
  const KernelDriver* const driver = find_kernel_driver(info.kernel_driver);
  if (driver == nullptr) return {};
  for (const Notes& one : driver->notes) {
    if (one.compatible.empty() || one.compatible == info.compatible) return one;
  }
  return {};
}

Result<DrmFile> hold_turn(const Core& core, const SyscallsRef& calls) {
  SK_TRY_ASSIGN(DrmFile file, DrmFile::open(calls, core.info.node));
  if (notes_of(core.info).takes_turns) SK_TRY(file.take_turn());
  return file;
}

std::string searched_nodes() {
  std::string text;
  for (const NodeRange& range : node_ranges()) text += fmt::format("{}{}*", text.empty() ? "" : " or ", range.prefix);
  return text;
}

Result<NodeReport> ask_node(const std::string& node, const SyscallsRef& calls) {
  NodeReport report{.node = node, .kernel_driver = {}, .cores = {}, .error = {}};
  SK_TRY_ASSIGN(const DrmFile file, DrmFile::open(calls, node));
  SK_TRY(ask(file, report));
  return report;
}

// Opens each possible name: an emulated kernel driver supports open(), but not listing the folder.
std::vector<NodeReport> find_devices(const std::string& root, const SyscallsRef& calls) {
  std::vector<NodeReport> reports;
  for (const NodeRange& range : node_ranges()) {
    for (unsigned number = range.first; number <= range.last; ++number) {
      NodeReport report{fmt::format("{}{}{}", root, range.prefix, number), {}, {}, {}};
      auto file = DrmFile::open_if_there(calls, report.node);
      if (file.ok() && !*file) continue;
      if (!file.ok()) {
        report.error = std::move(file).error();
      } else if (auto asked = ask(**file, report); !asked.ok()) {
        report.error = std::move(asked).error();
      }
      reports.push_back(std::move(report));
    }
  }
  return reports;
}

Result<std::unique_ptr<Device>> open_core(const Core& core, const SyscallsRef& calls) {
  SK_TRY_ASSIGN(const KernelDriver* driver, driver_of(core));
  return driver->open(core, calls);
}

Result<std::unique_ptr<Replayer>> open_replayer(const Core& core, const SyscallsRef& calls) {
  SK_TRY_ASSIGN(const KernelDriver* driver, driver_of(core));
  return driver->replay(core, calls);
}

}  // namespace skillet::kernels
