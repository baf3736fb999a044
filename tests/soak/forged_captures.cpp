// The verbs for captures on forged files: changed bytes, truncated files, exchanged frames, absurd counts and sizes,
// texts of `skillet edit`. Each is read, decoded, compared, written as text and run on the simulated chip; an error is
// always a single line.
//   forged_captures_soak [--seed N] [--seconds S] [--cases N] ROOT [CHIP...]     (default: 1, 30 of CPU time in all)
//   --cases: this many for each chip, however long they take
// Exit code 1 where an error is empty or has several lines, or where one case exceeds kMostSeconds or kMostBytes of
// memory; a crash ends it at once. The same seed gives the same captures.
#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

#include "arguments.h"
#include "base/log.h"
#include "capture/frames.h"
#include "kernels/api/replayer.h"
#include "runtime/device_context.h"
#include "tools/jobs/checked_replay.h"
#include "tools/jobs/decoded.h"
#include "tools/jobs/diff_side.h"
#include "tools/jobs/edit_text.h"
#include "tools/jobs/writers.h"

namespace skillet::soak {
namespace {

using capture::BufferSnapshot;
using capture::Capture;
using capture::Submission;

constexpr double kMostSeconds = 10;
constexpr uint64_t kMostBytes = 1ULL << 30;
constexpr std::array kModels = {"tests/models/conv3x3_s2_u8.tflite", "tests/models/concat2_i8.tflite",
                                "models/digits.tflite"};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
uint64_t peak_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<uint64_t>(used.ru_maxrss) * 1024;
}

class Forger {
 public:
  explicit Forger(std::mt19937& random) : random_(random) {}

  uint64_t below(uint64_t count) { return count == 0 ? 0 : random_() % count; }

  uint64_t other(uint64_t value) {
    constexpr std::array<uint64_t, 12> kEnds = {0,           1,           0x7f,        0xffff,
                                                1U << 20U,   0x7fffffff,  0x80000000U, 0xffffffffU,
                                                1ULL << 32U, 1ULL << 40U, UINT64_MAX,  UINT64_MAX >> 1U};
    switch (below(5)) {
      case 0: return kEnds[below(kEnds.size())];
      case 1: return value + 1 + below(8);
      case 2: return value - 1 - below(8);
      case 3: return value << below(64);
      default: return value ^ uint64_t { 1 } << below(64);
    }
  }

  void bytes(Bytes& out) {
    if (out.empty()) return;
    for (uint64_t left = 1 + below(4); left > 0; --left) {
      const size_t at = below(out.size());
      switch (below(6)) {
        case 0: out.resize(at + 1); break;  // cut off
        case 1:
          out.insert(out.end(), out.begin() + static_cast<std::ptrdiff_t>(at), out.end());
          break;  // its end, repeated
        case 2: std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(at), out.end()); break;
        case 3: word(out, at & ~size_t{3}); break;
        default: out[at] = static_cast<uint8_t>(other(out[at]));
      }
    }
  }

  void change(Capture& out) {
    if (out.submissions.empty()) return;
    Submission& one = out.submissions[below(out.submissions.size())];
    switch (below(16)) {
      case 0: return device(out);
      case 1: return submissions(out);
      case 2: return jobs(one);
      case 3: return parameters(one);
      case 4:
      case 5:
      case 6:
      case 7:
      case 8: return buffer(one);
      default: return words(one);
    }
  }

  // Changes a number, a line or a piece of the text.
  void text(std::string& out) {
    const size_t at = below(out.size());
    const size_t digit = out.find_first_of("0123456789", at), line = out.find('\n', at);
    if (digit == std::string::npos || line == std::string::npos) return;
    const size_t next = out.find('\n', line + 1);
    switch (below(6)) {
      case 0: out.erase(line, next == std::string::npos ? next : next - line); return;
      case 1: out.insert(line, out.substr(line, next == std::string::npos ? next : next - line)); return;
      case 2: out.erase(at); return;
      case 3: out[at] = static_cast<char>(random_()); return;
      default:
        out.replace(digit, out.find_first_not_of("0123456789", digit) - digit, std::to_string(other(below(4096))));
    }
  }

 private:
  static void put(uint8_t* at, uint32_t value) { std::memcpy(at, &value, 4); }

  void word(Bytes& out, size_t at) {
    if (at + 4 > out.size()) return;
    uint32_t value = 0;
    std::memcpy(&value, out.data() + at, 4);
    put(out.data() + at, static_cast<uint32_t>(other(value)));
  }

  void device(Capture& out) {
    const size_t count = out.device.facts.size();
    switch (below(4)) {
      case 0: out.device.kernel_driver = below(2) == 0 ? "rocket" : std::string(below(3), '\n'); return;
      case 1: out.device.compatible += below(2) == 0 ? "x" : std::string("\0\xff", 2); return;
      case 2: out.device.facts.push_back({"model", random_()}); return;
      default:
        if (count != 0) out.device.facts[below(count)].value = other(out.device.facts[below(count)].value);
    }
  }

  void submissions(Capture& out) {
    const size_t a = below(out.submissions.size()), b = below(out.submissions.size());
    switch (below(4)) {
      case 0: out.submissions.push_back(out.submissions[a]); return;
      case 1: out.submissions[a].jobs.swap(out.submissions[b].jobs); return;
      case 2: std::swap(out.submissions[a], out.submissions[b]); return;
      default: out.submissions.erase(out.submissions.begin() + static_cast<std::ptrdiff_t>(a));
    }
  }

  void jobs(Submission& out) {
    if (out.jobs.empty()) return;
    capture::Job& one = out.jobs[below(out.jobs.size())];
    switch (below(4)) {
      case 0: out.jobs.push_back(one); return;
      case 1: one.commands.clear(); return;
      case 2:
        if (!one.commands.empty()) one.commands.push_back(one.commands[0]);
        return;
      default: out.jobs.clear();
    }
  }

  void parameters(Submission& out) {
    constexpr std::array kNames = {"pipe", "exec_state", "flags", "relocs", "sram_size", ""};
    out.parameters.push_back({kNames[below(kNames.size())], other(below(4))});
  }

  void buffer(Submission& out) {
    if (out.buffers.empty()) return;
    BufferSnapshot& one = out.buffers[below(out.buffers.size())];
    switch (below(8)) {
      case 0: one.address = other(one.address); return;
      case 1: one.size_bytes = other(one.size_bytes); return;
      case 2: one.handle = static_cast<uint32_t>(other(one.handle)); return;
      case 3: one.content = static_cast<capture::Content>(below(3)); return;
      case 4: out.buffers.push_back(one); return;
      case 5: out.buffers.erase(out.buffers.begin() + static_cast<std::ptrdiff_t>(below(out.buffers.size()))); return;
      case 6: (below(2) == 0 ? one.listed : one.write) ^= true; return;
      default: {
        Bytes changed(one.bytes.begin(), one.bytes.end());
        bytes(changed);
        one.bytes = std::move(changed);
      }
    }
  }

  // Changes words of a command list, or of a buffer with bytes (commands and descriptors).
  void words(Submission& out) {
    for (capture::Job& job : out.jobs) {
      for (capture::Commands& list : job.commands) {
        if (below(2) != 0) continue;
        if (below(4) == 0) list.address = other(list.address);
        if (below(4) == 0) list.size_bytes = other(list.size_bytes);
        if (list.words.empty()) continue;
        uint32_t& one = list.words[below(list.words.size())];
        one = static_cast<uint32_t>(other(one));
        if (below(16) == 0) list.words.resize(below(list.words.size()));
      }
    }
    for (BufferSnapshot& one : out.buffers) {
      if (one.bytes.empty() || one.bytes.size() > 1 << 16 || below(3) != 0) continue;
      Bytes changed(one.bytes.begin(), one.bytes.end());
      word(changed, below(changed.size()) & ~size_t{3});
      one.bytes = std::move(changed);
    }
  }

  std::mt19937& random_;
};

class Soak {
 public:
  Soak(std::string root, const std::string& chip, uint32_t seed)
      : root_(std::move(root)), chip_(npu::find_chip(chip).value()), seed_(seed) {}

  Result<bool> run(double seconds, uint64_t cases) {
    SK_TRY(find_bases());
    SK_TRY_ASSIGN(core_, runtime::find_core_for_replay("sim:" + chip_.name));
    const double end = cpu_seconds() + seconds;
    uint32_t number = seed_;
    for (; cases == 0 ? cpu_seconds() < end : number - seed_ < cases; ++number) one(number);
    std::printf("%s: captures %u to %u, %zu read, %zu decoded, %zu run, %zu bad; longest %.2f s, memory %llu MB\n",
                chip_.name.c_str(), seed_, number - 1, read_, decoded_, run_, bad_, longest_,
                static_cast<unsigned long long>(peak_bytes() >> 20U));
    return bad_ == 0;
  }

 private:
  Result<void> find_bases() {
    for (const char* model : kModels) {
      SK_TRY_ASSIGN(tools::DiffSide side, tools::load_side(root_ + "/" + model, chip_, {}));
      SK_TRY_ASSIGN(Capture one, capture::read_all(side.reader));
      if (!one.submissions.empty()) bases_.push_back(std::move(one));
    }
    if (bases_.empty()) return error(ErrorCode::unsupported, "{}: no model gives jobs", chip_.name);
    return {};
  }

  void one(uint32_t number) {
    const double begin = cpu_seconds();
    std::mt19937 random(number);
    Forger forger(random);
    Capture base = bases_[forger.below(bases_.size())];
    const Result<Capture> forged = forge(base, forger);
    if (forged.ok())
      note(number, use(*forged, base));
    else
      note(number, forged.error());
    const double took = cpu_seconds() - begin;
    longest_ = std::max(longest_, took);
    if (took > kMostSeconds) bad(number, fmt::format("{:.1f} s", took));
    if (peak_bytes() > peak_ + kMostBytes) bad(number, fmt::format("{} MB of memory", (peak_bytes() - peak_) >> 20U));
    peak_ = std::max(peak_, peak_bytes());
  }

  // Changes one of: the file, the contents of a frame, the capture, its text.
  Result<Capture> forge(const Capture& base, Forger& forger) {
    const uint64_t kind = forger.below(8);
    if (kind == 0) {
      SK_TRY_ASSIGN(Bytes file, capture::serialise(base));
      forger.bytes(file);
      return capture::parse(file);
    }
    if (kind == 1) return forged_frame(base, forger);
    if (kind == 2) {
      capture::Reader reader = capture::Reader::of(base);
      SK_TRY_ASSIGN(std::string text, tools::edit_text(reader, ""));
      for (uint64_t left = 1 + forger.below(3); left > 0; --left) forger.text(text);
      return tools::parse_edit_text(text, "");
    }
    Capture out = base;
    for (uint64_t left = 1 + forger.below(4); left > 0; --left) forger.change(out);
    SK_TRY_ASSIGN(const Bytes file, capture::serialise(out));
    return capture::parse(file);
  }

  // Tables with a valid checksum and wrong contents.
  static Result<Capture> forged_frame(const Capture& base, Forger& forger) {
    capture::FrameWriter writer;
    Bytes file = capture::file_start();
    const auto add = [&](Bytes frame, capture::FrameKind kind) -> Result<void> {
      if (forger.below(3) == 0) {
        Bytes table(frame.begin() + sizeof(capture::FrameHeader), frame.end());
        forger.bytes(table);
        SK_TRY_ASSIGN(frame, capture::make_frame(kind, table, false));
      }
      for (uint64_t times = 1 + (forger.below(8) == 0 ? 1 : 0); times > 0; --times)
        file.insert(file.end(), frame.begin(), frame.end());
      return {};
    };
    SK_TRY_ASSIGN(Bytes device, writer.device(base.device, file.size()));
    SK_TRY(add(std::move(device), capture::FrameKind::device));
    for (const Submission& one : base.submissions) {
      SK_TRY_ASSIGN(Bytes frame, writer.submission(one, file.size()));
      SK_TRY(add(std::move(frame), capture::FrameKind::submission));
    }
    return capture::parse(file);
  }

  Result<void> use(const Capture& forged, const Capture& base) {
    ++read_;
    SK_TRY_ASSIGN(const npu::Chip chip, tools::chip_of(forged.device, ""));
    SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
    SK_TRY_ASSIGN(auto replayer, kernels::open_replayer(core_.core, core_.calls));
    tools::CheckedReplay replay(*core_.driver, chip_, *replayer);
    capture::Reader reader = capture::Reader::of(forged);
    const auto text = tools::edit_text(reader, "");
    if (text.ok()) {
      SK_TRY_ASSIGN(const Capture back, tools::parse_edit_text(*text, ""));
      if (!(back == forged)) return error(ErrorCode::internal, "a text\nthat gives another capture");
    }
    const auto compared = tools::compare(chip, {"capture", capture::Reader::of(forged), chip},
                                         {"capture", capture::Reader::of(base), chip});
    Result<void> first = compared.ok() ? Result<void>() : compared.error();
    if (!text.ok()) first = text.error();
    for (const Submission& one : forged.submissions) {
      const auto decoded = driver->decode(chip, one);
      if (decoded.ok()) {
        ++decoded_;
        tools::writers_of(*decoded, one, {});
      } else {
        first = decoded.error();
      }
      if (chip.name != chip_.name) continue;
      const auto ran = replay.run(one);
      if (!ran.ok()) return ran.error();
      ++run_;
    }
    return first;
  }

  void note(uint32_t number, const Result<void>& done) {
    if (!done.ok()) note(number, done.error());
  }
  void note(uint32_t number, const Error& problem) {
    if (problem.message.size() < 8 || problem.message.size() > 2000 || problem.message.find('\n') != std::string::npos)
      bad(number, problem.message);
  }
  void bad(uint32_t number, const std::string& what) {
    if (++bad_ <= 20) std::printf("%s: capture %u: %s\n", chip_.name.c_str(), number, what.c_str());
  }

  std::string root_;
  npu::Chip chip_;
  uint32_t seed_;
  runtime::NamedCore core_;
  std::vector<Capture> bases_;
  size_t read_ = 0, decoded_ = 0, run_ = 0, bad_ = 0;
  double longest_ = 0;
  uint64_t peak_ = peak_bytes();
};

int main_of(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const uint64_t cases = std::strtoull(arguments.take("--cases").value_or("0").c_str(), nullptr, 10);
  const std::vector<std::string>& words = arguments.words;
  if (words.empty()) {
    std::fputs("usage: forged_captures_soak [--seed N] [--seconds S] [--cases N] ROOT [CHIP...]\n", stderr);
    return 2;
  }
  std::vector<std::string> chips(words.begin() + 1, words.end());
  if (chips.empty()) chips = {"a311d", "imx8mp", "rk3588", "rk3576", "imx93"};
  const log::ScopedLevel level(log::Level::error);
  bool good = true;
  for (const std::string& chip : chips) {
    const auto done =
        Soak(words[0], chip, arguments.seed).run(arguments.seconds / static_cast<double>(chips.size()), cases);
    if (!done.ok()) std::printf("%s: %s\n", chip.c_str(), done.error().message.c_str());
    good = done.ok() && *done && good;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace skillet::soak

int main(int argc, char** argv) { return skillet::soak::main_of(argc, argv); }
