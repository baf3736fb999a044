#include "npus/ethosu/sim/order.h"

namespace skillet::sim::ethosu {
namespace {

constexpr uint32_t kOperationsMax = 2;  // running at a time

}  // namespace

void Order::keep(std::deque<Running>& running, uint32_t count) {
  while (running.size() > count) running.pop_front();
}

Result<void> Order::check(const std::deque<Running>& running, const std::vector<Range>& ranges, std::string_view wait) {
  for (const Running& one : running) {
    for (const Range& theirs : one.ranges) {
      for (const Range& ours : ranges) {
        if (!theirs.conflicts(ours)) continue;
        const std::string where = ours.region == kTables ? "SHRAM" : fmt::format("region {}", ours.region);
        return error(ErrorCode::fault, "{} bytes 0x{:x} to 0x{:x} of {} before {} for command {}",
                     ours.is_written ? "writes" : "reads", std::max(ours.begin, theirs.begin),
                     std::min(ours.end, theirs.end), where, wait, one.command);
      }
    }
  }
  return {};
}

Result<void> Order::start_transfer(size_t command, std::vector<Range> ranges) {
  SK_TRY(check(operations_, ranges, "an op_kernel_wait"));
  keep(transfers_, transfers_max_ - 1);
  SK_TRY(check(transfers_, ranges, "an op_dma_wait"));
  transfers_.push_back({command, std::move(ranges)});
  return {};
}

Result<void> Order::start_operation(size_t command, std::vector<Range> ranges) {
  SK_TRY(check(transfers_, ranges, "an op_dma_wait"));
  keep(operations_, kOperationsMax - 1);
  operations_.push_back({command, std::move(ranges)});
  return {};
}

}  // namespace skillet::sim::ethosu
