// Traces for Perfetto: what this process does when, as slices and counters in a file that https://ui.perfetto.dev and
// `skillet trace` read. Off unless a Lease with a path lives; then a slice costs two looks at the clock and two entries
// of a buffer. Called by runtime/ and the clients of kernel drivers; docs/traces.md says what is in a trace.
// Must not know: sessions, devices. Nothing here fails an inference: what goes wrong is a warning, and the trace ends.
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

// Names that are there from the start, with their categories; intern() makes more.
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
extern constinit std::atomic<uint64_t> g_writer;  // OwnProcess::number() of who writes; 0: nobody
}
// False in a child that was forked: its parent's file is none of its business.
inline bool on() {
  const uint64_t writer = internal::g_writer.load(std::memory_order_relaxed);
  return writer != 0 && writer == OwnProcess::number();
}
int64_t now_ns();  // CLOCK_MONOTONIC

// The same number for the same text. kNoName where nothing is traced, or where there are too many.
Name intern(Category category, std::string_view text);

// A track of its own, below the process; several may have one name. Counters have a unit ("bytes").
using Track = uint32_t;
inline constexpr Track kThisThread = 0;
Track add_track(std::string_view name);
Track add_counter(std::string_view name, std::string_view unit);

// Each does nothing where nothing is traced. Slices of a track nest. `predicted_us`: of what is not measured; 0: none.
void begin(Track track, Name name, int64_t at_ns, double predicted_us = 0);
void end(Track track, int64_t at_ns);
void count(Track counter, int64_t at_ns, uint64_t value);

enum class EventType : uint8_t { begin = 1, end = 2, count = 4 };
struct Event {
  int64_t at_ns = 0;
  Track track = kThisThread;
  Name name = kNoName;
  EventType type = EventType::begin;
  double value = 0;  // of a counter; of a slice what was predicted, in us
};
// Several at once, which costs less; in the order of their times, for each track.
void add(std::span<const Event> events);

// Events of tracks other than threads that come again and again: as bytes, in which only times are put.
class Pattern {
 public:
  // Each track's in the order of their times.
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

// On this thread, while it lives.
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

// Writes what is in the buffer if that was not done for a while: a process may end without further notice.
void write_now_and_then();

// While one lives its file is written; an empty path: none. "%p" in it is the number of the process. A file that was
// begun by this process is continued, another trace replaced, and anything else left as it is. One file at a time:
// another path is a warning.
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
