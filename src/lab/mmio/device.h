// Device: what a kernel driver sees of one piece of hardware: registers, an interrupt line, memory of the guest.
// Called by the bus (bus.h); implemented in lab/mmio/<kernel driver>/.
// Must not know: how registers and interrupts reach a guest.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lab/mmio/guest_memory.h"

namespace skillet::mmio {

// What a device has of the machine around it; the function is called from any thread.
struct Surroundings {
  const GuestMemory& guest;
  std::function<void(bool is_high)> set_interrupt;  // level of the device's line
};

struct RegisterName {
  uint32_t offset;
  std::string_view name;
};
// The name in a table, else the offset.
std::string name_of(std::span<const RegisterName> names, uint64_t offset);

// Registers of 32 bits. Calls come from one thread, and must return at once: work is done in threads of the device.
class Device {
 public:
  virtual ~Device() = default;
  virtual uint32_t read(uint64_t offset) = 0;
  virtual void write(uint64_t offset, uint32_t value) = 0;
  virtual std::string register_name(uint64_t offset) const = 0;
  // The guest is gone, and its memory goes: threads of the device stop to use it before this returns.
  virtual void stop() {}
  // What it has done, in words: "12 jobs, 0 faults".
  virtual std::string summary() const { return {}; }
};

}  // namespace skillet::mmio
