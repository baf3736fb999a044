// Served: a server that serves guests in a thread, and sockets to it, for tests.
// Called by tests of lab/mmio/.
// Must not know: any device.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "base/testing/own_folder.h"
#include "lab/mmio/server.h"
#include "lab/mmio/testing/guest.h"

namespace skillet::mmio {

// Serves this number of guests in a thread.
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

inline constexpr std::array<uint32_t, 3> kGetFeatures = {1, 1, 0};

inline bool is_answered(int socket) {
  EXPECT_EQ(::send(socket, kGetFeatures.data(), sizeof(kGetFeatures), MSG_NOSIGNAL), 12);
  std::array<uint8_t, 20> answer{};
  const timeval patience{.tv_sec = 0, .tv_usec = 200'000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return ::recv(socket, answer.data(), answer.size(), MSG_WAITALL) == static_cast<ssize_t>(answer.size());
}

}  // namespace skillet::mmio
