// sim::Device: a simulated chip behind the kernel boundary: memory and commands in, memory out.
// Called by kernels/fake/ and the golden tests; implemented in npus/<v>/sim/.
// Must not know: graphs, programs, drivers (other than npus/<v>/hw/).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace skillet::sim {

// Device memory as one submission sees it: mapped ranges, each backed by CPU bytes (borrowed).
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept : ranges_(std::move(other.ranges_)), missed_(other.missed_.load()) {}
  Memory& operator=(Memory&& other) noexcept {
    ranges_ = std::move(other.ranges_);
    missed_ = other.missed_.load();
    return *this;
  }
  // Error when the range overlaps another one, or leaves the address space.
  Result<void> map(uint64_t address, std::span<uint8_t> bytes, std::string name);
  // For what nobody may write: at() gives these bytes too, check_written() refuses them.
  Result<void> map_to_read(uint64_t address, std::span<const uint8_t> bytes, std::string name);
  // For what nobody may touch now, though it is there: at() refuses it, with `why`.
  Result<void> map_to_refuse(uint64_t address, std::span<uint8_t> bytes, std::string why);
  void unmap(uint64_t address);
  // The bytes of [address, address + size); a fault naming `what` and the nearest buffers otherwise.
  Result<std::span<uint8_t>> at(uint64_t address, uint64_t size, std::string_view what) const;
  // All the mapped bytes from `address` to the end of its buffer; a fault when nothing is mapped there.
  Result<std::span<uint8_t>> from(uint64_t address, std::string_view what) const;
  // Error when the bytes at `address` are mapped to be read only.
  Result<void> check_written(uint64_t address, std::string_view what) const;
  // The last address that was asked for, or written, and could not be.
  std::optional<uint64_t> missed() const;

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  struct Range {
    std::span<uint8_t> bytes;
    std::string name;
    bool is_read_only = false, is_refused = false;
  };
  std::map<uint64_t, Range> ranges_;
  mutable std::atomic<uint64_t> missed_ = kNone;
};

// A list of commands as the kernel gives it to the chip: the bytes themselves, or where they are in device memory.
struct Commands {
  std::span<const uint8_t> bytes;
  uint64_t address = 0, size_bytes = 0;
};

// One job of the kernel. Which members count is up to the kernel driver that the chip stands behind.
struct Job {
  std::span<const Commands> commands;  // one after the other
  uint32_t core = 0;                   // of several, the one that runs it
  std::span<const uint64_t> slots;     // device addresses of the buffers in numbered slots
  uint64_t sram_bytes = 0;             // on-chip memory that the job may use
};
// For chips that take one list of words with each job. Error when the job is another.
Result<std::span<const uint32_t>> words_of(const Job& job);

class Device {
 public:
  virtual ~Device() = default;
  // Runs one job to its end, synchronously. An error is a fault report; its code is timeout where the chip would wait
  // for ever.
  virtual Result<void> run(const Job& job, const Memory& memory) = 0;
  // A job that is one list of words.
  Result<void> execute(std::span<const uint32_t> words, const Memory& memory);
  // Cores run jobs independently of each other: each may have a thread of its own.
  virtual uint32_t cores() const { return 1; }
  // What a reset of a core does: what jobs have set up is lost.
  virtual void reset(uint32_t /*core*/) {}
  // Jobs may end without having run, as an option says: whoever submits them has to look.
  virtual bool loses_jobs() const { return false; }
};

// How the silicon of a chip may differ from what its driver assumes: a row of npus/<v>/sim/quirks*.def. Names are
// unique for a chip. It changes what programs do that use the assumed feature, and nothing else.
struct Quirk {
  std::string_view name;
  std::string_view assumption;  // a row of npus/<v>/compiler/assumptions.def; empty: an erratum that no program meets
  std::string_view what;
};
// Those that the chip can have, but for times. Empty: the chip is not known, or has none.
std::vector<Quirk> quirks(std::string_view chip);

// The simulator of a chip by name ("a311d"); the error lists the chips there are. `quirks`: names joined by '+', to
// which SKILLET_SIM_QUIRK adds its own unless they begin with '!'; the error lists those of the chip. "clock_ghz=0.1"
// is one too: another value of a timing parameter of the chip's (timing.h), which changes times alone.
Result<std::unique_ptr<Device>> create(std::string_view chip, std::string_view quirks = "");

}  // namespace skillet::sim
