// Place: where a kernel driver's devices are put on the board, with the nodes of the device tree that say so.
// Called by board.cpp; implemented in lab/mmio/<kernel driver>/place.cpp.
// Must not know: the bus.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/mmio/bus.h"
#include "lab/mmio/faults.h"
#include "lab/mmio/job_watch.h"

namespace skillet::mmio {

struct Placed {
  Window window;  // its device is the one below
  std::unique_ptr<Device> device;
  std::string nodes;             // of the device tree
  std::string_view driver = {};  // of Linux
  uint32_t most_of_driver = 0;   // devices that it takes; 0: any number
  std::string note = {};         // what its user is to expect; empty: what is said of all
};

struct PlaceOptions {
  std::string_view chip;
  std::string_view quirks;  // joined by '+', as sim::create() takes them
  Faults faults;
  uint32_t most_cores = 0;  // 0: all
  // For the device on a line.
  std::function<WatchOptions(uint16_t line)> watch;
  uint64_t address = 0;  // of the first device
  uint64_t stride = 0;   // to the next one
  uint16_t line = 0;     // of its interrupt; one more for each device
  // What surrounds the device on a line.
  std::function<Surroundings(uint16_t line)> surroundings;
};

// For a kernel driver: the chip's devices; nothing: the driver does not know the chip.
using PlaceChip = Result<std::optional<std::vector<Placed>>> (*)(const PlaceOptions& options);

}  // namespace skillet::mmio
