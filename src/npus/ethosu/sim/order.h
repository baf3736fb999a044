// Order: the transfers and operations that may still run while commands go on, and the bytes that they access (hardware
// specification, section 3.6). The simulator runs them one after the other; a missing wait in a stream is still a
// fault. Called by stream.cpp. Must not know: registers, what is computed.
#pragma once

#include <deque>

#include "npus/ethosu/sim/regions.h"

namespace skillet::sim::ethosu {

class Order {
 public:
  explicit Order(uint32_t transfers_max) : transfers_max_(transfers_max) {}

  void wait_for_transfers(uint32_t left) { keep(transfers_, left); }
  void wait_for_operations(uint32_t left) { keep(operations_, left); }
  // Error: a transfer or operation that may still run accesses the same bytes. `command`: its index in the stream.
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
