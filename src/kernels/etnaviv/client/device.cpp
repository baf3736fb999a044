// The etnaviv kernel device: softpinned buffers, submissions in order, fences.
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "base/address_space.h"
#include "base/caught.h"
#include "base/log.h"
#include "base/own_process.h"
#include "kernels/api/client_parts.h"
#include "kernels/etnaviv/abi.h"
#include "kernels/etnaviv/client/etnaviv.h"

namespace skillet::kernels::etnaviv {
namespace {

constexpr std::chrono::seconds kCpuAccessTimeout{5};
constexpr std::chrono::seconds kCloseTimeout{2};
constexpr std::chrono::hours kForever{365 * 24};  // longer waits are limited to this
constexpr size_t kMaxFencesKept = 256;

// The time `timeout` from now in the kernel's format.
Timespec deadline(std::chrono::nanoseconds timeout) {
  constexpr int64_t kSecond = 1'000'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t wait = std::clamp<std::chrono::nanoseconds>(timeout, {}, kForever).count();
  const int64_t nsec = now.tv_nsec + wait % kSecond;
  return {now.tv_sec + wait / kSecond + nsec / kSecond, nsec % kSecond};
}

struct Buffer {
  uint64_t size_bytes = 0;  // as requested
  uint64_t address = 0;
  uint8_t* bytes = nullptr;  // once mapped
  Fence last_use = 0;        // fence of the last submission that lists it
  int owners = 1;            // imports of one memory share a handle
  bool is_foreign = false;   // imported: mapped through its dma-buf, never through the node (docs/devices.md)
};

// Each file descriptor has its own device address space, which only this object uses.
class EtnavivDevice : public Device {
 public:
  EtnavivDevice(DrmFile file, Core core, uint64_t first_address)
      : file_(std::move(file)), core_(std::move(core)), addresses_(first_address, kAddressEnd, kPageBytes) {}
  ~EtnavivDevice() override;

  const capture::DeviceInfo& info() const override { return core_.info; }
  Result<Handle> alloc(uint64_t size_bytes) override;
  Result<void> free(Handle handle) override;
  Result<uint64_t> address(Handle handle) const override;
  Result<std::span<uint8_t>> map(Handle handle) override;
  Result<void> begin_cpu(Handle handle, bool write) override;
  Result<void> end_cpu(Handle handle) override;
  Result<Handle> alloc_commands(uint64_t size_bytes) override { return commands_.alloc(size_bytes); }
  Result<JobId> prepare(const Job& job) override;
  void release(JobId id) override { prepared_.erase(id); }
  Result<Fence> submit(std::span<const JobId> jobs) override;
  Result<void> wait(Fence fence, std::chrono::nanoseconds timeout) override;
  bool loses_jobs() const override { return file_.calls().loses_jobs(); }
  void leave_to_parent() override { file_.close(); }
  Result<int> export_dmabuf(Handle handle) override;
  Result<Handle> import_dmabuf(int fd) override;

 private:
  // The kernel's number of a submission that may still run. Jobs of one file and core finish in order.
  struct InFlight {
    Fence fence = 0;
    uint32_t kernel_fence = 0;
    JobId job = 0;
  };
  struct Closing {
    Handle handle = 0;
    Buffer buffer;
  };
  // Arguments of the call: it points into `commands` and `bos`.
  struct Prepared {
    std::string name;
    std::shared_ptr<const Bytes> commands;
    std::vector<SubmitBo> bos;
    GemSubmit request{};
  };

  Result<const Buffer*> find(Handle handle) const { return find_buffer(buffers_, handle, core_.info.node); }
  bool is_commands(Handle handle) const { return commands_.contains(handle); }
  Result<Fence> submit_one(JobId id, const Prepared& job);
  Result<void> wait_kernel(const InFlight& job, std::chrono::nanoseconds timeout);
  void unmap(Buffer& buffer);
  void finish(Fence fence);
  void poll_finished();
  void reclaim();
  bool revive(Handle handle);

  const OwnProcess process_;
  DrmFile file_;
  Core core_;
  const bool tells_submits_ = log::debug_flag("submit");
  AddressSpace addresses_;
  std::map<Handle, Buffer> buffers_;
  CommandLists commands_{core_.info.node, kAddressEnd};  // passed with each call
  std::map<JobId, Prepared> prepared_;
  JobId last_job_ = 0;
  std::vector<Closing> closing_;  // freed, but still listed by a submission that may run
  std::deque<InFlight> in_flight_;
  Fence last_fence_ = 0;
  Fence finished_ = 0;  // this fence and all before it
};

// Closing the file cancels queued jobs. A running job keeps its memory in the kernel, so nothing has to be closed or
// waited for, unlike on rocket. In a child of fork() jobs belong to the parent.
EtnavivDevice::~EtnavivDevice() {
  if (!process_.is_here()) return;
  if (!in_flight_.empty()) tidy("closing while a job runs", [&] { return wait(last_fence_, kCloseTimeout); });
  for (auto& [handle, buffer] : buffers_) unmap(buffer);
}

void EtnavivDevice::unmap(Buffer& buffer) {
  kernels::unmap(file_.calls(), std::exchange(buffer.bytes, nullptr), buffer.size_bytes, buffer.is_foreign);
}

Result<Handle> EtnavivDevice::alloc(uint64_t size_bytes) {
  reclaim();
  SK_TRY_ASSIGN(const uint64_t device_address, addresses_.take(size_bytes).with_context(core_.info.node));
  GemNew request{.size = size_bytes, .flags = kBoWriteCombined, .handle = 0};
  if (const int number = file_.try_call(kGemNew, &request); number != 0) {
    addresses_.give_back(device_address, size_bytes);
    return file_.failure(number, fmt::format("allocating a buffer of {} bytes", size_bytes));
  }
  buffers_[request.handle] = {.size_bytes = size_bytes, .address = device_address};
  return request.handle;
}

// The address may be reused only after the last job that uses it: the kernel refuses overlapping mappings.
Result<void> EtnavivDevice::free(Handle handle) {
  if (commands_.free(handle)) return {};
  SK_TRY(find(handle));
  Buffer& buffer = buffers_.at(handle);
  if (--buffer.owners > 0) return {};
  unmap(buffer);
  closing_.push_back({handle, buffer});
  buffers_.erase(handle);
  reclaim();
  return {};
}

// Closes freed buffers that are no longer in use.
void EtnavivDevice::reclaim() {
  if (closing_.empty()) return;
  poll_finished();
  std::erase_if(closing_, [this](const Closing& one) {
    if (one.buffer.last_use > finished_) return false;
    file_.close_buffer(one.handle);
    addresses_.give_back(one.buffer.address, one.buffer.size_bytes);
    return true;
  });
}

// Restores a buffer that was freed, but not closed yet.
bool EtnavivDevice::revive(Handle handle) {
  const auto found = std::ranges::find(closing_, handle, &Closing::handle);
  if (found == closing_.end()) return false;
  Buffer& buffer = buffers_[handle] = found->buffer;
  buffer.bytes = nullptr;
  buffer.owners = 1;
  closing_.erase(found);
  return true;
}

Result<uint64_t> EtnavivDevice::address(Handle handle) const {
  if (is_commands(handle)) return uint64_t{0};
  SK_TRY_ASSIGN(const Buffer* buffer, find(handle));
  return buffer->address;
}

Result<std::span<uint8_t>> EtnavivDevice::map(Handle handle) {
  if (is_commands(handle)) return std::span<uint8_t>(*commands_.at(handle));
  SK_TRY(find(handle));
  Buffer& buffer = buffers_.at(handle);
  if (buffer.bytes == nullptr) {
    GemInfo request{.handle = handle, .pad = 0, .offset = 0};
    if (const int number = file_.try_call(kGemInfo, &request); number != 0)  // the message is formatted only on failure
      return file_.failure(number, fmt::format("reading the map offset of buffer {}", handle));
    SK_TRY(file_.map_buffer(handle, buffer.size_bytes, request.offset, buffer.bytes));
  }
  return std::span<uint8_t>(buffer.bytes, buffer.size_bytes);
}

// Waits for the jobs that use the buffer: all of them before a write, the writers before a read.
Result<void> EtnavivDevice::begin_cpu(Handle handle, bool write) {
  if (is_commands(handle)) return {};
  SK_TRY(find(handle));
  GemCpuPrep request{
      .handle = handle, .op = kPrepRead | (write ? kPrepWrite : 0U), .timeout = deadline(kCpuAccessTimeout)};
  if (const int number = file_.try_call(kGemCpuPrep, &request); number != 0)
    return file_.access_failure(number, handle, write, kCpuAccessTimeout);
  return {};
}

Result<void> EtnavivDevice::end_cpu(Handle handle) {
  if (is_commands(handle)) return {};
  SK_TRY(find(handle));
  GemCpuFini request{.handle = handle, .flags = 0};
  if (const int number = file_.try_call(kGemCpuFini, &request); number != 0)
    return file_.failure(number, fmt::format("ending the access to buffer {}", handle));
  return {};
}

Result<JobId> EtnavivDevice::prepare(const Job& job) {
  SK_TRY_ASSIGN(const auto words, commands_.words_of(job, 4).with_context(fmt::format("job '{}'", job.name)));
  Prepared prepared{.name = job.name, .commands = commands_.at(job.commands[0].buffer), .bos = {}};
  prepared.bos.reserve(job.buffers.size());
  for (const JobBuffer& use : job.buffers) {
    SK_TRY_ASSIGN(const Buffer* buffer, find(use.handle).with_context(fmt::format("job '{}'", job.name)));
    const uint32_t flags = (use.read ? kSubmitBoRead : 0U) | (use.write ? kSubmitBoWrite : 0U);
    prepared.bos.push_back({.flags = flags, .handle = use.handle, .presumed = buffer->address});
  }
  prepared.request = {.pipe = core_.index,
                      .nr_bos = static_cast<uint32_t>(prepared.bos.size()),
                      .stream_size = static_cast<uint32_t>(words.size()),
                      .bos = reinterpret_cast<uintptr_t>(prepared.bos.data()),
                      .stream = reinterpret_cast<uintptr_t>(words.data()),
                      .flags = kSubmitSoftpin,
                      .fence_fd = -1};
  prepared_.emplace(++last_job_, std::move(prepared));
  return last_job_;
}

// The kernel driver has one call per job.
Result<Fence> EtnavivDevice::submit(std::span<const JobId> jobs) {
  if (jobs.empty()) return error(ErrorCode::invalid_argument, "{}: no job to submit", core_.info.node);
  Fence last = 0;
  for (const JobId id : jobs) {
    const auto found = prepared_.find(id);
    if (found == prepared_.end())
      return error(ErrorCode::invalid_argument, "{}: no job has id {}", core_.info.node, id);
    auto fence = submit_one(id, found->second);
    // The message is formatted only on failure: this runs at each inference.
    if (!fence.ok()) return std::move(fence).error().with_context(fmt::format("job '{}'", found->second.name));
    last = *fence;
  }
  return last;
}

Result<Fence> EtnavivDevice::submit_one(JobId id, const Prepared& job) {
  for (const SubmitBo& use : job.bos) {
    SK_TRY_ASSIGN(const Buffer* buffer, find(use.handle));
    if (buffer->address != use.presumed)
      return error(ErrorCode::invalid_argument, "{}: buffer {} was replaced since the job was prepared",
                   core_.info.node, use.handle);
  }
  GemSubmit request = job.request;
  if (tells_submits_)
    log::write(log::Level::info, fmt::format("{} core {}: submit {} words, {} buffers", core_.info.node, core_.index,
                                             request.stream_size / 4, request.nr_bos));
  // After a job's fence a worker of the kernel still releases its buffers. Until then a buffer at the same address
  // fails with ENOSPC.
  if (const int number = file_.try_call(kGemSubmit, &request, kPatience, ENOSPC); number != 0)
    return file_.failure(
        number, fmt::format("submitting {} command words with {} buffers", request.stream_size / 4, request.nr_bos));
  in_flight_.push_back({++last_fence_, request.fence, id});
  for (const SubmitBo& use : job.bos) buffers_.at(use.handle).last_use = last_fence_;
  if (in_flight_.size() > kMaxFencesKept) poll_finished();
  return last_fence_;
}

void EtnavivDevice::finish(Fence fence) {
  finished_ = std::max(finished_, fence);
  while (!in_flight_.empty() && in_flight_.front().fence <= finished_) in_flight_.pop_front();
}

// Checks once, without waiting, which submissions have finished.
void EtnavivDevice::poll_finished() {
  while (!in_flight_.empty()) {
    const InFlight job = in_flight_.front();
    WaitFence request{.pipe = core_.index, .fence = job.kernel_fence, .flags = kWaitNonBlock, .pad = 0, .timeout = {}};
    if (file_.try_call(kWaitFence, &request, std::chrono::nanoseconds(0)) != 0) return;
    finish(job.fence);
  }
}

Result<void> EtnavivDevice::wait_kernel(const InFlight& job, std::chrono::nanoseconds timeout) {
  WaitFence request{.pipe = core_.index, .fence = job.kernel_fence, .flags = 0, .pad = 0, .timeout = deadline(timeout)};
  const auto patience = std::min<std::chrono::nanoseconds>(timeout, kForever) + kPatience;
  if (const int number = file_.try_call(kWaitFence, &request, patience); number != 0) {
    return file_.failure(number, fmt::format("waiting up to {} ms for job {}",
                                             std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count(),
                                             job_name(prepared_, job.job)));
  }
  finish(job.fence);
  return {};
}

Result<void> EtnavivDevice::wait(Fence fence, std::chrono::nanoseconds timeout) {
  if (fence == 0 || fence > last_fence_)
    return error(ErrorCode::invalid_argument, "{}: no submission has fence {}", core_.info.node, fence);
  if (fence <= finished_) return {};
  return wait_kernel(in_flight_[static_cast<size_t>(fence - in_flight_.front().fence)], timeout);
}

Result<int> EtnavivDevice::export_dmabuf(Handle handle) {
  SK_TRY(find(handle));
  return file_.export_buffer(handle);
}

Result<Handle> EtnavivDevice::import_dmabuf(int fd) {
  reclaim();
  const off_t size = ::lseek(fd, 0, SEEK_END);
  if (size <= 0)
    return error(ErrorCode::io, "{}: descriptor {} is not a shared buffer: {}", core_.info.node, fd,
                 size == 0 ? "it has no bytes" : std::strerror(errno));
  drm::PrimeHandle request{.handle = 0, .flags = 0, .fd = fd};
  SK_TRY(file_.call(drm::kPrimeFdToHandle, &request, fmt::format("importing dma-buf {} ({} bytes)", fd, size)));
  // The kernel gives each memory only one handle in a file.
  if (const auto known = buffers_.find(request.handle); known != buffers_.end()) {
    ++known->second.owners;
    return request.handle;
  }
  const auto size_bytes = static_cast<uint64_t>(size);
  if (!revive(request.handle)) {
    auto device_address = addresses_.take(size_bytes);
    if (!device_address.ok()) {
      file_.close_buffer(request.handle);
      return std::move(device_address).error().with_context(core_.info.node);
    }
    buffers_[request.handle] = {.size_bytes = size_bytes, .address = *device_address};
  }
  Buffer& buffer = buffers_.at(request.handle);
  buffer.is_foreign = true;
  buffer.bytes = map_dmabuf(fd, size_bytes, PROT_READ | PROT_WRITE);
  if (buffer.bytes != nullptr) return request.handle;
  const int number = errno;
  tidy("freeing an imported buffer", [&] { return free(request.handle); });
  // This process failed to map it: the kernel's last reason is about another call.
  return error(ErrorCode::io, "{}: mapping dma-buf {} ({} bytes) for reading and writing: {}", core_.info.node, fd,
               size, std::strerror(number));
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const Core& core, const SyscallsRef& calls) {
  SK_TRY_ASSIGN(DrmFile file, DrmFile::open(calls, core.info.node));
  GetParam query{.pipe = core.index, .param = kParamSoftpinStart, .value = 0};
  if (const int number = file.try_call(kGetParam, &query); number != 0)
    return file.failure(number, fmt::format("reading where the addresses of core {} start", core.index));
  const uint64_t first_address = query.value;
  // Descriptors contain addresses that the kernel's relocations cannot patch.
  if (first_address == kNoSoftpin || first_address % kPageBytes != 0 || first_address >= kAddressEnd)
    return error(ErrorCode::unsupported,
                 "{}: core {} does not let user space choose addresses (softpin start {:#x}), which the NPU needs: it "
                 "has no MMUv2, or the kernel is older than 5.5",
                 core.info.node, core.index, first_address);
  return std::unique_ptr<Device>(std::make_unique<EtnavivDevice>(std::move(file), core, first_address));
}

}  // namespace skillet::kernels::etnaviv
