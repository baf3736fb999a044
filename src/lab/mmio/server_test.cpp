// A board's sockets: guests that die, stop in the middle of a message, or come while another one is there.
#include "lab/mmio/server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/testing/own_folder.h"
#include "lab/mmio/guest_process.h"
#include "lab/mmio/testing/guest.h"

namespace skillet::mmio {
namespace {

// Serves so many guests in a thread.
struct Served {
  explicit Served(uint32_t guests) {
    server = Server::create(folder.path(), 2).value();
    thread = std::thread([this, guests] {
      EXPECT_TRUE(server->run(guests).ok());
      has_ended = true;
    });
  }
  ~Served() {
    server->stop();
    thread.join();
    server.reset();
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "sockets are left";
  }
  int connect(const char* side) const {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (folder.path() + "/" + side).copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }
  const OwnFolder folder;
  std::unique_ptr<Server> server;
  std::thread thread;
  std::atomic<bool> has_ended = false;
};

constexpr std::array<uint32_t, 3> kGetFeatures = {1, 1, 0};

bool is_answered(int socket) {
  EXPECT_EQ(::send(socket, kGetFeatures.data(), sizeof(kGetFeatures), MSG_NOSIGNAL), 12);
  std::array<uint8_t, 20> answer{};
  const timeval patience{.tv_sec = 0, .tv_usec = 200'000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return ::recv(socket, answer.data(), answer.size(), MSG_WAITALL) == static_cast<ssize_t>(answer.size());
}

TEST(Server, AGuestThatDiesInAMessageIsGone) {
  Served served(1);
  const int bus = served.connect("bus"), lines = served.connect("lines");
  ASSERT_TRUE(is_answered(bus) && is_answered(lines));
  ASSERT_EQ(::send(bus, kGetFeatures.data(), 5, MSG_NOSIGNAL), 5);
  ::close(bus), ::close(lines);
  EXPECT_TRUE(comes_true([&] { return served.has_ended.load(); }));
}

TEST(Server, AGuestThatStopsInAMessageIsDropped) {
  Served served(1);
  const int bus = served.connect("bus");
  ASSERT_EQ(::send(bus, kGetFeatures.data(), 5, MSG_NOSIGNAL), 5);
  for (int i = 0; i < 3 && !served.has_ended; ++i) comes_true([&] { return served.has_ended.load(); });
  EXPECT_TRUE(served.has_ended);
  ::close(bus);
}

TEST(Server, ASecondGuestWaitsForTheFirstToGo) {
  Served served(2);
  const int first = served.connect("bus"), second = served.connect("bus");
  EXPECT_TRUE(is_answered(first));
  EXPECT_FALSE(is_answered(second));
  EXPECT_TRUE(is_answered(first)) << "the second does it no harm";
  ::close(first);
  EXPECT_TRUE(is_answered(second));
  ::close(second);
  EXPECT_TRUE(comes_true([&] { return served.has_ended.load(); }));
}

// Its devices are stopped then, which may be gone when the server goes.
TEST(Server, AGuestThatIsThereAtTheEndIsLetGo) {
  Served served(0);
  const int bus = served.connect("bus");
  ASSERT_TRUE(is_answered(bus));
  served.server->stop();
  ASSERT_TRUE(comes_true([&] { return served.has_ended.load(); }));
  char none = 0;
  EXPECT_EQ(::recv(bus, &none, 1, MSG_DONTWAIT), 0);
  ::close(bus);
}

// A process that waits, or computes for ever.
struct Child {
  explicit Child(bool waits) : id(::fork()) {
    while (id == 0) {
      if (waits) ::pause();
    }
  }
  ~Child() {
    ::kill(id, SIGKILL);
    ::waitpid(id, nullptr, 0);
  }
  const pid_t id;
};

TEST(GuestProcess, IsAsleepWhereItWaits) {
  const Child waiting(true), busy(false);
  EXPECT_TRUE(comes_true([&] { return is_asleep(waiting.id); }));
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(is_asleep(busy.id));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(is_asleep(0)) << "of which nothing is known";
}

}  // namespace
}  // namespace skillet::mmio
