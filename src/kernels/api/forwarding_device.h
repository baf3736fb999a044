// ForwardingDevice: forwards all calls to another device; a subclass overrides some.
// Called by the meter of runtime/ and by tests.
// Must not know: any single kernel driver.
#pragma once

#include <memory>
#include <utility>

#include "kernels/api/device.h"

namespace skillet::kernels {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  const capture::DeviceInfo& info() const override { return inner_->info(); }
  Result<Handle> alloc(uint64_t size_bytes) override { return inner_->alloc(size_bytes); }
  Result<Handle> alloc_commands(uint64_t size_bytes) override { return inner_->alloc_commands(size_bytes); }
  Result<void> free(Handle handle) override { return inner_->free(handle); }
  Result<uint64_t> address(Handle handle) const override { return inner_->address(handle); }
  Result<std::span<uint8_t>> map(Handle handle) override { return inner_->map(handle); }
  Result<void> begin_cpu(Handle handle, bool write) override { return inner_->begin_cpu(handle, write); }
  Result<void> end_cpu(Handle handle) override { return inner_->end_cpu(handle); }
  Result<JobId> prepare(const Job& job) override { return inner_->prepare(job); }
  void release(JobId id) override { inner_->release(id); }
  Result<Fence> submit(std::span<const JobId> jobs) override { return inner_->submit(jobs); }
  Result<void> wait(Fence fence, std::chrono::nanoseconds timeout) override { return inner_->wait(fence, timeout); }
  bool loses_jobs() const override { return inner_->loses_jobs(); }
  void leave_to_parent() override { inner_->leave_to_parent(); }
  Result<int> export_dmabuf(Handle handle) override { return inner_->export_dmabuf(handle); }
  Result<Handle> import_dmabuf(int fd) override { return inner_->import_dmabuf(fd); }

 private:
  std::unique_ptr<Device> inner_;
};

}  // namespace skillet::kernels
