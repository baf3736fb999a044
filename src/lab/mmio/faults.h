// Faults: injected errors of a device, by the number of its job, to observe how a kernel driver recovers.
// Called by the devices of lab/mmio/ and main.cpp. Must not know: any device.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/parse_number.h"
#include "base/result.h"

namespace skillet::mmio {

// power_loss: from then on registers read 0 and ignore writes.
enum class FaultKind : uint8_t { none, hang, lost_interrupt, spurious_interrupt, bus_error, page_fault, power_loss };

class Faults {
 public:
  // "hang@3,lost_interrupt@7": the third job since the start hangs, and so on; a job has at most one fault. Empty:
  // none. An error lists the kinds.
  static Result<Faults> parse(std::string_view text) {
    Faults faults;
    for (bool has_more = !text.empty(); has_more;) {
      const std::string_view one = text.substr(0, text.find(','));
      has_more = one.size() < text.size();
      text.remove_prefix(std::min(text.size(), one.size() + 1));
      const size_t at = one.find('@');
      const auto* const kind = std::ranges::find(kNames, one.substr(0, at));
      const uint64_t job = at == std::string_view::npos ? 0 : parse_number<uint64_t>(one.substr(at + 1)).value_or(0);
      if (kind == std::end(kNames) || job == 0)
        return error(ErrorCode::invalid_argument,
                     "fault '{}': must be KIND@JOB, where jobs count from 1 and KIND is hang, lost_interrupt, "
                     "spurious_interrupt, bus_error, page_fault or power_loss",
                     one);
      if (std::ranges::find(faults.rows_, job, &Row::job) != faults.rows_.end())
        return error(ErrorCode::invalid_argument, "fault '{}': job {} has one already", one, job);
      faults.rows_.push_back({static_cast<FaultKind>(kind - std::begin(kNames) + 1), job});
    }
    return faults;
  }
  // The fault of the next job.
  FaultKind next() {
    ++jobs_;
    const auto found = std::ranges::find(rows_, jobs_, &Row::job);
    return found == rows_.end() ? FaultKind::none : found->kind;
  }

 private:
  static constexpr std::string_view kNames[] = {"hang",      "lost_interrupt", "spurious_interrupt",
                                                "bus_error", "page_fault",     "power_loss"};
  struct Row {
    FaultKind kind;
    uint64_t job;
  };
  std::vector<Row> rows_;
  uint64_t jobs_ = 0;
};

}  // namespace skillet::mmio
