// UsePage: this process's use of NPUs, in a page of memory that `skillet top` reads from outside. The page is a memfd:
// it has no name in any folder, is accessible to this user only, disappears with the process however that ends, and is
// visible in /proc/PID/fd from outside a container too.
// Called by runtime/, for each open device; read by `skillet top`.
// Must not know: devices, sessions.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/own_process.h"

namespace skillet::use {

inline constexpr const char* kPageName = "skillet-use";

// One open device. Only its process writes; others may read at any time. Texts end with a zero byte.
struct Slot {
  uint64_t cores = 0;                    // of the NPU; 0: the slot is free
  uint64_t submitted = 0, finished = 0;  // jobs
  uint64_t busy_ns = 0;                  // of the cores, see busy_cores()
  uint64_t since_ns = 0;                 // in CLOCK_MONOTONIC: busy_ns is counted up to here; 0: no job runs
  uint64_t bytes = 0;                    // of buffers
  std::array<char, 64> device{};
  std::array<char, 32> chip{};
  std::array<char, 112> model{};  // the model loaded last
};
struct Page {
  static constexpr std::array<char, 8> kMagic = {'s', 'k', '-', 'u', 's', 'e', '-', '2'};  // changes with the layout
  std::array<char, 8> magic = kMagic;
  uint64_t process = 0;  // its process id in its own namespace: a child of fork() has the descriptor too
  std::array<uint64_t, 30> reserved{};
  std::array<Slot, 31> slots;
};
static_assert(sizeof(Slot) == 256 && sizeof(Page) == 8192);

// Number of busy cores, from the slots of this device. Jobs that were submitted together may wait for each other, which
// is not visible: they count as at most the number of cores.
uint64_t busy_cores(std::span<const Slot> slots, std::string_view device);

struct Totals {
  uint64_t jobs = 0, busy_ns = 0;  // of finished jobs

  Totals& operator+=(const Totals& more) { return jobs += more.jobs, busy_ns += more.busy_ns, *this; }
};

// The slot of one open device. If there is no page (disabled by SKILLET_TOP=0), or no free slot in it, a private slot
// that is not visible. A child of fork() neither counts nor frees it. Functions that change something must not be
// called at the same time.
class Counter {
 public:
  Counter(std::string_view device, std::string_view chip, uint64_t cores = 1);
  ~Counter();
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  void submitted(size_t jobs);
  // All submitted jobs have ended; false: they failed.
  void ended(bool is_well = true);
  void change_bytes(int64_t by);  // of buffers
  void name_model(std::string_view model);
  Totals totals() const;

 private:
  void count_busy(bool runs);

  Slot* slot_;
  std::unique_ptr<Slot> own_;
  size_t in_flight_ = 0;
  const OwnProcess process_;
};

}  // namespace skillet::use
