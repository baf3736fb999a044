// Every change of a recorded job must show in the comparison. Prints the changes that were tried, and how many were
// missed. Tries one bit of 97: SKILLET_TAMPER_FIRST is the first, SKILLET_TAMPER_BITS the number of bits from there on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "base/testing/in_tree.h"
#include "captures.h"
#include "compile_compare.h"
#include "golden_case.h"
#include "npus/vivante/hw/vivante.h"

namespace skillet::golden {
namespace {

namespace hw = skillet::vivante::hw;
using capture::BufferSnapshot;
using capture::Capture;
using capture::Submission;

const std::string kDir = skillet::in_tree("tests/golden/small");
constexpr const char* kCases[] = {"ops/dw3x3_odd_u8", "ops/conv3x3_s2_u8", "ops/concat3_i8",
                                  "ops/relu_i8",      "ops/pad_i8",        "gen/add_8_3_1_16_1_0_0_0_4"};

// One recorded case, changed repeatedly, against our compiled jobs.
class Tampered {
 public:
  explicit Tampered(const std::string& name, const std::string& chip = "a311d", const std::string& dir = kDir)
      : name_(name), chip_(*npu::find_chip(chip)), driver_(*npu::driver_of(chip_)) {
    auto c = prepare_case(dir, chip_, name);
    EXPECT_TRUE(c.ok()) << c.error().message;
    case_ = std::move(c).value();
    EXPECT_TRUE(is_same()) << name;
    find_inputs();
  }

  Capture& capture() { return case_.recorded; }
  bool is_input(uint32_t handle) const { return inputs_.contains(handle); }
  bool is_same() const {
    const auto done = compare_sides(*driver_, chip_, case_);
    return done.ok() && done->same();
  }
  // `change` returns false if it changes nothing; everything is restored afterwards.
  void try_capture(const std::string& what, const std::function<bool(Capture&)>& change) {
    Capture before = case_.recorded;
    if (change(case_.recorded)) count(what);
    case_.recorded = std::move(before);
  }
  void try_bit(const std::string& what, uint8_t& byte, int bit) {
    byte ^= static_cast<uint8_t>(1 << bit);
    count(what);
    byte ^= static_cast<uint8_t>(1 << bit);
  }

  struct Count {
    int tried = 0, unseen = 0;
  };
  static std::map<std::string, Count>& counts() {
    static std::map<std::string, Count> all;
    return all;
  }

 private:
  void find_inputs() {
    const auto done = compare_sides(*driver_, chip_, case_);
    for (const npu::MatchedMemory& pair : done->memory) {
      const auto is_there = [&](const GraphInput& input) { return input.place.handle == pair.handle_b; };
      if (std::ranges::any_of(case_.our_inputs, is_there)) inputs_.insert(pair.handle_a);
    }
  }

  void count(const std::string& what) {
    Count& count = counts()[what];
    ++count.tried;
    if (!is_same()) return;
    ++count.unseen;
    ADD_FAILURE() << name_ << ": " << what << " is not seen";
  }

  std::string name_;
  npu::Chip chip_;
  const npu::Driver* driver_;
  ComparedCase case_;
  std::set<uint32_t> inputs_;  // recorded buffers that hold graph inputs
};

std::vector<uint32_t>& words_of(Submission& submission) { return submission.jobs.at(0).commands.at(0).words; }

// Flips every `step`th bit; a prime step reaches all places of a word.
void flip_bits(Tampered& t, size_t first, size_t step) {
  for (Submission& s : t.capture().submissions) {
    auto* stream = reinterpret_cast<uint8_t*>(words_of(s).data());
    for (size_t i = first; i < words_of(s).size() * 32; i += step)
      t.try_bit("a bit of the command stream", stream[i / 8], i % 8);
    for (BufferSnapshot& b : s.buffers) {
      if (!b.listed || b.content != capture::Content::bytes) continue;
      const SharedBytes recorded = b.bytes;
      Bytes bytes(recorded.begin(), recorded.end());
      b.bytes = SharedBytes(nullptr, bytes);
      for (size_t i = first; i < bytes.size() * 8; i += step)
        t.try_bit(
            t.is_input(b.handle) ? "a bit of a graph input" : "a bit of a descriptor, of coefficients or of a table",
            bytes[i / 8], i % 8);
      bytes.resize(b.size_bytes);
      b.bytes = SharedBytes(nullptr, bytes);
      for (size_t i = recorded.size() + first; i < b.size_bytes; i += 61 * step)
        t.try_bit("a bit of the rest of such a buffer", bytes[i], static_cast<int>(i % 8));
      b.bytes = recorded;
    }
  }
}

void change_jobs(Tampered& t) {
  const size_t n = t.capture().submissions.size();
  for (size_t i = 0; i < n; ++i) {
    const auto at = [i](Capture& c) { return c.submissions.begin() + static_cast<ptrdiff_t>(i); };
    t.try_capture("a submission dropped", [&](Capture& c) { return c.submissions.erase(at(c)), true; });
    t.try_capture("a submission twice",
                  [&](Capture& c) { return c.submissions.insert(at(c), Submission(*at(c))), true; });
    if (i + 1 < n)
      t.try_capture("two submissions exchanged", [&](Capture& c) { return std::iter_swap(at(c), at(c) + 1), true; });
  }
}

// Returns where each operation of a stream begins: after the word that starts the previous one.
std::vector<size_t> operation_ends(const std::vector<uint32_t>& stream) {
  std::vector<size_t> ends{0};
  for (size_t i = 0; i + 1 < stream.size(); i += 2) {
    if (stream[i] == hw::load_state_word(hw::State::nn_instruction_address) ||
        stream[i] == hw::load_state_word(hw::State::tp_instruction_address))
      ends.push_back(i + 2);
  }
  return ends;
}

void change_operations(Tampered& t) {
  const std::vector<uint32_t> stream = words_of(t.capture().submissions.back());
  const std::vector<size_t> ends = operation_ends(stream);
  const auto piece = [&](size_t i) {
    return std::vector<uint32_t>(stream.begin() + static_cast<ptrdiff_t>(ends[i]),
                                 stream.begin() + static_cast<ptrdiff_t>(ends[i + 1]));
  };
  const auto with = [&](const std::vector<std::vector<uint32_t>>& pieces) {
    return [&, pieces](Capture& c) {
      std::vector<uint32_t> out;
      for (const auto& one : pieces) out.insert(out.end(), one.begin(), one.end());
      out.insert(out.end(), stream.begin() + static_cast<ptrdiff_t>(ends.back()), stream.end());
      words_of(c.submissions.back()) = out;
      return out != stream;
    };
  };
  std::vector<std::vector<uint32_t>> all;
  for (size_t i = 0; i + 1 < ends.size(); ++i) all.push_back(piece(i));
  for (size_t i = 0; i < all.size(); ++i) {
    auto changed = all;
    changed.erase(changed.begin() + static_cast<ptrdiff_t>(i));
    t.try_capture("an operation dropped", with(changed));
    changed = all;
    changed.insert(changed.begin() + static_cast<ptrdiff_t>(i), all[i]);
    t.try_capture("an operation twice", with(changed));
    changed = all;
    if (i + 1 == all.size()) continue;
    std::swap(changed[i], changed[i + 1]);
    t.try_capture("two operations exchanged", with(changed));
  }
}

void drop_words(Tampered& t) {
  for (size_t s = 0; s < t.capture().submissions.size(); ++s) {
    for (size_t i = 0; i + 1 < words_of(t.capture().submissions[s]).size(); i += 2) {
      t.try_capture("a state load dropped", [&](Capture& c) {
        auto& stream = words_of(c.submissions[s]);
        stream.erase(stream.begin() + static_cast<ptrdiff_t>(i), stream.begin() + static_cast<ptrdiff_t>(i) + 2);
        return true;
      });
    }
  }
}

void change_buffers(Tampered& t) {
  struct Change {
    const char* what;
    std::function<bool(BufferSnapshot&)> apply;
  };
  const auto is_constant = [&](const BufferSnapshot& b) {
    return b.listed && b.content == capture::Content::bytes && !t.is_input(b.handle);
  };
  const auto is_memory = [&](const BufferSnapshot& b) { return b.listed && !is_constant(b); };
  const Change changes[] = {
      {"a buffer not listed", [](BufferSnapshot& b) { return std::exchange(b.listed, false); }},
      {"read exchanged in a list", [](BufferSnapshot& b) { return b.read ^= true, b.listed; }},
      {"write exchanged in a list", [](BufferSnapshot& b) { return b.write ^= true, b.listed; }},
      {"a buffer more in a list", [](BufferSnapshot& b) { return b.read = true, !std::exchange(b.listed, true); }},
      {"a tensor's buffer halved", [&](BufferSnapshot& b) { return b.size_bytes /= 2, is_memory(b); }},
      {"a tensor's buffer doubled", [&](BufferSnapshot& b) { return b.size_bytes *= 2, is_memory(b); }},
      {"a constant's buffer too short by a byte",
       [&](BufferSnapshot& b) { return b.size_bytes = b.bytes.size() - 1, is_constant(b); }},
      {"a buffer elsewhere", [](BufferSnapshot& b) { return b.address ^= 1ULL << 31, b.listed; }},
  };
  for (size_t s = 0; s < t.capture().submissions.size(); ++s) {
    for (size_t i = 0; i < t.capture().submissions[s].buffers.size(); ++i) {
      for (const Change& change : changes)
        t.try_capture(change.what, [&](Capture& c) { return change.apply(c.submissions[s].buffers[i]); });
    }
  }
}

// The test of the golden folder's reader covers how it reads unusual values.
void change_parameters(Tampered& t) {
  for (size_t s = 0; s < t.capture().submissions.size(); ++s) {
    for (const char* name : {"pipe", "exec_state", "flags", "nr_relocs"}) {
      for (const uint64_t value : {0, 1, 9}) {
        t.try_capture("a submit flag, pipe or state", [&](Capture& c) {
          c.submissions[s].parameters.push_back({name, value});
          return true;
        });
      }
    }
  }
}

void tamper(size_t first, size_t count, size_t step) {
  for (const char* name : kCases) {
    Tampered t(name);
    if (testing::Test::HasFailure()) return;
    for (size_t i = 0; i < count; ++i) flip_bits(t, (first + i) % step, step);
    change_jobs(t);
    change_operations(t);
    drop_words(t);
    change_buffers(t);
    change_parameters(t);
  }
  fmt::print("{:55} {:>7} {:>7}\n", "change of a recorded job", "tried", "unseen");
  int tried = 0, unseen = 0;
  for (const auto& [what, counted] : Tampered::counts()) {
    fmt::print("{:55} {:>7} {:>7}\n", what, counted.tried, counted.unseen);
    EXPECT_GT(counted.tried, 0) << what;
    tried += counted.tried;
    unseen += counted.unseen;
  }
  fmt::print("{:55} {:>7} {:>7}\n", "all", tried, unseen);
}

// Returns the buffers of a submission that the device reads: constants, commands, and graph inputs as the host wrote
// them. Recorded jobs of Vivante list all constants that the submission uses, those of the RK3588 none: they list
// tensors only. Listed tensors that are no graph inputs are computed on the CPU, and are not compared.
std::vector<BufferSnapshot*> read_buffers(const Tampered& t, Submission& submission, bool lists_constants) {
  std::vector<BufferSnapshot*> out;
  for (BufferSnapshot& b : submission.buffers) {
    if (b.content != capture::Content::bytes || b.bytes.empty()) continue;
    if (b.listed ? lists_constants || t.is_input(b.handle) : !lists_constants) out.push_back(&b);
  }
  return out;
}

void flip_some_bits(Tampered& t, const std::string& chip, std::mt19937& random) {
  constexpr int kBits = 12;
  for (Submission& s : t.capture().submissions) {
    for (capture::Job& job : s.jobs) {
      for (capture::Commands& commands : job.commands) {
        auto* stream = reinterpret_cast<uint8_t*>(commands.words.data());
        for (int i = 0; i < kBits && !commands.words.empty(); ++i)
          t.try_bit(chip + ": a bit of the command stream", stream[random() % (commands.words.size() * 4)], i % 8);
      }
    }
    const bool lists_constants = chip != "rk3588";
    for (BufferSnapshot* b : read_buffers(t, s, lists_constants)) {
      const SharedBytes recorded = b->bytes;
      Bytes bytes(recorded.begin(), recorded.end());
      b->bytes = SharedBytes(nullptr, bytes);
      for (int i = 0; i < kBits; ++i)
        t.try_bit(chip + (t.is_input(b->handle) ? ": a bit of a graph input" : ": a bit of another buffer"),
                  bytes[random() % bytes.size()], i % 8);
      b->bytes = recorded;
    }
  }
}

// Samples identical cases of each chip, from a fixed seed, if the recordings exist.
void tamper_sample(const std::string& chip, const std::string& dir) {
  constexpr size_t kSampled = 5;
  auto names = list_captures(dir, chip);
  if (!names.ok()) GTEST_SKIP() << names.error().message;
  std::mt19937 random(20);
  size_t sampled = 0;
  const auto& inputs = Tampered::counts()[chip + ": a bit of a graph input"];
  for (size_t tries = 0; (sampled < kSampled || inputs.tried == 0) && tries < 6 * kSampled; ++tries) {
    const std::string& name = (*names)[random() % names->size()];
    if (compare_case(dir, *npu::find_chip(chip), name).outcome != "identical") continue;
    Tampered t(name, chip, dir);
    flip_some_bits(t, chip, random);
    change_jobs(t);
    ++sampled;
  }
  EXPECT_GT(sampled, 0U) << chip;
  EXPECT_GT(Tampered::counts()[chip + ": a bit of another buffer"].tried, 0);
  EXPECT_GT(inputs.tried, 0);
  for (const auto& [what, count] : Tampered::counts())
    fmt::print("{:55} {:>7} {:>7}\n", what, count.tried, count.unseen);
}

class TamperSample : public testing::TestWithParam<const char*> {};
TEST_P(TamperSample, AnyBitIsSeen) {
  const std::string chip = GetParam();
  if (!npu::find_chip(chip).ok()) GTEST_SKIP() << chip << " is not in this build";
  Tampered::counts().clear();
  const std::string small = chip == "rk3588" ? skillet::in_tree("tests/rockchip/small") : kDir;
  tamper_sample(chip, find_golden_dir().value_or(small));
}
INSTANTIATE_TEST_SUITE_P(Chips, TamperSample, testing::Values("a311d", "imx8mp", "s905d3", "rk3588"));

size_t from_environment(const char* name, size_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoul(text, nullptr, 10) : otherwise;
}

TEST(Tamper, AnythingIsSeen) {
  tamper(from_environment("SKILLET_TAMPER_FIRST", 0), from_environment("SKILLET_TAMPER_BITS", 1), 97);
}
TEST(Tamper, DISABLED_EveryBitIsSeen) { tamper(0, 1, 1); }  // takes minutes: the source of a number in docs/evidence.md

}  // namespace
}  // namespace skillet::golden
