// Errors of a client of the sockets: the server stays up, reports the error, and serves the other socket.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lab/mmio/shrinkable.h"
#include "lab/mmio/testing/served.h"
#include "lab/mmio/warn.h"

namespace skillet::mmio {
namespace {

enum Request : uint32_t { kFeatures = 1, kMemory = 5, kNumber = 8, kAddress = 9, kKick = 12, kCall = 13 };
constexpr uint64_t kUser = 1 << 30;
constexpr uint32_t kEntries = 16;

template <typename... Values>
std::vector<uint8_t> bytes_of(Values... values) {
  std::vector<uint8_t> out;
  const auto add = [&](auto value) {
    const auto* const first = reinterpret_cast<const uint8_t*>(&value);
    out.insert(out.end(), first, first + sizeof(value));
  };
  (add(values), ...);
  return out;
}

// One socket, and memory of a guest.
struct Client {
  Client(const Served& served, const char* side) : Client(served.connect(side)) {}
  explicit Client(int connected) : socket(connected) {
    EXPECT_EQ(::ftruncate(memory, kMemoryBytes), 0);
    bytes = static_cast<uint8_t*>(::mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
  }
  ~Client() {
    for (const int one : {socket, memory}) ::close(one);
    ::munmap(bytes, kMemoryBytes);
  }
  void send(uint32_t request, const std::vector<uint8_t>& payload, std::vector<int> fds = {}) const {
    std::vector<uint8_t> message = bytes_of(request, uint32_t{1}, static_cast<uint32_t>(payload.size()));
    message.insert(message.end(), payload.begin(), payload.end());
    iovec part{message.data(), message.size()};
    std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (!fds.empty()) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const one = CMSG_FIRSTHDR(&header);
      one->cmsg_level = SOL_SOCKET;
      one->cmsg_type = SCM_RIGHTS;
      one->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
      std::memcpy(CMSG_DATA(one), fds.data(), sizeof(int) * fds.size());
    }
    static_cast<void>(::sendmsg(socket, &header, MSG_NOSIGNAL));
  }
  void share(uint64_t size = kMemoryBytes) const {
    send(kMemory, bytes_of(uint32_t{1}, uint32_t{0}, uint64_t{0}, size, kUser, uint64_t{0}), {memory});
  }
  // Rings in the first page: descriptors, used, available.
  void place(uint64_t at = kUser, uint32_t entries = kEntries) const {
    send(kNumber, bytes_of(uint32_t{0}, entries));
    send(kAddress, bytes_of(uint32_t{0}, uint32_t{0}, at, at + 0x200, at + 0x100, uint64_t{0}));
  }
  void kick_by(int fd) const { send(kKick, bytes_of(uint64_t{0}), {fd}); }
  void call_by(int fd) const { send(kCall, bytes_of(uint64_t{0}), {fd}); }
  void make_available(int index) const {
    std::atomic_ref(*reinterpret_cast<uint16_t*>(bytes + 0x102)).store(static_cast<uint16_t>(index));
  }
  uint16_t used() const { return std::atomic_ref(*reinterpret_cast<uint16_t*>(bytes + 0x202)).load(); }
  bool is_dropped() const {
    return comes_true([&] {
      std::array<char, 4096> answers{};
      const ssize_t got = ::recv(socket, answers.data(), answers.size(), MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno != EAGAIN);
    });
  }
  const int socket, memory = ::memfd_create("guest", MFD_CLOEXEC);
  uint8_t* bytes = nullptr;
};

struct Descriptor {
  explicit Descriptor(int number) : fd(number) { EXPECT_GE(number, 0); }
  ~Descriptor() { ::close(fd); }
  const int fd;
};

size_t open_files() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// A client's actions, and the server's message about them; none: a normal client.
struct Case {
  const char* name;
  std::function<void(const Client&)> act;
  const char* said;
};

void kick_of_a_closed_pipe(const Client& client) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  client.kick_by(ends[0]);
  for (const int one : ends) ::close(one);
}

const Case kCases[] = {
    {"memory that is cut",
     [](const Client& client) {
       client.share();
       client.place();
       const Descriptor kick(::eventfd(0, EFD_CLOEXEC));
       client.kick_by(kick.fd);
       comes_true([&] { return is_answered(client.socket); });
       EXPECT_EQ(::ftruncate(client.memory, 0), 0);
       EXPECT_EQ(::eventfd_write(kick.fd, 1), 0);
     },
     "was cut to 0 bytes, of 16777216"},
    {"memory of a file",
     [](const Client& client) {
       const Descriptor file(::open("/dev/null", O_RDWR | O_CLOEXEC));
       client.send(kMemory, bytes_of(uint32_t{1}, uint32_t{0}, uint64_t{0}, kMemoryBytes, kUser, uint64_t{0}),
                   {file.fd});
     },
     "guest memory at 0x0"},
    {"memory without a file",
     [](const Client& client) {
       client.send(kMemory, bytes_of(uint32_t{1}, uint32_t{0}, uint64_t{0}, kMemoryBytes, kUser, uint64_t{0}));
     },
     "1 regions of memory, 0 descriptors"},
    {"more memory than there is", [](const Client& client) { client.share(uint64_t{1} << 62); }, "guest memory at 0x0"},
    {"a kick that is a file", [](const Client& client) { client.kick_by(client.memory); },
     "kick of queue 0 is something else"},
    {"a kick that is nothing", [](const Client& client) { client.send(kKick, bytes_of(uint64_t{0})); },
     "kick of queue 0 is no descriptor"},
    {"a call that is the null device",
     [](const Client& client) { client.call_by(Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC)).fd); },
     "call of queue 0 is something else"},
    {"a kick that is closed", kick_of_a_closed_pipe, "kick: closed"},
    {"a kick that nobody reads",
     [](const Client& client) {
       const Descriptor kick(::eventfd(0, EFD_CLOEXEC));  // one that blocks its reader
       client.kick_by(kick.fd);
       EXPECT_EQ(::eventfd_write(kick.fd, 1), 0);
     },
     nullptr},
    {"rings outside memory", [](const Client& client) { client.share(), client.place(uint64_t{1} << 40); },
     "rings of 16 entries"},
    {"rings of no entry", [](const Client& client) { client.share(), client.place(kUser, 0); }, "a queue of 0 entries"},
    {"rings of 3 entries", [](const Client& client) { client.share(), client.place(kUser, 3); },
     "a queue of 3 entries"},
    {"rings before memory", [](const Client& client) { client.place(); }, "rings of 16 entries"},
    {"a queue that is not", [](const Client& client) { client.send(kNumber, bytes_of(uint32_t{9}, uint32_t{16})); },
     "queue 9 of 2"},
    {"nine descriptors",
     [](const Client& client) { client.send(kKick, bytes_of(uint64_t{0}), std::vector<int>(9, client.memory)); },
     "more than 8 descriptors"},
    {"answers that are not read",
     [](const Client& client) {
       for (int i = 0; i < 5000; ++i) {
         if (::send(client.socket, kGetFeatures.data(), sizeof(kGetFeatures), MSG_NOSIGNAL) < 0) break;
       }
     },
     "replies are not read"},
};

// The other socket is served meanwhile, and this one afterwards; no descriptor stays open.
TEST(Clients, WhatOneDoesWrongHarmsNobodyElse) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    testing::internal::CaptureStderr();
    {
      Served served(0);
      const Descriptor other(served.connect("lines"));
      EXPECT_TRUE(is_answered(other.fd));
      const size_t before = open_files();
      {
        const Client client(served, "bus");
        one.act(client);
        EXPECT_TRUE(is_answered(other.fd));
        if (one.said != nullptr) {
          EXPECT_TRUE(client.is_dropped());
        }
      }
      {
        const Client next(served, "bus");
        EXPECT_TRUE(is_answered(next.socket));
      }
      EXPECT_TRUE(comes_true([&] { return open_files() == before; })) << open_files() << " files, " << before;
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("is dropped") != std::string::npos, one.said != nullptr) << said;
    if (one.said != nullptr) {
      EXPECT_NE(said.find(one.said), std::string::npos) << said;
      EXPECT_NE(said.find("bus: the guest (process " + std::to_string(::getpid()) + ")"), std::string::npos) << said;
    }
  }
}

TEST(Clients, WhoIsSlowHoldsNobodyUpAndIsDropped) {
  Served served(0);
  const Descriptor slow(served.connect("bus")), silent(served.connect("lines"));
  const auto begun = std::chrono::steady_clock::now();
  const auto now = [&] { return std::chrono::steady_clock::now() - begun; };
  std::thread sender([&] {
    for (int i = 0; i < 12 && ::send(slow.fd, kGetFeatures.data(), 1, MSG_NOSIGNAL) == 1; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  const Descriptor other(served.connect("lines"));  // after the silent one
  EXPECT_FALSE(is_answered(other.fd));
  EXPECT_TRUE(comes_true([&] {
    std::array<uint8_t, 20> answer{};
    return ::recv(other.fd, answer.data(), answer.size(), MSG_DONTWAIT) == 20;
  }));
  EXPECT_LT(now(), VhostUser::kPatience + std::chrono::milliseconds(800)) << "the slow one is waited for";
  sender.join();
  EXPECT_LT(now(), VhostUser::kPatience + std::chrono::milliseconds(1200)) << "the slow one is still there";
}

// For any number of requests, so that the other socket is served too.
TEST(Clients, AQueueIsServedInRounds) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  GuestMemory memory;
  Bus bus;
  VhostUser connection(ends[0], bus, memory);
  const Client client(ends[1]);
  const Descriptor kick(::eventfd(0, EFD_CLOEXEC));
  client.share();
  client.place();
  client.kick_by(kick.fd);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(connection.read_message().ok());
  const std::vector<uint8_t> part = bytes_of(uint64_t{0x1000}, uint32_t{16}, uint16_t{0}, uint16_t{0});
  std::memcpy(client.bytes, part.data(), part.size());
  client.make_available(20);
  for (const int served : {16, 20}) {
    ASSERT_TRUE(connection.serve_queues().ok());
    EXPECT_EQ(client.used(), served);
    EXPECT_EQ(connection.has_more(), served == 16);
  }
}

TEST(Clients, AGuestThatMakesRequestsOnAndOnKeepsNobodyOut) {
  Served served(0);
  const Descriptor other(served.connect("lines"));
  EXPECT_TRUE(is_answered(other.fd));
  const Client client(served, "bus");
  client.share();
  client.place();
  const Descriptor kick(::eventfd(0, EFD_CLOEXEC)), call(::eventfd(0, EFD_CLOEXEC));
  client.kick_by(kick.fd);
  client.call_by(call.fd);
  EXPECT_EQ(::eventfd_write(call.fd, ~uint64_t{0} - 1), 0);  // full, so that it would block a writer
  std::memset(client.bytes + 0x1000, 1, 16);                 // a message of the bus that is not an access
  const std::vector<uint8_t> part = bytes_of(uint64_t{0x1000}, uint32_t{16}, uint16_t{0}, uint16_t{0});
  std::memcpy(client.bytes, part.data(), part.size());
  client.make_available(60000);
  std::atomic<bool> ends = false;
  std::thread requests([&] {
    while (!ends) client.make_available(client.used() + 60000);  // always far ahead
  });
  EXPECT_EQ(::eventfd_write(kick.fd, 1), 0);
  EXPECT_TRUE(comes_true([&] { return client.used() != 0; }));
  EXPECT_TRUE(is_answered(other.fd));
  served.server->stop();
  EXPECT_TRUE(comes_true([&] { return served.has_ended.load(); }));
  ends = true;
  requests.join();
}

TEST(Clients, AThousandConnectionsAreServedInTurn) {
  const size_t before = open_files();
  {
    Served served(0);
    const Descriptor other(served.connect("lines"));
    for (int i = 0; i < 1000; ++i) const Descriptor one(served.connect("bus"));
    const Descriptor last(served.connect("bus"));
    EXPECT_TRUE(is_answered(last.fd));
    EXPECT_TRUE(is_answered(other.fd));
  }
  EXPECT_EQ(open_files(), before);
}

// Also for reads by a device's thread, by the addresses of its page table.
TEST(Shrinkable, PagesThatAreGoneAreZerosInAllThreads) {
  const Descriptor file(::memfd_create("guest", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.fd, kMemoryBytes), 0);
  GuestMemory guest;
  ASSERT_TRUE(
      guest.set({{.guest_address = 0, .size_bytes = kMemoryBytes, .user_address = kUser, .fd = ::dup(file.fd)}}).ok());
  *guest.at(0x5000, 1).data() = 7;
  AddressSpace space;
  const std::array<Page, 1> pages = {Page{.index = 2, .guest_address = 0x5000, .is_writable = true}};
  const auto memory = space.map(guest, pages, space.epoch());
  ASSERT_TRUE(memory.ok());
  uint8_t* const byte = memory->at(0x2000, 1, "test")->data();
  EXPECT_EQ(*byte, 7);
  EXPECT_EQ(guest.cut_short(), "");
  ASSERT_EQ(::ftruncate(file.fd, 0), 0);
  const uint64_t count = Shrinkable::count();
  std::thread([&] { EXPECT_EQ(std::atomic_ref(*byte).load(), 0); }).join();
  EXPECT_EQ(guest.word(0x5000), 0u);
  EXPECT_EQ(guest.word(0x6000), 0u);
  EXPECT_EQ(Shrinkable::count(), count + 2) << "the rest of a region comes with its first page";
  EXPECT_EQ(guest.cut_short(), "the file of its memory at 0x0 was cut to 0 bytes, of 16777216");
}

// A process with the largest number of mappings could not even undo them.
TEST(AddressSpace, PagesInTooManyPiecesAreAnError) {
  Guest guest;
  AddressSpace space, other;
  constexpr uint64_t kPages = kMemoryBytes / kPageBytes;
  const auto pages = [](uint64_t count, uint64_t apart) {
    std::vector<Page> out;
    for (uint64_t i = 0; i < count; ++i)
      out.push_back(
          {.index = static_cast<uint32_t>(i), .guest_address = i * apart % kPages * kPageBytes, .is_writable = true});
    return out;
  };
  for (int round = 0; round < 2; ++round) {
    const auto scattered = space.map(guest.memory, pages(70'000, 7), space.epoch());
    ASSERT_FALSE(scattered.ok());
    EXPECT_NE(scattered.error().message.find("pieces"), std::string::npos) << scattered.error().message;
    EXPECT_FALSE(other.map(guest.memory, pages(2, 7), other.epoch()).ok()) << "all of a process count";
    space.revoke();
    EXPECT_TRUE(other.map(guest.memory, pages(2, 7), other.epoch()).ok());
    other.revoke();
    const auto together = space.map(guest.memory, pages(40 * kPages, 1), space.epoch());  // 40 pieces of 4096 pages
    ASSERT_TRUE(together.ok()) << together.error().message;
    *guest.memory.at(5 * kPageBytes, 1).data() = static_cast<uint8_t>(9 + round);
    EXPECT_EQ(*together->at((39 * kPages + 5) * kPageBytes, 1, "test")->data(), 9 + round);
    space.revoke();
  }
}

TEST(Allowance, OfManyWarningsSomeAreCountedOnly) {
  Allowance all;
  const Allowance::Time begun = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < Allowance::kMost; ++i) EXPECT_EQ(all.take(begun), 0u);
  EXPECT_FALSE(all.take(begun).has_value());
  EXPECT_FALSE(all.take(begun + Allowance::kPeriod / 2).has_value());
  EXPECT_EQ(all.unsaid(), 2u);
  EXPECT_EQ(all.take(begun + Allowance::kPeriod), 2u);
  EXPECT_EQ(all.take(begun + Allowance::kPeriod), 0u);
}

}  // namespace
}  // namespace skillet::mmio
