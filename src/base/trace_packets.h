// Serialises the messages of Perfetto's trace format that we write. Each call adds whole packets, so that a file is a
// valid trace wherever it ends. Field numbers are those of Perfetto's public protos (trace_packet.proto,
// track_event.proto).
// Called by trace.cpp. Must not know: files, locks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/trace.h"

namespace skillet::trace {

class Packets {
 public:
  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }
  void reserve(size_t bytes) { bytes_.reserve(bytes); }

  // Must come first: the clock, and a flag that earlier interned names are invalid.
  void add_start(int64_t monotonic_ns, int64_t boot_ns);
  void add_process(uint64_t uuid, int pid, std::string_view name);
  void add_thread(uint64_t uuid, int pid, int tid, std::string_view name);
  // Empty unit: a track of slices.
  void add_track(uint64_t uuid, uint64_t parent, std::string_view name, std::string_view unit);
  void add_category(Category category);
  void add_names_of_annotations();
  void add_name(Name id, std::string_view text);
  // Adds it on the track with that number in the file.
  void add_event(const Event& event, uint64_t track, Category category);
  // Adds serialised events again, each starting at one of `begins`, with other times.
  void add_again(const Packets& events, std::span<const size_t> begins, std::span<const int64_t> at_ns);
  // Adds an instant event, with a text from elsewhere.
  void add_instant(int64_t at_ns, uint64_t track, std::string_view name, std::string_view text);

 private:
  std::string bytes_;
};

}  // namespace skillet::trace
