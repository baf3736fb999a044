// Board: simulated chips on a bus as Linux's own drivers see them, and the device tree that tells Linux of them.
// Called by main.cpp and tests.
// Must not know: any chip; a row of board.cpp makes a kernel driver's devices.
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
  std::string record;    // path of a capture of the first device's jobs; of the others: with .2, .3, ... behind it
  double clock_mhz = 0;  // jobs take the time that they need at this clock; 0: none
  bool traces = false;   // a line for each access to a register, on standard error
};

class Board {
 public:
  // Listens in `folder`. Error: a chip is not known, or no kernel driver of Linux drives it; a socket cannot be made.
  static Result<std::unique_ptr<Board>> create(const std::string& folder, const BoardOptions& options);
  Server& server() { return *server_; }
  // Source of the device tree, as dtc takes it.
  std::string device_tree() const;
  // A line for each chip that Linux's driver does not run; empty: it runs all.
  std::string notes() const;
  // A line for each device: what it did.
  std::string summary() const;

 private:
  Board() = default;
  std::unique_ptr<Server> server_;
  std::vector<Placed> placed_;
  std::string folder_;
  double clock_mhz_ = 0;
};

}  // namespace skillet::mmio
