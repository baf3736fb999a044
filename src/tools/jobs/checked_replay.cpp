#include "tools/jobs/checked_replay.h"

#include <algorithm>

#include "npu/decoded_capture.h"

namespace skillet::tools {
namespace {

// Number of bytes of an output that are compared.
constexpr size_t kLookedAtBytes = 16;

bool is_listed(const capture::Submission& submission, const capture::BufferSnapshot& one) {
  return one.listed && capture::is_placed(submission, one);
}

// A byte of contents that are stored without trailing zeros.
uint8_t byte_at(std::span<const uint8_t> bytes, size_t at) { return at < bytes.size() ? bytes[at] : 0; }

}  // namespace

bool CheckedReplay::Place::equals(std::span<const uint8_t> before, std::span<const uint8_t> after) const {
  if (offset + size_bytes > after.size()) return false;
  for (size_t at = offset; at < offset + size_bytes; ++at) {
    if (byte_at(before, at) != after[at]) return false;
  }
  return true;
}

Result<std::vector<std::string>> CheckedReplay::run(const capture::Submission& submission) {
  SK_TRY(replayer_->run(submission));  // first, because it refuses sizes that do not fit into memory
  const capture::Submission before = complete(submission);
  std::vector<Place> suspects = outputs_of(submission);
  SK_TRY(keep(suspects, before, true));
  std::vector<Place> lost;
  if (!suspects.empty()) {
    const capture::Submission marked = with_marks(before, suspects);
    lost = suspects;
    SK_TRY(replayer_->run(marked));
    SK_TRY(keep(suspects, marked, true));
    SK_TRY(replayer_->run(before));
    SK_TRY(keep(lost, before, false));
  }
  SK_TRY(remember(submission));
  std::vector<std::string> out;
  for (std::vector<Place>* const places : {&suspects, &lost})
    for (Place& one : *places)
      if (std::ranges::find(out, one.path) == out.end()) out.push_back(std::move(one.path));
  return out;
}

capture::Submission CheckedReplay::with_marks(const capture::Submission& before, const std::vector<Place>& places) {
  capture::Submission marked = before;
  for (capture::BufferSnapshot& buffer : marked.buffers) {
    Bytes bytes(buffer.bytes.begin(), buffer.bytes.end());
    for (const Place& one : places) {
      if (one.handle != buffer.handle) continue;
      bytes.resize(std::max(bytes.size(), one.offset + one.size_bytes));
      for (size_t i = 0; i < one.size_bytes; ++i)
        bytes[one.offset + i] = static_cast<uint8_t>(byte_at(buffer.bytes, one.offset + i) ^ (0xff - 7 * i));
    }
    buffer.bytes = std::move(bytes);
  }
  return marked;
}

std::optional<CheckedReplay::Place> CheckedReplay::place_of(const capture::Submission& submission,
                                                            const npu::AnnotatedField& field) {
  const auto place = npu::find_place(submission, field.address);
  if (!place || !is_listed(submission, *place->buffer) || !place->buffer->write) return {};
  return Place{.path = field.path,
               .handle = place->buffer->handle,
               .offset = static_cast<size_t>(place->offset),
               .size_bytes = static_cast<size_t>(std::min<uint64_t>(place->room_bytes, kLookedAtBytes))};
}

std::vector<CheckedReplay::Place> CheckedReplay::outputs_of(const capture::Submission& submission) const {
  std::vector<Place> out;
  const auto decoded = driver_->decode(chip_, submission);
  if (!decoded.ok()) return out;  // the device refuses it, or its outputs are unknown
  // The last address of each input field: registers keep theirs for later operations.
  std::map<std::string_view, uint64_t> read;
  const std::vector<npu::AnnotatedField>& fields = decoded->fields;
  for (auto begin = fields.begin(); begin != fields.end();) {
    const auto end = std::find_if(begin, fields.end(),
                                  [&](const npu::AnnotatedField& one) { return one.operation != begin->operation; });
    for (auto field = begin; field != end; ++field)
      if (field->kind == npu::FieldKind::memory && !field->output)
        read[field->name] = field->unused ? 0 : field->address;
    for (auto field = begin; field != end; ++field) {
      if (!field->output || field->unused) continue;
      // The operation writes over its input: the result may equal the former contents.
      if (std::ranges::any_of(read, [&](const auto& one) { return one.second == field->address; })) continue;
      if (const auto place = place_of(submission, *field)) out.push_back(*place);
    }
    begin = end;
  }
  return out;
}

capture::Submission CheckedReplay::complete(const capture::Submission& submission) const {
  capture::Submission out = submission;
  for (capture::BufferSnapshot& one : out.buffers) {
    if (!is_listed(submission, one)) continue;
    if (const auto known = kept_.find(one.handle); one.content == capture::Content::unknown && known != kept_.end())
      one.bytes = known->second;
    one.content = capture::Content::bytes;
  }
  return out;
}

Result<void> CheckedReplay::keep(std::vector<Place>& places, const capture::Submission& before, bool equal) const {
  std::vector<Place> kept;
  for (Place& one : places) {
    SK_TRY_ASSIGN(const std::span<const uint8_t> after, replayer_->contents(one.handle));
    const capture::BufferSnapshot* const was = capture::find_buffer(before, one.handle);
    if (was != nullptr && one.equals(was->bytes, after) == equal) kept.push_back(std::move(one));
  }
  places = std::move(kept);
  return {};
}

Result<void> CheckedReplay::remember(const capture::Submission& submission) {
  for (const capture::BufferSnapshot& one : submission.buffers) {
    if (!is_listed(submission, one)) continue;
    SK_TRY_ASSIGN(const std::span<const uint8_t> bytes, replayer_->contents(one.handle));
    capture::BufferSnapshot now;
    capture::set_contents(now, bytes);
    kept_[one.handle] = std::move(now.bytes);
  }
  return {};
}

}  // namespace skillet::tools
