// How chips of npus/ethosu identify themselves to the kernel driver ethosu, and how that checks their streams.
#include "kernels/ethosu/fake/identity.h"
#include "npus/ethosu/hw/kernel_rules.h"

namespace skillet::fake::ethosu::ethosu {
namespace {

namespace hw = ::skillet::ethosu::hw;

constexpr uint32_t kId = 0x10066001;         // as in Vela: architecture 1.0.6
constexpr uint32_t kIdU85 = 0x20007000;      // the same for 2.0.0
constexpr uint32_t kSramBytes = 384 * 1024;  // some boards have other sizes, or none
constexpr std::string_view kNoDriver =
    "the mainline kernel drives only Ethos-U65 and U85; their driver is emulated for it";

template <hw::Generation generation>
Result<StreamNeeds> check(std::span<const uint32_t> stream) {
  SK_TRY_ASSIGN(const hw::StreamNeeds needs, hw::needs_of(stream, generation));
  return StreamNeeds{.bytes = needs.bytes, .writes = needs.writes};
}

}  // namespace

std::optional<Identity> identity_of(std::string_view chip) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr) return std::nullopt;
  const bool is_u85 = row->generation() == hw::Generation::u85;
  return Identity{.compatible = row->compatible,
                  .assumption = row->product == hw::ConfigProduct::u55 ? kNoDriver : "",
                  .id = is_u85 ? kIdU85 : kId,
                  .config = row->config(),
                  .sram_bytes = kSramBytes,
                  .check = is_u85 ? check<hw::Generation::u85> : check<hw::Generation::u5x>};
}

}  // namespace skillet::fake::ethosu::ethosu
