// Simulator of Ethos-U55 and U65: a job's stream of commands in, bytes in memory out. Addresses in it are offsets into
// the buffers of the job's slots. sim::create() finds it through cmake/vendors.cmake.
#include "npus/ethosu/sim/ethosu.h"

#include "npus/ethosu/sim/stream.h"

namespace skillet::sim::ethosu {
namespace {

constexpr uint64_t kSramMax = uint64_t{64} << 20;
constexpr uint8_t kStale = 0xA5;

class EthosU final : public Device {
 public:
  EthosU(const hw::ChipRow& chip, uint64_t work, QuirkSet quirks)
      : chip_(chip), work_(work), quirks_(quirks), shram_(size_t{chip.shram_kbytes} * 1024) {}

  Result<void> run(const Job& job, const Memory& memory) override {
    SK_TRY_ASSIGN(const auto stream, words_of(job));
    if (job.sram_bytes > kSramMax)
      return error(ErrorCode::fault, "{} bytes on the chip are more than any chip has", job.sram_bytes);
    // The contents that an earlier job left there are undefined.
    std::vector<uint8_t> sram(static_cast<size_t>(job.sram_bytes), kStale);
    SK_TRY_ASSIGN(Regions regions, Regions::find(job.slots, memory, sram));
    const Work work(stream.size_bytes() + regions.constant_bytes(), work_);
    return Stream(chip_, std::move(regions), shram_, work, quirks_).run(stream);
  }

  void reset(uint32_t /*core*/) override { std::ranges::fill(shram_, uint8_t{0}); }

 private:
  const hw::ChipRow& chip_;
  uint64_t work_;
  QuirkSet quirks_;
  std::vector<uint8_t> shram_;
};

constexpr uint64_t kWork = uint64_t{1} << 36;  // the largest networks of today take half

}  // namespace

std::unique_ptr<Device> make_simulator(const hw::ChipRow& chip, uint64_t work) {
  return std::make_unique<EthosU>(chip, work, QuirkSet());
}

// Vela compiles for Ethos-U85: no program of this compiler stands on an assumption there.
std::vector<Quirk> quirks(std::string_view chip) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr || row->generation() == hw::Generation::u85) return {};
  return {kQuirks.begin(), kQuirks.end()};
}

Result<std::unique_ptr<Device>> simulator_of(std::string_view chip, std::span<const std::string_view> quirks) {
  const hw::ChipRow* const row = hw::find_chip(chip);
  if (row == nullptr) return error(ErrorCode::invalid_argument, "no Ethos-U chip '{}'", chip);
  return std::unique_ptr<Device>(std::make_unique<EthosU>(*row, kWork, QuirkSet(quirks)));
}

}  // namespace skillet::sim::ethosu
