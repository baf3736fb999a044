// Board: simulated chips on a bus, as Linux's own drivers see them, and the device tree that describes them to Linux.
// Called by main.cpp and tests.
// Must not know: any chip; each row of board.cpp makes the devices of a kernel driver.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lab/mmio/faults.h"
#include "lab/mmio/place.h"
#include "lab/mmio/server.h"

namespace skillet::mmio {

struct BoardOptions {
  std::vector<std::string> chips;  // "a311d", "rk3588,quirk=NAME"
  Faults faults;                   // of each chip
  uint32_t cores = 0;              // of each chip, at most; 0: all it has
  std::string record;    // path of a capture of the first device's jobs; the other devices' paths end in .2, .3, ...
  double clock_mhz = 0;  // jobs take their predicted time at this clock; 0: no delay
  bool traces = false;   // a line for each access to a register, on standard error
};

class Board {
 public:
  // Listens in `folder`. Error: a chip is not known, or no kernel driver of Linux supports it; a socket cannot be made.
  static Result<std::unique_ptr<Board>> create(const std::string& folder, const BoardOptions& options);
  Server& server() { return *server_; }
  // Source of the device tree, for dtc.
  std::string device_tree() const;
  // A line for each chip that Linux's driver does not run; empty if it runs all.
  std::string notes() const;
  // A line of counts for each device.
  std::string summary() const;

 private:
  Board() = default;
  std::unique_ptr<Server> server_;
  std::vector<Placed> placed_;
  std::string folder_;
  double clock_mhz_ = 0;
};

}  // namespace skillet::mmio
