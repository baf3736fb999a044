// Records the submissions to an open file of rocket.
#include <array>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "capture/job_lists.h"
#include "kernels/rocket/abi.h"
#include "kernels/rocket/client/rocket.h"
#include "kernels/rocket/describe.h"

namespace skillet::kernels::rocket {
namespace {

constexpr std::chrono::seconds kPatience{5};
constexpr uint32_t kMostItems = 1 << 20;  // limit of an array from a program

// Reads an array of structs that may be longer than ours.
template <typename T>
Result<std::vector<T>> read_array(uint64_t from, uint32_t count, uint32_t stride) {
  if (count > kMostItems || (count != 0 && stride < sizeof(T)))
    return error(ErrorCode::invalid_argument, "{} items of {} bytes", count, stride);
  std::vector<T> out(count);
  if (stride == sizeof(T)) {
    if (copy_array_from_user(out, from, count) != 0) return error(ErrorCode::invalid_argument, "bad pointer to items");
    return out;
  }
  for (uint64_t i = 0; i < count; ++i) {
    if (copy_from_user(&out[i], from + i * stride, sizeof(T)) != 0)
      return error(ErrorCode::invalid_argument, "bad pointer to item {}", i);
  }
  return out;
}

#define CALLS "kernels/rocket/calls.def"
#include "kernels/api/call_texts.def"

// One open file of a rocket node.
class RecordedFile final : public FileRecorder {
 public:
  using FileRecorder::FileRecorder;

 private:
  struct Use {
    bool read = false, write = false;
  };
  using Uses = std::map<uint32_t, Use>;  // by handle

  void learn(unsigned long request, uint64_t argument) override;
  Result<void> record(int fd, unsigned long request, uint64_t argument) override;
  Result<capture::Submission> snapshot(int fd, const Submit& args);
  static Result<capture::Job> read_job(const SubmitJob& args, Uses& uses);
  void take_contents(int fd, capture::BufferSnapshot& snapshot, Buffer& buffer);
};

void RecordedFile::learn(unsigned long request, uint64_t argument) {
  if (!is_request(request, kCreateBo)) return;
  if (const auto args = argument_of<CreateBo>(request, argument))
    buffers_[args->handle] = {.size_bytes = args->size, .address = args->dma_address, .offset = args->offset};
}

Result<void> RecordedFile::record(int fd, unsigned long request, uint64_t argument) {
  const auto args = argument_of<Submit>(request, argument);
  if (!args) return error(ErrorCode::invalid_argument, "bad pointer");
  if (!info_) {
    SK_TRY_ASSIGN(Core core, read_core(DrmFile::borrow(calls_, fd, node_)));
    info_ = std::move(core.info);
  }
  SK_TRY_ASSIGN(capture::Submission submission, snapshot(fd, *args));
  return sink_.append(*info_, std::move(submission));
}

Result<capture::Job> RecordedFile::read_job(const SubmitJob& args, Uses& uses) {
  SK_TRY_ASSIGN(const auto tasks, read_array<Task>(args.tasks, args.task_count, args.task_struct_size));
  SK_TRY_ASSIGN(const auto in, read_array<uint32_t>(args.in_bo_handles, args.in_bo_handle_count, sizeof(uint32_t)));
  SK_TRY_ASSIGN(const auto out, read_array<uint32_t>(args.out_bo_handles, args.out_bo_handle_count, sizeof(uint32_t)));
  for (const uint32_t handle : in) uses[handle].read = true;
  for (const uint32_t handle : out) uses[handle].write = true;
  capture::Job job;
  for (const Task& one : tasks)
    job.commands.push_back({.words = {}, .address = one.regcmd, .size_bytes = one.regcmd_count * kCommandBytes});
  return job;
}

// Arguments that the kernel will refuse give invalid_argument: they are not recorded, and recording continues. Jobs can
// reach all buffers of a file, listed or not, so all of them are recorded.
Result<capture::Submission> RecordedFile::snapshot(int fd, const Submit& args) {
  capture::Submission submission;
  Uses uses;
  SK_TRY_ASSIGN(const auto jobs, read_array<SubmitJob>(args.jobs, args.job_count, args.job_struct_size));
  uint64_t tasks = 0;
  for (const SubmitJob& one : jobs) {
    tasks += one.task_count;
    if (tasks > kMostItems)  // jobs may share a list: small arguments could describe more tasks than fit memory
      return error(ErrorCode::unsupported, "more than {} tasks in a submission of {} jobs", kMostItems, jobs.size());
    SK_TRY_ASSIGN(capture::Job job, read_job(one, uses));
    capture::note_list(submission, submission.jobs.size(), "in_bos", one.in_bo_handle_count);
    capture::note_list(submission, submission.jobs.size(), "out_bos", one.out_bo_handle_count);
    submission.jobs.push_back(std::move(job));
  }
  for (auto& [handle, buffer] : buffers_) {
    capture::BufferSnapshot one{.handle = handle, .address = buffer.address, .size_bytes = buffer.size_bytes};
    if (const auto use = uses.find(handle); use != uses.end()) {
      one.listed = true;
      one.read = use->second.read;
      one.write = use->second.write;
    }
    take_contents(fd, one, buffer);
    submission.buffers.push_back(std::move(one));
  }
  return submission;
}

// Reading needs CPU access. Ending the access would flush the process's caches to the device again, which the program
// has already done before it submits.
void RecordedFile::take_contents(int fd, capture::BufferSnapshot& snapshot, Buffer& buffer) {
  PrepBo prepare{.handle = snapshot.handle, .reserved = 0, .timeout_ns = deadline(kPatience)};
  const bool is_prepared = calls_->ioctl(fd, kPrepBo, &prepare) == 0;
  if (buffer.bytes == nullptr && calls_->mmap(fd, buffer.size_bytes, buffer.offset, buffer.bytes) < 0)
    buffer.bytes = nullptr;
  if (buffer.bytes != nullptr) capture::set_contents(snapshot, {buffer.bytes, buffer.size_bytes});
  FiniBo finish{.handle = snapshot.handle, .reserved = 0};
  if (is_prepared) calls_->ioctl(fd, kFiniBo, &finish);
}

}  // namespace

std::shared_ptr<FileRecorder> record(const SyscallsRef& calls, const std::string& node, RecordSink sink) {
  return std::make_shared<RecordedFile>(calls, node, std::move(sink), kSubmit, kCalls);
}

}  // namespace skillet::kernels::rocket
