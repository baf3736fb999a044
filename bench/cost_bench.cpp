// The cost of an inference for a chip and its host, as a table: skillet_cost_bench CHIP MODEL... For one core:
// operations on the NPU, jobs and tasks (lists of commands) per inference, bytes of device memory, the least CPU time
// of a few compilations, and of simulated inferences on this machine. `skillet plan` prints the simulated chip's own
// time.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "compile/compile.h"
#include "compile/report.h"
#include "graph/import/import.h"
#include "runtime/session.h"

namespace skillet {
namespace {

constexpr int kCompilations = 20, kInferences = 3;

// CPU time of this process, so that other load on the machine matters less.
double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

template <typename Work>
Result<double> least_ms(int times, Work work) {
  double least = 0;
  for (int i = 0; i < times; ++i) {
    const double start = cpu_ms();
    SK_TRY(work());
    const double took = cpu_ms() - start;
    least = i == 0 ? took : std::min(least, took);
  }
  return least;
}

struct Cost {
  size_t npu_ops = 0, ops = 0, jobs = 0, tasks = 0;
  uint64_t memory_bytes = 0;
  double compile_ms = 0, run_ms = 0;
};

Result<void> add_compiled(const ir::Graph& graph, const runtime::Target& target, Cost& cost) {
  std::optional<compile::Compiled> last;
  SK_TRY_ASSIGN(cost.compile_ms, least_ms(kCompilations, [&]() -> Result<void> {
                  ir::Graph copy = graph;
                  last.reset();
                  SK_TRY_ASSIGN(last, compile::compile(std::move(copy), {target.driver, target.chip}, {}));
                  return {};
                }));
  const compile::ModelUse use = compile::model_use(*last);
  cost.npu_ops = use.npu_ops, cost.ops = use.ops;
  for (const compile::Part& part : last->parts) {
    if (!part.program) continue;
    for (const npu::Job& job : part.program->jobs) {
      ++cost.jobs;
      cost.tasks += job.commands.size();
    }
    for (const npu::Buffer& buffer : part.program->buffers) cost.memory_bytes += buffer.size_bytes;
  }
  return {};
}

Result<Cost> cost_of(const std::string& path, const runtime::Target& target) {
  SK_TRY_ASSIGN(const ir::Graph graph, tflite::import_file(path));
  Cost cost;
  SK_TRY(add_compiled(graph, target, cost));
  runtime::SessionOptions options;
  options.allow_fallback = false;
  options.cores = 1;
  SK_TRY_ASSIGN(const auto session, runtime::Session::create(graph, target, options));
  SK_TRY_ASSIGN(cost.run_ms, least_ms(kInferences, [&] { return session->run(); }));
  return cost;
}

int run(int argc, char** argv) {
  const auto target = runtime::open_target(fmt::format("sim:{}", argv[1]));
  if (!target.ok()) return std::fprintf(stderr, "%s\n", target.error().message.c_str()), 2;
  fmt::print("| {} | operations on the NPU | jobs | tasks | device memory | compile() | simulated inference |\n",
             argv[1]);
  fmt::print("| --- | --- | --- | --- | --- | --- | --- |\n");
  for (int i = 2; i < argc; ++i) {
    const auto cost = cost_of(argv[i], *target);
    if (!cost.ok()) return std::fprintf(stderr, "%s: %s\n", argv[i], cost.error().message.c_str()), 1;
    fmt::print("| {} | {} of {} | {} | {} | {:.2f} MB | {:.2f} ms | {:.2f} s |\n",
               std::filesystem::path(argv[i]).stem().string(), cost->npu_ops, cost->ops, cost->jobs, cost->tasks,
               static_cast<double>(cost->memory_bytes) / 1e6, cost->compile_ms, cost->run_ms / 1e3);
  }
  return 0;
}

}  // namespace
}  // namespace skillet

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: skillet_cost_bench CHIP MODEL.tflite...\n"), 2;
  return skillet::run(argc, argv);
}
