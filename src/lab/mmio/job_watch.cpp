#include "lab/mmio/job_watch.h"

#include <filesystem>
#include <thread>
#include <utility>

#include "base/log.h"
#include "capture/hardware.h"
#include "lab/mmio/warn.h"

namespace skillet::mmio {
namespace {

std::vector<capture::BufferSnapshot> buffers_of(std::span<const Page> pages, const sim::Memory& memory,
                                                uint32_t first_listed) {
  std::vector<capture::BufferSnapshot> out;
  for (size_t i = 0; i < pages.size();) {
    const uint32_t first = pages[i].index;
    const bool is_writable = pages[i].is_writable;
    uint32_t end = first;
    const auto goes_on = [&](const Page& page) {
      return page.index == end && page.is_writable == is_writable && (end == first || end != first_listed);
    };
    for (; i < pages.size() && goes_on(pages[i]); ++i) ++end;
    capture::BufferSnapshot one{.handle = first + 1,
                                .address = first * kPageBytes,
                                .size_bytes = (end - first) * kPageBytes,
                                .read = true,
                                .write = is_writable,
                                .listed = first >= first_listed};
    const auto bytes = memory.at(one.address, one.size_bytes, "a capture");
    if (bytes.ok()) capture::set_contents(one, *bytes);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

Result<JobWatch> JobWatch::create(std::string_view chip, capture::DeviceInfo info, const WatchOptions& options) {
  std::optional<capture::Sink> sink;
  std::unique_ptr<sim::Timer> timer;
  if (!options.record.empty()) {
    std::error_code ignored;
    if (std::filesystem::exists(options.record, ignored))
      return error(ErrorCode::io, "{}: there is a file of that name", options.record);
    const std::filesystem::path folder = std::filesystem::path(options.record).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
      return error(ErrorCode::io, "{}: there is no folder {}", options.record, folder.string());
    sink = capture::into_file(options.record);
  }
  if (options.clock_mhz != 0) {
    constexpr double kMhzPerGhz = 1000;
    const sim::ParameterValue clock{"clock_ghz", options.clock_mhz / kMhzPerGhz};
    SK_TRY_ASSIGN(timer, sim::create_timer(chip, sim::Jobs::open, {&clock, 1}));
  }
  info.node = fmt::format("{}{}", capture::kHardwareNode, chip);
  return JobWatch(std::move(info), std::move(sink), std::move(timer));
}

void JobWatch::record(capture::Commands commands, std::span<const Page> pages, const sim::Memory& memory, bool is_more,
                      uint32_t first_listed) {
  if (!sink_) return;
  if (!is_more || !kept_) {
    flush();
    kept_ = capture::Submission{
        .parameters = {}, .jobs = {capture::Job()}, .buffers = buffers_of(pages, memory, first_listed)};
  }
  kept_->jobs[0].commands.push_back(std::move(commands));
}

void JobWatch::flush() {
  if (!kept_) return;
  const Result<void> done = sink_->append(info_, *std::exchange(kept_, {}));
  if (done.ok()) return;
  log::warning("{}: recording stopped: {}", info_.node, done.error().message);
  sink_.reset();
}

void JobWatch::wait(const sim::Job& job, const sim::Memory& memory, Time begun, const std::function<bool()>& is_over) {
  if (timer_ == nullptr) return;
  const auto costs = timer_->time_job(job, memory);
  if (!costs.ok()) return warn(device_warnings(), "{}: a job takes no time: {}", info_.node, costs.error().message);
  const auto end = begun + std::chrono::microseconds(static_cast<int64_t>(sim::total(*costs).us));
  constexpr auto kSlice = std::chrono::milliseconds(1);
  for (auto now = std::chrono::steady_clock::now(); now < end && !is_over(); now = std::chrono::steady_clock::now())
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kSlice, end - now));
}

}  // namespace skillet::mmio
