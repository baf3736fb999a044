// Records the submissions to an open file of etnaviv.
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kernels/etnaviv/abi.h"
#include "kernels/etnaviv/client/etnaviv.h"
#include "kernels/etnaviv/describe.h"

namespace skillet::kernels::etnaviv {
namespace {

constexpr int kPatienceSeconds = 5;

Timespec soon() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return {now.tv_sec + kPatienceSeconds, now.tv_nsec};
}

#define CALLS "kernels/etnaviv/calls.def"
#include "kernels/api/call_texts.def"

// One open file of an etnaviv node.
class RecordedFile final : public FileRecorder {
 public:
  using FileRecorder::FileRecorder;

 private:
  void learn(unsigned long request, uint64_t argument) override;
  Result<void> record(int fd, unsigned long request, uint64_t argument) override;
  // EIO: the kernel accepted the job, and it failed.
  bool is_refused(int result) const override { return result != 0 && result != -EIO; }
  Result<capture::Submission> snapshot(int fd, const GemSubmit& args);
  void take_contents(int fd, capture::BufferSnapshot& snapshot, Buffer& buffer);
  std::span<const uint8_t> map(int fd, uint32_t handle, Buffer& buffer);
};

// Parameters of a submission that differ from a plain one: core 0, pipe 3D, addresses given by the program, no
// relocations.
std::vector<capture::Parameter> parameters_of(const GemSubmit& args) {
  struct Row {
    const char* name;
    uint64_t value, plain;
  };
  std::vector<capture::Parameter> out;
  for (const Row& row : {Row{"pipe", args.pipe, 0}, Row{"exec_state", args.exec_state, 0},
                         Row{"flags", args.flags, kSubmitSoftpin}, Row{"nr_relocs", args.nr_relocs, 0}}) {
    if (row.value != row.plain) out.push_back({row.name, row.value});
  }
  return out;
}

}  // namespace

// Notes new buffers and their sizes.
void RecordedFile::learn(unsigned long request, uint64_t argument) {
  if (is_request(request, kGemNew)) {
    if (const auto args = argument_of<GemNew>(request, argument)) buffers_[args->handle] = {.size_bytes = args->size};
  } else if (is_request(request, kGemUserptr)) {
    if (const auto args = argument_of<GemUserptr>(request, argument))
      buffers_[args->handle] = {.size_bytes = args->user_size, .user_memory = args->user_ptr};
  } else if (is_request(request, drm::kPrimeFdToHandle)) {
    const auto args = argument_of<drm::PrimeHandle>(request, argument);
    const off_t size = args ? ::lseek(args->fd, 0, SEEK_END) : 0;
    if (size <= 0) return;
    ::lseek(args->fd, 0, SEEK_SET);
    if (buffers_.contains(args->handle)) return;
    const auto size_bytes = static_cast<uint64_t>(size);
    buffers_[args->handle] = {
        .size_bytes = size_bytes, .bytes = map_dmabuf(args->fd, size_bytes, PROT_READ), .is_foreign = true};
  }
}

Result<void> RecordedFile::record(int fd, unsigned long request, uint64_t argument) {
  const auto args = argument_of<GemSubmit>(request, argument);
  if (!args) return error(ErrorCode::invalid_argument, "bad pointer");
  if (!info_) {
    SK_TRY_ASSIGN(Core core, read_core(DrmFile::borrow(calls_, fd, node_), args->pipe));
    info_ = std::move(core.info);
  }
  SK_TRY_ASSIGN(capture::Submission submission, snapshot(fd, *args));
  return sink_.append(*info_, std::move(submission));
}

// Arguments that the kernel will refuse give invalid_argument: they are not recorded, and recording continues.
Result<capture::Submission> RecordedFile::snapshot(int fd, const GemSubmit& args) {
  std::vector<SubmitBo> listed;
  std::vector<uint32_t> words;
  capture::Submission submission;
  if (args.nr_bos > kLargestSubmission || args.stream_size > kLargestSubmission || args.stream_size % 4 != 0 ||
      copy_array_from_user(listed, args.bos, args.nr_bos) != 0 ||
      copy_array_from_user(words, args.stream, args.stream_size / 4) != 0)
    return error(ErrorCode::invalid_argument, "bad submission");
  submission.jobs = capture::one_list(std::move(words));
  submission.parameters = parameters_of(args);
  std::map<uint32_t, SubmitBo> uses;
  for (const SubmitBo& one : listed) {
    uses[one.handle] = one;
    if ((one.flags & ~uint32_t{kSubmitBoRead | kSubmitBoWrite}) != 0)
      submission.parameters.push_back({fmt::format("flags of buffer {}", one.handle), one.flags});
  }
  if (uses.size() != listed.size()) return error(ErrorCode::invalid_argument, "a buffer is listed twice");
  for (auto& [handle, buffer] : buffers_) {
    capture::BufferSnapshot one{.handle = handle, .address = buffer.address, .size_bytes = buffer.size_bytes};
    if (const auto use = uses.find(handle); use != uses.end()) {
      one.listed = true;
      one.read = (use->second.flags & kSubmitBoRead) != 0;
      one.write = (use->second.flags & kSubmitBoWrite) != 0;
      if ((args.flags & kSubmitSoftpin) != 0) one.address = buffer.address = use->second.presumed;
      take_contents(fd, one, buffer);
    }
    submission.buffers.push_back(std::move(one));
  }
  return submission;
}

void RecordedFile::take_contents(int fd, capture::BufferSnapshot& snapshot, Buffer& buffer) {
  // Waits for earlier jobs that write the buffer, and makes caches coherent.
  GemCpuPrep prepare{.handle = snapshot.handle, .op = kPrepRead, .timeout = soon()};
  const bool is_prepared = calls_->ioctl(fd, kGemCpuPrep, &prepare) == 0;
  Bytes copied;
  if (buffer.user_memory == 0) {
    if (const auto bytes = map(fd, snapshot.handle, buffer); !bytes.empty()) capture::set_contents(snapshot, bytes);
  } else if (copy_array_from_user(copied, buffer.user_memory, buffer.size_bytes) == 0) {
    capture::set_contents(snapshot, copied);
  }
  GemCpuFini finish{.handle = snapshot.handle, .flags = 0};
  if (is_prepared) calls_->ioctl(fd, kGemCpuFini, &finish);
}

std::span<const uint8_t> RecordedFile::map(int fd, uint32_t handle, Buffer& buffer) {
  if (buffer.bytes == nullptr && buffer.is_foreign) return {};
  if (buffer.bytes == nullptr) {
    GemInfo info{.handle = handle, .pad = 0, .offset = 0};
    if (calls_->ioctl(fd, kGemInfo, &info) != 0) return {};
    if (calls_->mmap(fd, buffer.size_bytes, info.offset, buffer.bytes) < 0) return {};
  }
  return {buffer.bytes, buffer.size_bytes};
}

std::shared_ptr<FileRecorder> record(const SyscallsRef& calls, const std::string& node, RecordSink sink) {
  return std::make_shared<RecordedFile>(calls, node, std::move(sink), kGemSubmit, kCalls);
}

}  // namespace skillet::kernels::etnaviv
