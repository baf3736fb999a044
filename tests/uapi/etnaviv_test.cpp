// The etnaviv kernel device against a kernel in this process.
#include "uapi/etnaviv.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/device_context.h"
#include "uapi/fake_kernel.h"

namespace skillet::testing {
namespace {

namespace kernel = uapi::etnaviv;
using std::chrono::milliseconds;

std::unique_ptr<uapi::Device> open(const FakeKernel& fake) {
  auto report = uapi::ask_node(fake.node());
  EXPECT_TRUE(report.ok()) << report.error().message;
  auto device = uapi::open_core(report->cores.at(0));
  EXPECT_TRUE(device.ok()) << device.error().message;
  return std::move(device).value();
}

TEST(EtnavivFind, TellsTheNpuFromTheGpuOfOneNode) {
  const FakeKernel fake({kGpu, kA311d}, 130);
  const auto nodes = uapi::find_devices(fake.root());
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].node, fake.node());
  EXPECT_EQ(nodes[0].kernel_driver, "etnaviv");
  ASSERT_EQ(nodes[0].cores.size(), 2u);
  EXPECT_EQ(nodes[0].cores[1].index, 1u);
  EXPECT_EQ(nodes[0].cores[1].info.customer_id, 0x88u);
  const auto search = runtime::find_npus(fake.root());
  ASSERT_EQ(search.npus.size(), 1u);
  EXPECT_EQ(search.npus[0].name, "etnaviv0");
  EXPECT_EQ(search.npus[0].chip.name, "a311d");
  EXPECT_NE(search.rejected.find("core 0: "), std::string::npos) << search.rejected;
  EXPECT_NE(search.rejected.find("no known NPU has model 0x7000, revision 0x6214"), std::string::npos);
  EXPECT_FALSE(search.blocked);
}

TEST(EtnavivFind, SaysWhyANodeIsNone) {
  EXPECT_TRUE(uapi::find_devices("/nowhere").empty());
  FakeKernel fake({kA311d});
  fake.driver_name = "panfrost";
  EXPECT_EQ(runtime::find_npus(fake.root()).rejected, fake.node() + ": kernel driver 'panfrost', no core of an NPU");
  fake.driver_name = "etnaviv";
  fake.version_minor = 3;
  EXPECT_NE(runtime::find_npus(fake.root()).rejected.find("etnaviv interface 1.3; telling NPUs apart needs 1.4"),
            std::string::npos);
  const std::string other = fake.root() + "/dev/dri/renderD140";
  std::ofstream(other) << "no device";
  const auto nodes = uapi::find_devices(fake.root());
  ASSERT_EQ(nodes.size(), 2u);
  ASSERT_TRUE(nodes[1].error);
  EXPECT_NE(nodes[1].error->message.find("ENOTTY"), std::string::npos) << nodes[1].error->message;
}

TEST(Etnaviv, NeedsAddressesThatUserSpaceChooses) {
  FakeKernel fake({kA311d});
  fake.softpin_start = kernel::kNoSoftpin;
  const auto device = uapi::open_core({.info = {.node = fake.node()}, .index = 0});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::unsupported);
  EXPECT_NE(device.error().message.find("lets user space choose no addresses"), std::string::npos);
}

TEST(Etnaviv, ReusesAnAddressOnlyAfterTheLastJobThatUsesIt) {
  FakeKernel fake({kA311d});
  const auto device = open(fake);
  const uapi::Handle first = device->alloc(100).value(), second = device->alloc(5000).value();
  EXPECT_EQ(device->address(first).value(), 0x00400000u);
  EXPECT_EQ(device->address(second).value(), 0x00401000u);
  fake.busy = true;
  const std::vector<uint32_t> stream(8, 0);
  const uapi::SubmitBuffer use{first, true, true};
  const auto fence = device->submit(stream, {&use, 1});
  ASSERT_TRUE(fence.ok()) << fence.error().message;
  ASSERT_TRUE(device->free(first).ok());
  EXPECT_EQ(fake.live_buffers(), 2u);
  EXPECT_FALSE(device->map(first).ok());
  const uapi::Handle third = device->alloc(100).value();
  EXPECT_EQ(device->address(third).value(), 0x00403000u);
  EXPECT_EQ(device->wait(*fence, milliseconds(1)).error().code, ErrorCode::timeout);
  fake.busy = false;
  EXPECT_TRUE(device->wait(*fence, milliseconds(1)).ok());
  const uapi::Handle fourth = device->alloc(100).value();
  EXPECT_EQ(device->address(fourth).value(), 0x00400000u);
  EXPECT_EQ(fake.live_buffers(), 3u);
  const uapi::SubmitBuffer reuse{fourth, true, true};
  EXPECT_TRUE(device->submit(stream, {&reuse, 1}).ok());
}

TEST(Etnaviv, KeepsTrackOfManySubmissions) {
  FakeKernel fake({kA311d});
  const auto device = open(fake);
  const std::vector<uint32_t> stream(8, 0);
  uapi::Fence last = 0;
  for (int i = 0; i < 1000; ++i) last = device->submit(stream, {}).value();
  EXPECT_TRUE(device->wait(last - 999, milliseconds(1)).ok());
  EXPECT_TRUE(device->wait(last, milliseconds(1)).ok());
  EXPECT_TRUE(device->wait(last - 5, milliseconds(1)).ok());
  EXPECT_EQ(device->wait(last + 1, milliseconds(1)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(device->wait(0, milliseconds(1)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(device->submit({}, {}).error().code, ErrorCode::invalid_argument);
}

TEST(Etnaviv, SurvivesSignals) {
  FakeKernel fake({kA311d});
  const auto device = open(fake);
  fake.faults = {{kernel::kGemNew, EINTR, 0, 3}, {kernel::kGemNew, EAGAIN, 0, 3}};
  EXPECT_TRUE(device->alloc(1).ok());
  EXPECT_EQ(fake.calls(kernel::kGemNew), 7);
}

TEST(Etnaviv, FailedAllocationGivesTheAddressBack) {
  FakeKernel fake({kA311d});
  const auto device = open(fake);
  fake.faults = {{kernel::kGemNew, ENOMEM, 0, 1}};
  const auto failed = device->alloc(10);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("allocating a buffer of 10 bytes: ENOMEM"), std::string::npos);
  EXPECT_EQ(device->address(device->alloc(10).value()).value(), 0x00400000u);
  EXPECT_EQ(device->alloc(uint64_t{1} << 33).error().code, ErrorCode::out_of_range);
}

TEST(Etnaviv, SharesBuffers) {
  FakeKernel fake({kA311d});
  const auto device = open(fake);
  const uapi::Handle own = device->alloc_shared(4096).value();
  const int fd = device->export_dmabuf(own).value();
  EXPECT_EQ(device->import_dmabuf(fd).value(), own);
  ASSERT_TRUE(device->free(own).ok());
  device->map(own).value()[3] = 9;  // one import is left
  uint8_t byte = 0;
  EXPECT_EQ(::pread(fd, &byte, 1, 3), 1);
  EXPECT_EQ(byte, 9);
  ::close(fd);

  const int foreign = ::memfd_create("camera", 0);
  ASSERT_EQ(::ftruncate(foreign, 8192), 0);
  ASSERT_EQ(::pwrite(foreign, "x", 1, 5000), 1);
  const auto imported = device->import_dmabuf(foreign);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_NE(*imported, own);
  EXPECT_EQ(device->map(*imported).value().size(), 8192u);
  EXPECT_EQ(device->map(*imported).value()[5000], 'x');

  // Imported again while its last job runs: the handle lives on.
  fake.busy = true;
  const std::vector<uint32_t> stream(8, 0);
  const uapi::SubmitBuffer use{*imported, true, false};
  ASSERT_TRUE(device->submit(stream, {&use, 1}).ok());
  ASSERT_TRUE(device->free(*imported).ok());
  EXPECT_EQ(device->import_dmabuf(foreign).value(), *imported);
  EXPECT_EQ(device->map(*imported).value()[5000], 'x');
  fake.busy = false;
  ASSERT_TRUE(device->free(*imported).ok());
  EXPECT_EQ(fake.live_buffers(), 1u);
  ::close(foreign);
  EXPECT_FALSE(device->import_dmabuf(foreign).ok());
}

}  // namespace
}  // namespace skillet::testing
