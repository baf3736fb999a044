#include "lab/compare/buffer_match.h"

#include <algorithm>

#include "base/int_math.h"

namespace skillet::npu {
namespace {

constexpr uint64_t kPageBytes = 4096;

// Allocators round sizes up to whole pages, and large buffers by up to a quarter.
bool is_rounded(uint64_t exact, uint64_t rounded) {
  const uint64_t pages = align_up(exact, kPageBytes);
  return rounded >= pages && rounded <= pages + pages / 4;
}

// Limits the room to the end of the buffer, or to the next constant in it. Other submissions may have a larger buffer
// with this handle.
void limit_room(const Outline& capture, BufferPlace& place) {
  const auto starts = capture.constants.find(place.buffer->handle);
  if (starts == capture.constants.end()) return;
  const auto next = starts->second.upper_bound(place.offset);
  if (next != starts->second.end()) place.room_bytes = std::min(place.room_bytes, *next - place.offset);
}

bool is_alone(const BufferPlace& place) { return place.offset == 0 && place.room_bytes == place.buffer->size_bytes; }

uint8_t byte_at(const BufferPlace& place, uint64_t i) {
  const uint64_t at = place.offset + i;
  return at < place.buffer->bytes.size() ? place.buffer->bytes.data()[at] : 0;
}
uint64_t stored_bytes(const BufferPlace& place) {
  const uint64_t stored = place.buffer->bytes.size();
  return std::min(place.room_bytes, stored > place.offset ? stored - place.offset : 0);
}

// Number of equal stored bytes at the start of the two places.
uint64_t common_bytes(const BufferPlace& a, const BufferPlace& b) {
  const auto stored = [](const BufferPlace& place) {
    const uint64_t size = stored_bytes(place);
    return size == 0 ? std::span<const uint8_t>()
                     : std::span<const uint8_t>(place.buffer->bytes).subspan(place.offset, size);
  };
  const std::span<const uint8_t> in_a = stored(a), in_b = stored(b);
  return static_cast<uint64_t>(std::ranges::mismatch(in_a, in_b).in1 - in_a.begin());
}

std::string text(const BufferPlace& place) { return fmt::format("buffer {} + {}", place.buffer->handle, place.offset); }
std::string text(const AnnotatedField& field, const std::optional<BufferPlace>& place) {
  if (field.address == 0 && !place) return "no address";
  return place ? text(*place) : fmt::format("0x{:x}, in no buffer", field.address);
}
std::string use_text(const capture::BufferSnapshot& buffer) {
  if (!buffer.listed) return "not listed";
  return fmt::format("listed{}{}", buffer.read ? " to read" : "", buffer.write ? " to write" : "");
}

std::vector<const capture::BufferSnapshot*> unnamed(const capture::Submission& submission,
                                                    const std::set<uint32_t>& named) {
  std::vector<const capture::BufferSnapshot*> out;
  for (const auto& buffer : submission.buffers)
    if (buffer.listed && !named.contains(buffer.handle)) out.push_back(&buffer);
  return out;
}
bool is_twin(const capture::BufferSnapshot& a, const capture::BufferSnapshot& b) {
  return a.read == b.read && a.write == b.write && a.size_bytes == b.size_bytes && a.content == b.content &&
         std::ranges::equal(a.bytes, b.bytes);
}

const capture::BufferSnapshot& buffer_of(const capture::Submission& submission, uint32_t handle) {
  return *capture::find_buffer(submission, handle);
}

}  // namespace

void BufferMatch::start(const capture::Submission& a, const capture::Submission& b) {
  now_a_ = &a;
  now_b_ = &b;
  named_.clear();
}

std::optional<BufferMatch::Finding> BufferMatch::address(const AnnotatedField& a, const AnnotatedField& b) {
  const auto at_a = find_place(*now_a_, a), at_b = find_place(*now_b_, b);
  if (a.address == 0 && b.address == 0 && !at_a && !at_b) return std::nullopt;
  if (!at_a || !at_b) return Finding{"", text(a, at_a), text(b, at_b)};
  named_.emplace(at_a->buffer->handle, at_b->buffer->handle);
  const bool is_beyond = a.extent_bytes > at_a->room_bytes || b.extent_bytes > at_b->room_bytes;
  const bool is_same = a.extent_bytes == b.extent_bytes && at_a->room_bytes == at_b->room_bytes;
  if (is_beyond && !is_same)  // recorded jobs contain this too, and a job must not differ from itself
    return Finding{": more than the buffer holds", fmt::format("{} of {} bytes", a.extent_bytes, at_a->room_bytes),
                   fmt::format("{} of {} bytes", b.extent_bytes, at_b->room_bytes)};
  return a.kind == FieldKind::memory ? memory(a, b, *at_a, *at_b) : constant(a, *at_a, *at_b);
}

// Bytes that fields of commands do not cover must be equal too.
std::optional<BufferMatch::Finding> BufferMatch::constant(const AnnotatedField& a, BufferPlace at_a,
                                                          BufferPlace at_b) const {
  limit_room(a_, at_a);
  // In hardware captures other buffers follow the client's buffer, with bytes from another time.
  if (b_is_hardware_)
    at_b.room_bytes = std::min(at_b.room_bytes, at_a.room_bytes);
  else
    limit_room(b_, at_b);
  if (at_a.buffer->content == capture::Content::unknown || at_b.buffer->content == capture::Content::unknown)
    return Finding{": bytes that were not recorded", text(at_a), text(at_b)};
  const uint64_t size = std::max(stored_bytes(at_a), stored_bytes(at_b));
  const uint64_t start = a.kind == FieldKind::commands ? a.extent_bytes : 0;
  uint64_t differing = 0, first = 0;
  for (uint64_t i = std::max(start, common_bytes(at_a, at_b)); i < size; ++i) {
    if (byte_at(at_a, i) == byte_at(at_b, i)) continue;
    if (differing++ == 0) first = i;
  }
  if (differing != 0)
    return Finding{fmt::format(": {} of {} bytes, the first at {}", differing, size, first),
                   fmt::format("0x{:02x}", byte_at(at_a, first)), fmt::format("0x{:02x}", byte_at(at_b, first))};
  if (at_a.room_bytes < size || at_b.room_bytes < size)
    return Finding{": room, bytes", fmt::format("{}", at_a.room_bytes), fmt::format("{}", at_b.room_bytes)};
  if (exact_a_ && exact_b_ && is_alone(at_a) && is_alone(at_b) && at_a.room_bytes != at_b.room_bytes)
    return Finding{": room, bytes", fmt::format("{}", at_a.room_bytes), fmt::format("{}", at_b.room_bytes)};
  return std::nullopt;
}

// If both sides have exact sizes, they must be equal. If neither has, a place further into one buffer must leave as
// much less room.
bool BufferMatch::same_size(uint64_t a, uint64_t b, int64_t distance) const {
  if (exact_a_ == exact_b_) return a == b || (!exact_a_ && distance == 0 && is_rounded(std::min(a, b), std::max(a, b)));
  return a == b || (exact_a_ ? is_rounded(a, b) : is_rounded(b, a));
}

std::optional<BufferMatch::Finding> BufferMatch::memory(const AnnotatedField& a, const AnnotatedField& b,
                                                        const BufferPlace& at_a, const BufferPlace& at_b) {
  if (auto finding = pair_up(at_a, at_b)) return finding;
  if (a.extent_bytes != b.extent_bytes)
    return Finding{": bytes from there on", fmt::format("{}", a.extent_bytes), fmt::format("{}", b.extent_bytes)};
  return std::nullopt;
}

std::optional<BufferMatch::Finding> BufferMatch::pair_up(const BufferPlace& at_a, const BufferPlace& at_b) {
  const int64_t distance = static_cast<int64_t>(at_a.offset) - static_cast<int64_t>(at_b.offset);
  const Partner partner{at_b.buffer->handle, distance};
  const auto [known, is_new] = partners_.try_emplace(at_a.buffer->handle, partner);
  // Captures of one run: the client has the addresses too, and later gives a handle to another buffer.
  if (b_is_hardware_ && at_a.buffer->address + at_a.offset == at_b.buffer->address + at_b.offset)
    known->second = partner;
  if (known->second != partner)
    return Finding{
        "", text(at_a),
        fmt::format("{}, instead of buffer {} - {}", text(at_b), known->second.handle, known->second.distance)};
  if (b_is_hardware_) return std::nullopt;
  const auto [back, is_first] = partner_of_b_.try_emplace(partner.handle, at_a.buffer->handle);
  if (back->second != at_a.buffer->handle)
    return Finding{"", text(at_a), fmt::format("{}, which already corresponds to buffer {}", text(at_b), back->second)};
  const auto size_a = static_cast<int64_t>(at_a.buffer->size_bytes) - distance;
  if (is_new && size_a > 0 && !same_size(static_cast<uint64_t>(size_a), at_b.buffer->size_bytes, distance))
    return Finding{": room, bytes", fmt::format("{}", size_a), fmt::format("{}", at_b.buffer->size_bytes)};
  return std::nullopt;
}

std::vector<BufferMatch::Finding> BufferMatch::lists() const {
  std::vector<Finding> findings;
  if (b_is_hardware_) return findings;
  std::set<uint32_t> named[2];
  for (const auto& [a, b] : named_) {
    named[0].insert(a);
    named[1].insert(b);
    const std::string use_a = use_text(buffer_of(*now_a_, a)), use_b = use_text(buffer_of(*now_b_, b));
    if (use_a != use_b) findings.push_back({fmt::format("buffer {}, {} in b", a, b), use_a, use_b});
  }
  // Buffers that no address names (slots) are paired if they are equal.
  auto left_a = unnamed(*now_a_, named[0]), left_b = unnamed(*now_b_, named[1]);
  std::erase_if(left_a, [&](const capture::BufferSnapshot* one) {
    const auto twin = std::ranges::find_if(left_b, [&](const auto* other) { return is_twin(*one, *other); });
    if (twin == left_b.end()) return false;
    left_b.erase(twin);
    return true;
  });
  for (const auto* one : left_a)
    findings.push_back({fmt::format("buffer {}, which nothing refers to", one->handle), use_text(*one), ""});
  for (const auto* one : left_b)
    findings.push_back({fmt::format("buffer {} of b, which nothing refers to", one->handle), "", use_text(*one)});
  return findings;
}

std::vector<MatchedMemory> BufferMatch::matched_memory() const {
  std::vector<MatchedMemory> out;
  for (const auto& [handle, partner] : partners_) out.push_back({handle, partner.handle, partner.distance});
  return out;
}

bool BufferMatch::same_place(uint32_t handle_a, uint64_t offset_a, uint32_t handle_b, uint64_t offset_b) const {
  const auto known = partners_.find(handle_a);
  return known != partners_.end() && known->second.handle == handle_b &&
         known->second.distance == static_cast<int64_t>(offset_a) - static_cast<int64_t>(offset_b);
}

}  // namespace skillet::npu
