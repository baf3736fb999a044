#include "standin/kernels.h"

#include "standin/etnaviv/kernel.h"

namespace skillet::standin {

// One stand-in so far: all chips stand behind it.
std::unique_ptr<Kernel> create_kernel(const std::string& chip, std::unique_ptr<sim::Device> simulator,
                                      Options options) {
  return etnaviv::create(chip, std::move(simulator), std::move(options));
}

Result<std::unique_ptr<Kernel>> create_kernel(const std::string& chip, Options options) {
  SK_TRY_ASSIGN(std::unique_ptr<sim::Device> simulator, sim::create(chip));
  return create_kernel(chip, std::move(simulator), std::move(options));
}

std::vector<std::string_view> call_names() { return etnaviv::call_names(); }

}  // namespace skillet::standin
