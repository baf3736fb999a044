// How the chips of npus/ethosu show to the kernel driver ethosu, and what that asks of their streams.
#include "kernels/ethosu/fake/identity.h"
#include "npus/ethosu/hw/kernel_rules.h"

namespace skillet::fake::ethosu::ethosu {
namespace {

namespace hw = ::skillet::ethosu::hw;

constexpr uint32_t kId = 0x10066001;         // as Vela gives it: architecture 1.0.6
constexpr uint32_t kSramBytes = 384 * 1024;  // of boards there are other sizes, and none
constexpr std::string_view kNoDriver =
    "the mainline kernel drives Ethos-U65 and U85 only; it stands behind their driver";

Result<StreamNeeds> check(std::span<const uint32_t> stream) {
  SK_TRY_ASSIGN(const hw::StreamNeeds needs, hw::needs_of(stream));
  return StreamNeeds{.bytes = needs.bytes, .writes = needs.writes};
}

}  // namespace

std::optional<Identity> identity_of(std::string_view chip) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr) return std::nullopt;
  return Identity{.compatible = row->compatible,
                  .assumption = row->product == hw::ConfigProduct::u65 ? "" : kNoDriver,
                  .id = kId,
                  .config = row->config(),
                  .sram_bytes = kSramBytes,
                  .check = check};
}

}  // namespace skillet::fake::ethosu::ethosu
