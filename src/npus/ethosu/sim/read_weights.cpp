// The filters of recorded jobs. sim::read_weights() finds it through cmake/vendors.cmake.
#include "npus/ethosu/hw/kernel_rules.h"
#include "npus/ethosu/sim/stream.h"

namespace skillet::sim::ethosu {
namespace {

constexpr uint64_t kWork = uint64_t{1} << 36;
constexpr uint64_t kZerosMax = uint64_t{64} << 20;

// Copies of a job's regions before it runs: transfers move weights within them before an operation reads them. Memory
// that a capture does not contain, e.g. on the chip, is zeros.
struct Copies {
  std::array<Bytes, hw::kRegions> bytes;
  std::array<uint64_t, hw::kRegions> slots{};
  Memory memory;

  Result<void> take(const Memory& recorded, const hw::StreamNeeds& needs) {
    for (size_t i = 0; i < slots.size(); ++i) {
      const uint64_t address = hw::region_address(i);
      if (const auto found = recorded.from(address, ""); found.ok()) {
        bytes[i].assign(found->begin(), found->end());
      } else if (needs.bytes[i] <= kZerosMax) {
        bytes[i].resize(static_cast<size_t>(needs.bytes[i]));
      }
      if (bytes[i].empty()) continue;
      slots[i] = address;
      SK_TRY(memory.map(address, bytes[i], fmt::format("region {}", i)));
    }
    return {};
  }
};

}  // namespace

Result<std::vector<std::optional<Weights>>> read_weights(std::string_view chip, const Job& job, const Memory& memory) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr) return skillet::error(ErrorCode::unsupported, "no such chip");
  SK_TRY_ASSIGN(const auto stream, words_of(job));
  SK_TRY_ASSIGN(const hw::StreamNeeds needs, hw::needs_of(stream, row->generation()));
  Copies copies;
  SK_TRY(copies.take(memory, needs));
  SK_TRY_ASSIGN(Regions regions, Regions::find(copies.slots, copies.memory, {}));
  std::vector<uint8_t> shram(size_t{row->shram_kbytes} * 1024);
  const Work work(stream.size_bytes() + copies.bytes[0].size(), kWork);
  return Stream(*row, std::move(regions), shram, work).read_weights(stream);
}

}  // namespace skillet::sim::ethosu
