// CpuAccess: begin_cpu() ... end_cpu() around a CPU access to a device buffer.
// Called by LoadedProgram.
// Must not know: what is in the buffer.
#pragma once

#include <span>
#include <utility>

#include "base/log.h"
#include "kernels/api/device.h"

namespace skillet::runtime {

// end() reports whether the written bytes will reach the device. If it is not called, for example after an error, the
// destructor ends the access.
class CpuAccess {
 public:
  // The view is exactly `size_bytes` long; the device must have mapped that much. A wait that times out is not
  // ErrorCode::timeout: the program's own jobs have ended before, so another user keeps the buffer busy.
  static Result<CpuAccess> begin(kernels::Device& device, kernels::Handle handle, uint64_t size_bytes, bool write) {
    if (auto begun = device.begin_cpu(handle, write); !begun.ok()) {
      Error failed = std::move(begun).error();
      if (failed.code == ErrorCode::timeout) failed.code = ErrorCode::device;
      return failed;
    }
    CpuAccess access(device, handle);
    SK_TRY_ASSIGN(access.bytes_, device.map(handle));
    if (access.bytes_.size() < size_bytes)
      return error(ErrorCode::device, "the device mapped {} of {} bytes", access.bytes_.size(), size_bytes);
    access.bytes_ = access.bytes_.first(size_bytes);
    return access;
  }
  CpuAccess(CpuAccess&& other) noexcept
      : device_(other.device_), handle_(std::exchange(other.handle_, 0)), bytes_(other.bytes_) {}
  CpuAccess& operator=(CpuAccess&&) = delete;
  ~CpuAccess() {
    if (handle_ == 0) return;
    if (auto ended = device_->end_cpu(handle_); !ended.ok()) log::warning("end of access: {}", ended.error().message);
  }
  std::span<uint8_t> bytes() const { return bytes_; }
  Result<void> end() { return device_->end_cpu(std::exchange(handle_, 0)); }

 private:
  CpuAccess(kernels::Device& device, kernels::Handle handle) : device_(&device), handle_(handle) {}
  kernels::Device* device_;
  kernels::Handle handle_;
  std::span<uint8_t> bytes_;
};

}  // namespace skillet::runtime
