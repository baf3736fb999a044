// The client of rocket against the emulated kernel driver, in this process, with a chip defined by the test.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/testing/threads_in_children.h"
#include "capture/capture.h"
#include "kernels/api/forwarding_calls.h"
#include "rocket_node.h"

namespace skillet::testing {
namespace {

TEST_F(Rocket, SubmitsSeveralJobsOfSeveralTasksInOneCall) {
  start("submit:2-*:EIO");
  const auto device = open();
  EXPECT_NE(device->address(device->alloc(1).value()).value(), 0u) << "address 0 is guarded";
  const Chain first = chain(*device, 3), second = chain(*device, 2);
  const kernels::JobId jobs[] = {first.job, second.job, first.job};
  const auto fence = device->submit(jobs);
  ASSERT_TRUE(fence.ok()) << fence.error().message;
  EXPECT_TRUE(device->wait(*fence, milliseconds(1000)).ok());
  EXPECT_EQ(byte(*device, first, 3), 3);
  EXPECT_EQ(byte(*device, second, 2), 2);
  EXPECT_FALSE(device->submit(jobs).ok());
}

TEST_F(Rocket, RefusesWhatTheKernelWouldDropWithoutAWord) {
  start();
  const auto device = open();
  const kernels::Handle data = device->alloc(64).value(), commands = device->alloc_commands(64).value();
  struct Case {
    kernels::Job job;
    const char* message;
  };
  const kernels::JobBuffer out{data, true, true};
  for (const Case& one : {Case{{"j", {}, {out}}, "0 tasks"}, Case{{"j", {{commands, 0, 16}}, {}}, "write 0 buffers"},
                          Case{{"j", {{commands, 8, 8}}, {out}}, "8 bytes at 8 of 64"},
                          Case{{"j", {{commands, 0, 12}}, {out}}, "12 bytes at 0 of 64"},
                          Case{{"j", {{commands, 48, 24}}, {out}}, "24 bytes at 48 of 64"},
                          Case{{"j", {{commands, 0, 0}}, {out}}, "0 bytes at 0 of 64"},
                          Case{{"j", {{commands, 0, 16}}, {out, {data, true}}}, "listed twice"},
                          Case{{"j", {{commands, 0, 16}}, {out, {99, true}}}, "no buffer has handle 99"}}) {
    const auto refused = device->prepare(one.job);
    ASSERT_FALSE(refused.ok()) << one.message;
    EXPECT_NE(refused.error().message.find(one.message), std::string::npos) << refused.error().message;
  }
}

// Loses one job of a call: the others run, the call and the wait succeed.
TEST_F(Rocket, LosesSingleJobsOfACall) {
  for (const char* fault : {"job:2:drop", "job:2:reset", "job:2:hang"}) {
    start(fault);
    const auto device = open();
    const Chain first = chain(*device, 3), second = chain(*device, 2), third = chain(*device, 2);
    const kernels::JobId jobs[] = {first.job, second.job, third.job};
    EXPECT_TRUE(device->wait(device->submit(jobs).value(), milliseconds(5000)).ok()) << fault;
    EXPECT_EQ(byte(*device, first, 3), 3) << fault;
    EXPECT_EQ(byte(*device, second, 2), 0) << fault;
    EXPECT_EQ(byte(*device, third, 2), 2) << fault;
  }
  for (const char* wrong : {"job:1:EIO", "submit:1:drop"}) EXPECT_FALSE(fake::FaultPlan::parse(wrong).ok()) << wrong;
}

// The node does not identify the chip; the devices that the driver is bound to do.
TEST_F(Rocket, IsIdentifiedByItsCores) {
  if (!fake::rocket::has("rk3588")) GTEST_SKIP() << "this build has no family behind rocket";
  fake::Options options{.faults = {}, .is_own_process = true};
  const auto calls =
      std::make_shared<fake::InProcess>(fake::rocket::create("rk3588", adder(), std::move(options)), kNode);
  const kernels::NodeReport report = kernels::ask_node(kNode, calls).value();
  EXPECT_EQ(report.kernel_driver, "rocket");
  ASSERT_EQ(report.cores.size(), 1u) << "one node, which shares its cores out";
  EXPECT_EQ(report.cores[0].info.compatible, "rockchip,rk3588-rknn-core");
  EXPECT_EQ(report.cores[0].info.fact(kernels::kCoresFact), 3u);
  start();  // the test's own chip has no cores in sysfs
  const kernels::NodeReport unknown = kernels::ask_node(kNode, calls_).value();
  EXPECT_EQ(unknown.cores.at(0).info.compatible, "");
  EXPECT_EQ(unknown.cores.at(0).info.fact(kernels::kCoresFact), 0u);
}

// An accelerator of another driver has the first node.
class Neighbours final : public kernels::ForwardingCalls {
 public:
  static constexpr int kOther = 1 << 20;  // not a descriptor of the emulated driver
  using ForwardingCalls::ForwardingCalls;

  int open(const std::string& path) override { return path == "/dev/accel/accel0" ? kOther : below_->open(path); }
  int close(int fd) override { return fd == kOther ? 0 : below_->close(fd); }
  int ioctl(int fd, unsigned long request, void* argument) override {
    if (fd != kOther) return below_->ioctl(fd, request, argument);
    if (request != drm::kVersion) return -EINVAL;
    auto& version = *static_cast<drm::Version*>(argument);
    std::strcpy(version.name, "other");
    version.name_len = 5;
    return 0;
  }
};

TEST_F(Rocket, IsFoundBesideOtherAccelerators) {
  fake::Options options{.faults = {}, .is_own_process = true};
  auto kernel = fake::rocket::create("adder", adder(), std::move(options));
  const auto calls =
      std::make_shared<Neighbours>(std::make_shared<fake::InProcess>(std::move(kernel), "/dev/accel/accel1"));
  const std::vector<kernels::NodeReport> found = kernels::find_devices("", calls);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kernel_driver, "other");
  EXPECT_TRUE(found[0].cores.empty() && !found[0].error);
  EXPECT_EQ(found[1].node, "/dev/accel/accel1");
  ASSERT_EQ(found[1].cores.size(), 1u);
  EXPECT_TRUE(kernels::open_core(found[1].cores[0], calls).ok());
}

TEST_F(Rocket, IsRecorded) {
  start("submit:3:EINVAL");
  capture::Capture recorded;
  const kernels::Core core{.info = {.kernel_driver = "rocket", .node = kNode, .compatible = {}, .facts = {}}};
  const auto device = kernels::rocket::open_device(core, kernels::record(core, calls_, recorded)).value();
  const Chain first = chain(*device, 2), second = chain(*device, 1);
  const kernels::JobId jobs[] = {first.job, second.job};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(device->wait(device->submit(jobs).value(), milliseconds(1000)).ok());
  EXPECT_FALSE(device->submit(jobs).ok());
  ASSERT_EQ(recorded.submissions.size(), 2u) << "without the one that the kernel refused";
  EXPECT_EQ(recorded.device.kernel_driver, "rocket");
  const capture::Submission& one = recorded.submissions[1];
  const uint64_t commands = device->address(first.commands).value();
  ASSERT_EQ(one.jobs.size(), 2u);
  const std::vector<capture::Commands> tasks = {{{}, commands, 8}, {{}, commands + 16, 8}};
  EXPECT_EQ(one.jobs[0].commands, tasks);
  for (const capture::BufferSnapshot& buffer : one.buffers) {
    const bool is_data = buffer.handle == first.data || buffer.handle == second.data;
    EXPECT_EQ(buffer.write, is_data) << "buffer " << buffer.handle;
    EXPECT_EQ(buffer.listed, is_data) << "buffer " << buffer.handle;
    if (buffer.handle == first.data) {
      EXPECT_EQ(buffer.bytes, (Bytes{0, 1, 2}));
      EXPECT_EQ(buffer.address, device->address(first.data).value());
    }
    if (buffer.handle == first.commands) {
      EXPECT_GT(buffer.bytes.size(), 16u) << "jobs reach buffers that are not listed";
    }
  }
  EXPECT_EQ(capture::parse(capture::serialise(recorded).value()).value(), recorded);
}

// A buffer that one job reads and another of the same call writes is listed as both.
TEST_F(Rocket, UsesOfAllJobsAreRecorded) {
  start();
  capture::Capture recorded;
  const kernels::Core core{.info = {.kernel_driver = "rocket", .node = kNode, .compatible = {}, .facts = {}}};
  const auto device = kernels::rocket::open_device(core, kernels::record(core, calls_, recorded)).value();
  const Chain one = chain(*device, 1);
  const kernels::Handle other = device->alloc(4096).value();
  const auto reader = device->prepare({.name = "reader",
                                       .commands = {{one.commands, 0, 8}},
                                       .buffers = {{one.data, true, false}, {other, true, true}}});
  for (const bool reads_first : {false, true}) {
    const kernels::JobId jobs[] = {reads_first ? *reader : one.job, reads_first ? one.job : *reader};
    ASSERT_TRUE(device->wait(device->submit(jobs).value(), milliseconds(1000)).ok());
    for (const capture::BufferSnapshot& buffer : recorded.submissions.back().buffers)
      EXPECT_EQ(buffer.read && buffer.write, buffer.handle == one.data) << "buffer " << buffer.handle;
  }
}

// For each of these, SUBMIT returns 0; the job is not run, the others are.
TEST_F(Rocket, DropsBadJobsSilently) {
  on_misuse_ = fake::OnMisuse::report;  // a kernel without those bugs
  start();
  const auto device = open();
  const Chain good = chain(*device, 1);
  const int fd = calls_->open(kNode);
  abi::CreateBo data{.size = 4096, .handle = 0, .dma_address = 0, .offset = 0};
  ASSERT_EQ(calls_->ioctl(fd, abi::kCreateBo, &data), 0);
  uint8_t* bytes = nullptr;
  ASSERT_EQ(calls_->mmap(fd, 4096, data.offset, bytes), 0);
  const auto address = static_cast<uint32_t>(data.dma_address);
  store_le(bytes, address + 64);
  store_le(bytes + 4, address + 65);
  const abi::Task task{address, 1}, empty{address, 0};
  const uint32_t handles[] = {data.handle, data.handle, 77};
  const auto pointer = [](const void* at) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(at)); };
  const abi::SubmitJob sound{.tasks = pointer(&task),
                             .in_bo_handles = 0,
                             .out_bo_handles = pointer(handles),
                             .task_count = 1,
                             .task_struct_size = 8,
                             .in_bo_handle_count = 0,
                             .out_bo_handle_count = 1};
  abi::SubmitJob no_tasks = sound, small_tasks = sound, no_commands = sound, twice = sound, in_and_out = sound,
                 other = sound, too_many = sound, nowhere = sound;
  too_many.task_count = (1 << 20) + 1;
  nowhere.in_bo_handle_count = 1;
  no_tasks.task_count = 0;
  small_tasks.task_struct_size = 4;
  no_commands.tasks = pointer(&empty);
  twice.out_bo_handle_count = 2;
  in_and_out.in_bo_handles = pointer(handles), in_and_out.in_bo_handle_count = 1;
  other.out_bo_handles = pointer(handles + 2);
  const auto result_of = [&](const abi::SubmitJob& job) {
    bytes[65] = 0;
    abi::Submit args{.jobs = pointer(&job), .job_count = 1, .job_struct_size = sizeof job, .reserved = 0};
    EXPECT_EQ(calls_->ioctl(fd, abi::kSubmit, &args), 0);
    abi::PrepBo prepare{.handle = data.handle, .reserved = 0, .timeout_ns = INT64_MAX};
    EXPECT_EQ(calls_->ioctl(fd, abi::kPrepBo, &prepare), 0);
    return bytes[65];
  };
  for (const abi::SubmitJob& bad : {no_tasks, small_tasks, no_commands, twice, in_and_out, other, too_many, nowhere})
    EXPECT_EQ(result_of(bad), 0);
  EXPECT_EQ(result_of(sound), 1);
  // A later kernel's structures are larger; the additional fields are not read.
  struct LaterTask {
    abi::Task task;
    uint64_t more = ~uint64_t{0};
  };
  struct LaterJob {
    abi::SubmitJob job;
    uint64_t more = ~uint64_t{0};
  };
  const LaterTask tasks[] = {{task}, {{address + 16, 1}}};
  LaterJob later[] = {{sound}, {sound}};
  later[1].job.tasks = pointer(tasks), later[1].job.task_count = 2, later[1].job.task_struct_size = sizeof(LaterTask);
  store_le(bytes + 16, address + 65);
  store_le(bytes + 20, address + 66);
  bytes[65] = bytes[66] = 0;
  abi::Submit both{.jobs = pointer(later), .job_count = 2, .job_struct_size = sizeof(LaterJob), .reserved = 0};
  EXPECT_EQ(calls_->ioctl(fd, abi::kSubmit, &both), 0);
  abi::PrepBo ended{.handle = data.handle, .reserved = 0, .timeout_ns = INT64_MAX};
  EXPECT_EQ(calls_->ioctl(fd, abi::kPrepBo, &ended), 0);
  EXPECT_EQ(bytes[66], 2) << "the second task of the second job";
  abi::Submit bad{.jobs = 0, .job_count = 1, .job_struct_size = 32, .reserved = 0};
  EXPECT_EQ(calls_->ioctl(fd, abi::kSubmit, &bad), -EINVAL);
  bad.job_struct_size = sizeof(abi::SubmitJob);
  EXPECT_EQ(calls_->ioctl(fd, abi::kSubmit, &bad), -EFAULT);
  bad = {.jobs = 0, .job_count = 0, .job_struct_size = sizeof(abi::SubmitJob), .reserved = 1};
  EXPECT_EQ(calls_->ioctl(fd, abi::kSubmit, &bad), 0) << "of no jobs, nothing else is looked at";
  bad.reserved = 0;
  EXPECT_EQ(calls_->ioctl(fd, abi::kSubmit, &bad), 0);
  bad.job_count = (1 << 20) + 1;
  EXPECT_EQ(calls_->ioctl(fd, abi::kSubmit, &bad), -ENOMEM);
  bad.job_count = 1 << 20;
  EXPECT_EQ(calls_->ioctl(fd, abi::kSubmit, &bad), -EFAULT) << "so many may be, if they were there";
  // A wait without a timeout returns EBUSY at once; one with a timeout reports that it has passed.
  std::memset(bytes, 0, 8);
  abi::Submit stalls{.jobs = pointer(&sound), .job_count = 1, .job_struct_size = sizeof sound, .reserved = 0};
  EXPECT_EQ(calls_->ioctl(fd, abi::kSubmit, &stalls), 0);
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t soon = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec + 20'000'000;
  for (const auto& [timeout_ns, result] : {std::pair{int64_t{0}, -EBUSY}, {soon, -ETIMEDOUT}, {INT64_MAX, 0}}) {
    abi::PrepBo prepare{.handle = data.handle, .reserved = 0, .timeout_ns = timeout_ns};
    EXPECT_EQ(calls_->ioctl(fd, abi::kPrepBo, &prepare), result) << timeout_ns;
  }
  calls_->close(fd);
  EXPECT_TRUE(device->wait(device->submit({&good.job, 1}).value(), milliseconds(1000)).ok());
}

// A shorter wait fails with an error that names the job and the time.
TEST_F(Rocket, AStalledJobEndsByTheTimeoutLikeOneThatIsDone) {
  start("submit:2:hang");
  const auto device = open();
  const Chain stalls = chain(*device, 0), fine = chain(*device, 1);
  const kernels::JobId one[] = {stalls.job}, two[] = {fine.job, stalls.job};
  for (const std::span<const kernels::JobId> jobs :
       {std::span<const kernels::JobId>(one), std::span<const kernels::JobId>(two)}) {
    const auto start = std::chrono::steady_clock::now();
    const auto fence = device->submit(jobs).value();
    const std::string who = jobs.size() == 1 ? "job 'chain'" : "2 jobs ('chain' to 'chain')";
    for (const int patience_ms : {0, 20}) {
      const Error late = device->wait(fence, milliseconds(patience_ms)).error();
      EXPECT_EQ(late.code, ErrorCode::timeout);
      const std::string text = fmt::format("waiting up to {} ms for {}: ETIMEDOUT (", patience_ms, who);
      EXPECT_NE(late.message.find(text), std::string::npos) << late.message;
    }
    EXPECT_TRUE(device->wait(fence, milliseconds(5000)).ok());
    const auto took = std::chrono::steady_clock::now() - start;
    EXPECT_GE(took, milliseconds(450));
    EXPECT_LT(took, milliseconds(4000));
  }
  EXPECT_EQ(byte(*device, fine, 1), 0) << "it was to hang";
}

// A job takes 80 ms itself, plus the time of the jobs before it; the wait is 10 ms.
TEST_F(Rocket, ASlowHostIsNoTimeout) {
  start();
  const auto device = open();
  const Chain one = chain(*device, 40), other = chain(*device, 40);
  const kernels::JobId jobs[] = {one.job, other.job};
  ASSERT_TRUE(device->submit(jobs).ok());
  EXPECT_TRUE(device->wait(device->submit(jobs).value(), milliseconds(10)).ok());
  EXPECT_EQ(byte(*device, other, 40), 40);
}

TEST_F(Rocket, InThisProcessAFaultIsAnErrorWithItsReason) {
  start("", fake::OnFault::error);
  const auto device = open();
  const Chain stalls = chain(*device, 0);
  const auto fence = device->submit({&stalls.job, 1}).value();
  const auto waited = device->wait(fence, milliseconds(5000));
  ASSERT_FALSE(waited.ok());
  EXPECT_NE(waited.error().message.find("the chip waits"), std::string::npos) << waited.error().message;
  const Chain fine = chain(*device, 1);
  const auto next = device->submit({&fine.job, 1});
  ASSERT_TRUE(next.ok()) << "it is told once: " << next.error().message;
  EXPECT_TRUE(device->wait(*next, milliseconds(5000)).ok());
  EXPECT_EQ(byte(*device, fine, 1), 1);
}

// The kernel accepts a job whose lists lack a buffer, but then no wait covers what is written there. In this process
// that is a fault. A missing read only affects the order of jobs.
TEST_F(Rocket, InThisProcessAJobWritesOnlyWhatItLists) {
  enum class Listed : uint8_t { no, read, write };
  start("", fake::OnFault::error);
  const auto device = open();
  const auto message_of = [&](Listed source, Listed second_target) {
    const kernels::Handle from = device->alloc(64).value(), first = device->alloc(64).value(),
                          second = device->alloc(64).value(), commands = device->alloc_commands(16).value();
    const auto bytes = device->map(commands).value();
    size_t at = 0;
    for (const kernels::Handle to : {first, second}) {
      store_le(bytes.data() + at, static_cast<uint32_t>(device->address(from).value()));
      store_le(bytes.data() + at + 4, static_cast<uint32_t>(device->address(to).value()));
      at += 8;
    }
    EXPECT_TRUE(device->end_cpu(commands).ok());
    kernels::Job job{.name = "copy", .commands = {{commands, 0, 16}}, .buffers = {{first, false, true}}};
    if (source != Listed::no) job.buffers.push_back({from, true, source == Listed::write});
    if (second_target != Listed::no) job.buffers.push_back({second, true, second_target == Listed::write});
    const kernels::JobId id = device->prepare(job).value();
    const auto waited = device->wait(device->submit({&id, 1}).value(), milliseconds(5000));
    EXPECT_EQ(device->map(second).value()[0], waited.ok() ? 1 : 0);
    return waited.ok() ? std::string() : waited.error().message;
  };
  for (const Listed source : {Listed::no, Listed::read, Listed::write})
    EXPECT_EQ(message_of(source, Listed::write), "");
  for (const Listed target : {Listed::no, Listed::read}) {
    const std::string message = message_of(Listed::read, target);
    EXPECT_NE(message.find("which the job does not list as written"), std::string::npos) << message;
  }
}

TEST_F(Rocket, FilesUseCoresAtTheSameTime) {
  start();
  std::vector<std::unique_ptr<kernels::Device>> files;
  std::vector<Chain> chains;
  std::vector<kernels::Fence> fences;
  for (int i = 0; i < 5; ++i) {
    files.push_back(open());
    chains.push_back(chain(*files.back(), 40));
    const kernels::JobId twice[] = {chains.back().job, chains.back().job};
    fences.push_back(files.back()->submit(twice).value());
  }
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_TRUE(files[i]->wait(fences[i], milliseconds(10000)).ok());
    EXPECT_EQ(byte(*files[i], chains[i], 40), 40);
  }
  EXPECT_GT(most_, 1);
  EXPECT_LE(most_, 3);
}

// A freed buffer stays until the jobs that may use it have ended; closing the file waits for them.
TEST_F(Rocket, FreesAndClosesWhileJobsRun) {
  start();
  auto device = open();
  const Chain running = chain(*device, 50);
  const uint64_t address = device->address(running.data).value();
  const auto fence = device->submit({&running.job, 1}).value();
  ASSERT_TRUE(device->free(running.data).ok());
  ASSERT_TRUE(device->free(running.commands).ok());
  EXPECT_NE(device->address(device->alloc(4096).value()).value(), address);
  EXPECT_TRUE(device->wait(fence, milliseconds(5000)).ok());
  calls_->pause(release_time_);
  EXPECT_EQ(device->address(device->alloc(4096).value()).value(), address);
  const Chain last = chain(*device, 50);
  ASSERT_TRUE(device->submit({&last.job, 1}).ok());
  device.reset();
  EXPECT_EQ(most_, 1);
}

// Jobs that outlast the wait of close(): their commands stay until the kernel has given up the jobs.
TEST_F(Rocket, ClosesNoHandleBeforeItsJobsHaveEnded) {
  start("job:1-6:hang");
  auto device = open();
  const Chain chains[] = {chain(*device, 2), chain(*device, 2)};
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(device->submit({&chains[i % 2].job, 1}).ok());
  device.reset();  // otherwise the fake ends the process
}

// A job that reads 40 bytes of one buffer and writes each plus one to another.
struct Copier {
  kernels::Handle from = 0, to = 0, commands = 0;
  kernels::JobId job = 0;
};
Copier copier(kernels::Device& device) {
  constexpr uint32_t kSteps = 40;
  Copier out{device.alloc(4096).value(), device.alloc(4096).value(), device.alloc_commands(8 * kSteps).value()};
  const auto from = static_cast<uint32_t>(device.address(out.from).value());
  const auto to = static_cast<uint32_t>(device.address(out.to).value());
  auto bytes = device.map(out.commands).value();
  for (uint32_t i = 0; i < kSteps; ++i) {
    store_le(bytes.data() + 8 * i, from + i);
    store_le(bytes.data() + 8 * i + 4, to + i);
  }
  out.job = device
                .prepare({.name = "copy",
                          .commands = {{out.commands, 0, 8 * kSteps}},
                          .buffers = {{out.from, true, false}, {out.to, false, true}}})
                .value();
  return out;
}

// The kernel's own wait covers only writing jobs, but the bytes that a job reads must not change either.
TEST_F(Rocket, AWriteWaitsForJobsThatRead) {
  start();
  const auto device = open();
  const Chain before = chain(*device, 10);
  const Copier copy = copier(*device);
  for (const kernels::JobId job : {before.job, copy.job}) ASSERT_TRUE(device->submit({&job, 1}).ok());
  ASSERT_TRUE(device->begin_cpu(copy.from, true).ok());
  EXPECT_EQ(device->map(copy.to).value()[39], 1) << "the job has ended";
}

// The kernel keeps listed buffers alive, but commands and constants are not listed.
TEST_F(Rocket, WhatNoJobListsIsKeptUntilItHasEnded) {
  start();
  const auto device = open();
  const Copier copy = copier(*device);
  const auto fence = device->submit({&copy.job, 1}).value();
  ASSERT_TRUE(device->free(copy.commands).ok());
  for (int i = 0; i < 3; ++i) {
    const auto bytes = device->map(device->alloc(4096).value()).value();
    std::ranges::fill(bytes, 0xFF);
  }
  EXPECT_TRUE(device->wait(fence, std::chrono::nanoseconds::max()).ok());
  ASSERT_TRUE(device->begin_cpu(copy.to, false).ok());
  EXPECT_EQ(device->map(copy.to).value()[39], 1) << "it had its commands to the end";
}

TEST_F(Rocket, FencesAndSizesAtTheirLimits) {
  start("create_bo:2:EINTR,create_bo:3:EAGAIN,create_bo:5:ENOMEM");
  const auto device = open();
  EXPECT_TRUE(device->alloc(4096).ok()) << "after an interruption of each kind";
  EXPECT_EQ(device->alloc(4096).error().code, ErrorCode::io);
  EXPECT_EQ(device->alloc(0).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(device->alloc(uint64_t{1} << 32).error().code, ErrorCode::out_of_range);
  const Chain one = chain(*device, 1);
  EXPECT_EQ(device->wait(1, milliseconds(1)).error().code, ErrorCode::invalid_argument) << "nothing was submitted";
  kernels::Fence last = 0;
  for (int i = 0; i < 300; ++i) last = device->submit({&one.job, 1}).value();  // more than are kept
  EXPECT_TRUE(device->wait(last, milliseconds(10000)).ok());
  EXPECT_TRUE(device->wait(last - 299, milliseconds(1)).ok());
  EXPECT_EQ(device->wait(last + 1, milliseconds(1)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(device->wait(0, milliseconds(1)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(device->submit({}).error().code, ErrorCode::invalid_argument);
  device->release(one.job);
  EXPECT_EQ(device->submit({&one.job, 1}).error().code, ErrorCode::invalid_argument);
}

// The child has no threads: it starts its own, and does not wait for its parent's jobs.
TEST_F(Rocket, AChildOfForkGoesOn) {
  if (!kChildrenMayHaveThreads) GTEST_SKIP() << "no threads in children";
  start();
  const auto device = open();
  const Chain running = chain(*device, 200), small = chain(*device, 2);
  const auto fence = device->submit({&running.job, 1}).value();
  calls_->lock_all();
  const pid_t child = ::fork();
  calls_->unlock_all();
  if (child == 0) {
    ::alarm(20);
    const auto own = device->submit({&small.job, 1});
    const bool ok = own.ok() && device->wait(*own, milliseconds(5000)).ok() && device->map(small.data).value()[2] == 2;
    ::_exit(ok ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(device->wait(fence, milliseconds(10000)).ok());
  EXPECT_EQ(byte(*device, running, 200), 200);
}

}  // namespace
}  // namespace skillet::testing
