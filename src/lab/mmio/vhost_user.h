// VhostUser: the back end of one virtio device over a Unix socket, for a front end such as user-mode Linux.
// Source: QEMU's vhost-user specification; virtio 1.2, split virtqueues; hardware specification of the bus (kernel-mmio
// 4). Called by server.h; the device behind it is a Backend. Must not know: what the device does.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/mmio/guest_memory.h"

namespace skillet::mmio {

// A request of the guest in a virtqueue: its bytes, and buffers for the answer.
struct Chain {
  uint16_t head = 0;
  std::vector<uint8_t> request;
  std::vector<std::span<uint8_t>> answer;
};

class Queue {
 public:
  // The next request; none if there is none now, or the limit of this round is reached, so that a guest with endless
  // requests does not block others. The error names the rule that the guest broke.
  Result<std::optional<Chain>> take(const GuestMemory& guest);
  // Returns the request to the guest. An `answer` longer than its buffers is truncated.
  void give_back(const Chain& chain, std::span<const uint8_t> answer);
  // Notifies the guest of returned requests.
  void notify() const;
  // True if the guest has taken the last request that had an answer.
  bool is_answer_taken() const;

 private:
  friend class VhostUser;
  struct Descriptor {
    uint64_t address;
    uint32_t size_bytes;
    uint16_t flags, next;
  };
  bool is_ready() const { return is_enabled_ && !descriptors_.empty() && !available_.empty() && !used_.empty(); }
  Result<void> add(const GuestMemory& guest, const Descriptor& part, Chain& chain) const;
  void forget();
  void begin_round() {
    left_ = size_;
    has_more_ = false;
  }
  // Requests a notification for the next request.
  void await();
  Result<void> read_kick();

  uint32_t size_ = 0;
  uint16_t next_ = 0, answered_ = 0;
  uint32_t left_ = 0;  // requests left in this round
  bool has_more_ = false;
  bool is_enabled_ = false;
  bool has_event_index_ = false;            // the guest has accepted the feature
  std::array<uint64_t, 3> addresses_ = {};  // in the front end: descriptors, used, available
  std::span<uint8_t> descriptors_, available_, used_;
  int kick_ = -1, call_ = -1;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::vector<uint8_t> config() const { return {}; }
  virtual uint64_t features() const { return 0; }
  // The guest may have added requests to queues[index].
  virtual Result<void> serve(uint32_t index, std::span<Queue> queues, const GuestMemory& guest) = 0;
  virtual void disconnected() {}
};

// One connection. No call waits for the front end.
class VhostUser {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Time limit of a message, and of the first message of a connection.
  static constexpr auto kPatience = std::chrono::seconds(2);

  // `guest`: receives the memory that the front end shares.
  VhostUser(int socket, Backend& backend, GuestMemory& guest)
      : socket_(socket), backend_(backend), guest_(guest), deadline_(std::chrono::steady_clock::now() + kPatience) {}
  ~VhostUser();
  VhostUser(const VhostUser&) = delete;
  VhostUser& operator=(const VhostUser&) = delete;

  // Descriptors to wait for: the socket, then those of queues.
  std::vector<int> descriptors() const;
  // Reads the available part of a message, and handles a complete one. False: the front end has closed the socket.
  // Error: it broke the protocol, or the message is late.
  Result<bool> read_message();
  // Time by which the rest of a message must arrive.
  std::optional<Time> deadline() const { return deadline_; }
  Result<void> serve_queues();
  // True if the queues must be served again without a notification.
  bool has_more() const { return queues_[0].has_more_ || queues_[1].has_more_; }
  Queue& queue(uint32_t index) { return queues_[index]; }

 private:
  struct Message {
    uint32_t request = 0, flags = 0;
    std::vector<uint8_t> payload;
    std::vector<int> fds;
    template <typename T>
    T at(size_t offset) const;
    int take_fd();
  };
  Result<void> handle_incoming();
  Result<void> handle(Message& message);
  Result<void> set_memory(Message& message);
  Result<void> set_queue_address(const Message& message);
  Result<void> set_queue_descriptor(Message& message);
  Result<void> reply(const Message& to, std::span<const uint8_t> payload) const;
  Result<void> place_queues();
  void forget_incoming();

  static constexpr uint32_t kQueues = 2;
  int socket_;
  Backend& backend_;
  GuestMemory& guest_;
  std::array<Queue, kQueues> queues_;
  // The message being received.
  std::vector<uint8_t> incoming_;
  std::vector<int> incoming_fds_;
  std::optional<Time> deadline_;
};

}  // namespace skillet::mmio
