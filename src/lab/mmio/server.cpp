#include "lab/mmio/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "lab/mmio/guest_process.h"
#include "lab/mmio/priority.h"

namespace skillet::mmio {

Result<std::unique_ptr<Server>> Server::create(const std::string& folder, uint16_t lines) {
  auto server = std::unique_ptr<Server>(new Server(lines));
  server->wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (server->wake_ < 0) return error(ErrorCode::io, "eventfd: {}", std::strerror(errno));
  server->missing_pages_ = Shrinkable::count();
  Shrinkable::tell(server->wake_);
  server->lines_side_.backend = &server->lines_;
  server->lines_side_.path = folder + "/lines";
  server->bus_side_.backend = &server->bus_;
  server->bus_side_.path = folder + "/bus";
  for (Side* one : server->sides()) SK_TRY(server->listen(*one));
  return server;
}

Server::~Server() {
  for (Side* one : sides()) {
    drop(*one);
    if (one->listener >= 0) ::close(one->listener);
  }
  unlink();
  Shrinkable::tell(-1);
  if (wake_ >= 0) ::close(wake_);
}

void Server::unlink() const {
  for (const Side* one : sides()) {
    if (one->listener >= 0) ::unlink(one->path.c_str());
  }
}

Result<void> Server::listen(Side& side) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (side.path.size() >= sizeof(address.sun_path))
    return error(ErrorCode::invalid_argument, "{}: the name of a socket has at most {} bytes", side.path,
                 sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path, side.path.c_str(), side.path.size());
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const mode_t mask = ::umask(0177);
  const bool is_bound = listener >= 0 && ::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  const int failure = errno;
  ::umask(mask);
  if (!is_bound || ::listen(listener, 1) != 0) {
    if (listener >= 0) ::close(listener);
    return error(ErrorCode::io, "socket {}: {}", side.path, std::strerror(is_bound ? errno : failure));
  }
  side.listener = listener;
  return {};
}

Surroundings Server::surroundings(uint16_t line) {
  return {.guest = bus_side_.guest, .set_interrupt = [this, line](bool is_high) {
            lines_.set(line, is_high);
            wake();
          }};
}

void Server::stop() {
  stops_ = true;
  wake();
}

void Server::wake() const {
  const uint64_t one = 1;
  static_cast<void>(::write(wake_, &one, sizeof(one)));
}

void Server::accept(Side& side) {
  const int socket = ::accept4(side.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return;
  if (socket < 0) {  // the connection stays pending: waits before the next try
    warn(warnings_, "{}: a guest cannot connect: {}", side.path, std::strerror(errno));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return;
  }
  ucred peer{};
  socklen_t size_bytes = sizeof(peer);
  side.process = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size_bytes) == 0 ? peer.pid : 0;
  side.connection = std::make_unique<VhostUser>(socket, *side.backend, side.guest);
}

void Server::drop(Side& side) {
  if (side.connection == nullptr) return;
  side.backend->disconnected();
  side.connection.reset();
  static_cast<void>(side.guest.set({}));
}

void Server::wait() {
  std::vector<pollfd> fds = {{wake_, POLLIN, 0}};
  for (const Side* one : sides()) {
    if (one->connection == nullptr) {
      fds.push_back({one->listener, POLLIN, 0});
      continue;
    }
    for (const int fd : one->connection->descriptors()) fds.push_back({fd, POLLIN, 0});
  }
  const auto most = patience();
  const timespec time{.tv_sec = most ? most->count() / 1'000'000'000 : 0,
                      .tv_nsec = most ? most->count() % 1'000'000'000 : 0};
  ::ppoll(fds.data(), fds.size(), most ? &time : nullptr, nullptr);
  uint64_t count = 0;
  static_cast<void>(::read(wake_, &count, sizeof(count)));
}

// Time to wait for messages; none: no limit.
std::optional<std::chrono::nanoseconds> Server::patience() const {
  using std::chrono::nanoseconds;
  constexpr nanoseconds kNone{0}, kSoon{50'000};
  std::optional<nanoseconds> least;
  const auto at_most = [&](nanoseconds time) { least = std::max(kNone, std::min(least.value_or(time), time)); };
  const auto now = std::chrono::steady_clock::now();
  if (held_since_) at_most(kSoon);
  for (const Side* one : sides()) {
    if (one->connection == nullptr) continue;
    if (one->connection->has_more()) at_most(kNone);
    if (one->connection->deadline()) at_most(*one->connection->deadline() - now);
  }
  return least;
}

// Returns false if the guest has disconnected.
bool Server::serve(Side& side) {
  const auto step = [&]() -> Result<bool> {
    SK_TRY_ASSIGN(const bool is_open, side.connection->read_message());
    if (!is_open) return false;
    SK_TRY(side.connection->serve_queues());
    return true;
  };
  const Result<bool> done = step();
  if (!done.ok())
    warn(warnings_, "{}: the guest (process {}) is dropped: {}", side.path, side.process, done.error().message);
  return done.ok() && *done;
}

// Drops guests whose memory had missing pages: their reads got zeros.
void Server::drop_memoryless() {
  const uint64_t count = Shrinkable::count();
  if (std::exchange(missing_pages_, count) == count) return;
  const auto is_short = [](const Side* one) { return !one->guest.cut_short().empty(); };
  const bool has_any = std::ranges::any_of(sides(), is_short);
  for (Side* one : sides()) {
    if (one->connection == nullptr || (has_any && !is_short(one))) continue;
    warn(warnings_, "{}: the guest (process {}) is dropped: {}", one->path, one->process,
         has_any ? one->guest.cut_short() : "its memory's file system is full");
    drop(*one);
  }
}

// Interrupts must not arrive while the guest waits for the answer of a read: the driver of this bus mixes up the
// answers of nested reads. The guest waits awake: if it is asleep it is idle or runs a program. If it has just used its
// bus it is likely to do so again. A guest that is busy for long is interrupted anyway.
bool Server::may_interrupt(std::chrono::steady_clock::time_point due_since) const {
  constexpr auto kQuiet = std::chrono::microseconds(200);
  constexpr auto kPatience = std::chrono::milliseconds(20);
  if (bus_side_.connection == nullptr) return true;
  const auto now = std::chrono::steady_clock::now();
  return bus_side_.connection->queue(0).is_answer_taken() && now - bus_.last_access() >= kQuiet &&
         (is_asleep(bus_side_.process) || now - due_since >= kPatience);
}

// Takes the buffers of lines before it serves the bus: a handler's writes before it returned its buffer have then
// lowered the line. A guest counts as gone when both of its connections are closed.
Result<void> Server::run(uint32_t guests) {
  go_first(true);
  for (uint32_t gone = 0; !stops_ && (guests == 0 || gone < guests);) {
    wait();
    bool had_guest = false;
    for (Side* side : sides()) {
      if (side->connection == nullptr) accept(*side);
      if (side->connection == nullptr) continue;
      had_guest = true;
      if (!serve(*side)) drop(*side);
    }
    drop_memoryless();
    if (had_guest && bus_side_.connection == nullptr && lines_side_.connection == nullptr) ++gone;
    const bool is_due = lines_side_.connection != nullptr && lines_.is_due();
    if (!is_due) held_since_.reset();
    if (is_due && !held_since_) held_since_ = std::chrono::steady_clock::now();
    if (!is_due || !may_interrupt(*held_since_)) continue;
    lines_.deliver(lines_side_.connection->queue(1));
    held_since_.reset();
  }
  for (Side* one : sides()) drop(*one);  // while there are devices to stop
  return {};
}

}  // namespace skillet::mmio
