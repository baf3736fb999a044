// Order: which transfers and operations may still run while commands go on, and what they touch (hardware
// specification, section 3.6). The simulator runs one after the other; a stream that does not wait where it has to is a
// fault all the same. Called by stream.cpp. Must not know: registers, what is computed.
#pragma once

#include <deque>

#include "npus/ethosu/sim/regions.h"

namespace skillet::sim::ethosu {

class Order {
 public:
  explicit Order(uint32_t transfers_max) : transfers_max_(transfers_max) {}

  void wait_for_transfers(uint32_t left) { keep(transfers_, left); }
  void wait_for_operations(uint32_t left) { keep(operations_, left); }
  // Error: one that may still run touches the same bytes. `command`: where it is in the stream.
  Result<void> start_transfer(size_t command, std::vector<Range> ranges);
  Result<void> start_operation(size_t command, std::vector<Range> ranges);

 private:
  struct Running {
    size_t command = 0;
    std::vector<Range> ranges;
  };
  static void keep(std::deque<Running>& running, uint32_t count);
  static Result<void> check(const std::deque<Running>& running, const std::vector<Range>& ranges,
                            std::string_view wait);

  uint32_t transfers_max_;
  std::deque<Running> transfers_, operations_;
};

}  // namespace skillet::sim::ethosu
