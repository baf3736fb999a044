// A stream of commands from fuzz bytes, into the Ethos-U simulator. It must answer every input in bounded time.
//
// The first byte selects the chip; up to 512 words after it are the stream, the rest are constants.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "npus/ethosu/hw/kernel_rules.h"
#include "npus/ethosu/sim/ethosu.h"

namespace {

namespace ethosu = skillet::sim::ethosu;
namespace hw = skillet::ethosu::hw;

constexpr uint64_t kConstants = 0x10000, kMaps = 0x20000, kFast = 0x30000;
constexpr uint64_t kWork = uint64_t{1} << 16;
constexpr size_t kWordsMax = 512;

std::vector<uint32_t> words_in(const skillet::Bytes& bytes) {
  std::vector<uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), words.size() * 4);
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  std::span<const uint8_t> data(bytes + 1, size - 1);
  const size_t stream_bytes = std::min(kWordsMax, data.size() / 4) * 4;
  skillet::Bytes stream(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(stream_bytes));
  stream.resize(std::max<size_t>(stream.size(), 4));
  data = data.subspan(stream_bytes);
  skillet::Bytes constants(data.begin(), data.end()), maps(4096), fast(512);
  constants.resize(std::max<size_t>(constants.size(), 16));
  skillet::sim::Memory memory;
  const bool is_mapped =
      memory.map_to_read(kConstants, std::span(constants).first(std::min<size_t>(constants.size(), 4096)), "constants")
          .ok() &&
      memory.map(kMaps, maps, "maps").ok() && memory.map(kFast, fast, "fast").ok();
  if (!is_mapped) std::abort();
  const uint64_t slots[] = {kConstants, kMaps, kFast};
  const skillet::sim::Commands commands{.bytes = stream};
  const auto chips = hw::chips();
  static_cast<void>(hw::needs_of(words_in(stream)));
  static_cast<void>(ethosu::make_simulator(chips[bytes[0] % chips.size()], kWork)
                        ->run({.commands = {&commands, 1}, .slots = slots, .sram_bytes = 0}, memory));
  return 0;
}
