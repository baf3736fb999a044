// A submission: the kernel's checks in the kernel's order, device addresses, relocations, then the simulated chip.
#include <algorithm>
#include <array>
#include <cerrno>

#include "kernels/etnaviv/fake/file.h"
#include "kernels/fake/sync_file.h"

namespace skillet::fake::etnaviv {
namespace {

constexpr uint32_t kExecStateLast = 2;
constexpr uint32_t kSubmitFlags =
    abi::kSubmitNoImplicit | abi::kSubmitFenceFdIn | abi::kSubmitFenceFdOut | abi::kSubmitSoftpin;
constexpr uint32_t kLargest = abi::kLargestSubmission;
constexpr uint32_t kCounterFlags = 3;  // before the job, after it

}  // namespace

int EtnavivFile::check(const abi::GemSubmit& args) {
  if (const int failure = check_pipe(args.pipe); failure != 0) return failure;
  if (args.stream_size % 4 != 0)
    return kernel_.refuse(EINVAL, "submit: a stream of {} bytes is not whole words", args.stream_size);
  if (args.exec_state > kExecStateLast) return kernel_.refuse(EINVAL, "submit: exec_state {}", args.exec_state);
  if ((args.flags & ~kSubmitFlags) != 0) return kernel_.refuse(EINVAL, "submit: flags {:#x}", args.flags);
  if (args.stream_size > kLargest || args.nr_bos > kLargest || args.nr_relocs > kLargest || args.nr_pmrs > kLargest)
    return kernel_.refuse(EINVAL, "submit: {} bytes of stream, {} buffers, {} relocations: more than {} of something",
                          args.stream_size, args.nr_bos, args.nr_relocs, kLargest);
  return 0;
}

int EtnavivFile::read(const abi::GemSubmit& args, Request& request) {
  request.uses.clear();
  request.pipe = args.pipe;
  if (kernel_.copy_array_from_user(request.buffers, args.bos, args.nr_bos) != 0 ||
      kernel_.copy_array_from_user(request.relocations, args.relocs, args.nr_relocs) != 0 ||
      kernel_.copy_array_from_user(request.counters, args.pmrs, args.nr_pmrs) != 0 ||
      kernel_.copy_array_from_user(request.stream, args.stream, args.stream_size / 4) != 0)
    return kernel_.refuse(EFAULT, "submit: bad pointer to buffers, relocations, stream or performance counters");
  if ((args.flags & abi::kSubmitSoftpin) != 0 && args.nr_relocs != 0)
    return kernel_.refuse(EINVAL, "submit: {} relocations in a softpin submission", args.nr_relocs);
  return 0;
}

// Unmaps buffers in a range if no job uses them; false if one is in use, or listed.
bool EtnavivFile::make_room(uint64_t address, uint64_t size_bytes, const Request& request) {
  const auto overlaps = [&](const Entry& one) {
    return one.address && *one.address < address + size_bytes && address < *one.address + one.buffer->size_bytes();
  };
  const auto is_used = [&](const Entry& one) {
    return one.buffer->busy(kernel_.jobs(), true) ||
           std::ranges::any_of(request.uses, [&](const Request::Use& use) { return use.buffer == one.buffer; });
  };
  reclaim();
  for (auto& [handle, one] : entries_) {
    if (!overlaps(one)) continue;
    if (is_used(one)) return false;
    addresses_.give_back(*one.address, one.buffer->size_bytes());
    one.address.reset();
  }
  return true;
}

// Sets the device address of a listed buffer: a mapping is kept until a softpin submission needs its range or moves it.
int EtnavivFile::place(const abi::SubmitBo& listed, bool is_softpin, Entry& entry, const Request& request) {
  const uint64_t size = entry.buffer->size_bytes();
  if (!is_softpin) {
    if (entry.address) return 0;
    const auto address = addresses_.take(size);
    if (!address.ok()) return -ENOSPC;
    entry.address = *address;
    return 0;
  }
  if (entry.address == listed.presumed) return 0;
  if (entry.address && entry.buffer->busy(kernel_.jobs(), true))
    return kernel_.refuse(EINVAL, "submit: handle {} is in use at {:#x}, not at {:#x}", listed.handle, *entry.address,
                          listed.presumed);
  if (listed.presumed % abi::kPageBytes != 0) return -EINVAL;
  if (entry.address) addresses_.give_back(*entry.address, size);
  entry.address.reset();
  if (!make_room(listed.presumed, size, request) || !addresses_.take_at(listed.presumed, size)) return -ENOSPC;
  entry.address = listed.presumed;
  return 0;
}

int EtnavivFile::look_up(const abi::GemSubmit& args, Request& request) {
  reclaim();
  const bool is_softpin = (args.flags & abi::kSubmitSoftpin) != 0;
  const auto is_listed_before = [&](const abi::SubmitBo& listed) {
    return std::ranges::any_of(std::span(request.buffers.data(), &listed),
                               [&](const abi::SubmitBo& one) { return one.handle == listed.handle; });
  };
  for (const abi::SubmitBo& listed : request.buffers) {
    if ((listed.flags & ~(abi::kSubmitBoRead | abi::kSubmitBoWrite)) != 0)
      return kernel_.refuse(EINVAL, "submit: handle {}: flags {:#x}", listed.handle, listed.flags);
    if (is_softpin && listed.presumed < abi::kAddressStart)
      return kernel_.refuse(EINVAL, "submit: handle {}: address {:#x} is below {:#x}", listed.handle, listed.presumed,
                            abi::kAddressStart);
    if (find(listed.handle) == nullptr) return kernel_.refuse(EINVAL, "submit: no handle {}", listed.handle);
    if (is_listed_before(listed)) return kernel_.refuse(EALREADY, "submit: handle {} is listed twice", listed.handle);
  }
  for (const abi::SubmitBo& listed : request.buffers) {
    Entry& entry = *find(listed.handle);
    if (const int failure = need_memory("submit", listed.handle, *entry.buffer); failure != 0) return failure;
    if (const int failure = place(listed, is_softpin, entry, request); failure != 0)
      return kernel_.refuse(-failure, "submit: handle {}: no address space for {} bytes at {:#x}", listed.handle,
                            entry.buffer->size_bytes(), listed.presumed);
    request.uses.push_back({entry.buffer, *entry.address, (listed.flags & abi::kSubmitBoWrite) != 0});
  }
  return 0;
}

int EtnavivFile::relocate(Request& request) {
  uint32_t last_offset = 0;
  for (const abi::SubmitReloc& one : request.relocations) {
    if (one.flags != 0) return kernel_.refuse(EINVAL, "submit: relocation with flags {:#x}", one.flags);
    if (one.submit_offset % 4 != 0 || one.submit_offset / 4 >= request.stream.size())
      return kernel_.refuse(EINVAL, "submit: relocation at byte {} of the stream", one.submit_offset);
    if (one.submit_offset < last_offset) return kernel_.refuse(EINVAL, "submit: relocations are not sorted");
    last_offset = one.submit_offset;
    if (one.reloc_idx >= request.uses.size())
      return kernel_.refuse(EINVAL, "submit: relocation to buffer {} of {}", one.reloc_idx, request.uses.size());
    const Request::Use& use = request.uses[one.reloc_idx];
    if (one.reloc_offset > use.buffer->size_bytes() - 4)
      return kernel_.refuse(EINVAL, "submit: relocation to byte {} of a buffer of {}", one.reloc_offset,
                            use.buffer->size_bytes());
    request.stream[one.submit_offset / 4] = static_cast<uint32_t>(use.address + one.reloc_offset);
  }
  return 0;
}

// The kernel compares a number of words with one of bytes: offsets in between write past the end of the buffer.
int EtnavivFile::check_counters(const Request& request) {
  for (const abi::SubmitCounter& one : request.counters) {
    const bool has_buffer = one.read_idx < request.uses.size();
    const uint64_t bytes = has_buffer ? request.uses[one.read_idx].buffer->size_bytes() : 0;
    if ((one.flags & ~kCounterFlags) != 0 || !has_signal(one.domain, one.signal) || one.read_offset == 0 ||
        one.read_offset >= bytes)
      return kernel_.refuse(EINVAL, "submit: counter {} of domain {} into word {} of buffer {}, flags {:#x}",
                            one.signal, one.domain, one.read_offset, one.read_idx, one.flags);
    if (one.read_offset >= bytes / sizeof(uint32_t)) {
      kernel_.punish(fmt::format("submit: a counter into word {} of a buffer of {} bytes: it ends the kernel",
                                 one.read_offset, bytes));
      return -EINVAL;
    }
  }
  return 0;
}

// The simulated chip counts nothing: all counters are 0.
void EtnavivFile::write_counters(const Request& request) {
  for (const abi::SubmitCounter& one : request.counters) {
    uint8_t* const words = request.uses[one.read_idx].buffer->bytes().data();
    constexpr uint32_t kNothing = 0;
    std::memcpy(words, &one.sequence, sizeof(uint32_t));
    std::memcpy(words + size_t{one.read_offset} * sizeof(uint32_t), &kNothing, sizeof(uint32_t));
  }
}

// Jobs run at submission, so a job that would have to wait for another one hangs.
bool EtnavivFile::never_starts(const abi::GemSubmit& args, const Request& request) {
  if ((args.flags & abi::kSubmitFenceFdIn) != 0 && sync_state(args.fence_fd) == SyncState::waiting) return true;
  if ((args.flags & abi::kSubmitNoImplicit) != 0) return false;
  return std::ranges::any_of(
      request.uses, [&](const Request::Use& use) { return use.buffer->busy(kernel_.jobs(), use.writes).has_value(); });
}

int EtnavivFile::submit(abi::GemSubmit& args, const Fault& fault) {
  if (const int failure = check(args); failure != 0) return failure;
  const std::lock_guard in_order(kernel_.order());
  Request& request = kernel_.request();
  if (const int failure = read(args, request); failure != 0) return failure;
  return start(args, request, fault);
}

// Requires order().
int EtnavivFile::start(abi::GemSubmit& args, Request& request, const Fault& fault) {
  Lock lock(kernel_.state());
  if (const int failure = look_up(args, request); failure != 0) return failure;
  if (const int failure = relocate(request); failure != 0) return failure;
  if (const int failure = check_counters(request); failure != 0) return failure;
  if ((args.flags & abi::kSubmitFenceFdIn) != 0 && sync_state(args.fence_fd) == SyncState::not_a_fence)
    return kernel_.refuse(EINVAL, "submit: descriptor {} is not a fence", args.fence_fd);
  const bool hangs = fault.kind == FaultKind::hang || never_starts(args, request);
  const bool gives_fence = (args.flags & abi::kSubmitFenceFdOut) != 0;
  const int fence_fd = gives_fence ? create_sync_file() : -1;
  if (gives_fence && fence_fd < 0) return kernel_.refuse(-fence_fd, "submit: no descriptor for the fence");

  const JobId job = kernel_.jobs().begin();
  if (hangs) kernel_.jobs().stall(job);
  for (const Request::Use& use : request.uses) use.buffer->add_job(kernel_.jobs(), job, use.writes);
  lock.unlock();
  int failure = 0;
  if (!hangs) {
    const auto finish = [&] {
      lock.lock();
      kernel_.jobs().finish(job);
      lock.unlock();
    };
    try {
      failure = kernel_.run(request, fault.kind);
      write_counters(request);
    } catch (...) {  // no memory for an error message
      finish();
      throw;
    }
    finish();
    if (gives_fence) signal_sync_file(fence_fd);
  }
  args.fence = job;
  args.fence_fd = fence_fd;
  kernel_.trace("submit: job {}: {} words, {} buffers{}", job, request.stream.size(), request.uses.size(),
                hangs ? ", hangs" : "");
  if (kernel_.options().traces) {
    for (size_t i = 0; i < request.uses.size(); ++i) {
      const Request::Use& use = request.uses[i];
      kernel_.trace("  handle {} at {:#x}, {} bytes{}", request.buffers[i].handle, use.address,
                    use.buffer->size_bytes(), use.writes ? ", written" : "");
    }
  }
  request.uses.clear();  // releases the buffers
  return failure;
}

}  // namespace skillet::fake::etnaviv
