#include "base/trace_packets.h"

#include <protozero/pbf_writer.hpp>

namespace skillet::trace {
namespace {

using protozero::pbf_writer;

constexpr uint32_t kPacket = 1;  // of the trace
// Of a packet.
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInternedData = 12,
                   kSequenceFlags = 13, kClockOfTimestamp = 58, kDefaults = 59, kTrackDescriptor = 60;
constexpr uint32_t kCleared = 1, kNeedsState = 2;  // sequence flags
constexpr uint32_t kMonotonic = 3, kBoottime = 6;  // clocks
constexpr uint32_t kOurSequence = 1;
// Of an event.
constexpr uint32_t kCategory = 3, kAnnotation = 4, kType = 9, kNameId = 10, kTrackId = 11, kEventName = 23,
                   kCounterValue = 44;
constexpr uint32_t kInstant = 3;  // type
// Of a description of a track.
constexpr uint32_t kUuid = 1, kTrackName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;

// A packet, finished when it goes.
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

void add_annotation(pbf_writer& event, std::string_view name, double value) {
  pbf_writer annotation(event, kAnnotation);
  annotation.add_string(10, name.data(), name.size());
  annotation.add_double(5, value);
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
  Packet packet(bytes_);
  pbf_writer interned(packet.message, kInternedData);
  pbf_writer one(interned, 1);
  const std::string_view name = kCategoryNames[static_cast<size_t>(category)];
  one.add_uint64(1, static_cast<uint64_t>(category) + 1);  // 0 is none
  one.add_string(2, name.data(), name.size());
}

void Packets::add_name(Name id, std::string_view text) {
  Packet packet(bytes_);
  pbf_writer interned(packet.message, kInternedData);
  pbf_writer one(interned, 2);
  one.add_uint64(1, id);
  one.add_string(2, text.data(), text.size());
}

void Packets::add_event(const Event& event, Category category) {
  Packet packet(bytes_);
  packet.message.add_uint64(kTimestamp, static_cast<uint64_t>(event.at_ns));
  pbf_writer out(packet.message, kTrackEvent);
  out.add_uint32(kType, static_cast<uint32_t>(event.type));
  out.add_uint64(kTrackId, event.track);
  if (event.type == EventType::count) out.add_double(kCounterValue, event.value);
  if (event.type != EventType::begin) return;
  out.add_uint64(kCategory, static_cast<uint64_t>(category) + 1);
  out.add_uint64(kNameId, event.name);
  if (event.value != 0) add_annotation(out, "predicted_us", event.value);
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
