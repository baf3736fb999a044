// Simulator of Ethos-U55 and U65: a job's list in, bytes in memory out. The list is the registers that a kernel driver
// writes (hw/launch.def). sim::create() finds it through cmake/vendors.cmake.
#include "npus/ethosu/sim/ethosu.h"

#include <cstring>

#include "npus/ethosu/sim/stream.h"

namespace skillet::sim::ethosu {
namespace {

class EthosU final : public Device {
 public:
  EthosU(const hw::ChipRow& chip, uint64_t work) : chip_(chip), work_(work), shram_(size_t{chip.shram_kbytes} * 1024) {}

  Result<void> run(const Job& job, const Memory& memory) override {
    SK_TRY_ASSIGN(const auto list, words_of(job));
    if (list.size() != hw::Launch::kWords)
      return error(ErrorCode::malformed, "{} words are no job of {}", list.size(), chip_.name);
    const auto launch = bits::read<hw::Launch>(list);
    SK_TRY_ASSIGN(const auto bytes, memory.at(launch.stream.offset, launch.stream_bytes, "stream"));
    std::vector<uint32_t> stream(bytes.size() / 4);
    if (!stream.empty()) std::memcpy(stream.data(), bytes.data(), stream.size() * 4);
    SK_TRY_ASSIGN(Regions regions, Regions::find(launch, memory));
    SK_TRY(Stream(chip_, std::move(regions), shram_, work_).run(stream));
    return report(launch, memory);
  }

  void reset(uint32_t /*core*/) override { std::ranges::fill(shram_, uint8_t{0}); }

 private:
  static Result<void> report(const hw::Launch& launch, const Memory& memory) {
    if (launch.status.offset == 0) return {};
    SK_TRY_ASSIGN(const auto to, memory.at(launch.status.offset, hw::kStatusBytes, "status"));
    SK_TRY(memory.check_written(launch.status.offset, "status"));
    const std::array<uint32_t, 2> registers = {hw::kStatusEndReached, launch.stream_bytes};
    std::memcpy(to.data(), registers.data(), hw::kStatusBytes);
    return {};
  }

  const hw::ChipRow& chip_;
  uint64_t work_;
  std::vector<uint8_t> shram_;
};

constexpr uint64_t kWork = uint64_t{1} << 37;  // some networks of today

}  // namespace

std::unique_ptr<Device> make_simulator(const hw::ChipRow& chip, uint64_t work) {
  return std::make_unique<EthosU>(chip, work);
}

// No program of ours rests on an assumption: others compile for this family.
std::vector<Quirk> quirks(std::string_view /*chip*/) { return {}; }

Result<std::unique_ptr<Device>> simulator_of(std::string_view chip, std::span<const std::string_view> /*quirks*/) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr) return error(ErrorCode::invalid_argument, "no Ethos-U chip '{}'", chip);
  return make_simulator(*row, kWork);
}

}  // namespace skillet::sim::ethosu
