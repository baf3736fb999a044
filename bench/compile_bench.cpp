// compile() alone, on one core: skillet_compile_bench [--benchmark_...] MODEL.tflite... (load_bench: with a cache.)
// Also prints the constants of all programs in MB, and how many times memcpy would move that many bytes in the same
// time.
#include <benchmark/benchmark.h>

#include <cstring>
#include <ctime>

#include "compile/compile.h"
#include "graph/import/import.h"

namespace skillet {
namespace {

size_t constant_bytes(const compile::Compiled& compiled) {
  size_t bytes = 0;
  for (const compile::Part& part : compiled.parts) {
    if (!part.program) continue;
    for (const npu::Buffer& buffer : part.program->buffers) bytes += buffer.contents.size();
  }
  return bytes;
}

// CPU time of this process, so that other load on the machine matters less.
double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double copy_ms(size_t bytes) {
  const Bytes from(bytes, 1);
  Bytes to(bytes, 2);
  constexpr int kCopies = 20;
  const double start = cpu_ms();
  for (int i = 0; i < kCopies; ++i) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  return (cpu_ms() - start) / kCopies;
}

void measure(benchmark::State& state, const ir::Graph& graph, const compile::Target& target) {
  size_t bytes = 0;
  double ms = 0;
  for (auto _ : state) {
    ir::Graph copy = graph;
    const double start = cpu_ms();
    auto compiled = compile::compile(std::move(copy), target, {});
    ms += cpu_ms() - start;
    if (!compiled.ok()) return state.SkipWithError(compiled.error().message.c_str());
    bytes = constant_bytes(*compiled);
    state.PauseTiming();
    compiled = compile::Compiled{};
    state.ResumeTiming();
  }
  state.counters["constants_MB"] = static_cast<double>(bytes) / 1e6;
  state.counters["copies"] = ms / static_cast<double>(state.iterations()) / copy_ms(bytes);
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::vector<ir::Graph> graphs;
  graphs.reserve(static_cast<size_t>(argc));
  for (int i = 1; i < argc; ++i) {
    auto graph = tflite::import_file(argv[i]);
    if (!graph.ok()) {
      std::fprintf(stderr, "%s: %s\n", argv[i], graph.error().message.c_str());
      return 2;
    }
    graphs.push_back(std::move(graph).value());
  }
  for (const npu::Driver* driver : npu::drivers()) {
    for (const npu::Chip& chip : driver->chips()) {
      for (size_t i = 0; i < graphs.size(); ++i) {
        const std::string name = std::string(chip.name) + " " + argv[i + 1];
        benchmark::RegisterBenchmark(name.c_str(), [&graphs, i, target = compile::Target{driver, chip}](auto& state) {
          measure(state, graphs[i], target);
        })->Unit(benchmark::kMillisecond);
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace skillet

int main(int argc, char** argv) { return skillet::run(argc, argv); }
