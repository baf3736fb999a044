#include "node.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/bytes.h"

namespace skillet::interpose_test {

abi::Timespec deadline_in(int64_t milliseconds) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t nsec = now.tv_nsec + milliseconds % 1000 * 1'000'000;
  return {now.tv_sec + milliseconds / 1000 + nsec / 1'000'000'000, nsec % 1'000'000'000};
}

Node::Node(const char* path) : fd_(::open(path, O_RDWR | O_CLOEXEC)) { open_error_ = fd_ < 0 ? errno : 0; }

Node::~Node() {
  if (fd_ >= 0) ::close(fd_);
}

int Node::call(unsigned long request, void* argument) const { return ::ioctl(fd_, request, argument) == 0 ? 0 : errno; }

int Node::new_buffer(uint64_t size_bytes, uint32_t& handle) const {
  abi::GemNew args{.size = size_bytes, .flags = abi::kBoWriteCombined, .handle = 0};
  const int failure = call(abi::kGemNew, args);
  handle = args.handle;
  return failure;
}

int Node::map(uint32_t handle, uint64_t size_bytes, uint8_t*& bytes) const {
  abi::GemInfo info{.handle = handle, .pad = 0, .offset = 0};
  if (const int failure = call(abi::kGemInfo, info); failure != 0) return failure;
  void* const at =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(info.offset));
  if (at == MAP_FAILED) return errno;
  bytes = static_cast<uint8_t*>(at);
  return 0;
}

int Node::close_buffer(uint32_t handle) const {
  drm::GemClose args{.handle = handle, .pad = 0};
  return call(drm::kGemClose, args);
}

int Node::submit(abi::GemSubmit& args, const std::vector<abi::SubmitBo>& buffers,
                 const std::vector<uint32_t>& stream) const {
  args.nr_bos = static_cast<uint32_t>(buffers.size());
  args.bos = reinterpret_cast<uint64_t>(buffers.data());
  args.stream_size = static_cast<uint32_t>(stream.size() * 4);
  args.stream = reinterpret_cast<uint64_t>(stream.data());
  return call(abi::kGemSubmit, args);
}

int Node::wait(uint32_t fence, int64_t milliseconds) const {
  abi::WaitFence args{.pipe = 0, .fence = fence, .flags = 0, .pad = 0, .timeout = deadline_in(milliseconds)};
  return call(abi::kWaitFence, args);
}

int Node::prepare(uint32_t handle, uint32_t op, int64_t milliseconds) const {
  abi::GemCpuPrep args{.handle = handle, .op = op, .timeout = deadline_in(milliseconds)};
  return call(abi::kGemCpuPrep, args);
}

Result<RecordedJob> RecordedJob::load(const std::string& folder) {
  RecordedJob job;
  SK_TRY_ASSIGN(job.capture_, capture::read(folder));
  SK_TRY_ASSIGN(job.input_, read_file(folder + "/input_0.bin"));
  SK_TRY_ASSIGN(job.expected_, read_file(folder + "/output_0.bin"));
  return job;
}

std::string RecordedJob::allocate(const Node& node) {
  for (const capture::BufferSnapshot& one : recorded().buffers) {
    uint32_t handle = 0;
    uint8_t* bytes = nullptr;
    if (node.new_buffer(one.size_bytes, handle) != 0) return "gem_new";
    if (node.map(handle, one.size_bytes, bytes) != 0) return "mmap";
    handles_[one.handle] = handle;
    bytes_[one.handle] = bytes;
    std::copy(one.bytes.begin(), one.bytes.end(), bytes);
  }
  std::copy(input_.begin(), input_.end(), bytes_.at(kInput));
  return "";
}

std::vector<abi::SubmitBo> RecordedJob::listed() const {
  std::vector<abi::SubmitBo> listed;
  for (const capture::BufferSnapshot& one : recorded().buffers) {
    if (!one.listed) continue;
    const uint32_t flags = (one.read ? abi::kSubmitBoRead : 0u) | (one.write ? abi::kSubmitBoWrite : 0u);
    listed.push_back({flags, handles_.at(one.handle), one.address});
  }
  return listed;
}

int RecordedJob::submit(const Node& node, uint32_t flags, uint32_t& fence, int* fence_fd) const {
  abi::GemSubmit args{};
  args.flags = abi::kSubmitSoftpin | flags;
  if (fence_fd != nullptr) args.fence_fd = *fence_fd;
  const int failure = node.submit(args, listed(), stream());
  fence = args.fence;
  if (fence_fd != nullptr) *fence_fd = args.fence_fd;
  return failure;
}

std::vector<uint8_t> RecordedJob::output() const {
  const uint8_t* const bytes = bytes_.at(kOutput);
  return {bytes, bytes + expected_.size()};
}

void RecordedJob::clear_output() const { std::fill_n(bytes_.at(kOutput), expected_.size(), uint8_t{0}); }

}  // namespace skillet::interpose_test
