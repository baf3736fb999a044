#include "interpose/chip_identity.h"

#include "drivers/vivante/hw/vivante.h"
#include "uapi/etnaviv_uapi.h"

namespace skillet::interpose {
namespace {

namespace hw = ::skillet::vivante::hw;
using namespace uapi::etnaviv;

constexpr ChipIdentity kIdentities[] = {
    // Feature words from the kernel's database of cores.
    {"a311d",
     "ff100000.npu",
     "/soc/npu@ff100000",
     {0xe0287cac, 0xc1799eff, 0xfefbfadb, 0xeb9d6fbf, 0xedfffced, 0xd30dafc7, 0x7b5ac333, 0xfc8ee200, 0x03fffa6f,
      0x00fe0ef0, 0x0088003c, 0x108048c0, 0x00000010}},
    {"s905d3", "ff100000.npu", "/soc/npu@ff100000", {}},
    {"imx8mp", "38500000.npu", "/soc@0/npu@38500000", {}},
};
constexpr ChipIdentity kOther{"", "virtual.npu", "/npu", {}};

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
    {kParamSoftpinStart, 0x00400000},
};

std::optional<uint64_t> id_param(const hw::ChipIds& ids, uint32_t param) {
  switch (param) {
    case kParamModel: return ids.model;
    case kParamRevision: return ids.revision;
    case kParamProductId: return ids.product;
    case kParamCustomerId: return ids.customer;
    case kParamEcoId: return ids.eco;
    default: return std::nullopt;
  }
}

}  // namespace

const ChipIdentity& identity_of(std::string_view chip) {
  for (const ChipIdentity& one : kIdentities) {
    if (one.chip == chip) return one;
  }
  return kOther;
}

std::optional<uint64_t> chip_param(std::string_view chip, uint32_t param) {
  if (param >= kParamFeaturesFirst && param <= kParamFeaturesLast)
    return identity_of(chip).features[param - kParamFeaturesFirst];
  for (const Constant& one : kConstants) {
    if (one.param == param) return one.value;
  }
  const hw::ChipRow* const row = hw::find_chip(chip);
  return row == nullptr ? std::nullopt : id_param(row->ids, param);
}

}  // namespace skillet::interpose
