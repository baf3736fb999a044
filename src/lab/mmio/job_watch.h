// JobWatch: what is done with each job of a device beside running it: it goes into a capture, and it takes the time
// that the chip needs at some clock. Called by the threads of the devices in lab/mmio/<kernel driver>/. Must not know:
// registers, what a job computes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "capture/file_writer.h"
#include "lab/mmio/guest_memory.h"
#include "sim/timing.h"

namespace skillet::mmio {

struct WatchOptions {
  std::string record;    // path of a capture; empty: none
  double clock_mhz = 0;  // 0: a job ends as soon as it is computed
};

class JobWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Error: there is a file of that name, or the chip has no timing model.
  static Result<JobWatch> create(std::string_view chip, capture::DeviceInfo info, const WatchOptions& options);
  JobWatch() = default;  // neither
  JobWatch(JobWatch&&) = default;
  JobWatch& operator=(JobWatch&&) = default;
  ~JobWatch() { flush(); }

  // Before it runs. `pages`: all that it can reach, as they are in `memory`; those side by side are one buffer, as a
  // device knows no others. `is_more`: further commands of the job before.
  // Pages below `first_listed` are no program's, and not in its lists; page 0 is none, by the format of captures.
  void record(capture::Commands commands, std::span<const Page> pages, const sim::Memory& memory, bool is_more,
              uint32_t first_listed = 1);
  // After it has run: returns when the chip would have, or `is_over` says that nobody waits for it any longer.
  void wait(const sim::Job& job, const sim::Memory& memory, Time begun, const std::function<bool()>& is_over);
  // Writes what record() has kept back for further commands.
  void flush();

 private:
  JobWatch(capture::DeviceInfo info, std::optional<capture::Sink> sink, std::unique_ptr<sim::Timer> timer)
      : info_(std::move(info)), sink_(std::move(sink)), timer_(std::move(timer)) {}

  capture::DeviceInfo info_;
  std::optional<capture::Sink> sink_;
  std::unique_ptr<sim::Timer> timer_;
  std::optional<capture::Submission> kept_;
};

}  // namespace skillet::mmio
