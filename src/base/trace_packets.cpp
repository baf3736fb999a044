#include "base/trace_packets.h"

#include <array>
#include <bit>
#include <protozero/pbf_writer.hpp>

namespace skillet::trace {
namespace {

using protozero::pbf_writer;

constexpr uint32_t kPacket = 1;  // field of the trace
// Fields of a packet.
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInternedData = 12,
                   kSequenceFlags = 13, kClockOfTimestamp = 58, kDefaults = 59, kTrackDescriptor = 60;
constexpr uint32_t kCleared = 1, kNeedsState = 2;  // sequence flags
constexpr uint32_t kMonotonic = 3, kBoottime = 6;  // clocks
constexpr uint32_t kOurSequence = 1;
// Fields of an event.
constexpr uint32_t kCategory = 3, kAnnotation = 4, kType = 9, kNameId = 10, kTrackId = 11, kEventName = 23,
                   kCounterNumber = 30;
constexpr uint32_t kAnnotationNameId = 1, kAnnotationReal = 5;
constexpr uint32_t kPredicted = 1;  // number of the name "predicted_us"
constexpr uint32_t kInstant = 3;    // type
// Fields of a track description.
constexpr uint32_t kUuid = 1, kTrackName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;

// A packet, completed by its destructor.
class Packet {
 public:
  explicit Packet(std::string& bytes, uint32_t flags = kNeedsState) : file_(bytes), message(file_, kPacket) {
    message.add_uint32(kSequence, kOurSequence);
    message.add_uint32(kSequenceFlags, flags);
  }

 private:
  pbf_writer file_;

 public:
  pbf_writer message;
};

constexpr size_t kTimeAt = 3;  // in an event's packet: after both tags and the length
// A varint of constant length, so that the time can be replaced in place.
void put_time(char* at, int64_t ns) {
  auto left = static_cast<uint64_t>(ns);
  for (int i = 0; i < 8; ++i, left >>= 7) at[i] = static_cast<char>(left | 0x80);
  at[8] = static_cast<char>(left & 0x7F);
}

// A packet of numbers, with messages shorter than 128 bytes. A trace consists mostly of these, and a pbf_writer takes
// ten times as long.
class Small {
 public:
  void number(uint32_t field, uint64_t value) {
    put(field << 3);
    put(value);
  }
  void time(uint32_t field, int64_t ns) {
    put(field << 3);
    put_time(at_, ns);
    at_ += 9;
  }
  void real(uint32_t field, double value) {
    put(field << 3 | 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) *at_++ = static_cast<char>(bits >> shift);
  }
  // Begins a message, which close() ends; close() gets the result of open().
  char* open(uint32_t field) {
    put(field << 3 | 2);
    return at_++;
  }
  void close(char* length) { *length = static_cast<char>(at_ - length - 1); }
  std::string_view bytes() const { return {bytes_.data(), static_cast<size_t>(at_ - bytes_.data())}; }

 private:
  void put(uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at_++ = static_cast<char>(value | 0x80);
    *at_++ = static_cast<char>(value);
  }

  std::array<char, 128> bytes_;  // unwritten bytes are not read
  char* at_ = bytes_.data();
};

// Defines `number` for the text, for the kind of name that the field of InternedData holds.
void intern(std::string& bytes, uint32_t field, uint64_t number, std::string_view text) {
  Packet packet(bytes);
  pbf_writer interned(packet.message, kInternedData);
  pbf_writer one(interned, field);
  one.add_uint64(1, number);
  one.add_string(2, text.data(), text.size());
}

}  // namespace

void Packets::add_start(int64_t monotonic_ns, int64_t boot_ns) {
  Packet packet(bytes_, kCleared);
  {
    pbf_writer defaults(packet.message, kDefaults);
    defaults.add_uint32(kClockOfTimestamp, kMonotonic);
  }
  pbf_writer snapshot(packet.message, kClockSnapshot);
  for (const auto& [clock, at] : {std::pair(kMonotonic, monotonic_ns), std::pair(kBoottime, boot_ns)}) {
    pbf_writer one(snapshot, 1);
    one.add_uint32(1, clock);
    one.add_uint64(2, static_cast<uint64_t>(at));
  }
  snapshot.add_uint32(2, kMonotonic);
}

void Packets::add_process(uint64_t uuid, int pid, std::string_view name) {
  Packet packet(bytes_);
  pbf_writer track(packet.message, kTrackDescriptor);
  track.add_uint64(kUuid, uuid);
  pbf_writer process(track, kProcess);
  process.add_int32(1, pid);
  process.add_string(6, name.data(), name.size());
}

void Packets::add_thread(uint64_t uuid, int pid, int tid, std::string_view name) {
  Packet packet(bytes_);
  pbf_writer track(packet.message, kTrackDescriptor);
  track.add_uint64(kUuid, uuid);
  pbf_writer thread(track, kThread);
  thread.add_int32(1, pid);
  thread.add_int32(2, tid);
  thread.add_string(5, name.data(), name.size());
}

void Packets::add_track(uint64_t uuid, uint64_t parent, std::string_view name, std::string_view unit) {
  Packet packet(bytes_);
  pbf_writer track(packet.message, kTrackDescriptor);
  track.add_uint64(kUuid, uuid);
  track.add_uint64(kParent, parent);
  track.add_string(kTrackName, name.data(), name.size());
  if (unit.empty()) return;
  pbf_writer counter(track, kCounter);
  counter.add_string(6, unit.data(), unit.size());
}

void Packets::add_category(Category category) {
  intern(bytes_, 1, static_cast<uint64_t>(category) + 1, kCategoryNames[static_cast<size_t>(category)]);  // 0 is none
}

void Packets::add_name(Name id, std::string_view text) { intern(bytes_, 2, id, text); }

void Packets::add_names_of_annotations() { intern(bytes_, 3, kPredicted, "predicted_us"); }

void Packets::add_event(const Event& event, uint64_t track, Category category) {
  Small out;
  char* const packet = out.open(kPacket);
  out.time(kTimestamp, event.at_ns);
  out.number(kSequence, kOurSequence);
  out.number(kSequenceFlags, kNeedsState);
  char* const inside = out.open(kTrackEvent);
  out.number(kType, static_cast<uint32_t>(event.type));
  out.number(kTrackId, track);
  if (event.type == EventType::count) out.number(kCounterNumber, static_cast<uint64_t>(event.value));
  if (event.type == EventType::begin) {
    out.number(kCategory, static_cast<uint64_t>(category) + 1);
    out.number(kNameId, event.name);
  }
  if (event.type == EventType::begin && event.value != 0) {
    char* const annotation = out.open(kAnnotation);
    out.number(kAnnotationNameId, kPredicted);
    out.real(kAnnotationReal, event.value);
    out.close(annotation);
  }
  out.close(inside);
  out.close(packet);
  bytes_.append(out.bytes());
}

void Packets::add_again(const Packets& events, std::span<const size_t> begins, std::span<const int64_t> at_ns) {
  const size_t begin = bytes_.size();
  bytes_ += events.bytes_;
  for (size_t i = 0; i < begins.size(); ++i) put_time(&bytes_[begin + begins[i] + kTimeAt], at_ns[i]);
}

void Packets::add_instant(int64_t at_ns, uint64_t track, std::string_view name, std::string_view text) {
  Packet packet(bytes_);
  packet.message.add_uint64(kTimestamp, static_cast<uint64_t>(at_ns));
  pbf_writer out(packet.message, kTrackEvent);
  out.add_uint32(kType, kInstant);
  out.add_uint64(kTrackId, track);
  out.add_uint64(kCategory, static_cast<uint64_t>(Category::kernel) + 1);
  out.add_string(kEventName, name.data(), name.size());
  pbf_writer annotation(out, kAnnotation);
  annotation.add_string(10, "text");
  annotation.add_string(6, text.data(), text.size());
}

}  // namespace skillet::trace
