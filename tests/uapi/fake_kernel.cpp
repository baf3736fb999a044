#include "uapi/fake_kernel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

extern "C" {
int __real_ioctl(int fd, unsigned long request, ...);
void* __real_mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_ioctl(int fd, unsigned long request, ...);
void* __wrap_mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset);
}

namespace skillet::testing {
namespace {

namespace kernel = uapi::etnaviv;

FakeKernel* current = nullptr;

constexpr int kOffsetShift = 32;  // a buffer's map offset is its handle << this
constexpr uint64_t kPage = 4096;

uint64_t pages(uint64_t size_bytes) { return (size_bytes + kPage - 1) / kPage * kPage; }

ino_t inode(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

FakeKernel::FakeKernel(std::vector<KernelCore> cores, int minor) : cores_(std::move(cores)) {
  std::string pattern = (std::filesystem::temp_directory_path() / "skillet_kernel_XXXXXX").string();
  root_ = ::mkdtemp(pattern.data());
  std::filesystem::create_directories(root_ + "/dev/dri");
  node_ = root_ + "/dev/dri/renderD" + std::to_string(minor);
  std::ofstream(node_) << "node";
  if (auto chip = sim::create("a311d"); chip.ok()) chip_ = std::move(chip).value();
  current = this;
}

FakeKernel::~FakeKernel() {
  current = nullptr;
  while (!buffers_.empty()) close_buffer(buffers_.begin()->first);
  std::filesystem::remove_all(root_);
}

FakeKernel* FakeKernel::of(int fd) {
  if (current == nullptr || fd < 0) return nullptr;
  struct stat node {};
  return ::stat(current->node_.c_str(), &node) == 0 && inode(fd) == node.st_ino ? current : nullptr;
}

int FakeKernel::calls(unsigned long request) const {
  const auto found = calls_.find(request);
  return found == calls_.end() ? 0 : found->second;
}

size_t FakeKernel::live_buffers() const { return buffers_.size(); }

int FakeKernel::fault(unsigned long request) {
  ++calls_[request];
  for (Fault& one : faults) {
    if (one.request != request || one.count == 0) continue;
    if (one.skip-- > 0) continue;
    --one.count;
    return one.number;
  }
  return 0;
}

int FakeKernel::ioctl(int /*fd*/, unsigned long request, void* argument) {
  int number = fault(request);
  if (number == 0) number = dispatch(request, argument);
  if (number == 0) return 0;
  errno = number;
  return -1;
}

int FakeKernel::dispatch(unsigned long request, void* argument) {
  const auto known = [&](uint32_t handle) { return buffers_.contains(handle) ? 0 : ENOENT; };
  switch (request) {
    case kernel::kDrmVersion: return version(*static_cast<kernel::DrmVersion*>(argument));
    case kernel::kGetParam: return get_param(*static_cast<kernel::GetParam*>(argument));
    case kernel::kGemNew: return gem_new(*static_cast<kernel::GemNew*>(argument));
    case kernel::kGemInfo: {
      auto& query = *static_cast<kernel::GemInfo*>(argument);
      query.offset = static_cast<uint64_t>(query.handle) << kOffsetShift;
      return query.pad != 0 ? EINVAL : known(query.handle);
    }
    case kernel::kGemCpuPrep: {
      const auto& query = *static_cast<kernel::GemCpuPrep*>(argument);
      if (query.op == 0 || query.op > 7) return EINVAL;
      return busy ? ETIMEDOUT : known(query.handle);
    }
    case kernel::kGemCpuFini: return known(static_cast<kernel::GemCpuFini*>(argument)->handle);
    case kernel::kGemSubmit: return submit(*static_cast<kernel::GemSubmit*>(argument));
    case kernel::kWaitFence: {
      const auto& query = *static_cast<kernel::WaitFence*>(argument);
      if (query.pipe >= cores_.size() || query.fence > last_fence_) return EINVAL;
      return !busy ? 0 : (query.flags & kernel::kWaitNonBlock) != 0 ? EBUSY : ETIMEDOUT;
    }
    case kernel::kGemClose: return close_buffer(static_cast<kernel::GemClose*>(argument)->handle);
    case kernel::kPrimeHandleToFd: return export_buffer(*static_cast<kernel::PrimeHandle*>(argument));
    case kernel::kPrimeFdToHandle: return import_buffer(*static_cast<kernel::PrimeHandle*>(argument));
    default: return ENOTTY;
  }
}

int FakeKernel::version(kernel::DrmVersion& query) const {
  query.version_major = 1;
  query.version_minor = version_minor;
  std::memcpy(query.name, driver_name.data(), std::min(query.name_len, driver_name.size()));
  query.name_len = driver_name.size();
  return 0;
}

int FakeKernel::get_param(kernel::GetParam& query) const {
  if (query.pipe >= kernel::kMaxPipes) return EINVAL;
  if (query.pipe >= cores_.size()) return ENXIO;
  const auto& ids = cores_[query.pipe].ids;
  switch (query.param) {
    case kernel::kParamModel: query.value = ids[0]; return 0;
    case kernel::kParamRevision: query.value = ids[1]; return 0;
    case kernel::kParamProductId: query.value = ids[2]; return 0;
    case kernel::kParamCustomerId: query.value = ids[3]; return 0;
    case kernel::kParamEcoId: query.value = ids[4]; return 0;
    case kernel::kParamSoftpinStart: query.value = softpin_start; return 0;
    default: return EINVAL;
  }
}

uint32_t FakeKernel::add_buffer(int memory, uint64_t size_bytes) {
  void* mapped = __real_mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  buffers_[++last_handle_] = {.memory = memory, .size_bytes = size_bytes, .bytes = static_cast<uint8_t*>(mapped)};
  return last_handle_;
}

int FakeKernel::gem_new(kernel::GemNew& query) {
  if (query.flags != kernel::kBoCached && query.flags != kernel::kBoWriteCombined && query.flags != kernel::kBoUncached)
    return EINVAL;
  const int memory = ::memfd_create("buffer", MFD_CLOEXEC);
  if (memory < 0 || ::ftruncate(memory, static_cast<off_t>(pages(query.size))) != 0) return ENOMEM;
  query.handle = add_buffer(memory, pages(query.size));
  return 0;
}

int FakeKernel::close_buffer(uint32_t handle) {
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return EINVAL;
  ::munmap(found->second.bytes, found->second.size_bytes);
  ::close(found->second.memory);
  buffers_.erase(found);
  return 0;
}

// Maps a buffer at the address user space chose, as the kernel does: page aligned, above the start, no overlap.
int FakeKernel::place(const kernel::SubmitBo& bo) {
  const auto found = buffers_.find(bo.handle);
  if (found == buffers_.end() || (bo.flags & ~3U) != 0) return EINVAL;
  if (bo.presumed < softpin_start || bo.presumed % kPage != 0) return EINVAL;
  for (const auto& [handle, other] : buffers_) {
    if (handle == bo.handle || other.address == 0) continue;
    if (bo.presumed < other.address + other.size_bytes && other.address < bo.presumed + found->second.size_bytes)
      return ENOSPC;
  }
  found->second.address = bo.presumed;
  return 0;
}

int FakeKernel::submit(kernel::GemSubmit& query) {
  if (query.pipe >= kernel::kMaxPipes || query.stream_size % 4 != 0 || query.exec_state > 2) return EINVAL;
  if (query.pipe >= cores_.size()) return ENXIO;
  if (query.flags != kernel::kSubmitSoftpin || query.nr_relocs != 0 || query.nr_pmrs != 0) return EINVAL;
  const auto* bos = reinterpret_cast<const kernel::SubmitBo*>(query.bos);
  sim::Memory memory;
  for (uint32_t i = 0; i < query.nr_bos; ++i) {
    if (const int number = place(bos[i]); number != 0) return number;
    const Buffer& buffer = buffers_.at(bos[i].handle);
    if (!memory.map(buffer.address, {buffer.bytes, buffer.size_bytes}, std::to_string(bos[i].handle)).ok())
      return EINVAL;  // a buffer listed twice
  }
  query.fence = last_fence_++;  // kernels since 6.x count from 0
  if (busy || !chip_) return 0;
  const int number = calls(kernel::kGemSubmit);
  const bool is_lost = hangs || lost_jobs.contains(number) || (lost > 0 && lost-- > 0);
  if (is_lost || resets_before.contains(number)) chip_->reset();
  if (is_lost) return 0;
  const std::vector<uint32_t> stream(reinterpret_cast<const uint32_t*>(query.stream),
                                     reinterpret_cast<const uint32_t*>(query.stream) + query.stream_size / 4);
  if (auto ran = chip_->execute(stream, memory); !ran.ok()) {
    std::printf("fake kernel: the chip stopped: %s\n", ran.error().message.c_str());
    chip_->reset();
  }
  return 0;
}

int FakeKernel::export_buffer(kernel::PrimeHandle& query) {
  const auto found = buffers_.find(query.handle);
  if (found == buffers_.end()) return ENOENT;
  query.fd = ::fcntl(found->second.memory, F_DUPFD_CLOEXEC, 0);
  return query.fd < 0 ? errno : 0;
}

int FakeKernel::import_buffer(kernel::PrimeHandle& query) {
  struct stat status {};
  if (::fstat(query.fd, &status) != 0) return EBADF;
  for (const auto& [handle, buffer] : buffers_) {
    if (inode(buffer.memory) != status.st_ino) continue;
    query.handle = handle;
    return 0;
  }
  query.handle = add_buffer(::fcntl(query.fd, F_DUPFD_CLOEXEC, 0), static_cast<uint64_t>(status.st_size));
  return 0;
}

void* FakeKernel::map(size_t size, off_t offset) {
  if (const int number = fault(kMmapFault); number != 0) {
    errno = number;
    return MAP_FAILED;
  }
  const auto found = buffers_.find(static_cast<uint32_t>(offset >> kOffsetShift));
  if (found == buffers_.end() || size > found->second.size_bytes) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  return __real_mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, found->second.memory, 0);
}

}  // namespace skillet::testing

int __wrap_ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  auto* kernel = skillet::testing::FakeKernel::of(fd);
  return kernel != nullptr ? kernel->ioctl(fd, request, argument) : __real_ioctl(fd, request, argument);
}

void* __wrap_mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  auto* kernel = skillet::testing::FakeKernel::of(fd);
  return kernel != nullptr ? kernel->map(size, offset) : __real_mmap(address, size, protection, flags, fd, offset);
}
