// What a device reports after each write of a start sequence was changed or left out, as hashes.
// Called by tests of lab/mmio/.
// Must not know: any device.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "answers/lines.h"
#include "base/log.h"
#include "lab/mmio/testing/guest.h"

namespace skillet::mmio {

// A write to a register, or to the guest's memory; or a wait until a register has a value, for some time. A fixed one
// is left out, but not changed: another value would start a second job beside the first.
struct Write {
  enum class Kind : uint8_t { to_register, fixed, to_memory, wait };
  uint64_t offset = 0;
  uint32_t value = 0;
  Kind kind = Kind::to_register;
};

// `make` makes a device, `prepare` fills the guest's memory. Registers up to `last` and each of `more` are read, except
// those of `moving`, whose values depend on time.
struct Sequence {
  std::function<std::unique_ptr<Device>(Guest&)> make;
  std::function<void(Guest&)> prepare;
  std::vector<Write> writes, after;  // after: not changed; follow the first reading
  uint64_t last = 0;
  std::vector<uint64_t> more;
  std::set<uint64_t> moving;
  uint64_t results = 0, result_bytes = 0;  // in the guest's memory
};

class ChangedWrites {
 public:
  explicit ChangedWrites(const Sequence& sequence) : sequence_(sequence) {}

  // Devices run at the same time, as those that hang are waited for.
  std::string hashes() {
    add(sequence_.writes);
    for (size_t i = 0; i < sequence_.writes.size(); ++i) {
      if (sequence_.writes[i].kind == Write::Kind::wait) continue;
      std::vector<Write> changed = sequence_.writes;
      changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
      add(changed);
      if (sequence_.writes[i].kind == Write::Kind::fixed) continue;
      changed = sequence_.writes;
      const uint32_t old = changed[i].value;
      std::set<uint32_t> others = {0, old + 1, old - 1, ~uint32_t{0}};
      for (const uint32_t bit : {0, 1, 2, 4, 5, 7, 8, 9, 11, 12, 13, 16, 22, 24, 31}) others.insert(old ^ 1U << bit);
      for (const uint32_t other : others) {
        changed[i].value = other;
        if (other != old) add(changed);
      }
    }
    finish();
    return fmt::format("{} registers {} results {} counts {}", registers_.count(), registers_.text(), results_.text(),
                       counts_.text());
  }

 private:
  static constexpr size_t kAtOnce = 20;  // fewer than a process may watch
  struct One {
    std::unique_ptr<Guest> guest = std::make_unique<Guest>();
    std::unique_ptr<Device> device;
  };

  void add(std::span<const Write> writes) {
    if (running_.empty()) ::testing::internal::CaptureStderr();  // warnings
    One one;
    sequence_.prepare(*one.guest);
    one.device = sequence_.make(*one.guest);
    for (const Write& write : writes)
      if (write.kind == Write::Kind::to_memory) one.guest->word(write.offset) = write.value;
    for (const Write& write : writes) {
      if (write.kind == Write::Kind::to_register || write.kind == Write::Kind::fixed)
        one.device->write(write.offset, write.value);
      if (write.kind == Write::Kind::wait) wait(*one.device, write);
    }
    running_.push_back(std::move(one));
    if (running_.size() == kAtOnce) finish();
  }
  static void wait(Device& device, const Write& write) {
    for (int i = 0; i < 200 && device.read(write.offset) != write.value; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void finish() {
    if (running_.empty()) return;
    const auto have_all = [&] {
      return std::ranges::all_of(running_, [](const One& one) { return one.guest->line.load(); });
    };
    for (int i = 0; i < 600 && !have_all(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::testing::internal::GetCapturedStderr();
    for (One& one : running_) {
      std::string said = one.guest->line ? "line" : "no line";
      std::vector<uint64_t> offsets = sequence_.more;
      for (uint64_t at = 0; at <= sequence_.last; at += 4) offsets.push_back(at);
      for (int i = 0; i < 2; ++i) {
        for (const uint64_t at : offsets)
          if (!sequence_.moving.contains(at)) said += fmt::format(" {:x}={:x}", at, one.device->read(at));
        for (size_t at = 0; i == 0 && at < sequence_.after.size(); ++at)
          one.device->write(sequence_.after[at].offset, sequence_.after[at].value);
      }
      registers_.add(said + (one.guest->line ? " line" : ""));
      one.device->stop();
      results_.add(one.guest->memory.at(sequence_.results, sequence_.result_bytes));
      counts_.add(one.device->summary());
    }
    running_.clear();
  }

  const Sequence& sequence_;
  std::vector<One> running_;
  Hash registers_, results_, counts_;
};

}  // namespace skillet::mmio
