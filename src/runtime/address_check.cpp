#include "runtime/address_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/int_math.h"
#include "npu/decoded_capture.h"
#include "runtime/loaded_program.h"

namespace skillet::runtime {
namespace {

using npu::AnnotatedField;

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kRoomBytes = 4096;  // bytes beyond the contents

Error bad(std::string message) { return Error{ErrorCode::malformed, std::move(message)}; }

// The buffers of a program at made-up addresses, in the form that a job uses.
class Placed {
 public:
  // A gap of `gap_pages` follows each buffer.
  static Result<Placed> create(const npu::Program& program, uint64_t first, uint64_t gap_pages);
  Result<npu::Annotated> decode(const npu::Driver& driver, const npu::Chip& chip, const npu::Job& job,
                                npu::Detail detail);
  const capture::Submission& submission() const { return submission_; }
  bool is_constant(npu::BufferId id) const { return program_.buffers[id].is_constant(); }
  // Size of the command list that a job has at this place, in bytes; 0: no list begins there.
  uint64_t commands_at(npu::BufferId id, uint64_t offset) const {
    const auto found = commands_.find({id, offset});
    return found == commands_.end() ? 0 : found->second;
  }
  bool holds_commands(npu::BufferId id) const { return program_.buffers[id].role == npu::BufferRole::commands; }
  // True if the job that was decoded last writes the buffer.
  bool is_written(npu::BufferId id) const { return written_.contains(id); }

 private:
  explicit Placed(const npu::Program& program) : program_(program) {}
  Result<capture::Commands> commands_of(const npu::ByteRange& range) const;
  const npu::Program& program_;
  capture::Submission submission_;  // buffer i has handle i
  std::set<npu::BufferId> written_;
  std::map<std::pair<npu::BufferId, uint64_t>, uint64_t> commands_;  // of all jobs
};

Result<Placed> Placed::create(const npu::Program& program, uint64_t first, uint64_t gap_pages) {
  Placed placed(program);
  for (const auto* jobs : {&program.init_jobs, &program.jobs}) {
    for (const npu::Job& job : *jobs) {
      for (const npu::ByteRange& list : job.commands)
        placed.commands_[{list.buffer, list.offset_bytes}] = list.size_bytes;
    }
  }
  std::vector<uint64_t> addresses;
  for (const npu::Buffer& one : program.buffers) {
    addresses.push_back(first);
    first = align_up(first + one.size_bytes, kPageBytes) + gap_pages * kPageBytes;
  }
  for (npu::BufferId id = 0; id < program.buffers.size(); ++id) {
    const npu::Buffer& one = program.buffers[id];
    capture::BufferSnapshot buffer{.handle = id, .address = addresses[id], .size_bytes = one.size_bytes};
    buffer.content = one.is_constant() ? capture::Content::bytes : capture::Content::zero;
    buffer.bytes = one.contents;
    if (!one.relocations.empty()) {
      // Contents end at the last byte that is not 0; an address may end after it.
      const uint64_t end = std::min(one.size_bytes, one.contents.size() + kRoomBytes);
      Bytes bytes(one.contents.begin(), one.contents.end());
      for (const npu::Relocation& r : one.relocations) {
        if (r.at_byte > end - std::min<uint64_t>(end, r.bytes()))
          return error(ErrorCode::malformed, "buffer '{}': address at byte {} is outside its {} bytes of contents",
                       one.name, r.at_byte, one.contents.size());
      }
      bytes.resize(end);
      for (const npu::Relocation& r : one.relocations)
        SK_TRY(relocate(bytes, r, addresses[r.target]).with_context(one.name));
      buffer.bytes = std::move(bytes);
    }
    placed.submission_.buffers.push_back(std::move(buffer));
  }
  return placed;
}

// Returns the words and their place, for every kind of kernel driver.
Result<capture::Commands> Placed::commands_of(const npu::ByteRange& range) const {
  const capture::BufferSnapshot& buffer = submission_.buffers[range.buffer];
  if (range.size_bytes % 4 != 0) return error(ErrorCode::unsupported, "its commands are not whole words");
  capture::Commands out{.words = std::vector<uint32_t>(range.size_bytes / 4),
                        .address = buffer.address + range.offset_bytes,
                        .size_bytes = range.size_bytes};
  const std::span<const uint8_t> bytes(buffer.bytes);
  if (range.offset_bytes < bytes.size())  // trailing zeros are not stored
    std::memcpy(out.words.data(), bytes.data() + range.offset_bytes,
                std::min<uint64_t>(range.size_bytes, bytes.size() - range.offset_bytes));
  return out;
}

Result<npu::Annotated> Placed::decode(const npu::Driver& driver, const npu::Chip& chip, const npu::Job& job,
                                      npu::Detail detail) {
  submission_.jobs.assign(1, {});
  for (const npu::ByteRange& range : job.commands)
    SK_TRY_INTO(submission_.jobs[0].commands.emplace_back(), commands_of(range));
  for (capture::BufferSnapshot& one : submission_.buffers)
    one.listed = program_.buffers[one.handle].role == npu::BufferRole::commands;
  written_.clear();
  for (const npu::BufferUse& use : job.uses) {
    submission_.buffers[use.buffer].listed = true;
    if (use.write) written_.insert(use.buffer);
  }
  return driver.decode_as(chip, submission_, detail);
}

// Commands inside a job's commands are read as the job's list there, and checked with it.
Result<void> check_commands(const AnnotatedField& field, const npu::BufferPlace& at, const Placed& placed) {
  constexpr uint64_t kFetchBytes = 16;
  const uint64_t listed = placed.commands_at(at.buffer->handle, at.offset);
  if (listed != 0 && field.reach->after <= align_up(listed, kFetchBytes)) return {};
  return bad(fmt::format("{} bytes of commands, but the jobs list {} there", field.reach->after, listed));
}

// Compares a field of a job with its buffers in two places.
Result<void> check_field(const AnnotatedField& a, const AnnotatedField& b, const Placed& placed_a,
                         const Placed& placed_b) {
  if (a.name != b.name || a.row != b.row || a.kind != b.kind) return bad("its meaning changes with buffer addresses");
  if (a.unknown) return bad(fmt::format("{} has no known meaning", a.value));
  if (a.kind == npu::FieldKind::value) {
    if (a.raw != b.raw) return bad("a relocation, but the field holds no address");
    return {};
  }
  if (a.unused && a.address == 0 && b.address == 0) return {};
  const auto at_a = npu::find_place(placed_a.submission(), a.address);
  const auto at_b = npu::find_place(placed_b.submission(), b.address);
  if (!at_a || !at_b || at_a->buffer->handle != at_b->buffer->handle || at_a->offset != at_b->offset)
    return bad(fmt::format("address 0x{:x} is in no buffer of the program", a.address));
  if (!at_a->buffer->listed) return bad("it points to a buffer that the job does not list");
  // Constants may be shared with other programs, and no code waits for a job that is not listed as writing.
  if (a.output && !placed_a.is_written(at_a->buffer->handle))
    return bad("it points to a buffer that the job does not list as written");
  if (a.kind == npu::FieldKind::constant && !placed_a.is_constant(at_a->buffer->handle))
    return bad("it points to a buffer that is not constant");
  if (!a.reach) return bad("the number of bytes accessed there is unknown");
  if (a.reach->after > at_a->room_bytes)
    return bad(fmt::format("the {} bytes from there on exceed the buffer's {}", a.reach->after, at_a->room_bytes));
  if (a.reach->before > at_a->offset)
    return bad(fmt::format("the {} bytes before it exceed the buffer's {}", a.reach->before, at_a->offset));
  if (a.kind == npu::FieldKind::commands && placed_a.holds_commands(at_a->buffer->handle))
    return check_commands(a, *at_a, placed_a);
  return {};
}

Result<void> check_fields(const npu::Annotated& in_a, const npu::Annotated& in_b, const Placed& a, const Placed& b) {
  if (in_a.fields.size() != in_b.fields.size() || in_a.values != in_b.values)
    return bad("its effect changes with buffer addresses");
  for (size_t i = 0; i < in_a.fields.size(); ++i) {
    if (auto checked = check_field(in_a.fields[i], in_b.fields[i], a, b); !checked.ok())
      return std::move(checked).error().with_context(in_a.fields[i].path);
  }
  return {};
}

class Check {
 public:
  static Result<Check> create(const npu::Driver& driver, const npu::Chip& chip, const npu::Program& program) {
    SK_TRY_ASSIGN(Placed a, Placed::create(program, 0x100000, 1));
    SK_TRY_ASSIGN(Placed b, Placed::create(program, 0x108000, 3));
    return Check(driver, chip, std::move(a), std::move(b));
  }
  // Full decoding costs more than all other checks; it only serves the error message.
  Result<void> job(const npu::Job& one) {
    if (job_as(one, npu::Detail::addresses).ok()) return {};
    return job_as(one, npu::Detail::full).with_context(fmt::format("job '{}'", one.name));
  }

 private:
  Check(const npu::Driver& driver, const npu::Chip& chip, Placed a, Placed b)
      : driver_(driver), chip_(chip), a_(std::move(a)), b_(std::move(b)) {}
  Result<void> job_as(const npu::Job& one, npu::Detail detail) {
    const npu::Detail second = detail == npu::Detail::full ? detail : npu::Detail::places;
    SK_TRY_ASSIGN(const npu::Annotated in_a, a_.decode(driver_, chip_, one, detail));
    if (!in_a.refused.empty()) return bad(in_a.refused);
    SK_TRY_ASSIGN(const npu::Annotated in_b, b_.decode(driver_, chip_, one, second));
    return check_fields(in_a, in_b, a_, b_);
  }

  const npu::Driver& driver_;
  const npu::Chip& chip_;
  Placed a_, b_;
};

}  // namespace

Result<void> check_addresses(const npu::Driver& driver, const npu::Chip& chip, const npu::Program& program) {
  SK_TRY_ASSIGN(Check check, Check::create(driver, chip, program));
  for (const auto* jobs : {&program.init_jobs, &program.jobs}) {
    for (const npu::Job& job : *jobs) SK_TRY(check.job(job));
  }
  return {};
}

}  // namespace skillet::runtime
