// The client of ethosu against the emulated kernel driver, in this process, with a simulated chip behind it.
#include "kernels/ethosu/fake/kernel.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "../kernels/logged_calls.h"
#include "base/bytes.h"
#include "kernels/ethosu/abi.h"
#include "kernels/ethosu/client/ethosu.h"
#include "kernels/fake/in_process.h"
#include "npus/ethosu/hw/testing/streams.h"

namespace skillet::testing {
namespace {

namespace abi = ::skillet::kernels::ethosu;
namespace drm = ::skillet::kernels::drm;
namespace hw = ::skillet::ethosu::hw;
using hw::Words;
using kernels::Handle;
using kernels::JobId;
using std::chrono::milliseconds;

constexpr const char* kNode = "/dev/accel/accel0";
constexpr const char* kChip = "imx93";

// Copies 64 bytes from region 0 to region 1.
Words copy_stream() {
  Words stream;
  hw::add_copy(stream, 0, 0, 1, 16, 64);
  hw::add_stop(stream);
  return stream;
}

class Ethosu : public ::testing::Test {
 protected:
  void start(const std::string& faults = "", fake::OnFault on_fault = fake::OnFault::reset) {
    fake::Options options{
        .faults = fake::FaultPlan::parse(faults, kChip).value(), .on_fault = on_fault, .is_own_process = true};
    calls_ = std::make_shared<fake::InProcess>(
        fake::ethosu::create(kChip, sim::create(kChip).value(), std::move(options)), kNode);
    core_ = kernels::ask_node(kNode, calls_).value().cores.at(0);
    device_ = kernels::open_core(core_, calls_).value();
  }
  Handle commands(const Words& stream) {
    const auto bytes = as_bytes(std::span<const uint32_t>(stream));
    const Handle handle = device_->alloc_commands(bytes.size()).value();
    std::ranges::copy(bytes, device_->map(handle).value().begin());
    return handle;
  }
  Result<JobId> prepare(const Words& stream, std::vector<kernels::JobBuffer> buffers, uint64_t sram_bytes = 0) {
    return device_->prepare({.name = "j",
                             .commands = {{commands(stream), 0, stream.size() * 4}},
                             .buffers = std::move(buffers),
                             .sram_bytes = sram_bytes});
  }
  Handle filled(uint8_t value, uint64_t size = 4096) {
    const Handle handle = device_->alloc(size).value();
    EXPECT_TRUE(device_->begin_cpu(handle, true).ok());
    std::ranges::fill(device_->map(handle).value(), value);
    EXPECT_TRUE(device_->end_cpu(handle).ok());
    return handle;
  }
  Result<void> run(JobId job, milliseconds timeout = milliseconds(1000)) {
    SK_TRY_ASSIGN(const kernels::Fence fence, device_->submit({&job, 1}));
    return device_->wait(fence, timeout);
  }
  uint8_t byte(Handle handle, size_t at) {
    EXPECT_TRUE(device_->begin_cpu(handle, false).ok());
    return device_->map(handle).value()[at];
  }
  static kernels::JobBuffer read(Handle handle, uint8_t slot) { return {handle, true, false, slot}; }
  static kernels::JobBuffer written(Handle handle, uint8_t slot) { return {handle, true, true, slot}; }

  std::shared_ptr<fake::InProcess> calls_;
  kernels::Core core_;
  std::unique_ptr<kernels::Device> device_;
};

TEST_F(Ethosu, SaysWhichNpuItIs) {
  start();
  EXPECT_EQ(core_.info.kernel_driver, "ethosu");
  EXPECT_EQ(core_.info.fact("config"), 0x10003008U) << "256 multiply-adds, 48 KiB, product 1";
  EXPECT_EQ(core_.info.fact("id") >> 28, 1U);
  EXPECT_GT(core_.info.fact("sram_size"), 0U);
}

TEST_F(Ethosu, RunsJobsInTheirRegions) {
  start();
  const Handle from = filled(7), to = filled(1);
  EXPECT_EQ(device_->address(to).value(), 0U) << "buffers have no addresses";
  const auto job = prepare(copy_stream(), {read(from, 0), written(to, 1)});
  ASSERT_TRUE(job.ok()) << job.error().message;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(run(*job).ok());
  EXPECT_EQ(byte(to, 15), 1);
  EXPECT_EQ(byte(to, 16), 7);
  EXPECT_EQ(byte(to, 79), 7);
  EXPECT_EQ(byte(to, 80), 1);
  const JobId twice[] = {*job, *job};
  EXPECT_TRUE(device_->wait(device_->submit(twice).value(), milliseconds(1000)).ok());
  device_->release(*job);
  EXPECT_FALSE(device_->submit({&*job, 1}).ok());
}

// At most 256 submissions are kept; then the client checks with BO_WAIT whether the oldest is done.
TEST_F(Ethosu, SubmissionsAreKeptWithinALimit) {
  start();
  const auto logged = std::make_shared<LoggedCalls>(
      calls_, [](unsigned long request, const void*) { return request == abi::kBoWait ? "wait" : ""; });
  device_ = kernels::open_core(core_, logged).value();
  const JobId job = prepare(copy_stream(), {read(filled(7), 0), written(filled(1), 1)}).value();
  logged->take();
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(device_->submit({&job, 1}).ok());
  EXPECT_EQ(logged->take(), "");
  ASSERT_TRUE(device_->submit({&job, 1}).ok());
  EXPECT_NE(logged->take().find("wait"), std::string::npos);
}

// Memory on the chip where it is large enough, otherwise a buffer: the results are equal.
TEST_F(Ethosu, FastMemoryIsOnTheChipOrABuffer) {
  start();
  const uint64_t sram = core_.info.fact("sram_size");
  for (const uint64_t at : {uint64_t{0}, sram - 64, sram, 3 * sram}) {
    const Handle from = filled(9), to = filled(1);
    Words stream;
    hw::add_copy(stream, 0, 0, 2, at, 64);
    add(stream, hw::OpDmaWait{});
    hw::add_copy(stream, 2, at, 1, 0, 64);
    hw::add_stop(stream);
    const auto job = prepare(stream, {read(from, 0), written(to, 1)}, at + 64);
    ASSERT_TRUE(job.ok()) << job.error().message;
    const auto done = run(*job);
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_EQ(byte(to, 63), 9) << at;
    device_->release(*job);
  }
  const Handle from = filled(9), to = filled(1);
  const auto both = prepare(copy_stream(), {read(from, 0), written(to, 2)}, 64);
  ASSERT_FALSE(both.ok());
  EXPECT_NE(both.error().message.find("region 2 is both a buffer and on-chip memory"), std::string::npos);
}

// The chip's memory suffices up to its full size; one byte more needs a buffer, for which there is no memory here.
TEST_F(Ethosu, FastMemoryIsABufferWhereTheChipHasLess) {
  start("bo_create:3-*:ENOMEM");
  const uint64_t sram = core_.info.fact("sram_size");
  const Handle from = filled(9), to = filled(1);
  EXPECT_TRUE(prepare(copy_stream(), {read(from, 0), written(to, 1)}, sram).ok());
  EXPECT_FALSE(prepare(copy_stream(), {read(from, 0), written(to, 1)}, sram + 1).ok());
}

TEST_F(Ethosu, RefusesWhatIsNoJob) {
  start();
  const Handle from = filled(7), to = filled(1), stream = commands(copy_stream());
  struct Case {
    kernels::Job job;
    const char* says;
  };
  const uint64_t size = copy_stream().size() * 4;
  for (const Case& one :
       {Case{{"j", {{stream, 0, size}}, {read(from, 0)}}, "writes no buffer"},
        Case{{"j", {}, {written(to, 1)}}, "0 lists of commands"},
        Case{{"j", {{stream, 0, size}, {stream, 0, size}}, {written(to, 1)}}, "2 lists of commands"},
        Case{{"j", {{stream, 0, size}}, {read(from, 1), written(to, 1)}}, "region 1 is given twice"},
        Case{{"j", {{stream, 0, size}}, {read(to, 0), written(to, 1)}}, "is in two regions"},
        Case{{"j", {{stream, 0, size}}, {written(to, 8)}}, "region 8 is given twice, or does not exist"},
        Case{{"j", {{stream, 0, size}}, {written(99, 1)}}, "no buffer has handle 99"},
        Case{{"j", {{stream, 0, size}}, {written(stream, 1)}}, "no buffer has handle"},
        Case{{"j", {{to, 0, 4}}, {written(to, 1)}}, "no commands have handle"},
        Case{{"j", {{stream, 0, size + 4}}, {written(to, 1)}}, "are not whole words"},
        Case{{"j", {{stream, size, 4}}, {written(to, 1)}}, "are not whole words"},
        Case{{"j", {{stream, 0, 6}}, {written(to, 1)}}, "are not whole words"},
        Case{{"j", {{stream, 0, 4}}, {written(to, 1)}}, "op_stop must be the last"}}) {
    const auto refused = device_->prepare(one.job);
    ASSERT_FALSE(refused.ok()) << one.says;
    EXPECT_NE(refused.error().message.find(one.says), std::string::npos) << refused.error().message;
  }
  const auto nothing = device_->alloc(0);
  ASSERT_FALSE(nothing.ok());
  EXPECT_TRUE(nothing.error().message.ends_with(": a buffer of 0 bytes")) << nothing.error().message;
  EXPECT_TRUE(device_->alloc(1).ok());
  EXPECT_FALSE(device_->alloc_commands(0).ok());
  EXPECT_FALSE(device_->wait(99, milliseconds(1)).ok());
}

// Errors that the kernel finds at submission; and buffers that were freed and whose handles were reused.
TEST_F(Ethosu, RefusesJobsWhoseBuffersAreNotThose) {
  start();
  const Handle from = filled(7), to = filled(1), small = filled(0, 64);
  const auto refused = [&](std::vector<kernels::JobBuffer> buffers) {
    const auto job = prepare(copy_stream(), std::move(buffers));
    const auto done = job.ok() ? run(*job) : job.error();
    return done.ok() ? "" : done.error().message;
  };
  EXPECT_EQ(refused({read(from, 0), written(to, 1)}), "");
  EXPECT_NE(refused({written(to, 1)}).find("region 0 has handle 0, and the stream uses 64"), std::string::npos);
  EXPECT_NE(refused({read(from, 0), written(to, 1), read(small, 3)}).find("the stream uses 0 bytes"),
            std::string::npos);
  Words far;
  hw::add_copy(far, 0, 0, 1, 4096, 1);
  hw::add_stop(far);
  const auto beyond = run(prepare(far, {read(from, 0), written(to, 1)}).value());
  ASSERT_FALSE(beyond.ok());
  EXPECT_NE(beyond.error().message.find("region 1 needs 4097 bytes of 4096"), std::string::npos)
      << beyond.error().message;

  const JobId job = prepare(copy_stream(), {read(from, 0), written(to, 1)}).value();
  ASSERT_TRUE(device_->free(to).ok());
  const auto gone = run(job);
  ASSERT_FALSE(gone.ok());
  EXPECT_NE(gone.error().message.find("no buffer has handle"), std::string::npos);
  ASSERT_EQ(filled(1), to) << "another buffer with its handle";
  EXPECT_FALSE(run(job).ok());
}

TEST_F(Ethosu, JobsThatHangAndThatAreLost) {
  start("submit:1:hang,submit:2:reset");
  const Handle from = filled(7), to = filled(1);
  const JobId job = prepare(copy_stream(), {read(from, 0), written(to, 1)}).value();
  const auto hung = run(job, milliseconds(20));
  ASSERT_FALSE(hung.ok());
  EXPECT_EQ(hung.error().code, ErrorCode::timeout);
  EXPECT_NE(hung.error().message.find("waiting up to 20 ms for job 'j'"), std::string::npos) << hung.error().message;
  calls_->kernel().reset();
  EXPECT_TRUE(run(job).ok()) << "it counts as finished";
  EXPECT_EQ(byte(to, 16), 1) << "and wrote nothing";
  EXPECT_TRUE(run(job).ok());
  EXPECT_EQ(byte(to, 16), 7);
}

// Like a kernel without CONFIG_PM_SLEEP, after a job that timed out.
TEST_F(Ethosu, SaysThatTheKernelHasNotGotTheNpuBack) {
  start("submit:1:reset,submit:2-*:EACCES");
  const Handle from = filled(7), to = filled(1);
  const JobId job = prepare(copy_stream(), {read(from, 0), written(to, 1)}).value();
  EXPECT_TRUE(run(job).ok());
  EXPECT_EQ(byte(to, 16), 1);
  const auto dead = run(job);
  ASSERT_FALSE(dead.ok());
  EXPECT_EQ(dead.error().code, ErrorCode::device);
  EXPECT_NE(dead.error().message.find("it could not recover the NPU"), std::string::npos) << dead.error().message;
}

TEST_F(Ethosu, AFaultOfTheChipIsALostJobOrAnError) {
  Words stream;  // reads what no command has written
  hw::add_copy(stream, 0, 0, 1, 0, 64), add(stream, hw::IfmUpscale{}), stream.push_back(0x3FE), hw::add_stop(stream);
  for (const auto on_fault : {fake::OnFault::reset, fake::OnFault::error}) {
    start("", on_fault);
    const Handle from = filled(7), to = filled(1);
    const auto done = run(prepare(stream, {read(from, 0), written(to, 1)}).value());
    EXPECT_EQ(done.ok(), on_fault == fake::OnFault::reset);
    const std::string said = done.ok() ? "is no command that is known" : done.error().message;
    EXPECT_NE(said.find("is no command that is known"), std::string::npos) << said;
  }
}

// Every call fails once, in each way: the error names the call, and the next attempt succeeds.
TEST_F(Ethosu, EachCallMayFail) {
  const char* const calls[] = {"bo_create", "bo_mmap_offset", "mmap", "bo_wait", "cmdstream_bo_create", "submit"};
  for (const char* call : calls) {
    for (const char* number : {"EIO", "ENOMEM", "ENODEV", "EINTR"}) {
      start(fmt::format("{}:1:{}", call, number));
      bool has_failed = false;
      for (int attempt = 0; attempt < 2; ++attempt) {
        const auto once = [&]() -> Result<void> {
          SK_TRY_ASSIGN(const Handle from, device_->alloc(4096));
          SK_TRY_ASSIGN(const Handle to, device_->alloc(4096));
          SK_TRY(device_->begin_cpu(from, true));
          SK_TRY_ASSIGN(const auto bytes, device_->map(from));
          std::ranges::fill(bytes, uint8_t{5});
          SK_TRY_ASSIGN(const JobId job, prepare(copy_stream(), {read(from, 0), written(to, 1)}));
          SK_TRY(run(job));
          SK_TRY(device_->begin_cpu(to, false));
          SK_TRY_ASSIGN(const auto result, device_->map(to));
          EXPECT_EQ(result[16], 5);
          device_->release(job);
          SK_TRY(device_->free(from));
          return device_->free(to);
        };
        const auto done = once();
        if (done.ok()) continue;
        EXPECT_EQ(attempt, 0) << call << " " << number << ": " << done.error().message;
        EXPECT_NE(done.error().message.find(number), std::string::npos) << done.error().message;
        has_failed = true;
      }
      // Calls that a signal interrupts are repeated, except mmap().
      const bool is_repeated = std::string_view(number) == "EINTR" && std::string_view(call) != "mmap";
      EXPECT_EQ(has_failed, !is_repeated) << call << " " << number;
    }
  }
  for (const char* call : {"open", "version", "dev_query"}) {
    fake::Options options{.faults = fake::FaultPlan::parse(fmt::format("{}:1:EIO", call), kChip).value(),
                          .is_own_process = true};
    const auto calls_that_fail =
        std::make_shared<fake::InProcess>(fake::ethosu::create(kChip, nullptr, std::move(options)), kNode);
    EXPECT_FALSE(kernels::ask_node(kNode, calls_that_fail).ok()) << call;
    EXPECT_TRUE(kernels::ask_node(kNode, calls_that_fail).ok()) << call;
  }
}

// Copies through the memory on the chip.
Words copy_by_sram() {
  Words stream;
  hw::add_copy(stream, 0, 0, 2, 0, 64), add(stream, hw::OpDmaWait{});
  hw::add_copy(stream, 2, 0, 1, 16, 64), hw::add_stop(stream);
  return stream;
}

TEST_F(Ethosu, IsRecordedAndReplayed) {
  start("submit:3:EINVAL");
  capture::Capture recorded;
  device_ = kernels::open_core(core_, kernels::record(core_, calls_, recorded)).value();
  const Words stream = copy_by_sram();
  const Handle from = filled(7), to = filled(1);
  const JobId job = prepare(stream, {read(from, 0), written(to, 1)}, 64).value();
  ASSERT_TRUE(run(job).ok());
  ASSERT_TRUE(run(job).ok());
  EXPECT_FALSE(run(job).ok());
  ASSERT_EQ(recorded.submissions.size(), 2U) << "without the one that the kernel refused";
  const capture::Submission& one = recorded.submissions[0];
  EXPECT_EQ(capture::words_of(one).value().size(), stream.size());
  EXPECT_EQ(one.parameters, (std::vector<capture::Parameter>{{"sram_size", 64}}));
  ASSERT_EQ(one.buffers.size(), 2U);
  EXPECT_EQ(one.buffers[1].handle, to);
  EXPECT_EQ(one.buffers[1].address, kernels::ethosu::region_address(1));
  EXPECT_EQ(one.buffers[0].bytes.size(), 4096U);

  start();
  auto replayer = kernels::open_replayer(core_, calls_).value();
  ASSERT_TRUE(replayer->run(one).ok());
  const auto bytes = replayer->contents(to);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ((*bytes)[15], 1);
  EXPECT_EQ((*bytes)[16], 7);
  EXPECT_FALSE(replayer->contents(1234).ok());
}

// The kernel accepts submissions without jobs.
TEST_F(Ethosu, SubmissionsWithoutJobsAreNotRecorded) {
  start();
  capture::Capture recorded;
  const auto calls = kernels::record(core_, calls_, recorded);
  const int fd = calls->open(kNode);
  abi::Submit none{.jobs = 0, .job_count = 0, .perfmon_id = 0};
  EXPECT_EQ(calls->ioctl(fd, abi::kSubmit, &none), 0);
  EXPECT_TRUE(recorded.submissions.empty());
  calls->close(fd);
}

TEST_F(Ethosu, ForgedSubmissionsAreNotReplayed) {
  start();
  capture::Capture recorded;
  device_ = kernels::open_core(core_, kernels::record(core_, calls_, recorded)).value();
  const Handle from = filled(7), to = filled(1);
  ASSERT_TRUE(run(prepare(copy_by_sram(), {read(from, 0), written(to, 1)}, 64).value()).ok());
  const capture::Submission& one = recorded.submissions.at(0);
  start();
  auto replayer = kernels::open_replayer(core_, calls_).value();
  ASSERT_TRUE(replayer->run(one).ok());
  const std::function<void(capture::Submission&)> forgeries[] = {
      [](auto& s) { s.buffers[0].address = 5; },
      [](auto& s) { s.buffers[0].address = uint64_t{20} << 36; },
      [](auto& s) { s.buffers[0].size_bytes = uint64_t{1} << 50; },
      [](auto& s) { s.buffers[0].size_bytes = 16; },
      [](auto& s) { s.buffers[0].size_bytes = s.buffers[1].size_bytes = kernels::kReplayLimitBytes / 2 + 1; },
      [](auto& s) { s.jobs.clear(); },
      [](auto& s) { s.jobs[0].commands[0].words.clear(); },
      [](auto& s) { s.buffers[1].address = s.buffers[0].address; },
      [](auto& s) { s.parameters[0].value = 1; }};
  for (const auto& forge : forgeries) {
    capture::Submission forged = one;
    forge(forged);
    EXPECT_FALSE(replayer->run(forged).ok());
  }
  EXPECT_TRUE(replayer->run(one).ok());
  capture::Submission renamed = one;
  renamed.buffers[1].handle = 99;
  EXPECT_TRUE(replayer->run(renamed).ok());
  EXPECT_TRUE(replayer->contents(99).ok());
  EXPECT_FALSE(replayer->contents(to).ok())
      << "it is freed: captures may have any number of buffers, one after the other";
}

// Invalid calls that other programs may make: the errno is the kernel's.
TEST_F(Ethosu, CallsThatTheKernelRefuses) {
  start();
  const int fd = calls_->open(kNode);
  const auto ioctl = [&](unsigned long request, auto args) { return calls_->ioctl(fd, request, &args); };
  const Words words = copy_stream();
  const auto data = reinterpret_cast<uintptr_t>(words.data());
  const auto bytes = static_cast<uint32_t>(words.size() * 4);
  abi::CmdstreamBoCreate stream{.size = bytes, .flags = 0, .data = data, .handle = 0, .pad = 0};
  ASSERT_EQ(calls_->ioctl(fd, abi::kCmdstreamBoCreate, &stream), 0);
  abi::BoCreate from{.size = 100, .flags = 0, .handle = 0}, to{.size = 4096, .flags = abi::kBoNoMmap, .handle = 0};
  ASSERT_EQ(calls_->ioctl(fd, abi::kBoCreate, &from), 0);
  EXPECT_EQ(from.size, 4096U) << "whole pages";
  ASSERT_EQ(calls_->ioctl(fd, abi::kBoCreate, &to), 0);

  using Bo = abi::BoCreate;
  EXPECT_EQ(ioctl(abi::kBoCreate, Bo{.size = 0, .flags = 0, .handle = 0}), -EINVAL);
  EXPECT_EQ(ioctl(abi::kBoCreate, Bo{.size = 1, .flags = 2, .handle = 0}), -EINVAL);
  using Wait = abi::BoWait;
  EXPECT_EQ(ioctl(abi::kBoWait, Wait{.handle = 77, .pad = 0, .timeout_ns = 0}), -EINVAL);
  EXPECT_EQ(ioctl(abi::kBoWait, Wait{.handle = from.handle, .pad = 1, .timeout_ns = 0}), -EINVAL);
  EXPECT_EQ(ioctl(abi::kBoWait, Wait{.handle = from.handle, .pad = 0, .timeout_ns = 0}), 0);
  using Offset = abi::BoMmapOffset;
  EXPECT_EQ(ioctl(abi::kBoMmapOffset, Offset{.handle = from.handle, .pad = 0, .offset = 0}), 0);
  EXPECT_EQ(ioctl(abi::kBoMmapOffset, Offset{.handle = to.handle, .pad = 0, .offset = 0}), -EINVAL);
  EXPECT_EQ(ioctl(abi::kBoMmapOffset, Offset{.handle = stream.handle, .pad = 0, .offset = 0}), -EINVAL);
  uint8_t* mapped = nullptr;
  EXPECT_EQ(calls_->mmap(fd, 4096, uint64_t{to.handle} << 32, mapped), -EINVAL);
  using Stream = abi::CmdstreamBoCreate;
  EXPECT_EQ(ioctl(abi::kCmdstreamBoCreate, Stream{.size = 0, .flags = 0, .data = data, .handle = 0, .pad = 0}),
            -EINVAL);
  EXPECT_EQ(ioctl(abi::kCmdstreamBoCreate, Stream{.size = 6, .flags = 0, .data = data, .handle = 0, .pad = 0}),
            -EINVAL);
  EXPECT_EQ(ioctl(abi::kCmdstreamBoCreate, Stream{.size = bytes, .flags = 1, .data = data, .handle = 0, .pad = 0}),
            -EINVAL);
  EXPECT_EQ(ioctl(abi::kCmdstreamBoCreate, Stream{.size = bytes, .flags = 0, .data = 0, .handle = 0, .pad = 0}),
            -EFAULT);
  EXPECT_EQ(ioctl(abi::kCmdstreamBoCreate, Stream{.size = bytes - 4, .flags = 0, .data = data, .handle = 0, .pad = 0}),
            -EINVAL);

  const auto submit = [&](abi::SubmitJob job, uint32_t count = 1, uint32_t perfmon = 0) {
    return ioctl(abi::kSubmit,
                 abi::Submit{.jobs = reinterpret_cast<uintptr_t>(&job), .job_count = count, .perfmon_id = perfmon});
  };
  const abi::SubmitJob fine{.cmd_bo = stream.handle, .sram_size = 0, .region_bo_handles = {from.handle, to.handle}};
  EXPECT_EQ(submit(fine), 0);
  EXPECT_EQ(submit(fine, 0), 0);
  EXPECT_EQ(submit(fine, 1, 3), -EINVAL);
  const auto with = [&](auto change) {
    abi::SubmitJob job = fine;
    change(job);
    return submit(job);
  };
  EXPECT_EQ(with([&](auto& j) { j.cmd_bo = from.handle; }), -EINVAL);
  EXPECT_EQ(with([&](auto& j) { j.cmd_bo = 0; }), -ENOENT);
  EXPECT_EQ(with([&](auto& j) { j.region_bo_handles[1] = 0; }), -ENOENT) << "used, and not given";
  EXPECT_EQ(with([&](auto& j) { j.region_bo_handles[1] = from.handle; }), -EALREADY) << "in two regions";
  EXPECT_EQ(with([&](auto& j) { j.region_bo_handles[4] = from.handle; }), -EINVAL) << "given, and not used";
  EXPECT_EQ(with([&](auto& j) { j.region_bo_handles[1] = stream.handle; }), -EINVAL);
  EXPECT_EQ(with([&](auto& j) { j.region_bo_handles[1] = 99; }), -ENOENT);
  EXPECT_EQ(with([&](auto& j) { j.sram_size = 1 << 30; }), -EINVAL);
  EXPECT_EQ(with([&](auto& j) {
              j.sram_size = 64;
              j.region_bo_handles[2] = from.handle;
            }),
            -EINVAL);
  abi::NpuInfo info{};
  const auto pointer = reinterpret_cast<uintptr_t>(&info);
  using Query = abi::DevQuery;
  EXPECT_EQ(ioctl(abi::kDevQuery, Query{.type = 1, .size = 16, .pointer = pointer}), -EINVAL);
  EXPECT_EQ(ioctl(abi::kDevQuery, Query{.type = 0, .size = 8, .pointer = pointer}), -EINVAL);
  EXPECT_EQ(ioctl(abi::kDevQuery, Query{.type = 0, .size = 12, .pointer = pointer}), 0);
  EXPECT_EQ(info.config, 0x10003008U);
  Query size{.type = 0, .size = 0, .pointer = 0};
  EXPECT_EQ(calls_->ioctl(fd, abi::kDevQuery, &size), 0);
  EXPECT_EQ(size.size, abi::kNpuInfoBytes);
}

}  // namespace
}  // namespace skillet::testing
