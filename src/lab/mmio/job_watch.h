// JobWatch: records each job of a device in a capture, and delays its end to the time that the chip needs at a given
// clock. Called by the threads of the devices in lab/mmio/<kernel driver>/. Must not know: registers, what a job
// computes.
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
  double clock_mhz = 0;  // 0: a job ends when it is computed
};

class JobWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Error: the file exists, or the chip has no timing model.
  static Result<JobWatch> create(std::string_view chip, capture::DeviceInfo info, const WatchOptions& options);
  JobWatch() = default;  // no capture, no clock
  JobWatch(JobWatch&&) = default;
  JobWatch& operator=(JobWatch&&) = default;
  ~JobWatch() { flush(); }

  // Called before a job runs. `pages`: all pages that it can access, as in `memory`; adjacent ones form one buffer,
  // because a device has no other bounds of buffers. `is_more`: further commands of the previous job. Pages below
  // `first_listed` belong to no program and are not in its lists; page 0 is never listed, by the format of captures.
  void record(capture::Commands commands, std::span<const Page> pages, const sim::Memory& memory, bool is_more,
              uint32_t first_listed = 1);
  // Called after a job has run. Returns when the chip would have finished, or when `is_over` is true: the result is no
  // longer needed.
  void wait(const sim::Job& job, const sim::Memory& memory, Time begun, const std::function<bool()>& is_over);
  // Writes a submission that record() has kept for further commands.
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
