// A submission: the kernel's checks in the kernel's order, device addresses, relocations, then the simulated chip.
#include <algorithm>
#include <cerrno>
#include <set>

#include "base/log.h"
#include "interpose/sync_file.h"
#include "interpose/user_memory.h"
#include "interpose/virtual_file.h"

namespace skillet::interpose {
namespace {

constexpr uint32_t kExecStateLast = 2;
constexpr uint32_t kSubmitFlags =
    abi::kSubmitNoImplicit | abi::kSubmitFenceFdIn | abi::kSubmitFenceFdOut | abi::kSubmitSoftpin;
// Newer kernels refuse more than that, in bytes of stream and in numbers of buffers and relocations.
constexpr uint32_t kLargest = 128 * 1024;

}  // namespace

int VirtualFile::check(const abi::GemSubmit& args) const {
  if (args.pad != 0) return core_.refuse(EINVAL, "submit: pad is {}", args.pad);
  if (const int failure = check_pipe(args.pipe); failure != 0) return failure;
  if (args.stream_size % 4 != 0)
    return core_.refuse(EINVAL, "submit: a stream of {} bytes is not whole words", args.stream_size);
  if (args.exec_state > kExecStateLast) return core_.refuse(EINVAL, "submit: exec_state {}", args.exec_state);
  if ((args.flags & ~kSubmitFlags) != 0) return core_.refuse(EINVAL, "submit: flags {:#x}", args.flags);
  if (args.stream_size > kLargest || args.nr_bos > kLargest || args.nr_relocs > kLargest)
    return core_.refuse(EINVAL, "submit: {} bytes of stream, {} buffers, {} relocations: more than {} of something",
                        args.stream_size, args.nr_bos, args.nr_relocs, kLargest);
  if ((args.flags & abi::kSubmitSoftpin) != 0 && args.nr_relocs != 0)
    return core_.refuse(EINVAL, "submit: {} relocations in a softpin submission", args.nr_relocs);
  if (args.nr_pmrs != 0) return core_.refuse(EINVAL, "submit: the NPU has no performance counters");
  return 0;
}

int VirtualFile::read(const abi::GemSubmit& args, Request& request) const {
  if (copy_array_from_user(request.buffers, args.bos, args.nr_bos) != 0 ||
      copy_array_from_user(request.relocations, args.relocs, args.nr_relocs) != 0 ||
      copy_array_from_user(request.stream, args.stream, args.stream_size / 4) != 0)
    return core_.refuse(EFAULT, "submit: bad pointer to buffers, relocations or stream");
  return 0;
}

// Device address of a listed buffer: a mapping stays as long as the buffer.
int VirtualFile::place(const abi::SubmitBo& listed, bool is_softpin, Entry& entry) {
  const uint64_t size = entry.buffer->size_bytes();
  if (!is_softpin) return entry.address != 0 ? 0 : addresses_.take_anywhere(size, entry.address);
  if (entry.address == listed.presumed) return 0;
  if (entry.address != 0)
    return core_.refuse(EINVAL, "submit: handle {} is mapped at {:#x}, not at {:#x}", listed.handle, entry.address,
                        listed.presumed);
  const int failure = addresses_.take_exactly(listed.presumed, size);
  if (failure == 0) entry.address = listed.presumed;
  return failure;
}

int VirtualFile::look_up(const abi::GemSubmit& args, Request& request) {
  const bool is_softpin = (args.flags & abi::kSubmitSoftpin) != 0;
  const std::lock_guard lock(mutex_);
  std::set<uint32_t> seen;
  for (const abi::SubmitBo& listed : request.buffers) {
    if ((listed.flags & ~(abi::kSubmitBoRead | abi::kSubmitBoWrite)) != 0)
      return core_.refuse(EINVAL, "submit: handle {}: flags {:#x}", listed.handle, listed.flags);
    if (is_softpin && listed.presumed < AddressMap::kStart)
      return core_.refuse(EINVAL, "submit: handle {}: address {:#x} is below {:#x}", listed.handle, listed.presumed,
                          AddressMap::kStart);
    if (find(listed.handle) == nullptr) return core_.refuse(EINVAL, "submit: no handle {}", listed.handle);
    if (!seen.insert(listed.handle).second)
      return core_.refuse(EINVAL, "submit: handle {} is listed twice", listed.handle);
  }
  for (const abi::SubmitBo& listed : request.buffers) {
    Entry& entry = *find(listed.handle);
    if (!entry.buffer->is_present())
      return core_.refuse(EFAULT, "submit: the memory of handle {} is gone", listed.handle);
    if (const int failure = place(listed, is_softpin, entry); failure != 0)
      return core_.refuse(-failure, "submit: handle {}: no room for {} bytes at {:#x}", listed.handle,
                          entry.buffer->size_bytes(), listed.presumed);
    request.uses.push_back({entry.buffer, entry.address, (listed.flags & abi::kSubmitBoWrite) != 0});
  }
  return 0;
}

int VirtualFile::relocate(Request& request) const {
  uint32_t last_offset = 0;
  for (const abi::SubmitReloc& one : request.relocations) {
    if (one.flags != 0) return core_.refuse(EINVAL, "submit: relocation with flags {:#x}", one.flags);
    if (one.submit_offset % 4 != 0 || one.submit_offset / 4 >= request.stream.size())
      return core_.refuse(EINVAL, "submit: relocation at byte {} of the stream", one.submit_offset);
    if (one.submit_offset < last_offset) return core_.refuse(EINVAL, "submit: relocations are not sorted");
    last_offset = one.submit_offset;
    if (one.reloc_idx >= request.uses.size())
      return core_.refuse(EINVAL, "submit: relocation to buffer {} of {}", one.reloc_idx, request.uses.size());
    const Use& use = request.uses[one.reloc_idx];
    if (one.reloc_offset > use.buffer->size_bytes() - 4)
      return core_.refuse(EINVAL, "submit: relocation to byte {} of a buffer of {}", one.reloc_offset,
                          use.buffer->size_bytes());
    request.stream[one.submit_offset / 4] = static_cast<uint32_t>(use.address + one.reloc_offset);
  }
  return 0;
}

// Jobs run when they are submitted, so what a job would still have to wait for is a job that hangs.
bool VirtualFile::waits_for_ever(const abi::GemSubmit& args, const Request& request) {
  if ((args.flags & abi::kSubmitFenceFdIn) != 0 && sync_state(args.fence_fd) == SyncState::waiting) return true;
  if ((args.flags & abi::kSubmitNoImplicit) != 0) return false;
  return std::ranges::any_of(request.uses, [](const Use& use) { return !use.buffer->jobs(use.writes).empty(); });
}

// A fault is what a hang is on hardware: the core is reset and user space sees outputs that were not written.
int VirtualFile::run(const Request& request, FaultKind fault) {
  if (fault == FaultKind::reset || fault == FaultKind::reset_before) {
    log::warning("virtual {}: recover hung GPU: injected reset", core_.options().chip);
    core_.reset();
  }
  if (fault == FaultKind::reset) return 0;
  sim::Memory memory;
  Result<void> done;
  for (size_t i = 0; i < request.uses.size() && done.ok(); ++i) {
    const Use& use = request.uses[i];
    done = memory.map(use.address, use.buffer->bytes(), fmt::format("buffer {}", request.buffers[i].handle));
  }
  if (done.ok()) done = core_.execute(request.stream, memory);
  if (done.ok()) return 0;
  log::warning("virtual {}: recover hung GPU: {}", core_.options().chip, done.error().message);
  core_.reset();
  return core_.options().fault_is_error ? -EIO : 0;
}

int VirtualFile::submit(abi::GemSubmit& args, const Fault& fault) {
  Request request;
  if (const int failure = check(args); failure != 0) return failure;
  if (const int failure = read(args, request); failure != 0) return failure;
  const std::lock_guard in_order(core_.order());
  if (const int failure = look_up(args, request); failure != 0) return failure;
  if (const int failure = relocate(request); failure != 0) return failure;
  if ((args.flags & abi::kSubmitFenceFdIn) != 0 && sync_state(args.fence_fd) == SyncState::not_a_fence)
    return core_.refuse(EINVAL, "submit: descriptor {} is no fence", args.fence_fd);
  const bool hangs = fault.kind == FaultKind::hang || waits_for_ever(args, request);
  const bool gives_fence = (args.flags & abi::kSubmitFenceFdOut) != 0;
  const int fence_fd = gives_fence ? create_sync_file() : -1;
  if (gives_fence && fence_fd < 0) return core_.refuse(-fence_fd, "submit: no descriptor for the fence");

  const JobRef job = core_.jobs().begin();
  for (const Use& use : request.uses) use.buffer->add_job(job, use.writes);
  int failure = 0;
  if (!hangs) {
    failure = run(request, fault.kind);
    core_.jobs().finish(job);
    if (gives_fence) signal_sync_file(fence_fd);
  }
  args.fence = job->id;
  if (gives_fence) args.fence_fd = fence_fd;
  core_.trace("submit: job {}: {} words, {} buffers{}", job->id, request.stream.size(), request.uses.size(),
              hangs ? ", hangs" : "");
  return failure;
}

}  // namespace skillet::interpose
