// Replay on ethosu: one buffer for each recorded one, in the region that its address shows.
#include <map>

#include "base/bytes.h"
#include "kernels/ethosu/abi.h"
#include "kernels/ethosu/client/ethosu.h"

namespace skillet::kernels::ethosu {
namespace {

constexpr std::chrono::seconds kTimeout{60};

class EthosuReplayer final : public Replayer {
 public:
  explicit EthosuReplayer(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  Result<void> run(const capture::Submission& submission) override {
    SK_TRY_ASSIGN(const auto words, capture::words_of(submission));
    SK_TRY(check_replay_size(submission.buffers, false));
    SK_TRY(free_others(submission));
    Job job{.name = "recorded job", .commands = {}, .buffers = {}};
    for (const capture::Parameter& one : submission.parameters) {
      if (one.name == kSramParameter) job.sram_bytes = one.value;
    }
    for (const capture::BufferSnapshot& one : submission.buffers) {
      SK_TRY_ASSIGN(const Handle handle, place(one));
      const unsigned region = region_at(one.address);
      if (one.address != region_address(region) || region >= kRegions)
        return error(ErrorCode::malformed, "buffer {}: 0x{:x} is the address of no region", one.handle, one.address);
      job.buffers.push_back({handle, true, true, static_cast<uint8_t>(region)});
    }
    const auto bytes = as_bytes(words);
    SK_TRY_ASSIGN(const Handle commands, device_->alloc_commands(bytes.size()));
    SK_TRY_ASSIGN(const auto to, device_->map(commands));
    std::ranges::copy(bytes, to.begin());
    job.commands = {{commands, 0, bytes.size()}};
    auto done = run(job);
    SK_TRY(device_->free(commands));
    return done;
  }

  Result<std::span<const uint8_t>> contents(Handle recorded) override {
    const auto found = buffers_.find(recorded);
    if (found == buffers_.end())
      return error(ErrorCode::invalid_argument, "the last submission has no buffer {}", recorded);
    SK_TRY(device_->begin_cpu(found->second.handle, false));
    SK_TRY_ASSIGN(const auto bytes, device_->map(found->second.handle));
    SK_TRY(device_->end_cpu(found->second.handle));
    return std::span<const uint8_t>(bytes);
  }

 private:
  struct Buffer {
    uint64_t size_bytes = 0;
    Handle handle = 0;  // of the replaying device
  };

  Result<void> run(const Job& job) {
    SK_TRY_ASSIGN(const JobId id, device_->prepare(job));
    const auto fence = device_->submit({&id, 1});
    auto done = fence.ok() ? device_->wait(*fence, kTimeout) : fence.error();
    device_->release(id);
    return done;
  }

  // Frees the buffers that are not in the submission.
  Result<void> free_others(const capture::Submission& submission) {
    for (auto it = buffers_.begin(); it != buffers_.end();) {
      const bool is_there = capture::find_buffer(submission, it->first) != nullptr;
      if (!is_there && it->second.handle != 0) SK_TRY(device_->free(std::exchange(it->second.handle, 0)));
      it = is_there ? std::next(it) : buffers_.erase(it);
    }
    return {};
  }

  // Returns the buffer, filled with its recorded contents if there are any.
  Result<Handle> place(const capture::BufferSnapshot& recorded) {
    if (recorded.bytes.size() > recorded.size_bytes)
      return error(ErrorCode::malformed, "buffer {}: {} bytes, {} of them recorded", recorded.handle,
                   recorded.size_bytes, recorded.bytes.size());
    Buffer& buffer = buffers_[recorded.handle];
    if (buffer.handle == 0 || buffer.size_bytes != recorded.size_bytes) {
      if (buffer.handle != 0) SK_TRY(device_->free(std::exchange(buffer.handle, 0)));
      buffer.size_bytes = recorded.size_bytes;
      SK_TRY_ASSIGN(buffer.handle, device_->alloc(recorded.size_bytes));
    }
    if (recorded.content == capture::Content::unknown) return buffer.handle;
    SK_TRY(device_->begin_cpu(buffer.handle, true));
    SK_TRY_ASSIGN(const auto to, device_->map(buffer.handle));
    std::ranges::fill(to, uint8_t{0});
    std::ranges::copy(recorded.bytes, to.begin());
    SK_TRY(device_->end_cpu(buffer.handle));
    return buffer.handle;
  }

  std::unique_ptr<Device> device_;
  std::map<Handle, Buffer> buffers_;  // by recorded handle
};

}  // namespace

Result<std::unique_ptr<Replayer>> open_replayer(const Core& core, const SyscallsRef& calls) {
  SK_TRY_ASSIGN(auto device, open_device(core, calls));
  return std::unique_ptr<Replayer>(std::make_unique<EthosuReplayer>(std::move(device)));
}

}  // namespace skillet::kernels::ethosu
