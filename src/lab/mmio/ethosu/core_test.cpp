// An Ethos-U without a kernel: writes that a guest may make, in order and at random.
#include "lab/mmio/ethosu/core.h"

#include <cstring>
#include <random>

#include "base/testing/own_folder.h"
#include "lab/mmio/testing/guest.h"
#include "npus/ethosu/hw/testing/streams.h"

namespace skillet::mmio::ethosu {
namespace {

namespace hw = ::skillet::ethosu::hw;

constexpr uint32_t kStatus = 0x04, kCmd = 0x08, kReset = 0x0c, kQueue = 0x10, kRead = 0x18, kSize = 0x20, kProt = 0x24,
                   kBases = 0x80;
constexpr uint32_t kQueueAt = 0x10000, kFrom = 0x20000, kTo = 0x30000;
constexpr uint32_t kRunning = 1, kIrq = 2, kBusError = 4, kParseError = 16, kEndReached = 32;

std::unique_ptr<Core> make(Guest& guest, std::string_view faults = "") {
  return std::make_unique<Core>("test", Core::Identity{.id = 7, .config = 8}, sim::create("ethos-u65-256").value(),
                                Faults::parse(faults).value(), guest.surroundings());
}

// Copies 64 bytes from region 0 to region 1.
void start_copy(Core& core, Guest& guest, uint64_t size = 64) {
  hw::Words stream;
  hw::add_copy(stream, 0, 0, 1, 0, size);
  hw::add_stop(stream);
  std::memcpy(guest.memory.at(kQueueAt, stream.size() * 4).data(), stream.data(), stream.size() * 4);
  core.write(kQueue, kQueueAt), core.write(kQueue + 4, 0);
  core.write(kSize, static_cast<uint32_t>(stream.size() * 4));
  core.write(kBases, kFrom), core.write(kBases + 8, kTo);
  core.write(kCmd, 1);
}

TEST(EthosuCore, RunsAJobAndSaysSo) {
  Guest guest;
  const auto core = make(guest);
  EXPECT_EQ(core->read(0x00), 7U);
  EXPECT_EQ(core->read(0x28), 8U);
  std::memset(guest.memory.at(kFrom, 64).data(), 5, 64);
  for (int i = 0; i < 3; ++i) {
    guest.word(kTo) = 0;
    start_copy(*core, guest);
    ASSERT_TRUE(comes_true([&] { return guest.line.load(); }));
    EXPECT_EQ(core->read(kStatus), kIrq | kEndReached);
    EXPECT_EQ(core->read(kRead), core->read(kSize));
    EXPECT_EQ(guest.word(kTo), 0x05050505U);
    core->write(kCmd, 2);
    EXPECT_FALSE(guest.line);
    EXPECT_EQ(core->read(kStatus), kEndReached);
  }
}

TEST(EthosuCore, RecordsWhatAJobReachesOfItsRegions) {
  const std::string path = own_path("jobs.skcap");
  {
    Guest guest;
    const auto identity = fake::ethosu::identity_of("ethos-u65-256");
    JobWatch watch = JobWatch::create("ethos-u65-256", {}, {.record = path}).value();
    Core core("test", {identity->id, identity->config, identity->check}, sim::create("ethos-u65-256").value(),
              Faults::parse("").value(), guest.surroundings(), std::move(watch));
    std::memset(guest.memory.at(kFrom, 64).data(), 5, 64);
    start_copy(core, guest);
    ASSERT_TRUE(comes_true([&] { return guest.line.load(); }));
    core.stop();
  }
  const capture::Capture capture = capture::read(path).value();
  ASSERT_EQ(capture.submissions.size(), 1U);
  const auto& buffers = capture.submissions[0].buffers;
  ASSERT_EQ(buffers.size(), 2U);
  for (const size_t region : {0U, 1U}) {
    EXPECT_EQ(buffers[region].address, uint64_t{region + 1} << 36);
    EXPECT_EQ(buffers[region].size_bytes, 4096U);
    EXPECT_EQ(buffers[region].write, region == 1);
  }
  EXPECT_EQ(Bytes(buffers[0].bytes.begin(), buffers[0].bytes.end()), Bytes(64, 5));
}

TEST(EthosuCore, ResetForgetsWhatWasWritten) {
  Guest guest;
  const auto core = make(guest);
  start_copy(*core, guest);
  ASSERT_TRUE(comes_true([&] { return guest.line.load(); }));
  core->write(kReset, 2);
  EXPECT_TRUE(comes_true([&] { return core->read(kStatus) == 0; }));
  EXPECT_EQ(core->read(kProt), 2U);
  EXPECT_EQ(core->read(kSize), 0U);
  EXPECT_EQ(core->read(kBases), 0U);
  EXPECT_FALSE(guest.line);
}

TEST(EthosuCore, FaultsAreThoseOfTheHardware) {
  Guest guest;
  const auto core = make(guest, "hang@1,bus_error@2,lost_interrupt@3");
  std::memset(guest.memory.at(kFrom, 64).data(), 5, 64);
  start_copy(*core, guest);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(core->read(kStatus), kRunning);
  EXPECT_EQ(core->read(kRead), core->read(kRead)) << "it does not go on";
  core->write(kReset, 2);
  ASSERT_TRUE(comes_true([&] { return core->read(kStatus) == 0; }));
  start_copy(*core, guest);
  ASSERT_TRUE(comes_true([&] { return guest.line.load(); }));
  EXPECT_EQ(core->read(kStatus), kIrq | kBusError);
  EXPECT_EQ(guest.word(kTo), 0U) << "nothing is written";
  core->write(kCmd, 2);
  start_copy(*core, guest);
  ASSERT_TRUE(comes_true([&] { return core->read(kStatus) == kEndReached; }));
  EXPECT_FALSE(guest.line);
  // Addresses beyond the guest's memory, and invalid commands.
  for (const uint64_t size : {uint64_t{1} << 30, uint64_t{64}}) {
    start_copy(*core, guest, size);
    if (size == 64) {
      core->write(kReset, 2);
      ASSERT_TRUE(comes_true([&] { return core->read(kStatus) == 0; }));
      core->write(kQueue, kFrom), core->write(kSize, 64), core->write(kCmd, 1);
    }
    ASSERT_TRUE(comes_true([&] { return guest.line.load(); }));
    EXPECT_EQ(core->read(kStatus) & kParseError, kParseError);
    core->write(kCmd, 2);
  }
}

TEST(EthosuCore, NonsenseHarmsNobody) {
  Guest guest;
  const auto core = make(guest);
  std::minstd_rand random(3);
  std::ranges::generate(guest.memory.at(0, kMemoryBytes), [&] { return static_cast<uint8_t>(random()); });
  for (int i = 0; i < 20000; ++i) {
    const uint64_t offset = random() % 0x60 * 4;
    const uint32_t value =
        random() % 3 == 0 ? static_cast<uint32_t>(random()) : static_cast<uint32_t>(random() % kMemoryBytes);
    if (random() % 4 == 0)
      core->read(offset);
    else
      core->write(random() % 20 == 0 ? kCmd : offset, value);
    if (i % 5000 == 0) core->stop();
  }
  core->read(0x100000), core->write(0x100000, 1);
  core->stop();
  EXPECT_FALSE(guest.line);
}

}  // namespace
}  // namespace skillet::mmio::ethosu
