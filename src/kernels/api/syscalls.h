// Syscalls: the few system calls that a client of a kernel driver makes. system_calls() are those of this machine; an
// emulated kernel driver implements them in this process, a recorder forwards them.
// Called by the devices of kernels/<kernel>/client/ and the search for them.
// Must not know: any single kernel driver, or the purpose of a call.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace skillet::kernels {

// All return 0 or more for success, otherwise a negative errno.
class Syscalls {
 public:
  virtual ~Syscalls() = default;
  // A descriptor for reading and writing, closed on exec.
  virtual int open(const std::string& path) = 0;
  virtual int close(int fd) = 0;
  virtual int ioctl(int fd, unsigned long request, void* argument) = 0;
  // Shared, for reading and writing.
  virtual int mmap(int fd, uint64_t size_bytes, uint64_t offset, uint8_t*& bytes) = 0;
  virtual int munmap(uint8_t* bytes, uint64_t size_bytes) = 0;

  // The first name of the device of an open file in the device tree; empty if unknown.
  virtual std::string compatible(int fd) = 0;
  // The first such name of each device of a platform driver, in any order.
  virtual std::vector<std::string> driven_devices(std::string_view driver) = 0;
  // Why the last call failed, if more than its errno is known.
  virtual std::string reason() const { return {}; }
  // Waits for work of the kernel that has no completion signal. With an emulated kernel driver only its clock advances.
  virtual void pause(std::chrono::nanoseconds time);
  // CLOCK_MONOTONIC, for deadlines; with an emulated kernel driver also what pause() added.
  virtual std::chrono::nanoseconds now();
  // The clock for timing runs; a simulated board has its own, by the timing model, if the chip is timed.
  virtual std::chrono::nanoseconds clock();
  // Takes a turn of the node: -EAGAIN while another file has it. Closing the file ends the turn.
  virtual int take_turn(int fd);
  virtual int end_turn(int fd);
  // True: a job that hangs is dropped and counts as finished, as in kernels.
  virtual bool loses_jobs() const { return true; }
};
using SyscallsRef = std::shared_ptr<Syscalls>;

// Maps memory of another driver through its dma-buf: a stock kernel does not survive mapping it through the node
// (docs/devices.md). `protection` as for mmap(). Null: see errno.
uint8_t* map_dmabuf(int fd, uint64_t size_bytes, int protection);
// Unmaps memory of map_dmabuf() or Syscalls::mmap(); null is ignored.
void unmap(Syscalls& calls, uint8_t* bytes, uint64_t size_bytes, bool is_dmabuf);

const SyscallsRef& system_calls();
// Syscalls::driven_devices() of this machine.
std::vector<std::string> sysfs_driven_devices(std::string_view driver);

}  // namespace skillet::kernels
