#include "lab/mmio/vhost_user.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace skillet::mmio {
namespace {

// Message numbers.
enum Request : uint32_t {
  kGetFeatures = 1,
  kSetFeatures = 2,
  kSetOwner = 3,
  kSetMemTable = 5,
  kSetVringNum = 8,
  kSetVringAddr = 9,
  kSetVringBase = 10,
  kGetVringBase = 11,
  kSetVringKick = 12,
  kSetVringCall = 13,
  kSetVringErr = 14,
  kGetProtocolFeatures = 15,
  kSetProtocolFeatures = 16,
  kSetVringEnable = 18,
  kGetConfig = 24,
};
constexpr uint32_t kVersion = 1, kReplyFlag = 4, kNeedReply = 8;
constexpr uint64_t kFeatureEvents = uint64_t{1} << 29, kFeatureProtocol = uint64_t{1} << 30,
                   kFeatureVersion1 = uint64_t{1} << 32;
constexpr uint64_t kProtocolReplyAck = 1 << 3, kProtocolConfig = 1 << 9;
constexpr uint32_t kNoDescriptor = 1 << 8;  // in a queue's kick and call messages
constexpr size_t kHeaderBytes = 12;
constexpr uint32_t kMostPayload = 4096, kMostDescriptors = 8, kMostQueueSize = 32768;
constexpr uint64_t kMostRequest = 1 << 16;  // bytes in one request of the guest

constexpr uint16_t kDescriptorNext = 1, kDescriptorWrite = 2, kDescriptorIndirect = 4;
constexpr size_t kRingHeader = 4, kUsedEntry = 8, kDescriptorBytes = 16;
constexpr size_t kRingEvent = 2;  // after each ring: the entry up to which the other side has seen it

template <typename T>
T get(std::span<const uint8_t> bytes, size_t offset) {
  T value{};
  if (offset + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::atomic_ref<uint16_t> half_at(std::span<uint8_t> bytes, size_t offset) {
  return std::atomic_ref(*reinterpret_cast<uint16_t*>(bytes.data() + offset));
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

void Queue::forget() { descriptors_ = available_ = used_ = {}; }

Result<void> Queue::add(const GuestMemory& guest, const Descriptor& part, Chain& chain) const {
  if ((part.flags & kDescriptorIndirect) != 0)
    return error(ErrorCode::malformed, "virtqueue: an indirect descriptor, which was not offered");
  const std::span<uint8_t> bytes = guest.at(part.address, part.size_bytes);
  if (bytes.size() != part.size_bytes)
    return error(ErrorCode::malformed, "virtqueue: {} bytes at {:#x} are not in the guest's memory", part.size_bytes,
                 part.address);
  if ((part.flags & kDescriptorWrite) != 0) {
    chain.answer.push_back(bytes);
    return {};
  }
  if (chain.request.size() + bytes.size() > kMostRequest)
    return error(ErrorCode::malformed, "virtqueue: a request of more than {} bytes", kMostRequest);
  chain.request.insert(chain.request.end(), bytes.begin(), bytes.end());
  return {};
}

Result<std::optional<Chain>> Queue::take(const GuestMemory& guest) {
  if (!is_ready()) return std::optional<Chain>();
  has_more_ = left_ == 0;
  if (has_more_) return std::optional<Chain>();
  if (half_at(available_, 2).load(std::memory_order_acquire) == next_) {
    await();
    if (half_at(available_, 2).load(std::memory_order_seq_cst) == next_) return std::optional<Chain>();
  }
  Chain chain;
  chain.head = half_at(available_, kRingHeader + next_ % size_ * sizeof(uint16_t)).load(std::memory_order_relaxed);
  ++next_;
  --left_;
  uint16_t index = chain.head;
  for (uint32_t parts = 0;; ++parts) {
    if (index >= size_ || parts == size_)
      return error(ErrorCode::malformed, "virtqueue: descriptor {} of {} in a chain of {}", index, size_, parts);
    const std::span<const uint8_t> bytes = descriptors_.subspan(index * kDescriptorBytes, kDescriptorBytes);
    const Descriptor part{get<uint64_t>(bytes, 0), get<uint32_t>(bytes, 8), get<uint16_t>(bytes, 12),
                          get<uint16_t>(bytes, 14)};
    SK_TRY(add(guest, part, chain));
    if ((part.flags & kDescriptorNext) == 0) return std::optional(std::move(chain));
    index = part.next;
  }
}

void Queue::give_back(const Chain& chain, std::span<const uint8_t> answer) {
  if (!is_ready()) return;
  uint32_t written = 0;
  for (const std::span<uint8_t>& buffer : chain.answer) {
    const std::span<const uint8_t> part = answer.first(std::min(answer.size(), buffer.size()));
    std::ranges::copy(part, buffer.begin());
    answer = answer.subspan(part.size());
    written += static_cast<uint32_t>(part.size());
  }
  const std::atomic_ref<uint16_t> index = half_at(used_, 2);
  const uint16_t at = index.load(std::memory_order_relaxed);
  uint8_t* const entry = used_.data() + kRingHeader + at % size_ * kUsedEntry;
  const std::array<uint32_t, 2> value = {chain.head, written};
  std::memcpy(entry, value.data(), sizeof(value));
  index.store(static_cast<uint16_t>(at + 1), std::memory_order_release);
  if (written != 0) answered_ = static_cast<uint16_t>(at + 1);
}

// If the socket is full, the guest has enough notifications pending. User-mode Linux passes a socket.
void Queue::notify() const {
  const uint64_t one = 1;
  if (call_ < 0 || ::send(call_, &one, sizeof(one), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != ENOTSOCK) return;
  pollfd room{call_, POLLOUT, 0};
  if (::poll(&room, 1, 0) <= 0 || (room.revents & POLLOUT) == 0) return;
  static_cast<void>(::write(call_, &one, sizeof(one)));
}

bool Queue::is_answer_taken() const {
  if (!is_ready() || !has_event_index_) return true;
  const uint16_t seen = half_at(available_, kRingHeader + size_ * sizeof(uint16_t)).load(std::memory_order_acquire);
  return static_cast<int16_t>(seen - answered_) >= 0;
}

void Queue::await() {
  if (is_ready() && has_event_index_)
    half_at(used_, kRingHeader + size_ * kUsedEntry).store(next_, std::memory_order_seq_cst);
}

// The front end shares these descriptors, and may make them blocking at any time.
Result<void> Queue::read_kick() {
  std::array<uint8_t, 4096> kicks;
  iovec part{kicks.data(), kicks.size()};
  ssize_t got = kick_ < 0 ? 1 : ::preadv2(kick_, &part, 1, -1, RWF_NOWAIT);
  if (got < 0 && errno == EOPNOTSUPP) got = ::read(kick_, kicks.data(), kicks.size());  // our own pipe
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return {};
  return error(ErrorCode::malformed, "vhost-user: a queue's kick: {}", got == 0 ? "closed" : std::strerror(errno));
}

template <typename T>
T VhostUser::Message::at(size_t offset) const {
  return get<T>(payload, offset);
}

int VhostUser::Message::take_fd() { return fds.empty() ? -1 : std::exchange(fds.front(), -1); }

VhostUser::~VhostUser() {
  forget_incoming();
  ::close(socket_);
  for (Queue& one : queues_) {
    close_fd(one.kick_);
    close_fd(one.call_);
  }
}

std::vector<int> VhostUser::descriptors() const {
  std::vector<int> fds = {socket_};
  for (const Queue& one : queues_) {
    if (one.kick_ >= 0) fds.push_back(one.kick_);
  }
  return fds;
}

namespace {

// Receives the available bytes, up to the size of `out`. 0: none; -1: the other side has closed the socket.
Result<ssize_t> receive(int socket, std::span<uint8_t> out, std::vector<int>& fds) {
  iovec part{out.data(), out.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control;
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got < 0 && errno != ECONNRESET) return error(ErrorCode::io, "vhost-user: recvmsg: {}", std::strerror(errno));
  if (got <= 0) return -1;
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(one) + i * sizeof(int), sizeof(int));
      fds.push_back(fd);
    }
  }
  if (fds.size() > kMostDescriptors || (header.msg_flags & MSG_CTRUNC) != 0)
    return error(ErrorCode::malformed, "vhost-user: a message with more than {} descriptors", kMostDescriptors);
  return got;
}

}  // namespace

void VhostUser::forget_incoming() {
  for (const int fd : incoming_fds_) {
    if (fd >= 0) ::close(fd);
  }
  incoming_fds_.clear();
  incoming_.clear();
}

// Reads as much of a message as is available, first the header, which holds its length.
Result<bool> VhostUser::read_message() {
  const Time now = std::chrono::steady_clock::now();
  while (true) {
    const auto payload = incoming_.size() < kHeaderBytes ? 0 : get<uint32_t>(incoming_, 8);
    if (payload > kMostPayload)
      return error(ErrorCode::malformed, "vhost-user: message {} of {} bytes", get<uint32_t>(incoming_, 0), payload);
    const size_t done = incoming_.size(), whole = kHeaderBytes + payload;
    if (done == whole) break;
    incoming_.resize(whole);
    const Result<ssize_t> got = receive(socket_, std::span(incoming_).subspan(done), incoming_fds_);
    incoming_.resize(done + static_cast<size_t>(std::max<ssize_t>(got.ok() ? *got : 0, 0)));
    SK_TRY(got);
    if (*got < 0 && done != 0) return error(ErrorCode::malformed, "vhost-user: a message ends after {} bytes", done);
    if (*got < 0) return false;
    if (!deadline_ && *got > 0) deadline_ = now + kPatience;
    if (*got > 0) continue;
    if (deadline_ && now >= *deadline_)
      return error(ErrorCode::malformed, "vhost-user: {} bytes of a message in {} s", done,
                   std::chrono::seconds(kPatience).count());
    return true;
  }
  SK_TRY(handle_incoming());
  return true;
}

Result<void> VhostUser::handle_incoming() {
  deadline_.reset();
  Message message{.request = get<uint32_t>(incoming_, 0),
                  .flags = get<uint32_t>(incoming_, 4),
                  .payload = {incoming_.begin() + kHeaderBytes, incoming_.end()},
                  .fds = std::exchange(incoming_fds_, {})};
  incoming_.clear();
  const Result<void> done = handle(message);
  for (const int fd : message.fds) {
    if (fd >= 0) ::close(fd);
  }
  return done;
}

Result<void> VhostUser::reply(const Message& to, std::span<const uint8_t> payload) const {
  const std::array<uint32_t, 3> header = {to.request, kVersion | kReplyFlag, static_cast<uint32_t>(payload.size())};
  std::vector<uint8_t> bytes(sizeof(header));
  std::memcpy(bytes.data(), header.data(), sizeof(header));
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN)
    return error(ErrorCode::io, "vhost-user: answer to message {}: {}", to.request, std::strerror(errno));
  if (sent != static_cast<ssize_t>(bytes.size()))
    return error(ErrorCode::malformed, "vhost-user: replies are not read, such as that to message {}", to.request);
  return {};
}

Result<void> VhostUser::set_memory(Message& message) {
  const auto count = message.at<uint32_t>(0);
  if (count == 0 || count > kMostDescriptors || message.fds.size() != count || message.payload.size() < 8 + count * 32)
    return error(ErrorCode::malformed, "vhost-user: {} regions of memory, {} descriptors, {} bytes", count,
                 message.fds.size(), message.payload.size());
  std::vector<Region> regions;
  for (uint32_t i = 0; i < count; ++i) {
    const size_t at = 8 + i * 32;
    regions.push_back({.guest_address = message.at<uint64_t>(at),
                       .size_bytes = message.at<uint64_t>(at + 8),
                       .user_address = message.at<uint64_t>(at + 16),
                       .file_offset = message.at<uint64_t>(at + 24),
                       .fd = std::exchange(message.fds[i], -1)});
  }
  for (Queue& one : queues_) one.forget();
  backend_.disconnected();
  SK_TRY(guest_.set(std::move(regions)));
  return place_queues();
}

// Finds the rings in memory once addresses and memory are known.
Result<void> VhostUser::place_queues() {
  for (Queue& one : queues_) {
    one.forget();
    if (one.addresses_[0] == 0 || one.size_ == 0) continue;
    one.descriptors_ = guest_.at_user(one.addresses_[0], one.size_ * kDescriptorBytes);
    one.used_ = guest_.at_user(one.addresses_[1], kRingHeader + one.size_ * kUsedEntry + kRingEvent);
    one.available_ = guest_.at_user(one.addresses_[2], kRingHeader + one.size_ * sizeof(uint16_t) + kRingEvent);
    if (one.descriptors_.empty() || one.used_.empty() || one.available_.empty() || one.addresses_[0] % 16 != 0 ||
        one.addresses_[1] % 4 != 0 || one.addresses_[2] % 2 != 0)
      return error(ErrorCode::malformed, "vhost-user: rings of {} entries at {:#x}, {:#x}, {:#x}", one.size_,
                   one.addresses_[0], one.addresses_[1], one.addresses_[2]);
  }
  return {};
}

Result<void> VhostUser::set_queue_address(const Message& message) {
  Queue& queue = queues_[message.at<uint32_t>(0)];
  for (size_t i = 0; i < queue.addresses_.size(); ++i) queue.addresses_[i] = message.at<uint64_t>(8 + i * 8);
  return place_queues();
}

namespace {

// Returns a socket, an eventfd, or a pipe opened again, so that no other process can make it blocking. Takes `fd`; -1
// for other descriptors.
int own_end(int fd, int direction) {
  std::array<char, 64> name{};
  const std::string link = fmt::format("/proc/self/fd/{}", fd);
  struct stat what {};
  const bool is_pipe = ::fstat(fd, &what) == 0 && S_ISFIFO(what.st_mode);
  const bool is_eventfd = ::readlink(link.c_str(), name.data(), name.size() - 1) > 0 &&
                          std::string_view(name.data()) == "anon_inode:[eventfd]";
  if (is_eventfd || S_ISSOCK(what.st_mode)) return fd;
  const int own = is_pipe ? ::open(link.c_str(), direction | O_NONBLOCK | O_CLOEXEC) : -1;
  ::close(fd);
  return own;
}

}  // namespace

Result<void> VhostUser::set_queue_descriptor(Message& message) {
  const auto value = message.at<uint64_t>(0);
  Queue& queue = queues_[value & 0xff];
  const bool is_kick = message.request == kSetVringKick;
  int& fd = is_kick ? queue.kick_ : queue.call_;
  close_fd(fd);
  if ((value & kNoDescriptor) == 0) {
    const int given = message.take_fd();
    if (given >= 0) fd = own_end(given, is_kick ? O_RDONLY : O_WRONLY);
    if (fd < 0)
      return error(ErrorCode::malformed,
                   "vhost-user: the {} of queue {} is {}: it must be an eventfd, a socket or a pipe",
                   is_kick ? "kick" : "call", value & 0xff, given < 0 ? "no descriptor" : "something else");
  }
  if (is_kick) queue.is_enabled_ = true;
  return {};
}

Result<void> VhostUser::handle(Message& message) {
  const auto number = [&](uint64_t value) {
    std::array<uint8_t, 8> bytes{};
    std::memcpy(bytes.data(), &value, sizeof(value));
    return reply(message, bytes);
  };
  const bool has_flags = message.request >= kSetVringKick && message.request <= kSetVringErr;
  const bool names_queue = (message.request >= kSetVringNum && message.request <= kGetVringBase) || has_flags ||
                           message.request == kSetVringEnable;
  const uint32_t queue_index = message.at<uint32_t>(0) & (has_flags ? 0xff : ~uint32_t{0});
  if (names_queue && queue_index >= kQueues)
    return error(ErrorCode::malformed, "vhost-user: message {} for queue {} of {}", message.request, queue_index,
                 kQueues);
  switch (message.request) {
    case kGetFeatures: return number(kFeatureVersion1 | kFeatureProtocol | kFeatureEvents | backend_.features());
    case kGetProtocolFeatures: return number(kProtocolConfig | kProtocolReplyAck);
    case kSetFeatures:
      for (Queue& one : queues_) one.has_event_index_ = (message.at<uint64_t>(0) & kFeatureEvents) != 0;
      break;
    case kSetProtocolFeatures:
    case kSetOwner:
    case kSetVringErr: break;
    case kSetMemTable: SK_TRY(set_memory(message)); break;
    case kSetVringNum: {
      const auto size = message.at<uint32_t>(4);
      if (size == 0 || size > kMostQueueSize || (size & (size - 1)) != 0)
        return error(ErrorCode::malformed, "vhost-user: a queue of {} entries", size);
      queues_[queue_index].size_ = size;
      SK_TRY(place_queues());
      break;
    }
    case kSetVringAddr: SK_TRY(set_queue_address(message)); break;
    case kSetVringBase: queues_[queue_index].next_ = message.at<uint16_t>(4); break;
    case kGetVringBase: {
      Queue& queue = queues_[queue_index];
      queue.is_enabled_ = false;
      return number(queue_index | uint64_t{queue.next_} << 32);
    }
    case kSetVringKick:
    case kSetVringCall: SK_TRY(set_queue_descriptor(message)); break;
    case kSetVringEnable: queues_[queue_index].is_enabled_ = message.at<uint32_t>(4) != 0; break;
    case kGetConfig: {
      std::vector<uint8_t> payload = message.payload;
      const std::vector<uint8_t> config = backend_.config();
      const size_t offset = message.at<uint32_t>(0);
      for (size_t i = 12; i < payload.size(); ++i) {
        const size_t at = offset + i - 12;
        payload[i] = at < config.size() ? config[at] : 0;
      }
      return reply(message, payload);
    }
    default: return error(ErrorCode::unsupported, "vhost-user: message {}", message.request);
  }
  return (message.flags & kNeedReply) != 0 ? number(0) : Result<void>();
}

Result<void> VhostUser::serve_queues() {
  for (uint32_t i = 0; i < kQueues; ++i) {
    queues_[i].begin_round();
    SK_TRY(queues_[i].read_kick());
    SK_TRY(backend_.serve(i, queues_, guest_));
  }
  return {};
}

}  // namespace skillet::mmio
