// How the toy appears to etnaviv, which passes words and buffers as the toy needs them.
#include "kernels/etnaviv/fake/identity.h"
#include "npus/toy/hw/toy.h"

namespace skillet::fake::etnaviv::toy {

std::optional<Identity> identity_of(std::string_view chip) {
  const ::skillet::toy::hw::ChipRow* const row = ::skillet::toy::hw::find_chip(chip);
  if (row == nullptr) return std::nullopt;
  Identity identity{.chip = row->name};
  identity.compatible = "skillet,toy-npu";
  identity.assumption =
      "there is no such chip, and no kernel drives it; it is emulated behind a driver of streams of words";
  identity.ids = {row->model};
  return identity;
}

}  // namespace skillet::fake::etnaviv::toy
