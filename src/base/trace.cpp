#include "base/trace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/leaked.h"
#include "base/log.h"
#include "base/text.h"
#include "base/trace_kernel.h"
#include "base/trace_packets.h"

namespace skillet::trace {
namespace internal {
constinit std::atomic<uint64_t> g_writer{0};
}
namespace {

constexpr size_t kBuffer_bytes = 1 << 16;  // buffered until written
constexpr size_t kMostNames = 1 << 16;     // so that a host that creates sessions forever does not fill the memory
constexpr size_t kLongestName = 200;
constexpr uint64_t kMostBytes = uint64_t{1} << 29;  // of a file
constexpr int64_t kPause_ns = 20'000'000;           // between two periodic writes
// Track numbers are in every event, so they are as small as possible. Added tracks have 1 + their Track.
constexpr uint64_t kProcessTrack = 1, kKernelTrack = 1 << 17, kOfThreads = 1 << 18;
static_assert(1 + kMostNames < kKernelTrack);

struct Named {
  Category category;
  std::string text;
};
struct Described {
  std::string name, unit;
  uint64_t file = 0;  // the last file that contains its description
};

// Guarded by its mutex, except g_writer.
struct State {
  OwnProcess process;
  std::mutex mutex;
  size_t leases = 0;
  int fd = -1;
  std::string path;  // of the last file, and its identity
  dev_t device = 0;
  ino_t inode = 0;
  std::string ended;      // path of a trace that ended before its sessions did
  std::string complaint;  // the last warning
  bool said_full = false;
  uint64_t written = 0, most = 0;
  int64_t last_write_ns = 0;
  Packets packets;
  std::vector<Named> names;  // by Name - 1
  std::map<std::pair<Category, std::string>, Name, std::less<>> known;
  std::vector<Described> tracks;  // by Track - 1
  size_t written_names = 0;       // already in the file
  uint64_t file = 0;              // number of the file, which describes each thread and track once
  std::optional<KernelEvents> kernel_events;

  State() {
    for (const FixedName& one : kFixedNames) names.push_back({one.category, std::string(one.text)});
  }
};

State& state() {
  return leaked([] { return State(); });
}

int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string name_in(const std::string& file) {
  std::string name;
  std::getline(std::ifstream(file), name);
  return name;
}

// Ends writing; the file remains readable.
void close_file(State& s) {
  internal::g_writer = 0;
  // Children of fork() share the descriptor, and with it the lock.
  if (s.fd >= 0 && ::flock(s.fd, LOCK_UN) != 0) log::debug("trace {}: {}", s.path, std::strerror(errno));
  if (s.fd >= 0) ::close(s.fd);
  s.fd = -1;
  s.packets.clear();
}

void give_up(State& s, std::string_view why) {
  log::warning("trace {}: {}; the trace ends here", s.path, why);
  if (::ftruncate(s.fd, static_cast<off_t>(s.written)) != 0) log::debug("trace {}: {}", s.path, std::strerror(errno));
  s.ended = s.path;
  close_file(s);
}

void put_bytes(State& s) {
  const std::string& bytes = s.packets.bytes();
  if (s.written + bytes.size() > s.most) return give_up(s, fmt::format("a trace has {} bytes at most", s.most));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t now = ::write(s.fd, bytes.data() + done, bytes.size() - done);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return give_up(s, now == 0 ? "nothing can be written" : std::strerror(errno));
    done += static_cast<size_t>(now);
  }
  s.written += done;
  s.packets.clear();
}

uint64_t number_of(Track track) { return kProcessTrack + track; }

// Returns the number of its track, and describes the track if necessary.
uint64_t this_thread(State& s) {
  static thread_local int tid = 0;
  if (tid == 0) tid = static_cast<int>(::syscall(SYS_gettid));
  static thread_local uint64_t described = 0;
  const uint64_t track = kOfThreads + static_cast<uint64_t>(tid);
  if (std::exchange(described, s.file) != s.file)
    s.packets.add_thread(track, ::getpid(), tid, name_in(fmt::format("/proc/self/task/{}/comm", tid)));
  return track;
}

// Descriptions precede the events that refer to them.
void describe(State& s) {
  for (; s.written_names < s.names.size(); ++s.written_names)
    s.packets.add_name(static_cast<Name>(s.written_names + 1), s.names[s.written_names].text);
}

// Describes tracks on first use: a file has few of the tracks of all the process's sessions.
void describe(State& s, Track track) {
  if (track == kThisThread) return;
  Described& one = s.tracks[track - 1];
  if (std::exchange(one.file, s.file) != s.file)
    s.packets.add_track(number_of(track), kProcessTrack, one.name, one.unit);
}

// Requires the mutex.
void write_out(State& s) {
  if (s.fd < 0) return;
  describe(s);
  s.last_write_ns = now_ns();
  put_bytes(s);
}

// A lack of memory or disk space here must not affect the caller.
template <typename Function>
void safely(State& s, Function function) {
  try {
    function(s);
  } catch (const std::exception&) {  // there may be no memory for a message
    close_file(s);
  }
}

std::string file_name(std::string path) {
  for (size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at))
    path.replace(at, 2, std::to_string(::getpid()));
  return path;
}

// True for an empty file, or a trace: a list of packets, each with its length.
bool is_trace(int fd, off_t size) {
  // A packet, its length, then sequence 1 and its flags: Packets::add_start().
  constexpr std::array<uint8_t, 4> kStart = {0x50, 0x01, 0x68, 0x01};
  std::array<uint8_t, 2 + kStart.size()> head{};
  if (size == 0) return true;
  if (::pread(fd, head.data(), head.size(), 0) != static_cast<ssize_t>(head.size())) return false;
  return head[0] == 0x0A && std::ranges::equal(std::span(head).subspan(2), kStart);
}

// Empty: it is open; otherwise the reason.
std::string open_file(State& s, const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
  if (fd < 0) return std::strerror(errno);
  struct stat status {};
  std::string why;
  const bool is_there = ::fstat(fd, &status) == 0;
  const bool goes_on = path == s.path && status.st_dev == s.device && status.st_ino == s.inode &&
                       static_cast<uint64_t>(status.st_size) == s.written;
  if (!is_there || !(S_ISREG(status.st_mode) || S_ISCHR(status.st_mode)))
    why = "it is not a regular file";
  else if (S_ISREG(status.st_mode) && !is_trace(fd, status.st_size))
    why = "the file is not a trace; only a trace is replaced";
  else if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    why = "another process, or another library in this one, writes it; %p in a name is the process id";
  else if (S_ISREG(status.st_mode) && !goes_on && ::ftruncate(fd, 0) != 0)
    why = std::strerror(errno);
  if (!why.empty()) {
    ::close(fd);
    return why;
  }
  const off_t end = ::lseek(fd, 0, SEEK_END);
  s.written = end > 0 ? static_cast<uint64_t>(end) : 0;
  s.fd = fd;
  s.device = status.st_dev;
  s.inode = status.st_ino;
  return {};
}

// Empty: it has started; otherwise the reason.
std::string start_file(State& s, const std::string& path) {
  if (std::string why = open_file(s, path); !why.empty()) return why;
  s.path = path;
  rlimit limit{};  // beyond it the kernel sends a signal
  s.most = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 ? std::min<uint64_t>(kMostBytes, limit.rlim_cur) : kMostBytes;
  s.packets.reserve(kBuffer_bytes);
  s.written_names = 0;
  ++s.file;
  s.packets.add_start(now_ns(), clock_ns(CLOCK_BOOTTIME));
  for (size_t i = 0; i < kCategoryNames.size(); ++i) s.packets.add_category(static_cast<Category>(i));
  s.packets.add_names_of_annotations();
  s.packets.add_process(kProcessTrack, ::getpid(), name_in("/proc/self/comm"));
  s.last_write_ns = now_ns();
  put_bytes(s);
  if (s.fd >= 0) internal::g_writer = OwnProcess::number();
  return {};
}

void add_kernel_events(State& s) {
  if (!s.kernel_events) return;
  const std::vector<KernelEvent> all = s.kernel_events->take();
  s.kernel_events.reset();
  if (s.fd < 0 || all.empty()) return;
  s.packets.add_track(kKernelTrack, kProcessTrack, "kernel: gpu_scheduler", "");
  for (const KernelEvent& one : all) s.packets.add_instant(one.at_ns, kKernelTrack, one.name, one.text);
}

void say_full(State& s, std::string_view what) {
  if (!std::exchange(s.said_full, true))
    log::warning("trace {}: this process has made {} {}, the most that are stored; events that need more are left out",
                 s.path, kMostNames, what);
}

Track new_track(std::string_view name, std::string_view unit) {
  State& s = state();
  if (!on()) return kThisThread;
  const std::lock_guard lock(s.mutex);
  if (s.tracks.size() == kMostNames) {
    say_full(s, "tracks");
    return kThisThread;
  }
  s.tracks.push_back({std::string(name), std::string(unit)});
  return static_cast<Track>(s.tracks.size());
}

Category category_of(const State& s, Name name) {
  return name == kNoName ? Category::session : s.names[name - 1].category;
}

// Serialises events immediately: queueing them would cost more. `put` adds events; what they refer to is described
// first.
template <typename Put>
void add_described(Put put) {
  if (!on()) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  safely(s, [&](State&) {
    if (s.fd < 0) return;
    describe(s);
    put(s);
    if (s.packets.bytes().size() >= kBuffer_bytes) write_out(s);
  });
}

}  // namespace

int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

Name intern(Category category, std::string_view said) {
  if (!on()) return kNoName;
  const std::string text = printable(said.substr(0, kLongestName));  // tensors have the names of a model file
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto [found, is_new] = s.known.try_emplace({category, text}, kNoName);
  if (!is_new) return found->second;
  if (s.names.size() == kMostNames) {
    s.known.erase(found);
    say_full(s, "names");
    return kNoName;
  }
  s.names.push_back({category, text});
  return found->second = static_cast<Name>(s.names.size());
}

struct Pattern::Bytes {
  Packets packets;
  std::vector<size_t> begins;
  std::set<Track> tracks;
};

Track add_track(std::string_view name) { return new_track(name, ""); }
Track add_counter(std::string_view name, std::string_view unit) { return new_track(name, unit); }

void begin(Track track, Name name, int64_t at_ns, double predicted_us) {
  add(std::array{Event{at_ns, track, name, EventType::begin, predicted_us}});
}
void end(Track track, int64_t at_ns) { add(std::array{Event{at_ns, track, kNoName, EventType::end, 0}}); }
void count(Track counter, int64_t at_ns, uint64_t value) {
  add(std::array{Event{at_ns, counter, kNoName, EventType::count, static_cast<double>(value)}});
}

void add(std::span<const Event> events) {
  add_described([&](State& s) {
    const uint64_t thread = this_thread(s);
    for (const Event& event : events) {
      if (event.type == EventType::count && event.track == kThisThread) continue;  // there are too many counters
      describe(s, event.track);
      s.packets.add_event(event, event.track == kThisThread ? thread : number_of(event.track),
                          category_of(s, event.name));
    }
  });
}

Pattern::Pattern(std::span<const Event> events) : bytes_(std::make_unique<Bytes>()) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  for (const Event& event : events) {
    bytes_->begins.push_back(bytes_->packets.bytes().size());
    bytes_->tracks.insert(event.track);
    bytes_->packets.add_event(event, number_of(event.track), category_of(s, event.name));
  }
}
Pattern::~Pattern() = default;

void Pattern::add(std::span<const int64_t> at_ns) const {
  add_described([&](State& s) {
    for (const Track track : bytes_->tracks) describe(s, track);
    s.packets.add_again(bytes_->packets, bytes_->begins, at_ns);
  });
}

void write_now_and_then() {
  if (!on()) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.packets.bytes().empty() && now_ns() - s.last_write_ns > kPause_ns) safely(s, write_out);
}

Lease::Lease(const std::string& path, bool with_kernel_events) {
  if (path.empty()) return;
  State& s = state();
  if (!s.process.is_here()) {
    log::warning("trace {}: a process made by fork() writes no trace", path);
    return;
  }
  const std::lock_guard lock(s.mutex);
  const std::string name = file_name(path);
  std::string why;
  if (name == s.ended) return;
  if (s.fd >= 0 && name != s.path)
    why = fmt::format("this process already writes {}, and can write only one at a time", s.path);
  else if (s.fd < 0)
    why = start_file(s, name);
  if (!why.empty()) {
    std::string line = fmt::format("there is no trace {}: {}", name, why);
    if (line != s.complaint) log::warning("{}", line);
    s.complaint = std::move(line);
    return;
  }
  holds_ = true;
  ++s.leases;
  if (with_kernel_events && !s.kernel_events) s.kernel_events.emplace();
}

Lease::~Lease() {
  if (!holds_ || !state().process.is_here()) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (--s.leases != 0) return;
  s.ended.clear();
  try {
    add_kernel_events(s);
  } catch (const std::exception& thrown) {
    log::warning("trace {}: {}", s.path, thrown.what());
  }
  safely(s, write_out);
  close_file(s);
}

}  // namespace skillet::trace
