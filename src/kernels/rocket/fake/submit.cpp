// A submission: reads all jobs, then the lists of each job, and queues jobs one after the other. Only a bad call fails;
// a bad job is dropped. In out-of-tree kernels it ends the call: the jobs before it stay queued.
#include <algorithm>
#include <cerrno>

#include "base/bytes.h"
#include "kernels/rocket/fake/file.h"

namespace skillet::fake::rocket {
namespace {

constexpr uint32_t kMostItems = 1 << 20;  // limit of an array from user space
constexpr uint64_t kAtOnce = 4096;        // items that are read before they are checked
constexpr std::string_view kFreedTwice = "the array of tasks is freed twice in a stock kernel (6.18 to 7.2)";

// Appends up to kAtOnce more of `count` items, `stride` bytes apart, to `out`.
template <typename T>
int read_more(const Kernel& kernel, uint64_t from, uint64_t count, uint64_t stride, std::vector<T>& out) {
  const size_t begin = out.size();
  const uint64_t more = std::min(stride == sizeof(T) ? kAtOnce : 1, count - begin);
  out.resize(begin + more);
  return kernel.copy_from_user(&out[begin], from + begin * stride, more * sizeof(T));
}

}  // namespace

int RocketFile::read_jobs(const abi::Submit& args, std::vector<abi::SubmitJob>& out) {
  if (args.job_count == 0) return 0;  // other fields are ignored
  if (args.reserved != 0) return kernel_.refuse(EINVAL, "submit: reserved is {}", args.reserved);
  if (args.job_struct_size < sizeof(abi::SubmitJob))
    return kernel_.refuse(EINVAL, "submit: jobs of {} bytes", args.job_struct_size);
  if (args.job_count > kMostItems) return kernel_.refuse(ENOMEM, "submit: {} jobs", args.job_count);
  while (out.size() < args.job_count) {
    if (read_more(kernel_, args.jobs, args.job_count, args.job_struct_size, out) != 0)
      return kernel_.refuse(EFAULT, "submit: bad pointer to jobs before the {}th", out.size());
  }
  return check_flags(args);
}

// Checks fields after those of mainline: an out-of-tree kernel reads them, mainline ignores them. From version 1.1 on
// jobs have flags there, each added by a version; their functions are not emulated.
int RocketFile::check_flags(const abi::Submit& args) {
  constexpr uint64_t kBatched = 1, kWideOutput = 2, kEndsWithPool = 4;
  const std::optional<int> version = kernel_.options().extensions;
  if (!version) return 0;
  const bool is_rk3576 = kernel_.chip() == "rk3576";
  const uint64_t known = (*version >= 1 ? kBatched : 0) | (*version >= 2 && is_rk3576 ? kWideOutput : 0) |
                         (*version >= 3 ? kEndsWithPool : 0);
  const uint32_t more = args.job_struct_size - static_cast<uint32_t>(sizeof(abi::SubmitJob));
  if (more > abi::kPageBytes) return kernel_.refuse(E2BIG, "submit: jobs of {} bytes", args.job_struct_size);
  for (uint32_t i = 0; i < args.job_count && more > 0; ++i) {
    std::vector<uint8_t> tail(std::max<size_t>(more, sizeof(uint64_t)));
    const uint64_t at = args.jobs + uint64_t{i} * args.job_struct_size + sizeof(abi::SubmitJob);
    if (kernel_.copy_from_user(tail.data(), at, more) != 0)
      return kernel_.refuse(EFAULT, "submit: bad pointer to job {}", i);
    const size_t fields = *version >= 1 ? sizeof(uint64_t) : 0;  // flags, and 4 reserved bytes
    if (std::any_of(tail.begin() + static_cast<std::ptrdiff_t>(fields), tail.end(), [](uint8_t b) { return b != 0; }))
      return kernel_.refuse(E2BIG, "submit: job {} has fields that this kernel does not know", i);
    const auto flags = fields == 0 ? 0 : load_le<uint64_t>(tail.data());
    if ((flags & ~known) != 0) return kernel_.refuse(EINVAL, "submit: flags of job {} are {:#x}", i, flags);
    if (flags != 0) return kernel_.refuse(EOPNOTSUPP, "submit: flags of job {}, {:#x}, are not emulated", i, flags);
  }
  return 0;
}

int RocketFile::read_lists(Request& request) {
  const abi::SubmitJob& args = request.args;
  if (args.task_count == 0 || args.task_struct_size < sizeof(abi::Task))
    return kernel_.refuse(EINVAL, "submit: {} tasks of {} bytes", args.task_count, args.task_struct_size);
  if (std::max({args.task_count, args.in_bo_handle_count, args.out_bo_handle_count}) > kMostItems)
    return kernel_.refuse(ENOMEM, "submit: {} tasks, {} and {} buffers", args.task_count, args.in_bo_handle_count,
                          args.out_bo_handle_count);
  while (request.tasks.size() < args.task_count) {
    size_t i = request.tasks.size();
    if (read_more(kernel_, args.tasks, args.task_count, args.task_struct_size, request.tasks) != 0) {
      kernel_.punish(fmt::format("submit: the tasks at {:#x} cannot be read: {}", args.tasks, kFreedTwice));
      return kernel_.refuse(EFAULT, "submit: bad pointer to tasks before the {}th", request.tasks.size());
    }
    for (; i < request.tasks.size(); ++i) {
      if (request.tasks[i].regcmd_count != 0) continue;
      kernel_.punish(fmt::format("submit: regcmd_count of task {} is 0: {}", i, kFreedTwice));
      return kernel_.refuse(EINVAL, "submit: task {} has no commands", i);
    }
  }
  const auto read = [&](std::vector<uint32_t>& to, uint64_t from, uint32_t count) {
    return count == 0 ? 0 : kernel_.copy_array_from_user(to, from, count);
  };
  if (read(request.in, args.in_bo_handles, args.in_bo_handle_count) != 0 ||
      read(request.out, args.out_bo_handles, args.out_bo_handle_count) != 0)
    return kernel_.refuse(EFAULT, "submit: bad pointer to handles");
  return 0;
}

// Queues a job, or returns the reason why it is dropped.
std::optional<std::string> RocketFile::queue(const abi::SubmitJob& args, FaultKind fault) {
  if (fault == FaultKind::drop) return "injected fault";
  Request request{.args = args, .tasks = {}, .in = {}, .out = {}};
  if (read_lists(request) != 0) return "its arguments are bad";
  QueuedJob job{.id = 0, .tasks = {}, .after = {}, .buffers = {}, .written = {}, .unordered = {}, .fault = fault};
  job.buffers.reserve(request.in.size() + request.out.size());
  job.written.reserve(request.out.size());
  job.tasks.reserve(request.tasks.size());
  for (const auto* handles : {&request.in, &request.out}) {
    for (const uint32_t handle : *handles) {
      const Entry* const entry = find(handle);
      if (entry == nullptr) {
        kernel_.punish(fmt::format("submit: no handle {}: a NULL pointer is followed in a stock kernel", handle));
        return fmt::format("no handle {}", handle);
      }
      if (std::ranges::find(job.buffers, entry->buffer) != job.buffers.end())
        return fmt::format("handle {} is listed twice", handle);
      job.buffers.push_back(entry->buffer);
      if (handles == &request.out) job.written.push_back(entry->buffer.get());
      if (const auto writer = entry->buffer->last_writer(kernel_.jobs())) job.after.push_back(*writer);
    }
  }
  for (const abi::Task& task : request.tasks)
    job.tasks.push_back({.bytes = {}, .address = task.regcmd, .size_bytes = task.regcmd_count * abi::kCommandBytes});
  if (kernel_.options().checks_lists) find_unordered(job);
  job.id = kernel_.jobs().begin();
  try {
    enqueue(request, std::move(job));
  } catch (...) {  // the job would never run
    kernel_.jobs().finish(job.id);
    throw;
  }
  return std::nullopt;
}

// Finds unlisted buffers that the job may read: the kernel may run it before or beside the jobs that write them.
void RocketFile::find_unordered(QueuedJob& job) const {
  for (const auto& [handle, entry] : entries_) {
    const bool is_listed = std::ranges::find(job.buffers, entry.buffer) != job.buffers.end();
    if (!is_listed && entry.buffer->last_writer(kernel_.jobs())) job.unordered.push_back(entry.buffer.get());
  }
}

void RocketFile::enqueue(const Request& request, QueuedJob&& job) {
  for (size_t i = 0; i < job.buffers.size(); ++i)
    job.buffers[i]->add_job(kernel_.jobs(), job.id, i >= request.in.size());
  kernel_.trace("submit: job {}: {} tasks", job.id, job.tasks.size());
  if (kernel_.options().traces) trace(request);
  kernel_.queue(entity_, std::move(job));
}

void RocketFile::trace(const Request& request) {
  for (const abi::Task& task : request.tasks) kernel_.trace("  {} commands at {:#x}", task.regcmd_count, task.regcmd);
  for (const auto* handles : {&request.in, &request.out}) {
    for (const uint32_t handle : *handles) {
      const Entry& entry = *find(handle);
      kernel_.trace("  handle {} at {:#x}, {} bytes{}", handle, entry.address.value_or(0), entry.buffer->size_bytes(),
                    handles == &request.out ? ", written" : "");
    }
  }
}

int RocketFile::submit(abi::Submit& args, const Fault& fault) {
  std::vector<abi::SubmitJob> jobs;
  if (const int failure = read_jobs(args, jobs); failure != 0) return failure;
  Lock lock(kernel_.state());
  kernel_.adopt_process();
  if (const int failure = give_fault("submit"); failure != 0) return failure;
  if (const int failure = kernel_.start_workers(lock); failure != 0) return failure;
  reclaim();
  if (kernel_.options().clock != nullptr) kernel_.options().clock->count_submission();
  FaultKind next = fault.kind;
  for (const abi::SubmitJob& one : jobs) {
    const FaultKind own = kernel_.next_fault("job").kind, first = std::exchange(next, FaultKind::none);
    const auto reason = queue(one, own == FaultKind::none ? first : own);
    if (!reason) continue;
    if (kernel_.options().extensions) return kernel_.refuse(EINVAL, "submit: {}", *reason);
    kernel_.trace("submit: a job is dropped: {}", *reason);
  }
  return 0;
}

}  // namespace skillet::fake::rocket
