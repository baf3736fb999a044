// The search for etnaviv cores among the DRM render nodes.
#include <cerrno>

#include "uapi/etnaviv.h"
#include "uapi/etnaviv_file.h"

namespace skillet::uapi {
namespace {

using etnaviv::File;

// The interface version whose parameters tell one NPU from another.
constexpr int kMajor = 1, kMinor = 4;

Result<Core> read_core(const File& file, uint32_t index, uint64_t model) {
  Core core{.info = {.kernel_driver = etnaviv::kDriverName, .node = file.node()}, .index = index};
  core.info.model = static_cast<uint32_t>(model);
  const std::pair<etnaviv::Param, uint32_t*> params[] = {{etnaviv::kParamRevision, &core.info.revision},
                                                         {etnaviv::kParamProductId, &core.info.product_id},
                                                         {etnaviv::kParamCustomerId, &core.info.customer_id},
                                                         {etnaviv::kParamEcoId, &core.info.eco_id}};
  for (const auto& [param, target] : params) {
    SK_TRY_ASSIGN(const uint64_t value, file.param(index, param));
    *target = static_cast<uint32_t>(value);
  }
  return core;
}

// Cores are numbered without gaps; the first that is not there ends the list.
Result<std::vector<Core>> read_cores(const File& file) {
  std::vector<Core> cores;
  for (uint32_t index = 0; index < etnaviv::kMaxPipes; ++index) {
    etnaviv::GetParam query{.pipe = index, .param = etnaviv::kParamModel, .value = 0};
    const int number = file.try_call(etnaviv::kGetParam, &query);
    if (number == ENXIO || (number == 0 && query.value == 0)) break;
    if (number != 0) return etnaviv::os_error(file.node(), fmt::format("reading the model of core {}", index), number);
    SK_TRY_ASSIGN(const Core core, read_core(file, index, query.value));
    cores.push_back(core);
  }
  return cores;
}

Result<void> ask(const File& file, NodeReport& report) {
  SK_TRY_ASSIGN(const File::Version version, file.version());
  report.kernel_driver = version.name;
  if (version.name != etnaviv::kDriverName) return {};
  if (version.major != kMajor || version.minor < kMinor)
    return error(ErrorCode::unsupported,
                 "{}: etnaviv interface {}.{}; telling NPUs apart needs {}.{} or newer: a Linux kernel from 6.7 on",
                 report.node, version.major, version.minor, kMajor, kMinor);
  SK_TRY_ASSIGN(report.cores, read_cores(file));
  return {};
}

}  // namespace

Result<NodeReport> ask_node(const std::string& node) {
  NodeReport report{.node = node, .kernel_driver = {}, .cores = {}, .error = {}};
  SK_TRY_ASSIGN(const File file, File::open(node));
  SK_TRY(ask(file, report));
  return report;
}

// By opening each name: a stand-in for the kernel answers open(), not a listing of the folder.
std::vector<NodeReport> find_devices(const std::string& root) {
  std::vector<NodeReport> reports;
  for (int minor = etnaviv::kFirstRenderMinor; minor <= etnaviv::kLastRenderMinor; ++minor) {
    NodeReport report{fmt::format("{}/dev/dri/renderD{}", root, minor), {}, {}, {}};
    auto file = File::open_if_there(report.node);
    if (file.ok() && !*file) continue;
    if (!file.ok()) {
      report.error = std::move(file).error();
    } else if (auto asked = ask(**file, report); !asked.ok()) {
      report.error = std::move(asked).error();
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

Result<std::unique_ptr<Device>> open_core(const Core& core) { return etnaviv::open_device(core); }

}  // namespace skillet::uapi
