// LoadedProgram: tensors in memory of the caller that the device reaches, without a copy.
#include <algorithm>

#include "runtime/cpu_access.h"
#include "runtime/loaded_program.h"

namespace skillet::runtime {
namespace {

constexpr uint64_t kAlignment = 64;  // of tensors the chip reads in place, as in buffers of the program's own

bool uses(const std::vector<driver::Job>& jobs, driver::BufferId buffer) {
  return std::ranges::any_of(jobs, [&](const driver::Job& job) {
    return std::ranges::any_of(job.buffers, [&](const driver::BufferUse& use) { return use.buffer == buffer; });
  });
}

}  // namespace

// A tensor can lie outside when it alone fills its buffer, as the caller's bytes are, and only jobs use it.
bool LoadedProgram::can_move(const Bound& bound) const {
  const driver::TensorBinding& binding = bound.binding;
  if (binding.layout != driver::Layout::nhwc || binding.xor_byte != 0 || binding.offset_bytes != 0) return false;
  if (program_.buffers[binding.buffer].size_bytes != binding.size_bytes) return false;
  int bindings = 0;
  for (const auto* list : {&inputs_, &outputs_}) {
    for (const Bound& other : *list) bindings += other.binding.buffer == binding.buffer ? 1 : 0;
  }
  for (const Bound& other : intermediates_) {
    if (other.binding.buffer == binding.buffer && other.binding.tensor != binding.tensor) return false;
  }
  return bindings == 1 && !uses(program_.init_jobs, binding.buffer);
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
  const SharedBuffer* shared = context_->shared.find(bytes);
  if (shared == nullptr || !can_move(bound)) return own_place(bound);
  const auto offset = static_cast<uint64_t>(bytes.data() - shared->bytes.data());
  if (offset % kAlignment != 0) return own_place(bound);
  return {shared->handle, shared->address + offset, offset};
}

// By place and not by pointer: the device may have a view of its own of imported memory.
bool LoadedProgram::is_in_place(const Bound& bound, std::span<const uint8_t> bytes) const {
  const Place& now = places_[bound.binding.buffer];
  return now != own_place(bound) && now == best_place(bound, bytes);
}

Result<bool> LoadedProgram::place(const Bound& bound, std::span<const uint8_t> bytes) {
  const driver::BufferId id = bound.binding.buffer;
  const Place own = own_place(bound), wanted = best_place(bound, bytes);
  if (wanted == places_[id]) return wanted != own;
  if (auto moved = move(id, wanted); !moved.ok()) {
    SK_TRY(move(id, own));
    return false;
  }
  if (const auto check = checks_.find(&bound); check != checks_.end()) {
    check->second = {};
    if (wanted == own) SK_TRY(mark(bound));
  }
  return wanted != own;
}

Result<void> LoadedProgram::mark(const Bound& output) {
  SK_TRY_ASSIGN(const CpuAccess access, open(output, true));
  checks_[&output].mark(tensor_bytes(access, output));
  return {};
}

Result<void> LoadedProgram::place_output(ir::TensorId tensor, std::span<uint8_t> bytes) {
  for (const Bound& bound : outputs_) {
    if (bound.binding.tensor != tensor) continue;
    SK_TRY_ASSIGN(const bool outside, place(bound, bytes));
    if (outside && checks_.contains(&bound)) SK_TRY(mark(bound));
  }
  return {};
}

}  // namespace skillet::runtime
