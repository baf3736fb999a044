// Records the submissions to an open file of ethosu: one for each job, because each has its own regions.
#include <array>
#include <map>
#include <span>
#include <vector>

#include "kernels/ethosu/abi.h"
#include "kernels/ethosu/client/ethosu.h"
#include "kernels/ethosu/describe.h"

namespace skillet::kernels::ethosu {
namespace {

constexpr std::chrono::seconds kPatience{5};
constexpr uint32_t kMostJobs = 1 << 16;  // limit for a program

#define CALLS "kernels/ethosu/calls.def"
#include "kernels/api/call_texts.def"

class RecordedFile final : public FileRecorder {
 public:
  using FileRecorder::FileRecorder;

 private:
  void learn(unsigned long request, uint64_t argument) override;
  void forget(uint32_t handle) override;
  Result<void> record(int fd, unsigned long request, uint64_t argument) override;
  Result<capture::Submission> snapshot(int fd, const SubmitJob& job);
  void take_contents(int fd, capture::BufferSnapshot& snapshot, Buffer& buffer);

  std::map<uint32_t, std::vector<uint32_t>> streams_;  // command streams, by handle; guarded by mutex_
};

// Notes new buffers and command streams.
void RecordedFile::learn(unsigned long request, uint64_t argument) {
  if (is_request(request, kBoCreate)) {
    if (const auto args = argument_of<BoCreate>(request, argument)) buffers_[args->handle] = {.size_bytes = args->size};
  } else if (is_request(request, kCmdstreamBoCreate)) {
    const auto args = argument_of<CmdstreamBoCreate>(request, argument);
    if (!args) return;
    std::vector<uint32_t>& words = streams_[args->handle];
    if (copy_array_from_user(words, args->data, args->size / 4) != 0) words.clear();
  }
}

void RecordedFile::forget(uint32_t handle) {
  streams_.erase(handle);
  FileRecorder::forget(handle);
}

Result<void> RecordedFile::record(int fd, unsigned long request, uint64_t argument) {
  const auto args = argument_of<Submit>(request, argument);
  std::vector<SubmitJob> jobs;
  if (!args || args->job_count == 0 || args->job_count > kMostJobs ||
      copy_array_from_user(jobs, args->jobs, args->job_count) != 0)
    return error(ErrorCode::invalid_argument, "bad submission");
  if (jobs.size() > 1)  // a refused job undoes the whole call, but only the last submission can be removed
    return error(ErrorCode::unsupported, "a submission of {} jobs: one at a time is recorded", jobs.size());
  if (!info_) {
    SK_TRY_ASSIGN(Core core, read_core(DrmFile::borrow(calls_, fd, node_)));
    info_ = std::move(core.info);
  }
  SK_TRY_ASSIGN(capture::Submission submission, snapshot(fd, jobs[0]));
  return sink_.append(*info_, std::move(submission));
}

// Arguments that the kernel will refuse give invalid_argument: they are not recorded, and recording continues. A job
// can reach only the buffers of its regions. The arguments do not show which it writes: the kernel finds that in the
// stream.
Result<capture::Submission> RecordedFile::snapshot(int fd, const SubmitJob& job) {
  const auto stream = streams_.find(job.cmd_bo);
  if (stream == streams_.end())
    return error(ErrorCode::invalid_argument, "handle {} is not a command stream", job.cmd_bo);
  capture::Submission submission;
  submission.jobs = capture::one_list(stream->second);
  if (job.sram_size != 0) submission.parameters.push_back({kSramParameter, job.sram_size});
  for (unsigned region = 0; region < kRegions; ++region) {
    const uint32_t handle = job.region_bo_handles[region];
    if (handle == 0) continue;
    const auto found = buffers_.find(handle);
    if (found == buffers_.end()) return error(ErrorCode::invalid_argument, "no handle {}", handle);
    capture::BufferSnapshot one{
        .handle = handle, .address = region_address(region), .size_bytes = found->second.size_bytes};
    one.listed = one.read = one.write = true;
    take_contents(fd, one, found->second);
    submission.buffers.push_back(std::move(one));
  }
  return submission;
}

void RecordedFile::take_contents(int fd, capture::BufferSnapshot& snapshot, Buffer& buffer) {
  BoWait wait{.handle = snapshot.handle, .pad = 0, .timeout_ns = deadline(kPatience)};
  calls_->ioctl(fd, kBoWait, &wait);
  if (buffer.bytes == nullptr) {
    BoMmapOffset place{.handle = snapshot.handle, .pad = 0, .offset = 0};
    if (calls_->ioctl(fd, kBoMmapOffset, &place) != 0 ||
        calls_->mmap(fd, buffer.size_bytes, place.offset, buffer.bytes) < 0)
      buffer.bytes = nullptr;
  }
  if (buffer.bytes != nullptr) capture::set_contents(snapshot, {buffer.bytes, buffer.size_bytes});
}

}  // namespace

std::shared_ptr<FileRecorder> record(const SyscallsRef& calls, const std::string& node, RecordSink sink) {
  return std::make_shared<RecordedFile>(calls, node, std::move(sink), kSubmit, kCalls);
}

}  // namespace skillet::kernels::ethosu
