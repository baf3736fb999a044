#include "kernels/api/node_access.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

namespace skillet::kernels {
namespace {

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string contents(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();  // unlike an iterator, throws nothing
  return out.str();
}

std::string group_name(gid_t id) {
  const group* entry = ::getgrgid(id);
  return entry != nullptr ? entry->gr_name : std::to_string(id);
}

bool in_group(gid_t id) {
  if (::getegid() == id) return true;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
  groups.resize(static_cast<size_t>(std::max(0, ::getgroups(static_cast<int>(groups.size()), groups.data()))));
  return std::ranges::find(groups, id) != groups.end();
}

}  // namespace

std::string missing_permission(const std::string& node) {
  struct stat status {};
  if (::stat(node.c_str(), &status) != 0 || ::geteuid() == 0) return {};
  constexpr mode_t kBoth = 6;
  const mode_t mode = status.st_mode & 0777;
  const bool owner = status.st_uid == ::geteuid(), member = in_group(status.st_gid);
  const mode_t mine = owner ? mode >> 6 : member ? mode >> 3 : mode;
  if ((mine & kBoth) == kBoth) return {};
  const std::string group = group_name(status.st_gid);
  if (member || owner || ((mode >> 3) & kBoth) != kBoth)
    return fmt::format("the mode of {} is {:04o}, owned by group {}: sudo chgrp render {} && sudo chmod 0660 {}", node,
                       mode, group, node, node);
  return fmt::format(
      "{} belongs to group {} (mode {:04o}) and this user is not in it: sudo usermod -aG {} $USER, then "
      "log in again; in a container start it with --group-add {}",
      node, group, mode, group, status.st_gid);
}

std::string container_name(const std::string& root) {
  if (exists(root + "/.dockerenv")) return "docker";
  if (exists(root + "/run/.containerenv")) return "podman";
  const std::string cgroup = contents(root + "/proc/1/cgroup");
  for (const char* name : {"kubepods", "docker", "containerd", "lxc", "libpod"}) {
    if (cgroup.find(name) != std::string::npos) return name;
  }
  const std::string environment = contents(root + "/proc/1/environ");
  const size_t at = environment.find("container=");
  if (at == std::string::npos) return {};
  const size_t start = at + std::string("container=").size();
  return environment.substr(start, environment.find('\0', start) - start);
}

}  // namespace skillet::kernels
