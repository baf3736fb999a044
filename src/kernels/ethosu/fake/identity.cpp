#include "kernels/ethosu/fake/identity.h"

#define ETHOSU(vendor)                                        \
  namespace skillet::fake::ethosu::vendor {                   \
  std::optional<Identity> identity_of(std::string_view chip); \
  }
#include "vendors.inc"

namespace skillet::fake::ethosu {

std::optional<Identity> identity_of([[maybe_unused]] std::string_view chip) {
  std::optional<Identity> identity;
#define ETHOSU(vendor) \
  if (!identity) identity = vendor::identity_of(chip);
#include "vendors.inc"
  return identity;
}

}  // namespace skillet::fake::ethosu
