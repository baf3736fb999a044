// Forged streams of commands on simulated Ethos-U chips: each ends within seconds, and touches no byte outside its
// job's buffers.
//   ethosu_streams_soak [--seed N] [--seconds S] [--streams N] MODELS     (default: 1, 30 of CPU time, any number)
// MODELS: a folder of Vela's outputs, NAME.ACCELERATOR.tflite. Exit code 1 where a stream did otherwise; prints how to
// repeat it. The same seed gives the same streams, regardless of the machine's speed.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <random>
#include <vector>

#include "arguments.h"
#include "base/log.h"
#include "compile/compile.h"
#include "graph/import/import.h"
#include "npus/ethosu/hw/kernel_rules.h"
#include "sim/sim.h"

namespace skillet::soak {
namespace {

namespace hw = ::skillet::ethosu::hw;
constexpr double kMostSeconds = 5;  // per stream; the machine may be busy
constexpr size_t kGuard = 4096;     // bytes before and after each buffer
constexpr uint8_t kGuardByte = 0x5A;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// A buffer of a job, between guards.
struct Region {
  Bytes bytes;
  uint8_t slot = 0;
  bool is_written = false;

  std::span<uint8_t> inside() { return std::span(bytes).subspan(kGuard, bytes.size() - 2 * kGuard); }
  bool is_guarded() const {
    const auto is_guard = [](uint8_t byte) { return byte == kGuardByte; };
    return std::all_of(bytes.begin(), bytes.begin() + kGuard, is_guard) &&
           std::all_of(bytes.end() - kGuard, bytes.end(), is_guard);
  }
};

struct Base {
  std::string name, chip;
  std::vector<uint32_t> words;
  std::vector<Region> regions;
  uint64_t sram_bytes = 0;
};

Region region_of(const npu::Program& program, const npu::BufferUse& use) {
  const npu::Buffer& buffer = program.buffers[use.buffer];
  Region region{.bytes = Bytes(buffer.size_bytes + 2 * kGuard, kGuardByte), .slot = use.slot, .is_written = use.write};
  const std::span<const uint8_t> contents = buffer.contents;
  std::copy(contents.begin(), contents.end(), region.inside().begin());
  return region;
}

void add_jobs(const std::string& name, const npu::Program& program, std::vector<Base>& out) {
  for (const npu::Job& job : program.jobs) {
    Base base{.name = name, .chip = program.chip, .words = {}, .regions = {}, .sram_bytes = job.sram_bytes};
    const auto bytes = npu::bytes_of(program, job.commands.at(0));
    base.words.resize(bytes.size() / 4);
    std::memcpy(base.words.data(), bytes.data(), bytes.size());
    for (const npu::BufferUse& use : job.uses) base.regions.push_back(region_of(program, use));
    out.push_back(std::move(base));
  }
}

Result<std::vector<Base>> read_all(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().find(".ethos-") != std::string::npos) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Base> out;
  for (const auto& file : files) {
    SK_TRY_ASSIGN(ir::Graph graph, tflite::import_file(file.string()));
    SK_TRY_ASSIGN(const npu::Chip chip, npu::find_chip(file.stem().extension().string().substr(1)));
    SK_TRY_ASSIGN(const npu::Driver* const driver, npu::driver_of(chip));
    SK_TRY_ASSIGN(const compile::Compiled compiled, compile::compile(std::move(graph), {driver, chip}, {}));
    for (const compile::Part& part : compiled.parts)
      if (part.program) add_jobs(file.stem().string(), *part.program, out);
  }
  if (out.empty()) return error(ErrorCode::invalid_argument, "{}: no stream", folder.string());
  return out;
}

// Makes one to four changes of words: a bit, a field, a word copied from another place, a word inserted or removed.
std::vector<uint32_t> forged(std::vector<uint32_t> words, std::mt19937& random) {
  const uint32_t changes = 1 + random() % 4;
  for (uint32_t i = 0; i < changes && words.size() > 2; ++i) {
    const size_t at = random() % (words.size() - 1);
    switch (random() % 6) {
      case 0: words[at] ^= 1U << random() % 32; break;
      case 1: words[at] = (words[at] & 0xFFFF) | random() << 16; break;
      case 2: words[at] = random() >> random() % 32; break;
      case 3: words[at] = words[random() % words.size()]; break;
      case 4: words.erase(words.begin() + static_cast<std::ptrdiff_t>(at)); break;
      default: words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), words[random() % words.size()]); break;
    }
  }
  return words;
}

class Soak {
 public:
  Soak(std::vector<Base> bases, uint32_t seed, size_t most) : bases_(std::move(bases)), seed_(seed), most_(most) {}

  bool run(double seconds) {
    const double end = cpu_seconds() + seconds;
    uint32_t number = seed_;
    for (; cpu_seconds() < end && number - seed_ < most_; ++number) one(number);
    std::printf(
        "%u streams of %zu from %u on: %zu taken by the kernel's rules, %zu ran to their end, slowest %.2f s, %zu "
        "bad\n",
        number - seed_, bases_.size(), seed_, taken_, ran_, slowest_, bad_);
    return bad_ == 0;
  }

 private:
  void one(uint32_t number) {
    std::mt19937 random(number);
    Base base = bases_[random() % bases_.size()];
    base.words = forged(std::move(base.words), random);
    const std::vector<Region> before = base.regions;
    taken_ += hw::needs_of(base.words).ok() ? 1 : 0;
    const double begin = cpu_seconds();
    ran_ += simulate(base).ok() ? 1 : 0;
    const double took = cpu_seconds() - begin;
    slowest_ = std::max(slowest_, took);
    if (took > kMostSeconds) report(number, base, fmt::format("it took {:.1f} s", took));
    for (size_t i = 0; i < before.size(); ++i) {
      const Region& now = base.regions[i];
      if (!now.is_guarded()) report(number, base, fmt::format("bytes beside region {} are written", now.slot));
      if (!now.is_written && now.bytes != before[i].bytes)
        report(number, base, fmt::format("region {} is written", now.slot));
    }
  }

  static Result<void> simulate(Base& base) {
    sim::Memory memory;
    std::array<uint64_t, hw::kRegions> slots{};
    for (Region& region : base.regions) {
      slots[region.slot] = uint64_t{region.slot + 1U} << 36;
      const std::string name = fmt::format("region {}", region.slot);
      SK_TRY(region.is_written ? memory.map(slots[region.slot], region.inside(), name)
                               : memory.map_to_read(slots[region.slot], region.inside(), name));
    }
    SK_TRY_ASSIGN(const auto device, sim::create(base.chip));
    const sim::Commands commands{.bytes = as_bytes(std::span<const uint32_t>(base.words))};
    return device->run({.commands = {&commands, 1}, .slots = slots, .sram_bytes = base.sram_bytes}, memory);
  }

  void report(uint32_t number, const Base& base, const std::string& what) {
    if (++bad_ <= 20)
      std::printf("--seed %u --streams 1 (%s, %s): %s\n", number, base.name.c_str(), base.chip.c_str(), what.c_str());
  }

  std::vector<Base> bases_;
  uint32_t seed_;
  size_t most_, taken_ = 0, ran_ = 0, bad_ = 0;
  double slowest_ = 0;
};

int main_of(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const std::optional<std::string> streams = arguments.take("--streams");
  const size_t most = streams ? std::strtoul(streams->c_str(), nullptr, 10) : SIZE_MAX;
  const log::ScopedLevel level(log::Level::error);
  auto bases = read_all(arguments.words.empty() ? "" : arguments.words.back());
  if (!bases.ok()) std::fprintf(stderr, "%s\n", bases.error().message.c_str());
  return bases.ok() && Soak(std::move(*bases), arguments.seed, most).run(arguments.seconds) ? 0 : 1;
}

}  // namespace
}  // namespace skillet::soak

int main(int argc, char** argv) { return skillet::soak::main_of(argc, argv); }
