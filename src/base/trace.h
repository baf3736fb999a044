// Traces for Perfetto: the activities of this process over time, as slices and counters in a file that
// https://ui.perfetto.dev and `skillet trace` read. Off unless a Lease with a path exists; a slice then costs two reads
// of the clock and two buffer entries. Called by runtime/ and the clients of kernel drivers; docs/traces.md describes
// the contents.
// Must not know: sessions, devices. Errors here never fail an inference: they cause a warning, and the trace ends.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/own_process.h"

namespace skillet::trace {

enum class Category : uint8_t { session, compile, copy, submit, wait, cpu, npu, operation, unit, simulator, kernel };
inline constexpr std::array<std::string_view, 11> kCategoryNames = {
    "session", "compile", "copy", "submit", "wait", "cpu", "npu", "operation", "unit", "simulator", "kernel"};

// Predefined names, with their categories; intern() adds more.
struct FixedName {
  Category category;
  std::string_view text;
};
enum Name : uint32_t {
  kNoName,
  kRun,
  kCompile,
  kLoad,
  kCpuPart,
  kNpuPart,
  kCopyIn,
  kCopyOut,
  kSubmit,
  kWait,
  kSimulate
};
inline constexpr std::array kFixedNames = {
    FixedName{Category::session, "run"},      FixedName{Category::compile, "compile"},
    FixedName{Category::session, "load"},     FixedName{Category::session, "CPU part"},
    FixedName{Category::session, "NPU part"}, FixedName{Category::copy, "copy in"},
    FixedName{Category::copy, "copy out"},    FixedName{Category::submit, "submit"},
    FixedName{Category::wait, "wait"},        FixedName{Category::simulator, "job"}};

namespace internal {
extern constinit std::atomic<uint64_t> g_writer;  // OwnProcess::number() of the writing process; 0: none
}
// False in a forked child, which must not write its parent's file.
inline bool on() {
  const uint64_t writer = internal::g_writer.load(std::memory_order_relaxed);
  return writer != 0 && writer == OwnProcess::number();
}
int64_t now_ns();  // CLOCK_MONOTONIC

// Returns the same number for the same text. kNoName if no trace is on, or there are too many names.
Name intern(Category category, std::string_view text);

// Adds a separate track below the process; several may have one name. Counters have a unit ("bytes").
using Track = uint32_t;
inline constexpr Track kThisThread = 0;
Track add_track(std::string_view name);
Track add_counter(std::string_view name, std::string_view unit);

// These do nothing if no trace is on. Slices of a track nest. `predicted_us`: for times that are not measured; 0: none.
void begin(Track track, Name name, int64_t at_ns, double predicted_us = 0);
void end(Track track, int64_t at_ns);
void count(Track counter, int64_t at_ns, uint64_t value);

enum class EventType : uint8_t { begin = 1, end = 2, count = 4 };
struct Event {
  int64_t at_ns = 0;
  Track track = kThisThread;
  Name name = kNoName;
  EventType type = EventType::begin;
  double value = 0;  // of a counter; for a slice the predicted time, in us
};
// Adds several events, which is cheaper; ordered by time for each track.
void add(std::span<const Event> events);

// Repeated events of tracks other than threads, stored as bytes in which only the times change.
class Pattern {
 public:
  // Events of each track are ordered by time.
  explicit Pattern(std::span<const Event> events);
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern();
  // One time for each event.
  void add(std::span<const int64_t> at_ns) const;

 private:
  struct Bytes;
  std::unique_ptr<Bytes> bytes_;
};

// A slice on this thread for the object's lifetime.
class Slice {
 public:
  explicit Slice(Name name) : is_on_(on()) {
    if (is_on_) begin(kThisThread, name, now_ns());
  }
  ~Slice() {
    if (is_on_) end(kThisThread, now_ns());
  }
  Slice(const Slice&) = delete;
  Slice& operator=(const Slice&) = delete;

 private:
  bool is_on_;
};

// Writes the buffer if that was not done for a while: a process may end without notice.
void write_now_and_then();

// Keeps the trace file open for its lifetime; an empty path: no trace. "%p" in the path is the process id. A file that
// this process began is continued, another trace is replaced, and any other file is left unchanged. Only one file at a
// time: another path causes a warning.
class Lease {
 public:
  explicit Lease(const std::string& path, bool with_kernel_events = false);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  bool holds_ = false;
};

}  // namespace skillet::trace
