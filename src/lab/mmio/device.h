// Device: one piece of hardware as a kernel driver sees it: registers, an interrupt line, memory of the guest.
// Called by the bus (bus.h); implemented in lab/mmio/<kernel driver>/.
// Must not know: how registers and interrupts are connected to a guest.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lab/mmio/guest_memory.h"

namespace skillet::mmio {

// The device's access to the machine around it; the function may be called from any thread.
struct Surroundings {
  const GuestMemory& guest;
  std::function<void(bool is_high)> set_interrupt;  // level of the device's line
};

struct RegisterName {
  uint32_t offset;
  std::string_view name;
};
// The register's name in a table, else the offset.
std::string name_of(std::span<const RegisterName> names, uint64_t offset);

// 32-bit registers. Calls come from one thread and must return at once: threads of the device do the work.
class Device {
 public:
  virtual ~Device() = default;
  virtual uint32_t read(uint64_t offset) = 0;
  virtual void write(uint64_t offset, uint32_t value) = 0;
  virtual std::string register_name(uint64_t offset) const = 0;
  // Called after the guest has disconnected, before its memory is unmapped: threads of the device must stop using it
  // before this returns.
  virtual void stop() {}
  // Counts as text: "12 jobs, 0 faults".
  virtual std::string summary() const { return {}; }
};

}  // namespace skillet::mmio
