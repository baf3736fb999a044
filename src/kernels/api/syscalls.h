// Syscalls: the few system calls that a client of a kernel driver makes. system_calls() are those of this machine; a
// fake kernel answers them in this process, a recorder passes them on.
// Called by the devices of kernels/<kernel>/client/ and the search for them.
// Must not know: any single kernel driver, or what is asked of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace skillet::kernels {

// All give 0 or more for success, else a negative errno.
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

  // The first name that the device tree gives the device behind an open file; empty if unknown.
  virtual std::string compatible(int fd) = 0;
  // The first such name of each device that a driver of the platform bus drives, in no order.
  virtual std::vector<std::string> driven_devices(std::string_view driver) = 0;
  // Why the last call failed, where more is known than its errno.
  virtual std::string reason() const { return {}; }
  // Waits while the kernel does what it gives no sign of. In a simulated one the time passes at once.
  virtual void pause(std::chrono::nanoseconds time);
  // By which runs are timed; of a simulated board its own, by the timing model, where the chip is timed.
  virtual std::chrono::nanoseconds clock();
  // Files of a node that ask for it have turns: -EAGAIN while another file has one. Closing gives it back.
  virtual int take_turn(int fd);
  virtual int end_turn(int fd);
  // True: a job that hangs is thrown away and counts as finished, as kernels do it.
  virtual bool loses_jobs() const { return true; }
};
using SyscallsRef = std::shared_ptr<Syscalls>;

// Memory of another driver, by its dma-buf: by a node a stock kernel does not survive it (docs/devices.md).
// `protection` as of mmap(). Null: errno says why.
uint8_t* map_dmabuf(int fd, uint64_t size_bytes, int protection);
// What that gave, or Syscalls::mmap(), or null.
void unmap(Syscalls& calls, uint8_t* bytes, uint64_t size_bytes, bool is_dmabuf);

const SyscallsRef& system_calls();
// Syscalls::driven_devices() of this machine.
std::vector<std::string> sysfs_driven_devices(std::string_view driver);

}  // namespace skillet::kernels
