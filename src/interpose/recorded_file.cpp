#include "interpose/recorded_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "drivers/vivante/hw/vivante.h"
#include "interpose/drm_core_uapi.h"
#include "interpose/libc.h"
#include "interpose/user_memory.h"

namespace skillet::interpose {
namespace {

namespace abi = ::skillet::uapi::etnaviv;
namespace hw = ::skillet::vivante::hw;

constexpr int kPatienceSeconds = 5;
constexpr int kNamesTried = 1000;
constexpr unsigned long kGemUserptr = _IOWR('d', 0x48, GemUserptr);
// Newer kernels refuse more; so larger numbers need no copy.
constexpr uint32_t kLargest = 128 * 1024;

abi::Timespec soon() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return {now.tv_sec + kPatienceSeconds, now.tv_nsec};
}

uint32_t param(int fd, uint32_t pipe, abi::Param which) {
  abi::GetParam query{.pipe = pipe, .param = which, .value = 0};
  return libc::ioctl(fd, abi::kGetParam, &query) == 0 ? static_cast<uint32_t>(query.value) : 0;
}

capture::DeviceInfo describe(int fd, uint32_t pipe) {
  capture::DeviceInfo info{.kernel_driver = abi::kDriverName};
  struct stat status {};
  if (::fstat(fd, &status) == 0)  // not libc::fstat(): that of a virtual node when there is one
    info.node = fmt::format("/dev/dri/{}{}", minor(status.st_rdev) < abi::kFirstRenderMinor ? "card" : "renderD",
                            minor(status.st_rdev));
  info.model = param(fd, pipe, abi::kParamModel);
  info.revision = param(fd, pipe, abi::kParamRevision);
  info.product_id = param(fd, pipe, abi::kParamProductId);
  info.customer_id = param(fd, pipe, abi::kParamCustomerId);
  info.eco_id = param(fd, pipe, abi::kParamEcoId);
  return info;
}

std::string chip_name(const capture::DeviceInfo& info) {
  for (const hw::ChipRow& row : hw::chips()) {
    if (row.ids.model == info.model && row.ids.revision == info.revision && row.ids.product == info.product_id &&
        row.ids.customer == info.customer_id && row.ids.eco == info.eco_id)
      return std::string(row.name);
  }
  return {};
}

}  // namespace

bool RecordedFile::is_one(int fd) {
  std::array<char, 16> name{};
  abi::DrmVersion query{};
  query.name = name.data();
  query.name_len = name.size() - 1;
  const int number = errno;
  const int result = libc::ioctl(fd, abi::kDrmVersion, &query);
  errno = number;
  return result == 0 && std::string_view(name.data()) == abi::kDriverName;
}

RecordedFile::~RecordedFile() {
  for (auto& [handle, buffer] : buffers_) {
    if (buffer.is_mapped) ::munmap(buffer.bytes, buffer.size_bytes);
  }
}

// Without a lock around the call, which may wait for long. A buffer is forgotten before it is closed: afterwards
// another thread may get its handle.
int RecordedFile::ioctl(int fd, unsigned long request, void* argument) {
  if (request == abi::kGemSubmit) return submit(fd, request, argument);
  if (request == abi::kGemClose) {
    abi::GemClose closing{};
    if (copy_from_user(&closing, reinterpret_cast<uint64_t>(argument), sizeof closing) == 0) forget(closing.handle);
  }
  const int result = libc::ioctl(fd, request, argument);
  const int number = errno;
  if (result == 0) learn(request, argument);
  errno = number;
  return result;
}

// New buffers and their sizes.
void RecordedFile::learn(unsigned long request, void* argument) {
  const std::lock_guard lock(mutex_);
  if (request == abi::kGemNew) {
    const auto& args = *static_cast<const abi::GemNew*>(argument);
    buffers_[args.handle] = {.size_bytes = args.size};
  } else if (request == kGemUserptr) {
    const auto& args = *static_cast<const GemUserptr*>(argument);
    buffers_[args.handle] = {args.user_size, reinterpret_cast<uint8_t*>(args.user_ptr), false};
  } else if (request == abi::kPrimeFdToHandle) {
    const auto& args = *static_cast<const abi::PrimeHandle*>(argument);
    const off_t size = ::lseek(args.fd, 0, SEEK_END);
    ::lseek(args.fd, 0, SEEK_SET);
    if (size > 0 && !buffers_.contains(args.handle)) buffers_[args.handle].size_bytes = static_cast<uint64_t>(size);
  }
}

void RecordedFile::forget(uint32_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return;
  if (found->second.is_mapped) ::munmap(found->second.bytes, found->second.size_bytes);
  buffers_.erase(found);
}

// Recorded first, so that a job which takes the process or the machine down is in the file; taken back when refused.
int RecordedFile::submit(int fd, unsigned long request, void* argument) {
  const std::lock_guard lock(mutex_);
  abi::GemSubmit args{};
  bool is_recorded = false;
  if (!has_failed_ && copy_from_user(&args, reinterpret_cast<uint64_t>(argument), sizeof args) == 0) {
    const auto done = record(fd, args);
    is_recorded = done.ok();
    if (!done.ok() && done.error().code != ErrorCode::invalid_argument) {
      has_failed_ = true;
      log::write(log::Level::error, "recording stops: " + done.error().message);
    }
  }
  const int result = libc::ioctl(fd, request, argument);
  const int number = errno;
  if (result != 0 && is_recorded) {
    if (const auto dropped = writer_->drop_last(); !dropped.ok())
      log::write(log::Level::error, dropped.error().message);
  }
  errno = number;
  return result;
}

Result<void> RecordedFile::record(int fd, const abi::GemSubmit& args) {
  if (!writer_) SK_TRY(open_capture(fd, args.pipe));
  SK_TRY_ASSIGN(const capture::Submission submission, snapshot(fd, args));
  return writer_->append(submission);
}

// One file for each open file of each process: the next free name of PATH, PATH.2, PATH.3, ...
Result<void> RecordedFile::open_capture(int fd, uint32_t pipe) {
  const capture::DeviceInfo info = describe(fd, pipe);
  chip_ = chip_name(info);
  for (int i = 1;; ++i) {
    const std::string path = i == 1 ? path_ : fmt::format("{}.{}", path_, i);
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && i < kNamesTried) continue;
    auto writer = capture::FileWriter::create(path, info);
    if (!writer.ok() && ::stat(path.c_str(), &status) == 0 && i < kNamesTried) continue;  // somebody else was faster
    if (!writer.ok()) return std::move(writer).error();
    writer_.emplace(std::move(writer).value());
    return {};
  }
}

// Arguments that the kernel will refuse are invalid_argument: not recorded, no reason to stop.
Result<capture::Submission> RecordedFile::snapshot(int fd, const abi::GemSubmit& args) {
  std::vector<abi::SubmitBo> listed;
  capture::Submission submission;
  submission.chip = chip_;
  if (args.nr_bos > kLargest || args.stream_size > kLargest || args.stream_size % 4 != 0 ||
      copy_array_from_user(listed, args.bos, args.nr_bos) != 0 ||
      copy_array_from_user(submission.stream, args.stream, args.stream_size / 4) != 0)
    return error(ErrorCode::invalid_argument, "bad submission");
  std::map<uint32_t, abi::SubmitBo> uses;
  for (const abi::SubmitBo& one : listed) uses[one.handle] = one;
  if (uses.size() != listed.size()) return error(ErrorCode::invalid_argument, "a buffer is listed twice");
  for (auto& [handle, buffer] : buffers_) {
    capture::BufferSnapshot one{.handle = handle, .size_bytes = buffer.size_bytes};
    if (const auto use = uses.find(handle); use != uses.end()) {
      one.listed = true;
      one.read = (use->second.flags & abi::kSubmitBoRead) != 0;
      one.write = (use->second.flags & abi::kSubmitBoWrite) != 0;
      if ((args.flags & abi::kSubmitSoftpin) != 0) one.address = use->second.presumed;
      take_contents(fd, one, buffer);
    }
    submission.buffers.push_back(std::move(one));
  }
  return submission;
}

void RecordedFile::take_contents(int fd, capture::BufferSnapshot& snapshot, Buffer& buffer) {
  // Waits for earlier jobs that write the buffer, and makes caches coherent.
  abi::GemCpuPrep prepare{.handle = snapshot.handle, .op = abi::kPrepRead, .timeout = soon()};
  const bool is_prepared = libc::ioctl(fd, abi::kGemCpuPrep, &prepare) == 0;
  const std::span<const uint8_t> bytes = map(fd, snapshot.handle, buffer);
  if (!bytes.empty()) capture::set_contents(snapshot, bytes);
  abi::GemCpuFini finish{.handle = snapshot.handle, .flags = 0};
  if (is_prepared) libc::ioctl(fd, abi::kGemCpuFini, &finish);
}

std::span<const uint8_t> RecordedFile::map(int fd, uint32_t handle, Buffer& buffer) {
  if (buffer.bytes == nullptr) {
    abi::GemInfo info{.handle = handle, .pad = 0, .offset = 0};
    if (libc::ioctl(fd, abi::kGemInfo, &info) != 0) return {};
    void* const bytes =
        libc::mmap(nullptr, buffer.size_bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(info.offset));
    if (bytes == MAP_FAILED) return {};
    buffer.bytes = static_cast<uint8_t*>(bytes);
    buffer.is_mapped = true;
  }
  return {buffer.bytes, buffer.size_bytes};
}

}  // namespace skillet::interpose
