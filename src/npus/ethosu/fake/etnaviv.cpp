// How Ethos-U shows to etnaviv, which takes a list of words and buffers; the kernel driver of its own is not here yet.
#include "kernels/etnaviv/fake/identity.h"
#include "npus/ethosu/hw/ethosu.h"

namespace skillet::fake::etnaviv::ethosu {

std::optional<Identity> identity_of(std::string_view chip) {
  const ::skillet::ethosu::hw::ChipRow* const row = ::skillet::ethosu::hw::find_chip(chip);
  if (row == nullptr) return std::nullopt;
  Identity identity{.chip = row->name};
  identity.compatible = "skillet,ethosu-npu";
  identity.assumption = "its own kernel driver is not emulated yet; it stands behind a driver of lists of words";
  identity.ids = {row->model()};
  return identity;
}

}  // namespace skillet::fake::etnaviv::ethosu
