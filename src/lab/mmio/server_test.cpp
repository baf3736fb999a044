// A board's sockets: guests that die, stop within a message, or connect while another one is connected.
#include "lab/mmio/server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "lab/mmio/guest_process.h"
#include "lab/mmio/testing/served.h"

namespace skillet::mmio {
namespace {

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

// Its devices are stopped then, because they may be destroyed before the server.
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

// A process that waits, or computes forever.
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
