// Devices without a kernel: writes that a guest may make to them, in order and at random, and to the sockets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/testing/in_tree.h"
#include "base/testing/own_folder.h"
#include "capture/hardware.h"
#include "lab/mmio/board.h"
#include "lab/mmio/bus.h"
#include "lab/mmio/etnaviv/core.h"
#include "lab/mmio/faults.h"
#include "lab/mmio/job_watch.h"
#include "lab/mmio/rocket/core.h"
#include "lab/mmio/testing/guest.h"

namespace skillet::mmio {
namespace {

std::unique_ptr<etnaviv::Core> make_etnaviv(Guest& guest, Faults faults = {}, JobWatch watch = {}) {
  return std::make_unique<etnaviv::Core>("test", etnaviv::Identity{.ids = {0x8000}, .features = {}},
                                         sim::create("a311d").value(), std::move(faults), guest.surroundings(),
                                         std::move(watch));
}
std::unique_ptr<etnaviv::Core> make_secure(Guest& guest) {
  auto core = make_etnaviv(guest);
  core->write(0x3a8, 1);  // like a kernel that knows that the core is secure
  return core;
}
std::unique_ptr<rocket::Core> make_rocket(Guest& guest, Faults faults = {}, JobWatch watch = {}) {
  return std::make_unique<rocket::Core>("test", 0, 2, sim::rockchip::Npu::create("rk3588").value(), std::move(faults),
                                        guest.surroundings(), std::move(watch));
}

void start_front_end(etnaviv::Core& core, uint32_t address) {
  core.write(0x014, ~uint32_t{0});
  core.write(0x654, address);
  core.write(0x658, 0x10002);
  core.write(0x3a4, 0x10002);
}

TEST(Etnaviv, ResetLeavesItIdleWithoutInterrupts) {
  Guest guest;
  const auto core = make_secure(guest);
  core->write(0x388, 1);
  core->write(0x3a8, 1);
  EXPECT_EQ(core->read(0x3a8), 0U) << "a driver writes back what it reads";
  EXPECT_EQ(core->read(0x004), 0x7fffffffU);
  EXPECT_EQ(core->read(0x000) >> 16 & 3, 3U);
  EXPECT_EQ(core->read(0x388), 0U);
  EXPECT_EQ(core->read(0x010), 0U);
}

TEST(Etnaviv, AnEventIsAnInterruptUntilItIsRead) {
  Guest guest;
  const auto core = make_secure(guest);
  guest.word(0x1000) = 0x08010e01;  // EVENT <- 5, from PE
  guest.word(0x1004) = 0x45;
  guest.word(0x1008) = 0x10000000;  // END
  start_front_end(*core, 0x1000);
  ASSERT_TRUE(comes_true([&] { return guest.line.load(); }));
  EXPECT_EQ(core->read(0x010), 1U << 5);
  EXPECT_FALSE(guest.line);
  EXPECT_EQ(core->read(0x010), 0U);
  EXPECT_TRUE(comes_true([&] { return core->read(0x004) == 0x7fffffff; }));
}

// After a sync point Linux starts it at its address + 2.
TEST(Etnaviv, TheFrontEndStartsAtAWholePacket) {
  Guest guest;
  const auto core = make_secure(guest);
  guest.word(0x1000) = 0x08010e01;
  guest.word(0x1004) = 0x42;
  guest.word(0x1008) = 0x10000000;
  start_front_end(*core, 0x1002);
  ASSERT_TRUE(comes_true([&] { return guest.line.load(); }));
  EXPECT_EQ(core->read(0x010), 1U << 2);
}

TEST(Etnaviv, TheLoopIsLeftWhenItsWaitBecomesALink) {
  Guest guest;
  const auto core = make_secure(guest);
  guest.word(0x1000) = 0x380000c8;  // WAIT
  guest.word(0x1008) = 0x40000002;  // LINK to it
  guest.word(0x100c) = 0x1000;
  guest.word(0x2000) = 0x08010e01;
  guest.word(0x2004) = 0x43;
  guest.word(0x2008) = 0x10000000;
  start_front_end(*core, 0x1000);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_FALSE(guest.line);
  EXPECT_EQ(core->read(0x004) & 1, 0U);
  guest.word(0x1004) = 0x2000;
  std::atomic_ref(guest.word(0x1000)).store(0x40000002);
  ASSERT_TRUE(comes_true([&] { return guest.line.load(); }));
  EXPECT_EQ(core->read(0x010), 1U << 3);
}

TEST(Etnaviv, AnAddressWithoutAPageIsAnMmuException) {
  Guest guest;
  const auto core = make_secure(guest);
  core->write(0x38c, 0x3000);  // page table array, whose first master table has no entries
  guest.word(0x3000) = 0x4000;
  core->write(0x388, 1);
  start_front_end(*core, 0x00812340);
  ASSERT_TRUE(comes_true([&] { return guest.line.load(); }));
  EXPECT_EQ(core->read(0x010), 1U << 30);
  EXPECT_EQ(core->read(0x380), 0x00812340U);
  EXPECT_NE(core->read(0x384), 0U);
  core->write(0x3a8, 1);
  EXPECT_EQ(core->read(0x004), 0x7fffffffU);
}

TEST(Etnaviv, AFrontEndThatGoesRoundAnswersReads) {
  Guest guest;
  const auto core = make_secure(guest);
  guest.word(0x1000) = 0x40000001;  // LINK to itself
  guest.word(0x1004) = 0x1000;
  start_front_end(*core, 0x1000);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(core->read(0x004) & 1, 0U);
  core->write(0x3a8, 1);
  EXPECT_EQ(core->read(0x004), 0x7fffffffU);
}

// 4 GiB that all map one page, which is the table, the directory and the job.
TEST(Etnaviv, ATableThatPointsAtItselfIsAHang) {
  Guest guest;
  const auto core = make_secure(guest);
  core->write(0x38c, 0x3000);  // page table array
  guest.word(0x3000) = 0x4000;
  for (uint32_t at = 0x4000; at < 0x5000; at += 4) guest.word(at) = 0x4007;
  core->write(0x388, 1);
  for (const uint32_t address : {0x0U, 0x00812340U, 0xfffffff8U}) {
    start_front_end(*core, address);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(core->read(0x004) & 1, 0U);
  }
}

TEST(Rocket, TheIommuPassesItsDriversSelfTest) {
  Guest guest;
  const auto core = make_rocket(guest);
  for (const uint64_t set : {0x9000, 0xa000}) {
    core->write(set, 0xcafebabe);
    EXPECT_EQ(core->read(set), 0xcafebabeU);
    core->write(set + 0x08, 6);
    EXPECT_EQ(core->read(set), 0U);
    core->write(set + 0x08, 0);
    EXPECT_EQ(core->read(set + 0x04) & 1, 1U);
    core->write(set + 0x08, 2);
    EXPECT_EQ(core->read(set + 0x04) & 4, 4U);
    core->write(set + 0x08, 3);
    EXPECT_EQ(core->read(set + 0x04) >> 31, 1U);
  }
}

TEST(Rocket, ATaskWithoutPagesIsAPageFault) {
  Guest guest;
  const auto core = make_rocket(guest);
  core->write(0x9008, 0);
  core->write(0x901c, 3);
  core->write(0x10, 0x1000);
  core->write(0x14, 7);
  core->write(0x30, 0x7001);
  core->write(0x08, 1);
  ASSERT_TRUE(comes_true([&] { return guest.line.load(); }));
  EXPECT_EQ(core->read(0x9014), 1U);
  EXPECT_EQ(core->read(0x900c), 0x1000U);
  EXPECT_EQ(core->read(0x2c), 0U) << "the task has not ended";
  core->write(0x9018, 1);
  EXPECT_FALSE(guest.line);
}

TEST(Rocket, ATableThatPointsAtItselfIsAFailedTask) {
  Guest guest;
  const auto core = make_rocket(guest);
  for (uint32_t at = 0x4000; at < 0x5000; at += 4) guest.word(at) = 0x4007;
  for (int i = 0; i < 3; ++i) {
    core->write(0x9000, 0x4000);
    core->write(0x9008, 0);
    core->write(0x10, 0x1000);
    core->write(0x14, 7);
    core->write(0x20, 0x300);
    core->write(0x08, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(core->read(0x2c) & 0x300, 0U);
  }
  core->stop();
  const auto bytes = std::make_unique<std::array<uint8_t, 64 << 20>>();  // separate mapping: addresses stay free
  EXPECT_NE(bytes, nullptr);
}

// Device addresses of a core's IOMMU, in tables from 0x4000 on; memory from 0x100000 on.
struct DeviceMemory {
  uint32_t& word(uint64_t address) {
    uint32_t& directory = guest.word(0x4000 + (address >> 22) * 4);
    if (directory == 0) directory = (next_table += 0x1000) | 1;
    uint32_t& page = guest.word((directory & ~1u) + (address >> 12 & 0x3ff) * 4);
    if (page == 0) page = (next_page += 0x1000) | 7;
    return guest.word((page & ~7u) + (address & 0xffc));
  }
  Guest& guest;
  uint32_t next_table = 0x4000, next_page = 0xff000;
};

// Registers count pairs of commands: a filler follows an odd number, as in MoveNet's jobs.
TEST(Rocket, AnOddNumberOfCommandsEndsWithAFiller) {
  const capture::Capture capture = capture::read(in_tree("tests/captures/rk3588_conv1x1_relu6_u8")).value();
  const capture::Submission& submission = capture.submissions.back();
  Guest guest;
  DeviceMemory memory{guest};
  for (const capture::BufferSnapshot& one : submission.buffers) {
    for (uint64_t at = 0; at < one.size_bytes; at += 4) {
      uint32_t& word = memory.word(one.address + at);
      if (at < one.bytes.size()) std::memcpy(&word, one.bytes.data() + at, std::min<size_t>(4, one.bytes.size() - at));
    }
  }
  const capture::Commands& commands = submission.jobs[0].commands[0];
  const uint32_t elsewhere = 0x3f000000, first = elsewhere + 8;  // after a filler, so that their number is odd
  for (uint64_t at = 0; at < commands.size_bytes; at += 4) memory.word(first + at) = memory.word(commands.address + at);
  const auto core = make_rocket(guest);
  const auto amount = static_cast<uint32_t>(commands.size_bytes / 16);
  for (const auto& [offset, value] : std::initializer_list<std::pair<uint64_t, uint32_t>>{
           {0x9000, 0x4000}, {0x9008, 0}, {0x10, elsewhere}, {0x14, amount}, {0x20, 0x300}, {0x30, 0x7001}, {0x08, 1}})
    core->write(offset, value);
  EXPECT_TRUE(comes_true([&] { return (core->read(0x2c) & 0x300) != 0; })) << core->summary();
}

// Tables that point at themselves, at random places and beyond memory; registers in any order.
template <typename Make>
void write_nonsense(Make make, std::initializer_list<uint64_t> offsets) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    Guest guest;
    std::mt19937 engine(seed);
    const auto random = [&engine] { return static_cast<uint32_t>(engine()); };
    for (uint64_t at = 0; at < 0x40000; at += 4) guest.word(at) = random() % 4 == 0 ? random() : random() % 0x60000 | 7;
    const auto core = make(guest);
    for (int i = 0; i < 3000; ++i) {
      const uint64_t offset = *(offsets.begin() + random() % offsets.size());
      const uint32_t value = random() % 2 == 0 ? random() : random() % 0x60000;
      if (random() % 3 == 0)
        static_cast<void>(core->read(offset));
      else
        core->write(offset, value);
    }
    core->stop();
    EXPECT_FALSE(core->summary().empty());
  }
}

TEST(Etnaviv, NonsenseInRegistersAndTablesIsNoCrash) {
  write_nonsense(
      [](Guest& guest) { return make_etnaviv(guest); },
      {0x000, 0x010, 0x014, 0x100, 0x184, 0x18c, 0x388, 0x38c, 0x390, 0x394, 0x3a4, 0x3a8, 0x654, 0x658, 0x7c0});
}

TEST(Rocket, NonsenseInRegistersAndTablesIsNoCrash) {
  write_nonsense([](Guest& guest) { return make_rocket(guest); }, {0x08, 0x10, 0x14, 0x20, 0x24, 0x30, 0x1004, 0x9000,
                                                                   0x9008, 0x9018, 0x901c, 0xa008, 0x10000, 0x10800});
}

TEST(AddressSpace, PagesAreTheGuestsUntilTheyAreRevoked) {
  Guest guest;
  AddressSpace space;
  const std::array<Page, 3> pages = {Page{.index = 2, .guest_address = 0x5000, .is_writable = true},
                                     Page{.index = 3, .guest_address = 0x3000, .is_writable = true},
                                     Page{.index = 4, .guest_address = 0x4000, .is_writable = false}};
  const uint64_t epoch = space.epoch();
  const auto memory = space.map(guest.memory, pages, epoch);
  ASSERT_TRUE(memory.ok()) << memory.error().message;
  const auto bytes = memory->at(0x2ffc, 8, "test");
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  std::memset(bytes->data(), 0x11, 8);
  EXPECT_EQ(guest.word(0x5ffc), 0x11111111U);
  EXPECT_EQ(guest.word(0x3000), 0x11111111U);
  EXPECT_FALSE(memory->check_written(0x4000, "test").ok());
  EXPECT_FALSE(memory->at(0x1000, 4, "test").ok());
  EXPECT_EQ(memory->missed(), 0x1000U);
  space.revoke();
  std::memset(bytes->data(), 0x22, 8);
  EXPECT_EQ(guest.word(0x5ffc), 0x11111111U);
  EXPECT_FALSE(space.map(guest.memory, pages, epoch).ok());
  const std::array<Page, 1> beyond = {Page{.index = 0, .guest_address = kMemoryBytes, .is_writable = true}};
  EXPECT_FALSE(space.map(guest.memory, beyond, space.epoch()).ok());
}

TEST(VhostUser, NonsenseIsAnErrorThatNamesIt) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::array<int, 2> sockets{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
    GuestMemory memory;
    Lines lines(4);
    VhostUser connection(sockets[0], lines, memory);
    for (int i = 0; i < 8; ++i) {
      std::array<uint32_t, 3> header = {static_cast<uint32_t>(random() % 26), 1 | static_cast<uint32_t>(random() & 8),
                                        static_cast<uint32_t>(random() % 5 == 0 ? random() : random() % 48)};
      std::vector<uint8_t> bytes(12 + std::min<uint32_t>(header[2], 64));
      std::memcpy(bytes.data(), header.data(), 12);
      for (size_t k = 12; k < bytes.size(); ++k) bytes[k] = static_cast<uint8_t>(random() % 3 == 0 ? random() : 0);
      ASSERT_EQ(::send(sockets[1], bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    }
    ::shutdown(sockets[1], SHUT_WR);
    for (int i = 0; i < 9; ++i) {
      const Result<bool> done = connection.read_message();
      if (!done.ok()) {
        EXPECT_NE(done.error().message.find("vhost-user"), std::string::npos) << done.error().message;
        break;
      }
      if (!*done) break;
      EXPECT_TRUE(connection.serve_queues().ok());
    }
    ::close(sockets[1]);
  }
}

TEST(Faults, WithoutPowerRegistersKeepNothing) {
  Guest guest;
  const auto core = make_rocket(guest, Faults::parse("power_loss@1").value());
  core->write(0x9000, 0x5000);
  EXPECT_NE(core->read(0x00), 0U);
  core->write(0x08, 1);
  ASSERT_TRUE(comes_true([&] { return core->read(0x00) == 0; }));
  core->write(0x9000, 0x6000);
  EXPECT_EQ(core->read(0x9000), 0U);
  EXPECT_FALSE(guest.line);
  core->stop();
  EXPECT_NE(core->read(0x00), 0U) << "the next guest starts the board anew";
}

TEST(Faults, AreRowsOfKindAndJob) {
  auto faults = Faults::parse("hang@2,lost_interrupt@3");
  ASSERT_TRUE(faults.ok());
  EXPECT_EQ(faults->next(), FaultKind::none);
  EXPECT_EQ(faults->next(), FaultKind::hang);
  EXPECT_EQ(faults->next(), FaultKind::lost_interrupt);
  for (const char* const text : {"hang", "hang@", "hang@0", "hang@x", "boom@1", "hang@1x", "@1", "hang@1,", ",hang@1",
                                 "hang@1,,hang@2", "hang@1,bus_error@1"})
    EXPECT_FALSE(Faults::parse(text).ok()) << text;
}

JobWatch recording(const std::string& path) {
  return JobWatch::create("a311d", {.kernel_driver = "x", .node = {}, .compatible = {}, .facts = {}}, {.record = path})
      .value();
}

// Three pages of a device's memory, the last two adjacent and with equal rights.
struct Mapped {
  Mapped() {
    const Page all[] = {{0x10, 0x3000, true}, {0x20, 0x5000, false}, {0x21, 0x4000, false}};
    pages.assign(std::begin(all), std::end(all));
    guest.word(0x3000) = 1;
    guest.word(0x4000) = 2;
    memory = space.map(guest.memory, pages, space.epoch()).value();
  }
  Guest guest;
  AddressSpace space;
  std::vector<Page> pages;
  sim::Memory memory;
};

TEST(JobWatch, ACaptureHasTheMemoryThatAJobReachesBeforeItRuns) {
  Mapped mapped;
  const std::string path = own_path("jobs.skcap");
  {
    JobWatch watch =
        JobWatch::create("a311d", {.kernel_driver = "x", .node = {}, .compatible = {}, .facts = {}}, {.record = path})
            .value();
    watch.record({.words = {7}}, mapped.pages, mapped.memory, false);
    mapped.guest.word(0x3000) = 3;
    watch.record({.words = {8}}, mapped.pages, mapped.memory, true);
    watch.record({.words = {9}}, mapped.pages, mapped.memory, false);
  }
  const capture::Capture capture = capture::read(path).value();
  EXPECT_TRUE(capture::is_of_hardware(capture.device));
  ASSERT_EQ(capture.submissions.size(), 2u);
  const capture::Submission& first = capture.submissions[0];
  ASSERT_EQ(first.jobs.size(), 1u);
  ASSERT_EQ(first.jobs[0].commands.size(), 2u) << "a kernel's job of two tasks";
  EXPECT_EQ(first.jobs[0].commands[1].words, std::vector<uint32_t>{8});
  ASSERT_EQ(first.buffers.size(), 2u);
  EXPECT_EQ(first.buffers[0].address, 0x10000u);
  EXPECT_EQ(first.buffers[0].size_bytes, 0x1000u);
  EXPECT_TRUE(first.buffers[0].write);
  EXPECT_EQ(Bytes(first.buffers[0].bytes.begin(), first.buffers[0].bytes.end()), Bytes{1});
  EXPECT_EQ(capture.submissions[1].buffers[0].bytes.data()[0], 3);
  EXPECT_EQ(first.buffers[1].address, 0x20000u);
  EXPECT_EQ(first.buffers[1].size_bytes, 0x2000u);
  EXPECT_FALSE(first.buffers[1].write);
  ASSERT_EQ(first.buffers[1].bytes.size(), 0x1001u);
  EXPECT_TRUE(first.buffers[1].listed && first.buffers[1].read) << "for who replays it";
  EXPECT_FALSE(JobWatch::create("a311d", {}, {.record = path}).ok()) << "there is a file of that name";
  const auto lost = JobWatch::create("a311d", {}, {.record = path + ".d/jobs.skcap"});
  ASSERT_FALSE(lost.ok());
  EXPECT_NE(lost.error().message.find("there is no folder"), std::string::npos) << lost.error().message;
}

// A buffer at address 0 counts as not mapped: the pages after page 0 must not be lost with it.
TEST(JobWatch, PageZeroIsABufferOfItsOwn) {
  Mapped mapped;
  const Page all[] = {{0, 0x3000, true}, {1, 0x4000, true}, {2, 0x5000, true}};
  mapped.pages.assign(std::begin(all), std::end(all));
  mapped.memory = mapped.space.map(mapped.guest.memory, mapped.pages, mapped.space.epoch()).value();
  const std::string path = own_path("zero.skcap");
  recording(path).record({.words = {}, .address = 0x1000, .size_bytes = 8}, mapped.pages, mapped.memory, false);
  const capture::Capture capture = capture::read(path).value();
  ASSERT_EQ(capture.submissions.size(), 1u);
  ASSERT_EQ(capture.submissions[0].buffers.size(), 2u);
  EXPECT_FALSE(capture.submissions[0].buffers[0].listed);
  EXPECT_TRUE(capture.submissions[0].buffers[1].listed);
  EXPECT_EQ(capture.submissions[0].buffers[1].address, 0x1000u);
  EXPECT_EQ(capture.submissions[0].buffers[1].size_bytes, 0x2000u);
  EXPECT_EQ(capture.submissions[0].buffers[1].bytes.data()[0], 2);
}

// Records the pages of the page tables, and the commands without those that the kernel appended.
TEST(JobWatch, ACoreOfEtnavivRecordsItsJobs) {
  Guest guest;
  const std::string path = own_path("etnaviv.skcap");
  {
    const auto core = make_etnaviv(guest, {}, recording(path));
    core->write(0x3a8, 1);
    core->write(0x38c, 0x3000);  // page table array
    guest.word(0x3000) = 0x4000;
    guest.word(0x4000) = 0x5001;
    guest.word(0x5004) = 0x6005;  // 0x1000: the ring
    guest.word(0x5008) = 0x7001;  // 0x2000: the job, which is not written
    guest.word(0x6000) = 0x40000002;
    guest.word(0x6004) = 0x2000;
    guest.word(0x6008) = 0x10000000;  // END
    guest.word(0x7000) = 0x18000000;  // NOP
    guest.word(0x7008) = 0x40000001;
    guest.word(0x700c) = 0x1008;
    core->write(0x388, 1);
    start_front_end(*core, 0x1000);
    ASSERT_TRUE(comes_true([&] { return core->summary().find(" 2 page walks") != std::string::npos; }))
        << core->summary();
  }
  const capture::Capture capture = capture::read(path).value();
  ASSERT_EQ(capture.submissions.size(), 1u);
  EXPECT_EQ(capture.submissions[0].jobs, capture::one_list({0x18000000, 0}));
  ASSERT_EQ(capture.submissions[0].buffers.size(), 2u);
  EXPECT_EQ(capture.submissions[0].buffers[0].address, 0x1000u);
  EXPECT_TRUE(capture.submissions[0].buffers[0].write);
  EXPECT_FALSE(capture.submissions[0].buffers[0].listed) << "below 4 MiB are the kernel's commands";
  EXPECT_EQ(capture.submissions[0].buffers[1].address, 0x2000u);
  EXPECT_FALSE(capture.submissions[0].buffers[1].write);
}

// A job begins when its IOMMU is switched on.
TEST(JobWatch, ACoreOfRocketRecordsTheTasksOfAJobTogether) {
  Guest guest;
  const std::string path = own_path("rocket.skcap");
  {
    const auto core = make_rocket(guest, {}, recording(path));
    guest.word(0x4000) = 0x5001;
    guest.word(0x5004) = 0x6007;  // 0x1000
    const auto start = [&](uint32_t commands, int walks) {
      core->write(0x10, 0x1000);
      core->write(0x14, commands / 2 - 1);
      core->write(0x08, 1);
      const std::string seen = fmt::format(" {} page walks", walks);
      EXPECT_TRUE(comes_true([&] { return core->summary().find(seen) != std::string::npos; })) << core->summary();
    };
    const auto attach = [&] {
      core->write(0x9008, 1);
      core->write(0x9000, 0x4000);
      core->write(0x9008, 0);
    };
    attach();
    start(8, 1);
    start(16, 2);
    attach();
    start(24, 3);
  }
  const capture::Capture capture = capture::read(path).value();
  ASSERT_EQ(capture.submissions.size(), 2u);
  const std::vector<capture::Job>& jobs = capture.submissions[0].jobs;
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].commands, (std::vector<capture::Commands>{{.words = {}, .address = 0x1000, .size_bytes = 64},
                                                              {.words = {}, .address = 0x1000, .size_bytes = 128}}));
  EXPECT_EQ(capture.submissions[1].jobs[0].commands.size(), 1u);
}

}  // namespace
}  // namespace skillet::mmio
