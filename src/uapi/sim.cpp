// The simulated kernel device: etnaviv's conventions (softpin, listed buffers, fences) in front of a sim::Device.
#include "sim/sim.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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

// Bytes of the heap, or a mapped memfd for buffers that are shared.
struct FreeBytes {
  int memory = -1;
  uint64_t mapped_bytes = 0;

  void operator()(uint8_t* bytes) const {
    if (memory < 0) return std::free(bytes);
    ::munmap(bytes, mapped_bytes);
    ::close(memory);
  }
};
using OwnedBytes = std::unique_ptr<uint8_t, FreeBytes>;

Result<OwnedBytes> heap_bytes(uint64_t size_bytes) {
  // calloc: large buffers cost nothing until they are touched.
  OwnedBytes bytes(static_cast<uint8_t*>(std::calloc(size_bytes, 1)));
  if (!bytes) return error(ErrorCode::io, "no memory for a buffer of {} bytes", size_bytes);
  return bytes;
}

// The bytes that `memory` (owned from here on) holds.
Result<OwnedBytes> memory_bytes(int memory, uint64_t size_bytes) {
  void* mapped = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped != MAP_FAILED) return OwnedBytes(static_cast<uint8_t*>(mapped), FreeBytes{memory, size_bytes});
  ::close(memory);
  return error(ErrorCode::io, "cannot map a shared buffer of {} bytes", size_bytes);
}

Result<OwnedBytes> shared_bytes(uint64_t size_bytes) {
  const int memory = ::memfd_create("skillet-buffer", MFD_CLOEXEC);
  if (memory < 0) return error(ErrorCode::io, "no file descriptor for a shared buffer: raise ulimit -n");
  if (::ftruncate(memory, static_cast<off_t>(size_bytes)) == 0) return memory_bytes(memory, size_bytes);
  ::close(memory);
  return error(ErrorCode::io, "no memory for a shared buffer of {} bytes", size_bytes);
}

struct Allocation {
  OwnedBytes bytes;
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
  bool loses_jobs() const override { return false; }
  Result<Handle> alloc_shared(uint64_t size_bytes) override;
  Result<int> export_dmabuf(Handle handle) override;
  Result<Handle> import_dmabuf(int fd) override;

 private:
  Result<Handle> add(uint64_t size_bytes, Result<OwnedBytes> bytes);
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

Result<Handle> SimulatedDevice::add(uint64_t size_bytes, Result<OwnedBytes> bytes) {
  if (!bytes.ok()) return std::move(bytes).error();
  SK_TRY_ASSIGN(const uint64_t device_address, addresses_.take(size_bytes));
  allocations_.emplace(++last_handle_, Allocation{std::move(bytes).value(), size_bytes, device_address});
  return last_handle_;
}

// An address first: a size that fits none is no reason to ask for memory.
Result<Handle> SimulatedDevice::alloc(uint64_t size_bytes) {
  SK_TRY_ASSIGN(const uint64_t probe, addresses_.take(size_bytes));
  addresses_.give_back(probe, size_bytes);
  return add(size_bytes, heap_bytes(size_bytes));
}

Result<Handle> SimulatedDevice::alloc_shared(uint64_t size_bytes) {
  SK_TRY_ASSIGN(const uint64_t probe, addresses_.take(size_bytes));
  addresses_.give_back(probe, size_bytes);
  return add(size_bytes, shared_bytes(size_bytes));
}

Result<int> SimulatedDevice::export_dmabuf(Handle handle) {
  SK_TRY_ASSIGN(const Allocation* allocation, find(handle));
  const int memory = allocation->bytes.get_deleter().memory;
  if (memory < 0) return error(ErrorCode::invalid_argument, "buffer {} was not allocated to be shared", handle);
  const int copy = ::fcntl(memory, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return error(ErrorCode::io, "no file descriptor for buffer {}: raise ulimit -n", handle);
  return copy;
}

// Unlike a kernel's, the handle is a new one each time.
Result<Handle> SimulatedDevice::import_dmabuf(int fd) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  const int copy = size > 0 ? ::fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
  if (copy < 0) return error(ErrorCode::io, "descriptor {} is no shared buffer", fd);
  const auto size_bytes = static_cast<uint64_t>(size);
  return add(size_bytes, memory_bytes(copy, size_bytes));
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
