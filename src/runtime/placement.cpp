// LoadedProgram: tensors in memory of the caller that the device reaches, without a copy.
#include <algorithm>

#include "runtime/cpu_access.h"
#include "runtime/loaded_program.h"

namespace skillet::runtime {
namespace {

constexpr uint64_t kAlignment = 64;  // of tensors the chip reads in place, as in buffers of the program's own

bool overlap(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  const std::less<const uint8_t*> before;  // also for bytes of different objects
  return before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

}  // namespace

bool LoadedProgram::is_written_by_jobs(driver::BufferId buffer) const {
  const auto writes = [&](const driver::BufferUse& use) { return use.buffer == buffer && use.write; };
  return std::ranges::any_of(program_.jobs,
                             [&](const driver::Job& job) { return std::ranges::any_of(job.buffers, writes); });
}

// A tensor can lie outside when it alone fills its buffer, as the caller's bytes are. Inputs of the caller's stay as
// they are.
bool LoadedProgram::can_move(const Bound& bound) const {
  const driver::TensorBinding& binding = bound.binding;
  if (binding.layout != driver::Layout::nhwc || binding.xor_byte != 0 || binding.offset_bytes != 0) return false;
  if (program_.buffers[binding.buffer].size_bytes != binding.size_bytes) return false;
  const auto is_there = [&](const Bound& other) { return other.binding.buffer == binding.buffer; };
  const auto inputs = std::ranges::count_if(inputs_, is_there), outputs = std::ranges::count_if(outputs_, is_there);
  for (const Bound& other : intermediates_) {
    if (other.binding.buffer == binding.buffer && other.binding.tensor != binding.tensor) return false;
  }
  return inputs + outputs == 1 && (inputs == 0 || !is_written_by_jobs(binding.buffer));
}

// The words that hold the buffer's address get the new one; a job lists a handle once, whatever lies in it.
Result<void> LoadedProgram::move(driver::BufferId id, const Place& place) {
  for (const driver::BufferRelocations& list : program_.buffer_relocations) {
    for (const driver::Relocation& one : list.relocations) {
      if (one.target != id) continue;
      SK_TRY_ASSIGN(const CpuAccess access,
                    CpuAccess::begin(device(), handles_[list.buffer], program_.buffers[list.buffer].size_bytes, true));
      uint8_t* word = access.bytes().data() + one.word_offset_bytes;
      SK_TRY_ASSIGN(const uint32_t value, relocate(load_le<uint32_t>(word), one, place.address));
      store_le(word, value);
    }
  }
  for (size_t i = 0; i < jobs_.size(); ++i) {
    for (const driver::Relocation& one : program_.jobs[i].relocations) {
      if (one.target != id) continue;
      uint32_t& word = jobs_[i].stream[one.word_offset_bytes / 4];
      SK_TRY_ASSIGN(word, relocate(word, one, place.address));
    }
  }
  places_[id] = place;
  for (size_t i = 0; i < jobs_.size(); ++i) jobs_[i].buffers = list_buffers(program_.jobs[i]);
  for (Watch& watch : watches_) {
    if (watch.witness.buffer == id) watch.check.forget();
  }
  return {};
}

std::vector<uapi::SubmitBuffer> LoadedProgram::list_buffers(const driver::Job& job) const {
  std::vector<uapi::SubmitBuffer> list;
  for (const driver::BufferUse& use : job.buffers) {
    const uapi::Handle handle = places_[use.buffer].handle;
    const auto known = std::ranges::find(list, handle, &uapi::SubmitBuffer::handle);
    if (known == list.end()) {
      list.push_back({handle, use.read, use.write});
    } else {
      known->read |= use.read;
      known->write |= use.write;
    }
  }
  return list;
}

LoadedProgram::Place LoadedProgram::best_place(const Bound& bound, std::span<const uint8_t> bytes) const {
  const Place own = own_place(bound.binding.buffer);
  const SharedBuffer* shared = context_->shared.find(bytes);
  if (shared == nullptr || !can_move(bound)) return own;
  const auto offset = static_cast<uint64_t>(bytes.data() - shared->bytes.data());
  if (offset % kAlignment != 0) return own;
  return {shared->handle, shared->address + offset, offset};
}

// By place and not by pointer: the device may have a view of its own of imported memory.
bool LoadedProgram::is_in_place(const Bound& bound, std::span<const uint8_t> bytes) const {
  return has_moved(bound.binding.buffer) && places_[bound.binding.buffer] == best_place(bound, bytes);
}

Result<void> LoadedProgram::place(const Bound& bound, std::span<const uint8_t> bytes) {
  const driver::BufferId id = bound.binding.buffer;
  const Place wanted = best_place(bound, bytes);
  if (wanted == places_[id]) return {};
  if (move(id, wanted).ok()) return {};
  return move(id, own_place(id));
}

// Not over bytes that an input is read from: a second run needs them.
Result<void> LoadedProgram::place_output(const Bound& output, const HostBytes& bytes_of) {
  const std::span<uint8_t> bytes = bytes_of(output.binding.tensor);
  if (bytes.size() != output.binding.size_bytes)
    return error(ErrorCode::invalid_argument, "{} bytes for an output of {}", bytes.size(), output.binding.size_bytes);
  const auto is_read = [&](const Bound& input) { return overlap(bytes_of(input.binding.tensor), bytes); };
  return place(output, std::ranges::any_of(inputs_, is_read) ? std::span<uint8_t>() : bytes);
}

}  // namespace skillet::runtime
