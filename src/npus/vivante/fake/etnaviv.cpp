// How the chips of npus/vivante/compiler appear to etnaviv.
#include "kernels/etnaviv/fake/identity.h"
#include "npus/vivante/hw/vivante.h"

namespace skillet::fake::etnaviv::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

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

}  // namespace

std::optional<Identity> identity_of(std::string_view chip) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr) return std::nullopt;
  Identity identity{.chip = row->name};
  for (const Identity& one : kIdentities) {
    if (one.chip == chip) identity = one;
  }
  identity.ids = {row->ids.model, row->ids.revision, row->ids.product, row->ids.customer, row->ids.eco};
  return identity;
}

}  // namespace skillet::fake::etnaviv::vivante
