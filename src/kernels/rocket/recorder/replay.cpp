// Replay on rocket: the kernel chooses the lowest free addresses, so buffers are created in the order of their recorded
// addresses, with filler buffers in the gaps.
#include <algorithm>
#include <map>

#include "base/int_math.h"
#include "kernels/rocket/abi.h"
#include "kernels/rocket/client/rocket.h"

namespace skillet::kernels::rocket {
namespace {

constexpr std::chrono::seconds kTimeout{60};

class RocketReplayer final : public Replayer {
 public:
  RocketReplayer(Core core, SyscallsRef calls) : core_(std::move(core)), calls_(std::move(calls)) {}

  Result<void> run(const capture::Submission& submission) override {
    SK_TRY(place(submission));
    std::vector<JobId> ids;
    for (const capture::Job& recorded : submission.jobs) {
      SK_TRY_ASSIGN(const Job job, job_of(recorded, submission));
      SK_TRY_INTO(ids.emplace_back(), device_->prepare(job));
    }
    if (overlaps_ != nullptr) overlaps_->begin();
    const Result<void> done = run_to_end(ids);
    if (overlaps_ != nullptr) overlaps_->end();
    SK_TRY(done);
    for (const JobId id : ids) device_->release(id);
    for (auto& [handle, buffer] : buffers_) SK_TRY(read_back(buffer));
    return {};
  }

  Result<std::span<const uint8_t>> contents(Handle recorded) override {
    const auto found = buffers_.find(recorded);
    if (found == buffers_.end())
      return error(ErrorCode::invalid_argument, "the last submission has no buffer {}", recorded);
    return std::span<const uint8_t>(found->second.bytes);
  }

  void count_overlaps(Overlaps* overlaps) override { overlaps_ = overlaps; }

 private:
  struct Buffer {
    uint64_t address = 0, size_bytes = 0;
    Handle handle = 0;  // of the replaying device
    Bytes bytes;        // after the last run
  };

  static bool is_mapped(const capture::BufferSnapshot& one) { return one.size_bytes != 0; }

  Result<void> run_to_end(std::span<const JobId> ids) {
    SK_TRY_ASSIGN(const Fence fence, device_->submit(ids));
    return device_->wait(fence, kTimeout);
  }

  // True if all buffers are already in the right places.
  bool fits(const capture::Submission& submission) const {
    size_t mapped = 0;
    for (const capture::BufferSnapshot& one : submission.buffers) {
      if (!is_mapped(one)) continue;
      const auto found = buffers_.find(one.handle);
      if (found == buffers_.end() || found->second.address != one.address || found->second.size_bytes != one.size_bytes)
        return false;
      ++mapped;
    }
    return mapped == buffers_.size();
  }

  Result<void> place(const capture::Submission& submission) {
    SK_TRY(check_replay_size(submission.buffers, false));
    if (!fits(submission)) SK_TRY(allocate(submission));
    for (const capture::BufferSnapshot& one : submission.buffers) {
      if (!is_mapped(one) || one.content == capture::Content::unknown) continue;
      SK_TRY(write(buffers_.at(one.handle),
                   std::span(one.bytes).first(std::min<size_t>(one.bytes.size(), one.size_bytes))));
    }
    return {};
  }

  // Allocates in a new file, whose addresses are all free. Copies the contents of buffers that are kept.
  Result<void> allocate(const capture::Submission& submission) {
    std::vector<const capture::BufferSnapshot*> order;
    for (const capture::BufferSnapshot& one : submission.buffers) {
      if (is_mapped(one)) order.push_back(&one);
    }
    std::ranges::sort(order, {}, &capture::BufferSnapshot::address);
    device_.reset();
    const bool is_from_0 = !order.empty() && order.front()->address == 0;
    SK_TRY_ASSIGN(device_, is_from_0 ? open_device_from_0(core_, calls_) : open_device(core_, calls_));
    std::map<Handle, Buffer> old;
    old.swap(buffers_);
    uint64_t next = is_from_0 ? 0 : kPageBytes;
    for (const capture::BufferSnapshot* one : order) {
      SK_TRY_ASSIGN(const Handle handle, alloc_at(*one, next));
      Buffer& buffer = buffers_[one->handle] = {one->address, one->size_bytes, handle, {}};
      if (const auto known = old.find(one->handle); known != old.end()) {
        known->second.bytes.resize(std::min<size_t>(known->second.bytes.size(), one->size_bytes));
        SK_TRY(write(buffer, known->second.bytes));
      }
    }
    return {};
  }

  // Recorded jobs read beyond the requested size, to the end of the page.
  Result<Handle> alloc_at(const capture::BufferSnapshot& recorded, uint64_t& next) {
    const uint64_t address = recorded.address;
    if (address > kReplayEndAddress || recorded.size_bytes > kReplayEndAddress - address)
      return error(ErrorCode::malformed, "buffer {}: {} bytes at {:#x}; all must be below {:#x}", recorded.handle,
                   recorded.size_bytes, address, kReplayEndAddress);
    if (next < address) SK_TRY(device_->alloc(address - next));
    next = align_up(address + recorded.size_bytes, kPageBytes);
    SK_TRY_ASSIGN(const Handle handle, device_->alloc(next - address));
    SK_TRY_ASSIGN(const uint64_t got, device_->address(handle));
    if (got == address) return handle;
    return error(ErrorCode::device, "buffer {}: recorded at {:#x}; the kernel gives it {:#x}", recorded.handle, address,
                 got);
  }

  // Pads `bytes` with zeros.
  Result<void> write(const Buffer& buffer, std::span<const uint8_t> bytes) {
    SK_TRY(device_->begin_cpu(buffer.handle, true));
    SK_TRY_ASSIGN(const auto target, device_->map(buffer.handle));
    std::ranges::copy(bytes, target.begin());
    std::ranges::fill(target.subspan(bytes.size()), uint8_t{0});
    return device_->end_cpu(buffer.handle);
  }

  Result<void> read_back(Buffer& buffer) {
    SK_TRY(device_->begin_cpu(buffer.handle, false));
    SK_TRY_ASSIGN(const auto bytes, device_->map(buffer.handle));
    buffer.bytes.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(buffer.size_bytes));
    return device_->end_cpu(buffer.handle);
  }

  Result<Commands> commands_at(const capture::Commands& list) const {
    for (const auto& [handle, buffer] : buffers_) {
      if (list.address < buffer.address || list.address - buffer.address >= buffer.size_bytes) continue;
      return Commands{buffer.handle, list.address - buffer.address, list.size_bytes};
    }
    return error(ErrorCode::malformed, "no buffer has the commands at {:#x}", list.address);
  }

  Result<Job> job_of(const capture::Job& recorded, const capture::Submission& submission) const {
    Job job{.name = "recorded job", .commands = {}, .buffers = {}};
    for (const capture::Commands& list : recorded.commands) SK_TRY_INTO(job.commands.emplace_back(), commands_at(list));
    for (const capture::BufferSnapshot& one : submission.buffers) {
      if (one.listed && is_mapped(one)) job.buffers.push_back({buffers_.at(one.handle).handle, one.read, one.write});
    }
    return job;
  }

  Core core_;
  SyscallsRef calls_;
  Overlaps* overlaps_ = nullptr;
  std::unique_ptr<Device> device_;
  std::map<Handle, Buffer> buffers_;  // by recorded handle
};

}  // namespace

Result<std::unique_ptr<Replayer>> open_replayer(const Core& core, const SyscallsRef& calls) {
  return std::unique_ptr<Replayer>(std::make_unique<RocketReplayer>(core, calls));
}

}  // namespace skillet::kernels::rocket
