#include "runtime/shared_buffer.h"

#include <unistd.h>

#include <iterator>

#include "base/log.h"

namespace skillet::runtime {
namespace {

Result<SharedBuffer> describe(uapi::Device& device, uapi::Handle handle) {
  SharedBuffer buffer{.handle = handle};
  SK_TRY_ASSIGN(buffer.address, device.address(handle));
  SK_TRY_ASSIGN(buffer.bytes, device.map(handle));
  SK_TRY_ASSIGN(buffer.dmabuf, device.export_dmabuf(handle));
  return buffer;
}

}  // namespace

SharedBuffers::~SharedBuffers() {
  for (const auto& [start, buffer] : buffers_) ::close(buffer.dmabuf);
}

Result<SharedBuffer> SharedBuffers::alloc(uapi::Device& device, uint64_t size_bytes) {
  SK_TRY_ASSIGN(const uapi::Handle handle, device.alloc_shared(size_bytes));
  auto buffer = describe(device, handle);
  if (buffer.ok()) {
    buffers_[buffer->bytes.data()] = *buffer;
  } else if (auto freed = device.free(handle); !freed.ok()) {
    log::warning("freeing a shared buffer: {}", freed.error().message);
  }
  return buffer;
}

Result<void> SharedBuffers::free(uapi::Device& device, const uint8_t* start) {
  const auto found = buffers_.find(start);
  if (found == buffers_.end()) return error(ErrorCode::invalid_argument, "no shared buffer starts there");
  const SharedBuffer buffer = found->second;
  buffers_.erase(found);
  ::close(buffer.dmabuf);
  return device.free(buffer.handle);
}

const SharedBuffer* SharedBuffers::find(std::span<const uint8_t> bytes) const {
  auto found = buffers_.upper_bound(bytes.data());
  if (found == buffers_.begin()) return nullptr;
  const SharedBuffer& buffer = std::prev(found)->second;
  const auto offset = static_cast<size_t>(bytes.data() - buffer.bytes.data());
  return offset <= buffer.bytes.size() && bytes.size() <= buffer.bytes.size() - offset ? &buffer : nullptr;
}

}  // namespace skillet::runtime
