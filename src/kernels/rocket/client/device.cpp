// The rocket kernel device: buffers at addresses that the kernel chooses, jobs of tasks, several in one call. Fences
// exist only for buffers: a submission has finished when the buffers that its jobs write are no longer in use.
//
// Stock kernels do not survive all misuse (docs/devices.md): arguments are checked here first, under a lock, and a file
// is closed in several steps.
#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "base/log.h"
#include "base/own_process.h"
#include "kernels/api/client_parts.h"
#include "kernels/api/drm_file.h"
#include "kernels/api/kernels.h"
#include "kernels/rocket/abi.h"
#include "kernels/rocket/client/quiet.h"
#include "kernels/rocket/client/rocket.h"
#include "kernels/rocket/client/unheard.h"

namespace skillet::kernels::rocket {
namespace {

constexpr std::chrono::seconds kCpuAccessTimeout{5};
constexpr std::chrono::seconds kCloseTimeout{2}, kReleaseTimeout{2};
constexpr std::chrono::milliseconds kBetweenProbes{5};
constexpr std::chrono::milliseconds kMoment{1};  // minimum wait per buffer after the timeout: its job may have ended
constexpr size_t kMaxFencesKept = 256;

struct Buffer {
  uint64_t size_bytes = 0;  // as requested
  uint64_t address = 0, offset = 0;
  uint8_t* bytes = nullptr;  // once mapped
  uint64_t serial = 0;       // unique in the file, also if a handle is reused
};

class RocketDevice final : public Device {
 public:
  RocketDevice(DrmFile file, Core core) : file_(std::move(file)), core_(std::move(core)) {}
  ~RocketDevice() override;
  // The first buffer of a file may get the address 0, which unused registers contain: it is left empty.
  Result<void> guard_address_0(bool stays);

  const capture::DeviceInfo& info() const override { return core_.info; }
  Result<Handle> alloc(uint64_t size_bytes) override;
  Result<Handle> alloc_commands(uint64_t size_bytes) override { return alloc(size_bytes); }
  Result<void> free(Handle handle) override;
  Result<uint64_t> address(Handle handle) const override;
  Result<std::span<uint8_t>> map(Handle handle) override;
  Result<void> begin_cpu(Handle handle, bool write) override;
  Result<void> end_cpu(Handle handle) override;
  Result<JobId> prepare(const Job& job) override;
  void release(JobId id) override {
    const std::lock_guard lock(mutex_);
    prepared_.erase(id);
  }
  Result<Fence> submit(std::span<const JobId> jobs) override;
  Result<void> wait(Fence fence, std::chrono::nanoseconds timeout) override;
  bool loses_jobs() const override { return file_.calls().loses_jobs(); }
  void leave_to_parent() override { file_.close(); }
  Result<int> export_dmabuf(Handle handle) override;

 private:
  // Arguments of the call: it points into the vectors.
  struct Prepared {
    std::string name;
    std::vector<BufferUse> uses;  // all buffers that contain or are named by its commands, each once
    std::vector<Task> tasks;
    std::vector<uint32_t> in, out;
    SubmitJob job{};
  };
  struct InFlight {
    Fence fence = 0;
    JobId first = 0, last = 0;
    size_t jobs = 0;
    std::vector<uint32_t> written;  // handles
    std::chrono::steady_clock::time_point sent;
  };
  struct Closing {
    Handle handle = 0;
    Fence last_use = 0;
  };

  Result<const Buffer*> find(Handle handle) const { return find_buffer(buffers_, handle, core_.info.node); }
  Result<Task> task_of(const Commands& commands) const;
  Result<void> list(const JobBuffer& use, Prepared& prepared) const;
  void note_use(Handle handle, Prepared& prepared) const;
  int prepare_access(Handle handle, std::chrono::nanoseconds timeout) const;
  int finish_first(std::chrono::nanoseconds timeout);
  std::string describe(const InFlight& submission) const;
  void tell_of_timeout();
  void reclaim();
  Result<void> take_turn();
  void end_turn();
  void pause_until_quiet() const;
  bool has_kernel_released() const;
  void look();

  // Held by every call: no thread may close a handle between the check of a submission and the kernel's lookup.
  mutable std::recursive_mutex mutex_;
  const OwnProcess process_;
  DrmFile file_;
  Core core_;
  const bool takes_turns_ = notes_of(core_.info).takes_turns && !core_.takes_no_turns;
  bool told_of_timeout_ = false;
  const bool tells_submits_ = log::debug_flag("submit");
  std::map<Handle, Buffer> buffers_;
  std::vector<Closing> closing_;  // freed, but a submission may still use them: the kernel keeps only listed buffers
  std::map<JobId, Prepared> prepared_;
  std::vector<SubmitJob> call_;  // reused, like the next two, so that a submission allocates nothing
  std::vector<InFlight> in_flight_;
  std::vector<uint32_t> spare_;  // of a finished submission, for reuse
  JobId last_job_ = 0;
  Fence last_fence_ = 0;
  uint64_t last_serial_ = 0;
  uint64_t end_address_ = 0;  // highest end of all buffers so far
  bool starts_at_0_ = false;  // the first buffer of the file got the lowest address
  bool has_exported_ = false;
  size_t jobs_in_flight_ = 0;
  bool has_turn_ = false;
  Quiet quiet_{[this] { look(); }};
};

// Closes in steps, also after failures: waits for jobs, closes handles, waits until the kernel's worker has released
// the buffers, closes the file. If jobs do not end in kCloseTimeout, it waits by the clock before any handle is closed:
// closing unmaps commands and weights, which the NPU may still read. In a child of fork() jobs and handles belong to
// the parent.
RocketDevice::~RocketDevice() {
  if (!process_.is_here()) return;
  const std::lock_guard lock(mutex_);
  if (!in_flight_.empty()) tidy("closing while a job runs", [&] { return wait(last_fence_, kCloseTimeout); });
  if (!in_flight_.empty()) {
    pause_until_quiet();
    quiet_.ended();
  }
  for (auto& [handle, buffer] : buffers_) {
    if (buffer.bytes != nullptr) file_.calls().munmap(buffer.bytes, buffer.size_bytes);
    file_.close_buffer(handle);
  }
  for (const Closing& one : closing_) file_.close_buffer(one.handle);
  pause_until_quiet();
  for (auto left = kReleaseTimeout / kBetweenProbes; !has_kernel_released(); --left) {
    if (left == 0) {
      log::warning("{}: stays open: the kernel still holds buffers of ended jobs, or a dma-buf of one is open",
                   core_.info.node);
      file_.leave_open();
      break;
    }
    file_.calls().pause(kBetweenProbes);
  }
}

// Call after closing all handles. A buffer stays at its address until the worker has released the job that lists it: a
// buffer as large as all of them together gets address 0 only if none is left. Also true if this cannot be tested.
bool RocketDevice::has_kernel_released() const {
  if ((last_fence_ == 0 && !has_exported_) || !starts_at_0_) return true;
  CreateBo probe{.size = static_cast<uint32_t>(std::min<uint64_t>(end_address_, UINT32_MAX)),
                 .handle = 0,
                 .dma_address = 0,
                 .offset = 0};
  if (file_.try_call(kCreateBo, &probe) != 0) return true;
  file_.close_buffer(probe.handle);
  return probe.dma_address == 0;
}

void RocketDevice::pause_until_quiet() const {
  if (const auto time = quiet_.still_to_wait(); time.count() > 0) file_.calls().pause(time);
}

// Skipped while another thread is in a call, which checks for ended jobs itself.
void RocketDevice::look() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  while (lock.owns_lock() && !in_flight_.empty() && finish_first(std::chrono::nanoseconds(0)) == 0) continue;
}

Result<void> RocketDevice::guard_address_0(bool stays) {
  SK_TRY_ASSIGN(const Handle first, alloc(kPageBytes));
  starts_at_0_ = buffers_.at(first).address == 0;
  return starts_at_0_ && stays ? Result<void>() : free(first);
}

Result<Handle> RocketDevice::alloc(uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  reclaim();
  if (size_bytes == 0) return error(ErrorCode::invalid_argument, "{}: a buffer of 0 bytes", core_.info.node);
  if (size_bytes > UINT32_MAX)
    return error(ErrorCode::out_of_range, "{}: no device addresses for {} bytes", core_.info.node, size_bytes);
  CreateBo request{.size = static_cast<uint32_t>(size_bytes), .handle = 0, .dma_address = 0, .offset = 0};
  SK_TRY(file_.call(kCreateBo, &request, fmt::format("allocating a buffer of {} bytes", size_bytes)));
  end_address_ = std::max(end_address_, request.dma_address + size_bytes);
  buffers_[request.handle] = {size_bytes, request.dma_address, request.offset, nullptr, ++last_serial_};
  return request.handle;
}

Result<void> RocketDevice::free(Handle handle) {
  const std::lock_guard lock(mutex_);  // a submission may be under way
  SK_TRY(find(handle));
  Buffer& buffer = buffers_.at(handle);
  if (buffer.bytes != nullptr) file_.calls().munmap(buffer.bytes, buffer.size_bytes);
  buffers_.erase(handle);
  closing_.push_back({handle, last_fence_});
  reclaim();
  return {};
}

// Closes freed buffers that are no longer in use.
void RocketDevice::reclaim() {
  while (!closing_.empty() && !in_flight_.empty() && finish_first(std::chrono::nanoseconds(0)) == 0) continue;
  const Fence running = in_flight_.empty() ? last_fence_ + 1 : in_flight_.front().fence;
  std::erase_if(closing_, [&](const Closing& one) {
    if (one.last_use >= running) return false;
    file_.close_buffer(one.handle);
    return true;
  });
}

Result<uint64_t> RocketDevice::address(Handle handle) const {
  const std::lock_guard lock(mutex_);
  SK_TRY_ASSIGN(const Buffer* buffer, find(handle));
  return buffer->address;
}

Result<std::span<uint8_t>> RocketDevice::map(Handle handle) {
  const std::lock_guard lock(mutex_);
  SK_TRY(find(handle));
  Buffer& buffer = buffers_.at(handle);
  if (buffer.bytes == nullptr) SK_TRY(file_.map_buffer(handle, buffer.size_bytes, buffer.offset, buffer.bytes));
  return std::span<uint8_t>(buffer.bytes, buffer.size_bytes);
}

// Waits for the jobs that write the buffer. Returns an errno, or 0.
int RocketDevice::prepare_access(Handle handle, std::chrono::nanoseconds timeout) const {
  PrepBo request{.handle = handle, .reserved = 0, .timeout_ns = deadline(timeout)};
  return file_.try_call(kPrepBo, &request, timeout + kPatience);
}

// The kernel does not track reads of jobs: before a write all jobs must have finished.
Result<void> RocketDevice::begin_cpu(Handle handle, bool write) {
  const std::lock_guard lock(mutex_);
  SK_TRY(find(handle));
  if (write && !in_flight_.empty()) SK_TRY(wait(last_fence_, kCpuAccessTimeout));
  if (const int number = prepare_access(handle, kCpuAccessTimeout); number != 0)
    return file_.access_failure(number, handle, write, kCpuAccessTimeout);
  return {};
}

Result<void> RocketDevice::end_cpu(Handle handle) {
  const std::lock_guard lock(mutex_);
  SK_TRY(find(handle));
  FiniBo request{.handle = handle, .reserved = 0};
  if (const int number = file_.try_call(kFiniBo, &request); number != 0)
    return file_.failure(number, fmt::format("ending the access to buffer {}", handle));
  return {};
}

Result<Task> RocketDevice::task_of(const Commands& commands) const {
  SK_TRY_ASSIGN(const Buffer* buffer, find(commands.buffer));
  const uint64_t start = buffer->address + commands.offset_bytes, size = commands.size_bytes;
  if (commands.offset_bytes > buffer->size_bytes || size > buffer->size_bytes - commands.offset_bytes || size == 0 ||
      size % kCommandBytes != 0 || start % kCommandsAlignment != 0)
    return error(ErrorCode::invalid_argument, "{}: {} bytes at {} of {} are not whole register commands",
                 core_.info.node, size, commands.offset_bytes, buffer->size_bytes);
  return Task{static_cast<uint32_t>(start), static_cast<uint32_t>(size / kCommandBytes)};
}

// The kernel silently drops a job that lists a buffer twice: a buffer that is read and written is listed as written.
Result<void> RocketDevice::list(const JobBuffer& use, Prepared& prepared) const {
  SK_TRY(find(use.handle));
  for (const auto* handles : {&prepared.in, &prepared.out}) {
    if (std::ranges::find(*handles, use.handle) != handles->end())
      return error(ErrorCode::invalid_argument, "{}: buffer {} is listed twice", core_.info.node, use.handle);
  }
  (use.write ? prepared.out : prepared.in).push_back(use.handle);
  return {};
}

void RocketDevice::note_use(Handle handle, Prepared& prepared) const {
  if (std::ranges::find(prepared.uses, handle, &BufferUse::handle) != prepared.uses.end()) return;
  prepared.uses.push_back({handle, buffers_.at(handle).serial});
}

Result<JobId> RocketDevice::prepare(const Job& job) {
  const std::lock_guard lock(mutex_);
  Prepared to{.name = job.name, .uses = {}, .tasks = {}, .in = {}, .out = {}};
  for (const Commands& commands : job.commands) {
    SK_TRY_INTO(to.tasks.emplace_back(), task_of(commands).with_context(fmt::format("job '{}'", job.name)));
    note_use(commands.buffer, to);
  }
  // Buffers stay mapped while they exist; listed buffers order the jobs, which costs a lock for each.
  for (const JobBuffer& one : job.buffers) {
    if (!one.constant) SK_TRY(list(one, to).with_context(fmt::format("job '{}'", job.name)));
    SK_TRY(find(one.handle).with_context(fmt::format("job '{}'", job.name)));
    note_use(one.handle, to);
  }
  if (to.tasks.empty() || to.out.empty())
    return error(ErrorCode::invalid_argument, "job '{}': {} tasks that write {} buffers: its end could not be detected",
                 job.name, to.tasks.size(), to.out.size());
  const auto pointer = [](const auto& items) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(items.data()));
  };
  to.job = {.tasks = pointer(to.tasks),
            .in_bo_handles = pointer(to.in),
            .out_bo_handles = pointer(to.out),
            .task_count = static_cast<uint32_t>(to.tasks.size()),
            .task_struct_size = sizeof(Task),
            .in_bo_handle_count = static_cast<uint32_t>(to.in.size()),
            .out_bo_handle_count = static_cast<uint32_t>(to.out.size())};
  prepared_.emplace(++last_job_, std::move(to));
  return last_job_;
}

// Holds the turn from the first submission to the end of the last one, or until a wait times out.
Result<void> RocketDevice::take_turn() {
  if (!takes_turns_ || has_turn_) return {};
  SK_TRY(file_.take_turn());
  has_turn_ = true;
  return {};
}
void RocketDevice::end_turn() {
  if (std::exchange(has_turn_, false)) file_.calls().end_turn(file_.fd());
}

Result<Fence> RocketDevice::submit(std::span<const JobId> jobs) {
  const std::lock_guard lock(mutex_);
  if (jobs.empty()) return error(ErrorCode::invalid_argument, "{}: no job to submit", core_.info.node);
  InFlight submission{.fence = last_fence_ + 1,
                      .first = jobs.front(),
                      .last = jobs.back(),
                      .jobs = jobs.size(),
                      .written = std::exchange(spare_, {}),
                      .sent = std::chrono::steady_clock::now()};
  submission.written.clear();
  call_.clear();
  for (const JobId id : jobs) {
    const auto job = prepared_.find(id);
    if (job == prepared_.end()) return error(ErrorCode::invalid_argument, "{}: no job has id {}", core_.info.node, id);
    const Prepared& one = job->second;
    SK_TRY(check_alive(buffers_, one.uses, one.name, core_.info.node));
    call_.push_back(one.job);
    if (std::ranges::find(submission.written, one.out[0]) == submission.written.end())
      submission.written.push_back(one.out[0]);
  }
  Submit request{.jobs = reinterpret_cast<uintptr_t>(call_.data()),
                 .job_count = static_cast<uint32_t>(call_.size()),
                 .job_struct_size = sizeof(SubmitJob),
                 .reserved = 0};
  if (tells_submits_) log::write(log::Level::info, fmt::format("{}: submit {} jobs", core_.info.node, call_.size()));
  SK_TRY(take_turn());
  const auto before = quiet_.quiet_at();
  if (!quiet_.submitted(jobs_in_flight_ + jobs.size())) {
    quiet_.back_to(before);
    if (in_flight_.empty()) end_turn();
    return error(ErrorCode::device, "{}: the process is ending: no more jobs are started", core_.info.node);
  }
  if (const int number = file_.try_call(kSubmit, &request); number != 0) {
    quiet_.back_to(before);  // nothing was sent
    if (in_flight_.empty()) end_turn();
    return file_.failure(number, fmt::format("submitting {} jobs", call_.size()));
  }
  jobs_in_flight_ += jobs.size();
  quiet_.submitted(jobs_in_flight_);
  in_flight_.push_back(std::move(submission));
  ++last_fence_;
  while (in_flight_.size() > kMaxFencesKept && finish_first(std::chrono::nanoseconds(0)) == 0) continue;
  return last_fence_;
}

// Waits for the oldest submission. Returns an errno, or 0.
int RocketDevice::finish_first(std::chrono::nanoseconds timeout) {
  const WaitForJobs wait(in_flight_.front().sent);
  const auto until = WaitForJobs::Clock::now() + timeout;
  for (const uint32_t handle : in_flight_.front().written) {
    // The time limit covers all buffers; each gets at least a moment, so that an ended job is no timeout on a slow
    // host.
    const auto left = std::max<std::chrono::nanoseconds>(until - WaitForJobs::Clock::now(),
                                                         std::min(timeout, std::chrono::nanoseconds(kMoment)));
    if (const int number = prepare_access(handle, left); number != 0) return number;
  }
  if (loses_jobs() && wait.ended_by_timeout()) tell_of_timeout();
  jobs_in_flight_ -= in_flight_.front().jobs;
  spare_ = std::move(in_flight_.front().written);
  in_flight_.erase(in_flight_.begin());
  if (in_flight_.empty()) quiet_.ended();
  if (in_flight_.empty()) end_turn();
  return 0;
}

void RocketDevice::tell_of_timeout() {
  if (std::exchange(told_of_timeout_, true)) return;
  const std::string_view advice = notes_of(core_.info).lost_jobs;
  log::warning("{}: {}: the kernel ended it after {} ms, as if it missed the job's interrupt{}{}", core_.info.node,
               describe(in_flight_.front()), kJobTimeout.count(), advice.empty() ? "" : "; ", advice);
}

std::string RocketDevice::describe(const InFlight& submission) const {
  if (submission.jobs == 1) return fmt::format("job {}", job_name(prepared_, submission.last));
  return fmt::format("{} jobs ({} to {})", submission.jobs, job_name(prepared_, submission.first),
                     job_name(prepared_, submission.last));
}

// Each submission has its own time limit: while submissions end one after the other, nothing hangs.
Result<void> RocketDevice::wait(Fence fence, std::chrono::nanoseconds timeout) {
  const std::lock_guard lock(mutex_);
  if (fence == 0 || fence > last_fence_)
    return error(ErrorCode::invalid_argument, "{}: no submission has fence {}", core_.info.node, fence);
  const auto patience = std::min<std::chrono::nanoseconds>(timeout, std::chrono::hours(1));
  while (!in_flight_.empty() && in_flight_.front().fence <= fence) {
    if (const int number = finish_first(patience); number != 0) {
      end_turn();
      return file_.failure(number == EBUSY ? ETIMEDOUT : number,
                           fmt::format("waiting up to {} ms for {}",
                                       std::chrono::duration_cast<std::chrono::milliseconds>(patience).count(),
                                       describe(in_flight_.front())));
    }
  }
  return {};
}

Result<int> RocketDevice::export_dmabuf(Handle handle) {
  const std::lock_guard lock(mutex_);
  SK_TRY(find(handle));
  has_exported_ = true;
  return file_.export_buffer(handle);
}

Result<std::unique_ptr<Device>> open_file(const Core& core, const SyscallsRef& calls, bool guards_address_0) {
  SK_TRY_ASSIGN(DrmFile file, DrmFile::open(calls, core.info.node));
  auto device = std::make_unique<RocketDevice>(std::move(file), core);
  SK_TRY(device->guard_address_0(guards_address_0));
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const Core& core, const SyscallsRef& calls) {
  return open_file(core, calls, true);
}

Result<std::unique_ptr<Device>> open_device_from_0(const Core& core, const SyscallsRef& calls) {
  return open_file(core, calls, false);
}

}  // namespace skillet::kernels::rocket
