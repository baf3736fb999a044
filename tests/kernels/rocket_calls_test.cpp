// The calls that the client of rocket, its recorder and its replayer make to the kernel, one by one; and the kernel's
// rules.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "capture/capture.h"
#include "kernels/rocket/client/rocket.h"
#include "logged_calls.h"
#include "rocket_node.h"

namespace skillet::testing {
namespace {

std::string handles(uint64_t at, uint32_t count) {
  std::string text;
  for (uint32_t i = 0; i < count; ++i) text += fmt::format(" {}", reinterpret_cast<const uint32_t*>(at)[i]);
  return text;
}

std::string describe(unsigned long request, const void* argument) {
  const auto as = [&]<typename T>(const T*) -> const T& { return *static_cast<const T*>(argument); };
  switch (request) {
    case abi::kCreateBo: {
      const auto& a = as(static_cast<abi::CreateBo*>(nullptr));
      return fmt::format("create_bo {}: {} at {:#x}", a.size, a.handle, a.dma_address);
    }
    case abi::kPrepBo: {
      const auto& a = as(static_cast<abi::PrepBo*>(nullptr));
      return fmt::format("prep_bo {}, {} s", a.handle, seconds_until(0, a.timeout_ns));
    }
    case abi::kFiniBo: return fmt::format("fini_bo {}", as(static_cast<abi::FiniBo*>(nullptr)).handle);
    case abi::kSubmit: {
      const auto& a = as(static_cast<abi::Submit*>(nullptr));
      std::string text = "submit";
      for (uint32_t i = 0; i < a.job_count; ++i) {
        const auto& job = reinterpret_cast<const abi::SubmitJob*>(a.jobs)[i];
        text +=
            fmt::format(" ({} tasks, in{}, out{})", job.task_count, handles(job.in_bo_handles, job.in_bo_handle_count),
                        handles(job.out_bo_handles, job.out_bo_handle_count));
      }
      return text;
    }
    case drm::kPrimeHandleToFd: {
      const auto& a = as(static_cast<drm::PrimeHandle*>(nullptr));
      return fmt::format("export {} flags {:#o}", a.handle, a.flags);
    }
    default: return "";
  }
}

class RocketCalls : public Rocket {
 protected:
  void open_logged(const std::string& faults = "") {
    start(faults);
    logged_ = std::make_shared<LoggedCalls>(calls_, describe);
    device_ = kernels::rocket::open_device(core_, logged_).value();
    opening_ = logged_->take();
  }
  kernels::JobId copy_job(kernels::Handle from, kernels::Handle to) {
    const kernels::Handle commands = device_->alloc_commands(64).value();
    auto bytes = device_->map(commands).value();
    store_le(bytes.data(), static_cast<uint32_t>(device_->address(from).value()));
    store_le(bytes.data() + 4, static_cast<uint32_t>(device_->address(to).value()));
    return device_
        ->prepare({.name = "copy", .commands = {{commands, 0, 8}}, .buffers = {{from, true}, {to, true, true}}})
        .value();
  }

  const kernels::Core core_{.info = {.kernel_driver = "rocket", .node = kNode, .compatible = {}, .facts = {}}};
  std::shared_ptr<LoggedCalls> logged_;
  std::unique_ptr<kernels::Device> device_;
  std::string opening_;
};

TEST_F(RocketCalls, OfALifeOfBuffersAndJobs) {
  open_logged();
  EXPECT_EQ(opening_, "open\ncreate_bo 4096: 1 at 0x0\n") << "address 0 is guarded";
  const kernels::Handle one = device_->alloc(5000).value(), two = device_->alloc(1).value();
  EXPECT_EQ(logged_->take(), "create_bo 5000: 2 at 0x1000\ncreate_bo 1: 3 at 0x3000\n");
  EXPECT_EQ(device_->map(one).value().size(), 5000u);
  EXPECT_EQ(device_->map(one).value().data(), device_->map(one).value().data());
  EXPECT_EQ(logged_->take(), "mmap 5000 at 0x200000000\n");
  for (const bool write : {false, true}) {
    ASSERT_TRUE(device_->begin_cpu(two, write).ok());
    ASSERT_TRUE(device_->end_cpu(two).ok());
  }
  EXPECT_EQ(logged_->take(), "prep_bo 3, 5 s\nfini_bo 3\nprep_bo 3, 5 s\nfini_bo 3\n");
  const kernels::JobId first = copy_job(one, two), second = copy_job(two, one);
  EXPECT_EQ(logged_->take(),
            "create_bo 64: 4 at 0x4000\nmmap 64 at 0x400000000\ncreate_bo 64: 5 at 0x5000\nmmap 64 at 0x500000000\n");
  const kernels::JobId jobs[] = {first, second};
  const kernels::Fence fence = device_->submit(jobs).value();
  EXPECT_EQ(logged_->take(), "submit (1 tasks, in 2, out 3) (1 tasks, in 3, out 2)\n") << "several jobs are one call";
  EXPECT_TRUE(device_->wait(fence, std::chrono::seconds(7)).ok());
  EXPECT_TRUE(device_->wait(fence, std::chrono::seconds(7)).ok());
  EXPECT_EQ(logged_->take(), "prep_bo 3, 7 s\nprep_bo 2, 7 s\n") << "by what each job writes, and once";
  EXPECT_EQ(device_->map(one).value()[0], 2);
  ASSERT_TRUE(device_->wait(device_->submit({&second, 1}).value(), std::chrono::seconds(7)).ok());
  EXPECT_EQ(logged_->take(), "submit (1 tasks, in 3, out 2)\nprep_bo 2, 7 s\n") << "without the jobs of before";
  ASSERT_TRUE(device_->begin_cpu(one, true).ok());
  EXPECT_EQ(logged_->take(), "prep_bo 2, 5 s\n") << "nothing runs: no other buffer is waited for";
  ASSERT_TRUE(device_->free(one).ok());
  EXPECT_EQ(logged_->take(), "munmap 5000\ngem_close 2\n");
  device_.reset();
  EXPECT_EQ(logged_->take(),
            "gem_close 1\ngem_close 3\nmunmap 64\ngem_close 4\nmunmap 64\ngem_close 5\n"
            "create_bo 20544: 1 at 0x0\ngem_close 1\nclose\n")
      << "handles first, then a look whether the kernel has released them all";
  EXPECT_TRUE(logged_->mapped.empty() && logged_->open_files.empty());
}

// A buffer freed while a job may use it is closed with the first call after the job's end, not before.
TEST_F(RocketCalls, CloseAfterTheLastJob) {
  open_logged("prep_bo:1-3:EBUSY");
  const kernels::Handle one = device_->alloc(16).value(), two = device_->alloc(16).value();
  const kernels::JobId job = copy_job(one, two);
  ASSERT_TRUE(device_->submit({&job, 1}).ok());
  logged_->take();
  ASSERT_TRUE(device_->free(one).ok());
  EXPECT_EQ(logged_->take(), "prep_bo 3, 0 s: -16\n");
  const kernels::Handle three = device_->alloc(16).value();
  EXPECT_EQ(logged_->take(), "prep_bo 3, 0 s: -16\ncreate_bo 16: 5 at 0x4000\n");
  ASSERT_TRUE(device_->free(three).ok());
  EXPECT_EQ(logged_->take(), "prep_bo 3, 0 s: -16\n")
      << "the last submission came before it, but is not known to have ended";
  while (logged_->take(), device_->alloc(16).ok()) {
    const std::string calls = logged_->take();
    if (calls.find("gem_close") == std::string::npos) continue;
    EXPECT_EQ(calls.substr(0, calls.find("create")), "prep_bo 3, 0 s\ngem_close 2\ngem_close 5\n");
    break;
  }
}

TEST_F(RocketCalls, RefuseStrangers) {
  open_logged();
  const kernels::Handle unknown = 9;
  EXPECT_FALSE(device_->free(unknown).ok());
  EXPECT_FALSE(device_->address(unknown).ok());
  EXPECT_FALSE(device_->map(unknown).ok());
  EXPECT_FALSE(device_->begin_cpu(unknown, false).ok());
  EXPECT_FALSE(device_->end_cpu(unknown).ok());
  EXPECT_FALSE(device_->export_dmabuf(unknown).ok());
  EXPECT_FALSE(device_->import_dmabuf(0).ok());
  const auto nothing = device_->alloc(0);
  ASSERT_FALSE(nothing.ok());
  EXPECT_TRUE(nothing.error().message.ends_with(": a buffer of 0 bytes")) << nothing.error().message;
  EXPECT_EQ(device_->alloc(uint64_t{UINT32_MAX} + 1).error().code, ErrorCode::out_of_range);
  EXPECT_FALSE(device_->alloc_commands(0).ok());
  const kernels::JobId none = 3;
  EXPECT_FALSE(device_->submit({&none, 1}).ok());
  EXPECT_FALSE(device_->submit({}).ok());
  EXPECT_FALSE(device_->wait(0, milliseconds(1)).ok());
  EXPECT_FALSE(device_->wait(1, milliseconds(1)).ok());
  EXPECT_EQ(logged_->take(), "") << "the kernel is not asked";
}

TEST_F(RocketCalls, FailOnceAndThenWork) {
  struct Row {
    const char* fault;
    std::function<bool(kernels::Device&, kernels::Handle)> act;
    const char* failed;
    const char* again;
  };
  const Row rows[] = {
      {"mmap:1:ENOMEM", [](kernels::Device& d, kernels::Handle h) { return d.map(h).ok(); },
       "mmap 64 at 0x200000000: -12\n", "mmap 64 at 0x200000000\n"},
      {"prep_bo:1:EIO", [](kernels::Device& d, kernels::Handle h) { return d.begin_cpu(h, true).ok(); },
       "prep_bo 2, 5 s: -5\n", "prep_bo 2, 5 s\n"},
      {"fini_bo:1:EIO", [](kernels::Device& d, kernels::Handle h) { return d.end_cpu(h).ok(); }, "fini_bo 2: -5\n",
       "fini_bo 2\n"},
      {"create_bo:3:ENOMEM", [](kernels::Device& d, kernels::Handle) { return d.alloc(8).ok(); },
       "create_bo 8: 0 at 0x0: -12\n", "create_bo 8: 3 at 0x2000\n"},
      {"prime_handle_to_fd:1:EIO",
       [](kernels::Device& d, kernels::Handle h) {
         const auto fd = d.export_dmabuf(h);
         if (fd.ok()) ::close(*fd);
         return fd.ok();
       },
       "export 2 flags 02000002: -5\n", "export 2 flags 02000002\n"},
  };
  for (const Row& row : rows) {
    open_logged(row.fault);
    const kernels::Handle handle = device_->alloc(64).value();
    logged_->take();
    EXPECT_FALSE(row.act(*device_, handle)) << row.fault;
    EXPECT_EQ(logged_->take(), row.failed) << row.fault;
    EXPECT_TRUE(row.act(*device_, handle)) << row.fault;
    EXPECT_EQ(logged_->take(), row.again) << row.fault;
  }
}

TEST_F(RocketCalls, RegisterCommandsLieWithinTheirBuffer) {
  open_logged();
  const kernels::Handle commands = device_->alloc_commands(64).value(), data = device_->alloc(64).value();
  struct Row {
    uint64_t offset, size;
    bool is_taken;
  };
  for (const Row& row : {Row{0, 64, true}, Row{48, 16, true}, Row{48, 24, false}, Row{64, 8, false}, Row{80, 8, false},
                         Row{0, 72, false}, Row{8, 8, false}, Row{16, 4, false}, Row{16, 0, false},
                         Row{16, UINT64_MAX - 7, false}, Row{UINT64_MAX - 15, 8, false}}) {
    const auto job = device_->prepare(
        {.name = "j", .commands = {{commands, row.offset, row.size}}, .buffers = {{data, false, true}}});
    EXPECT_EQ(job.ok(), row.is_taken) << row.size << " at " << row.offset;
  }
}

// ---- the recorder and the replayer ----

TEST_F(RocketCalls, AreRecordedAndReplayed) {
  open_logged();
  capture::Capture recorded;
  device_ = kernels::rocket::open_device(core_, kernels::record(core_, logged_, recorded)).value();
  const kernels::Handle one = device_->alloc(16).value(), two = device_->alloc(16).value();
  const kernels::JobId jobs[] = {copy_job(one, two), copy_job(two, one)};
  device_->map(one).value()[0] = 40;
  logged_->take();
  ASSERT_TRUE(device_->wait(device_->submit(jobs).value(), milliseconds(2000)).ok());
  const std::string calls = logged_->take();
  EXPECT_NE(calls.find("prep_bo 2, 5 s\nmmap 16 at 0x300000000\nfini_bo 2\n"), std::string::npos) << calls;
  ASSERT_TRUE(device_->free(one).ok());
  device_.reset();
  EXPECT_TRUE(logged_->mapped.empty() && logged_->open_files.empty());
  ASSERT_EQ(recorded.submissions.size(), 1u);

  auto replay = kernels::open_replayer(core_, calls_).value();
  capture::Submission sent = recorded.submissions[0];
  ASSERT_TRUE(replay->run(sent).ok());
  EXPECT_EQ(replay->contents(one).value()[0], 42);
  EXPECT_EQ(replay->contents(two).value()[0], 41);
  EXPECT_FALSE(replay->contents(77).ok());
  std::ranges::reverse(sent.buffers);  // in any order
  const auto reversed = kernels::open_replayer(core_, calls_).value()->run(sent);
  EXPECT_TRUE(reversed.ok()) << reversed.error().message;
  for (capture::BufferSnapshot& buffer : sent.buffers) {  // not recorded: keeps its contents
    if (buffer.handle == one) buffer.content = capture::Content::unknown;
  }
  ASSERT_TRUE(replay->run(sent).ok());
  EXPECT_EQ(replay->contents(one).value()[0], 44);
  for (capture::BufferSnapshot& buffer : sent.buffers) {  // another size: a new file, contents are copied
    if (buffer.handle == two) buffer.size_bytes = 24;
  }
  ASSERT_TRUE(replay->run(sent).ok());
  EXPECT_EQ(replay->contents(one).value()[0], 46);
  EXPECT_EQ(replay->contents(two).value().size(), 24u);
  std::erase_if(sent.buffers, [&](const capture::BufferSnapshot& buffer) { return buffer.handle == one; });
  ASSERT_TRUE(replay->run(sent).ok());
  EXPECT_EQ(replay->contents(two).value()[0], 1) << "what lay there is gone";
  EXPECT_FALSE(replay->contents(one).ok());

  capture::Submission far = recorded.submissions[0];
  for (const auto& [address, is_taken] : {std::pair{kernels::kReplayEndAddress - 4096, true},
                                          {kernels::kReplayEndAddress - 8, false},
                                          {kernels::kReplayEndAddress + 4096, false}}) {
    far.buffers[0].address = address;
    const auto ran = kernels::open_replayer(core_, calls_).value()->run(far);
    const bool is_malformed = !ran.ok() && ran.error().code == ErrorCode::malformed &&
                              ran.error().message.find("must be below") != std::string::npos;
    EXPECT_EQ(is_malformed, !is_taken) << address;
  }
  far = recorded.submissions[0];
  for (capture::BufferSnapshot& buffer : far.buffers)
    buffer.size_bytes = kernels::kReplayLimitBytes / far.buffers.size() + 1;
  EXPECT_NE(kernels::open_replayer(core_, calls_).value()->run(far).error().message.find("all buffers together exceed"),
            std::string::npos);
  far = recorded.submissions[0];
  far.jobs[0].commands[0].address = 0x800000;
  EXPECT_EQ(kernels::open_replayer(core_, calls_).value()->run(far).error().message,
            "no buffer has the commands at 0x800000");
}

TEST_F(RocketCalls, TheReplayerTellsTheKernelOfEachAccess) {
  open_logged();
  capture::Capture recorded;
  device_ = kernels::rocket::open_device(core_, kernels::record(core_, logged_, recorded)).value();
  const kernels::Handle one = device_->alloc(16).value(), two = device_->alloc(16).value();
  const kernels::JobId job = copy_job(one, two);
  ASSERT_TRUE(device_->wait(device_->submit({&job, 1}).value(), milliseconds(2000)).ok());
  device_.reset();
  logged_->take();
  auto replay = kernels::open_replayer(core_, logged_).value();
  ASSERT_TRUE(replay->run(recorded.submissions.at(0)).ok());
  EXPECT_EQ(logged_->take(),
            "open\ncreate_bo 4096: 1 at 0x0\ngem_close 1\n"  // checks whether the file's first buffer is at 0
            "create_bo 4096: 1 at 0x0\ncreate_bo 4096: 2 at 0x1000\ncreate_bo 4096: 3 at 0x2000\n"
            "create_bo 4096: 4 at 0x3000\nprep_bo 1, 5 s\nmmap 4096 at 0x100000000\nfini_bo 1\n"
            "prep_bo 2, 5 s\nmmap 4096 at 0x200000000\nfini_bo 2\nprep_bo 3, 5 s\n"
            "mmap 4096 at 0x300000000\nfini_bo 3\nprep_bo 4, 5 s\nmmap 4096 at 0x400000000\nfini_bo 4\n"
            "submit (1 tasks, in 2, out 3)\nprep_bo 3, 60 s\nprep_bo 1, 5 s\nfini_bo 1\n"
            "prep_bo 2, 5 s\nfini_bo 2\nprep_bo 3, 5 s\nfini_bo 3\nprep_bo 4, 5 s\nfini_bo 4\n");
  EXPECT_EQ(replay->contents(two).value()[0], 1);
  replay.reset();
  EXPECT_EQ(logged_->take(),
            "munmap 4096\ngem_close 1\nmunmap 4096\ngem_close 2\nmunmap 4096\ngem_close 3\nmunmap 4096\ngem_close 4\n"
            "create_bo 16384: 1 at 0x0\ngem_close 1\nclose\n");
}

// The number of submissions kept is limited: beyond it the client queries the kernel for the oldest.
TEST_F(RocketCalls, SubmissionsAreKeptWithinALimit) {
  open_logged();
  const kernels::JobId job = copy_job(device_->alloc(16).value(), device_->alloc(16).value());
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(device_->submit({&job, 1}).ok());
  EXPECT_EQ(logged_->take().find("prep_bo"), std::string::npos);
  ASSERT_TRUE(device_->submit({&job, 1}).ok());
  EXPECT_NE(logged_->take().find("prep_bo"), std::string::npos);
}

// The file is closed anyway; the job may still write its output, which nothing reads.
TEST_F(RocketCalls, ClosingSaysThatAJobStillRuns) {
  for (const bool fails : {false, true}) {
    open_logged(fails ? "prep_bo:*:EIO" : "");
    const kernels::JobId job = copy_job(device_->alloc(16).value(), device_->alloc(16).value());
    ASSERT_TRUE(device_->submit({&job, 1}).ok());
    ::testing::internal::CaptureStderr();
    device_.reset();
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("closing while a job runs: ") != std::string::npos, fails) << said;
    EXPECT_TRUE(logged_->mapped.empty() && logged_->open_files.empty());
  }
}

// ---- the kernel's rules ----

TEST_F(RocketCalls, TheKernelRefuses) {
  on_misuse_ = fake::OnMisuse::report;
  start();
  const int fd = calls_->open(kNode);
  abi::CreateBo data{.size = 4096, .handle = 0, .dma_address = 0, .offset = 0};
  ASSERT_EQ(calls_->ioctl(fd, abi::kCreateBo, &data), 0);
  abi::Task task{.regcmd = 0, .regcmd_count = 1};
  abi::SubmitJob job = job_of(task, data);
  const abi::Submit plain{
      .jobs = reinterpret_cast<uintptr_t>(&job), .job_count = 1, .job_struct_size = sizeof job, .reserved = 0};
  const auto submit = [&](auto change) {
    abi::Submit call = plain;
    change(call);
    return calls_->ioctl(fd, abi::kSubmit, &call);
  };
  EXPECT_EQ(submit([](abi::Submit&) {}), 0);
  EXPECT_EQ(submit([](abi::Submit& call) { call.job_count = 0; }), 0);
  EXPECT_EQ(submit([](abi::Submit& call) { call.reserved = 1; }), -EINVAL);
  EXPECT_EQ(submit([](abi::Submit& call) { call.job_struct_size = sizeof(abi::SubmitJob) - 1; }), -EINVAL);
  EXPECT_EQ(submit([](abi::Submit& call) { call.job_count = (1 << 20) + 1; }), -ENOMEM);
  EXPECT_EQ(submit([](abi::Submit& call) { call.jobs = 0; }), -EFAULT);

  const auto bo = [&](unsigned long request, auto args) { return calls_->ioctl(fd, request, &args); };
  EXPECT_EQ(bo(abi::kPrepBo, abi::PrepBo{data.handle, 0, INT64_MAX}), 0);
  EXPECT_EQ(bo(abi::kPrepBo, abi::PrepBo{data.handle, 1, INT64_MAX}), -EINVAL);
  EXPECT_EQ(bo(abi::kPrepBo, abi::PrepBo{99, 0, 0}), -ENOENT);
  EXPECT_EQ(bo(abi::kFiniBo, abi::FiniBo{data.handle, 0}), 0);
  EXPECT_EQ(bo(abi::kFiniBo, abi::FiniBo{data.handle, 1}), -EINVAL);
  EXPECT_EQ(bo(abi::kFiniBo, abi::FiniBo{99, 0}), -ENOENT);
  EXPECT_EQ(bo(abi::kCreateBo, abi::CreateBo{}), -ENOSPC);
  EXPECT_EQ(bo(drm::kGemClose, drm::GemClose{99, 0}), -EINVAL);
  EXPECT_EQ(bo(drm::kPrimeHandleToFd, drm::PrimeHandle{99, 0, -1}), -ENOENT);
  EXPECT_EQ(bo(drm::kPrimeHandleToFd, drm::PrimeHandle{data.handle, 4, -1}), -EINVAL);
  EXPECT_EQ(bo(drm::kGetCap, drm::GetCap{0x99, 0}), -EOPNOTSUPP);
  uint8_t none[128]{};
  EXPECT_EQ(calls_->ioctl(fd, _IOWR('d', 0x44, none), none), -EINVAL);
  for (const auto& [number, result] : {std::pair{0x0c, 0},
                                       {0x0d, -EOPNOTSUPP},
                                       {0x0e, -EINVAL},
                                       {0xbe, -EOPNOTSUPP},
                                       {0xbf, -EOPNOTSUPP},
                                       {0xcf, -EOPNOTSUPP},
                                       {0xd0, -EOPNOTSUPP},
                                       {0xd2, -EINVAL}}) {
    drm::GetCap cap{.capability = drm::kCapPrime, .value = 0};
    EXPECT_EQ(calls_->ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'd', static_cast<unsigned>(number), sizeof cap), &cap),
              result)
        << number;
  }
  uint8_t* bytes = nullptr;
  EXPECT_EQ(calls_->mmap(fd, 4096, data.offset, bytes), 0);
  EXPECT_EQ(calls_->mmap(fd, 4097, data.offset, bytes), -EINVAL);
  EXPECT_EQ(calls_->mmap(fd, 4096, data.offset + 4096, bytes), -EINVAL);
  EXPECT_EQ(calls_->mmap(fd, 4096, uint64_t{99} << 32, bytes), -EINVAL);
  EXPECT_EQ(calls_->close(fd), 0);
  EXPECT_EQ(calls_->close(fd), -EBADF);
}

// Structs of later kernels are longer: items of arrays are as far apart as the call says.
TEST_F(RocketCalls, ItemsOfArraysMayBeFartherApart) {
  start();
  const int fd = calls_->open(kNode);
  abi::CreateBo data{.size = 4096, .handle = 0, .dma_address = 0, .offset = 0}, commands = data;
  ASSERT_EQ(calls_->ioctl(fd, abi::kCreateBo, &data), 0);
  ASSERT_EQ(calls_->ioctl(fd, abi::kCreateBo, &commands), 0);
  uint8_t *bytes = nullptr, *words = nullptr;
  ASSERT_EQ(calls_->mmap(fd, 4096, data.offset, bytes), 0);
  ASSERT_EQ(calls_->mmap(fd, 4096, commands.offset, words), 0);
  struct Task {
    abi::Task task;
    uint64_t more;
  };
  struct Job {
    abi::SubmitJob job;
    uint64_t more;
  };
  Task tasks[4]{};
  Job jobs[2]{};
  for (uint32_t i = 0; i < 4; ++i) {  // each stores the byte before, plus one
    store_le(words + 16 * i, static_cast<uint32_t>(data.dma_address) + i);
    store_le(words + 16 * i + 4, static_cast<uint32_t>(data.dma_address) + i + 1);
    tasks[i].task = {.regcmd = static_cast<uint32_t>(commands.dma_address) + 16 * i, .regcmd_count = 1};
    jobs[i / 2].job = job_of(tasks[i / 2 * 2].task, data);
    jobs[i / 2].job.task_count = 2, jobs[i / 2].job.task_struct_size = sizeof(Task);
  }
  abi::Submit call{
      .jobs = reinterpret_cast<uintptr_t>(&jobs), .job_count = 2, .job_struct_size = sizeof(Job), .reserved = 0};
  ASSERT_EQ(calls_->ioctl(fd, abi::kSubmit, &call), 0);
  abi::PrepBo wait{.handle = data.handle, .reserved = 0, .timeout_ns = INT64_MAX};
  ASSERT_EQ(calls_->ioctl(fd, abi::kPrepBo, &wait), 0);
  EXPECT_EQ(bytes[4], 4);
  calls_->pause(release_time_);
  EXPECT_EQ(calls_->close(fd), 0);
}

// Each version of an out-of-tree kernel has its own flags, refuses unknown ones, and reports a job that it does not
// accept. Mainline ignores all of these.
TEST_F(RocketCalls, OutOfTreeKernelsHaveVersions) {
  struct Longer {
    abi::SubmitJob job;
    uint32_t flags, reserved, more, end;  // no padding, which could have any bytes
  };
  struct Row {
    std::optional<int> version;
    const char* chip;
    uint32_t flags, reserved, more;
    int result;
  };
  const Row rows[] = {{std::nullopt, "rk3576", 7, 1, 1, 0}, {0, "rk3576", 0, 0, 0, 0},
                      {0, "rk3576", 1, 0, 0, -E2BIG},       {1, "rk3576", 0, 0, 0, 0},
                      {1, "rk3576", 1, 0, 0, -EOPNOTSUPP},  {1, "rk3576", 2, 0, 0, -EINVAL},
                      {2, "rk3576", 2, 0, 0, -EOPNOTSUPP},  {2, "rk3588", 2, 0, 0, -EINVAL},
                      {2, "rk3576", 4, 0, 0, -EINVAL},      {3, "rk3588", 4, 0, 0, -EOPNOTSUPP},
                      {6, "rk3576", 8, 0, 0, -EINVAL},      {6, "rk3576", 0, 1, 0, -EINVAL},
                      {6, "rk3576", 0, 0, 1, -E2BIG},       {6, "rk3588", 0, 0, 0, 0}};
  on_misuse_ = fake::OnMisuse::report;
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("1.{} {} flags {}", row.version.value_or(-1), row.chip, row.flags));
    extensions_ = row.version, chip_ = row.chip;
    start();
    const int fd = calls_->open(kNode);
    drm::Version version{};
    ASSERT_EQ(calls_->ioctl(fd, drm::kVersion, &version), 0);
    EXPECT_EQ(version.version_major, row.version ? 1 : 0);
    EXPECT_EQ(version.version_minor, row.version.value_or(0));
    abi::CreateBo data{.size = 4096, .handle = 0, .dma_address = 0, .offset = 0};
    ASSERT_EQ(calls_->ioctl(fd, abi::kCreateBo, &data), 0);
    abi::Task task{.regcmd = static_cast<uint32_t>(data.dma_address), .regcmd_count = 1};
    Longer job{job_of(task, data), row.flags, row.reserved, row.more, 0};
    const auto submit = [&] {
      abi::Submit call{
          .jobs = reinterpret_cast<uintptr_t>(&job), .job_count = 1, .job_struct_size = sizeof job, .reserved = 0};
      return calls_->ioctl(fd, abi::kSubmit, &call);
    };
    EXPECT_EQ(submit(), row.result);
    job.job.in_bo_handles = job.job.out_bo_handles, job.job.in_bo_handle_count = 1;  // listed twice
    if (row.result == 0) {
      EXPECT_EQ(submit(), row.version ? -EINVAL : 0);
    }
    EXPECT_EQ(calls_->close(fd), 0);
  }
}

// Uses a file's whole address space; one page more fails.
TEST_F(RocketCalls, TheKernelRunsOutOfAddresses) {
  start();
  const int fd = calls_->open(kNode);
  abi::CreateBo most{.size = UINT32_MAX - 4095, .handle = 0, .dma_address = 0, .offset = 0};
  abi::CreateBo last{.size = 4096, .handle = 0, .dma_address = 0, .offset = 0}, more = last;
  ASSERT_EQ(calls_->ioctl(fd, abi::kCreateBo, &most), 0);
  EXPECT_EQ(calls_->ioctl(fd, abi::kCreateBo, &last), 0);
  EXPECT_EQ(last.dma_address, 0xfffff000u);
  EXPECT_EQ(calls_->ioctl(fd, abi::kCreateBo, &more), -ENOMEM);
  drm::GemClose closing{.handle = most.handle, .pad = 0};
  EXPECT_EQ(calls_->ioctl(fd, drm::kGemClose, &closing), 0);
  EXPECT_EQ(calls_->ioctl(fd, abi::kCreateBo, &more), 0);
  EXPECT_EQ(more.dma_address, 0u);
  calls_->close(fd);
}

}  // namespace
}  // namespace skillet::testing
