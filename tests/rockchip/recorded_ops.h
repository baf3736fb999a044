// The operations of recorded jobs: the tasks of each, and where its tensors are.
// Called by replay.cpp.
// Must not know: models, the simulator.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "capture/capture.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::rockchip_replay {

namespace hw = ::skillet::rockchip::hw;

struct RecordedOp {
  size_t submission = 0;
  struct Task {
    size_t job = 0;
    capture::Commands commands;
  };
  std::vector<Task> tasks;                 // in order
  std::map<uint32_t, uint32_t> registers;  // address -> value in the first task
  template <typename T>
  T get() const {
    const auto found = registers.find(T::kAddress);
    const uint32_t value = found == registers.end() ? 0 : found->second;
    return bits::read<T>({&value, 1});
  }
  // Derived from the tasks and registers.
  uint64_t input = 0, output = 0, second = 0;  // device addresses; second: the addition's other operand
  bool addition = false, packed = false, depthwise = false;
  uint32_t in_channels = 0, out_channels = 0, kernel_width = 0, kernel_height = 0;
  uint32_t out_width = 0, out_pixels = 0;  // out_width as programmed; out_pixels of the whole plane
};

// Returns the operations in the order of their jobs. The streams of each operation are in a buffer of their own.
Result<std::vector<RecordedOp>> recorded_ops(const capture::Capture& capture);

}  // namespace skillet::rockchip_replay
