// Facts about etnaviv, and the cores of one of its nodes.
#include <cerrno>

#include "kernels/etnaviv/abi.h"
#include "kernels/etnaviv/client/etnaviv.h"

namespace skillet::kernels::etnaviv {
namespace {

constexpr std::string_view kCompatibles[] = {"vivante,gc"};
constexpr std::string_view kVendorModules[] = {"galcore"};
constexpr Board kBoards[] = {
    {"amlogic,a311d", "Amlogic A311D", {6, 7}, "npu@ff100000 in meson-g12b-a311d*.dtb"},
    {"fsl,imx8mp", "NXP i.MX 8M Plus", {6, 8}, "npu@38500000 in imx8mp*.dtb"},
};

Result<uint64_t> read_param(const DrmFile& file, uint32_t index, uint32_t param) {
  GetParam query{.pipe = index, .param = param, .value = 0};
  const int number = file.try_call(kGetParam, &query);
  if (number != 0) return file.failure(number, fmt::format("reading parameter {:#x} of core {}", param, index));
  return query.value;
}

// Cores are numbered without gaps; the first missing number ends the list.
Result<std::vector<Core>> read_cores(const DrmFile& file) {
  std::vector<Core> cores;
  for (uint32_t index = 0; index < kMaxPipes; ++index) {
    GetParam query{.pipe = index, .param = kParamModel, .value = 0};
    const int number = file.try_call(kGetParam, &query);
    if (number == ENXIO || (number == 0 && query.value == 0)) break;
    if (number != 0) return file.failure(number, fmt::format("reading the model of core {}", index));
    SK_TRY_INTO(cores.emplace_back(), read_core(file, index));
  }
  return cores;
}

}  // namespace

Result<Core> read_core(const DrmFile& file, uint32_t index) {
  constexpr std::pair<const char*, Param> kFacts[] = {{"model", kParamModel},
                                                      {"revision", kParamRevision},
                                                      {"product", kParamProductId},
                                                      {"customer", kParamCustomerId},
                                                      {"eco", kParamEcoId}};
  Core core{.info = {.kernel_driver = kDriverName, .node = file.node()}, .index = index};
  core.info.compatible = file.calls().compatible(file.fd());
  for (const auto& [name, param] : kFacts) {
    SK_TRY_ASSIGN(const uint64_t value, read_param(file, index, param));
    core.info.facts.push_back({name, value});
  }
  return core;
}

KernelDriver kernel_driver() {
  return {.name = kDriverName,
          .nodes = {"/dev/dri/renderD", drm::kRenderMinor, drm::kLastRenderMinor},
          .major = 1,
          .minor = 4,
          .since = {6, 7},
          .module = "etnaviv",
          .config = "CONFIG_DRM_ETNAVIV",
          .platform_driver = "etnaviv-gpu",
          .module_folder = "drivers/gpu",
          .cores = "Vivante core",
          .compatibles = kCompatibles,
          .vendor_modules = kVendorModules,
          .boards = kBoards,
          .others = "a GPU",
          .ask = read_cores,
          .open = open_device,
          .record = record,
          .replay = open_replayer};
}

}  // namespace skillet::kernels::etnaviv
