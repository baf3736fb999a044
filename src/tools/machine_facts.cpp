#include "tools/machine_facts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "uapi/node_access.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTreeEntries = 100'000;
constexpr const char* kVendorModules[] = {"galcore", "vha", "rknpu"};

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string first_line(const fs::path& path) {
  const std::string text = contents(path);
  return text.substr(0, text.find_first_of(std::string("\n\0", 2)));
}

// Device-tree properties hold strings with a zero byte after each.
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

// Calls `visit` for each file below `folder`; what cannot be read is left out.
template <typename Visit>
void walk(const fs::path& folder, Visit visit) {
  std::error_code failed;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, failed);
  for (size_t i = 0; !failed && it != fs::recursive_directory_iterator() && i < kMaxTreeEntries; ++i) {
    visit(it->path());
    it.increment(failed);
  }
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
    if (std::ranges::find(compatible, "vivante,gc") == compatible.end()) return;
    const std::string status = first_line(path.parent_path() / "status");
    const std::string name = "/" + path.parent_path().lexically_relative(tree).string();
    (status.empty() || status == "okay" || status == "ok" ? facts.cores : facts.disabled_cores).push_back(name);
  });
  std::ranges::sort(facts.cores);
  std::ranges::sort(facts.disabled_cores);
}

bool module_on_disk(const std::string& root, const std::string& release) {
  bool found = false;
  walk(root + "/lib/modules/" + release + "/kernel/drivers/gpu",
       [&](const fs::path& path) { found |= path.filename().string().starts_with("etnaviv.ko"); });
  return found || contents(root + "/lib/modules/" + release + "/modules.dep").find("/etnaviv.ko") != std::string::npos;
}

ModuleState module_state(const std::string& root, const std::string& release) {
  const bool listed = ("\n" + contents(root + "/proc/modules")).find("\netnaviv ") != std::string::npos;
  if (listed || is_there(root + "/sys/module/etnaviv") || is_there(root + "/sys/bus/platform/drivers/etnaviv-gpu"))
    return ModuleState::loaded;
  return module_on_disk(root, release) ? ModuleState::on_disk : ModuleState::missing;
}

}  // namespace

MachineFacts gather_facts(const std::string& root) {
  MachineFacts facts;
  facts.container = uapi::container_name(root);
  facts.kernel_release = first_line(root + "/proc/sys/kernel/osrelease");
  read_device_tree(root, facts);
  facts.module = module_state(root, facts.kernel_release);
  const std::string modules = "\n" + contents(root + "/proc/modules");
  for (const char* name : kVendorModules) {
    if (modules.find("\n" + std::string(name) + " ") != std::string::npos) facts.vendor_module = name;
  }
  facts.nodes = uapi::find_devices(root);
  for (const uapi::NodeReport& node : facts.nodes) facts.permissions.push_back(uapi::missing_permission(node.node));
  return facts;
}

}  // namespace skillet::tools
