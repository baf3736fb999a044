// Makes the calls of a list on an open node of a kernel driver and prints each with its answer: usage: NODE LIST. The
// output is itself a list, so the answers of two kernels are compared by comparing files. The lists explain their
// syntax. Called by calls_test.py, on Linux's own driver and on the emulated one. Must not know: which of the two
// drivers it is.
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "call_table.h"
#include "kernels/api/drm.h"

namespace skillet::kernel_test {
namespace {

constexpr size_t kPage = 4096, kArgumentBytes = 256;
constexpr uint64_t kNoValue = 0x7ead0000;

[[noreturn]] void stop(const std::string& line, const std::string& why) {
  std::fprintf(stderr, "calls: '%s': %s\n", line.c_str(), why.c_str());
  std::exit(2);
}

std::string errno_text(int number) {
  const char* const name = ::strerrorname_np(number);
  return name == nullptr ? std::to_string(number) : name;
}

std::string answer_of(long result) { return result < 0 ? errno_text(errno) : "ok"; }

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns `pages` followed by a page that cannot be accessed.
uint8_t* guarded_pages(size_t pages) {
  void* const at = ::mmap(nullptr, (pages + 1) * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) stop("", "no memory");
  ::mprotect(static_cast<uint8_t*>(at) + pages * kPage, kPage, PROT_NONE);
  return static_cast<uint8_t*>(at);
}

// One line: a command, `key=value` words, and `field>name` where the value of a field is kept.
struct Line {
  std::string text, command;
  std::vector<std::string> words;
  std::map<std::string, std::string, std::less<>> given;
  std::vector<std::pair<std::string, std::string>> kept;

  explicit Line(const std::string& whole) : text(whole.substr(0, whole.find(" = "))) {
    std::istringstream in(text);
    in >> command;
    for (std::string word; in >> word;) {
      const size_t equals = word.find('='), keeps = word.find('>');
      if (equals != std::string::npos)
        given[word.substr(0, equals)] = word.substr(equals + 1);
      else if (keeps != std::string::npos)
        kept.emplace_back(word.substr(0, keeps), word.substr(keeps + 1));
      else
        words.push_back(word);
    }
  }
};

class Player {
 public:
  Player(std::string node, std::vector<CallRow> rows) : node_(std::move(node)), rows_(std::move(rows)) {
    values_["bad"] = reinterpret_cast<uint64_t>(guarded_pages(1)) + kPage;
    values_["edge"] = values_["bad"] - 4;
  }

  std::string play(const Line& line) {
    line_ = &line;
    for (const auto& [name, method] : kCommands) {
      if (line.command == name) return (this->*method)();
    }
    for (const CallRow& row : rows_) {
      if (line.command == row.name) return call(row);
    }
    stop(line.text, "no such call");
  }

 private:
  using Method = std::string (Player::*)();
  static const std::vector<std::pair<std::string_view, Method>> kCommands;

  const std::string& word(size_t index) const {
    if (index >= line_->words.size()) stop(line_->text, "a word is missing");
    return line_->words[index];
  }

  uint64_t term(const std::string& text) const {
    if (text == "now") return static_cast<uint64_t>(now_ns());
    if (text == "now_s") return static_cast<uint64_t>(now_ns() / 1'000'000'000);
    if (const auto found = values_.find(text); found != values_.end()) return found->second;
    char* end = nullptr;
    const uint64_t value = std::strtoull(text.c_str(), &end, 0);  // "-1" wraps as intended
    if (text.empty() || *end != 0) stop(line_->text, "what is '" + text + "'?");
    return value;
  }

  // Sums the terms of a text like "a+b".
  uint64_t value(const std::string& text) const {
    uint64_t sum = 0;
    std::istringstream in(text);
    for (std::string one; std::getline(in, one, '+');) sum += term(one);
    return sum;
  }

  uint64_t given(const char* key, uint64_t otherwise) const {
    const auto found = line_->given.find(key);
    return found == line_->given.end() ? otherwise : value(found->second);
  }
  std::string given_text(const char* key, const std::string& otherwise) const {
    const auto found = line_->given.find(key);
    return found == line_->given.end() ? otherwise : found->second;
  }
  int file() const { return static_cast<int>(term(given_text("on", "a"))); }

  std::string open() {
    const std::string node = line_->words.size() > 1 ? word(1) : node_;
    const int fd = ::open(node.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    values_[word(0)] = static_cast<uint64_t>(fd);
    return answer_of(fd);
  }

  std::string close() { return answer_of(::close(static_cast<int>(value(word(0))))); }
  std::string duplicate() {
    const int fd = ::fcntl(static_cast<int>(value(word(0))), F_DUPFD_CLOEXEC, 0);
    values_[word(1)] = static_cast<uint64_t>(fd);
    return answer_of(fd);
  }

  // Writes words given as uWIDTH:VALUE to the start of a new page.
  std::string memory() {
    uint8_t* const bytes = guarded_pages(1);
    size_t at = 0;
    for (size_t i = 1; i < line_->words.size(); ++i) {
      const size_t colon = word(i).find(':');
      if (colon == std::string::npos || colon == 0) stop(line_->text, "uWIDTH:VALUE");
      const size_t width = term(word(i).substr(1, colon - 1)) / 8;
      const uint64_t one = value(word(i).substr(colon + 1));
      if (width > 8 || at + width > kPage) stop(line_->text, "too long");
      std::memcpy(bytes + at, &one, width);
      at += width;
    }
    values_[word(0)] = reinterpret_cast<uint64_t>(bytes);
    return "";
  }

  std::string text() {
    const char* const at = reinterpret_cast<const char*>(value(word(0)));
    return "'" + std::string(at, ::strnlen(at, 64)) + "'";
  }

  std::string map() {
    const std::string allowed = given_text("protection", "rw");
    const int protection = (allowed.find('r') != std::string::npos ? PROT_READ : 0) |
                           (allowed.find('w') != std::string::npos ? PROT_WRITE : 0) |
                           (allowed.find('x') != std::string::npos ? PROT_EXEC : 0);
    const int flags = given_text("flags", "shared") == "shared" ? MAP_SHARED : MAP_PRIVATE;
    void* const at =
        ::mmap(nullptr, given("length", kPage), protection, flags, file(), static_cast<off_t>(given("offset", 0)));
    if (!line_->words.empty()) values_[word(0)] = reinterpret_cast<uint64_t>(at);
    return at == MAP_FAILED ? errno_text(errno) : "ok";
  }
  std::string unmap() { return answer_of(::munmap(reinterpret_cast<void*>(value(word(0))), given("length", kPage))); }

  // Copies through a pipe, so that an unmapped address is an errno instead of a signal.
  std::string load() {
    uint32_t read = 0;
    const std::string failure = copy(value(word(0)), reinterpret_cast<uint64_t>(&read));
    return failure.empty() ? std::to_string(read) : failure;
  }
  std::string store() {
    const auto what = static_cast<uint32_t>(value(word(1)));
    return copy(reinterpret_cast<uint64_t>(&what), value(word(0)));
  }
  static std::string copy(uint64_t from, uint64_t to) {
    int ends[2];
    if (::pipe(ends) != 0) return "no pipe";
    const bool is_copied = ::write(ends[1], reinterpret_cast<const void*>(from), 4) == 4 &&
                           ::read(ends[0], reinterpret_cast<void*>(to), 4) == 4;
    const std::string failure = is_copied ? "" : errno_text(errno);
    ::close(ends[0]);
    ::close(ends[1]);
    return failure;
  }

  std::string seek() {
    const off_t at = ::lseek(static_cast<int>(value(word(0))), static_cast<off_t>(given("to", 0)),
                             static_cast<int>(given("from", SEEK_END)));
    return at < 0 ? errno_text(errno) : std::to_string(at);
  }
  std::string sync() {
    dma_buf_sync args{.flags = given("flags", 0)};
    return answer_of(::ioctl(static_cast<int>(value(word(0))), DMA_BUF_IOCTL_SYNC, &args));
  }
  std::string poll() {
    pollfd one{static_cast<int>(value(word(0))), POLLIN, 0};
    const int count = ::poll(&one, 1, static_cast<int>(given("ms", 0)));
    return count < 0 ? errno_text(errno) : count == 0 ? "waits" : (one.revents & POLLIN) != 0 ? "ready" : "error";
  }
  std::string wait() {
    ::usleep(static_cast<useconds_t>(1000 * value(word(0))));
    return "";
  }

  // Calls each number from the first to the last with an argument of zeros; returns the numbers grouped by answer.
  std::string numbers() {
    std::map<std::string, std::string> by_answer;
    const auto last = static_cast<unsigned>(value(word(1)));
    std::string before;
    for (auto nr = static_cast<unsigned>(value(word(0))), first = nr; nr <= last + 1; ++nr) {
      std::string answer;
      if (nr <= last) {
        uint8_t zeros[kArgumentBytes] = {};
        answer = answer_of(
            ::ioctl(file(), _IOC(_IOC_READ | _IOC_WRITE, kernels::drm::kType, nr, given("bytes", 64)), zeros));
      }
      if (answer == before) continue;
      if (!before.empty()) {
        char range[32];
        std::snprintf(range, sizeof range, first + 1 == nr ? " %02x" : " %02x-%02x", first, nr - 1);
        by_answer[before] += range;
      }
      before = answer;
      first = nr;
    }
    std::string out;
    for (const auto& [answer, ranges] : by_answer) out += (out.empty() ? "" : "; ") + answer + ranges;
    return out;
  }

  unsigned long request_of(const CallRow& row) const {
    static const std::map<std::string, unsigned> kDirections = {
        {"none", _IOC_NONE}, {"r", _IOC_READ}, {"w", _IOC_WRITE}, {"rw", _IOC_READ | _IOC_WRITE}};
    const std::string direction = given_text("DIRECTION", "");
    const unsigned own = _IOC_DIR(row.request);
    return _IOC(direction.empty() ? own : kDirections.at(direction), given("TYPE", kernels::drm::kType),
                given("NR", _IOC_NR(row.request)), given("BYTES", _IOC_SIZE(row.request)));
  }

  // Places the argument in memory that can be read and written, in read-only or unmapped memory, or across its end.
  uint8_t* place(const uint8_t* args, const std::string& how) {
    if (how == "null") return nullptr;
    uint8_t* const page = guarded_pages(1);
    if (how == "bad") return page + kPage;
    uint8_t* const at = how == "cut" ? page + kPage - 4 : page;
    std::memcpy(at, args, how == "cut" ? 4 : kArgumentBytes);
    if (how == "readonly") ::mprotect(page, kPage, PROT_READ);
    return at;
  }

  std::string call(const CallRow& row) {
    uint8_t args[kArgumentBytes] = {};
    std::memset(args + _IOC_SIZE(row.request), static_cast<int>(given("TAIL", 0)),
                kArgumentBytes - _IOC_SIZE(row.request));
    for (const auto& [key, text] : line_->given) fill(row, key, text, args);
    uint8_t* const at = place(args, given_text("ARGUMENT", ""));
    const int result = ::ioctl(file(), request_of(row), at);
    const std::string failure = answer_of(result);
    if (result < 0) {
      for (const auto& [name, to] : line_->kept) values_.try_emplace(to, kNoValue);  // later lines go on, and differ
      return failure;
    }
    std::string out = result == 0 ? "ok" : "ok " + std::to_string(result);
    if (at != nullptr && given_text("ARGUMENT", "").empty()) std::memcpy(args, at, kArgumentBytes);
    for (const Field& field : row.fields) {
      if (field.kind == Kind::name) {
        const char* const name = reinterpret_cast<const char*>(args + field.offset);
        out += " " + std::string(name, ::strnlen(name, field.bytes));
        continue;
      }
      uint64_t answered = 0;
      std::memcpy(&answered, args + field.offset, field.bytes);
      if (field.kind != Kind::in) out += print(field, answered);
      for (const auto& [name, to] : line_->kept) {
        if (name == field.name) values_[to] = answered;
      }
    }
    return out;
  }

  void fill(const CallRow& row, const std::string& key, const std::string& text, uint8_t* args) {
    if (key == "on" || std::isupper(static_cast<unsigned char>(key[0])) != 0) return;
    for (const Field& field : row.fields) {
      if (field.name != key) continue;
      const uint64_t one = value(text);
      std::memcpy(args + field.offset, &one, field.bytes);
      return;
    }
    stop(line_->text, "no field '" + key + "'");
  }

  static std::string print(const Field& field, uint64_t answered) {
    std::string shown = std::to_string(answered);
    if (field.kind == Kind::layout) shown = answered == 0 ? "0" : answered % kPage == 0 ? "page" : "odd";
    if (field.kind == Kind::descriptor)
      shown = static_cast<int32_t>(answered) > 2 ? "fd" : std::to_string(static_cast<int32_t>(answered));
    if (field.kind == Kind::out && answered > 0xffff) {
      char hex[24];
      std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(answered));
      shown = hex;
    }
    return " " + std::string(field.name) + "=" + shown;
  }

  std::string node_;
  std::vector<CallRow> rows_;
  std::map<std::string, uint64_t, std::less<>> values_;
  const Line* line_ = nullptr;
};

const std::vector<std::pair<std::string_view, Player::Method>> Player::kCommands = {
    {"open", &Player::open},   {"close", &Player::close},    {"dup", &Player::duplicate}, {"memory", &Player::memory},
    {"text", &Player::text},   {"mmap", &Player::map},       {"munmap", &Player::unmap},  {"load", &Player::load},
    {"store", &Player::store}, {"seek", &Player::seek},      {"sync", &Player::sync},     {"poll", &Player::poll},
    {"wait", &Player::wait},   {"numbers", &Player::numbers}};

std::string driver_of(const char* node) {
  const int fd = ::open(node, O_RDWR | O_CLOEXEC);
  char name[32] = {};
  kernels::drm::Version version{};
  version.name = name;
  version.name_len = sizeof name - 1;
  if (fd < 0 || ::ioctl(fd, kernels::drm::kVersion, &version) != 0) stop(node, errno_text(errno));
  ::close(fd);
  return name;
}

int play(const char* node, const char* list) {
  std::ifstream in(list);
  if (!in) stop(list, "cannot be read");
  Player player(node, calls_of(driver_of(node)));
  for (std::string text; std::getline(in, text);) {
    const Line line(text);
    if (text.empty() || text[0] == '#') {
      std::printf("%s\n", text.c_str());
      continue;
    }
    const std::string answer = player.play(line);
    std::printf("%s%s%s\n", line.text.c_str(), answer.empty() ? "" : " = ", answer.c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace skillet::kernel_test

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: %s NODE LIST\n", words[0]);
    return 2;
  }
  return skillet::kernel_test::play(words[1], words[2]);
}
