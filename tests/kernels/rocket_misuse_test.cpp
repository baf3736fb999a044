// Calls that crash a stock kernel: the client of rocket makes none of them, and the emulated kernel driver ends the
// process on each.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <regex>
#include <thread>

#include "kernels/api/forwarding_calls.h"
#include "kernels/rocket/client/quiet.h"
#include "logged_calls.h"
#include "rocket_node.h"

namespace skillet::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Records the calls of one device: when the last wait for a fence ended, how long after it the file was closed, and how
// long the client paused.
class TimedCalls final : public kernels::ForwardingCalls {
 public:
  using ForwardingCalls::ForwardingCalls;
  int close(int fd) override {
    if (waited) after_fence = Clock::now() - *waited + paused;
    open_handles = handles;
    return below_->close(fd);
  }
  int ioctl(int fd, unsigned long request, void* argument) override {
    if (request == abi::kSubmit && before_submit) before_submit();
    const int result = below_->ioctl(fd, request, argument);
    if (result == 0 && request == abi::kPrepBo) waited = Clock::now();
    if (result == 0 && request == abi::kCreateBo) {
      ++handles;
      auto& handle = static_cast<abi::CreateBo*>(argument)->handle;
      if (reuses_handles) handle = std::exchange(closed_handle, std::nullopt).value_or(handle);
    }
    if (request == drm::kGemClose) {
      if (!closing) paused_before_handles = paused;
      closing = true;
      --handles;
      closed_handle = static_cast<drm::GemClose*>(argument)->handle;
    }
    return result;
  }
  void pause(std::chrono::nanoseconds time) override {
    paused += time;
    below_->pause(time);
  }

  std::function<void()> before_submit;
  std::optional<Clock::time_point> waited;
  std::chrono::nanoseconds paused{0}, after_fence{0};
  std::chrono::nanoseconds paused_before_handles{0};  // the part of `paused` before the first handle was closed
  int handles = 0, open_handles = -1;                 // open_handles: when the file was closed
  std::atomic<bool> closing{false};
  bool reuses_handles = false;  // a new buffer gets the handle closed last, as in the kernel
  std::optional<uint32_t> closed_handle;
};

class RocketMisuse : public Rocket {
 protected:
  std::unique_ptr<kernels::Device> open_timed(const std::string& faults = "") {
    start(faults);
    timed_ = std::make_shared<TimedCalls>(calls_);
    return kernels::rocket::open_device(core_, timed_).value();
  }
  const kernels::Core core_{.info = {.kernel_driver = "rocket", .node = kNode, .compatible = {}, .facts = {}}};
  std::shared_ptr<TimedCalls> timed_;
};

// ---- the client ----

TEST_F(RocketMisuse, AFileIsClosedLongAfterItsLastJobAndWithoutHandles) {
  auto device = open_timed();
  const Chain one = chain(*device, 2);
  ASSERT_TRUE(device->wait(device->submit({&one.job, 1}).value(), milliseconds(5000)).ok());
  device.reset();
  EXPECT_GE(timed_->after_fence, kernels::rocket::kReleaseTime);
  EXPECT_LE(timed_->paused, kernels::rocket::kReleaseTime);
  EXPECT_EQ(timed_->open_handles, 0);
}

// A kernel worker may take very long; the fake ends the process if the file is closed earlier.
TEST_F(RocketMisuse, ClosesNoFileBeforeTheKernelHasReleasedItsBuffers) {
  release_time_ = milliseconds(400);
  start();
  auto device = open();
  const Chain one = chain(*device, 3);
  ASSERT_TRUE(device->wait(device->submit({&one.job, 1}).value(), milliseconds(5000)).ok());
  device.reset();
}

// A file whose buffers are never released is not closed: the descriptor stays open.
TEST_F(RocketMisuse, LeavesAFileOpenWhoseBuffersTheKernelKeeps) {
  release_time_ = std::chrono::minutes(1);
  start();
  auto device = open();
  const Chain one = chain(*device, 3);
  ASSERT_TRUE(device->wait(device->submit({&one.job, 1}).value(), milliseconds(5000)).ok());
  ::testing::internal::CaptureStderr();
  device.reset();
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("stays open"), std::string::npos);
  calls_->pause(release_time_);
}

TEST_F(RocketMisuse, BuffersThatAreFreedWhileAJobRunsAreClosedToo) {
  auto device = open_timed();
  const Chain one = chain(*device, 40);
  ASSERT_TRUE(device->submit({&one.job, 1}).ok());
  ASSERT_TRUE(device->free(one.data).ok());
  ASSERT_TRUE(device->free(one.commands).ok());
  EXPECT_FALSE(timed_->closing);
  device.reset();
  EXPECT_EQ(timed_->open_handles, 0);
}

// Each wait fails, so the end of the jobs is unknown: the kernel's timeout of each job must pass before a handle is
// closed, and the worker's time before the file is closed.
TEST_F(RocketMisuse, HandlesOfUnfinishedJobsAreClosedAfterTheKernelsTimeout) {
  for (const uint32_t jobs : {1U, 3U, 100U}) {
    auto device = open_timed("prep_bo:*:EIO");
    const Chain one = chain(*device, 1);
    for (uint32_t i = 0; i < jobs; ++i) ASSERT_TRUE(device->submit({&one.job, 1}).ok());
    device.reset();
    const std::chrono::nanoseconds expected = jobs * abi::kJobTimeout;
    EXPECT_GT(timed_->paused_before_handles, expected - milliseconds(400)) << jobs;
    EXPECT_LE(timed_->paused_before_handles, expected + abi::kReleaseTime) << jobs;
    EXPECT_GT(timed_->paused - timed_->paused_before_handles, abi::kReleaseTime / 2) << jobs;
    EXPECT_EQ(timed_->open_handles, 0);
  }
}

TEST_F(RocketMisuse, NothingIsWaitedForWhereNothingIsToBeReleased) {
  auto device = open_timed();
  device->alloc(4096).value();
  device.reset();
  EXPECT_EQ(timed_->paused.count(), 0) << "no job";
  EXPECT_EQ(timed_->open_handles, 0);
  device = open_timed();
  const Chain one = chain(*device, 2);
  ASSERT_TRUE(device->wait(device->submit({&one.job, 1}).value(), milliseconds(5000)).ok());
  std::this_thread::sleep_for(kernels::rocket::kReleaseTime + milliseconds(1));
  device.reset();
  EXPECT_EQ(timed_->paused.count(), 0) << "long ago";
}

TEST_F(RocketMisuse, ASubmissionThatFailedIsNotWaitedFor) {
  auto device = open_timed("submit:*:ENOMEM");
  const Chain one = chain(*device, 1);
  ASSERT_FALSE(device->submit({&one.job, 1}).ok());
  device.reset();
  EXPECT_EQ(timed_->paused.count(), 0);
}

// Tries each fault at each place: the kernel driver of these tests aborts if a file or handle is closed too early.
TEST_F(RocketMisuse, FilesAreClosedInOrderAfterEveryFault) {
  for (const char* call : {"create_bo", "mmap", "prep_bo", "fini_bo", "gem_close", "submit"}) {
    for (const char* place : {"1", "2", "3", "2-*", "*"}) {
      start(fmt::format("{}:{}:EIO", call, place));
      timed_ = std::make_shared<TimedCalls>(calls_);
      auto opened = kernels::rocket::open_device(core_, timed_);
      if (!opened.ok()) continue;
      const std::unique_ptr<kernels::Device> device = std::move(opened).value();
      std::vector<kernels::Handle> handles;
      for (int i = 0; i < 2; ++i) {
        if (const auto handle = device->alloc(4096); handle.ok()) handles.push_back(*handle);
      }
      if (handles.size() != 2) continue;
      const auto bytes = device->map(handles[1]);
      if (!bytes.ok()) continue;
      const auto address = static_cast<uint32_t>(device->address(handles[0]).value());
      store_le(bytes->data(), address);
      store_le(bytes->data() + 4, address + 1);
      const auto job =
          device->prepare({.name = "j", .commands = {{handles[1], 0, 8}}, .buffers = {{handles[0], true, true}}});
      ASSERT_TRUE(job.ok());
      for (int i = 0; i < 3; ++i) {
        if (const auto fence = device->submit({&*job, 1}); fence.ok() && i == 0)
          static_cast<void>(device->wait(*fence, milliseconds(1000)));
      }
      static_cast<void>(device->free(handles[0]));
    }
  }
}

// One thread frees a buffer of a job that another is about to submit: the handle stays open until the job has ended.
TEST_F(RocketMisuse, NoHandleIsClosedBetweenTheCheckAndTheCall) {
  const auto device = open_timed();
  const Chain one = chain(*device, 20);
  std::future<bool> freed;
  bool closed_before = true;
  timed_->before_submit = [&] {
    freed = std::async(std::launch::async, [&] { return device->free(one.data).ok(); });
    freed.wait_for(milliseconds(100));
    closed_before = timed_->closing;
  };
  const auto fence = device->submit({&one.job, 1});
  ASSERT_TRUE(fence.ok()) << fence.error().message;
  EXPECT_FALSE(closed_before);
  EXPECT_TRUE(freed.get());
  EXPECT_TRUE(device->wait(*fence, milliseconds(5000)).ok());
}

// Also for freed commands, which no job lists, and when another buffer has taken over the freed handle or address.
TEST_F(RocketMisuse, AJobOfABufferThatIsGoneIsNotSubmitted) {
  for (const bool frees_commands : {false, true}) {
    const auto device = open_timed();
    timed_->reuses_handles = true;
    const Chain one = chain(*device, 2);
    ASSERT_TRUE(device->free(frees_commands ? one.commands : one.data).ok());
    EXPECT_EQ(device->submit({&one.job, 1}).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(device->alloc(4096).value(), frees_commands ? one.commands : one.data);
    EXPECT_EQ(device->submit({&one.job, 1}).error().code, ErrorCode::invalid_argument);
    device->release(one.job);
  }
}

// Jobs and handles belong to the parent.
TEST_F(RocketMisuse, AChildOfForkTouchesNothing) {
  start();
  const auto logged = std::make_shared<LoggedCalls>(
      calls_, [](unsigned long request, const void*) { return fmt::format("ioctl {:#x}", request); });
  auto device = kernels::rocket::open_device(core_, logged).value();
  const Chain one = chain(*device, 100);
  const auto fence = device->submit({&one.job, 1}).value();
  logged->take();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const auto begin = Clock::now();
    device.reset();
    ::_exit(logged->take() == "close\n" && Clock::now() - begin < milliseconds(100) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(device->wait(fence, milliseconds(10000)).ok());
  EXPECT_EQ(byte(*device, one, 100), 100);
}

// No wait for its job was made: exit() notices that the job has ended and gives the worker its time, no more.
TEST_F(RocketMisuse, TheEndOfAProcessWaitsAsLongAsItsJobs) {
  auto shortest = std::chrono::nanoseconds::max();
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      start();
      auto* const device = open().release();
      const Chain one = chain(*device, 2);
      ::exit(device->submit({&one.job, 1}).ok() ? 0 : 1);
    }
    const auto begin = Clock::now();
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    shortest = std::min<std::chrono::nanoseconds>(shortest, Clock::now() - begin);
  }
  EXPECT_GE(shortest, abi::kReleaseTime);
  EXPECT_LT(shortest, abi::kJobTimeout);
}

// ---- the kernel ----

// A program that makes its own raw calls.
struct Raw {
  std::shared_ptr<fake::InProcess> calls;
  int fd = -1;
  abi::CreateBo data{.size = 4096, .handle = 0, .dma_address = 0, .offset = 0};
  abi::Task task{.regcmd = 0, .regcmd_count = 1};
  abi::SubmitJob job{};

  explicit Raw(std::shared_ptr<fake::InProcess> kernel) : calls(std::move(kernel)), fd(calls->open(kNode)) {
    abi::CreateBo guard = data;
    calls->ioctl(fd, abi::kCreateBo, &guard);
    calls->ioctl(fd, abi::kCreateBo, &data);
    const auto address = static_cast<uint32_t>(data.dma_address);
    uint8_t* bytes = nullptr;
    calls->mmap(fd, 4096, data.offset, bytes);
    store_le(bytes, address + 64);
    store_le(bytes + 4, address + 65);
    task.regcmd = address;
    job = job_of(task, data);
  }
  int submit() {
    abi::Submit call{
        .jobs = reinterpret_cast<uintptr_t>(&job), .job_count = 1, .job_struct_size = sizeof job, .reserved = 0};
    return calls->ioctl(fd, abi::kSubmit, &call);
  }
  int wait() {
    abi::PrepBo call{.handle = data.handle, .reserved = 0, .timeout_ns = INT64_MAX};
    return calls->ioctl(fd, abi::kPrepBo, &call);
  }
  void close_data() {
    drm::GemClose call{.handle = data.handle, .pad = 0};
    calls->ioctl(fd, drm::kGemClose, &call);
  }
};

struct Misuse {
  const char* what;
  void (*act)(Raw& raw);
};
const Misuse kMisuses[] = {
    {"file closed [0-9]+ us after its last job while its buffers were still to be released: use after free",
     [](Raw& raw) {
       raw.submit();
       raw.wait();
       raw.close_data();
       raw.calls->close(raw.fd);
     }},
    {"file closed while .* of its jobs are queued or run: use after free",
     [](Raw& raw) {
       for (int i = 0; i < 40; ++i) raw.submit();  // the last is not done at once, even in a slow process
       raw.calls->close(raw.fd);
     }},
    {"submit: regcmd_count of task 0 is 0: the array of tasks is freed twice",
     [](Raw& raw) {
       raw.task.regcmd_count = 0;
       raw.submit();
     }},
    {"submit: the tasks at 0x0 cannot be read: the array of tasks is freed twice",
     [](Raw& raw) {
       raw.job.tasks = 0;
       raw.submit();
     }},
    {"submit: no handle 77: a NULL pointer is followed",
     [](Raw& raw) {
       raw.data.handle = 77;
       raw.submit();
     }},
    {"submit: no handle 2: a NULL pointer is followed",
     [](Raw& raw) {
       raw.close_data();
       raw.submit();
     }},
    {"gem_close: handle 2 holds the commands of job [0-9]+, which has not ended: the NPU reads memory that is not "
     "mapped",
     [](Raw& raw) {
       abi::CreateBo other = raw.data;
       raw.calls->ioctl(raw.fd, abi::kCreateBo, &other);
       raw.job.out_bo_handles = reinterpret_cast<uintptr_t>(&other.handle);
       raw.task.regcmd += 64;  // zeros: the chip stalls
       raw.submit();
       raw.close_data();
     }},
    {"ioctl 0x01 .get_unique, get_magic.: a NULL pointer is followed",
     [](Raw& raw) {
       drm::Unique call{};
       raw.calls->ioctl(raw.fd, drm::kGetUnique, &call);
     }},
    {"ioctl 0x02 .get_unique, get_magic.: a NULL pointer is followed",
     [](Raw& raw) {
       drm::Auth call{};
       raw.calls->ioctl(raw.fd, drm::kGetMagic, &call);
     }},
};

TEST_F(RocketMisuse, EachEndsTheProcessWithALineThatNamesIt) {
  GTEST_FLAG_SET(death_test_style, "fast");
  release_time_ = std::chrono::minutes(1);  // too long for a slow host to reach by itself
  for (const Misuse& one : kMisuses) {
    EXPECT_DEATH(
        {
          start();
          Raw raw(calls_);
          one.act(raw);
        },
        std::string("virtual rocket: ") + one.what);
  }
}

// The same calls on a kernel without these bugs: only a message.
TEST_F(RocketMisuse, EachIsOnlySaidWhereThatIsAskedFor) {
  on_misuse_ = fake::OnMisuse::report;
  release_time_ = std::chrono::minutes(1);
  for (const Misuse& one : kMisuses) {
    start();
    Raw raw(calls_);
    ::testing::internal::CaptureStderr();
    one.act(raw);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(std::regex_search(said, std::regex(one.what))) << said;
  }
}

// Each job may take as long as the kernel's timeout, one after the other: waiting for only one of them is too short.
TEST_F(RocketMisuse, EveryUnfinishedJobCounts) {
  GTEST_FLAG_SET(death_test_style, "fast");
  constexpr int kJobs = 3;
  const auto close_after = [&](std::chrono::milliseconds time) {
    start();
    Raw raw(calls_);
    raw.task.regcmd += 64;  // zeros: the chip stalls
    for (int i = 0; i < kJobs; ++i) EXPECT_EQ(raw.submit(), 0);
    calls_->pause(time);
    return calls_->close(raw.fd);
  };
  EXPECT_DEATH(close_after((kJobs - 1) * abi::kJobTimeout + release_time_),
               "virtual rocket: file closed while 3 of its jobs are queued or run: use after free");
  EXPECT_EQ(close_after(kJobs * abi::kJobTimeout + release_time_), 0);
}

// A child with the same file is not affected by its parent's jobs and the time since.
TEST_F(RocketMisuse, AChildOfForkMayCloseWhatItsParentUses) {
  for (const bool ends_first : {true, false}) {
    const auto kernel = fake::rocket::create(
        "adder", adder(),
        {.is_own_process = true, .on_misuse = fake::OnMisuse::abort, .release_time = std::chrono::minutes(1)});
    std::shared_ptr<fake::File> file;
    ASSERT_EQ(kernel->open(0, file), 0);
    abi::CreateBo data{.size = 4096, .handle = 0, .dma_address = 0, .offset = 0};
    ASSERT_EQ(file->ioctl(abi::kCreateBo, &data), 0);
    // A command that is all zeros: the chip stalls, or has done nothing when the kernel's timeout has passed.
    const abi::Task task{.regcmd = static_cast<uint32_t>(data.dma_address), .regcmd_count = 1};
    const abi::SubmitJob job = job_of(task, data);
    abi::Submit call{
        .jobs = reinterpret_cast<uintptr_t>(&job), .job_count = 1, .job_struct_size = sizeof job, .reserved = 0};
    ASSERT_EQ(file->ioctl(abi::kSubmit, &call), 0);
    abi::PrepBo wait{.handle = data.handle, .reserved = 0, .timeout_ns = INT64_MAX};
    if (ends_first) {
      ASSERT_EQ(file->ioctl(abi::kPrepBo, &wait), 0);
    }
    kernel->lock_all();
    const pid_t child = ::fork();
    kernel->unlock_all();
    if (child == 0) {
      ::alarm(20);
      file.reset();
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << ends_first;
    kernel->let_pass(std::chrono::minutes(2));
  }
}

// After a wait for the jobs and a pause, closing is allowed.
TEST_F(RocketMisuse, WhoWaitsIsNotPunished) {
  start();
  Raw raw(calls_);
  EXPECT_EQ(raw.submit(), 0);
  EXPECT_EQ(raw.wait(), 0);
  calls_->pause(release_time_);
  EXPECT_EQ(calls_->close(raw.fd), 0);
}

}  // namespace
}  // namespace skillet::testing
