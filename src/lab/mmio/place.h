// Place: the addresses of a kernel driver's devices on the board, and their nodes in the device tree.
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
  std::string nodes;             // nodes of the device tree
  std::string_view driver = {};  // Linux's driver
  uint32_t most_of_driver = 0;   // largest number of devices; 0: any number
  std::string note = {};         // message for the user; empty: the general one
};

struct PlaceOptions {
  std::string_view chip;
  std::string_view quirks;  // joined by '+', as for sim::create()
  Faults faults;
  uint32_t most_cores = 0;  // 0: all
  // Options of the device on a line.
  std::function<WatchOptions(uint16_t line)> watch;
  uint64_t address = 0;  // of the first device
  uint64_t stride = 0;   // distance to the next device
  uint16_t line = 0;     // first interrupt line; one more for each device
  // Surroundings of the device on a line.
  std::function<Surroundings(uint16_t line)> surroundings;
};

// The chip's devices for a kernel driver; nothing if the driver does not support the chip.
using PlaceChip = Result<std::optional<std::vector<Placed>>> (*)(const PlaceOptions& options);

}  // namespace skillet::mmio
