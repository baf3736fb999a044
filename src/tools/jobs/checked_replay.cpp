#include "tools/jobs/checked_replay.h"

#include <algorithm>

#include "npu/decoded_capture.h"

namespace skillet::tools {
namespace {

// Of an output, how much is looked at.
constexpr size_t kLookedAtBytes = 16;

bool is_placed(const capture::BufferSnapshot& one) { return one.listed && one.address != 0 && one.size_bytes != 0; }

std::span<uint8_t> place_in(Bytes& bytes, size_t offset, size_t size) { return std::span(bytes).subspan(offset, size); }

}  // namespace

bool CheckedReplay::Place::equals(std::span<const uint8_t> a, std::span<const uint8_t> b) const {
  return offset + size_bytes <= a.size() && offset + size_bytes <= b.size() &&
         std::ranges::equal(a.subspan(offset, size_bytes), b.subspan(offset, size_bytes));
}

Result<std::vector<std::string>> CheckedReplay::run(const capture::Submission& submission) {
  SK_TRY(replayer_->run(submission));  // first: it refuses sizes that no memory holds
  const capture::Submission before = complete(submission);
  std::vector<Place> suspects = outputs_of(submission);
  SK_TRY(keep_equal(suspects, before));
  if (!suspects.empty()) {
    capture::Submission marked = before;
    for (capture::BufferSnapshot& buffer : marked.buffers) {
      Bytes bytes(buffer.bytes.begin(), buffer.bytes.end());
      for (const Place& one : suspects) {
        if (one.handle != buffer.handle) continue;
        const std::span<const uint8_t> was = std::span<const uint8_t>(buffer.bytes).subspan(one.offset);
        for (size_t i = 0; i < one.size_bytes; ++i)
          place_in(bytes, one.offset, one.size_bytes)[i] = static_cast<uint8_t>(was[i] ^ (0xff - 7 * i));
      }
      buffer.bytes = std::move(bytes);
    }
    SK_TRY(replayer_->run(marked));
    SK_TRY(keep_equal(suspects, marked));
    SK_TRY(replayer_->run(before));
  }
  SK_TRY(remember(submission));
  std::vector<std::string> out;
  for (Place& one : suspects) out.push_back(std::move(one.path));
  return out;
}

std::vector<CheckedReplay::Place> CheckedReplay::outputs_of(const capture::Submission& submission) const {
  std::vector<Place> out;
  const auto decoded = driver_->decode(chip_, submission);
  if (!decoded.ok()) return out;  // then the device refuses it, or nobody knows what it writes
  for (const npu::AnnotatedField& field : decoded->fields) {
    if (!field.output || field.unused) continue;
    const auto place = npu::find_place(submission, field.address);
    if (!place || !is_placed(*place->buffer) || !place->buffer->write) continue;
    out.push_back({.path = field.path,
                   .handle = place->buffer->handle,
                   .offset = static_cast<size_t>(place->offset),
                   .size_bytes = static_cast<size_t>(std::min<uint64_t>(place->room_bytes, kLookedAtBytes))});
  }
  return out;
}

capture::Submission CheckedReplay::complete(const capture::Submission& submission) const {
  capture::Submission out = submission;
  for (capture::BufferSnapshot& one : out.buffers) {
    if (!is_placed(one)) continue;
    Bytes bytes(one.bytes.begin(), one.bytes.end());
    if (const auto known = kept_.find(one.handle); one.content == capture::Content::unknown && known != kept_.end())
      bytes = known->second;
    bytes.resize(one.size_bytes);
    one.content = capture::Content::bytes;
    one.bytes = std::move(bytes);
  }
  return out;
}

Result<void> CheckedReplay::keep_equal(std::vector<Place>& places, const capture::Submission& before) const {
  std::vector<Place> kept;
  for (Place& one : places) {
    SK_TRY_ASSIGN(const std::span<const uint8_t> after, replayer_->contents(one.handle));
    const auto was = std::ranges::find(before.buffers, one.handle, &capture::BufferSnapshot::handle);
    if (was != before.buffers.end() && one.equals(was->bytes, after)) kept.push_back(std::move(one));
  }
  places = std::move(kept);
  return {};
}

Result<void> CheckedReplay::remember(const capture::Submission& submission) {
  for (const capture::BufferSnapshot& one : submission.buffers) {
    if (!is_placed(one)) continue;
    SK_TRY_ASSIGN(const std::span<const uint8_t> bytes, replayer_->contents(one.handle));
    kept_[one.handle].assign(bytes.begin(), bytes.end());
  }
  return {};
}

}  // namespace skillet::tools
