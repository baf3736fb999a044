#include "kernels/rocket/fake/file.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "kernels/fake/calls.h"
#include "kernels/rocket/describe.h"

namespace skillet::fake::rocket {
namespace {

using File = RocketFile;
#define CALLS "kernels/rocket/calls.def"
#include "kernels/fake/call_table.def"

}  // namespace

std::vector<std::string_view> call_names() {
  std::vector<std::string_view> names = names_of<File>(kCalls);
  names.push_back("job");
  return names;
}

RocketFile::RocketFile(Kernel& kernel, unsigned minor)
    : GemFile(kernel, minor, {0, abi::kAddressEnd, abi::kPageBytes}), kernel_(kernel) {
  const Lock lock(kernel_.state());
  kernel_.add(entity_);
}

RocketFile::~RocketFile() {
  Lock lock(kernel_.state());
  kernel_.adopt_process();
  kernel_.check_close(entity_);
  kernel_.remove(entity_, lock);
}

void RocketFile::check_close() {
  const Lock lock(kernel_.state());
  kernel_.check_close(entity_);
}

int RocketFile::ioctl(unsigned long request, void* argument) {
  return run_call<RocketFile>(kCalls, kernel_, *this, request, argument);
}

// The mainline driver has no version numbers.
int RocketFile::version(drm::Version& args) {
  const std::optional<int> extensions = kernel_.options().extensions;
  args.version_major = extensions ? 1 : 0, args.version_minor = extensions.value_or(0), args.version_patch = 0;
  return give_version(kernel_, abi::kDriverName, "0", "rocket DRM", args);
}

std::vector<Mapping> RocketFile::mappings() const {
  std::vector<Mapping> out;
  for (const Entry& one : closed_) out.push_back({one.buffer, *one.address});
  for (const auto& [handle, one] : entries_) {
    if (one.address) out.push_back({one.buffer, *one.address});
  }
  return out;
}

// The kernel ends each job by its timeout, by its own clock.
bool RocketFile::is_in_use(const Buffer& buffer) const {
  const bool runs = GemFile::is_in_use(buffer);
  if (!runs && (!buffer.was_listed() || !entity_.ended)) return false;
  return kernel_.now() < (runs ? entity_.latest_end : *entity_.ended) + kernel_.options().release_time;
}

int RocketFile::create_bo(abi::CreateBo& args) {
  if (args.size == 0) return kernel_.refuse(ENOSPC, "create_bo: 0 bytes");
  std::shared_ptr<Buffer> made;
  if (const int failure = kernel_.create_buffer(args.size, made); failure != 0)
    return kernel_.refuse(-failure, "create_bo: no memory for {} bytes", args.size);
  const Lock lock(kernel_.state());
  reclaim();
  const auto address = addresses_.take(made->size_bytes());
  if (!address.ok()) return kernel_.refuse(ENOMEM, "create_bo: no room for {} bytes", args.size);
  args.handle = add({std::move(made), *address});
  args.dma_address = *address;
  args.offset = offset_of(args.handle);
  return 0;
}

// The kernel keeps listed buffers alive, but not commands: they are unmapped with their last handle.
int RocketFile::gem_close(drm::GemClose& args) {
  {
    const Lock lock(kernel_.state());
    const Entry* const entry = find(args.handle);
    const auto is_inside = [&](const sim::Commands& task) {
      return task.address - *entry->address < entry->buffer->size_bytes();
    };
    const auto check = [&](const QueuedJob& job) {
      // The kernel ends each job by its timeout, by its own clock.
      if (kernel_.now() >= entity_.latest_end || entry == nullptr || !entry->address ||
          std::ranges::find(job.buffers, entry->buffer) != job.buffers.end() ||
          std::ranges::none_of(job.tasks, is_inside))
        return;
      kernel_.punish(
          fmt::format("gem_close: handle {} holds the commands of job {}, which has not ended: the NPU reads "
                      "memory that is not mapped",
                      args.handle, job.id));
    };
    std::ranges::for_each(entity_.jobs, check);
    if (entity_.running != nullptr) check(*entity_.running);
  }
  return GemFile::gem_close(args);
}

int RocketFile::prime_handle_to_fd(drm::PrimeHandle& args) {
  Lock lock(kernel_.state());
  // Its memory is moved to a memfd at the same address: not while a job writes it. Unlisted buffers may at most be
  // read.
  while (const Entry* const entry = find(args.handle)) {
    const std::shared_ptr<Buffer> buffer = entry->buffer;
    const std::optional<JobId> job = buffer->busy(kernel_.jobs(), true);
    if (!job) break;
    kernel_.jobs().wait(lock, *job, Jobs::time(INT64_MAX, 0), false);
  }
  return export_buffer(args);
}

// With OnFault::error, which no real kernel has: the next call returns the simulator's fault.
int RocketFile::give_fault(std::string_view call) {
  if (entity_.fault.empty()) return 0;
  const std::string fault = std::exchange(entity_.fault, {});
  return kernel_.refuse(EIO, "{}: {}", call, fault);
}

int RocketFile::prep_bo(abi::PrepBo& args) {
  if (args.reserved != 0) return kernel_.refuse(EINVAL, "prep_bo: reserved is {}", args.reserved);
  Lock lock(kernel_.state());
  const Entry* const entry = find(args.handle);
  if (entry == nullptr) return kernel_.refuse(ENOENT, "prep_bo: no handle {}", args.handle);
  if (entry->buffer->busy(kernel_.jobs(), false)) {
    kernel_.adopt_process();
    const std::shared_ptr<Buffer> buffer = entry->buffer;
    const Jobs::Time deadline = Jobs::time(0, args.timeout_ns);
    const bool is_past = deadline <= std::chrono::steady_clock::now();
    while (const std::optional<JobId> job = buffer->busy(kernel_.jobs(), false)) {
      const int failure = kernel_.jobs().wait(lock, *job, deadline, is_past);
      if (failure != 0) return kernel_.refuse(-failure, "prep_bo: handle {} is in use by job {}", args.handle, *job);
    }
  }
  return give_fault("prep_bo");
}

int RocketFile::fini_bo(abi::FiniBo& args) {
  if (args.reserved != 0) return kernel_.refuse(EINVAL, "fini_bo: reserved is {}", args.reserved);
  const Lock lock(kernel_.state());
  if (find(args.handle) == nullptr) return kernel_.refuse(ENOENT, "fini_bo: no handle {}", args.handle);
  return 0;
}

}  // namespace skillet::fake::rocket
