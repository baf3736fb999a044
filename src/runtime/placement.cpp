// LoadedProgram: tensors that the device uses in place, in memory of the caller.
#include <algorithm>
#include <utility>

#include "runtime/cpu_access.h"
#include "runtime/loaded_program.h"

namespace skillet::runtime {
namespace {

constexpr uint64_t kAlignment = 64;  // of tensors that the chip reads in place, as in the program's own buffers

bool overlap(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  const std::less<const uint8_t*> before;  // also for bytes of different objects
  return before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

}  // namespace

bool LoadedProgram::is_written_by_jobs(npu::BufferId buffer) const {
  const auto writes = [&](const npu::BufferUse& use) { return use.buffer == buffer && use.write; };
  return std::ranges::any_of(program_.jobs, [&](const npu::Job& job) { return std::ranges::any_of(job.uses, writes); });
}

// A tensor can be in the caller's memory if it fills its buffer alone, in host layout. Jobs must not write the caller's
// inputs.
bool LoadedProgram::can_move(const Binding& binding) const {
  if (!npu::same_as_host(binding.layout, binding.shape) || binding.offset_bytes != 0) return false;
  if (program_.buffers[binding.buffer].size_bytes != binding.layout.size_bytes) return false;
  const auto is_there = [&](const Binding& other) { return other.buffer == binding.buffer; };
  const auto inputs = std::ranges::count_if(program_.inputs, is_there),
             outputs = std::ranges::count_if(outputs_, is_there);
  for (const Binding& other : program_.intermediates) {
    if (other.buffer == binding.buffer && other.tensor != binding.tensor) return false;
  }
  return inputs + outputs == 1 && (inputs == 0 || !is_written_by_jobs(binding.buffer));
}

// Bytes that hold the buffer's address get the new address. A job lists a handle once, however many tensors are in it.
Result<void> LoadedProgram::move(npu::BufferId id, const Place& place) {
  for (npu::BufferId where = 0; where < program_.buffers.size(); ++where) {
    for (const npu::Relocation& one : program_.buffers[where].relocations) {
      if (one.target == id) SK_TRY(readdress(where, one, place.address));
    }
  }
  places_[id] = place;
  discard_jobs(id);
  for (Watch& watch : watches_) {
    if (watch.witness.buffer == id) watch.check.forget();
  }
  return {};
}

Result<void> LoadedProgram::readdress(npu::BufferId where, const npu::Relocation& relocation, uint64_t address) {
  SK_TRY_ASSIGN(CpuAccess access, open(where, true));
  SK_TRY(relocate(access.bytes(), relocation, address));
  return access.end();
}

// They are prepared again when all tensors have their places.
void LoadedProgram::discard_jobs(npu::BufferId moved) {
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const auto& uses = program_.jobs[i].uses;
    if (std::ranges::find(uses, moved, &npu::BufferUse::buffer) == uses.end()) continue;
    if (jobs_[i] != kUnprepared) device().release(std::exchange(jobs_[i], kUnprepared));
  }
}

std::vector<kernels::JobBuffer> LoadedProgram::list_buffers(const npu::Job& job) const {
  std::vector<kernels::JobBuffer> list;
  for (const npu::BufferUse& use : job.uses) {
    const kernels::Handle handle = places_[use.buffer].handle;
    const auto known = std::ranges::find(list, handle, &kernels::JobBuffer::handle);
    if (known == list.end()) {
      list.push_back({handle, use.read, use.write, use.slot, program_.buffers[use.buffer].is_constant()});
    } else {
      known->read |= use.read;
      known->write |= use.write;
    }
  }
  return list;
}

LoadedProgram::Place LoadedProgram::best_place(const Binding& binding, std::span<const uint8_t> bytes) const {
  const Place own = own_places_[binding.buffer];
  const SharedBuffer* shared = context_->shared.find(bytes);
  if (shared == nullptr || !can_move(binding)) return own;
  const auto offset = static_cast<uint64_t>(bytes.data() - shared->bytes.data());
  if (offset % kAlignment != 0) return own;
  return {shared->handle, shared->address + offset, offset};
}

// Compares places, not pointers: the device may have its own view of imported memory.
bool LoadedProgram::is_in_place(const Binding& binding, std::span<const uint8_t> bytes) const {
  return has_moved(binding.buffer) && places_[binding.buffer] == best_place(binding, bytes);
}

Result<void> LoadedProgram::place(const Binding& binding, std::span<const uint8_t> bytes) {
  const npu::BufferId id = binding.buffer;
  const Place wanted = best_place(binding, bytes);
  if (wanted == places_[id]) return {};
  if (move(id, wanted).ok()) return {};
  return move(id, own_places_[id]);
}

// Never over bytes that an input is read from: a second run needs them.
Result<void> LoadedProgram::place_output(const Binding& output, const HostBytes& bytes_of) {
  const std::span<uint8_t> bytes = bytes_of(output.tensor);
  if (bytes.size() != output.shape.bytes())
    return error(ErrorCode::invalid_argument, "{} bytes for an output of {}", bytes.size(), output.shape.bytes());
  const auto is_read = [&](const Binding& input) { return overlap(bytes_of(input.tensor), bytes); };
  return place(output, std::ranges::any_of(program_.inputs, is_read) ? std::span<uint8_t>() : bytes);
}

}  // namespace skillet::runtime
