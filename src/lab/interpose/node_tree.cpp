#include "lab/interpose/node_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/bytes.h"
#include "base/environment.h"
#include "lab/interpose/libc.h"

namespace skillet::interpose {
namespace {

// All devices of these kinds, not only ours: a program on a simulated chip must not find a real one by chance.
constexpr std::string_view kCovered[] = {"/dev/dri",
                                         "/dev/accel",
                                         "/sys/class/drm",
                                         "/sys/class/accel",
                                         "/sys/bus/platform/drivers",
                                         "/sys/devices/platform/skillet"};
constexpr std::string_view kCharacterDevices[] = {"/sys/dev/char/226:", "/sys/dev/char/261:"};

bool is_in(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

Error os_error(const std::string& path) { return error(ErrorCode::io, "{}: {}", path, std::strerror(errno)); }

}  // namespace

bool NodeTree::covers(const char* path) {
  if (path == nullptr || path[0] != '/') return false;
  const std::string_view text(path);
  return std::ranges::any_of(kCharacterDevices, [&](std::string_view start) { return text.starts_with(start); }) ||
         std::ranges::any_of(kCovered, [&](std::string_view one) { return is_in(text, one); });
}

std::string NodeTree::undo(const char* path) const {
  const std::string_view text(path);
  if (text.starts_with(root_) && text.size() > root_.size() && text[root_.size()] == '/')
    return std::string(text.substr(root_.size()));
  return std::string(text);
}

std::optional<unsigned> NodeTree::minor_of(dev_t device, ino_t inode) const {
  for (const Node& node : nodes_) {
    if (node.device == device && node.inode == inode) return node.minor;
  }
  return std::nullopt;
}

Result<std::unique_ptr<NodeTree>> NodeTree::create(const std::string& root, const fake::NodePlace& place) {
  std::unique_ptr<NodeTree> tree(new NodeTree);
  std::string folder = root;
  if (folder.empty()) {
    const char* const base = environment_variable("TMPDIR");
    folder = fmt::format("{}/skillet-virtual-XXXXXX", base == nullptr || *base == '\0' ? "/tmp" : base);
    if (::mkdtemp(folder.data()) == nullptr) return os_error(folder);
    tree->is_own_ = true;
    tree->owner_ = ::getpid();
  }
  // Without links in it, so that results of realpath() start with it.
  char real[PATH_MAX];
  if (libc::realpath(folder.c_str(), real) == nullptr) return os_error(folder);
  tree->root_ = real;
  SK_TRY(tree->fill(place).with_context("virtual device node"));
  return tree;
}

NodeTree::~NodeTree() {
  if (is_own_ && owner_ == ::getpid()) remove_folder(root_);
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

// Adds a minor number: its node in /dev, its folder under the device, and links to that.
Result<void> NodeTree::add_node(const fake::NodePlace& place, const std::string& device,
                                const fake::NodePlace::Node& node) {
  const std::string path = fmt::format("{}/{}", place.folder, node.name);
  SK_TRY(file(path, ""));
  struct stat status {};
  if (libc::stat((root_ + path).c_str(), &status) != 0) return os_error(root_ + path);
  nodes_.push_back({status.st_dev, status.st_ino, node.minor});

  const std::string number = fmt::format("{}:{}", place.major, node.minor);
  const std::string folder_path = fmt::format("{}/{}/{}", device, place.subsystem, node.name);
  const std::string target = "../.." + folder_path.substr(std::strlen("/sys"));
  SK_TRY(folder(folder_path));
  SK_TRY(file(folder_path + "/dev", number + "\n"));
  SK_TRY(file(folder_path + "/uevent", fmt::format("MAJOR={}\nMINOR={}\nDEVNAME={}\nDEVTYPE={}_minor\n", place.major,
                                                   node.minor, path.substr(std::strlen("/dev/")), place.subsystem)));
  SK_TRY(link(folder_path + "/device", "../../../" + place.device_name));
  SK_TRY(link(folder_path + "/subsystem", "../../../../../../class/" + place.subsystem));
  SK_TRY(link("/sys/dev/char/" + number, target));
  return link(fmt::format("/sys/class/{}/{}", place.subsystem, node.name), target);
}

// Adds a device of the platform bus, as its driver lists it.
Result<void> NodeTree::add_device(const fake::NodePlace& place, const fake::NodePlace::Device& device) {
  const std::string path = "/sys/devices/platform/skillet/" + device.name;
  SK_TRY(folder(path));
  SK_TRY(link(path + "/subsystem", "../../../../bus/platform"));
  if (device.of_full_name.empty()) return file(path + "/uevent", fmt::format("MODALIAS=platform:{}\n", device.name));
  SK_TRY(link(path + "/driver", "../../../../bus/platform/drivers/" + place.driver));
  SK_TRY(link(fmt::format("/sys/bus/platform/drivers/{}/{}", place.driver, device.name),
              "../../../../devices/platform/skillet/" + device.name));
  return file(path + "/uevent",
              fmt::format("DRIVER={}\nOF_NAME=npu\nOF_FULLNAME={}\nOF_COMPATIBLE_0={}\nOF_COMPATIBLE_N=1\n"
                          "MODALIAS=of:NnpuT(null)C{}\n",
                          place.driver, device.of_full_name, device.compatible, device.compatible));
}

Result<void> NodeTree::fill(const fake::NodePlace& place) {
  major_ = place.major;
  const std::string device = "/sys/devices/platform/skillet/" + place.device_name;
  for (const std::string& path : {place.folder, std::string("/sys/dev/char"), "/sys/class/" + place.subsystem,
                                  "/sys/bus/platform/drivers/" + place.driver, device})
    SK_TRY(folder(path));
  SK_TRY(add_device(place, {place.device_name, place.of_full_name, place.compatible}));
  for (const fake::NodePlace::Device& core : place.cores) SK_TRY(add_device(place, core));
  for (const fake::NodePlace::Node& node : place.nodes) SK_TRY(add_node(place, device, node));
  return {};
}

std::string NodeTree::write_fdinfo(const char* path, int fd, const std::string& added) const {
  const std::string name = fmt::format("/fdinfo-{}-{}", ::getpid(), fd);
  std::string lines(4096, '\0');
  const int from = libc::open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t count = from < 0 ? -1 : ::read(from, lines.data(), lines.size());
  if (from >= 0) libc::close(from);
  if (count < 0) return {};
  lines.resize(static_cast<size_t>(count));
  ::unlink((root_ + name).c_str());
  return file(name, lines + added).ok() ? root_ + name : "";
}

}  // namespace skillet::interpose
