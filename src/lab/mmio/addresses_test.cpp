// Addresses: pages of the core's MMU, regions of the guest's memory, registers on the bus.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/testing/own_folder.h"
#include "lab/mmio/board.h"
#include "lab/mmio/bus.h"
#include "lab/mmio/etnaviv/core.h"
#include "lab/mmio/testing/guest.h"

namespace skillet::mmio {
namespace {

// A page of the fourth directory. An entry that is not present gives no page, for any address in it.
TEST(EtnavivPages, AreFoundByDirectoryAndEntry) {
  struct Case {
    uint32_t directory, entry, status;  // 0: the page is found
  };
  for (const Case& one : {Case{0x5001, 0x6001, 0}, {0x5000, 0x6001, 1}, {0x5001, 0x6000, 2}}) {
    Guest guest;
    etnaviv::Core core("test", etnaviv::Identity{.ids = {0x8000}, .features = {}}, sim::create("a311d").value(), {},
                       guest.surroundings(), {});
    core.write(0x3a8, 1);
    core.write(0x38c, 0x3000);  // page table array
    guest.word(0x3000) = 0x4000;
    guest.word(0x4000 + 3 * 4) = one.directory;
    guest.word(0x5000 + 2 * 4) = one.entry;
    guest.word(0x6010) = 0x08010e01;  // EVENT <- 5
    guest.word(0x6014) = 0x45;
    guest.word(0x6018) = 0x10000000;  // END
    core.write(0x388, 1);
    core.write(0x014, ~uint32_t{0});
    core.write(0x654, 0x00c02010);
    core.write(0x658, 0x10002);
    core.write(0x3a4, 0x10002);
    ASSERT_TRUE(comes_true([&] { return guest.line.load(); })) << one.status;
    const uint32_t raised = core.read(0x010);
    EXPECT_EQ(raised, one.status == 0 ? 1U << 5 : 1U << 30) << std::hex << one.directory << " " << one.entry;
    if (one.status != 0) {
      EXPECT_EQ(core.read(0x384) & 3, one.status);
    }
  }
}

struct Socket {
  Socket() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0); }
  ~Socket() { ::close(ends[1]); }
  // Sends a message with descriptors.
  void send(uint32_t request, const std::vector<uint64_t>& payload, std::vector<int> fds) const {
    std::vector<uint8_t> bytes(12 + payload.size() * 8);
    const std::array<uint32_t, 3> header = {request, 1, static_cast<uint32_t>(payload.size() * 8)};
    std::memcpy(bytes.data(), header.data(), 12);
    std::memcpy(bytes.data() + 12, payload.data(), payload.size() * 8);
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(4 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = control.data(), message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* const one = CMSG_FIRSTHDR(&message);
    one->cmsg_level = SOL_SOCKET, one->cmsg_type = SCM_RIGHTS, one->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(one), fds.data(), sizeof(int) * fds.size());
    EXPECT_EQ(::sendmsg(ends[1], &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  std::array<int, 2> ends{};
};

TEST(VhostUserMemory, RegionsAreWhereTheirFilesAndAddressesSay) {
  const int fd = ::memfd_create("guest", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, 4 * 4096), 0);
  for (uint32_t page = 0; page < 4; ++page) ASSERT_EQ(::pwrite(fd, &page, 4, page * 4096), 4);
  const Socket socket;
  GuestMemory memory;
  Lines lines(1);
  VhostUser connection(socket.ends[0], lines, memory);
  constexpr uint32_t kSetMemory = 5;
  socket.send(kSetMemory, {2, 0x10000, 4096, 0x70000000, 3 * 4096, 0x20000, 2 * 4096, 0x90000000, 4096}, {fd, fd});
  const auto read = connection.read_message();
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(memory.word(0x10000), 3U);
  EXPECT_EQ(memory.word(0x20000), 1U);
  EXPECT_EQ(memory.word(0x21000), 2U);
  EXPECT_EQ(memory.word(0x11000), std::nullopt);
  EXPECT_EQ(memory.word(0x22000), std::nullopt);
  EXPECT_EQ(memory.at_user(0x90001000, 4).data(), memory.at(0x21000, 4).data());
  EXPECT_TRUE(memory.at_user(0x70001000, 4).empty());
  ::close(fd);
}

// VIRTIO_RING_F_EVENT_IDX, VHOST_USER_F_PROTOCOL_FEATURES, VIRTIO_F_VERSION_1, and that lines raise interrupts.
TEST(VhostUserFeatures, AreThoseOfTheSpecifications) {
  const Socket socket;
  GuestMemory memory;
  Lines lines(1);
  VhostUser connection(socket.ends[0], lines, memory);
  struct Row {
    uint32_t request;
    uint64_t features;
  };
  constexpr uint32_t kGetFeatures = 1, kGetProtocolFeatures = 15;
  for (const auto& [request, features] :
       {Row{kGetFeatures, 1 | 1ULL << 29 | 1ULL << 30 | 1ULL << 32}, {kGetProtocolFeatures, 1ULL << 3 | 1ULL << 9}}) {
    const std::array<uint32_t, 3> header = {request, 1, 0};
    ASSERT_EQ(::send(socket.ends[1], header.data(), sizeof header, MSG_NOSIGNAL), 12);
    const auto read = connection.read_message();
    ASSERT_TRUE(read.ok()) << read.error().message;
    std::array<uint8_t, 20> answer{};
    ASSERT_EQ(::recv(socket.ends[1], answer.data(), answer.size(), 0), 20);
    uint64_t got = 0;
    std::memcpy(&got, answer.data() + 12, sizeof got);
    EXPECT_EQ(got, features) << request;
  }
}

// Each access gives a line with the window's and the register's name, by its offset in the window.
class Echo final : public Device {
 public:
  uint32_t read(uint64_t offset) override { return static_cast<uint32_t>(offset) + 1; }
  void write(uint64_t offset, uint32_t value) override { written = {offset, value}; }
  std::string register_name(uint64_t offset) const override { return fmt::format("register {}", offset); }
  std::pair<uint64_t, uint32_t> written;
};

TEST(Bus, LogsEachAccess) {
  Bus bus;
  Echo echo;
  std::vector<std::string> lines;
  bus.add({.address = Bus::kAddress + 0x1000, .size_bytes = 0x1000, .name = "echo", .device = &echo});
  bus.log_to([&](std::string_view line) { lines.emplace_back(line); });
  EXPECT_EQ(bus.read(Bus::kAddress + 0x1008), 9U);
  bus.write(Bus::kAddress + 0x1ffc, 0x12);
  EXPECT_EQ(bus.read(Bus::kAddress + 0x2000), ~uint32_t{0});
  EXPECT_EQ(echo.written, std::pair(uint64_t{0xffc}, 0x12U));
  EXPECT_EQ(lines,
            (std::vector<std::string>{"read  echo register 8 = 0x00000009", "write echo register 4092 <- 0x00000012",
                                      "read  nothing 0x10002000 = 0xffffffff"}));
}

// Linux's etnaviv supports four cores, other drivers any number.
TEST(Board, OtherDriversTakeAnyNumberOfCores) {
  const OwnFolder folder;
  for (const char* chip : {"rk3588", "imx93"}) {
    const auto board = Board::create(folder.path(), {.chips = {chip, chip}, .cores = 1});
    EXPECT_TRUE(board.ok()) << chip << ": " << board.error().message;
  }
}

}  // namespace
}  // namespace skillet::mmio
