// The calls that the client of etnaviv, its recorder and its replayer make to the kernel, one by one.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "capture/capture.h"
#include "kernel_node.h"
#include "kernels/etnaviv/recorder/replay.h"
#include "logged_calls.h"

namespace skillet::testing {
namespace {

using std::chrono::milliseconds;

std::string describe(unsigned long request, const void* argument) {
  const auto as = [&]<typename T>(const T*) -> const T& { return *static_cast<const T*>(argument); };
  switch (request) {
    case abi::kGemNew: {
      const auto& a = as(static_cast<abi::GemNew*>(nullptr));
      return fmt::format("gem_new {} flags {:#x}: {}", a.size, a.flags, a.handle);
    }
    case abi::kGemInfo: return fmt::format("gem_info {}", as(static_cast<abi::GemInfo*>(nullptr)).handle);
    case abi::kGemCpuPrep: {
      const auto& a = as(static_cast<abi::GemCpuPrep*>(nullptr));
      return fmt::format("cpu_prep {} op {}, {} s", a.handle, a.op, seconds_until(a.timeout.sec, a.timeout.nsec));
    }
    case abi::kGemCpuFini: return fmt::format("cpu_fini {}", as(static_cast<abi::GemCpuFini*>(nullptr)).handle);
    case abi::kGemSubmit: {
      const auto& a = as(static_cast<abi::GemSubmit*>(nullptr));
      std::string text = fmt::format("submit pipe {} flags {} bytes {}", a.pipe, a.flags, a.stream_size);
      for (uint32_t i = 0; i < a.nr_bos; ++i) {
        const auto& bo = reinterpret_cast<const abi::SubmitBo*>(a.bos)[i];
        text += fmt::format(", {} at {:#x} flags {}", bo.handle, bo.presumed, bo.flags);
      }
      return fmt::format("{}: fence {}", text, a.fence);
    }
    case abi::kWaitFence: {
      const auto& a = as(static_cast<abi::WaitFence*>(nullptr));
      return fmt::format("wait {} flags {}, {} s", a.fence, a.flags, seconds_until(a.timeout.sec, a.timeout.nsec));
    }
    case drm::kPrimeHandleToFd: {
      const auto& a = as(static_cast<drm::PrimeHandle*>(nullptr));
      return fmt::format("export {} flags {:#o}", a.handle, a.flags);
    }
    case drm::kPrimeFdToHandle: return fmt::format("import: {}", as(static_cast<drm::PrimeHandle*>(nullptr)).handle);
    default: return "";
  }
}

// A device whose calls are logged, over a node with these faults.
struct Logged {
  explicit Logged(const std::string& faults = "")
      : node(faults), calls(std::make_shared<LoggedCalls>(node.calls(), describe)) {
    const kernels::NodeReport report = kernels::ask_node(kNode, calls).value();
    core = report.cores.at(0);
    device = kernels::open_core(core, calls).value();
    calls->take();
  }
  kernels::JobId job(kernels::Handle buffer, bool read = true, bool write = true) {
    const kernels::Handle words = device->alloc_commands(32).value();
    return device->prepare({.name = "j", .commands = {{words, 16, 16}}, .buffers = {{buffer, read, write}}}).value();
  }

  KernelNode node;
  std::shared_ptr<LoggedCalls> calls;
  kernels::Core core;
  std::unique_ptr<kernels::Device> device;
};

TEST(EtnavivCalls, OfALifeOfBuffersAndJobs) {
  Logged a;
  const kernels::Handle one = a.device->alloc(5000).value(), two = a.device->alloc(4096).value();
  EXPECT_EQ(a.calls->take(), "gem_new 5000 flags 0x20000: 1\ngem_new 4096 flags 0x20000: 2\n");
  EXPECT_EQ(a.device->map(one).value().size(), 5000u);
  EXPECT_EQ(a.device->map(one).value().data(), a.device->map(one).value().data());
  EXPECT_EQ(a.calls->take(), "gem_info 1\nmmap 5000 at 0x100000000\n") << "mapped once";
  for (const bool write : {false, true}) {
    ASSERT_TRUE(a.device->begin_cpu(two, write).ok());
    ASSERT_TRUE(a.device->end_cpu(two).ok());
  }
  EXPECT_EQ(a.calls->take(), "cpu_prep 2 op 1, 5 s\ncpu_fini 2\ncpu_prep 2 op 3, 5 s\ncpu_fini 2\n");
  const kernels::JobId jobs[] = {a.job(one, true, false), a.job(two, false, true)};
  EXPECT_EQ(a.calls->take(), "") << "commands are the process's, and a job is prepared without the kernel";
  const kernels::Fence fence = a.device->submit(jobs).value();
  EXPECT_EQ(a.calls->take(),
            "submit pipe 0 flags 8 bytes 16, 1 at 0x400000 flags 1: fence 0\n"
            "submit pipe 0 flags 8 bytes 16, 2 at 0x402000 flags 2: fence 1\n");
  EXPECT_TRUE(a.device->wait(fence, std::chrono::seconds(7)).ok());
  EXPECT_TRUE(a.device->wait(fence, std::chrono::seconds(7)).ok());
  EXPECT_TRUE(a.device->wait(fence - 1, std::chrono::seconds(7)).ok());
  EXPECT_EQ(a.calls->take(), "wait 1 flags 0, 7 s\n") << "who has ended is not asked again";
  ASSERT_TRUE(a.device->free(one).ok());
  EXPECT_EQ(a.calls->take(), "munmap 5000\ngem_close 1\n");
  ASSERT_TRUE(a.device->free(two).ok());
  EXPECT_EQ(a.calls->take(), "gem_close 2\n");
  a.device.reset();
  EXPECT_EQ(a.calls->take(), "close\n");
  EXPECT_TRUE(a.calls->mapped.empty() && a.calls->open_files.empty());
}

// Waits for the oldest fences first, each by the kernel's number for its submission.
TEST(EtnavivCalls, WaitForTheRightSubmission) {
  Logged a;
  const kernels::JobId job = a.job(a.device->alloc(16).value());
  kernels::Fence fences[4];
  for (kernels::Fence& fence : fences) fence = a.device->submit({&job, 1}).value();
  a.calls->take();
  EXPECT_TRUE(a.device->wait(fences[1], milliseconds(2000)).ok());
  EXPECT_TRUE(a.device->wait(fences[0], milliseconds(2000)).ok());
  EXPECT_TRUE(a.device->wait(fences[2], std::chrono::nanoseconds::max()).ok());
  EXPECT_TRUE(a.device->wait(fences[3], milliseconds(-5)).ok());
  EXPECT_EQ(a.calls->take(), "wait 1 flags 0, 2 s\nwait 2 flags 0, far s\nwait 3 flags 0, 0 s\n");
}

TEST(EtnavivCalls, EndWithWhatWasTaken) {
  Logged a;
  const kernels::Handle one = a.device->alloc(64).value(), two = a.device->alloc(64).value();
  ASSERT_TRUE(a.device->map(one).ok() && a.device->map(two).ok());
  const kernels::JobId job = a.job(one);
  ASSERT_TRUE(a.device->submit({&job, 1}).ok());
  a.calls->take();
  a.device.reset();
  EXPECT_EQ(a.calls->take(), "wait 0 flags 0, 2 s\nmunmap 64\nmunmap 64\nclose\n");
  EXPECT_TRUE(a.calls->mapped.empty() && a.calls->open_files.empty());
}

TEST(EtnavivCalls, RefuseStrangers) {
  Logged a;
  const kernels::Handle unknown = 9;
  EXPECT_FALSE(a.device->free(unknown).ok());
  EXPECT_FALSE(a.device->address(unknown).ok());
  EXPECT_FALSE(a.device->map(unknown).ok());
  EXPECT_FALSE(a.device->begin_cpu(unknown, false).ok());
  EXPECT_FALSE(a.device->end_cpu(unknown).ok());
  EXPECT_FALSE(a.device->export_dmabuf(unknown).ok());
  EXPECT_FALSE(a.device->import_dmabuf(-1).ok());
  EXPECT_FALSE(a.device->alloc_commands(0).ok());
  EXPECT_FALSE(a.device->alloc_commands((uint64_t{1} << 32) + 1).ok());
  const kernels::JobId none = 3;
  EXPECT_FALSE(a.device->submit({&none, 1}).ok());
  EXPECT_FALSE(a.device->submit({}).ok());
  EXPECT_FALSE(a.device->wait(0, milliseconds(1)).ok());
  EXPECT_FALSE(a.device->wait(1, milliseconds(1)).ok());
  EXPECT_EQ(a.calls->take(), "") << "the kernel is not asked";
}

// Each call that may fail, what the client undoes after it, and that a retry succeeds.
TEST(EtnavivCalls, FailOnceAndThenWork) {
  struct Row {
    const char* fault;
    std::function<bool(Logged&, kernels::Handle)> act;
    const char* failed;
    const char* again;
  };
  const Row rows[] = {
      {"gem_info:1:EIO", [](Logged& a, kernels::Handle h) { return a.device->map(h).ok(); }, "gem_info 1: -5\n",
       "gem_info 1\nmmap 64 at 0x100000000\n"},
      {"mmap:1:ENOMEM", [](Logged& a, kernels::Handle h) { return a.device->map(h).ok(); },
       "gem_info 1\nmmap 64 at 0x100000000: -12\n", "gem_info 1\nmmap 64 at 0x100000000\n"},
      {"gem_cpu_prep:1:EBUSY", [](Logged& a, kernels::Handle h) { return a.device->begin_cpu(h, false).ok(); },
       "cpu_prep 1 op 1, 5 s: -16\n", "cpu_prep 1 op 1, 5 s\n"},
      {"gem_cpu_fini:1:EIO", [](Logged& a, kernels::Handle h) { return a.device->end_cpu(h).ok(); }, "cpu_fini 1: -5\n",
       "cpu_fini 1\n"},
      {"prime_handle_to_fd:1:EIO",
       [](Logged& a, kernels::Handle h) {
         const auto fd = a.device->export_dmabuf(h);
         if (fd.ok()) ::close(*fd);
         return fd.ok();
       },
       "export 1 flags 02000002: -5\n", "export 1 flags 02000002\n"},
      {"submit:1:EIO",
       [](Logged& a, kernels::Handle h) {
         const kernels::JobId job = a.job(h);
         return a.device->submit({&job, 1}).ok();
       },
       "submit pipe 0 flags 8 bytes 16, 1 at 0x400000 flags 3: fence 0: -5\n",
       "submit pipe 0 flags 8 bytes 16, 1 at 0x400000 flags 3: fence 0\n"},
  };
  for (const Row& row : rows) {
    Logged a(row.fault);
    const kernels::Handle handle = a.device->alloc(64).value();
    a.calls->take();
    EXPECT_FALSE(row.act(a, handle)) << row.fault;
    EXPECT_EQ(a.calls->take(), row.failed) << row.fault;
    EXPECT_TRUE(row.act(a, handle)) << row.fault;
    EXPECT_EQ(a.calls->take(), row.again) << row.fault;
  }
}

// No address is left for imported memory: the client closes it again.
TEST(EtnavivCalls, ImportNeedsAnAddress) {
  Logged a;
  const int fd = ::memfd_create("camera", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(fd, 8192), 0);
  const kernels::Handle all = a.device->alloc((uint64_t{1} << 32) - 0x00400000 - 4096).value();
  a.calls->take();
  EXPECT_FALSE(a.device->import_dmabuf(fd).ok());
  EXPECT_EQ(a.calls->take(), "import: 2\ngem_close 2\n");
  ASSERT_TRUE(a.device->free(all).ok());
  EXPECT_TRUE(a.device->import_dmabuf(fd).ok());
  ::close(fd);
}

// The number of fences kept is limited: beyond it the client queries the kernel for finished ones.
TEST(EtnavivCalls, FencesAreKeptWithinALimit) {
  Logged a;
  const kernels::JobId job = a.job(a.device->alloc(16).value());
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(a.device->submit({&job, 1}).ok());
  EXPECT_EQ(a.calls->take().find("wait"), std::string::npos);
  ASSERT_TRUE(a.device->submit({&job, 1}).ok());
  const std::string asked = a.calls->take();
  EXPECT_NE(asked.find("wait 0 flags 1, 0 s\n"), std::string::npos) << asked;
  EXPECT_NE(asked.find("wait 256 flags 1, 0 s\n"), std::string::npos) << asked;
}

TEST(EtnavivCalls, PreparedJobsHoldWholeWordsOfTheirCommands) {
  Logged a;
  const kernels::Handle words = a.device->alloc_commands(64).value();
  struct Row {
    uint64_t offset, size;
    bool is_taken;
  };
  for (const Row& row : {Row{0, 64, true}, Row{60, 4, true}, Row{60, 8, false}, Row{64, 0, false}, Row{68, 4, false},
                         Row{0, 68, false}, Row{2, 4, false}, Row{4, 2, false}, Row{4, 0, false},
                         Row{UINT64_MAX - 3, 4, false}, Row{4, UINT64_MAX - 3, false}}) {
    const auto job = a.device->prepare({.name = "j", .commands = {{words, row.offset, row.size}}, .buffers = {}});
    EXPECT_EQ(job.ok(), row.is_taken) << row.size << " at " << row.offset;
  }
}

// ---- the recorder ----

struct Recorded : Logged {
  explicit Recorded(const std::string& faults = "") : Logged(faults) {
    device.reset();
    device = kernels::open_core(core, kernels::record(core, calls, capture)).value();
    calls->take();
  }
  capture::Capture capture;
};

TEST(EtnavivRecorder, ReadsWhatIsListedAndGivesItBack) {
  Recorded a;
  const kernels::Handle one = a.device->alloc(64).value(), two = a.device->alloc(64).value();
  a.device->map(one).value()[5] = 7;
  const kernels::JobId job = a.job(one, true, false);
  a.calls->take();
  ASSERT_TRUE(a.device->submit({&job, 1}).ok());
  EXPECT_EQ(a.calls->take(),
            "cpu_prep 1 op 1, 5 s\ngem_info 1\nmmap 64 at 0x100000000\ncpu_fini 1\n"
            "submit pipe 0 flags 8 bytes 16, 1 at 0x400000 flags 1: fence 0\n");
  ASSERT_TRUE(a.device->submit({&job, 1}).ok());
  EXPECT_EQ(a.calls->take(),
            "cpu_prep 1 op 1, 5 s\ncpu_fini 1\n"
            "submit pipe 0 flags 8 bytes 16, 1 at 0x400000 flags 1: fence 1\n");
  ASSERT_EQ(a.capture.submissions.size(), 2u);
  const capture::Submission& sent = a.capture.submissions[1];
  ASSERT_EQ(sent.buffers.size(), 2u);
  EXPECT_EQ(sent.buffers[0].address, 0x400000u);
  EXPECT_EQ(sent.buffers[0].bytes, (Bytes{0, 0, 0, 0, 0, 7}));
  EXPECT_TRUE(sent.buffers[0].read && sent.buffers[0].listed && !sent.buffers[0].write);
  EXPECT_EQ(sent.buffers[1].address, 0u) << "no submission has said where it is";
  EXPECT_EQ(sent.buffers[1].content, capture::Content::unknown);
  EXPECT_TRUE(sent.parameters.empty());
  ASSERT_TRUE(a.device->free(one).ok());
  EXPECT_EQ(a.calls->take(), "munmap 64\nwait 0 flags 1, 0 s\nwait 1 flags 1, 0 s\nmunmap 64\ngem_close 1\n")
      << "the recorder's mapping goes with the buffer";
  const kernels::JobId other = a.job(two);
  ASSERT_TRUE(a.device->submit({&other, 1}).ok());
  EXPECT_EQ(a.capture.submissions.back().buffers.size(), 1u);
  a.device.reset();
  EXPECT_TRUE(a.calls->mapped.empty() && a.calls->open_files.empty());
}

// A buffer that cannot be waited for or mapped is recorded without its contents, and no access is ended that did not
// begin.
TEST(EtnavivRecorder, DoesWithoutWhatItCannotRead) {
  for (const char* fault : {"gem_cpu_prep:1:EBUSY", "gem_info:1:EIO", "mmap:1:ENOMEM"}) {
    Recorded a(fault);
    const kernels::JobId job = a.job(a.device->alloc(64).value());
    a.calls->take();
    ASSERT_TRUE(a.device->submit({&job, 1}).ok());
    const std::string calls = a.calls->take();
    const bool waited = std::string(fault).find("prep") == std::string::npos;
    EXPECT_EQ(calls.find("cpu_fini") != std::string::npos, waited) << fault << ":\n" << calls;
    EXPECT_EQ(a.capture.submissions.at(0).buffers.at(0).content,
              waited ? capture::Content::unknown : capture::Content::zero)
        << fault;
  }
}

// Records a job that the kernel accepted and that failed, but not one that it refused.
TEST(EtnavivRecorder, KeepsJobsThatTheKernelTook) {
  for (const auto& [fault, count] : {std::pair{"submit:1:EIO", 1U}, {"submit:1:EINVAL", 0U}, {"submit:1:ENOMEM", 0U}}) {
    Recorded a(fault);
    const kernels::JobId job = a.job(a.device->alloc(64).value());
    EXPECT_FALSE(a.device->submit({&job, 1}).ok());
    EXPECT_EQ(a.capture.submissions.size(), count) << fault;
    EXPECT_TRUE(a.device->submit({&job, 1}).ok());
    EXPECT_EQ(a.capture.submissions.size(), count + 1) << fault;
  }
}

// Calls of another program, in any order and with any arguments.
TEST(EtnavivRecorder, TakesCallsAsTheyCome) {
  Recorded a;
  const kernels::SyscallsRef calls = kernels::record(a.core, a.calls, a.capture);
  const int fd = calls->open(kNode);
  abi::GemNew made{.size = 4096, .flags = abi::kBoCached, .handle = 0};
  ASSERT_EQ(calls->ioctl(fd, abi::kGemNew, &made), 0);
  const int memory = ::memfd_create("camera", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(memory, 8192), 0);
  drm::PrimeHandle import{.handle = 0, .flags = 0, .fd = memory};
  ASSERT_EQ(calls->ioctl(fd, drm::kPrimeFdToHandle, &import), 0);
  const std::vector<uint32_t> words(abi::kLargestSubmission / 4, 0);
  abi::SubmitBo bos[] = {{.flags = 1, .handle = made.handle, .presumed = 0x500000},
                         {.flags = 2, .handle = import.handle, .presumed = 0x600000}};
  abi::GemSubmit submit{.nr_bos = 2,
                        .stream_size = abi::kLargestSubmission,
                        .bos = reinterpret_cast<uintptr_t>(bos),
                        .stream = reinterpret_cast<uintptr_t>(words.data()),
                        .flags = abi::kSubmitSoftpin,
                        .fence_fd = -1};
  ASSERT_EQ(calls->ioctl(fd, abi::kGemSubmit, &submit), 0);
  ASSERT_EQ(a.capture.submissions.size(), 1u) << "the largest that the kernel takes";
  const auto& buffers = a.capture.submissions[0].buffers;
  ASSERT_EQ(buffers.size(), 2u);
  EXPECT_EQ(buffers[0].size_bytes, 4096u);
  EXPECT_EQ(buffers[1].size_bytes, 8192u);
  EXPECT_EQ(buffers[1].address, 0x600000u);
  EXPECT_TRUE(a.capture.submissions[0].parameters.empty());
  submit.stream_size = 18;
  EXPECT_EQ(calls->ioctl(fd, abi::kGemSubmit, &submit), -EINVAL);
  submit.stream_size = 16;
  bos[1].handle = made.handle;
  EXPECT_EQ(calls->ioctl(fd, abi::kGemSubmit, &submit), -EALREADY);
  bos[1] = {.flags = 4, .handle = import.handle, .presumed = 0x600000};
  EXPECT_EQ(calls->ioctl(fd, abi::kGemSubmit, &submit), -EINVAL);
  EXPECT_EQ(a.capture.submissions.size(), 1u) << "what the kernel refuses is taken back";
  bos[1].flags = 3;
  submit.flags = 0;  // the kernel chooses the addresses, so the call does not contain them
  const int other = calls->open(kNode);
  EXPECT_EQ(calls->ioctl(other, abi::kGemNew, &made), 0);
  submit.nr_bos = 1;
  bos[0].handle = made.handle;
  EXPECT_EQ(calls->ioctl(other, abi::kGemSubmit, &submit), 0);
  ASSERT_EQ(a.capture.submissions.size(), 2u);
  EXPECT_EQ(a.capture.submissions[1].buffers.at(0).address, 0u);
  EXPECT_EQ(calls->close(other), 0);
  EXPECT_EQ(calls->close(fd), 0);
  EXPECT_EQ(calls->ioctl(fd, abi::kGemNew, &made), -EBADF) << "nothing is recorded of a closed file";
  ::close(memory);
}

// As in the kernel, fields that a program built with an older header does not pass are 0.
TEST(EtnavivRecorder, TakesArgumentsOfOlderPrograms) {
  Recorded a;
  const kernels::SyscallsRef calls = kernels::record(a.core, a.calls, a.capture);
  const int fd = calls->open(kNode);
  abi::GemNew made{.size = 4096, .flags = abi::kBoCached, .handle = 0};
  ASSERT_EQ(calls->ioctl(fd, abi::kGemNew, &made), 0);
  abi::SubmitBo bo{.flags = 3, .handle = made.handle, .presumed = 0};
  const uint32_t words[4] = {};
  struct {
    uint32_t fence, pipe, exec_state, nr_bos, nr_relocs, stream_size;
    uint64_t bos, relocs, stream;
  } old{0, 0, 0, 1, 0, sizeof words, reinterpret_cast<uintptr_t>(&bo), 0, reinterpret_cast<uintptr_t>(words)};
  ASSERT_EQ(calls->ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, drm::kType, _IOC_NR(abi::kGemSubmit), sizeof old), &old), 0);
  ASSERT_EQ(a.capture.submissions.size(), 1u);
  EXPECT_EQ(a.capture.submissions[0].buffers.at(0).size_bytes, 4096u);
  EXPECT_TRUE(a.capture.submissions[0].buffers.at(0).listed);
  EXPECT_EQ(calls->close(fd), 0);
}

// The kernel refuses the submission; the program goes on.
TEST(EtnavivRecorder, MemoryOfTheProcessMayBeGone) {
  Recorded a;
  const kernels::SyscallsRef calls = kernels::record(a.core, a.calls, a.capture);
  const int fd = calls->open(kNode);
  void* const memory = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<uint8_t*>(memory) = 5;
  abi::GemUserptr made{.user_ptr = reinterpret_cast<uintptr_t>(memory), .user_size = 8192, .flags = 3, .handle = 0};
  ASSERT_EQ(calls->ioctl(fd, abi::kGemUserptr, &made), 0);
  abi::SubmitBo bo{.flags = 3, .handle = made.handle, .presumed = 0x500000};
  const uint32_t words[4] = {};
  abi::GemSubmit submit{.nr_bos = 1,
                        .stream_size = sizeof words,
                        .bos = reinterpret_cast<uintptr_t>(&bo),
                        .stream = reinterpret_cast<uintptr_t>(words),
                        .flags = abi::kSubmitSoftpin,
                        .fence_fd = -1};
  ASSERT_EQ(calls->ioctl(fd, abi::kGemSubmit, &submit), 0);
  EXPECT_EQ(a.capture.submissions.at(0).buffers.at(0).bytes, Bytes{5});
  ASSERT_EQ(::munmap(memory, 8192), 0);
  EXPECT_EQ(calls->ioctl(fd, abi::kGemSubmit, &submit), -EFAULT);
  EXPECT_EQ(a.capture.submissions.size(), 1u) << "what the kernel refuses is taken back";
  EXPECT_EQ(calls->close(fd), 0);
}

// ---- the replayer ----

TEST(EtnavivReplay, FindsPlacesInItsBuffers) {
  Logged a;
  auto replay = kernels::etnaviv::Replay::create(a.core, a.calls).value();
  capture::Submission sent{.jobs = capture::one_list({0, 0})};
  sent.buffers.push_back({.handle = 7, .address = 0x500000, .size_bytes = 4096, .read = true, .listed = true});
  sent.buffers.push_back({.handle = 8, .address = 0x600000, .size_bytes = 64, .write = true, .listed = true});
  sent.buffers.push_back({.handle = 9, .address = 0, .size_bytes = 64});
  ASSERT_TRUE(replay.run(sent).ok());
  struct Row {
    uint64_t address, size;
    bool is_there;
  };
  for (const Row& row : {Row{0x500000, 4096, true}, Row{0x500000, 4097, false}, Row{0x4fffff, 1, false},
                         Row{0x500fff, 1, true}, Row{0x501000, 1, false}, Row{0x600010, 48, true},
                         Row{0x600010, 49, false}, Row{0, 1, false}, Row{0x600000, 64, true}})
    EXPECT_EQ(replay.at(row.address, row.size).ok(), row.is_there) << fmt::format("{:#x} {}", row.address, row.size);
  EXPECT_TRUE(replay.set(8, Bytes(64, 1)).ok());
  EXPECT_FALSE(replay.set(8, Bytes(65, 1)).ok());
  EXPECT_FALSE(replay.buffer(9).ok());
  EXPECT_EQ(replay.at(0x600000, 64).value()[63], 1);
}

TEST(EtnavivReplay, GivesEverythingBack) {
  Logged a;
  {
    auto replay = kernels::etnaviv::Replay::create(a.core, a.calls).value();
    capture::Submission sent{.jobs = capture::one_list({0, 0})};
    sent.buffers.push_back({.handle = 7, .address = 0x500000, .size_bytes = 64, .read = true, .listed = true});
    ASSERT_TRUE(replay.run(sent).ok());
    EXPECT_EQ(a.calls->take(),
              "open\ngem_new 64 flags 0x20000: 1\ngem_info 1\nmmap 64 at 0x100000000\n"
              "submit pipe 0 flags 8 bytes 8, 1 at 0x500000 flags 1: fence 0\nwait 0 flags 0, 60 s\n");
    sent.buffers[0].handle = 8;  // 7 was freed
    ASSERT_TRUE(replay.run(sent).ok());
    EXPECT_TRUE(a.calls->take().starts_with("munmap 64\ngem_close 1\ngem_new 64"));
    EXPECT_FALSE(replay.buffer(7).ok());
  }
  EXPECT_TRUE(a.calls->mapped.empty());
  EXPECT_EQ(a.calls->open_files.size(), 1u) << "that of the device";
}

}  // namespace
}  // namespace skillet::testing
