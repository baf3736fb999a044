#include "sim/sim.h"

#include <vector>

#include "base/vendors.h"

#define SIMULATOR(vendor)                                        \
  namespace skillet::sim::vendor {                               \
  Result<std::unique_ptr<Device>> create(std::string_view chip); \
  }
#include "vendors.inc"

namespace skillet::sim {
namespace {

// One row per family that is linked in. A factory answers invalid_argument, with the names it has, to other names.
struct Family {
  Result<std::unique_ptr<Device>> (*create)(std::string_view chip);
};
const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
#define SIMULATOR(vendor) {vendor::create},
#include "vendors.inc"
  };
  return kFamilies;
}

}  // namespace

Result<std::span<const uint32_t>> words_of(const Job& job) {
  if (job.commands.size() != 1 || job.commands[0].size_bytes != 0)
    return error(ErrorCode::malformed, "a job of {} lists of commands; the chip takes one, handed over with the job",
                 job.commands.size());
  const std::span<const uint8_t> bytes = job.commands[0].bytes;
  if (bytes.size() % 4 != 0 || reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint32_t) != 0)
    return error(ErrorCode::malformed, "{} bytes of commands; the chip takes words", bytes.size());
  return std::span(reinterpret_cast<const uint32_t*>(bytes.data()), bytes.size() / 4);
}

Result<void> Device::execute(std::span<const uint32_t> words, const Memory& memory) {
  const Commands commands{.bytes = {reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()}};
  return run({.commands = {&commands, 1}}, memory);
}

Result<std::unique_ptr<Device>> create(std::string_view chip) {
  std::string reasons;
  for (const Family& family : families()) {
    auto device = family.create(chip);
    if (device.ok() || device.error().code != ErrorCode::invalid_argument) return device;
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", device.error().message);
  }
  return no_chip(chip, "simulator", reasons.empty() ? "this build has no simulators" : reasons);
}

}  // namespace skillet::sim
