// Calls of the virtual device node, with the kernel's answers. Runs with libskillet-virtual.so preloaded.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>

#include "kernels/etnaviv/recorder/replay.h"
#include "kernels/fake/simulated.h"
#include "node_testing.h"

namespace skillet::interpose_test {
namespace {

using abi::GemUserptr;

bool is_zero(const std::vector<uint8_t>& bytes) {
  return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
}

TEST(VirtualNode, TellsItsParameters) {
  const Node node;
  ASSERT_GE(node.fd(), 0);
  struct Row {
    uint32_t pipe, param;
    int failure;
    uint64_t value;
  };
  for (const Row& row :
       {Row{0, 0x01, 0, 0x8000}, Row{0, 0x02, 0, 0x7120}, Row{0, 0x03, 0, 0xe0287cac}, Row{0, 0x0f, 0, 0x10},
        Row{0, 0x18, 0, 512}, Row{0, 0x1b, 0, kLow}, Row{0, 0x1c, 0, 0x45080009}, Row{0, 0x1d, 0, 0x88},
        Row{0, 0x1e, 0, 0}, Row{0, 0x1f, EINVAL, 0}, Row{0, 0, EINVAL, 0}, Row{1, 1, ENXIO, 0}, Row{4, 1, EINVAL, 0}}) {
    abi::GetParam args{.pipe = row.pipe, .param = row.param, .value = 0};
    EXPECT_EQ(node.call(abi::kGetParam, args), row.failure) << row.param;
    EXPECT_EQ(args.value, row.value) << row.param;
  }
}

TEST(VirtualNode, FilesHaveLocksOfTheirOwn) {
  const Node first;
  auto second = std::make_unique<Node>();
  const auto lock = [](const Node& node, int operation) { return ::flock(node.fd(), operation | LOCK_NB) == 0; };
  EXPECT_TRUE(lock(*second, LOCK_EX) && lock(*second, LOCK_EX));
  EXPECT_FALSE(lock(first, LOCK_EX));
  EXPECT_EQ(errno, EWOULDBLOCK);
  const int copy = ::dup(second->fd());
  EXPECT_EQ(::flock(copy, LOCK_UN), 0);
  EXPECT_TRUE(lock(first, LOCK_EX) && lock(first, LOCK_UN) && lock(*second, LOCK_EX));
  second.reset();
  EXPECT_FALSE(lock(first, LOCK_EX)) << "the copy has it";
  ::close(copy);
  EXPECT_TRUE(lock(first, LOCK_EX));
}

TEST(VirtualNode, RefusesWhatItDoesNotKnow) {
  const Node node;
  uint64_t argument[16] = {};
  EXPECT_EQ(node.call(_IOWR('d', 0x41, uint64_t), argument), EINVAL);
  EXPECT_EQ(node.call(_IOWR('d', 0x7f, uint64_t), argument), EINVAL);
  EXPECT_EQ(node.call(_IOWR('d', 0xbf, uint64_t), argument), EOPNOTSUPP);  // sync objects
  EXPECT_EQ(node.call(abi::kGetParam, nullptr), EFAULT);
  abi::PmDomain domain{.iter = 8};
  abi::PmSignal signal{.domain = 8};
  EXPECT_EQ(node.call(abi::kPmQueryDomain, domain), EINVAL);
  EXPECT_EQ(node.call(abi::kPmQuerySignal, signal), EINVAL);
  const Node missing("/dev/dri/renderD129");
  EXPECT_EQ(missing.open_error(), ENOENT);
}

TEST(VirtualNode, WritesOnlyWhereTheProcessMay) {
  const Node node;
  void* const memory = ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::unique_ptr<void, std::function<void(void*)>> owner(memory, [](void* one) { ::munmap(one, 2 * kPage); });
  auto& args = *static_cast<abi::GetParam*>(memory);
  args = {.pipe = 0, .param = 1, .value = 0};
  auto& version = *reinterpret_cast<drm::Version*>(static_cast<char*>(memory) + kPage - sizeof(drm::Version));
  version.name_len = 4;
  version.name = static_cast<char*>(memory) + kPage;
  ASSERT_EQ(::mprotect(version.name, kPage, PROT_READ), 0);
  EXPECT_EQ(node.call(drm::kVersion, version), EFAULT) << "the name cannot be written";
  version.name = static_cast<char*>(memory);
  EXPECT_EQ(node.call(drm::kVersion, version), 0);
  ASSERT_EQ(::mprotect(memory, kPage, PROT_READ), 0);
  EXPECT_EQ(node.call(abi::kGetParam, args), EFAULT);
  EXPECT_EQ(node.call(drm::kVersion, version), EFAULT);
}

TEST(VirtualNode, AnswersWhatAllDriversAnswer) {
  const Node node;
  for (const auto& [capability, failure, value] :
       {std::tuple{uint64_t{5}, 0, uint64_t{3}}, {6, 0, 1}, {0x13, 0, 0}, {0x14, 0, 0}, {1, EOPNOTSUPP, 9}}) {
    drm::GetCap args{.capability = capability, .value = 9};
    EXPECT_EQ(node.call(drm::kGetCap, args), failure) << capability;
    EXPECT_EQ(args.value, value) << capability;
  }
  char name[4] = "???";
  drm::Version version{};
  version.name = name, version.name_len = 2;
  EXPECT_EQ(node.call(drm::kVersion, version), 0);
  EXPECT_STREQ(name, "et?") << "as much as there is room for";
  EXPECT_EQ(version.name_len, 7U);
  EXPECT_EQ(std::tuple(version.version_major, version.version_minor, version.version_patch), std::tuple(1, 4, 0));
  drm::Unique unique{};
  drm::Auth auth{};
  drm::SetVersion set{};
  EXPECT_EQ(node.call(drm::kGetUnique, unique), EACCES) << "only on nodes of displays";
  EXPECT_EQ(node.call(drm::kGetMagic, auth), EACCES);
  EXPECT_EQ(node.call(drm::kSetVersion, set), EACCES);
  for (const auto& [number, failure] : {std::pair{0x0d, EACCES},
                                        {0x0e, EINVAL},
                                        {0xbe, EACCES},
                                        {0xbf, EOPNOTSUPP},
                                        {0xcf, EOPNOTSUPP},
                                        {0xd0, EACCES},
                                        {0xd2, EINVAL}}) {
    uint64_t argument[16] = {};
    EXPECT_EQ(node.call(_IOC(_IOC_READ | _IOC_WRITE, 'd', static_cast<unsigned>(number), 8), argument), failure)
        << number;
  }
}

TEST(VirtualBuffers, AreZeroedSharedAndOutliveTheirHandle) {
  const Node node;
  uint32_t handle = 0;
  ASSERT_EQ(node.new_buffer(5000, handle), 0);
  uint8_t *one = nullptr, *two = nullptr;
  ASSERT_EQ(node.map(handle, 2 * kPage, one), 0);  // sizes are whole pages
  ASSERT_EQ(node.map(handle, kPage, two), 0);
  EXPECT_EQ(one[2 * kPage - 1], 0);
  one[7] = 42;
  EXPECT_EQ(two[7], 42);
  uint8_t* three = nullptr;
  EXPECT_EQ(node.map(handle, 3 * kPage, three), EINVAL);
  ASSERT_EQ(node.close_buffer(handle), 0);
  EXPECT_EQ(node.close_buffer(handle), EINVAL);
  EXPECT_EQ(node.map(handle, kPage, three), ENOENT);
  EXPECT_EQ(two[7], 42);
}

TEST(VirtualBuffers, GemRules) {
  const Node node;
  uint32_t handle = 0;
  ASSERT_EQ(node.new_buffer(1, handle), 0);
  for (const uint32_t flags : {0u, 0x00030000u, 0x00020001u, 0x00080000u, 0x00220000u}) {
    abi::GemNew args{.size = kPage, .flags = flags, .handle = 0};
    EXPECT_EQ(node.call(abi::kGemNew, args), EINVAL) << flags;
  }
  for (const uint32_t flags : {0x00010000u, 0x00040000u, 0x00120000u}) {
    abi::GemNew args{.size = kPage, .flags = flags, .handle = 0};
    EXPECT_EQ(node.call(abi::kGemNew, args), 0) << flags;
  }
  for (const auto& [size, failure] : {std::pair{uint64_t{0}, ENOSPC}, {(uint64_t{1} << 40) + 1, 0}}) {
    abi::GemNew args{.size = size, .flags = 0x00020000u, .handle = 0};
    EXPECT_EQ(node.call(abi::kGemNew, args), 0) << size;
    abi::GemInfo info{.handle = args.handle, .pad = 0, .offset = 0};
    EXPECT_EQ(node.call(abi::kGemInfo, info), failure) << size;
  }
  abi::GemInfo info{.handle = handle, .pad = 1, .offset = 0};
  EXPECT_EQ(node.call(abi::kGemInfo, info), EINVAL);
  EXPECT_EQ(node.prepare(handle, abi::kPrepRead | abi::kPrepWrite | abi::kPrepNoSync, 0), 0);
  EXPECT_EQ(node.prepare(handle, 8, 0), EINVAL);
  EXPECT_EQ(node.prepare(99, abi::kPrepRead, 0), ENOENT);
  abi::GemCpuFini finish{.handle = handle, .flags = 1};
  EXPECT_EQ(node.call(abi::kGemCpuFini, finish), EINVAL);
  finish = {.handle = 99, .flags = 0};
  EXPECT_EQ(node.call(abi::kGemCpuFini, finish), ENOENT);
  abi::GemWait wait{.pipe = 0, .handle = handle, .flags = 2, .pad = 0, .timeout = {}};
  EXPECT_EQ(node.call(abi::kGemWait, wait), EINVAL);
  wait.flags = 1;
  EXPECT_EQ(node.call(abi::kGemWait, wait), 0);
  wait.handle = 99;
  EXPECT_EQ(node.call(abi::kGemWait, wait), ENOENT);
  wait.pipe = 1;
  EXPECT_EQ(node.call(abi::kGemWait, wait), ENXIO);
  abi::WaitFence fence{.pipe = 4, .fence = 1, .flags = 0, .pad = 0, .timeout = {}};
  EXPECT_EQ(node.call(abi::kWaitFence, fence), EINVAL);
  fence.pipe = 0, fence.flags = 2;
  EXPECT_EQ(node.call(abi::kWaitFence, fence), EINVAL);
  drm::PrimeHandle prime{.handle = handle, .flags = 4, .fd = -1};
  EXPECT_EQ(node.call(drm::kPrimeHandleToFd, prime), EINVAL);
  prime = {.handle = 99, .flags = 0, .fd = -1};
  EXPECT_EQ(node.call(drm::kPrimeHandleToFd, prime), ENOENT);
}

TEST(VirtualBuffers, TravelAsDescriptors) {
  const Node one, two;
  uint32_t handle = 0;
  uint8_t *bytes = nullptr, *imported_bytes = nullptr;
  ASSERT_EQ(one.new_buffer(kPage, handle), 0);
  ASSERT_EQ(one.map(handle, kPage, bytes), 0);
  drm::PrimeHandle prime{.handle = handle, .flags = drm::kPrimeCloexec | drm::kPrimeReadWrite, .fd = -1};
  ASSERT_EQ(one.call(drm::kPrimeHandleToFd, prime), 0);
  EXPECT_EQ(::lseek(prime.fd, 0, SEEK_END), static_cast<off_t>(kPage));
  drm::PrimeHandle again{.handle = 0, .flags = 0, .fd = prime.fd};
  ASSERT_EQ(one.call(drm::kPrimeFdToHandle, again), 0);
  EXPECT_EQ(again.handle, handle);
  ASSERT_EQ(two.call(drm::kPrimeFdToHandle, again), 0);
  ASSERT_EQ(two.map(again.handle, kPage, imported_bytes), 0);
  bytes[3] = 9;
  EXPECT_EQ(imported_bytes[3], 9);
  const int null = ::open("/dev/null", O_RDWR);
  drm::PrimeHandle wrong{.handle = 0, .flags = 0, .fd = null};
  EXPECT_EQ(one.call(drm::kPrimeFdToHandle, wrong), EINVAL);
  ::close(null);
  ::close(prime.fd);
}

TEST(VirtualBuffers, OfUserMemory) {
  const Node node;
  void* const memory = ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto address = reinterpret_cast<uint64_t>(memory);
  GemUserptr args{.user_ptr = address, .user_size = kPage, .flags = 3, .handle = 0};
  EXPECT_EQ(node.call(abi::kGemUserptr, args), 0);
  for (const GemUserptr& bad :
       {GemUserptr{address + 8, kPage, 3, 0}, GemUserptr{address, kPage + 8, 3, 0},
        GemUserptr{address, ~(kPage - 1), 3, 0}, GemUserptr{address, kPage, 0, 0}, GemUserptr{address, kPage, 4, 0}}) {
    GemUserptr copy = bad;
    EXPECT_EQ(node.call(abi::kGemUserptr, copy), EINVAL) << bad.user_size << " " << bad.flags;
  }
  ::munmap(memory, 2 * kPage);
  GemUserptr gone{.user_ptr = address, .user_size = kPage, .flags = 3, .handle = 0};
  EXPECT_EQ(node.call(abi::kGemUserptr, gone), 0) << "it is looked for when it is used";
  abi::GemSubmit submit{};
  submit.flags = abi::kSubmitSoftpin;
  EXPECT_EQ(node.submit(submit, {{1, args.handle, kLow}}, kNothing), EFAULT);
}

TEST(VirtualSubmit, RunsARecordedJob) {
  const Node node;
  RecordedJob job = load_job();
  ASSERT_EQ(job.allocate(node), "");
  uint32_t first = 0, second = 0;
  ASSERT_EQ(job.submit(node, 0, first), 0);
  EXPECT_EQ(node.prepare(job.output_handle(), abi::kPrepRead, 1000), 0);
  expect_output(job);
  ASSERT_EQ(job.submit(node, 0, second), 0);
  EXPECT_GT(second, first);
  EXPECT_EQ(node.wait(second, 1000), 0);
}

TEST(VirtualSubmit, GivesTheBytesThatAReplayGives) {
  const Node node;
  RecordedJob job = load_job();
  ASSERT_EQ(job.allocate(node), "");
  uint32_t fence = 0;
  ASSERT_EQ(job.submit(node, 0, fence), 0);
  const fake::SimulatedCore chip = fake::simulated_core("a311d").value();
  auto replay = abi::Replay::create(chip.core, chip.calls).value();
  const auto input = read_file(kCase + "/input_0.bin");
  ASSERT_TRUE(replay.place(job.recorded()).ok() && replay.set(3, *input).ok() && replay.run_placed().ok());
  const auto bytes = replay.buffer(6).value().first(job.expected().size());
  EXPECT_EQ(job.output(), std::vector<uint8_t>(bytes.begin(), bytes.end()));
}

TEST(VirtualSubmit, GivesFenceDescriptors) {
  const Node node;
  RecordedJob job = load_job();
  ASSERT_EQ(job.allocate(node), "");
  uint32_t fence = 0;
  int fd = -1;
  ASSERT_EQ(job.submit(node, abi::kSubmitFenceFdOut, fence, &fd), 0);
  pollfd poll{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&poll, 1, 1000), 1);
  int both = fd;
  ASSERT_EQ(job.submit(node, abi::kSubmitFenceFdIn | abi::kSubmitFenceFdOut, fence, &both), 0);
  EXPECT_NE(both, fd);
  int bad = ::open("/dev/null", O_RDONLY);
  EXPECT_EQ(job.submit(node, abi::kSubmitFenceFdIn, fence, &bad), EINVAL);
  ::close(bad);
  ::close(both);
  ::close(fd);
}

TEST(VirtualSubmit, AFaultLooksLikeAHang) {
  const Node node;
  RecordedJob job = load_job();
  ASSERT_EQ(job.allocate(node), "");
  std::vector<abi::SubmitBo> listed = job.listed();
  std::erase_if(listed, [&](const abi::SubmitBo& one) { return one.handle == job.input_handle(); });
  abi::GemSubmit args{};
  args.flags = abi::kSubmitSoftpin;
  ASSERT_EQ(node.submit(args, listed, job.stream()), 0);
  EXPECT_EQ(node.wait(args.fence, 1000), 0);
  EXPECT_TRUE(is_zero(job.output()));
  uint32_t fence = 0;
  ASSERT_EQ(job.submit(node, 0, fence), 0);
  EXPECT_TRUE(is_zero(job.output())) << "a reset undoes the set-up of the chip";
  set_up_chip(node);
  ASSERT_EQ(job.submit(node, 0, fence), 0);
  expect_output(job);
}

TEST(VirtualSubmit, AppliesRelocations) {
  const Node node;
  RecordedJob job = load_job();
  ASSERT_EQ(job.allocate(node), "");
  std::vector<uint32_t> stream = job.stream();
  const std::vector<abi::SubmitBo> listed = job.listed();
  uint32_t fence = 0;
  ASSERT_EQ(job.submit(node, 0, fence), 0);  // now the buffers have their addresses
  job.clear_output();
  std::vector<abi::SubmitReloc> relocations;
  for (uint32_t word = 0; word < stream.size(); ++word) {
    for (uint32_t i = 0; i < listed.size(); ++i) {
      if (stream[word] != static_cast<uint32_t>(listed[i].presumed)) continue;
      relocations.push_back({word * 4, i, 0, 0, 0});
      stream[word] = 0xdead0000;
    }
  }
  ASSERT_FALSE(relocations.empty());
  abi::GemSubmit args{};
  args.nr_relocs = static_cast<uint32_t>(relocations.size());
  args.relocs = reinterpret_cast<uint64_t>(relocations.data());
  ASSERT_EQ(node.submit(args, listed, stream), 0);
  expect_output(job);
}

using Buffers = std::vector<abi::SubmitBo>;

// Returns the kernel's answer to a submission of two buffers of two pages each, after `spoil` changed it.
int answer(const std::function<void(abi::GemSubmit&, Buffers&)>& spoil) {
  const Node node;
  Buffers buffers(2);
  for (size_t i = 0; i < buffers.size(); ++i) {
    buffers[i] = {abi::kSubmitBoRead, 0, kLow + i * 0x10000};
    EXPECT_EQ(node.new_buffer(2 * kPage, buffers[i].handle), 0);
  }
  abi::GemSubmit args{};
  args.flags = abi::kSubmitSoftpin;
  spoil(args, buffers);
  return node.submit(args, buffers, kNothing);
}

// One row per rule of the kernel: a change to a valid submission, and the errno.
TEST(VirtualSubmit, EnforcesTheKernelsRules) {
  struct Rule {
    const char* name;
    int failure;
    void (*spoil)(abi::GemSubmit&, Buffers&);
  };
  const Rule rules[] = {
      {"nothing", 0, [](auto&, auto&) {}},
      {"pad", 0, [](auto& a, auto&) { a.pad = 1; }},
      {"no such core", ENXIO, [](auto& a, auto&) { a.pipe = 1; }},
      {"pipe", EINVAL, [](auto& a, auto&) { a.pipe = 4; }},
      {"exec_state", EINVAL, [](auto& a, auto&) { a.exec_state = 3; }},
      {"state of a 2D core", 0, [](auto& a, auto&) { a.exec_state = 2; }},
      {"unknown flag", EINVAL, [](auto& a, auto&) { a.flags |= 0x10; }},
      {"performance counters", EFAULT, [](auto& a, auto&) { a.nr_pmrs = 1; }},
      {"buffer flags", EINVAL, [](auto&, auto& b) { b[0].flags = 4; }},
      {"unknown handle", EINVAL, [](auto&, auto& b) { b[0].handle = 99; }},
      {"handle 0", EINVAL, [](auto&, auto& b) { b[0].handle = 0; }},
      {"listed twice", EALREADY, [](auto&, auto& b) { b.push_back(b[0]); }},
      {"too low", EINVAL, [](auto&, auto& b) { b[0].presumed = kLow - kPage; }},
      {"address 0", EINVAL, [](auto&, auto& b) { b[0].presumed = 0; }},
      {"not on a page", EINVAL, [](auto&, auto& b) { b[0].presumed += 64; }},
      {"beyond 4 GiB", ENOSPC, [](auto&, auto& b) { b[0].presumed = uint64_t{1} << 32; }},
      {"across 4 GiB", ENOSPC, [](auto&, auto& b) { b[0].presumed = 0xfffff000; }},
      {"overlap", ENOSPC, [](auto&, auto& b) { b[0].presumed = b[1].presumed + kPage; }},
      {"fence", EINVAL, [](auto& a, auto&) { a.flags |= abi::kSubmitFenceFdIn, a.fence_fd = -1; }},
  };
  for (const Rule& rule : rules) EXPECT_EQ(answer(rule.spoil), rule.failure) << rule.name;
}

TEST(VirtualSubmit, EnforcesTheKernelsRulesOfRelocations) {
  struct Rule {
    const char* name;
    int failure;
    std::vector<abi::SubmitReloc> relocations;
    uint32_t flags = 0;
  };
  const Rule rules[] = {
      {"sorted", 0, {{4, 0, 0, 0, 0}, {4, 1, 8188, 0, 0}}},
      {"with softpin", EINVAL, {{0, 0, 0, 0, 0}}, abi::kSubmitSoftpin},
      {"not on a word", EINVAL, {{2, 0, 0, 0, 0}}},
      {"outside", EINVAL, {{8, 0, 0, 0, 0}}},
      {"to no buffer", EINVAL, {{0, 2, 0, 0, 0}}},
      {"too far", EINVAL, {{0, 1, 8189, 0, 0}}},
      {"flags", EINVAL, {{0, 0, 0, 1, 0}}},
      {"unsorted", EINVAL, {{4, 0, 0, 0, 0}, {0, 0, 0, 0, 0}}},
  };
  for (const Rule& rule : rules) {
    const auto relocate = [&](abi::GemSubmit& args, Buffers&) {
      args.flags = rule.flags;
      args.nr_relocs = static_cast<uint32_t>(rule.relocations.size());
      args.relocs = reinterpret_cast<uint64_t>(rule.relocations.data());
    };
    EXPECT_EQ(answer(relocate), rule.failure) << rule.name;
  }
}

TEST(VirtualSubmit, ChecksSizesAndPointers) {
  const Node node;
  abi::GemSubmit args{};
  args.stream_size = 6;
  args.stream = reinterpret_cast<uint64_t>(kNothing.data());
  EXPECT_EQ(node.call(abi::kGemSubmit, args), EINVAL);
  args.stream_size = 256 * 1024;
  EXPECT_EQ(node.call(abi::kGemSubmit, args), EINVAL);
  args.stream_size = 8;
  args.stream = kPage;
  EXPECT_EQ(node.call(abi::kGemSubmit, args), EFAULT);
  args.stream = reinterpret_cast<uint64_t>(kNothing.data());
  args.nr_bos = 1;
  EXPECT_EQ(node.call(abi::kGemSubmit, args), EFAULT);
  for (uint32_t abi::GemSubmit::*count : {&abi::GemSubmit::nr_bos, &abi::GemSubmit::nr_relocs}) {
    abi::GemSubmit many{};
    many.stream_size = 8, many.stream = args.stream;
    many.*count = abi::kLargestSubmission;
    EXPECT_EQ(node.call(abi::kGemSubmit, many), EFAULT) << "so many may be, if they were there";
    ++(many.*count);
    EXPECT_EQ(node.call(abi::kGemSubmit, many), EINVAL);
  }
  std::vector<uint32_t> longest(abi::kLargestSubmission / 4);
  abi::GemSubmit whole{};
  whole.flags = abi::kSubmitSoftpin;
  EXPECT_EQ(node.submit(whole, {}, longest), 0);
  longest.push_back(0);
  EXPECT_EQ(node.submit(whole, {}, longest), EINVAL);
}

TEST(VirtualSubmit, MovesBuffersThatNoJobUses) {
  const Node node;
  uint32_t one = 0, two = 0;
  ASSERT_EQ(node.new_buffer(kPage, one), 0);
  ASSERT_EQ(node.new_buffer(kPage, two), 0);
  const auto submit = [&](uint32_t handle, uint64_t address) {
    abi::GemSubmit args{};
    args.flags = abi::kSubmitSoftpin;
    return node.submit(args, {{1, handle, address}}, kNothing);
  };
  EXPECT_EQ(submit(one, kLow), 0);
  EXPECT_EQ(submit(one, kLow), 0);
  EXPECT_EQ(submit(one, kLow + kPage), 0);
  EXPECT_EQ(submit(two, kLow + kPage), 0) << "the other loses its address";
  EXPECT_EQ(submit(one, kLow), 0);
  ASSERT_EQ(node.close_buffer(one), 0);
  EXPECT_EQ(submit(two, kLow), 0);
  const Node other;  // has its own address space
  ASSERT_EQ(other.new_buffer(kPage, one), 0);
  abi::GemSubmit args{};
  args.flags = abi::kSubmitSoftpin;
  EXPECT_EQ(other.submit(args, {{1, one, kLow}}, kNothing), 0);
}

TEST(VirtualBuffers, KeepTheirSize) {
  const Node node;
  uint32_t handle = 0;
  ASSERT_EQ(node.new_buffer(kPage, handle), 0);
  drm::PrimeHandle prime{.handle = handle, .flags = drm::kPrimeReadWrite, .fd = -1};
  ASSERT_EQ(node.call(drm::kPrimeHandleToFd, prime), 0);
  EXPECT_NE(::ftruncate(prime.fd, 0), 0);
  EXPECT_EQ(errno, EPERM);
  ::close(prime.fd);
}

TEST(VirtualSubmit, FarDeadlinesAreNoTrouble) {
  const Node node;
  abi::GemSubmit submit{};
  submit.flags = abi::kSubmitSoftpin;
  ASSERT_EQ(node.submit(submit, {}, kNothing), 0);
  for (const int64_t seconds : {INT64_MIN, int64_t{0}, INT64_MAX}) {
    for (const int64_t nanoseconds : {INT64_MIN, int64_t{0}, INT64_MAX}) {
      abi::WaitFence args{.pipe = 0, .fence = submit.fence, .flags = 0, .pad = 0, .timeout = {seconds, nanoseconds}};
      EXPECT_EQ(node.call(abi::kWaitFence, args), 0);
    }
  }
}

}  // namespace
}  // namespace skillet::interpose_test
