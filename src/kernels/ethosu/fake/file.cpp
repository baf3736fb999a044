#include "kernels/ethosu/fake/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "kernels/ethosu/describe.h"
#include "kernels/fake/calls.h"

namespace skillet::fake::ethosu {
namespace {

using File = EthosuFile;
constexpr uint32_t kMostInfo = 4096;                // bytes of a query; larger ones do not occur
constexpr uint64_t kMostBytes = uint64_t{1} << 40;  // of a buffer
constexpr uint32_t kMostJobs = 1 << 16;             // limit of an array from user space
#define CALLS "kernels/ethosu/calls.def"
#include "kernels/fake/call_table.def"

}  // namespace

std::vector<std::string_view> call_names() { return names_of<File>(kCalls); }

int EthosuFile::ioctl(unsigned long request, void* argument) {
  return run_call<EthosuFile>(kCalls, kernel_, *this, request, argument);
}

int EthosuFile::version(drm::Version& args) {
  args.version_major = 1;
  args.version_minor = args.version_patch = 0;
  return give_version(kernel_, abi::kDriverName, "0", "Arm Ethos-U Accel driver", args);
}

int EthosuFile::gem_close(drm::GemClose& args) {
  {
    const Lock lock(kernel_.state());
    streams_.erase(args.handle);
    unmappable_.erase(args.handle);
  }
  return GemFile::gem_close(args);
}

int EthosuFile::prime_handle_to_fd(drm::PrimeHandle& args) {
  const std::lock_guard in_order(kernel_.order());  // no job may write while the memory is moved
  const Lock lock(kernel_.state());
  return export_buffer(args);
}

int EthosuFile::dev_query(abi::DevQuery& args) {
  if (args.type != abi::kQueryNpuInfo) return kernel_.refuse(EINVAL, "dev_query: type {}", args.type);
  const Identity& identity = kernel_.identity();
  const abi::NpuInfo info{
      .id = identity.id, .config = identity.config, .sram_size = identity.sram_bytes, .pmu_counters = 0};
  if (args.pointer == 0) {
    args.size = abi::kNpuInfoBytes;
    return 0;
  }
  if (args.size < abi::kNpuInfoBytes) return kernel_.refuse(EINVAL, "dev_query: {} bytes", args.size);
  // Additional fields of a newer program are set to 0.
  if (args.size > kMostInfo) return kernel_.refuse(EFAULT, "dev_query: {} bytes", args.size);
  std::array<uint8_t, kMostInfo> bytes{};
  std::memcpy(bytes.data(), &info, abi::kNpuInfoBytes);
  if (kernel_.copy_to_user(args.pointer, bytes.data(), args.size) != 0)
    return kernel_.refuse(EFAULT, "dev_query: bad pointer");
  return 0;
}

int EthosuFile::bo_create(abi::BoCreate& args) {
  if ((args.flags & ~abi::kBoNoMmap) != 0) return kernel_.refuse(EINVAL, "bo_create: flags {:#x}", args.flags);
  if (args.size == 0) return kernel_.refuse(EINVAL, "bo_create: 0 bytes");
  if (args.size > kMostBytes) return kernel_.refuse(ENOSPC, "bo_create: {} bytes", args.size);
  std::shared_ptr<Buffer> made;
  if (const int failure = kernel_.create_buffer(args.size, made); failure != 0)
    return kernel_.refuse(-failure, "bo_create: no memory for {} bytes", args.size);
  const Lock lock(kernel_.state());
  args.size = made->size_bytes();
  args.handle = add({std::move(made), {}});
  if ((args.flags & abi::kBoNoMmap) != 0) unmappable_.insert(args.handle);
  return 0;
}

int EthosuFile::bo_wait(abi::BoWait& args) {
  if (args.pad != 0) return kernel_.refuse(EINVAL, "bo_wait: pad is {}", args.pad);
  Lock lock(kernel_.state());
  const Entry* const entry = find(args.handle);
  if (entry == nullptr) return kernel_.refuse(EINVAL, "bo_wait: no handle {}", args.handle);
  const std::shared_ptr<Buffer> buffer = entry->buffer;
  while (const std::optional<JobId> job = buffer->busy(kernel_.jobs(), true)) {
    const int failure = kernel_.wait_for_job(lock, *job, Jobs::time(0, args.timeout_ns), false);
    if (failure != 0) return kernel_.refuse(-failure, "bo_wait: handle {} is in use by job {}", args.handle, *job);
  }
  return 0;
}

int EthosuFile::bo_mmap_offset(abi::BoMmapOffset& args) {
  if (args.pad != 0) return kernel_.refuse(EINVAL, "bo_mmap_offset: pad is {}", args.pad);
  const Lock lock(kernel_.state());
  if (find(args.handle) == nullptr) return kernel_.refuse(ENOENT, "bo_mmap_offset: no handle {}", args.handle);
  if (unmappable_.contains(args.handle))
    return kernel_.refuse(EINVAL, "bo_mmap_offset: handle {} is not to be mapped", args.handle);
  args.offset = offset_of(args.handle);
  return 0;
}

int EthosuFile::find_mapping(uint64_t size_bytes, uint64_t offset, std::shared_ptr<Buffer>& out) {
  {
    const Lock lock(kernel_.state());
    const auto is_there = [&](uint32_t handle) { return offset_of(handle) == offset; };
    if (std::ranges::any_of(unmappable_, is_there))
      return kernel_.refuse(EINVAL, "mmap: offset {:#x} is not to be mapped", offset);
  }
  return GemFile::find_mapping(size_bytes, offset, out);
}

// Copies and checks the stream; jobs refer to it by its handle.
int EthosuFile::cmdstream_bo_create(abi::CmdstreamBoCreate& args) {
  if (args.flags != 0 || args.pad != 0)
    return kernel_.refuse(EINVAL, "cmdstream_bo_create: flags {:#x}, pad {}", args.flags, args.pad);
  if (args.size > abi::kCommandStreamMax) return kernel_.refuse(ENOMEM, "cmdstream_bo_create: {} bytes", args.size);
  if (args.size == 0 || args.size % 4 != 0) return kernel_.refuse(EINVAL, "cmdstream_bo_create: {} bytes", args.size);
  auto stream = std::make_shared<Stream>();
  if (kernel_.copy_array_from_user(stream->words, args.data, args.size / 4) != 0)
    return kernel_.refuse(EFAULT, "cmdstream_bo_create: bad pointer to {} bytes", args.size);
  auto needs = kernel_.identity().check(stream->words);
  if (!needs.ok()) return kernel_.refuse(EINVAL, "cmdstream_bo_create: {}", needs.error().message);
  stream->needs = *needs;
  std::shared_ptr<Buffer> made;
  if (const int failure = kernel_.create_buffer(args.size, made); failure != 0)
    return kernel_.refuse(-failure, "cmdstream_bo_create: no memory for {} bytes", args.size);
  const Lock lock(kernel_.state());
  args.handle = add({std::move(made), {}});
  args.flags = abi::kBoNoMmap;  // as in Linux
  streams_[args.handle] = std::move(stream);
  unmappable_.insert(args.handle);
  return 0;
}

// A used region needs a buffer or on-chip memory as large as the stream requires; an unused region must have neither.
int EthosuFile::read_region(const abi::SubmitJob& args, size_t region, Launch& launch) {
  const uint32_t handle = args.region_bo_handles[region];
  const uint64_t needed = launch.stream->needs.bytes[region];
  if (region == abi::kSramRegion && args.sram_size != 0) {
    if (handle != 0) return kernel_.refuse(EINVAL, "submit: region {} has handle {} and sram_size", region, handle);
    if (args.sram_size > kernel_.identity().sram_bytes)
      return kernel_.refuse(EINVAL, "submit: sram_size {} of {}", args.sram_size, kernel_.identity().sram_bytes);
    if (needed > args.sram_size)
      return kernel_.refuse(EOVERFLOW, "submit: region {} needs {} bytes of {}", region, needed, args.sram_size);
    return 0;
  }
  if ((handle != 0) != (needed != 0))
    return kernel_.refuse(handle == 0 ? ENOENT : EINVAL,
                          "submit: region {} has handle {}, and the stream uses {} bytes of it", region, handle,
                          needed);
  if (handle == 0) return 0;
  const Entry* const entry = find(handle);
  if (entry == nullptr) return kernel_.refuse(ENOENT, "submit: no handle {}", handle);
  if (streams_.contains(handle)) return kernel_.refuse(EINVAL, "submit: handle {} is a command stream", handle);
  if (needed > entry->buffer->size_bytes())
    return kernel_.refuse(EOVERFLOW, "submit: region {} needs {} bytes of {}", region, needed,
                          entry->buffer->size_bytes());
  if (std::ranges::find(launch.regions, entry->buffer) != launch.regions.end())
    return kernel_.refuse(EALREADY, "submit: handle {} is in two regions", handle);
  launch.regions[region] = entry->buffer;
  return 0;
}

// Requires state().
int EthosuFile::read_job(const abi::SubmitJob& args, Launch& launch) {
  const auto stream = streams_.find(args.cmd_bo);
  if (stream == streams_.end())
    return kernel_.refuse(find(args.cmd_bo) == nullptr ? ENOENT : EINVAL, "submit: handle {} is not a command stream",
                          args.cmd_bo);
  launch.stream = stream->second;
  launch.sram_bytes = args.sram_size;
  for (size_t region = 0; region < abi::kRegions; ++region) {
    if (const int failure = read_region(args, region, launch); failure != 0) return failure;
  }
  return 0;
}

// Requires order().
int EthosuFile::start(const Launch& launch, FaultKind fault) {
  Lock lock(kernel_.state());
  const auto is_busy = [&](const std::shared_ptr<Buffer>& one) {
    return one != nullptr && one->busy(kernel_.jobs(), true).has_value();
  };
  // Jobs run at submission, so a job that would have to wait for another one hangs.
  const bool hangs = fault == FaultKind::hang || std::ranges::any_of(launch.regions, is_busy);
  const JobId job = kernel_.jobs().begin();
  if (hangs) kernel_.jobs().stall(job);
  for (size_t i = 0; i < launch.regions.size(); ++i) {
    if (launch.regions[i] != nullptr) launch.regions[i]->add_job(kernel_.jobs(), job, launch.stream->needs.writes[i]);
  }
  kernel_.trace("submit: job {}: {} words{}", job, launch.stream->words.size(), hangs ? ", hangs" : "");
  if (hangs) return 0;
  lock.unlock();
  int failure = 0;
  const auto finish = [&] {
    lock.lock();
    kernel_.jobs().finish(job);
  };
  try {
    failure = kernel_.run(launch, fault);
  } catch (...) {  // no memory for an error message
    finish();
    throw;
  }
  finish();
  return failure;
}

// Every job is checked before the first one runs.
int EthosuFile::submit(abi::Submit& args, const Fault& fault) {
  if (args.perfmon_id != 0) return kernel_.refuse(EINVAL, "submit: perfmon_id {}", args.perfmon_id);
  if (args.job_count == 0) return 0;
  if (args.job_count > kMostJobs) return kernel_.refuse(ENOMEM, "submit: {} jobs", args.job_count);
  std::vector<abi::SubmitJob> jobs;
  if (kernel_.copy_array_from_user(jobs, args.jobs, args.job_count) != 0)
    return kernel_.refuse(EFAULT, "submit: bad pointer to jobs");
  const std::lock_guard in_order(kernel_.order());
  std::vector<Launch> launches(jobs.size());
  {
    const Lock lock(kernel_.state());
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (const int failure = read_job(jobs[i], launches[i]); failure != 0) return failure;
    }
  }
  for (size_t i = 0; i < launches.size(); ++i) {
    if (const int failure = start(launches[i], i == 0 ? fault.kind : FaultKind::none); failure != 0) return failure;
  }
  return 0;
}

}  // namespace skillet::fake::ethosu
