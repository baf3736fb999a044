// The ethosu kernel device: buffers without addresses, a command stream that the kernel copies and checks when a job is
// prepared, jobs in order. Fences exist only for buffers: a submission has finished when the buffer that its last job
// writes is no longer in use.
#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "base/caught.h"
#include "base/log.h"
#include "base/own_process.h"
#include "kernels/api/client_parts.h"
#include "kernels/api/drm_file.h"
#include "kernels/ethosu/abi.h"
#include "kernels/ethosu/client/ethosu.h"

namespace skillet::kernels::ethosu {
namespace {

constexpr std::chrono::seconds kCpuAccessTimeout{5};
constexpr std::chrono::seconds kCloseTimeout{2};
constexpr size_t kMaxFencesKept = 256;

struct Buffer {
  uint64_t size_bytes = 0;
  uint8_t* bytes = nullptr;  // once mapped
  uint64_t serial = 0;       // unique in the file, also if a handle is reused
};

class EthosuDevice final : public Device {
 public:
  EthosuDevice(DrmFile file, Core core) : file_(std::move(file)), core_(std::move(core)) {}
  ~EthosuDevice() override;

  const capture::DeviceInfo& info() const override { return core_.info; }
  Result<Handle> alloc(uint64_t size_bytes) override;
  Result<Handle> alloc_commands(uint64_t size_bytes) override {
    const std::lock_guard lock(mutex_);
    return commands_.alloc(size_bytes);
  }
  Result<void> free(Handle handle) override;
  Result<uint64_t> address(Handle handle) const override;
  Result<std::span<uint8_t>> map(Handle handle) override;
  Result<void> begin_cpu(Handle handle, bool write) override;
  Result<void> end_cpu(Handle handle) override;
  Result<JobId> prepare(const Job& job) override;
  void release(JobId id) override;
  Result<Fence> submit(std::span<const JobId> jobs) override;
  Result<void> wait(Fence fence, std::chrono::nanoseconds timeout) override;
  bool loses_jobs() const override { return file_.calls().loses_jobs(); }
  void leave_to_parent() override { file_.close(); }
  Result<int> export_dmabuf(Handle handle) override;

 private:
  struct Prepared {
    std::string name;
    std::vector<BufferUse> uses;
    Handle written = 0;  // a wait for it shows the job's end
    Handle fast = 0;     // our own buffer that replaces on-chip memory
    SubmitJob job{};
  };
  struct InFlight {
    Fence fence = 0;
    JobId job = 0;  // the last one
    Handle written = 0;
  };

  Result<const Buffer*> find(Handle handle) const { return find_buffer(buffers_, handle, core_.info.node); }
  Result<void> list(const JobBuffer& use, Prepared& prepared) const;
  Result<void> give_sram(uint64_t size_bytes, Prepared& prepared);
  Result<Handle> create_stream(std::span<const uint8_t> words) const;
  int wait_for(Handle handle, std::chrono::nanoseconds timeout) const;
  int finish_first(std::chrono::nanoseconds timeout);
  void unmap(Buffer& buffer) const;

  mutable std::recursive_mutex mutex_;
  const OwnProcess process_;
  DrmFile file_;
  Core core_;
  const bool tells_submits_ = log::debug_flag("submit");
  std::map<Handle, Buffer> buffers_;
  CommandLists commands_{core_.info.node, kCommandStreamMax};  // copied when a job is prepared
  std::map<JobId, Prepared> prepared_;
  std::vector<SubmitJob> call_;  // reused, so that a submission allocates nothing
  std::deque<InFlight> in_flight_;
  JobId last_job_ = 0;
  Fence last_fence_ = 0;
  uint64_t last_serial_ = 0;
};

// A running job keeps its buffers in the kernel. In a child of fork() jobs belong to the parent.
EthosuDevice::~EthosuDevice() {
  if (!process_.is_here()) return;
  if (!in_flight_.empty()) tidy("closing while a job runs", [&] { return wait(last_fence_, kCloseTimeout); });
  for (auto& [handle, buffer] : buffers_) unmap(buffer);
}

void EthosuDevice::unmap(Buffer& buffer) const {
  if (buffer.bytes != nullptr) file_.calls().munmap(buffer.bytes, buffer.size_bytes);
  buffer.bytes = nullptr;
}

Result<Handle> EthosuDevice::alloc(uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  if (size_bytes == 0) return error(ErrorCode::invalid_argument, "{}: a buffer of 0 bytes", core_.info.node);
  BoCreate request{.size = size_bytes, .flags = 0, .handle = 0};
  SK_TRY(file_.call(kBoCreate, &request, fmt::format("allocating a buffer of {} bytes", size_bytes)));
  buffers_[request.handle] = {size_bytes, nullptr, ++last_serial_};
  return request.handle;
}

Result<void> EthosuDevice::free(Handle handle) {
  const std::lock_guard lock(mutex_);
  if (commands_.free(handle)) return {};
  SK_TRY(find(handle));
  if (!in_flight_.empty()) static_cast<void>(wait_for(handle, kCloseTimeout));
  unmap(buffers_.at(handle));
  buffers_.erase(handle);
  file_.close_buffer(handle);
  return {};
}

Result<uint64_t> EthosuDevice::address(Handle handle) const {
  const std::lock_guard lock(mutex_);
  if (!commands_.contains(handle)) SK_TRY(find(handle));
  return uint64_t{0};
}

Result<std::span<uint8_t>> EthosuDevice::map(Handle handle) {
  const std::lock_guard lock(mutex_);
  if (commands_.contains(handle)) return std::span<uint8_t>(*commands_.at(handle));
  SK_TRY(find(handle));
  Buffer& buffer = buffers_.at(handle);
  if (buffer.bytes == nullptr) {
    BoMmapOffset request{.handle = handle, .pad = 0, .offset = 0};
    SK_TRY(file_.call(kBoMmapOffset, &request, fmt::format("reading the map offset of buffer {}", handle)));
    SK_TRY(file_.map_buffer(handle, buffer.size_bytes, request.offset, buffer.bytes));
  }
  return std::span<uint8_t>(buffer.bytes, buffer.size_bytes);
}

// Waits for all jobs that use the buffer. Returns an errno, or 0.
int EthosuDevice::wait_for(Handle handle, std::chrono::nanoseconds timeout) const {
  BoWait request{.handle = handle, .pad = 0, .timeout_ns = deadline(timeout)};
  return file_.try_call(kBoWait, &request, timeout + kPatience);
}

// Memory is coherent: only a wait is needed.
Result<void> EthosuDevice::begin_cpu(Handle handle, bool write) {
  const std::lock_guard lock(mutex_);
  if (commands_.contains(handle)) return {};
  SK_TRY(find(handle));
  if (const int number = wait_for(handle, kCpuAccessTimeout); number != 0)
    return file_.access_failure(number, handle, write, kCpuAccessTimeout);
  return {};
}

Result<void> EthosuDevice::end_cpu(Handle handle) {
  return address(handle).ok() ? Result<void>() : find(handle).error();
}

Result<void> EthosuDevice::list(const JobBuffer& use, Prepared& prepared) const {
  SK_TRY_ASSIGN(const Buffer* buffer, find(use.handle));
  if (use.slot >= kRegions || prepared.job.region_bo_handles[use.slot] != 0)
    return error(ErrorCode::invalid_argument, "{}: region {} is given twice, or does not exist", core_.info.node,
                 use.slot);
  if (std::ranges::find(prepared.uses, use.handle, &BufferUse::handle) != prepared.uses.end())
    return error(ErrorCode::invalid_argument, "{}: buffer {} is in two regions", core_.info.node, use.handle);
  prepared.job.region_bo_handles[use.slot] = use.handle;
  prepared.uses.push_back({use.handle, buffer->serial});
  if (use.write) prepared.written = use.handle;
  return {};
}

// On-chip memory is lost between jobs, and so are the contents of the buffer that replaces it.
Result<void> EthosuDevice::give_sram(uint64_t size_bytes, Prepared& prepared) {
  uint32_t& region = prepared.job.region_bo_handles[kSramRegion];
  if (size_bytes == 0) return {};
  if (region != 0)
    return error(ErrorCode::invalid_argument, "{}: region {} is both a buffer and on-chip memory", core_.info.node,
                 kSramRegion);
  if (size_bytes <= core_.info.fact("sram_size")) {
    prepared.job.sram_size = static_cast<uint32_t>(size_bytes);
    return {};
  }
  SK_TRY_ASSIGN(prepared.fast, alloc(size_bytes));
  region = prepared.fast;
  return {};
}

Result<Handle> EthosuDevice::create_stream(std::span<const uint8_t> words) const {
  CmdstreamBoCreate request{.size = static_cast<uint32_t>(words.size()),
                            .flags = 0,
                            .data = reinterpret_cast<uintptr_t>(words.data()),
                            .handle = 0,
                            .pad = 0};
  SK_TRY(file_.call(kCmdstreamBoCreate, &request,
                    fmt::format("passing {} bytes of commands to the kernel", words.size())));
  return request.handle;
}

Result<JobId> EthosuDevice::prepare(const Job& job) {
  const std::lock_guard lock(mutex_);
  const auto context = [&] { return fmt::format("job '{}'", job.name); };
  Prepared to{.name = job.name, .uses = {}};
  SK_TRY_ASSIGN(const auto words, commands_.words_of(job, 1).with_context(context()));
  for (const JobBuffer& one : job.buffers) SK_TRY(list(one, to).with_context(context()));
  if (to.written == 0)
    return error(ErrorCode::invalid_argument, "job '{}' writes no buffer, so its end could not be detected", job.name);
  SK_TRY_ASSIGN(to.job.cmd_bo, create_stream(words).with_context(context()));
  if (auto given = give_sram(job.sram_bytes, to); !given.ok()) {
    file_.close_buffer(to.job.cmd_bo);
    return std::move(given).error().with_context(context());
  }
  prepared_.emplace(++last_job_, std::move(to));
  return last_job_;
}

void EthosuDevice::release(JobId id) {
  const std::lock_guard lock(mutex_);
  const auto found = prepared_.find(id);
  if (found == prepared_.end()) return;
  if (process_.is_here()) {
    file_.close_buffer(found->second.job.cmd_bo);
    if (found->second.fast != 0) tidy("freeing a buffer", [&] { return free(found->second.fast); });
  }
  prepared_.erase(found);
}

Result<Fence> EthosuDevice::submit(std::span<const JobId> jobs) {
  const std::lock_guard lock(mutex_);
  if (jobs.empty()) return error(ErrorCode::invalid_argument, "{}: no job to submit", core_.info.node);
  call_.clear();
  InFlight submission{.fence = last_fence_ + 1, .job = jobs.back()};
  for (const JobId id : jobs) {
    const auto job = prepared_.find(id);
    if (job == prepared_.end()) return error(ErrorCode::invalid_argument, "{}: no job has id {}", core_.info.node, id);
    SK_TRY(check_alive(buffers_, job->second.uses, job->second.name, core_.info.node));
    call_.push_back(job->second.job);
    submission.written = job->second.written;
  }
  Submit request{.jobs = reinterpret_cast<uintptr_t>(call_.data()),
                 .job_count = static_cast<uint32_t>(call_.size()),
                 .perfmon_id = 0};
  if (tells_submits_) log::write(log::Level::info, fmt::format("{}: submit {} jobs", core_.info.node, call_.size()));
  const int number = file_.try_call(kSubmit, &request);
  if (number == EACCES)  // returned for no other reason
    return error(ErrorCode::device,
                 "{}: the kernel takes no jobs: it could not recover the NPU after a job timed out (see dmesg); "
                 "restart the machine (a kernel without CONFIG_PM_SLEEP never recovers it)",
                 core_.info.node);
  if (number != 0) return file_.failure(number, fmt::format("submitting {} jobs", call_.size()));
  in_flight_.push_back(submission);
  ++last_fence_;
  while (in_flight_.size() > kMaxFencesKept && finish_first(std::chrono::nanoseconds(0)) == 0) continue;
  return last_fence_;
}

// Waits for the oldest submission. Returns an errno, or 0. For a buffer that was freed since, free() has waited.
int EthosuDevice::finish_first(std::chrono::nanoseconds timeout) {
  const Handle written = in_flight_.front().written;
  if (buffers_.contains(written)) {
    if (const int number = wait_for(written, timeout); number != 0) return number;
  }
  in_flight_.pop_front();
  return 0;
}

// Each submission has its own time limit: while submissions end one after the other, nothing hangs.
Result<void> EthosuDevice::wait(Fence fence, std::chrono::nanoseconds timeout) {
  const std::lock_guard lock(mutex_);
  if (fence == 0 || fence > last_fence_)
    return error(ErrorCode::invalid_argument, "{}: no submission has fence {}", core_.info.node, fence);
  const auto patience = std::min<std::chrono::nanoseconds>(timeout, std::chrono::hours(1));
  while (!in_flight_.empty() && in_flight_.front().fence <= fence) {
    const JobId job = in_flight_.front().job;
    if (const int number = finish_first(patience); number != 0) {
      return file_.failure(number == EBUSY ? ETIMEDOUT : number,
                           fmt::format("waiting up to {} ms for job {}",
                                       std::chrono::duration_cast<std::chrono::milliseconds>(patience).count(),
                                       job_name(prepared_, job)));
    }
  }
  return {};
}

Result<int> EthosuDevice::export_dmabuf(Handle handle) {
  const std::lock_guard lock(mutex_);
  SK_TRY(find(handle));
  return file_.export_buffer(handle);
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const Core& core, const SyscallsRef& calls) {
  SK_TRY_ASSIGN(DrmFile file, DrmFile::open(calls, core.info.node));
  return std::unique_ptr<Device>(std::make_unique<EthosuDevice>(std::move(file), core));
}

}  // namespace skillet::kernels::ethosu
