#include "standin/kernels.h"

#include <algorithm>

#include "standin/etnaviv/kernel.h"
#include "standin/rocket/kernel.h"

namespace skillet::standin {

// Whom no other stand-in knows stands behind the first one.
std::unique_ptr<Kernel> create_kernel(const std::string& chip, std::unique_ptr<sim::Device> simulator,
                                      Options options) {
  if (rocket::has(chip)) return rocket::create(chip, std::move(simulator), std::move(options));
  return etnaviv::create(chip, std::move(simulator), std::move(options));
}

Result<std::unique_ptr<Kernel>> create_kernel(const std::string& chip, Options options) {
  SK_TRY_ASSIGN(std::unique_ptr<sim::Device> simulator, sim::create(chip));
  return create_kernel(chip, std::move(simulator), std::move(options));
}

std::vector<std::string_view> call_names(const std::string& chip) {
  if (rocket::has(chip)) return rocket::call_names();
  std::vector<std::string_view> names = etnaviv::call_names();
  if (!chip.empty()) return names;
  for (const std::string_view one : rocket::call_names()) {
    if (std::ranges::find(names, one) == names.end()) names.push_back(one);
  }
  return names;
}

}  // namespace skillet::standin
