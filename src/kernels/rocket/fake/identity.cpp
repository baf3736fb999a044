#include "kernels/rocket/fake/identity.h"

#define ROCKET(vendor)                                                           \
  namespace skillet::fake::rocket::vendor {                                      \
  std::optional<std::vector<NodePlace::Device>> cores_of(std::string_view chip); \
  }
#include "vendors.inc"

namespace skillet::fake::rocket {

std::optional<std::vector<NodePlace::Device>> cores_of([[maybe_unused]] std::string_view chip) {
  std::optional<std::vector<NodePlace::Device>> cores;
#define ROCKET(vendor) \
  if (!cores) cores = vendor::cores_of(chip);
#include "vendors.inc"
  return cores;
}

}  // namespace skillet::fake::rocket
