#include "interpose/node_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "interpose/libc.h"

namespace skillet::interpose {
namespace {

constexpr std::string_view kDri = "/dev/dri";
// All DRM devices, not only ours: what runs on a simulated chip shall not find a real one by chance.
constexpr std::string_view kCovered[] = {kDri, "/sys/class/drm", "/sys/devices/platform/skillet"};
constexpr std::string_view kCharacterDevices = "/sys/dev/char/226:";

Error os_error(const std::string& path) { return error(ErrorCode::io, "{}: {}", path, std::strerror(errno)); }

}  // namespace

bool NodeTree::covers(const char* path) {
  if (path == nullptr || path[0] != '/') return false;
  const std::string_view text(path);
  if (text.starts_with(kCharacterDevices)) return true;
  for (const std::string_view prefix : kCovered) {
    if (text.starts_with(prefix) && (text.size() == prefix.size() || text[prefix.size()] == '/')) return true;
  }
  return false;
}

std::string NodeTree::undo(const char* path) const {
  const std::string_view text(path);
  if (text.starts_with(root_) && text.size() > root_.size() && text[root_.size()] == '/')
    return std::string(text.substr(root_.size()));
  return std::string(text);
}

std::optional<unsigned> NodeTree::minor_of(dev_t device, ino_t inode) const {
  for (int i = 0; i < node_count_; ++i) {
    if (nodes_[i].device == device && nodes_[i].inode == inode) return nodes_[i].minor;
  }
  return std::nullopt;
}

Result<std::unique_ptr<NodeTree>> NodeTree::create(const std::string& root, const ChipIdentity& identity) {
  std::unique_ptr<NodeTree> tree(new NodeTree);
  std::string folder = root;
  if (folder.empty()) {
    const char* const base = std::getenv("TMPDIR");
    folder = fmt::format("{}/skillet-virtual-XXXXXX", base == nullptr || *base == '\0' ? "/tmp" : base);
    if (::mkdtemp(folder.data()) == nullptr) return os_error(folder);
    tree->is_own_ = true;
    tree->owner_ = ::getpid();
  }
  // Without links in it, so that what realpath() returns starts with it.
  char real[PATH_MAX];
  if (libc::realpath(folder.c_str(), real) == nullptr) return os_error(folder);
  tree->root_ = real;
  SK_TRY(tree->fill(identity).with_context("virtual device node"));
  return tree;
}

NodeTree::~NodeTree() {
  std::error_code ignored;
  if (is_own_ && owner_ == ::getpid()) std::filesystem::remove_all(root_, ignored);
}

Result<void> NodeTree::folder(const std::string& path) const {
  std::error_code ec;
  std::filesystem::create_directories(root_ + path, ec);
  if (ec) return error(ErrorCode::io, "{}{}: {}", root_, path, ec.message());
  return {};
}

Result<void> NodeTree::file(const std::string& path, const std::string& text) const {
  const std::string full = root_ + path;
  const int fd = libc::open(full.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return os_error(full);
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  libc::close(fd);
  if (!written) return os_error(full);
  return {};
}

Result<void> NodeTree::link(const std::string& path, const std::string& target) const {
  const std::string full = root_ + path;
  if (::symlink(target.c_str(), full.c_str()) != 0 && errno != EEXIST) return os_error(full);
  return {};
}

// What a DRM minor has: its node in /dev, its folder under the device, and links to that.
Result<void> NodeTree::add_minor(const std::string& device, const std::string& name, unsigned minor) {
  const std::string node = fmt::format("{}/{}", kDri, name);
  SK_TRY(file(node, ""));
  struct stat status {};
  if (libc::stat((root_ + node).c_str(), &status) != 0) return os_error(root_ + node);
  nodes_[node_count_++] = {status.st_dev, status.st_ino, minor};

  const std::string number = fmt::format("{}:{}", kDrmMajor, minor);
  const std::string folder_path = fmt::format("{}/drm/{}", device, name);
  SK_TRY(folder(folder_path));
  SK_TRY(file(folder_path + "/dev", number + "\n"));
  SK_TRY(file(folder_path + "/uevent",
              fmt::format("MAJOR={}\nMINOR={}\nDEVNAME=dri/{}\nDEVTYPE=drm_minor\n", kDrmMajor, minor, name)));
  SK_TRY(link(folder_path + "/device", "../../../" + std::filesystem::path(device).filename().string()));
  SK_TRY(link(folder_path + "/subsystem", "../../../../../../class/drm"));
  SK_TRY(link("/sys/dev/char/" + number, "../.." + folder_path.substr(std::strlen("/sys"))));
  return link("/sys/class/drm/" + name, "../.." + folder_path.substr(std::strlen("/sys")));
}

Result<void> NodeTree::fill(const ChipIdentity& identity) {
  const std::string device = fmt::format("/sys/devices/platform/skillet/{}", identity.device_name);
  for (const std::string& path : {std::string(kDri), std::string("/sys/dev/char"), std::string("/sys/class/drm"),
                                  std::string("/sys/bus/platform/drivers/etnaviv"), device})
    SK_TRY(folder(path));
  SK_TRY(file(device + "/uevent", fmt::format("DRIVER=etnaviv\nOF_NAME=npu\nOF_FULLNAME={}\n"
                                              "OF_COMPATIBLE_0=vivante,gc\nOF_COMPATIBLE_N=1\n"
                                              "MODALIAS=of:NnpuT(null)Cvivante,gc\n",
                                              identity.of_full_name)));
  SK_TRY(link(device + "/subsystem", "../../../../bus/platform"));
  SK_TRY(link(device + "/driver", "../../../../bus/platform/drivers/etnaviv"));
  SK_TRY(add_minor(device, "card0", kCardMinor));
  return add_minor(device, "renderD128", kRenderMinor);
}

}  // namespace skillet::interpose
