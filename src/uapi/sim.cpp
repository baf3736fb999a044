// The simulated kernel device: etnaviv's conventions (softpin, listed buffers, fences) in front of a sim::Device.
#include "sim/sim.h"

#include <cstdlib>
#include <map>
#include <memory>

#include "base/log.h"
#include "uapi/address_space.h"
#include "uapi/simulated.h"

namespace skillet::uapi {
namespace {

constexpr uint64_t kFirstAddress = 0x00400000;  // where the kernel's softpin range starts
constexpr uint64_t kAddressEnd = 1ULL << 32;
constexpr uint64_t kPageBytes = 4096;

struct FreeBytes {
  void operator()(uint8_t* bytes) const { std::free(bytes); }
};

struct Allocation {
  std::unique_ptr<uint8_t, FreeBytes> bytes;
  uint64_t size_bytes = 0;
  uint64_t address = 0;

  std::span<uint8_t> span() const { return {bytes.get(), size_bytes}; }
};

class SimulatedDevice : public Device {
 public:
  SimulatedDevice(std::unique_ptr<sim::Device> chip, capture::DeviceInfo info)
      : chip_(std::move(chip)), info_(std::move(info)) {}

  const capture::DeviceInfo& info() const override { return info_; }
  Result<Handle> alloc(uint64_t size_bytes) override;
  Result<void> free(Handle handle) override;
  Result<uint64_t> address(Handle handle) const override;
  Result<std::span<uint8_t>> map(Handle handle) override;
  Result<void> begin_cpu(Handle handle, bool write) override;
  Result<void> end_cpu(Handle handle) override;
  Result<Fence> submit(std::span<const uint32_t> stream, std::span<const SubmitBuffer> buffers) override;
  Result<void> wait(Fence fence, std::chrono::nanoseconds timeout) override;

 private:
  Result<const Allocation*> find(Handle handle) const;

  std::unique_ptr<sim::Device> chip_;
  capture::DeviceInfo info_;
  AddressSpace addresses_{kFirstAddress, kAddressEnd, kPageBytes};
  std::map<Handle, Allocation> allocations_;
  Handle last_handle_ = 0;
  Fence last_fence_ = 0;
};

Result<const Allocation*> SimulatedDevice::find(Handle handle) const {
  const auto found = allocations_.find(handle);
  if (found == allocations_.end()) return error(ErrorCode::invalid_argument, "no buffer has handle {}", handle);
  return &found->second;
}

Result<Handle> SimulatedDevice::alloc(uint64_t size_bytes) {
  SK_TRY_ASSIGN(const uint64_t device_address, addresses_.take(size_bytes));
  // calloc: large buffers cost nothing until they are touched.
  Allocation allocation{.size_bytes = size_bytes, .address = device_address};
  allocation.bytes.reset(static_cast<uint8_t*>(std::calloc(size_bytes, 1)));
  if (!allocation.bytes) {
    addresses_.give_back(device_address, size_bytes);
    return error(ErrorCode::io, "no memory for a buffer of {} bytes", size_bytes);
  }
  allocations_.emplace(++last_handle_, std::move(allocation));
  return last_handle_;
}

Result<void> SimulatedDevice::free(Handle handle) {
  SK_TRY_ASSIGN(const Allocation* allocation, find(handle));
  addresses_.give_back(allocation->address, allocation->size_bytes);
  allocations_.erase(handle);
  return {};
}

Result<uint64_t> SimulatedDevice::address(Handle handle) const {
  SK_TRY_ASSIGN(const Allocation* allocation, find(handle));
  return allocation->address;
}

Result<std::span<uint8_t>> SimulatedDevice::map(Handle handle) {
  SK_TRY_ASSIGN(const Allocation* allocation, find(handle));
  return allocation->span();
}

Result<void> SimulatedDevice::begin_cpu(Handle handle, bool /*write*/) {
  SK_TRY(find(handle));
  return {};
}

Result<void> SimulatedDevice::end_cpu(Handle handle) {
  SK_TRY(find(handle));
  return {};
}

Result<Fence> SimulatedDevice::submit(std::span<const uint32_t> stream, std::span<const SubmitBuffer> buffers) {
  if (stream.empty()) return error(ErrorCode::invalid_argument, "submission without commands");
  sim::Memory memory;
  for (const SubmitBuffer& use : buffers) {
    SK_TRY_ASSIGN(const Allocation* allocation, find(use.handle));
    SK_TRY(memory.map(allocation->address, allocation->span(), fmt::format("buffer {}", use.handle))
               .with_context("submission lists a buffer twice"));
  }
  if (log::debug_flag("submit"))
    log::write(log::Level::info, fmt::format("submit {} words, {} buffers", stream.size(), buffers.size()));
  auto executed = chip_->execute(stream, memory);
  if (!executed.ok()) return error(ErrorCode::device, "{}: {}", info_.node, executed.error().message);
  return ++last_fence_;
}

Result<void> SimulatedDevice::wait(Fence fence, std::chrono::nanoseconds /*timeout*/) {
  if (fence == 0 || fence > last_fence_) return error(ErrorCode::invalid_argument, "no submission has fence {}", fence);
  return {};
}

}  // namespace

std::unique_ptr<Device> simulate(std::unique_ptr<sim::Device> chip, capture::DeviceInfo info) {
  return std::make_unique<SimulatedDevice>(std::move(chip), std::move(info));
}

Result<std::unique_ptr<Device>> open_simulated(const std::string& chip_name) {
  SK_TRY_ASSIGN(std::unique_ptr<sim::Device> chip, sim::create(chip_name));
  capture::DeviceInfo info{.kernel_driver = "etnaviv", .node = "sim:" + chip_name};
  return simulate(std::move(chip), std::move(info));
}

Result<std::unique_ptr<Device>> open_null(const std::string& chip_name) {
  class NullChip : public sim::Device {
    Result<void> execute(std::span<const uint32_t>, const sim::Memory&) override { return {}; }
  };
  capture::DeviceInfo info{.kernel_driver = "etnaviv", .node = "null:" + chip_name};
  return simulate(std::make_unique<NullChip>(), std::move(info));
}

}  // namespace skillet::uapi
