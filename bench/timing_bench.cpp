// Time to predict a network's time: skillet_timing_bench [--benchmark_...] MODEL.tflite... For each chip with a timing
// model: timing all jobs of the compiled network, and the same including the recording of jobs, as `skillet plan` does.
// Also prints the number of tasks, and microseconds of CPU time for each.
#include <benchmark/benchmark.h>

#include "graph/import/import.h"
#include "runtime/record_program.h"
#include "tools/time/program_timing.h"

namespace skillet {
namespace {

using Parts = std::vector<compile::Part>;

Result<Parts> compile_for(const std::string& chip_name, const ir::Graph& graph) {
  SK_TRY_ASSIGN(const npu::Chip chip, npu::find_chip(chip_name));
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  SK_TRY_ASSIGN(compile::Compiled compiled,
                compile::compile(graph, {driver, chip}, {.driver = {.unproven = npu::Unproven::take}}));
  return std::move(compiled.parts);
}

Result<capture::Capture> record(const std::string& chip, const Parts& parts) {
  std::vector<runtime::ProgramToRecord> programs;
  for (const compile::Part& part : parts) {
    if (part.program) programs.push_back({*part.program, &part.partition.graph, {}});
  }
  SK_TRY_ASSIGN(runtime::RecordedPrograms done, runtime::record_programs(chip, std::move(programs)));
  return std::move(done.capture);
}

// Measures the function; it returns the number of tasks.
template <typename Price>
void measure(benchmark::State& state, const Price& price) {
  size_t tasks = 0;
  for (auto _ : state) {
    const Result<size_t> done = price();
    if (!done.ok()) return state.SkipWithError(done.error().message.c_str());
    tasks = *done;
  }
  state.counters["tasks"] = static_cast<double>(tasks);
  state.counters["s_per_task"] = benchmark::Counter(
      static_cast<double>(tasks) * static_cast<double>(state.iterations()),
      static_cast<benchmark::Counter::Flags>(benchmark::Counter::kIsRate | benchmark::Counter::kInvert));
}

void price_jobs(benchmark::State& state, const std::string& chip, const ir::Graph& graph) {
  auto parts = compile_for(chip, graph);
  auto recorded = parts.ok() ? record(chip, *parts) : Result<capture::Capture>(parts.error());
  if (!recorded.ok()) return state.SkipWithError(recorded.error().message.c_str());
  measure(state, [&]() -> Result<size_t> {
    SK_TRY_ASSIGN(const auto timer, sim::create_timer(chip, sim::Jobs::open));
    SK_TRY_ASSIGN(const tools::ProgramTiming timing, tools::time_capture(*timer, capture::Reader::of(*recorded)));
    return timing.tasks;
  });
}

void record_and_price(benchmark::State& state, const std::string& chip, const ir::Graph& graph) {
  const auto parts = compile_for(chip, graph);
  if (!parts.ok()) return state.SkipWithError(parts.error().message.c_str());
  measure(state, [&]() -> Result<size_t> {
    SK_TRY_ASSIGN(const tools::ProgramTiming timing, tools::time_parts(chip, *parts));
    return timing.tasks;
  });
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    auto graph = tflite::import_file(argv[i]);
    if (!graph.ok()) {
      std::fprintf(stderr, "%s: %s\n", argv[i], graph.error().message.c_str());
      return 2;
    }
    const auto add = [&](std::string_view chip, const char* what, auto function) {
      const std::string name = std::string(chip) + what + argv[i];
      benchmark::RegisterBenchmark(name.c_str(), [graph = *graph, chip = std::string(chip), function](auto& state) {
        function(state, chip, graph);
      })->Unit(benchmark::kMillisecond);
    };
    for (const std::string_view chip : sim::timed_chips(sim::Jobs::open)) {
      add(chip, " price ", price_jobs);
      add(chip, " record and price ", record_and_price);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace skillet

int main(int argc, char** argv) { return skillet::run(argc, argv); }
