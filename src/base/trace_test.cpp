// Traces that trace.h writes are readable in all circumstances.
#include "base/trace.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "base/bytes.h"
#include "base/log.h"
#include "base/testing/own_folder.h"
#include "base/testing/trace_file.h"
#include "base/trace_kernel.h"

namespace skillet {
namespace {

using trace::Category;

class Traces : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = own_path("traces");
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }
  // Empty if it cannot be read.
  static Trace read(const std::string& file) {
    const auto bytes = read_file(file);
    if (!bytes.ok()) return {};
    auto trace = read_trace(*bytes);
    return trace.ok() ? std::move(trace).value() : Trace();
  }
  static size_t count(const Trace& trace, const std::string& name) {
    return static_cast<size_t>(std::ranges::count(trace.slices, name, &TraceSlice::name));
  }

  std::filesystem::path folder_;
};

void two_slices() {
  const trace::Slice run(trace::kRun);
  const trace::Slice copy(trace::kCopyIn);
}

TEST_F(Traces, SlicesNestOnEachThreadAndCountersHaveValues) {
  {
    const trace::Lease lease(path("a"));
    two_slices();
    std::thread(two_slices).join();
    const trace::Track track = trace::add_track("NPU 0"), counter = trace::add_counter("bytes", "bytes");
    trace::begin(track, trace::intern(Category::npu, "3 jobs"), 1000, 7.5);
    trace::count(counter, 1500, 42);
    trace::end(track, 2000);
  }
  const auto bytes = read_file(path("a"));
  ASSERT_TRUE(bytes.ok());
  const std::string text(bytes->begin(), bytes->end());
  ASSERT_NE(text.find("predicted_us"), std::string::npos);
  EXPECT_EQ(text.find("predicted_us"), text.rfind("predicted_us")) << "a name is in a file once";
  const Trace trace = read(path("a"));
  ASSERT_EQ(trace.slices.size(), 5u);
  for (const TraceSlice& one : trace.slices) {
    EXPECT_EQ(one.depth, one.name == "copy in" ? 1u : 0u) << one.name;
    EXPECT_FALSE(one.is_open);
    EXPECT_LE(one.own_ns, one.ns());
  }
  EXPECT_EQ(trace.slices[0].ns(), 1000);
  EXPECT_EQ(trace.slices[0].category, "npu");
  EXPECT_EQ(trace.tracks[trace.slices[0].track].name, "NPU 0");
  ASSERT_EQ(trace.samples.size(), 1u);
  EXPECT_EQ(trace.samples[0].value, 42);
  EXPECT_EQ(trace.slices[0].name, "3 jobs");
  EXPECT_EQ(count(trace, "run"), 2u);
}

TEST_F(Traces, APatternComesAgainAtOtherTimes) {
  using trace::EventType;
  constexpr std::array<int64_t, 3> kTimes = {1000, 300'000, int64_t{1} << 50};
  {
    const trace::Lease lease(path("a"));
    const trace::Track track = trace::add_track("NPU 0"), counter = trace::add_counter("bytes", "bytes");
    const trace::Pattern pattern(
        std::array{trace::Event{.track = track, .name = trace::intern(Category::npu, "job"), .value = 1.5},
                   trace::Event{.track = counter, .type = EventType::count, .value = 42},
                   trace::Event{.track = track, .type = EventType::end}});
    for (const int64_t at : kTimes) pattern.add(std::array{at, at + 10, at + 30});
  }
  const Trace trace = read(path("a"));
  ASSERT_EQ(trace.slices.size(), kTimes.size());
  ASSERT_EQ(trace.samples.size(), kTimes.size());
  for (size_t i = 0; i < kTimes.size(); ++i) {
    EXPECT_EQ(trace.slices[i].begin_ns, kTimes[i]);
    EXPECT_EQ(trace.slices[i].ns(), 30);
    EXPECT_EQ(trace.slices[i].name, "job");
    EXPECT_EQ(trace.samples[i].at_ns, kTimes[i] + 10);
    EXPECT_EQ(trace.samples[i].value, 42);
  }
}

TEST_F(Traces, AFileHasTheTracksOfItsEvents) {
  for (int i = 0; i < 20; ++i) {
    const trace::Lease lease(path(i < 19 ? "a" : "b"));
    const trace::Track track = trace::add_track("NPU"), unused = trace::add_track("not used");
    EXPECT_NE(track, unused);
    trace::begin(track, trace::intern(Category::npu, "job"), 1000 * i, 1);
    trace::end(track, 1000 * i + 500);
  }
  const auto tracks = [&](const char* name) {
    const Trace trace = read(path(name));
    return std::ranges::count(trace.tracks, "NPU", &TraceTrack::name);
  };
  EXPECT_EQ(tracks("a"), 19);
  EXPECT_EQ(tracks("b"), 1);
  for (const char* const name : {"a", "b"}) {
    const auto bytes = read_file(path(name));
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(std::string(bytes->begin(), bytes->end()).find("not used"), std::string::npos) << name;
  }
}

TEST_F(Traces, NothingIsWrittenWithoutALease) {
  EXPECT_FALSE(trace::on());
  two_slices();
  EXPECT_EQ(trace::intern(Category::cpu, "x"), trace::kNoName);
  const trace::Lease none("");
  EXPECT_FALSE(trace::on());
}

TEST_F(Traces, AProcessThatEndsWithoutNoticeLeavesATrace) {
  const trace::Lease lease(path("a"));
  two_slices();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  trace::write_now_and_then();
  EXPECT_EQ(count(read(path("a")), "run"), 1u);
}

TEST_F(Traces, MoreThanTheBufferHoldsIsWritten) {
  {
    const trace::Lease lease(path("a"));
    for (int i = 0; i < 20'000; ++i) two_slices();
  }
  EXPECT_EQ(count(read(path("a")), "run"), 20'000u);
}

TEST_F(Traces, OneFileAtATimeAndTheSameOneGoesOn) {
  {
    const trace::Lease first(path("a"));
    const trace::Lease second(path("a")), other(path("b"));
    two_slices();
  }
  EXPECT_FALSE(std::filesystem::exists(path("b")));
  {
    const trace::Lease again(path("a"));
    two_slices();
  }
  EXPECT_EQ(count(read(path("a")), "run"), 2u);
  std::ofstream(path("b")) << "something else";
  {
    const trace::Lease other(path("b"));
    EXPECT_FALSE(trace::on());
  }
  EXPECT_EQ(std::filesystem::file_size(path("b")), 14u);
  std::filesystem::remove(path("a"));
  {
    const trace::Lease anew(path("a"));
    two_slices();
  }
  EXPECT_EQ(count(read(path("a")), "run"), 1u);
  {
    const trace::Lease numbered(path("c%p"));
    two_slices();
  }
  EXPECT_EQ(count(read(path("c" + std::to_string(::getpid()))), "run"), 1u);
}

// A copy has the same name and size as the file that was begun, but is another file.
TEST_F(Traces, AnotherTraceInTheFilesPlaceIsReplaced) {
  {
    const trace::Lease first(path("a"));
    two_slices();
  }
  std::filesystem::copy_file(path("a"), path("copy"));
  std::filesystem::rename(path("copy"), path("a"));
  {
    const trace::Lease again(path("a"));
    two_slices();
  }
  EXPECT_EQ(count(read(path("a")), "run"), 1u);
}

TEST_F(Traces, AChildWritesNothing) {
  {
    const trace::Lease lease(path("a"));
    two_slices();
    const pid_t child = ::fork();
    if (child == 0) {
      const trace::Lease of_child(path("b"));
      for (int i = 0; i < 10'000; ++i) two_slices();
      ::_exit(trace::on() ? 1 : 0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    two_slices();
  }
  EXPECT_EQ(count(read(path("a")), "run"), 2u);
  const pid_t child = ::fork();  // the parent has stopped writing
  if (child == 0) {
    const trace::Lease of_child(path("b"));
    ::_exit(trace::on() ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(std::filesystem::exists(path("b")));
}

// The parent's unwritten buffer is in the child's memory too.
TEST_F(Traces, AChildThatClosesWhatItInheritedWritesNothing) {
  auto lease = std::make_unique<trace::Lease>(path("a"));
  const trace::Track track = trace::add_track("NPU");
  const trace::Pattern pattern(std::array{trace::Event{.track = track, .name = trace::intern(Category::npu, "job")},
                                          trace::Event{.track = track, .type = trace::EventType::end}});
  two_slices();
  const auto begun = std::filesystem::file_size(path("a"));
  const pid_t child = ::fork();
  if (child == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    trace::begin(track, trace::kRun, 1000);
    pattern.add(std::array<int64_t, 2>{1000, 2000});
    trace::write_now_and_then();
    lease.reset();
    ::_exit(trace::add_track("of the child") == trace::kThisThread ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(std::filesystem::file_size(path("a")), begun);
  two_slices();
  lease.reset();
  const Trace trace = read(path("a"));
  EXPECT_EQ(count(trace, "run"), 2u);
  EXPECT_EQ(count(trace, "job"), 0u);
}

TEST_F(Traces, AChildThatLivesOnDoesNotHoldTheFile) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  pid_t child = -1;
  {
    const trace::Lease lease(path("a"));
    child = ::fork();
    if (child == 0) {
      ::close(pipe[1]);
      char end = 0;
      ::_exit(::read(pipe[0], &end, 1) == 0 ? 0 : 1);
    }
  }
  {
    const trace::Lease again(path("a"));
    EXPECT_TRUE(trace::on());
  }
  ::close(pipe[0]);
  ::close(pipe[1]);
  ::waitpid(child, nullptr, 0);
}

TEST_F(Traces, WhereNothingCanBeWrittenNothingIsTraced) {
  for (const std::string& where : {path("none/a"), folder_.string(), std::string("/dev/full"), path("pipe")}) {
    ::mkfifo(path("pipe").c_str(), 0600);
    const trace::Lease lease(where);
    EXPECT_FALSE(trace::on()) << where;
    two_slices();
  }
}

// Beyond the limit the kernel sends a signal; if that is ignored, write() fails.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    set(bytes);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  void set(rlim_t bytes) const {
    rlimit now = before_;
    now.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &now);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

TEST_F(Traces, AWriteThatFailsEndsTheTraceAndWhatIsThereIsWhole) {
  constexpr rlim_t kMost = 100'000;  // within a packet of the second write
  std::string said;
  {
    const trace::Lease lease(path("a"));
    ASSERT_TRUE(trace::on());
    const FileLimit limit(kMost);
    testing::internal::CaptureStderr();
    for (int i = 0; i < 20'000; ++i) two_slices();
    said = testing::internal::GetCapturedStderr();
    EXPECT_FALSE(trace::on());
    const trace::Lease again(path("a"));
    EXPECT_FALSE(trace::on()) << "not before all that were begun have ended";
  }
  EXPECT_EQ(said, "skillet: warning: trace " + path("a") + ": File too large; the trace ends here\n");
  EXPECT_LT(std::filesystem::file_size(path("a")), kMost);
  const Trace trace = read(path("a"));
  EXPECT_FALSE(trace.is_cut);
  EXPECT_GT(count(trace, "run"), 500u);
  const trace::Lease later(path("a"));
  EXPECT_TRUE(trace::on());
}

TEST_F(Traces, AFileStaysBelowTheLimitOfTheProcess) {
  const FileLimit limit(100'000);
  std::string said;
  {
    const trace::Lease lease(path("a"));
    testing::internal::CaptureStderr();
    for (int i = 0; i < 20'000; ++i) two_slices();
    said = testing::internal::GetCapturedStderr();
  }
  EXPECT_NE(said.find("a trace has 100000 bytes at most; the trace ends here"), std::string::npos) << said;
  EXPECT_FALSE(read(path("a")).is_cut);
}

TEST_F(Traces, AFileHas512MiBAtMost) {
  constexpr uint64_t kMost = uint64_t{512} << 20;
  std::vector<trace::Event> events;
  const auto bytes = [&](int count) {
    const std::string file = path(std::to_string(count));
    {
      const trace::Lease lease(file);
      const trace::Track track = trace::add_track("NPU");
      events.assign(20'000, {.track = track, .type = trace::EventType::end});
      const trace::Pattern pattern(events);
      for (int i = 0; i < count; ++i) pattern.add(std::vector<int64_t>(events.size()));
    }
    return std::filesystem::file_size(file);
  };
  const uint64_t one = bytes(2) - bytes(1);
  const trace::Lease lease("/dev/null");
  ASSERT_TRUE(trace::on());
  const trace::Track track = trace::add_track("NPU");
  events.assign(20'000, {.track = track, .type = trace::EventType::end});
  const trace::Pattern pattern(events);
  const std::vector<int64_t> at_ns(events.size());
  uint64_t written = 0;
  for (; trace::on() && written < 2 * kMost; written += one) pattern.add(at_ns);
  EXPECT_FALSE(trace::on());
  EXPECT_GT(written + one, kMost);
  EXPECT_LT(written, kMost + 2 * one);
}

TEST_F(Traces, ATrackOrANameTooManyIsSaidOnceAndIsInNoTrace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that was not only forked, and may write
  const auto fill = [this](bool with_tracks) {
    const trace::Lease lease(path("a"));
    bool has_ended = false;
    for (int i = 0; i < 70'000; ++i) {
      const std::string name = "n" + std::to_string(i);
      has_ended = with_tracks ? trace::add_track(name) == trace::kThisThread
                              : trace::intern(Category::cpu, name) == trace::kNoName;
    }
    two_slices();
    std::_Exit(has_ended ? 0 : 1);
  };
  for (const bool with_tracks : {true, false})
    EXPECT_EXIT(fill(with_tracks), testing::ExitedWithCode(0),
                std::string("^skillet: warning: trace [^\n]*: this process has made 65536 ") +
                    (with_tracks ? "tracks" : "names") +
                    ", the most that are stored; events that need more are left out\n$");
}

TEST(KernelEvents, LinesOfTraceFs) {
  struct Case {
    std::string line;
    bool is_event;
    int64_t at_ns;
    std::string name, text;
  };
  for (const Case& one : std::vector<Case>{
           {"  kworker/u8:1-42    [003] d..2.  1234.567890: drm_run_job: fence=1:2, id=3", true, 1234567890000,
            "drm_run_job", "fence=1:2, id=3"},
           // Of Linux 7.2.13:
           {"    kworker/u4:1-13      [000] .....     0.330923: drm_sched_job_run: dev=10000000.npu, fence=5:1, "
            "ring=10000000.npu, job count:0, hw job count:1, client_id:2",
            true, 330923000, "drm_sched_job_run",
            "dev=10000000.npu, fence=5:1, ring=10000000.npu, job count:0, hw job count:1, client_id:2"},
           {" irq/128-1000000-20      [000] d....     0.357862: drm_sched_job_done: fence=5:1 signaled", true,
            357862000, "drm_sched_job_done", "fence=5:1 signaled"},
           {"a [b-1 [000] .....     0.000001: x: ", true, 1000, "x", ""},
           {"# tracer: nop", false, 0, "", ""},
           {"cat-1 [000] ..... 12.34: noname", false, 0, "", ""},
           {"cat-1 [000] ..... 99999999999.1: x: y", false, 0, "", ""},
           {"", false, 0, "", ""}}) {
    trace::KernelEvent event;
    ASSERT_EQ(trace::parse_kernel_event(one.line, event), one.is_event) << one.line;
    if (!one.is_event) continue;
    EXPECT_EQ(event.at_ns, one.at_ns);
    EXPECT_EQ(event.name, one.name);
    EXPECT_EQ(event.text, one.text);
  }
}

TEST_F(Traces, KernelEventsOfAnInstanceOfOurs) {
  const std::string instance = path("skillet-" + std::to_string(::getpid()));
  std::filesystem::create_directories(instance + "/events/gpu_scheduler");
  std::filesystem::create_directory(path("skillet-999999999"));
  std::ofstream(instance + "/trace") << "# head\n a-1 [000] ..... 1.5: drm_sched_job: x\n";
  trace::KernelEvents events(folder_);
  ASSERT_EQ(events.take().size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(path("skillet-999999999")));  // its process has ended
}

TEST_F(Traces, WithoutKernelEventsTheTraceSaysWhy) {
  const log::ScopedLevel level(log::Level::info);
  const std::string id = std::to_string(::getpid());
  const std::pair<std::string, std::string> rows[] = {
      {path("none"), path("none") + "/skillet-" + id + ": No such file or directory"},
      {folder_.string(), "this kernel has no events gpu_scheduler"}};
  for (const auto& [folder, why] : rows) {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(trace::KernelEvents(folder).take().empty());
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "skillet: info: the trace lacks the kernel's events: " + why + "\n");
  }
}

}  // namespace
}  // namespace skillet
