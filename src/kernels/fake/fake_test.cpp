#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sync_file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "kernels/api/testing/submit.h"
#include "kernels/etnaviv/abi.h"
#include "kernels/fake/buffer.h"
#include "kernels/fake/fault_plan.h"
#include "kernels/fake/job_clock.h"
#include "kernels/fake/jobs.h"
#include "kernels/fake/simulated.h"
#include "kernels/fake/sync_file.h"

namespace skillet::fake {
namespace {

// A chip with one command: {source address, target address, bytes}: copies and adds one to each byte.
class Incrementer : public sim::Device {
 public:
  Result<void> run(const sim::Job& job, const sim::Memory& memory) override {
    SK_TRY_ASSIGN(const auto stream, sim::words_of(job));
    if (stream.size() != 3) return error(ErrorCode::malformed, "{} words instead of 3", stream.size());
    SK_TRY_ASSIGN(const auto source, memory.at(stream[0], stream[2], "source"));
    SK_TRY_ASSIGN(const auto target, memory.at(stream[1], stream[2], "target"));
    for (size_t i = 0; i < source.size(); ++i) target[i] = static_cast<uint8_t>(source[i] + 1);
    return {};
  }
};

using kernels::Device;
using kernels::Handle;
using kernels::JobBuffer;

SimulatedCore incrementer() { return core_of(std::make_unique<Incrementer>(), "inc", "sim:inc").value(); }

std::unique_ptr<Device> open_incrementer() {
  const SimulatedCore simulated = incrementer();
  return kernels::open_core(simulated.core, simulated.calls).value();
}

uint32_t address_of(Device& device, Handle handle) { return static_cast<uint32_t>(device.address(handle).value()); }

std::span<uint8_t> bytes_of(Device& device, Handle handle) {
  const auto bytes = device.map(handle);
  EXPECT_TRUE(bytes.ok());
  return bytes.ok() ? *bytes : std::span<uint8_t>{};
}

// Once somebody reads it: a call takes its own time and that of the caches.
TEST(JobClock, CountsCallsAndCaches) {
  double all_caches = 0;
  bool is_any_left_out = false;
  for (const char* chip : {"a311d", "rk3588", "imx93"}) {
    auto made = sim::create_timer(chip, sim::Jobs::open, {});
    is_any_left_out |= !made.ok();
    if (!made.ok()) continue;  // its family is not built
    auto timer = std::move(made).value();
    const double call = timer->wall_us(0, 0, 0, 1), caches = timer->caches_us();
    EXPECT_GT(call, 0) << chip;
    all_caches += caches;
    JobClock clock(std::move(timer));
    clock.count_submission();
    EXPECT_EQ(clock.read().count(), 0);
    clock.count_submission();
    EXPECT_EQ(clock.read().count(), static_cast<int64_t>((call + caches) * 1e3)) << chip;
  }
  EXPECT_TRUE(all_caches > 0 || is_any_left_out);
}

TEST(Jobs, CutsDeadlinesThatAreTooFarAway) {
  using std::chrono::nanoseconds;
  const auto after_start = [](int64_t seconds, int64_t nanos) {
    return nanoseconds(Jobs::time(seconds, nanos).time_since_epoch()).count();
  };
  EXPECT_EQ(after_start(2, 5), 2'000'000'005);
  EXPECT_EQ(after_start(2, 3'000'000'001), 5'000'000'001);
  EXPECT_EQ(after_start(-7, 5), 5);
  EXPECT_EQ(after_start(INT64_MIN, INT64_MIN), 0);
  EXPECT_GT(after_start(INT64_MAX, INT64_MAX), after_start(1 << 30, 0));
}

TEST(Jobs, SayHowAWaitEnded) {
  Jobs jobs;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  const JobId first = jobs.begin(), second = jobs.begin();
  const Jobs::Time past = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  EXPECT_EQ(jobs.wait(lock, first, past, true), -EBUSY);
  jobs.stall(first);
  EXPECT_EQ(jobs.wait(lock, first, past, false), -ETIMEDOUT);
  jobs.finish(second);
  EXPECT_EQ(jobs.wait(lock, second, past, false), 0) << "jobs end in any order";
  EXPECT_EQ(jobs.wait(lock, first, past, false), -ETIMEDOUT);
  EXPECT_FALSE(jobs.all_finished());
  jobs.finish(first);
  EXPECT_EQ(jobs.wait(lock, first, past, true), 0);
  EXPECT_TRUE(jobs.all_finished());
}

// A deadline counts from when the job stalls: before that, only the host is slow.
TEST(Jobs, TakeAsLongAsTheHostNeeds) {
  using std::chrono::milliseconds;
  for (const bool stalls : {false, true}) {
    Jobs jobs;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    const JobId job = jobs.begin();
    const auto start = std::chrono::steady_clock::now();
    std::thread chip([&] {
      std::this_thread::sleep_for(milliseconds(60));
      const std::lock_guard own(mutex);
      stalls ? jobs.stall(job) : jobs.finish(job);
    });
    EXPECT_EQ(jobs.wait(lock, job, start + milliseconds(5), false), stalls ? -ETIMEDOUT : 0);
    EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(60));
    lock.unlock();
    chip.join();
  }
}

TEST(FaultPlan, SaysWhichCallsFailAndHow) {
  using enum FaultKind;
  struct Row {
    const char *text, *call;
    std::vector<FaultKind> calls;  // results of the calls, from the first one on
    int number;
  };
  const Row rows[] = {{"submit:2:EIO", "submit", {none, number, none, none}, EIO},
                      {"submit:2-3:ETIMEDOUT", "submit", {none, number, number, none}, ETIMEDOUT},
                      {"submit:3-*:EIO", "submit", {none, none, number, number}, EIO},
                      {"submit:*:EIO", "submit", {number, number, number, number}, EIO},
                      {"submit:*:EIO", "gem_new", {none, none, none, none}, 0},
                      {"job:1:drop", "job", {drop, none, none, none}, 0},
                      {"job:2:late", "job", {none, late}, 0},
                      {"submit:1:hang,submit:2:reset,submit:3:reset_before", "submit", {hang, reset, reset_before}, 0},
                      {"submit:2:hang,submit:1-3:EIO", "submit", {number, hang, number, none}, EIO},
                      {"open:1:EHWPOISON", "open", {number, none}, EHWPOISON},
                      {"", "submit", {none, none}, 0}};
  for (const Row& row : rows) {
    const auto plan = FaultPlan::parse(row.text);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    for (size_t i = 0; i < row.calls.size(); ++i) {
      const Fault fault = plan->next(row.call);
      EXPECT_EQ(fault.kind, row.calls[i]) << row.text << ", call " << i + 1;
      EXPECT_EQ(fault.number, fault.kind == number ? row.number : 0) << row.text;
    }
  }
  const std::pair<const char*, const char*> wrong[] = {
      {"submit", "must be CALL:N:WHAT"},      {"submit:1", "must be CALL:N:WHAT"},
      {"nothing:1:EIO", "no call 'nothing'"}, {"submit:0:EIO", "from 1 up"},
      {"submit:1x:EIO", "from 1 up"},         {"submit::EIO", "from 1 up"},
      {"submit:-1:EIO", "from 1 up"},         {"submit:1-:EIO", "from 1 up"},
      {"submit:1-0:EIO", "from 1 up"},        {"submit:1-2x:EIO", "from 1 up"},
      {"submit:1:eio", "not an errno name"},  {"submit:1:", "not an errno name"},
      {"open:1:hang", "only submit can"},     {"submit:1:drop", "only job can drop"},
      {"job:1:EIO", "a job has no errno"},    {"submit:1:EIO,x", "fault 'x'"}};
  for (const auto& [text, message] : wrong) {
    const auto plan = FaultPlan::parse(text);
    ASSERT_FALSE(plan.ok()) << text;
    EXPECT_NE(plan.error().message.find(message), std::string::npos) << text << ": " << plan.error().message;
  }
  // Names of calls that a kernel driver does not have are refused, because they would never fail.
  const std::tuple<const char*, const char*, bool> of_kernels[] = {
      {"gem_cpu_prep:*:EIO", "a311d", true}, {"gem_cpu_prep:*:EIO", "rk3588", false}, {"prep_bo:*:EIO", "a311d", false},
      {"prep_bo:*:EIO", "rk3588", true},     {"job:1:drop", "imx8mp", false},         {"job:1:drop", "rk3588", true},
      {"submit:1:EIO", "a311d", true},       {"submit:1:EIO", "rk3588", true}};
  for (const auto& [text, chip, is_fine] : of_kernels) {
    if (!simulated_core(chip).ok()) continue;  // its family is not built
    EXPECT_EQ(FaultPlan::parse(text, chip).ok(), is_fine) << text << chip;
  }
}

TEST(Simulated, AllocatesLikeSoftpin) {
  auto device = open_incrementer();
  const Handle a = device->alloc(10).value(), b = device->alloc(5000).value(), c = device->alloc(1).value();
  EXPECT_NE(a, 0u);
  EXPECT_EQ(address_of(*device, a), 0x00400000u);
  EXPECT_EQ(address_of(*device, b), 0x00401000u);
  EXPECT_EQ(address_of(*device, c), 0x00403000u);
  std::ranges::fill(bytes_of(*device, b), uint8_t{7});
  ASSERT_TRUE(device->free(b).ok());
  EXPECT_FALSE(device->map(b).ok());
  EXPECT_FALSE(device->free(b).ok());
  const Handle d = device->alloc(8192).value();
  EXPECT_EQ(address_of(*device, d), 0x00401000u);
  for (uint8_t byte : bytes_of(*device, d)) ASSERT_EQ(byte, 0);
}

TEST(Simulated, RunsOutOfAddresses) {
  auto device = open_incrementer();
  EXPECT_EQ(device->alloc(1ULL << 32).error().code, ErrorCode::out_of_range);
  EXPECT_TRUE(device->alloc((1ULL << 32) - 0x00400000 - 4096).ok());
  EXPECT_TRUE(device->alloc(4096).ok());
  EXPECT_FALSE(device->alloc(1).ok());
}

TEST(Simulated, SubmitRunsOnListedBuffersOnly) {
  auto device = open_incrementer();
  const Handle in = device->alloc(4).value(), out = device->alloc(4).value();
  bytes_of(*device, in)[2] = 41;
  const uint32_t stream[] = {address_of(*device, in), address_of(*device, out), 4};
  const JobBuffer both[] = {{in, true, false}, {out, false, true}};
  const auto first = submit(*device, stream, both), second = submit(*device, stream, both);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_LT(*first, *second);
  EXPECT_TRUE(device->wait(*second, std::chrono::seconds(1)).ok());
  EXPECT_FALSE(device->wait(*second + 1, std::chrono::seconds(1)).ok());
  EXPECT_EQ(bytes_of(*device, out)[2], 42);

  const auto fault = submit(*device, stream, std::span(both).first(1));
  ASSERT_FALSE(fault.ok());
  EXPECT_EQ(fault.error().code, ErrorCode::fault);
  EXPECT_EQ(fault.error().message,
            "job 'test': sim:inc: target: 4 bytes at 0x401000 are not mapped; 0xffc bytes after the end of buffer 1 "
            "[0x400000, "
            "0x400004)");
  const JobBuffer twice[] = {{in, true, false}, {in, false, true}};
  EXPECT_EQ(submit(*device, stream, twice).error().message, "job 'test': sim:inc: submit: handle 1 is listed twice");
  const JobBuffer stranger[] = {{99, true, false}};
  EXPECT_EQ(submit(*device, stream, stranger).error().code, ErrorCode::invalid_argument);
}

// Computes slowly, and reports when it has begun.
class SlowIncrementer final : public Incrementer {
 public:
  explicit SlowIncrementer(std::atomic<bool>& begun) : begun_(begun) {}
  Result<void> run(const sim::Job& job, const sim::Memory& memory) override {
    begun_ = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    return Incrementer::run(job, memory);
  }

 private:
  std::atomic<bool>& begun_;
};

// Another thread waits for a job for less time than the host needs to compute it.
TEST(Simulated, ASlowHostIsNoTimeout) {
  namespace abi = ::skillet::kernels::etnaviv;
  std::atomic<bool> begun = false;
  const SimulatedCore slow = core_of(std::make_unique<SlowIncrementer>(begun), "inc", "sim:inc").value();
  const int fd = slow.calls->open("sim:inc");
  abi::GemNew buffer{.size = 4096, .flags = abi::kBoWriteCombined, .handle = 0};
  ASSERT_EQ(slow.calls->ioctl(fd, abi::kGemNew, &buffer), 0);
  constexpr uint32_t kAddress = 0x00400000;
  const uint32_t stream[] = {kAddress, kAddress + 64, 4};
  const abi::SubmitBo bo{
      .flags = abi::kSubmitBoRead | abi::kSubmitBoWrite, .handle = buffer.handle, .presumed = kAddress};
  std::thread owner([&] {
    abi::GemSubmit args{.nr_bos = 1,
                        .stream_size = sizeof stream,
                        .bos = reinterpret_cast<uintptr_t>(&bo),
                        .stream = reinterpret_cast<uintptr_t>(stream),
                        .flags = abi::kSubmitSoftpin,
                        .fence_fd = -1};
    EXPECT_EQ(slow.calls->ioctl(fd, abi::kGemSubmit, &args), 0) << slow.calls->reason();
  });
  while (!begun) std::this_thread::yield();
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  abi::GemCpuPrep soon{.handle = buffer.handle, .op = abi::kPrepRead, .timeout = {now.tv_sec, now.tv_nsec}};
  EXPECT_EQ(slow.calls->ioctl(fd, abi::kGemCpuPrep, &soon), 0);
  uint8_t* bytes = nullptr;
  abi::GemInfo info{.handle = buffer.handle, .pad = 0, .offset = 0};
  ASSERT_EQ(slow.calls->ioctl(fd, abi::kGemInfo, &info), 0);
  ASSERT_EQ(slow.calls->mmap(fd, 4096, info.offset, bytes), 0);
  EXPECT_EQ(bytes[64], 1) << "the wait ended with the job";
  owner.join();
  slow.calls->close(fd);
}

TEST(Recorder, KeepsBuffersAsTheyWereBeforeEachSubmission) {
  capture::Capture capture;
  const SimulatedCore simulated = incrementer();
  auto device = kernels::open_core(simulated.core, kernels::record(simulated.core, simulated.calls, capture)).value();
  const Handle in = device->alloc(4).value(), out = device->alloc(4).value(), other = device->alloc(9).value();
  bytes_of(*device, in)[1] = 1;
  const uint32_t stream[] = {address_of(*device, in), address_of(*device, out), 4};
  const JobBuffer both[] = {{in, true, false}, {out, false, true}};
  ASSERT_TRUE(submit(*device, stream, both).ok());
  ASSERT_TRUE(submit(*device, stream, both).ok());

  EXPECT_EQ(capture.device, simulated.core.info);
  ASSERT_EQ(capture.submissions.size(), 2u);
  const capture::BufferSnapshot expected_in{.handle = in,
                                            .address = address_of(*device, in),
                                            .size_bytes = 4,
                                            .read = true,
                                            .listed = true,
                                            .content = capture::Content::bytes,
                                            .bytes = Bytes{0, 1}};
  const auto& first = capture.submissions[0];
  EXPECT_EQ(first.jobs, capture::one_list({std::begin(stream), std::end(stream)}));
  EXPECT_EQ(first.buffers[0], expected_in);
  EXPECT_EQ(first.buffers[1].content, capture::Content::zero);
  EXPECT_TRUE(first.buffers[1].write && !first.buffers[1].read);
  EXPECT_EQ(first.buffers[2].handle, other);
  EXPECT_FALSE(first.buffers[2].listed);
  EXPECT_EQ(capture.submissions[1].buffers[1].bytes, (Bytes{1, 2, 1, 1}));
  EXPECT_EQ(capture::parse(capture::serialise(capture).value()).value(), capture);
}

// Our submissions are plain ones; another program's may not be.
TEST(Recorder, KeepsWhatIsNotAsInAPlainSubmission) {
  namespace abi = ::skillet::kernels::etnaviv;
  struct Case {
    uint32_t exec_state, flags;
    std::vector<capture::Parameter> parameters;
  };
  for (const Case& one : {Case{0, abi::kSubmitSoftpin, {}}, Case{2, abi::kSubmitSoftpin, {{"exec_state", 2}}},
                          Case{1, 0, {{"exec_state", 1}, {"flags", 0}}}}) {
    capture::Capture capture;
    const SimulatedCore simulated = null_core("inc").value();
    const kernels::SyscallsRef calls = kernels::record(simulated.core, simulated.calls, capture);
    const int fd = calls->open("null:inc");
    abi::GemSubmit args{.exec_state = one.exec_state, .flags = one.flags, .fence_fd = -1};
    ASSERT_EQ(calls->ioctl(fd, abi::kGemSubmit, &args), 0);
    calls->close(fd);
    ASSERT_EQ(capture.submissions.size(), 1u);
    EXPECT_EQ(capture.submissions[0].parameters, one.parameters);
  }
}

// ---- fences ----

struct Fence {
  explicit Fence(bool is_signalled) : fd(create_sync_file()) {
    if (is_signalled) signal_sync_file(fd);
  }
  ~Fence() { ::close(fd); }
  int fd;
};

TEST(SyncFile, TellsWhetherItIsSignalled) {
  const Fence waiting(false), signalled(true);
  EXPECT_EQ(sync_state(waiting.fd), SyncState::waiting);
  EXPECT_EQ(sync_state(signalled.fd), SyncState::signalled);
  signal_sync_file(signalled.fd);
  EXPECT_EQ(sync_state(signalled.fd), SyncState::signalled);
  EXPECT_EQ(sync_state(-1), SyncState::not_a_fence);
  EXPECT_EQ(sync_state(1 << 20), SyncState::not_a_fence);
  const int file = ::memfd_create("no fence", MFD_CLOEXEC);
  EXPECT_EQ(sync_state(file), SyncState::not_a_fence);
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  EXPECT_EQ(sync_state(pipe[0]), SyncState::not_a_fence) << "readable, but no fence";
  for (const int fd : {file, pipe[0], pipe[1]}) ::close(fd);
  EXPECT_NE(::fcntl(waiting.fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SimulatedCore, IsOpenedByItsNameOnly) {
  const SimulatedCore simulated = incrementer();
  for (const char* other : {"", "sim:in", "sim:incr", "SIM:inc", "/dev/accel/accel0"})
    EXPECT_EQ(simulated.calls->open(other), -ENOENT) << other;
  const int fd = simulated.calls->open("sim:inc");
  EXPECT_GT(fd, 0);
  EXPECT_EQ(simulated.calls->close(fd), 0);
}

TEST(SyncFile, IsSignalledWhenBothAre) {
  for (const bool first : {false, true}) {
    for (const bool second : {false, true}) {
      const Fence a(first), b(second);
      sync_merge_data args{};
      args.fd2 = b.fd;
      ASSERT_EQ(sync_file_ioctl(a.fd, SYNC_IOC_MERGE, &args, "npu"), 0);
      EXPECT_EQ(sync_state(args.fence), first && second ? SyncState::signalled : SyncState::waiting);
      ::close(args.fence);
    }
  }
  const Fence a(true), b(true);
  struct Row {
    int32_t fd2;
    uint32_t flags, pad;
    int result;
  };
  for (const Row& row : {Row{b.fd, 1, 0, -EINVAL}, Row{b.fd, 0, 1, -EINVAL}, Row{-1, 0, 0, -ENOENT}}) {
    sync_merge_data args{};
    args.fd2 = row.fd2, args.flags = row.flags, args.pad = row.pad;
    EXPECT_EQ(sync_file_ioctl(a.fd, SYNC_IOC_MERGE, &args, "npu"), row.result);
  }
  sync_merge_data args{};
  EXPECT_EQ(sync_file_ioctl(a.fd, SYNC_IOC_MERGE, nullptr, "npu"), -ENOTTY);
  EXPECT_EQ(sync_file_ioctl(-1, SYNC_IOC_MERGE, &args, "npu"), -ENOTTY);
  EXPECT_EQ(sync_file_ioctl(a.fd, SYNC_IOC_MERGE + 1, &args, "npu"), -ENOTTY);
}

TEST(SyncFile, DescribesItself) {
  for (const bool signalled : {false, true}) {
    const Fence fence(signalled);
    sync_file_info args{};
    ASSERT_EQ(sync_file_ioctl(fence.fd, SYNC_IOC_FILE_INFO, &args, "etnaviv"), 0);
    EXPECT_EQ(args.num_fences, 1u);
    EXPECT_EQ(args.status, signalled ? 1 : 0);
    EXPECT_STREQ(args.name, "skillet");
    sync_fence_info one{};
    args.sync_fence_info = reinterpret_cast<uintptr_t>(&one);
    ASSERT_EQ(sync_file_ioctl(fence.fd, SYNC_IOC_FILE_INFO, &args, "etnaviv"), 0);
    EXPECT_STREQ(one.obj_name, "npu");
    EXPECT_STREQ(one.driver_name, "etnaviv");
    EXPECT_EQ(one.status, signalled ? 1 : 0);
    args.flags = 1;
    EXPECT_EQ(sync_file_ioctl(fence.fd, SYNC_IOC_FILE_INFO, &args, "etnaviv"), -EINVAL);
    args.flags = 0, args.pad = 1;
    EXPECT_EQ(sync_file_ioctl(fence.fd, SYNC_IOC_FILE_INFO, &args, "etnaviv"), -EINVAL);
  }
}

}  // namespace
}  // namespace skillet::fake
