#include "standin/rocket/file.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "standin/calls.h"

namespace skillet::standin::rocket {
namespace {

constexpr int kOffsetShift = 32;  // the offset of a buffer for mmap() is its handle << this

using File = RocketFile;
// By number.
constexpr auto kCalls = [] {
  std::array<Call<File>, 0x44> calls{};
  calls[0x00] = call_row<File, drm::Version, &File::version>("version");
  calls[0x09] = call_row<File, drm::GemClose, &File::gem_close>("gem_close");
  calls[0x0c] = call_row<File, drm::GetCap, &File::get_cap>("get_cap");
  calls[0x2d] = call_row<File, drm::PrimeHandle, &File::prime_handle_to_fd>("prime_handle_to_fd");
  calls[0x40] = call_row<File, abi::CreateBo, &File::create_bo>("create_bo");
  calls[0x41] = call_row<File, abi::Submit, &File::submit>("submit");
  calls[0x42] = call_row<File, abi::PrepBo, &File::prep_bo>("prep_bo");
  calls[0x43] = call_row<File, abi::FiniBo, &File::fini_bo>("fini_bo");
  return calls;
}();

}  // namespace

std::vector<std::string_view> call_names() { return names_of<File>(kCalls); }

RocketFile::RocketFile(Kernel& kernel, unsigned minor) : standin::File(minor), kernel_(kernel) {
  const Lock lock(kernel_.state());
  kernel_.add(entity_);
}

RocketFile::~RocketFile() {
  Lock lock(kernel_.state());
  kernel_.remove(entity_, lock);
}

int RocketFile::ioctl(unsigned long request, void* argument) {
  return run_call<RocketFile>(kCalls, kernel_, *this, request, argument);
}

Mapping* RocketFile::find(uint32_t handle) {
  const auto found = entries_.find(handle);
  return found == entries_.end() ? nullptr : &found->second;
}

// The driver registers no version numbers.
int RocketFile::version(drm::Version& args) {
  args.version_major = args.version_minor = args.version_patch = 0;
  give_text(abi::kDriverName, args.name, args.name_len);
  give_text("0", args.date, args.date_len);
  give_text("rocket DRM", args.desc, args.desc_len);
  return 0;
}

int RocketFile::get_cap(drm::GetCap& args) { return give_cap(kernel_, args); }

// Jobs reach every buffer of their file, and those that were closed until the last job that lists them ends.
void RocketFile::list_mappings() {
  std::erase_if(closed_, [&](const Mapping& one) {
    if (one.buffer->busy(kernel_.jobs(), true)) return false;
    addresses_.give_back(one.address, one.buffer->size_bytes());
    return true;
  });
  entity_.mappings = closed_;
  for (const auto& [handle, entry] : entries_) entity_.mappings.push_back(entry);
}

int RocketFile::create_bo(abi::CreateBo& args) {
  if (args.size == 0) return kernel_.refuse(EINVAL, "create_bo: 0 bytes");
  std::shared_ptr<Buffer> made;
  if (const int failure = kernel_.create_buffer(args.size, made); failure != 0)
    return kernel_.refuse(-failure, "create_bo: no memory for {} bytes", args.size);
  const Lock lock(kernel_.state());
  list_mappings();
  const auto address = addresses_.take(made->size_bytes());
  if (!address.ok()) return kernel_.refuse(ENOMEM, "create_bo: no room for {} bytes", args.size);
  entries_[++last_handle_] = {std::move(made), *address};
  args.handle = last_handle_;
  args.dma_address = *address;
  args.offset = uint64_t{last_handle_} << kOffsetShift;
  kernel_.trace("create_bo: {} bytes, handle {} at {:#x}", args.size, args.handle, args.dma_address);
  return 0;
}

int RocketFile::gem_close(drm::GemClose& args) {
  std::shared_ptr<Buffer> last;  // its memory goes after the lock
  const Lock lock(kernel_.state());
  const Mapping* const entry = find(args.handle);
  if (entry == nullptr) return kernel_.refuse(EINVAL, "gem_close: no handle {}", args.handle);
  last = entry->buffer;
  closed_.push_back(*entry);
  entries_.erase(args.handle);
  list_mappings();
  return 0;
}

int RocketFile::find_mapping(uint64_t size_bytes, uint64_t offset, std::shared_ptr<Buffer>& out) {
  if (const Fault fault = kernel_.next_fault("mmap"); fault.kind == FaultKind::number)
    return kernel_.inject(fault, "mmap");
  const Lock lock(kernel_.state());
  const auto handle = static_cast<uint32_t>(offset >> kOffsetShift);
  const Mapping* const entry = uint64_t{handle} << kOffsetShift == offset ? find(handle) : nullptr;
  if (entry == nullptr || size_bytes > entry->buffer->size_bytes())
    return kernel_.refuse(EINVAL, "mmap: no buffer of {} bytes at offset {:#x}", size_bytes, offset);
  out = entry->buffer;
  return 0;
}

int RocketFile::prime_handle_to_fd(drm::PrimeHandle& args) {
  if ((args.flags & ~(drm::kPrimeCloexec | drm::kPrimeReadWrite)) != 0)
    return kernel_.refuse(EINVAL, "prime_handle_to_fd: flags {:#x}", args.flags);
  const Lock lock(kernel_.state());
  const Mapping* const entry = find(args.handle);
  if (entry == nullptr) return kernel_.refuse(ENOENT, "prime_handle_to_fd: no handle {}", args.handle);
  if (!kernel_.jobs().all_finished())
    return kernel_.refuse(EBUSY, "prime_handle_to_fd: memory cannot move under a job");
  const int fd = kernel_.export_buffer(entry->buffer, (args.flags & drm::kPrimeCloexec) != 0);
  if (fd < 0) return kernel_.refuse(-fd, "prime_handle_to_fd: handle {} cannot be exported", args.handle);
  args.fd = fd;
  return 0;
}

// With OnFault::error, which no kernel has: what the simulator stopped is the error of the next call.
int RocketFile::give_fault(std::string_view call) {
  if (entity_.fault.empty()) return 0;
  const std::string fault = std::exchange(entity_.fault, {});
  return kernel_.refuse(EIO, "{}: {}", call, fault);
}

int RocketFile::prep_bo(abi::PrepBo& args) {
  if (args.reserved != 0) return kernel_.refuse(EINVAL, "prep_bo: reserved is {}", args.reserved);
  Lock lock(kernel_.state());
  kernel_.adopt_process();
  const Mapping* const entry = find(args.handle);
  if (entry == nullptr) return kernel_.refuse(ENOENT, "prep_bo: no handle {}", args.handle);
  const std::shared_ptr<Buffer> buffer = entry->buffer;
  const Jobs::Time deadline = Jobs::time(0, args.timeout_ns);
  while (const std::optional<JobId> job = buffer->busy(kernel_.jobs(), false)) {
    const bool is_past = deadline <= std::chrono::steady_clock::now();
    const int failure = kernel_.jobs().wait(lock, *job, deadline, is_past);
    if (failure != 0) return kernel_.refuse(-failure, "prep_bo: handle {} is in use by job {}", args.handle, *job);
  }
  return give_fault("prep_bo");
}

int RocketFile::fini_bo(abi::FiniBo& args) {
  if (args.reserved != 0) return kernel_.refuse(EINVAL, "fini_bo: reserved is {}", args.reserved);
  const Lock lock(kernel_.state());
  if (find(args.handle) == nullptr) return kernel_.refuse(ENOENT, "fini_bo: no handle {}", args.handle);
  return 0;
}

}  // namespace skillet::standin::rocket
