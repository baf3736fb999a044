#include "runtime/shared_buffer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/log.h"
#include "base/process_lock.h"

namespace skillet::runtime {
namespace {

// All SharedBuffers, for find_anywhere(). These have no destructors: contexts may be closed while the program exits.
constinit ProcessLock all_lock;
constinit SharedBuffers* all = nullptr;
constinit uint64_t last_serial = 0;

// Holds the lock of `all`. A child of fork() starts with an empty list: its parent's may be inconsistent.
class AllLocked {
 public:
  AllLocked() {
    if (all_lock.lock_in_process()) all = nullptr;
  }
  ~AllLocked() { all_lock.unlock(); }
  AllLocked(const AllLocked&) = delete;
};

Result<SharedBuffer> describe(kernels::Device& device, kernels::Handle handle) {
  SharedBuffer buffer{.handle = handle};
  SK_TRY_ASSIGN(buffer.address, device.address(handle));
  SK_TRY_ASSIGN(buffer.bytes, device.map(handle));
  SK_TRY_ASSIGN(buffer.dmabuf, device.export_dmabuf(handle));
  return buffer;
}

// Returns `described`; frees the handle if it is an error.
Result<SharedBuffer> described_or_freed(kernels::Device& device, kernels::Handle handle,
                                        Result<SharedBuffer> described) {
  if (described.ok()) return described;
  if (auto freed = device.free(handle); !freed.ok()) log::warning("freeing a shared buffer: {}", freed.error().message);
  return described;
}

}  // namespace

SharedBuffers::SharedBuffers() {
  const AllLocked lock;
  next_ = all;
  all = this;
}

SharedBuffers::~SharedBuffers() {
  if (process_.is_here()) {
    const AllLocked lock;
    SharedBuffers** link = &all;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
  }
  for (const auto& [start, buffer] : buffers_) {
    if (buffer.dmabuf >= 0) ::close(buffer.dmabuf);
  }
}

void SharedBuffers::add(SharedBuffer& buffer) {
  const AllLocked lock;
  buffer.serial = ++last_serial;
  buffers_[buffer.bytes.data()] = buffer;
}

// Removes it from the list, unless a run uses it.
Result<SharedBuffer> SharedBuffers::take(const uint8_t* start) {
  const AllLocked lock;
  const auto found = buffers_.find(start);
  if (found == buffers_.end()) return error(ErrorCode::invalid_argument, "no shared buffer starts at this address");
  if (found->second.holders != 0)
    return error(ErrorCode::invalid_argument, "a run uses this shared buffer; wait until it has ended");
  const SharedBuffer buffer = found->second;
  buffers_.erase(found);
  return buffer;
}

Result<SharedBuffer> SharedBuffers::alloc(kernels::Device& device, uint64_t size_bytes) {
  SK_TRY_ASSIGN(const kernels::Handle handle, device.alloc(size_bytes));
  SK_TRY_ASSIGN(SharedBuffer buffer, described_or_freed(device, handle, describe(device, handle)));
  add(buffer);
  return buffer;
}

Result<SharedBuffer> SharedBuffers::import(kernels::Device& device, int dmabuf) {
  SK_TRY_ASSIGN(const kernels::Handle handle, device.import_dmabuf(dmabuf));
  const auto describe_import = [&]() -> Result<SharedBuffer> {
    SharedBuffer buffer{.handle = handle};
    SK_TRY_ASSIGN(buffer.address, device.address(handle));
    SK_TRY_ASSIGN(buffer.bytes, device.map(handle));
    if (buffers_.contains(buffer.bytes.data()))
      return error(ErrorCode::invalid_argument, "descriptor {} is already a shared buffer of this device", dmabuf);
    buffer.dmabuf = ::fcntl(dmabuf, F_DUPFD_CLOEXEC, 0);
    if (buffer.dmabuf < 0) return error(ErrorCode::io, "descriptor {}: {}", dmabuf, std::strerror(errno));
    return buffer;
  };
  SK_TRY_ASSIGN(SharedBuffer buffer, described_or_freed(device, handle, describe_import()));
  add(buffer);
  return buffer;
}

Result<void> SharedBuffers::import(kernels::Device& device, int dmabuf, std::span<uint8_t> bytes) {
  SK_TRY_ASSIGN(const kernels::Handle handle, device.import_dmabuf(dmabuf));
  const auto describe_import = [&]() -> Result<SharedBuffer> {
    SK_TRY_ASSIGN(const uint64_t address, device.address(handle));
    SK_TRY_ASSIGN(const std::span<uint8_t> own_view, device.map(handle));
    if (own_view.size() < bytes.size())
      return error(ErrorCode::invalid_argument, "descriptor {} has {} bytes, not {}", dmabuf, own_view.size(),
                   bytes.size());
    return SharedBuffer{.handle = handle, .address = address, .bytes = bytes};
  };
  SK_TRY_ASSIGN(SharedBuffer buffer, described_or_freed(device, handle, describe_import()));
  add(buffer);
  return {};
}

Result<void> SharedBuffers::free(kernels::Device& device, const uint8_t* start) {
  SK_TRY_ASSIGN(const SharedBuffer buffer, take(start));
  if (buffer.dmabuf >= 0) ::close(buffer.dmabuf);
  return device.free(buffer.handle);
}

const SharedBuffer* SharedBuffers::find(std::span<const uint8_t> bytes) const {
  auto found = buffers_.upper_bound(bytes.data());
  if (found == buffers_.begin()) return nullptr;
  const SharedBuffer& buffer = std::prev(found)->second;
  const auto offset = static_cast<size_t>(bytes.data() - buffer.bytes.data());
  return offset <= buffer.bytes.size() && bytes.size() <= buffer.bytes.size() - offset ? &buffer : nullptr;
}

// Needs the lock of `all`.
SharedBuffer* SharedBuffers::any(std::span<const uint8_t> bytes) {
  for (SharedBuffers* one = all; one != nullptr; one = one->next_) {
    const SharedBuffer* found = one->find(bytes);
    if (found != nullptr && found->dmabuf >= 0) return &one->buffers_.at(found->bytes.data());
  }
  return nullptr;
}

std::optional<SharedBuffer> SharedBuffers::find_anywhere(std::span<const uint8_t> bytes) {
  const AllLocked lock;
  const SharedBuffer* found = any(bytes);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

uint64_t SharedBuffers::hold(std::span<const uint8_t> bytes) {
  const AllLocked lock;
  SharedBuffer* found = any(bytes);
  if (found == nullptr) return 0;
  ++found->holders;
  return found->serial;
}

void SharedBuffers::release(uint64_t serial) {
  const AllLocked lock;
  for (SharedBuffers* one = all; one != nullptr; one = one->next_) {
    for (auto& [start, buffer] : one->buffers_) {
      if (buffer.serial == serial) --buffer.holders;
    }
  }
}

void HeldBuffers::add(std::span<const uint8_t> bytes) {
  serials_.reserve(serials_.size() + 1);
  if (const uint64_t serial = SharedBuffers::hold(bytes); serial != 0) serials_.push_back(serial);
}

void HeldBuffers::clear() {
  for (const uint64_t serial : serials_) SharedBuffers::release(serial);
  serials_.clear();
}

}  // namespace skillet::runtime
