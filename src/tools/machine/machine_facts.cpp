#include "tools/machine/machine_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kernels/api/node_access.h"
#include "runtime/session_keys.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTreeEntries = 100'000;

// Empty if it cannot be read, as a folder; the first bytes of a file without end.
std::string contents(const fs::path& path) {
  constexpr size_t kMost = size_t{16} << 20;
  std::string out;
  std::array<char, 4096> block;
  std::ifstream in(path, std::ios::binary);
  while (out.size() < kMost && (in.read(block.data(), block.size()), in.gcount() > 0))
    out.append(block.data(), static_cast<size_t>(in.gcount()));
  return out;
}

std::string first_line(const fs::path& path) {
  const std::string text = contents(path);
  return text.substr(0, text.find_first_of(std::string("\n\0", 2)));
}

// Reads strings of a device-tree property, each with a terminating zero byte.
std::vector<std::string> strings(const fs::path& path) {
  std::vector<std::string> out;
  std::string text = contents(path);
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\0', start), text.size());
    out.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return out;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Calls `visit` for each file below `folder`; skips what cannot be read.
template <typename Visit>
void walk(const fs::path& folder, Visit visit) {
  std::error_code failed;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, failed);
  for (size_t i = 0; !failed && it != fs::recursive_directory_iterator() && i < kMaxTreeEntries; ++i) {
    visit(it->path());
    it.increment(failed);
  }
}

bool takes(const kernels::KernelDriver& driver, const std::vector<std::string>& compatible) {
  return std::ranges::any_of(
      driver.compatibles, [&](std::string_view one) { return std::ranges::find(compatible, one) != compatible.end(); });
}

void read_device_tree(const std::string& root, MachineFacts& facts) {
  fs::path tree = root + "/sys/firmware/devicetree/base";
  if (!is_there(tree)) tree = root + "/proc/device-tree";
  facts.has_device_tree = is_there(tree);
  if (!facts.has_device_tree) return;
  facts.board = first_line(tree / "model");
  facts.board_compatible = strings(tree / "compatible");
  walk(tree, [&](const fs::path& path) {
    if (path.filename() != "compatible") return;
    const std::vector<std::string> compatible = strings(path);
    const std::string name = "/" + path.parent_path().lexically_relative(tree).string();
    const std::string status = first_line(path.parent_path() / "status");
    const bool is_enabled = status.empty() || status == "okay" || status == "ok";
    for (DriverFacts& one : facts.drivers) {
      if (takes(*one.driver, compatible)) (is_enabled ? one.cores : one.disabled_cores).push_back(name);
    }
  });
  for (DriverFacts& one : facts.drivers) {
    std::ranges::sort(one.cores);
    std::ranges::sort(one.disabled_cores);
  }
}

bool module_on_disk(const std::string& root, const std::string& release, const kernels::KernelDriver& driver) {
  const std::string modules = root + "/lib/modules/" + release, file = fmt::format("{}.ko", driver.module);
  bool found = false;
  walk(fmt::format("{}/kernel/{}", modules, driver.module_folder),
       [&](const fs::path& path) { found |= path.filename().string().starts_with(file); });
  return found || contents(modules + "/modules.dep").find("/" + file) != std::string::npos;
}

bool module_listed(const std::string& root, std::string_view module) {
  return ("\n" + contents(root + "/proc/modules")).find(fmt::format("\n{} ", module)) != std::string::npos;
}

ModuleState module_state(const std::string& root, const std::string& release, const kernels::KernelDriver& driver) {
  if (module_listed(root, driver.module) || is_there(fmt::format("{}/sys/module/{}", root, driver.module)) ||
      is_there(fmt::format("{}/sys/bus/platform/drivers/{}", root, driver.platform_driver)))
    return ModuleState::loaded;
  return module_on_disk(root, release, driver) ? ModuleState::on_disk : ModuleState::missing;
}

}  // namespace

MachineFacts gather_facts(const std::string& root) {
  MachineFacts facts;
  facts.container = kernels::container_name(root);
  facts.kernel_release = first_line(root + "/proc/sys/kernel/osrelease");
  for (const kernels::KernelDriver& driver : kernels::kernel_drivers()) {
    DriverFacts& one = facts.drivers.emplace_back();
    one.driver = &driver;
    one.module = module_state(root, facts.kernel_release, driver);
    for (const std::string_view module : driver.vendor_modules) {
      if (module_listed(root, module)) one.vendor_module = module;
    }
  }
  read_device_tree(root, facts);
  facts.nodes = kernels::find_devices(root);
  facts.takes_unproven = runtime::unproven_of_environment() != npu::Unproven::refuse;
  for (const kernels::NodeReport& node : facts.nodes)
    facts.permissions.push_back(kernels::missing_permission(node.node));
  return facts;
}

}  // namespace skillet::tools
