// The rules of the etnaviv kernel driver as its emulation follows them: what it accepts, and the errno of what it
// refuses.
#include <gtest/gtest.h>

#include <cerrno>

#include "kernel_node.h"

namespace skillet::testing {
namespace {

class KernelOfEtnaviv : public ::testing::Test {
 protected:
  int call(unsigned long request, void* args) { return node_.calls()->ioctl(fd_, request, args); }
  template <typename Args>
  int call(unsigned long request, Args args) {
    return call(request, static_cast<void*>(&args));
  }
  uint32_t buffer(uint64_t size_bytes) {
    abi::GemNew args{.size = size_bytes, .flags = abi::kBoWriteCombined, .handle = 0};
    EXPECT_EQ(call(abi::kGemNew, static_cast<void*>(&args)), 0);
    return args.handle;
  }

  KernelNode node_;
  const int fd_ = node_.calls()->open(kNode);
};

TEST_F(KernelOfEtnaviv, ChecksEachCall) {
  const uint32_t handle = buffer(4096);
  constexpr uint32_t kNone = 99;
  const auto gem_new = [&](uint64_t size, uint32_t flags) { return call(abi::kGemNew, abi::GemNew{size, flags, 0}); };
  EXPECT_EQ(gem_new(4096, 0), -EINVAL);
  EXPECT_EQ(gem_new(4096, abi::kBoCached | abi::kBoUncached), -EINVAL);
  EXPECT_EQ(gem_new(4096, abi::kBoForceMmu), -EINVAL);
  EXPECT_EQ(gem_new(4096, abi::kBoForceMmu | abi::kBoUncached), 0);
  EXPECT_EQ(gem_new(4096, abi::kBoCached | 1), -EINVAL);
  EXPECT_EQ(gem_new((uint64_t{1} << 40) + 1, abi::kBoCached), 0) << "memory comes when it is used";
  EXPECT_EQ(call(abi::kGemInfo, abi::GemInfo{handle, 0, 0}), 0);
  EXPECT_EQ(call(abi::kGemInfo, abi::GemInfo{handle, 1, 0}), -EINVAL);
  EXPECT_EQ(call(abi::kGemInfo, abi::GemInfo{kNone, 0, 0}), -ENOENT);
  EXPECT_EQ(call(abi::kGemCpuPrep, abi::GemCpuPrep{handle, 7, {}}), 0);
  EXPECT_EQ(call(abi::kGemCpuPrep, abi::GemCpuPrep{handle, 8, {}}), -EINVAL);
  EXPECT_EQ(call(abi::kGemCpuPrep, abi::GemCpuPrep{kNone, 1, {}}), -ENOENT);
  EXPECT_EQ(call(abi::kGemCpuFini, abi::GemCpuFini{handle, 0}), 0);
  EXPECT_EQ(call(abi::kGemCpuFini, abi::GemCpuFini{handle, 1}), -EINVAL);
  EXPECT_EQ(call(abi::kGemCpuFini, abi::GemCpuFini{kNone, 0}), -ENOENT);
  EXPECT_EQ(call(abi::kWaitFence, abi::WaitFence{0, 77, 0, 0, {}}), 0) << "of a job long ago";
  EXPECT_EQ(call(abi::kWaitFence, abi::WaitFence{0, 0, 2, 0, {}}), -EINVAL);
  EXPECT_EQ(call(abi::kWaitFence, abi::WaitFence{1, 0, 0, 0, {}}), -ENXIO);
  EXPECT_EQ(call(abi::kWaitFence, abi::WaitFence{4, 0, 0, 0, {}}), -EINVAL);
  EXPECT_EQ(call(abi::kGemWait, abi::GemWait{0, handle, 0, 0, {}}), 0);
  EXPECT_EQ(call(abi::kGemWait, abi::GemWait{0, handle, 2, 0, {}}), -EINVAL);
  EXPECT_EQ(call(abi::kGemWait, abi::GemWait{0, kNone, 0, 0, {}}), -ENOENT);
  EXPECT_EQ(call(abi::kGemWait, abi::GemWait{3, handle, 0, 0, {}}), -ENXIO);
  EXPECT_EQ(call(drm::kGemClose, drm::GemClose{kNone, 0}), -EINVAL);
  EXPECT_EQ(call(drm::kPrimeHandleToFd, drm::PrimeHandle{kNone, 0, -1}), -ENOENT);
  EXPECT_EQ(call(drm::kPrimeHandleToFd, drm::PrimeHandle{handle, 1, -1}), -EINVAL);
  EXPECT_EQ(call(drm::kPrimeFdToHandle, drm::PrimeHandle{0, 0, -1}), -EBADF);
  EXPECT_EQ(call(abi::kPmQueryDomain, abi::PmDomain{}), 0);
  EXPECT_EQ(call(abi::kPmQueryDomain, abi::PmDomain{.iter = 8}), -EINVAL);
  EXPECT_EQ(call(abi::kPmQuerySignal, abi::PmSignal{.pipe = 1}), -ENXIO);
  EXPECT_EQ(call(abi::kGetParam, abi::GetParam{0, 0x55, 0}), -EINVAL);
}

TEST_F(KernelOfEtnaviv, SaysWhichDriverItIs) {
  char name[8] = {}, date[4] = {}, text[4] = {};
  drm::Version args{.version_major = -1,
                    .version_minor = -1,
                    .version_patch = -1,
                    .name_len = sizeof name,
                    .name = name,
                    .date_len = sizeof date,
                    .date = date,
                    .desc_len = sizeof text,
                    .desc = text};
  ASSERT_EQ(call(drm::kVersion, static_cast<void*>(&args)), 0);
  EXPECT_EQ(fmt::format("{}.{}.{}", args.version_major, args.version_minor, args.version_patch), "1.4.0");
  EXPECT_EQ(std::string_view(name), "etnaviv");
  EXPECT_EQ(std::string_view(date, sizeof date), std::string_view("0\0\0\0", 4));
  EXPECT_EQ(std::string_view(text, sizeof text), "etna") << "as much as there is room for";
  EXPECT_EQ(args.desc_len, 11u) << "and how long it is";
}

TEST_F(KernelOfEtnaviv, TakesWholePagesOfUserMemory) {
  alignas(4096) static uint8_t memory[8192];
  const auto at = reinterpret_cast<uintptr_t>(&memory[0]);
  struct Row {
    uint64_t pointer, size;
    uint32_t flags;
    int result;
  };
  for (const Row& row :
       {Row{at, 8192, 3, 0}, Row{at, 4096, 1, 0}, Row{at, 4096, 2, 0}, Row{at, 4096, 0, -EINVAL},
        Row{at, 4096, 5, -EINVAL}, Row{at, 0, 3, 0}, Row{at + 1, 4096, 3, -EINVAL}, Row{at, 4095, 3, -EINVAL},
        Row{0, 4096, 3, 0}, Row{uint64_t{1} << 63, 4096, 3, -EFAULT}, Row{at, ~uint64_t{4095}, 3, -EINVAL}})
    EXPECT_EQ(call(abi::kGemUserptr, abi::GemUserptr{row.pointer, row.size, row.flags, 0}), row.result)
        << row.size << " flags " << row.flags;
}

TEST_F(KernelOfEtnaviv, ChecksSubmissions) {
  const uint32_t one = buffer(4096), two = buffer(8192);
  const std::vector<uint32_t> words(abi::kLargestSubmission / 4 + 1, 0);
  struct Call {
    abi::GemSubmit args;
    std::vector<abi::SubmitBo> bos;
    std::vector<abi::SubmitReloc> relocs = {};
  };
  const auto submit = [&](Call one_call) {
    abi::GemSubmit& args = one_call.args;
    if (args.stream_size == 0) args.stream_size = 16;
    args.nr_bos = args.nr_bos == 0 ? static_cast<uint32_t>(one_call.bos.size()) : args.nr_bos;
    args.nr_relocs = args.nr_relocs == 0 ? static_cast<uint32_t>(one_call.relocs.size()) : args.nr_relocs;
    args.bos = reinterpret_cast<uintptr_t>(one_call.bos.data());
    args.relocs = reinterpret_cast<uintptr_t>(one_call.relocs.data());
    args.stream = reinterpret_cast<uintptr_t>(words.data());
    return call(abi::kGemSubmit, static_cast<void*>(&args));
  };
  constexpr uint32_t kPin = abi::kSubmitSoftpin, kMost = abi::kLargestSubmission;
  constexpr uint64_t kFirst = abi::kAddressStart;
  EXPECT_EQ(submit({{.stream_size = kMost, .flags = kPin}, {}}), 0);
  EXPECT_EQ(submit({{.stream_size = kMost + 4, .flags = kPin}, {}}), -EINVAL);
  EXPECT_EQ(submit({{.nr_bos = kMost + 1, .flags = kPin}, {}}), -EINVAL);
  EXPECT_EQ(submit({{.nr_relocs = kMost + 1, .flags = 0}, {}}), -EINVAL);
  EXPECT_EQ(submit({{.nr_relocs = 1, .flags = kPin}, {}}), -EFAULT);
  EXPECT_EQ(submit({{.flags = kPin}, {}, {{}}}), -EINVAL) << "relocations with addresses of its own";
  EXPECT_EQ(submit({{.stream_size = 18, .flags = kPin}, {}}), -EINVAL);
  EXPECT_EQ(submit({{.flags = kPin, .pad = 1}, {}}), 0);
  EXPECT_EQ(submit({{.flags = kPin, .nr_pmrs = 1}, {}}), -EFAULT);
  EXPECT_EQ(submit({{.flags = 16}, {}}), -EINVAL);
  EXPECT_EQ(submit({{.exec_state = 2, .flags = kPin}, {}}), 0);
  EXPECT_EQ(submit({{.exec_state = 3, .flags = kPin}, {}}), -EINVAL);
  EXPECT_EQ(submit({{.pipe = 1, .flags = kPin}, {}}), -ENXIO);
  EXPECT_EQ(submit({{.pipe = 4, .flags = kPin}, {}}), -EINVAL);
  EXPECT_EQ(submit({{.flags = kPin | abi::kSubmitFenceFdIn, .fence_fd = -1}, {}}), -EINVAL);
  EXPECT_EQ(submit({{.flags = kPin}, {{4, one, kFirst}}}), -EINVAL);
  EXPECT_EQ(submit({{.flags = kPin}, {{3, 99, kFirst}}}), -EINVAL);
  EXPECT_EQ(submit({{.flags = kPin}, {{3, one, kFirst - 4096}}}), -EINVAL);
  EXPECT_EQ(submit({{.flags = kPin}, {{3, one, kFirst + 1}}}), -EINVAL);
  EXPECT_EQ(submit({{.flags = kPin}, {{3, one, kFirst}, {3, one, kFirst}}}), -EALREADY);
  EXPECT_EQ(submit({{.flags = kPin}, {{3, one, kFirst}, {3, two, kFirst}}}), -ENOSPC) << "one over the other";
  EXPECT_EQ(submit({{.flags = kPin}, {{3, one, kFirst}, {3, two, kFirst + 4096}}}), 0);
  EXPECT_EQ(submit({{.flags = kPin}, {{3, two, kFirst + 8192}}}), 0) << "it moves: no job uses it";
  EXPECT_EQ(submit({{.flags = kPin}, {{3, one, kFirst + 12288}}}), 0) << "what no job uses makes room";
  EXPECT_EQ(submit({{.flags = kPin}, {{3, buffer(4096), (uint64_t{1} << 32)}}}), -ENOSPC);
  EXPECT_EQ(submit({{.flags = kPin}, {{3, buffer(4096), (uint64_t{1} << 32) - 4096}}}), 0);
  const auto relocated = [&](abi::SubmitReloc reloc) { return submit({{.flags = 0}, {{3, one, 0}}, {reloc}}); };
  EXPECT_EQ(relocated({.submit_offset = 16}), -EINVAL);
  EXPECT_EQ(relocated({.submit_offset = 2}), -EINVAL);
  EXPECT_EQ(relocated({.submit_offset = 4, .reloc_idx = 1}), -EINVAL);
  EXPECT_EQ(relocated({.submit_offset = 4, .reloc_offset = 4093}), -EINVAL);
  EXPECT_EQ(relocated({.submit_offset = 4, .flags = 1}), -EINVAL);
  EXPECT_EQ(relocated({.submit_offset = 12, .reloc_offset = 4092}), 0) << "the last word of the buffer";
  EXPECT_EQ(submit({{.flags = 0}, {{3, one, 0}}, {{.submit_offset = 8}, {.submit_offset = 4}}}), -EINVAL);
}

// A stock kernel dereferences a NULL pointer here: the process ends with a line that names the call.
TEST(KernelOfEtnavivMisuse, PunishesTheUseOfEmptyBuffers) {
  const auto use = [](bool prepares) {
    KernelNode node;
    const int fd = node.calls()->open(kNode);
    abi::GemNew made{.size = 0, .flags = abi::kBoCached, .handle = 0};
    node.calls()->ioctl(fd, abi::kGemNew, &made);
    abi::GemCpuPrep prep{made.handle, abi::kPrepRead, {}};
    abi::SubmitBo bo{.flags = 1, .handle = made.handle, .presumed = 0};
    abi::GemSubmit submit{.nr_bos = 1, .bos = reinterpret_cast<uintptr_t>(&bo)};
    if (prepares)
      node.calls()->ioctl(fd, abi::kGemCpuPrep, &prep);
    else
      node.calls()->ioctl(fd, abi::kGemSubmit, &submit);
  };
  EXPECT_DEATH(use(true), "gem_cpu_prep: handle 1 is empty");
  EXPECT_DEATH(use(false), "submit: handle 1 is empty");
}

// Closed buffers return their addresses to the file.
TEST_F(KernelOfEtnaviv, GivesAddressesOfClosedBuffersAgain) {
  for (int i = 0; i < 3; ++i) {
    const uint32_t handle = buffer(4096);
    abi::SubmitBo bo{.flags = 3, .handle = handle, .presumed = abi::kAddressStart};
    const uint32_t words[4] = {};
    abi::GemSubmit args{.nr_bos = 1,
                        .stream_size = sizeof words,
                        .bos = reinterpret_cast<uintptr_t>(&bo),
                        .stream = reinterpret_cast<uintptr_t>(words),
                        .flags = abi::kSubmitSoftpin,
                        .fence_fd = -1};
    EXPECT_EQ(call(abi::kGemSubmit, static_cast<void*>(&args)), 0) << i;
    EXPECT_EQ(call(drm::kGemClose, drm::GemClose{handle, 0}), 0);
  }
}

}  // namespace
}  // namespace skillet::testing
