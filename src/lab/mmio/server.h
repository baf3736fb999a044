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
  // For a device on this line, which ends before the server.
  Surroundings surroundings(uint16_t line);
  // Serves guests one after the other until stop(), or `guests` of them have come and gone (0: any number). A guest
  // that breaks a protocol is dropped, and said.
  Result<void> run(uint32_t guests);
  // From any thread or signal handler.
  void stop();

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
  Result<void> listen(Side& side);
  void accept(Side& side);
  void drop(Side& side);
  void wait();
  void wake() const;  // ends wait()
  bool serve(Side& side);
  bool may_interrupt(std::chrono::steady_clock::time_point due_since) const;

  Bus bus_;
  Lines lines_;
  Side lines_side_, bus_side_;
  std::optional<std::chrono::steady_clock::time_point> held_since_;  // interrupts that are due
  int wake_ = -1;
  std::atomic<bool> stops_ = false;
};

}  // namespace skillet::mmio
