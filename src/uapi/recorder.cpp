// Decorator that adds each submission, with all buffers as they are before it, to a capture.
#include <map>

#include "base/log.h"
#include "uapi/device.h"

namespace skillet::uapi {
namespace {

constexpr std::string_view kSimulatedPrefix = "sim:";  // "sim:a311d"

class Recorder : public Device {
 public:
  Recorder(std::unique_ptr<Device> inner, capture::Capture& capture) : inner_(std::move(inner)), capture_(capture) {
    capture_.device = inner_->info();
  }

  const capture::DeviceInfo& info() const override { return inner_->info(); }
  Result<Handle> alloc(uint64_t size_bytes) override {
    SK_TRY_ASSIGN(const Handle handle, inner_->alloc(size_bytes));
    sizes_[handle] = size_bytes;
    return handle;
  }
  Result<void> free(Handle handle) override {
    sizes_.erase(handle);
    return inner_->free(handle);
  }
  Result<uint64_t> address(Handle handle) const override { return inner_->address(handle); }
  Result<std::span<uint8_t>> map(Handle handle) override { return inner_->map(handle); }
  Result<void> begin_cpu(Handle handle, bool write) override { return inner_->begin_cpu(handle, write); }
  Result<void> end_cpu(Handle handle) override { return inner_->end_cpu(handle); }
  Result<Fence> submit(std::span<const uint32_t> stream, std::span<const SubmitBuffer> buffers) override;
  Result<void> wait(Fence fence, std::chrono::nanoseconds timeout) override { return inner_->wait(fence, timeout); }
  bool loses_jobs() const override { return inner_->loses_jobs(); }
  Result<Handle> alloc_shared(uint64_t size_bytes) override {
    SK_TRY_ASSIGN(const Handle handle, inner_->alloc_shared(size_bytes));
    sizes_[handle] = size_bytes;
    return handle;
  }
  Result<int> export_dmabuf(Handle handle) override { return inner_->export_dmabuf(handle); }
  Result<Handle> import_dmabuf(int fd) override {
    SK_TRY_ASSIGN(const Handle handle, inner_->import_dmabuf(fd));
    SK_TRY_ASSIGN(const std::span<uint8_t> bytes, inner_->map(handle));
    sizes_[handle] = bytes.size();
    return handle;
  }

 private:
  Result<capture::BufferSnapshot> snapshot(Handle handle, uint64_t size_bytes);

  std::unique_ptr<Device> inner_;
  capture::Capture& capture_;
  std::map<Handle, uint64_t> sizes_;
};

Result<capture::BufferSnapshot> Recorder::snapshot(Handle handle, uint64_t size_bytes) {
  capture::BufferSnapshot snapshot{.handle = handle, .size_bytes = size_bytes};
  SK_TRY_ASSIGN(snapshot.address, inner_->address(handle));
  SK_TRY(inner_->begin_cpu(handle, false));
  SK_TRY_ASSIGN(const std::span<uint8_t> bytes, inner_->map(handle));
  capture::set_contents(snapshot, bytes.first(std::min<uint64_t>(bytes.size(), size_bytes)));
  SK_TRY(inner_->end_cpu(handle));
  return snapshot;
}

// The submission is recorded before it runs, so that a job which hangs or faults is in the capture.
Result<Fence> Recorder::submit(std::span<const uint32_t> stream, std::span<const SubmitBuffer> buffers) {
  capture::Submission submission;
  if (info().node.starts_with(kSimulatedPrefix)) submission.chip = info().node.substr(kSimulatedPrefix.size());
  submission.stream.assign(stream.begin(), stream.end());
  std::map<Handle, SubmitBuffer> uses;
  for (const SubmitBuffer& use : buffers) uses[use.handle] = use;
  for (const auto& [handle, size_bytes] : sizes_) {
    SK_TRY_ASSIGN(capture::BufferSnapshot one, snapshot(handle, size_bytes).with_context("recording"));
    if (const auto use = uses.find(handle); use != uses.end()) {
      one.listed = true;
      one.read = use->second.read;
      one.write = use->second.write;
    }
    submission.buffers.push_back(std::move(one));
  }
  capture_.submissions.push_back(std::move(submission));
  return inner_->submit(stream, buffers);
}

}  // namespace

std::unique_ptr<Device> record(std::unique_ptr<Device> inner, capture::Capture& capture) {
  return std::make_unique<Recorder>(std::move(inner), capture);
}

}  // namespace skillet::uapi
