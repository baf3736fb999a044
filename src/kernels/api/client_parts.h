// Checks and tables that the devices of several kernel drivers share.
// Called by the devices of kernels/<kernel>/client/.
// Must not know: any single kernel driver; ioctls.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "kernels/api/device.h"

namespace skillet::kernels {

template <typename Buffer>
Result<const Buffer*> find_buffer(const std::map<Handle, Buffer>& buffers, Handle handle, const std::string& node) {
  const auto found = buffers.find(handle);
  if (found == buffers.end()) return error(ErrorCode::invalid_argument, "{}: no buffer has handle {}", node, handle);
  return &found->second;
}

// A buffer of a prepared job.
struct BufferUse {
  Handle handle = 0;
  uint64_t serial = 0;
};

// Checks that the buffers are those of prepare(): a freed one is not mapped, and its handle may have been reused.
template <typename Buffer>
Result<void> check_alive(const std::map<Handle, Buffer>& buffers, const std::vector<BufferUse>& uses,
                         const std::string& job, const std::string& node) {
  for (const BufferUse& one : uses) {
    const auto found = buffers.find(one.handle);
    if (found == buffers.end() || found->second.serial != one.serial)  // the text is made on failure only
      return error(ErrorCode::invalid_argument, "job '{}': {}: no buffer has handle {}", job, node, one.handle);
  }
  return {};
}

// For errors.
template <typename Prepared>
std::string job_name(const std::map<JobId, Prepared>& prepared, JobId id) {
  const auto found = prepared.find(id);
  return found == prepared.end() ? "that was already released" : fmt::format("'{}'", found->second.name);
}

// Commands of kernel drivers that take them with a call: they stay in process memory; their handles are unknown to the
// kernel.
class CommandLists {
 public:
  CommandLists(std::string node, uint64_t bytes_max) : node_(std::move(node)), bytes_max_(bytes_max) {}

  Result<Handle> alloc(uint64_t size_bytes) {
    if (size_bytes == 0 || size_bytes > bytes_max_)
      return error(ErrorCode::invalid_argument, "{}: a buffer of {} bytes for commands", node_, size_bytes);
    lists_[next_] = std::make_shared<Bytes>(size_bytes);
    return next_++;
  }
  bool free(Handle handle) { return lists_.erase(handle) != 0; }
  bool contains(Handle handle) const { return lists_.contains(handle); }
  const std::shared_ptr<Bytes>& at(Handle handle) const { return lists_.at(handle); }

  // The job's command list, which must be one list of whole words, at a multiple of `unit`.
  Result<std::span<const uint8_t>> words_of(const Job& job, uint64_t unit) const {
    if (job.commands.size() != 1)
      return error(ErrorCode::unsupported, "{} lists of commands; {} takes one", job.commands.size(), node_);
    const Commands& range = job.commands[0];
    const auto found = lists_.find(range.buffer);
    if (found == lists_.end())
      return error(ErrorCode::invalid_argument, "{}: no commands have handle {}", node_, range.buffer);
    const uint64_t there = found->second->size();
    if (range.offset_bytes > there || range.size_bytes > there - range.offset_bytes || range.size_bytes == 0 ||
        range.offset_bytes % unit != 0 || range.size_bytes % 4 != 0 || range.size_bytes > UINT32_MAX)
      return error(ErrorCode::invalid_argument, "{}: {} bytes at {} of {} bytes of commands are not whole words", node_,
                   range.size_bytes, range.offset_bytes, there);
    return std::span<const uint8_t>(*found->second).subspan(range.offset_bytes, range.size_bytes);
  }

 private:
  const std::string node_;
  const uint64_t bytes_max_;
  std::map<Handle, std::shared_ptr<Bytes>> lists_;
  Handle next_ = uint32_t{1} << 31;
};

}  // namespace skillet::kernels
