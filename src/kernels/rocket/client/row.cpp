// Facts about rocket, and the NPU of one of its nodes.
#include <algorithm>

#include "kernels/rocket/abi.h"
#include "kernels/rocket/client/rocket.h"

namespace skillet::kernels::rocket {
namespace {

constexpr unsigned kLastNode = 31;
constexpr std::string_view kRk3588 = "rockchip,rk3588-rknn-core", kRk3576 = "rockchip,rk3576-rknn-core";
constexpr std::string_view kCompatibles[] = {kRk3588, kRk3576};
constexpr std::string_view kVendorModules[] = {"rknpu"};
constexpr Board kBoards[] = {
    {"rockchip,rk3588", "Rockchip RK3588", {6, 18}, "npu@fdab0000 in rk3588*.dtb"},
    {"rockchip,rk3588s", "Rockchip RK3588S", {6, 18}, "npu@fdab0000 in rk3588*.dtb"},
    {"rockchip,rk3576",
     "Rockchip RK3576",
     {6, 18},
     "npu@27700000 in rk3576*.dtb",
     "the posted series for the RK3576 (v8 of August 2026: TASK_CON with a task number of 16 bits), both power "
     "domains on each core, and the NPU's rail with regulator-always-on"},
};
constexpr Notes kNotes[] = {
    {kRk3588,
     "Linux sets this NPU's clock to 200 MHz, a fifth of its maximum: networks are slow, and jobs of half a second or "
     "more are dropped",
     ""},
    {kRk3576,
     "the firmware sets this NPU's clock; the kernel must start a task with TASK_CON 0x70001, and keep the NPU's rail "
     "on (regulator-always-on); only one of the two cores is used: two busy cores corrupt each other's results",
     "if only the first job after a pause of the NPU computes, the kernel writes TASK_CON as for the RK3588 (0x7001: "
     "28673 tasks) but needs 0x70001; if only pooling jobs are lost, it ignores the pooling unit's interrupts (bits 10 "
     "and 11); if no job computes, an earlier program wrote elements wider than a byte, or ran on the other core: use "
     "one core at a time, and power off and on again",
     true},
};

Result<std::vector<Core>> read_cores(const DrmFile& file) {
  SK_TRY_ASSIGN(Core core, read_core(file));
  return std::vector<Core>{std::move(core)};
}

}  // namespace

// The driver has no query: the number of its cores, and their names, are in sysfs.
Result<Core> read_core(const DrmFile& file) {
  Core core{.info = {.kernel_driver = kDriverName, .node = file.node(), .compatible = {}, .facts = {}}};
  uint64_t cores = 0;
  for (const std::string& compatible : file.calls().driven_devices(kDriverName)) {
    if (std::ranges::find(kCompatibles, compatible) == std::end(kCompatibles)) continue;
    core.info.compatible = compatible;
    ++cores;
  }
  core.info.facts.push_back({kCoresFact, cores});
  return core;
}

KernelDriver kernel_driver() {
  return {.name = kDriverName,
          .nodes = {"/dev/accel/accel", 0, kLastNode},
          .major = 0,
          .minor = 0,
          .last_major = 1,  // for out-of-tree kernels: mainline has no versions
          .since = {6, 18},
          .module = "rocket",
          .config = "CONFIG_DRM_ACCEL_ROCKET",
          .platform_driver = kDriverName,
          .module_folder = "drivers/accel",
          .cores = "Rockchip NPU core",
          .compatibles = kCompatibles,
          .vendor_modules = kVendorModules,
          .boards = kBoards,
          .others = "another accelerator",
          .notes = kNotes,
          .ask = read_cores,
          .open = open_device,
          .record = record,
          .replay = open_replayer};
}

}  // namespace skillet::kernels::rocket
