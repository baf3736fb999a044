// Server: one guest at a time on a board: its bus and its interrupt controller, each behind a Unix socket in a folder.
// Called by main.cpp and tests.
// Must not know: any device.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "lab/mmio/bus.h"
#include "lab/mmio/warn.h"

namespace skillet::mmio {

class Server {
 public:
  // Listens at FOLDER/bus and FOLDER/lines, for the owner only. Error: a socket cannot be made there.
  static Result<std::unique_ptr<Server>> create(const std::string& folder, uint16_t lines);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Bus& bus() { return bus_; }
  const Lines& lines() const { return lines_; }
  // For the device on this line. The device must be destroyed before the server.
  Surroundings surroundings(uint16_t line);
  // Serves guests one after the other until stop(), or until `guests` of them have come and gone (0: any number). A
  // guest that breaks a protocol, or whose memory disappears, is dropped with a warning.
  Result<void> run(uint32_t guests);
  // Can be called from any thread or signal handler.
  void stop();
  // Number of warnings about guests that were left out because there were too many.
  uint64_t unsaid_warnings() const { return warnings_.unsaid(); }
  // Removes the sockets' names; can be called from any thread.
  void unlink() const;

 private:
  explicit Server(uint16_t lines) : lines_(lines) {}
  struct Side {
    Backend* backend = nullptr;
    std::string path;
    int listener = -1;
    pid_t process = 0;  // of the guest; 0: not known
    GuestMemory guest;
    std::unique_ptr<VhostUser> connection;
  };
  std::array<Side*, 2> sides() { return {&lines_side_, &bus_side_}; }
  std::array<const Side*, 2> sides() const { return {&lines_side_, &bus_side_}; }
  Result<void> listen(Side& side);
  void accept(Side& side);
  void drop(Side& side);
  void wait();
  void wake() const;  // ends wait()
  std::optional<std::chrono::nanoseconds> patience() const;
  bool serve(Side& side);
  void drop_memoryless();
  bool may_interrupt(std::chrono::steady_clock::time_point due_since) const;

  Bus bus_;
  Lines lines_;
  Side lines_side_, bus_side_;
  std::optional<std::chrono::steady_clock::time_point> held_since_;  // since when interrupts are due
  uint64_t missing_pages_ = 0;                                       // last value of Shrinkable::count()
  Allowance warnings_;
  int wake_ = -1;
  std::atomic<bool> stops_ = false;
};

}  // namespace skillet::mmio
