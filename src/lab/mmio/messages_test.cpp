// Each message of vhost-user with each word of its payload changed, with more and fewer bytes and descriptors: answers,
// errors, and the state that the next messages show. After an intended change, run SKILLET_UPDATE=1 mmio_test to write
// tests/expectations/mmio.txt.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "answers/lines.h"
#include "lab/mmio/vhost_user.h"

namespace skillet::mmio {
namespace {

constexpr const char* kFile = "tests/expectations/mmio.txt";
constexpr size_t kFileBytes = 0x8000;
constexpr uint64_t kUser = 0x40000000;
constexpr uint32_t kNeedReply = 8;

struct Sent {
  uint32_t request = 0;
  std::vector<uint32_t> words = {};
  enum class Descriptors { none, memory, event, zero } what = Descriptors::none;
  size_t descriptors = 1;
  uint32_t flags = 1;
  size_t bytes = SIZE_MAX;  // of the payload, if not as the words say
};

// Says what queues a round of service shows.
class Shows : public Backend {
 public:
  std::vector<uint8_t> config() const override { return {1, 2, 3, 4, 5, 6, 7, 8}; }
  uint64_t features() const override { return 1 << 5; }
  Result<void> serve(uint32_t index, std::span<Queue> queues, const GuestMemory& guest) override {
    for (int i = 0; i < 3; ++i) {
      const auto chain = queues[index].take(guest);
      if (!chain.ok()) return chain.error();
      said += !*chain ? fmt::format(" {}:none", index)
                      : fmt::format(" {}:{} of {}+{}", index, (*chain)->head, (*chain)->request.size(),
                                    (*chain)->answer.size());
      if (!*chain) return {};
      const std::array<uint8_t, 3> answer = {7, 8, 9};
      queues[index].give_back(**chain, answer);
    }
    return {};
  }
  void disconnected() override { said += " disconnected"; }
  std::string said;
};

class Talk {
 public:
  Talk() : sockets_(connected()), connection_(sockets_[0], backend_, memory_) {
    file_ = ::memfd_create("guest", MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(file_, kFileBytes), 0);
    event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    zero_ = ::memfd_create("other", MFD_CLOEXEC);
    fill_rings();
  }
  ~Talk() {
    for (const int fd : {file_, event_, zero_, sockets_[1]}) ::close(fd);
  }

  // Returns what comes back: an answer, or an error.
  std::string say(const Sent& sent) {
    std::vector<uint8_t> bytes(12 + std::min(sent.bytes, sent.words.size() * 4));
    const std::array<uint32_t, 3> header = {
        sent.request, sent.flags, static_cast<uint32_t>(sent.bytes == SIZE_MAX ? sent.words.size() * 4 : sent.bytes)};
    std::memcpy(bytes.data(), header.data(), 12);
    std::memcpy(bytes.data() + 12, sent.words.data(), bytes.size() - 12);
    bytes.resize(12 + (sent.bytes == SIZE_MAX ? sent.words.size() * 4 : std::min<size_t>(sent.bytes, 8192)));
    send(bytes, sent);
    const auto read = connection_.read_message();
    if (!read.ok()) return read.error().message;
    std::array<uint8_t, 256> answer{};
    const ssize_t got = ::recv(sockets_[1], answer.data(), answer.size(), MSG_DONTWAIT);
    std::string out = *read ? "" : "closed ";
    for (ssize_t i = 0; i < got; ++i) out += fmt::format("{:02x}", answer[static_cast<size_t>(i)]);
    return out;
  }
  std::string serve() {
    backend_.said.clear();
    const auto served = connection_.serve_queues();
    return backend_.said + (served.ok() ? "" : served.error().message) + (connection_.has_more() ? " more" : "");
  }

 private:
  static std::array<int, 2> connected() {
    std::array<int, 2> out{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out.data()), 0);
    return out;
  }
  // Descriptor 0: a request of 12 bytes and, next, an answer of 8. The ring offers it twice.
  void fill_rings() const {
    std::array<uint16_t, 3> available = {0, 2, 0};
    struct Descriptor {
      uint64_t address;
      uint32_t bytes;
      uint16_t flags, next;
    };
    const std::array<Descriptor, 2> chain = {Descriptor{0x10100, 12, 1, 1}, Descriptor{0x10200, 8, 2, 0}};
    EXPECT_EQ(::pwrite(file_, chain.data(), sizeof(chain), 0x1000), static_cast<ssize_t>(sizeof(chain)));
    EXPECT_EQ(::pwrite(file_, available.data(), sizeof(available), 0x3000), static_cast<ssize_t>(sizeof(available)));
  }
  void send(std::span<const uint8_t> bytes, const Sent& sent) const {
    const int fd = sent.what == Sent::Descriptors::memory  ? file_
                   : sent.what == Sent::Descriptors::event ? event_
                                                           : zero_;
    const size_t count = sent.what == Sent::Descriptors::none ? 0 : sent.descriptors;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 16)> control{};
    iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (count > 0) {
      header.msg_control = control.data();
      header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
      cmsghdr* const one = CMSG_FIRSTHDR(&header);
      one->cmsg_level = SOL_SOCKET;
      one->cmsg_type = SCM_RIGHTS;
      one->cmsg_len = CMSG_LEN(sizeof(int) * count);
      for (size_t i = 0; i < count; ++i) std::memcpy(CMSG_DATA(one) + i * sizeof(int), &fd, sizeof(fd));
    }
    EXPECT_EQ(::sendmsg(sockets_[1], &header, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  std::array<int, 2> sockets_;
  int file_ = -1, event_ = -1, zero_ = -1;
  GuestMemory memory_;
  Shows backend_;
  VhostUser connection_;
};

// The messages by which a front end makes queue 0 ready.
std::vector<Sent> start() {
  using enum Sent::Descriptors;
  const auto low = static_cast<uint32_t>(kUser);
  return {{.request = 1},
          {.request = 2, .words = {0x60000000, 1}},
          {.request = 15},
          {.request = 16, .words = {0x208, 0}},
          {.request = 3},
          {.request = 24, .words = {2, 4, 0, 0}},
          {.request = 5, .words = {1, 0, 0x10000, 0, 0x8000, 0, low, 0, 0, 0}, .what = memory},
          {.request = 8, .words = {0, 16}},
          {.request = 10, .words = {0, 0}},
          {.request = 9, .words = {0, 0, low + 0x1000, 0, low + 0x2000, 0, low + 0x3000, 0, 0, 0}},
          {.request = 13, .words = {0, 0}, .what = event},
          {.request = 12, .words = {0, 0}, .what = event},
          {.request = 14, .words = {0, 0}},
          {.request = 18, .words = {0, 1}}};
}

// Says the messages of start(), of which number `at` is `changed`, and then asks for the queues' state.
std::string answers_to(size_t at, const Sent& changed) {
  Talk talk;
  std::vector<Sent> all = start();
  all[at] = changed;
  std::string out;
  for (const Sent& one : all) out += talk.say(one) + "|";
  out += talk.serve();
  for (const uint32_t queue : {0U, 1U}) out += "|" + talk.say({.request = 11, .words = {queue, 0}, .flags = 1});
  return out + talk.serve();
}

TEST(ChangedMessages, OfVhostUser) {
  constexpr uint32_t kValues[] = {0,          1,          2,          3,          4,          8,      15,
                                  16,         17,         255,        256,        257,        0x1000, 0x1001,
                                  0x1002,     0x1004,     0x7fff,     0x8000,     0x8001,     0xffff, 0x10000,
                                  0x40001004, 0x40001010, 0x40007f00, 0x40007ff0, 0x80000000, ~0U};
  std::map<std::string, Hash> hashes;
  const size_t count = start().size();
  for (size_t at = 0; at < count; ++at) {
    const Sent good = start()[at];
    Hash& hash = hashes[fmt::format("message {}", good.request)];
    const auto ask = [&](const Sent& changed) { hash.add(answers_to(at, changed)); };
    ask(good);
    for (size_t word = 0; word < good.words.size(); ++word) {
      for (const uint32_t value : kValues) {
        Sent changed = good;
        changed.words[word] = value;
        ask(changed);
      }
    }
    for (const uint32_t request : {0U, 4U, 6U, 7U, 11U, 17U, 19U, 20U, 25U, 40U, ~0U}) {
      Sent changed = good;
      changed.request = request;
      ask(changed);
    }
    for (const size_t bytes : {0, 4, 7, 8, 12, 16, 36, 40, 44, 4095, 4096, 4097}) {
      Sent changed = good;
      changed.bytes = bytes;
      ask(changed);
    }
    for (const auto what :
         {Sent::Descriptors::none, Sent::Descriptors::memory, Sent::Descriptors::event, Sent::Descriptors::zero}) {
      for (const size_t descriptors : {1, 2, 8, 9}) {
        Sent changed = good;
        changed.what = what;
        changed.descriptors = descriptors;
        changed.flags |= kNeedReply;
        ask(changed);
      }
    }
  }
  expect_hashes(kFile, "vhost_user ", hashes);
}

}  // namespace
}  // namespace skillet::mmio
