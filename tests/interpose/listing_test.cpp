// How programs find a device: libdrm's search, and the paths it reads. Runs with libskillet-virtual.so preloaded.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xf86drm.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "kernels/api/drm.h"

namespace {

// Our declarations of the DRM core equal those of libdrm's copy of the kernel's header.
namespace drm = ::skillet::kernels::drm;
static_assert(drm::kVersion == DRM_IOCTL_VERSION && drm::kGetUnique == DRM_IOCTL_GET_UNIQUE);
static_assert(drm::kGetMagic == DRM_IOCTL_GET_MAGIC && drm::kSetVersion == DRM_IOCTL_SET_VERSION);
static_assert(drm::kGemClose == DRM_IOCTL_GEM_CLOSE && drm::kGetCap == DRM_IOCTL_GET_CAP);
static_assert(drm::kPrimeHandleToFd == DRM_IOCTL_PRIME_HANDLE_TO_FD);
static_assert(drm::kPrimeFdToHandle == DRM_IOCTL_PRIME_FD_TO_HANDLE);
static_assert(offsetof(drm::Version, name) == offsetof(drm_version, name) &&
              offsetof(drm::Version, desc) == offsetof(drm_version, desc));
static_assert(offsetof(drm::PrimeHandle, fd) == offsetof(drm_prime_handle, fd));
static_assert(drm::kCapPrime == DRM_CAP_PRIME && drm::kCapSyncobjTimeline == DRM_CAP_SYNCOBJ_TIMELINE);
static_assert(drm::kPrimeCloexec == DRM_CLOEXEC && drm::kPrimeReadWrite == DRM_RDWR);
static_assert(drm::kFirstDriverNr == DRM_COMMAND_BASE && drm::kType == DRM_IOCTL_BASE);

struct Text {
  explicit Text(char* from) : text(from == nullptr ? "" : from) { ::free(from); }
  std::string text;
};

TEST(Libdrm, FindsTheDevice) {
  drmDevicePtr devices[8] = {};
  ASSERT_EQ(::drmGetDevices2(0, devices, 8), 1);
  EXPECT_EQ(devices[0]->bustype, DRM_BUS_PLATFORM);
  EXPECT_EQ(devices[0]->available_nodes, 1 << DRM_NODE_PRIMARY | 1 << DRM_NODE_RENDER);
  EXPECT_STREQ(devices[0]->nodes[DRM_NODE_RENDER], "/dev/dri/renderD128");
  EXPECT_STREQ(devices[0]->businfo.platform->fullname, "/soc/npu@ff100000");
  EXPECT_STREQ(devices[0]->deviceinfo.platform->compatible[0], "vivante,gc");
  EXPECT_EQ(devices[0]->deviceinfo.platform->compatible[1], nullptr);
  ::drmFreeDevices(devices, 1);
}

TEST(Libdrm, KnowsAnOpenNode) {
  const int fd = ::open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const std::unique_ptr<drmVersion, decltype(&::drmFreeVersion)> version(::drmGetVersion(fd), &::drmFreeVersion);
  ASSERT_NE(version, nullptr);
  EXPECT_STREQ(version->name, "etnaviv");
  EXPECT_EQ(version->version_major, 1);
  EXPECT_EQ(version->version_minor, 4);
  EXPECT_EQ(::drmGetNodeTypeFromFd(fd), DRM_NODE_RENDER);
  EXPECT_EQ(Text(::drmGetRenderDeviceNameFromFd(fd)).text, "/dev/dri/renderD128");
  EXPECT_EQ(Text(::drmGetPrimaryDeviceNameFromFd(fd)).text, "/dev/dri/card0");
  EXPECT_EQ(Text(::drmGetDeviceNameFromFd2(fd)).text, "/dev/dri/renderD128");
  drmDevicePtr device = nullptr;
  ASSERT_EQ(::drmGetDevice2(fd, 0, &device), 0);
  EXPECT_STREQ(device->nodes[DRM_NODE_PRIMARY], "/dev/dri/card0");
  ::drmFreeDevice(&device);
  uint64_t value = 0;
  EXPECT_EQ(::drmGetCap(fd, DRM_CAP_PRIME, &value), 0);
  EXPECT_EQ(value, uint64_t{DRM_PRIME_CAP_IMPORT | DRM_PRIME_CAP_EXPORT});
  EXPECT_EQ(::drmGetCap(fd, DRM_CAP_SYNCOBJ, &value), 0);
  EXPECT_EQ(value, 0u);
  EXPECT_NE(::drmGetCap(fd, DRM_CAP_DUMB_BUFFER, &value), 0);
  ::close(fd);
}

TEST(Libdrm, OpensByName) {
  const int fd = ::drmOpenWithType("etnaviv", nullptr, DRM_NODE_RENDER);
  ASSERT_GE(fd, 0);
  ::drmClose(fd);
}

TEST(Paths, NodesAreCharacterDevices) {
  struct stat status {};
  ASSERT_EQ(::stat("/dev/dri/renderD128", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(status.st_rdev, makedev(226, 128));
  struct statx extended {};
  ASSERT_EQ(::statx(AT_FDCWD, "/dev/dri/card0", 0, STATX_ALL, &extended), 0);
  EXPECT_TRUE(S_ISCHR(extended.stx_mode));
  EXPECT_EQ(extended.stx_rdev_major, 226u);
  EXPECT_EQ(extended.stx_rdev_minor, 0u);
  EXPECT_EQ(::access("/dev/dri/renderD128", R_OK | W_OK), 0);
  EXPECT_NE(::access("/dev/dri/renderD200", F_OK), 0);
  ASSERT_EQ(::stat("/dev/dri", &status), 0);
  EXPECT_TRUE(S_ISDIR(status.st_mode));
  ASSERT_EQ(::stat("/dev/null", &status), 0);
  EXPECT_EQ(status.st_rdev, makedev(1, 3));
}

TEST(Paths, AreListed) {
  std::vector<std::string> names;
  DIR* const folder = ::opendir("/dev/dri");
  ASSERT_NE(folder, nullptr);
  while (const dirent* const entry = ::readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    EXPECT_EQ(entry->d_type, DT_CHR);
    names.emplace_back(entry->d_name);
    // Also by a path relative to an open folder.
    const int fd = ::openat(::dirfd(folder), entry->d_name, O_RDWR);
    const std::unique_ptr<drmVersion, decltype(&::drmFreeVersion)> version(::drmGetVersion(fd), &::drmFreeVersion);
    EXPECT_NE(version, nullptr) << entry->d_name;
    ::close(fd);
  }
  ::closedir(folder);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"card0", "renderD128"}));
  dirent** entries = nullptr;
  const int count = ::scandir("/sys/class/drm", &entries, nullptr, alphasort);
  ASSERT_EQ(count, 4);
  EXPECT_STREQ(entries[2]->d_name, "card0");
  for (int i = 0; i < count; ++i) ::free(entries[i]);
  ::free(entries);
}

TEST(Paths, LinksLeadToWhatTheProcessSees) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink("/sys/dev/char/226:128/device/subsystem", target, sizeof target);
  ASSERT_GT(length, 0);
  EXPECT_TRUE(std::string(target, static_cast<size_t>(length)).ends_with("/bus/platform"));
  const std::string device = Text(::realpath("/sys/dev/char/226:128/device", nullptr)).text;
  EXPECT_EQ(device, "/sys/devices/platform/skillet/ff100000.npu");
  std::ifstream uevent(device + "/uevent");
  std::string line;
  ASSERT_TRUE(std::getline(uevent, line));
  EXPECT_EQ(line, "DRIVER=etnaviv");
}

}  // namespace
