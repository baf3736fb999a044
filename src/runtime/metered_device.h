// MeteredDevice: a device that counts jobs, busy time and bytes of buffers for `skillet top`.
// Called by code that opens a device.
// Must not know: who reads the counts.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "base/use_page.h"
#include "kernels/api/forwarding_device.h"

namespace skillet::runtime {

class MeteredDevice final : public kernels::ForwardingDevice {
 public:
  MeteredDevice(std::unique_ptr<Device> inner, std::shared_ptr<use::Counter> counter)
      : ForwardingDevice(std::move(inner)), counter_(std::move(counter)) {}

  Result<kernels::Handle> alloc(uint64_t size_bytes) override {
    return held(ForwardingDevice::alloc(size_bytes), size_bytes);
  }
  Result<kernels::Handle> alloc_commands(uint64_t size_bytes) override {
    return held(ForwardingDevice::alloc_commands(size_bytes), size_bytes);
  }
  Result<void> free(kernels::Handle handle) override {
    auto freed = ForwardingDevice::free(handle);
    if (const auto known = bytes_.find(handle); freed.ok() && known != bytes_.end()) {
      counter_->change_bytes(-known->second);
      bytes_.erase(known);
    }
    return freed;
  }
  Result<kernels::Fence> submit(std::span<const kernels::JobId> jobs) override {
    counter_->submitted(jobs.size());
    auto fence = ForwardingDevice::submit(jobs);
    if (!fence.ok()) counter_->ended(false);
    return fence;
  }
  // After a timeout the caller waits again later; the device counts as busy until then.
  Result<void> wait(kernels::Fence fence, std::chrono::nanoseconds timeout) override {
    auto waited = ForwardingDevice::wait(fence, timeout);
    if (waited.ok() || waited.error().code != ErrorCode::timeout) counter_->ended(waited.ok());
    return waited;
  }

 private:
  Result<kernels::Handle> held(Result<kernels::Handle> handle, uint64_t size_bytes) {
    if (!handle.ok()) return handle;
    bytes_[*handle] = static_cast<int64_t>(size_bytes);
    counter_->change_bytes(bytes_[*handle]);
    return handle;
  }

  const std::shared_ptr<use::Counter> counter_;
  std::map<kernels::Handle, int64_t> bytes_;
};

}  // namespace skillet::runtime
