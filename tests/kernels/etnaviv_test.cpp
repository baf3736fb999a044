// The client of etnaviv against the emulated kernel driver, in this process.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/testing/own_folder.h"
#include "graph/ir/graph.h"
#include "kernels/api/testing/submit.h"
#include "kernels/kernel_node.h"
#include "runtime/session.h"

namespace skillet::testing {
namespace {

using std::chrono::milliseconds;

std::unique_ptr<kernels::Device> open(const KernelNode& node) {
  auto device = node.open();
  EXPECT_TRUE(device.ok()) << device.error().message;
  return std::move(device).value();
}

runtime::NpuSearch search(const KernelNode& node) { return runtime::identify(kernels::find_devices("", node.calls())); }

TEST(EtnavivFind, TellsTheNpuFromTheGpuOfOneNode) {
  const KernelNode node("", {"gpu", "a311d"});
  const auto nodes = kernels::find_devices("", node.calls());
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].node, kNode);
  EXPECT_EQ(nodes[0].kernel_driver, "etnaviv");
  ASSERT_EQ(nodes[0].cores.size(), 2u);
  EXPECT_EQ(nodes[0].cores[1].index, 1u);
  EXPECT_EQ(nodes[0].cores[1].info.fact("customer"), 0x88u);
  const auto found = search(node);
  ASSERT_EQ(found.npus.size(), 1u);
  EXPECT_EQ(found.npus[0].name, "etnaviv0");
  EXPECT_EQ(found.npus[0].chip.name, "a311d");
  EXPECT_NE(found.rejected.find("core 0: "), std::string::npos) << found.rejected;
  EXPECT_NE(found.rejected.find("no known NPU has model 0x7000, revision 0x6214"), std::string::npos);
  EXPECT_FALSE(found.blocked);
}

constexpr const char* kRelu = R"(graph ""
tensor 0 "in" uint8 1x4x4x8 scale=0.5 zero=128
tensor 1 "out" uint8 1x4x4x8 scale=0.5 zero=128
inputs 0
outputs 1
op 0 RELU in=[0] out=[1]
)";

// Without allow_unproven nothing runs on such a chip; one message names the assumptions.
TEST(EtnavivFind, ChipsUnderAssumptionsNeedAllowUnproven) {
  const KernelNode node("", {"s905d3"});
  const auto target = node.target();
  ASSERT_TRUE(target.ok()) << target.error().message;
  for (const bool allow : {false, true}) {
    ::testing::internal::CaptureStderr();
    const auto session = runtime::Session::create(
        *ir::parse(kRelu), *target, {.compile = {.unproven = allow ? npu::Unproven::take : npu::Unproven::refuse}});
    const std::string said = ::testing::internal::GetCapturedStderr();
    ASSERT_TRUE(session.ok()) << session.error().message;
    EXPECT_EQ((*session)->report().parts[0].on_npu, allow);
    EXPECT_EQ(said.find("refused by unproven=refuse") != std::string::npos, !allow) << said;
    EXPECT_EQ(said.find("coefficients are assumed") != std::string::npos, !allow) << said;
  }
}

// The i.MX 8M Plus has a 3D and a 2D GPU behind the same node: jobs and waits go to the NPU, at any position.
TEST(EtnavivFind, JobsGoToThePipeOfTheNpu) {
  const auto graph = ir::parse(kRelu);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  for (uint32_t place = 0; place < 3; ++place) {
    std::vector<std::string> cores(3, "gpu");
    cores[place] = "imx8mp";
    KernelNode node("", cores);
    static std::set<uint32_t> pipes;  // static, so that a plain function can reach it
    pipes.clear();
    node.spy().edits[abi::kGemSubmit] = [](void* args) { pipes.insert(static_cast<abi::GemSubmit*>(args)->pipe); };
    node.spy().edits[abi::kWaitFence] = [](void* args) { pipes.insert(static_cast<abi::WaitFence*>(args)->pipe); };
    const auto target = node.target();
    ASSERT_TRUE(target.ok()) << target.error().message;
    EXPECT_EQ(target->chip.name, "imx8mp");
    const auto session = runtime::Session::create(*graph, *target, {.allow_fallback = false});
    ASSERT_TRUE(session.ok()) << session.error().message;
    const Bytes input(128, 120);  // below zero
    const std::span<const uint8_t> inputs[] = {input};
    const auto outputs = (*session)->run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    EXPECT_EQ((*outputs)[0], Bytes(128, 128));
    EXPECT_EQ(pipes, std::set<uint32_t>{place});
  }
}

TEST(EtnavivFind, SaysWhyANodeIsNone) {
  EXPECT_TRUE(kernels::find_devices("/nowhere").empty());
  KernelNode other;
  other.spy().edits[drm::kVersion] = [](void* args) {
    std::strcpy(static_cast<drm::Version*>(args)->name, "panfrost");
  };
  EXPECT_EQ(search(other).rejected, std::string(kNode) + ": kernel driver 'panfrost' has no NPU core here");
  KernelNode old;
  old.spy().edits[drm::kVersion] = [](void* args) { static_cast<drm::Version*>(args)->version_minor = 3; };
  EXPECT_NE(search(old).rejected.find("etnaviv interface 1.3; identifying the NPU needs 1.4"), std::string::npos);

  const std::string folder = own_path("no_device");
  std::filesystem::create_directories(folder + "/dev/dri");
  std::ofstream(folder + "/dev/dri/renderD140") << "no device";
  const auto nodes = kernels::find_devices(folder);
  ASSERT_EQ(nodes.size(), 1u);
  ASSERT_TRUE(nodes[0].error);
  EXPECT_NE(nodes[0].error->message.find("ENOTTY"), std::string::npos) << nodes[0].error->message;
}

TEST(EtnavivFind, OpensInSpiteOfSignals) {
  EXPECT_TRUE(KernelNode("open:1-20:EINTR").open().ok());
  const KernelNode node("open:*:EINTR");
  const auto start = node.calls()->now();
  const auto never = node.open();
  ASSERT_FALSE(never.ok());
  EXPECT_NE(never.error().message.find("opening: EINTR"), std::string::npos) << never.error().message;
  EXPECT_LT(node.calls()->now() - start, std::chrono::seconds(5));
}

TEST(Etnaviv, NeedsAddressesThatUserSpaceChooses) {
  KernelNode node;
  const kernels::Core core = kernels::ask_node(kNode, node.calls())->cores[0];
  static uint64_t first = 0;
  node.spy().edits[abi::kGetParam] = [](void* args) { static_cast<abi::GetParam*>(args)->value = first; };
  for (const uint64_t value : {abi::kNoSoftpin, uint64_t{0x400001}, uint64_t{0x400800}, uint64_t{1} << 32}) {
    first = value;
    const auto device = kernels::open_core(core, node.calls());
    ASSERT_FALSE(device.ok()) << first;
    EXPECT_EQ(device.error().code, ErrorCode::unsupported);
    EXPECT_NE(device.error().message.find("does not let user space choose addresses"), std::string::npos);
  }
}

TEST(Etnaviv, ReusesAnAddressOnlyAfterTheLastJobThatUsesIt) {
  KernelNode node("submit:1:hang");
  const auto device = open(node);
  const kernels::Handle first = device->alloc(100).value(), second = device->alloc(5000).value();
  EXPECT_EQ(device->address(first).value(), 0x00400000u);
  EXPECT_EQ(device->address(second).value(), 0x00401000u);
  const std::vector<uint32_t> stream(8, 0);
  const kernels::JobBuffer use{first, true, true};
  const auto fence = submit(*device, stream, {&use, 1});
  ASSERT_TRUE(fence.ok()) << fence.error().message;
  ASSERT_TRUE(device->free(first).ok());
  EXPECT_EQ(node.spy().live.size(), 2u);
  EXPECT_FALSE(device->map(first).ok());
  const kernels::Handle third = device->alloc(100).value();
  EXPECT_EQ(device->address(third).value(), 0x00403000u);
  const Error late = device->wait(*fence, milliseconds(1)).error();
  EXPECT_EQ(late.code, ErrorCode::timeout);
  EXPECT_NE(late.message.find("waiting up to 1 ms for job that was already released: ETIMEDOUT"), std::string::npos)
      << late.message;
  node.kernel().reset();
  EXPECT_TRUE(device->wait(*fence, milliseconds(1)).ok());
  const kernels::Handle fourth = device->alloc(100).value();
  EXPECT_EQ(device->address(fourth).value(), 0x00400000u);
  EXPECT_EQ(node.spy().live.size(), 3u);
  const kernels::JobBuffer reuse{fourth, true, true};
  EXPECT_TRUE(submit(*device, stream, {&reuse, 1}).ok());
}

TEST(Etnaviv, KeepsTrackOfManySubmissions) {
  const KernelNode node;
  const auto device = open(node);
  const std::vector<uint32_t> stream(8, 0);
  kernels::Fence last = 0;
  for (int i = 0; i < 1000; ++i) last = submit(*device, stream, {}).value();
  EXPECT_TRUE(device->wait(last - 999, milliseconds(1)).ok());
  EXPECT_TRUE(device->wait(last, milliseconds(1)).ok());
  EXPECT_TRUE(device->wait(last - 5, milliseconds(1)).ok());
  EXPECT_EQ(device->wait(last + 1, milliseconds(1)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(device->wait(0, milliseconds(1)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(submit(*device, {}, {}).error().code, ErrorCode::invalid_argument);
}

TEST(Etnaviv, PreparesJobsOnceAndSubmitsSeveral) {
  KernelNode node;
  const auto device = open(node);
  const kernels::Handle words = device->alloc_commands(64).value(), buffer = device->alloc(100).value();
  EXPECT_EQ(node.spy().live.size(), 1u) << "commands are handed over with each call";
  EXPECT_EQ(device->address(words).value(), 0u);
  EXPECT_EQ(device->map(words).value().size(), 64u);
  const kernels::Job job{.name = "j", .commands = {{words, 32, 32}}, .buffers = {{buffer, true, true}}};
  const kernels::JobId first = device->prepare(job).value(), second = device->prepare(job).value();
  const kernels::JobId both[] = {first, second};
  EXPECT_TRUE(device->wait(device->submit(both).value(), milliseconds(100)).ok());
  EXPECT_EQ(node.spy().calls[abi::kGemSubmit], 2);

  struct Case {
    std::vector<kernels::Commands> commands;
    kernels::Handle buffer;
    const char* message;
  };
  for (const Case& one :
       {Case{{}, buffer, "0 lists of commands"}, Case{{{words, 0, 32}, {words, 32, 32}}, buffer, "2 lists of commands"},
        Case{{{buffer, 0, 32}}, buffer, "no commands have handle 1"},
        Case{{{words, 2, 4}}, buffer, "4 bytes at 2 of 64"}, Case{{{words, 0, 6}}, buffer, "6 bytes at 0 of 64"},
        Case{{{words, 64, 4}}, buffer, "4 bytes at 64 of 64"}, Case{{{words, 0, 0}}, buffer, "0 bytes at 0 of 64"},
        Case{{{words, 0, 32}}, 77, "no buffer has handle 77"}}) {
    const auto refused = device->prepare({.name = "j", .commands = one.commands, .buffers = {{one.buffer, true}}});
    ASSERT_FALSE(refused.ok()) << one.message;
    EXPECT_NE(refused.error().message.find(one.message), std::string::npos) << refused.error().message;
    EXPECT_TRUE(refused.error().message.starts_with("job 'j': "));
  }
  device->release(second);
  EXPECT_EQ(device->submit(both).error().message, std::string(kNode) + ": no job has id 2");
  ASSERT_TRUE(device->free(words).ok());
  EXPECT_TRUE(device->submit({&first, 1}).ok()) << "a prepared job keeps its commands";
  ASSERT_TRUE(device->free(buffer).ok());
  EXPECT_NE(device->submit({&first, 1}).error().message.find("job 'j': "), std::string::npos);
}

// The codes let a caller decide whether to wait, to free memory, to ask for permission, or to use the CPU permanently.
TEST(Etnaviv, EachFailureHasItsCode) {
  constexpr std::pair<const char*, ErrorCode> kRows[] = {
      {"ENOMEM", ErrorCode::io},       {"ENODEV", ErrorCode::device},
      {"ENXIO", ErrorCode::device},    {"EACCES", ErrorCode::io},
      {"EPERM", ErrorCode::io},        {"ETIMEDOUT", ErrorCode::timeout},
      {"EIO", ErrorCode::device},      {"EINVAL", ErrorCode::device},
      {"EBUSY", ErrorCode::device},    {"ENOSPC", ErrorCode::out_of_range},
      {"EMFILE", ErrorCode::io},       {"ENFILE", ErrorCode::io},
      {"ENOENT", ErrorCode::io},       {"ENOTTY", ErrorCode::unsupported},
      {"EFAULT", ErrorCode::internal}, {"ERANGE", ErrorCode::io}};  // has no row of its own
  for (const auto& [name, code] : kRows) {
    const KernelNode node(fmt::format("gem_new:1:{}", name));
    const auto failed = open(node)->alloc(10);
    ASSERT_FALSE(failed.ok()) << name;
    EXPECT_EQ(failed.error().code, code) << failed.error().message;
  }
}

TEST(Etnaviv, SurvivesSignals) {
  KernelNode node("gem_new:1-3:EINTR,gem_new:4-6:EAGAIN");
  const auto device = open(node);
  EXPECT_TRUE(device->alloc(1).ok());
  EXPECT_EQ(node.spy().calls[abi::kGemNew], 7);
}

// The wait for calls that always fail with EINTR happens once, not for each call.
TEST(Etnaviv, WaitsOnceForWhatNeverComes) {
  KernelNode node("gem_new:*:EINTR");
  const auto device = open(node);
  const auto start = node.calls()->now();
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(device->alloc(1).ok());
  EXPECT_LT(node.calls()->now() - start, std::chrono::seconds(20));
}

// Freeing checks once, without waiting, whether the last job of a buffer is done.
TEST(Etnaviv, FreesWithoutWaiting) {
  KernelNode node("submit:1:hang,wait_fence:*:EINTR");
  const auto device = open(node);
  std::vector<kernels::Handle> handles;
  for (int i = 0; i < 100; ++i) handles.push_back(device->alloc(1).value());
  const std::vector<uint32_t> stream(8, 0);
  const kernels::JobBuffer use{handles[0], true, true};
  ASSERT_TRUE(submit(*device, stream, {&use, 1}).ok());
  for (const kernels::Handle handle : handles) EXPECT_TRUE(device->free(handle).ok());
  EXPECT_EQ(node.spy().calls[abi::kWaitFence], 100);
  EXPECT_EQ(node.spy().live.size(), 1u);
}

// A read waits for the jobs that write the buffer, a write for all that use it.
TEST(Etnaviv, AccessesSayWhetherTheyWrite) {
  KernelNode node;
  const auto device = open(node);
  const kernels::Handle handle = device->alloc(64).value();
  static std::vector<uint32_t> asked;  // static, so that a plain function can reach it
  asked.clear();
  node.spy().edits[abi::kGemCpuPrep] = [](void* args) { asked.push_back(static_cast<abi::GemCpuPrep*>(args)->op); };
  for (const bool write : {false, true}) {
    ASSERT_TRUE(device->begin_cpu(handle, write).ok());
    ASSERT_TRUE(device->end_cpu(handle).ok());
  }
  EXPECT_EQ(asked, (std::vector<uint32_t>{abi::kPrepRead, abi::kPrepRead | abi::kPrepWrite}));
}

TEST(Etnaviv, FailedAllocationGivesTheAddressBack) {
  const KernelNode node("gem_new:1:ENOMEM");
  const auto device = open(node);
  const auto failed = device->alloc(10);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("allocating a buffer of 10 bytes: ENOMEM"), std::string::npos);
  EXPECT_EQ(device->address(device->alloc(10).value()).value(), 0x00400000u);
  EXPECT_EQ(device->alloc(uint64_t{1} << 33).error().code, ErrorCode::out_of_range);
}

TEST(Etnaviv, SharesBuffers) {
  KernelNode node("submit:1:hang");
  const auto device = open(node);
  const kernels::Handle own = device->alloc(4096).value();
  const int fd = device->export_dmabuf(own).value();
  EXPECT_EQ(device->import_dmabuf(fd).value(), own);
  ASSERT_TRUE(device->free(own).ok());
  device->map(own).value()[3] = 9;  // one import is left
  uint8_t byte = 0;
  EXPECT_EQ(::pread(fd, &byte, 1, 3), 1);
  EXPECT_EQ(byte, 9);
  ::close(fd);

  const int foreign = ::memfd_create("camera", MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(foreign, 8192), 0);
  ASSERT_EQ(::pwrite(foreign, "x", 1, 5000), 1);
  const auto imported = device->import_dmabuf(foreign);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_NE(*imported, own);
  EXPECT_EQ(device->map(*imported).value().size(), 8192u);
  EXPECT_EQ(device->map(*imported).value()[5000], 'x');

  // Imported again while its last job runs: the handle stays valid.
  const std::vector<uint32_t> stream(8, 0);
  const kernels::JobBuffer use{*imported, true, false};
  ASSERT_TRUE(submit(*device, stream, {&use, 1}).ok());
  ASSERT_TRUE(device->free(*imported).ok());
  EXPECT_EQ(device->import_dmabuf(foreign).value(), *imported);
  EXPECT_EQ(device->map(*imported).value()[5000], 'x');
  EXPECT_EQ(device->import_dmabuf(foreign).value(), *imported);
  ASSERT_TRUE(device->free(*imported).ok());
  ASSERT_TRUE(device->map(*imported).ok());  // one import is left
  node.kernel().reset();
  ASSERT_TRUE(device->free(*imported).ok());
  EXPECT_EQ(node.spy().live.size(), 1u);
  ::close(foreign);
  EXPECT_FALSE(device->import_dmabuf(foreign).ok());
}

}  // namespace
}  // namespace skillet::testing
