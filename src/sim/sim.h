// sim::Device: a simulated chip behind the kernel boundary. It reads memory and commands, and writes memory.
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

// Device memory as seen by one submission: mapped ranges, each backed by CPU bytes (borrowed).
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept : ranges_(std::move(other.ranges_)), missed_(other.missed_.load()) {}
  Memory& operator=(Memory&& other) noexcept {
    ranges_ = std::move(other.ranges_);
    missed_ = other.missed_.load();
    return *this;
  }
  // Error if the range overlaps another one, or exceeds the address space.
  Result<void> map(uint64_t address, std::span<uint8_t> bytes, std::string name);
  // Maps a read-only range: at() returns its bytes too, check_written() refuses them.
  Result<void> map_to_read(uint64_t address, std::span<const uint8_t> bytes, std::string name);
  // Maps a range that exists but must not be accessed now: at() refuses it, with `why`.
  Result<void> map_to_refuse(uint64_t address, std::span<uint8_t> bytes, std::string why);
  void unmap(uint64_t address);
  // The bytes of [address, address + size); otherwise a fault that names `what` and the nearest buffers.
  Result<std::span<uint8_t>> at(uint64_t address, uint64_t size, std::string_view what) const;
  // All mapped bytes from `address` to the end of its buffer; a fault if nothing is mapped there.
  Result<std::span<uint8_t>> from(uint64_t address, std::string_view what) const;
  // Error if the bytes at `address` are mapped read-only.
  Result<void> check_written(uint64_t address, std::string_view what) const;
  // The last address at which an access failed.
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

// A command list as the kernel driver passes it to the chip: inline bytes, or their place in device memory.
struct Commands {
  std::span<const uint8_t> bytes;
  uint64_t address = 0, size_bytes = 0;
};

// One job of the kernel driver. The chip's kernel driver determines which members are used.
struct Job {
  std::span<const Commands> commands;  // in order
  uint32_t core = 0;                   // index of the core that runs it
  std::span<const uint64_t> slots;     // device addresses of the buffers in numbered slots
  uint64_t sram_bytes = 0;             // on-chip memory that the job may use
};
// For chips that take one list of words with each job. Error if the job has another form.
Result<std::span<const uint32_t>> words_of(const Job& job);

class Device {
 public:
  virtual ~Device() = default;
  // Runs one job to its end, synchronously. An error is a fault report; its code is timeout if the chip would wait for
  // ever.
  virtual Result<void> run(const Job& job, const Memory& memory) = 0;
  // Runs a job that is one list of words.
  Result<void> execute(std::span<const uint32_t> words, const Memory& memory);
  // Cores run jobs independently of each other: each may have a thread of its own.
  virtual uint32_t cores() const { return 1; }
  // Resets a core: the state that jobs have set up is lost.
  virtual void reset(uint32_t /*core*/) {}
  // Jobs may end without having run, if an option is set: the submitter must check.
  virtual bool loses_jobs() const { return false; }
};

// A way in which the silicon of a chip may differ from its driver's assumptions: a row of npus/<v>/sim/quirks*.def.
// Names are unique for a chip. A quirk changes only programs that use the assumed feature.
struct Quirk {
  std::string_view name;
  std::string_view assumption;  // a row of npus/<v>/compiler/assumptions.def; empty: an erratum that affects no program
  std::string_view what;
};
// The quirks of the chip, without timing parameters. Empty: the chip is not known, or has none.
std::vector<Quirk> quirks(std::string_view chip);

// Creates the simulator of a chip by name ("a311d"); the error lists the chips. `quirks`: names joined by '+', to which
// SKILLET_SIM_QUIRK adds its own unless they begin with '!'; the error lists those of the chip. "clock_ghz=0.1" is also
// accepted: another value for a timing parameter of the chip (timing.h), which changes only times.
Result<std::unique_ptr<Device>> create(std::string_view chip, std::string_view quirks = "");

}  // namespace skillet::sim
