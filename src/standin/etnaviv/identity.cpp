#include "standin/etnaviv/identity.h"

#include "drivers/vivante/hw/vivante.h"
#include "uapi/etnaviv/abi.h"

namespace skillet::standin::etnaviv {
namespace {

namespace hw = ::skillet::vivante::hw;
using namespace uapi::etnaviv;

constexpr Identity kIdentities[] = {
    // Feature words from the kernel's database of cores.
    {.chip = "a311d",
     .device_name = "ff100000.npu",
     .of_full_name = "/soc/npu@ff100000",
     .features = {0xe0287cac, 0xc1799eff, 0xfefbfadb, 0xeb9d6fbf, 0xedfffced, 0xd30dafc7, 0x7b5ac333, 0xfc8ee200,
                  0x03fffa6f, 0x00fe0ef0, 0x0088003c, 0x108048c0, 0x00000010}},
    {.chip = "s905d3", .device_name = "ff100000.npu", .of_full_name = "/soc/npu@ff100000"},
    {.chip = "imx8mp", .device_name = "38500000.npu", .of_full_name = "/soc@0/npu@38500000"},
};
constexpr std::string_view kUnknown =
    "the mainline kernel has no driver for it; it stands behind that of its relatives";

constexpr uint32_t kParamFeaturesFirst = 0x03, kParamFeaturesLast = 0x0f;

struct Constant {
  uint32_t param;
  uint64_t value;
};
// The same for all NPUs in the database.
constexpr Constant kConstants[] = {
    {0x10, 8},     // stream count
    {0x11, 64},    // registers
    {0x12, 256},   // threads
    {0x13, 16},    // vertex cache size
    {0x14, 1},     // shader cores
    {0x15, 1},     // pixel pipes
    {0x16, 1024},  // vertex output buffer size
    {0x17, 0},     // buffer size
    {0x18, 512},   // instructions
    {0x19, 320},   // constants
    {0x1a, 16},    // varyings
    {kParamSoftpinStart, kAddressStart},
};
constexpr uint32_t kIdParams[] = {kParamModel, kParamRevision, kParamProductId, kParamCustomerId, kParamEcoId};

}  // namespace

Identity identity_of(std::string_view chip) {
  Identity identity{.chip = {}, .assumption = kUnknown};
  for (const Identity& one : kIdentities) {
    if (one.chip == chip) identity = one;
  }
  if (const hw::ChipRow* const row = hw::find_chip(chip))
    identity.ids = {row->ids.model, row->ids.revision, row->ids.product, row->ids.customer, row->ids.eco};
  return identity;
}

std::optional<uint64_t> param_of(const Identity& identity, uint32_t param) {
  if (param >= kParamFeaturesFirst && param <= kParamFeaturesLast)
    return identity.features[param - kParamFeaturesFirst];
  for (size_t i = 0; i < identity.ids.size(); ++i) {
    if (kIdParams[i] == param) return identity.ids[i];
  }
  for (const Constant& one : kConstants) {
    if (one.param == param) return one.value;
  }
  return std::nullopt;
}

}  // namespace skillet::standin::etnaviv
