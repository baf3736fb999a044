// Programs that check_addresses() accepts never access memory outside their buffers. Programs of random graphs are
// changed and treated like program files; accepted ones run on the simulated chip, where only the buffers that a job
// lists are mapped.
//   forged_programs_soak [--seed N] [--seconds S] [CHIP...]     (default: 1, 30 of CPU time in all, five chips)
//   --unchecked: run all of them, to see what the simulator finds
// Exit code 1 where a chip accessed memory outside the program, or something the simulator does not model; prints how
// to repeat it. The same seed gives the same programs, regardless of the machine's speed.
#include <cstdio>
#include <ctime>
#include <map>

#include "arguments.h"
#include "base/log.h"
#include "compile/compile.h"
#include "forge.h"
#include "random_graph.h"
#include "runtime/address_check.h"
#include "runtime/device_context.h"
#include "runtime/loaded_program.h"

namespace skillet::soak {
namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Errors of a job that accessed nothing else: only its results are wrong.
constexpr std::array kHarmless = {
    "(rule ",                    // the program's own results
    "overlaps the input image",  // the chip's own order of reads and writes
    "coefficient",               // weights that cannot be decoded
    "output plane",
    "no order of the weights",
    "the window has",  // on-chip memory too small for the weights
    "has not been flushed",
    "without flush_cache",
    "has more than 21 bits",  // an entry of a table
    "leaves 32 bits",         // a sum
};
bool is_harmless(const Error& error) {
  if (error.message.find("IOMMU fault") != std::string::npos || error.message.find("mapped") != std::string::npos)
    return false;
  if (error.code == ErrorCode::timeout) return false;  // a fault of the RK3588's memory ends no job
  if (error.code != ErrorCode::device) return true;
  return std::ranges::any_of(kHarmless,
                             [&](const char* part) { return error.message.find(part) != std::string::npos; });
}

// Removes numbers, so that equal kinds of messages count as one.
std::string kind_of(const std::string& message) {
  std::string out;
  for (size_t i = 0; i < message.size(); ++i) {
    const bool is_hex = i > 0 && (message[i - 1] == 'x' || (!out.empty() && out.back() == '#')) &&
                        std::isxdigit(static_cast<unsigned char>(message[i])) != 0;
    if (!is_hex && std::isdigit(static_cast<unsigned char>(message[i])) == 0)
      out += message[i];
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out.substr(0, 160);
}

struct Base {
  npu::Program program;
  ir::Graph graph;
};

class Soak {
 public:
  Soak(std::string chip, uint32_t seed, bool unchecked)
      : name_("sim:" + std::move(chip)), seed_(seed), unchecked_(unchecked) {}

  bool run(double seconds) {
    end_ = cpu_seconds() + seconds;
    uint32_t round = seed_;
    for (; cpu_seconds() < end_; ++round) one_round(round);
    std::printf("%s: rounds %u to %u: %zu programs forged, %zu refused, %zu run, %zu bad\n", name_.c_str(), seed_,
                round - 1, forged_, forged_ - taken_, taken_, bad_);
    for (const auto& [kind, count] : kinds_) std::printf("  %6zu  %s\n", count, kind.c_str());
    return bad_ == 0;
  }

 private:
  static constexpr int kOfOneRound = 400;
  // The timeout for a job that never ends, and the timeout of a retry, so that a busy machine causes no failure.
  static constexpr std::chrono::milliseconds kStall{20}, kLongStall{5000};

  // Compiles a graph in each possible way, and forges the programs.
  void one_round(uint32_t round) {
    std::mt19937 random(round);
    target_ = runtime::open_target(name_).value();
    const ir::Graph graph = GraphMaker(round).make();
    std::vector<Base> bases;
    for (const auto tuning : {npu::Tuning::recorded, npu::Tuning::proven, npu::Tuning::tuned}) {
      const compile::Options options{.driver = {.tuning = tuning, .unproven = npu::Unproven::take}};
      auto compiled = compile::compile(graph, {target_.driver, target_.chip}, options);
      if (!compiled.ok()) continue;
      for (compile::Part& part : compiled->parts) {
        if (!part.program) continue;
        const auto as_made = runtime::check_addresses(*target_.driver, target_.chip, *part.program);
        if (as_made.ok() || unchecked_)
          bases.push_back({std::move(*part.program), std::move(part.partition.graph)});
        else if (tuning != npu::Tuning::recorded)  // `recorded` copies faults of the recorded driver
          report(round, -1, as_made.error().message);
      }
    }
    for (int i = 0; i < kOfOneRound && !bases.empty() && cpu_seconds() < end_; ++i) {
      const Base& base = bases[random() % bases.size()];
      one(round, i, forge(base.program, random), base.graph);
    }
  }

  void one(uint32_t round, int number, const npu::Program& program, const ir::Graph& graph) {
    ++forged_;
    const auto file = npu::serialise(program, false);
    if (!file.ok()) return;
    auto read = npu::deserialise(*file);
    if (!read.ok() || !runtime::check_program(*read, target_.chip.name, graph).ok()) return;
    if (!unchecked_ && !runtime::check_addresses(*target_.driver, target_.chip, *read).ok()) return;
    ++taken_;
    auto done = execute(npu::Program(*read), graph, kStall);
    if (!done.ok() && done.error().code == ErrorCode::timeout) {
      target_ = runtime::open_target(name_).value();
      done = execute(std::move(*read), graph, kLongStall);
    }
    if (done.ok()) return;
    ++kinds_[kind_of(done.error().message)];
    if (!is_harmless(done.error())) report(round, number, done.error().message);
    target_ = runtime::open_target(name_).value();
  }

  Result<void> execute(npu::Program program, const ir::Graph& graph, std::chrono::milliseconds stall) {
    SK_TRY_ASSIGN(auto loaded, runtime::LoadedProgram::load(target_.context, std::move(program), graph, stall));
    std::map<ir::TensorId, Bytes> tensors;
    return loaded->run([&](ir::TensorId id) -> std::span<uint8_t> {
      Bytes& bytes = tensors[id];
      bytes.resize(static_cast<size_t>(graph.tensor(id).bytes()), 0x5a);
      return bytes;
    });
  }

  void report(uint32_t round, int number, const std::string& message) {
    if (++bad_ <= 20) std::printf("%s: round %u, program %d: %s\n", name_.c_str(), round, number, message.c_str());
  }

  std::string name_;
  uint32_t seed_;
  double end_ = 0;
  bool unchecked_;
  runtime::Target target_;
  size_t forged_ = 0, taken_ = 0, bad_ = 0;
  std::map<std::string, size_t> kinds_;  // errors of accepted programs
};

int main_of(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const bool unchecked = arguments.take_flag("--unchecked");
  std::vector<std::string> chips = std::move(arguments.words);
  if (chips.empty()) chips = {"a311d", "imx8mp", "s905d3", "rk3588", "rk3576"};
  const log::ScopedLevel level(log::Level::error);
  bool good = true;
  for (const std::string& chip : chips)
    good = Soak(chip, arguments.seed, unchecked).run(arguments.seconds / static_cast<double>(chips.size())) && good;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace skillet::soak

int main(int argc, char** argv) { return skillet::soak::main_of(argc, argv); }
