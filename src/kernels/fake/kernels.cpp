#include "kernels/fake/kernels.h"

#include <algorithm>
#include <cstdlib>

#include "base/environment.h"
#include "base/parse_number.h"
#include "kernels/ethosu/fake/kernel.h"
#include "kernels/etnaviv/fake/kernel.h"
#include "kernels/rocket/fake/kernel.h"

namespace skillet::fake {

// Chips that no other fake kernel claims go to the first one.
std::unique_ptr<Kernel> create_kernel(const std::string& chip, std::unique_ptr<sim::Device> simulator,
                                      Options options) {
  if (rocket::has(chip)) return rocket::create(chip, std::move(simulator), std::move(options));
  if (ethosu::has(chip)) return ethosu::create(chip, std::move(simulator), std::move(options));
  return etnaviv::create(chip, std::move(simulator), std::move(options));
}

Result<std::unique_ptr<Kernel>> create_kernel(const std::string& chip, Options options) {
  SK_TRY_ASSIGN(std::unique_ptr<sim::Device> simulator, sim::create(chip));
  SK_TRY_ASSIGN(options.schedule, schedule_from_environment());
  return create_kernel(chip, std::move(simulator), std::move(options));
}

Result<uint32_t> schedule_from_environment() {
  constexpr const char* kVariable = "SKILLET_SIM_SEED";
  const char* const set = environment_variable(kVariable);
  const std::string_view text = set == nullptr ? "" : set;
  if (text.empty()) return 0U;
  const auto seed = parse_number<uint64_t>(text);
  if (!seed) return error(ErrorCode::malformed, "{}={}: must be a number from 0 to 2^64 - 1", kVariable, text);
  return static_cast<uint32_t>(*seed ^ *seed >> 32);
}

std::vector<std::string_view> call_names(const std::string& chip) {
  if (rocket::has(chip)) return rocket::call_names();
  if (ethosu::has(chip)) return ethosu::call_names();
  std::vector<std::string_view> names = etnaviv::call_names();
  if (!chip.empty()) return names;
  for (const auto& others : {rocket::call_names(), ethosu::call_names()}) {
    for (const std::string_view one : others) {
      if (std::ranges::find(names, one) == names.end()) names.push_back(one);
    }
  }
  return names;
}

}  // namespace skillet::fake
