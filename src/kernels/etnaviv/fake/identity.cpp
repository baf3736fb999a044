#include "kernels/etnaviv/fake/identity.h"

#include "kernels/etnaviv/abi.h"

#define ETNAVIV(vendor)                                       \
  namespace skillet::fake::etnaviv::vendor {                  \
  std::optional<Identity> identity_of(std::string_view chip); \
  }
#include "vendors.inc"

namespace skillet::fake::etnaviv {
namespace {

using namespace kernels::etnaviv;

constexpr std::string_view kUnknown =
    "the mainline kernel has no driver for it; the driver of related NPUs is emulated";

constexpr uint32_t kParamFeaturesFirst = 0x03, kParamFeaturesLast = 0x0f;

struct Constant {
  uint32_t param;
  uint64_t value;
};
// Equal for all NPUs in the database.
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

Identity identity_of([[maybe_unused]] std::string_view chip) {
  std::optional<Identity> identity;
#define ETNAVIV(vendor) \
  if (!identity) identity = vendor::identity_of(chip);
#include "vendors.inc"
  return identity.value_or(Identity{.chip = {}, .assumption = kUnknown});
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

}  // namespace skillet::fake::etnaviv
