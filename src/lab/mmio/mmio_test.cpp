// Devices without a kernel: what a guest may write to them, in order and at random, and to the sockets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "lab/mmio/bus.h"
#include "lab/mmio/etnaviv/core.h"
#include "lab/mmio/faults.h"
#include "lab/mmio/rocket/core.h"
#include "lab/mmio/testing/guest.h"

namespace skillet::mmio {
namespace {

std::unique_ptr<etnaviv::Core> make_etnaviv(Guest& guest, Faults faults = {}) {
  return std::make_unique<etnaviv::Core>("test", etnaviv::Identity{.ids = {0x8000}, .features = {}},
                                         sim::create("a311d").value(), std::move(faults), guest.surroundings());
}
std::unique_ptr<etnaviv::Core> make_secure(Guest& guest) {
  auto core = make_etnaviv(guest);
  core->write(0x3a8, 1);  // so does a kernel that knows the core to be one
  return core;
}
std::unique_ptr<rocket::Core> make_rocket(Guest& guest, Faults faults = {}) {
  return std::make_unique<rocket::Core>("test", 0, 2, sim::rockchip::Npu::create("rk3588").value(), std::move(faults),
                                        guest.surroundings());
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

// 4 GiB of one page, which is the table, the directory and the job.
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
  const auto bytes = std::make_unique<std::array<uint8_t, 64 << 20>>();  // a mapping of its own: addresses are left
  EXPECT_NE(bytes, nullptr);
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
  for (const char* const text : {"hang", "hang@", "hang@0", "hang@x", "boom@1", "hang@1x", "@1"})
    EXPECT_FALSE(Faults::parse(text).ok()) << text;
}

}  // namespace
}  // namespace skillet::mmio
