#include "lab/mmio/bus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace skillet::mmio {
namespace {

// A message of the bus.
struct Access {
  uint8_t op, bar;
  uint16_t reserved;
  uint32_t size_bytes;
  uint64_t address;
};
constexpr uint8_t kRead = 3, kWrite = 4;

enum class GpioRequest : uint16_t {
  names = 1,
  get_direction = 2,
  set_direction = 3,
  get_value = 4,
  set_value = 5,
  set_interrupt_type = 6,
};
constexpr uint8_t kOk = 0, kFailed = 1, kIsInput = 2;
constexpr uint8_t kInvalid = 0, kValid = 1;  // status of a returned buffer of events

}  // namespace

std::string name_of(std::span<const RegisterName> names, uint64_t offset) {
  const auto found = std::ranges::find(names, offset, &RegisterName::offset);
  return found == names.end() ? fmt::format("{:#05x}", offset) : std::string(found->name);
}

const Window* Bus::find(uint64_t address) const {
  const auto found = std::ranges::find_if(
      windows_, [&](const Window& one) { return address >= one.address && address - one.address < one.size_bytes; });
  return found == windows_.end() ? nullptr : &*found;
}

void Bus::log(bool is_write, const Window* window, uint64_t address, uint32_t value) const {
  if (!log_) return;
  log_(fmt::format(
      "{} {} {} {} {:#010x}", is_write ? "write" : "read ", window == nullptr ? "nothing" : window->name,
      window == nullptr ? fmt::format("{:#x}", address) : window->device->register_name(address - window->address),
      is_write ? "<-" : "=", value));
}

uint32_t Bus::read(uint64_t address) {
  ++reads_;
  const Window* const window = find(address);
  const uint32_t value = window == nullptr ? ~uint32_t{0} : window->device->read(address - window->address);
  log(false, window, address, value);
  return value;
}

void Bus::write(uint64_t address, uint32_t value) {
  ++writes_;
  const Window* const window = find(address);
  log(true, window, address, value);
  if (window != nullptr) window->device->write(address - window->address, value);
}

// Registers are words: a smaller access gets part of one, a larger one reads two.
Result<std::vector<uint8_t>> Bus::access(const Chain& chain) {
  Access message{};
  if (chain.request.size() < sizeof(message))
    return error(ErrorCode::malformed, "bus: a message of {} bytes", chain.request.size());
  std::memcpy(&message, chain.request.data(), sizeof(message));
  message.address += kAddress;
  const uint64_t first = message.address & ~uint64_t{3}, skip = message.address & 3;
  if (message.op == kRead) {
    if (message.size_bytes > 8) return error(ErrorCode::malformed, "bus: a read of {} bytes", message.size_bytes);
    std::vector<uint8_t> words;
    while (words.size() < skip + message.size_bytes) {
      const uint32_t value = read(first + words.size());
      const auto* const bytes = reinterpret_cast<const uint8_t*>(&value);
      words.insert(words.end(), bytes, bytes + sizeof(value));
    }
    return std::vector<uint8_t>(words.begin() + static_cast<std::ptrdiff_t>(skip),
                                words.begin() + static_cast<std::ptrdiff_t>(skip + message.size_bytes));
  }
  if (message.op == kWrite) {
    const size_t size = std::min<size_t>(message.size_bytes, chain.request.size() - sizeof(message));
    for (size_t at = 0; at + 4 <= size && skip == 0; at += 4) {
      uint32_t value = 0;
      std::memcpy(&value, chain.request.data() + sizeof(message) + at, sizeof(value));
      write(first + at, value);
    }
  }
  return std::vector<uint8_t>();  // other messages access no registers
}

Result<void> Bus::serve(uint32_t index, std::span<Queue> queues, const GuestMemory& guest) {
  Queue& queue = queues[index];
  if (index != 0) return {};  // the queue of messages, which platform devices do not have
  bool is_told = true;
  while (true) {
    SK_TRY_ASSIGN(const std::optional<Chain> chain, queue.take(guest));
    if (!chain) break;
    if (!chain->answer.empty() && !queue.is_answer_taken()) ++nested_reads_;
    SK_TRY_ASSIGN(const std::vector<uint8_t> answer, access(*chain));
    last_access_ = std::chrono::steady_clock::now();
    queue.give_back(*chain, answer);
    is_told = false;
  }
  if (!is_told) queue.notify();
  return {};
}

void Bus::disconnected() {
  for (const Window& one : windows_) one.device->stop();
}

std::vector<uint8_t> Lines::config() const {
  const std::array<uint16_t, 4> config = {static_cast<uint16_t>(levels_.size()), 0, 0, 0};
  std::vector<uint8_t> bytes(sizeof(config));
  std::memcpy(bytes.data(), config.data(), bytes.size());
  return bytes;
}

std::vector<uint8_t> Lines::answer(const std::vector<uint8_t>& request) {
  struct {
    GpioRequest type;
    uint16_t line;
    uint32_t value;
  } message{};
  if (request.size() < sizeof(message)) return {kFailed, 0};
  std::memcpy(&message, request.data(), sizeof(message));
  if (message.line >= levels_.size()) return {kFailed, 0};
  switch (message.type) {
    case GpioRequest::get_direction: return {kOk, kIsInput};
    case GpioRequest::get_value: return {kOk, static_cast<uint8_t>(levels_[message.line].load() ? 1 : 0)};
    case GpioRequest::set_direction:
    case GpioRequest::set_value: return {kOk, 0};
    case GpioRequest::set_interrupt_type:
      if (message.value == 0) masked_ = message.line;
      return {kOk, 0};
    case GpioRequest::names: break;
  }
  return {kFailed, 0};
}

// Returns the line's buffer, because the kernel waits for it.
void Lines::mask(uint16_t line, Queue& events) {
  if (!waiting_[line]) return;
  events.give_back(*waiting_[line], std::array{kInvalid});
  waiting_[line].reset();
  events.notify();
}

Result<void> Lines::serve(uint32_t index, std::span<Queue> queues, const GuestMemory& guest) {
  Queue& queue = queues[index];
  while (true) {
    SK_TRY_ASSIGN(std::optional<Chain> chain, queue.take(guest));
    if (!chain) return {};
    if (index == 0) {
      queue.give_back(*chain, answer(chain->request));
      queue.notify();
      if (masked_) mask(*std::exchange(masked_, {}), queues[1]);
      continue;
    }
    uint16_t line = 0;
    if (chain->request.size() < sizeof(line)) return error(ErrorCode::malformed, "interrupts: a buffer without a line");
    std::memcpy(&line, chain->request.data(), sizeof(line));
    if (line >= levels_.size()) return error(ErrorCode::malformed, "interrupts: line {} of {}", line, levels_.size());
    waiting_[line] = std::move(*chain);
  }
}

bool Lines::is_due() const {
  for (size_t line = 0; line < levels_.size(); ++line) {
    if (levels_[line].load() && waiting_[line]) return true;
  }
  return false;
}

void Lines::deliver(Queue& events) {
  bool has_any = false;
  for (size_t line = 0; line < levels_.size(); ++line) {
    if (!levels_[line].load() || !waiting_[line]) continue;
    events.give_back(*waiting_[line], std::array{kValid});
    waiting_[line].reset();
    ++interrupts_;
    has_any = true;
  }
  if (has_any) events.notify();
}

void Lines::disconnected() {
  for (std::optional<Chain>& one : waiting_) one.reset();
}

}  // namespace skillet::mmio
