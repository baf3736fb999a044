// Facts about ethosu, and the NPU of one of its nodes.
#include "kernels/ethosu/abi.h"
#include "kernels/ethosu/client/ethosu.h"

namespace skillet::kernels::ethosu {
namespace {

constexpr unsigned kLastNode = 31;
constexpr std::string_view kCompatibles[] = {"arm,ethos-u65", "arm,ethos-u85"};
constexpr Notes kNotes[] = {{"", "models compiled for this NPU by Arm's Vela also run on it (docs/ethos-u.md)", ""}};
constexpr Board kBoards[] = {{"fsl,imx93", "NXP i.MX 93", {6, 19}, "the node of arm,ethos-u65 in imx93*.dtb"}};

Result<std::vector<Core>> read_cores(const DrmFile& file) {
  SK_TRY_ASSIGN(Core core, read_core(file));
  return std::vector<Core>{std::move(core)};
}

}  // namespace

Result<Core> read_core(const DrmFile& file) {
  NpuInfo info{};
  DevQuery request{.type = kQueryNpuInfo, .size = sizeof info, .pointer = reinterpret_cast<uintptr_t>(&info)};
  SK_TRY(file.call(kDevQuery, &request, "reading which NPU it is"));
  return Core{.info = {.kernel_driver = kDriverName,
                       .node = file.node(),
                       .compatible = file.calls().compatible(file.fd()),
                       .facts = {{"id", info.id}, {"config", info.config}, {"sram_size", info.sram_size}}}};
}

KernelDriver kernel_driver() {
  return {.name = kDriverName,
          .nodes = {"/dev/accel/accel", 0, kLastNode},
          .major = 1,
          .minor = 0,
          .since = {6, 19},
          .module = "ethosu",
          .config = "CONFIG_DRM_ACCEL_ARM_ETHOSU",
          .platform_driver = kDriverName,
          .module_folder = "drivers/accel",
          .cores = "Arm Ethos-U",
          .compatibles = kCompatibles,
          .vendor_modules = {},
          .boards = kBoards,
          .others = "another accelerator",
          .notes = kNotes,
          .ask = read_cores,
          .open = open_device,
          .record = record,
          .replay = open_replayer};
}

}  // namespace skillet::kernels::ethosu
