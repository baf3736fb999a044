// Bus: registers of devices, accessed by user-mode Linux through messages of its platform bus over virtio.
// Interrupts: a separate interrupt controller, a virtio-gpio device with a line for each device.
// Source: hardware specification kernel-mmio 4. Called by server.h.
// Must not know: any device.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/mmio/device.h"
#include "lab/mmio/vhost_user.h"

namespace skillet::mmio {

// Registers of a device in the guest's address space.
struct Window {
  uint64_t address = 0, size_bytes = 0;
  std::string name;
  Device* device = nullptr;  // borrowed
};

class Bus final : public Backend {
 public:
  static constexpr uint64_t kAddress = 0x10000000, kSizeBytes = 0x10000000;
  static constexpr uint32_t kDeviceId = 250;  // virtio id, as the kernel is configured

  void add(Window window) { windows_.push_back(std::move(window)); }
  // Logs a line for each access.
  void log_to(std::function<void(std::string_view)> log) { log_ = std::move(log); }
  Result<void> serve(uint32_t index, std::span<Queue> queues, const GuestMemory& guest) override;
  void disconnected() override;
  uint64_t reads() const { return reads_; }
  uint64_t writes() const { return writes_; }
  // Reads a register of a window, by its address; outside of windows all bits are set.
  uint32_t read(uint64_t address);
  void write(uint64_t address, uint32_t value);
  // Reads that came while the guest waited for the answer of another read: the guest mixes up the two answers.
  uint64_t nested_reads() const { return nested_reads_; }
  std::chrono::steady_clock::time_point last_access() const { return last_access_; }

 private:
  const Window* find(uint64_t address) const;
  Result<std::vector<uint8_t>> access(const Chain& chain);
  void log(bool is_write, const Window* window, uint64_t address, uint32_t value) const;
  std::vector<Window> windows_;
  std::function<void(std::string_view)> log_;
  uint64_t reads_ = 0, writes_ = 0, nested_reads_ = 0;
  std::chrono::steady_clock::time_point last_access_;
};

// A level for each line; the guest gets interrupts for lines that are high and not masked.
class Lines final : public Backend {
 public:
  static constexpr uint32_t kDeviceId = 41;  // virtio-gpio

  explicit Lines(uint16_t count) : levels_(count), waiting_(count) {}
  std::vector<uint8_t> config() const override;
  uint64_t features() const override { return 1; }  // lines can raise interrupts
  Result<void> serve(uint32_t index, std::span<Queue> queues, const GuestMemory& guest) override;
  void disconnected() override;
  // From any thread; then the server's thread must call deliver().
  void set(uint16_t line, bool is_high) { levels_[line].store(is_high); }
  // True if an interrupt must be delivered.
  bool is_due() const;
  // Returns the buffers of lines that are high.
  void deliver(Queue& events);
  uint64_t interrupts() const { return interrupts_; }

 private:
  std::vector<uint8_t> answer(const std::vector<uint8_t>& request);
  void mask(uint16_t line, Queue& events);

  std::vector<std::atomic<bool>> levels_;
  std::vector<std::optional<Chain>> waiting_;
  std::optional<uint16_t> masked_;  // by the request served last
  uint64_t interrupts_ = 0;
};

}  // namespace skillet::mmio
