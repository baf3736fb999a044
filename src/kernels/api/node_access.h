// Why this process may not open a device node, with advice for the user.
// Called by the kernel devices when open() fails, and by `skillet doctor`.
// Must not know: what the node is for.
#pragma once

#include <string>

namespace skillet::kernels {

// "/dev/dri/renderD128 belongs to group render (mode 0660) and this user is not in it: sudo usermod -aG render $USER,
// then log in again". Empty if the permission bits let this process read and write.
std::string missing_permission(const std::string& node);

// "podman", "docker" and so on if this process runs in a container; empty otherwise. `root` is a prefix of the paths
// that show it.
std::string container_name(const std::string& root = "");

}  // namespace skillet::kernels
