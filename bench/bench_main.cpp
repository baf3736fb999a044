// ./x bench: wall time of each stage, per model: import, passes, compile, load, simulated inference, CPU kernels.
// Medians of several runs on this machine; only the ratios apply to other machines.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "graph/ir/macs.h"
#include "graph/ref/ref.h"
#include "runtime/session.h"
#include "tools/cli/command_line.h"
#include "tools/model/model.h"
#include "tools/show/progress.h"
#include "tools/show/text_table.h"
#include "tools/tensors/tensor_file.h"

namespace skillet::tools {
namespace {

struct Options {
  std::vector<std::string> models;
  std::string device = "sim:a311d";
  int repeat = 5;
  bool json = false;
};

// Median milliseconds per stage.
struct Times {
  std::string model;
  double import = 0, passes = 0, compile = 0, load = 0, npu_run = 0, cpu_run = 0, run = 0, reference = 0;
  size_t npu_ops = 0, ops = 0;
  uint64_t npu_macs = 0;
};

Result<std::vector<Bytes>> random_inputs(const ir::Graph& graph) {
  RandomStream stream(1);
  std::vector<Bytes> out;
  for (const ir::TensorId id : graph.inputs) {
    SK_TRY_ASSIGN(Bytes bytes, stream.fill(graph.tensor(id)));
    out.push_back(std::move(bytes));
  }
  return out;
}

// One repetition: each stage once.
Result<Times> time_once(const std::string& path, const runtime::Target& target) {
  Times out{.model = std::filesystem::path(path).stem().string()};
  const Stopwatch import_clock;
  SK_TRY_ASSIGN(ir::Graph graph, import_model(path));
  out.import = import_clock.ms();
  SK_TRY_ASSIGN(const std::unique_ptr<runtime::Session> session, runtime::Session::create(std::move(graph), target));
  SK_TRY_ASSIGN(const std::vector<Bytes> inputs, random_inputs(session->graph()));
  for (size_t i = 0; i < inputs.size(); ++i) SK_TRY(session->set_input(i, inputs[i]));
  const Stopwatch run_clock;
  SK_TRY(session->run());
  out.run = run_clock.ms();
  const runtime::Report& report = session->report();
  out.passes = report.passes_ms;
  out.ops = report.ops.size();
  for (const runtime::PartReport& part : report.parts) {
    const bool on_npu = part.on_npu && part.fallback.empty();
    (on_npu ? out.npu_run : out.cpu_run) += part.run_ms;
    if (!on_npu) continue;
    out.compile += part.compile_ms;
    out.load += part.load_ms;
    out.npu_ops += part.ops.size();
    for (const ir::OpId op : part.ops) out.npu_macs += ir::op_macs(session->graph(), op);
  }
  SK_TRY_ASSIGN(ref::Interpreter interpreter, ref::Interpreter::create(session->graph()));
  for (size_t i = 0; i < inputs.size(); ++i)
    std::ranges::copy(inputs[i], interpreter.tensor(session->graph().inputs[i]).begin());
  const Stopwatch reference_clock;
  SK_TRY(interpreter.run());
  out.reference = reference_clock.ms();
  return out;
}

Times median(std::vector<Times> runs) {
  Times out = runs.front();
  for (double Times::*stage : {&Times::import, &Times::passes, &Times::compile, &Times::load, &Times::npu_run,
                               &Times::cpu_run, &Times::run, &Times::reference}) {
    std::ranges::sort(runs, {}, stage);
    out.*stage = runs[runs.size() / 2].*stage;
  }
  return out;
}

Result<Times> time_model(const std::string& path, const Options& options) {
  const Progress progress(fmt::format("timing {}", path));
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  std::vector<Times> runs;
  for (int i = 0; i < options.repeat; ++i) {
    SK_TRY_ASSIGN(Times times, time_once(path, target).with_context(path));
    runs.push_back(std::move(times));
  }
  return median(std::move(runs));
}

std::string ratio(double a, double b) { return a > 0 && b > 0 ? fmt::format("{:.2f}", a / b) : "-"; }

void print_text(const std::vector<Times>& rows, const Options& options) {
  TextTable table({"model", "NPU ops", "import", "passes", "compile", "load", "NPU run", "CPU run", "all run", "ref",
                   "run/ref", "compile/ref", "NPU GMAC/s"});
  for (const Times& t : rows)
    table.add({t.model, fmt::format("{}/{}", t.npu_ops, t.ops), print_ms(t.import), print_ms(t.passes),
               print_ms(t.compile), print_ms(t.load), print_ms(t.npu_run), print_ms(t.cpu_run), print_ms(t.run),
               print_ms(t.reference), ratio(t.run, t.reference), ratio(t.compile, t.reference),
               ratio(static_cast<double>(t.npu_macs) / 1e6, t.npu_run)});
  fmt::print("{}, medians of {}; ref: the whole network on the CPU kernels\n\n{}", options.device, options.repeat,
             table.print());
}

void print_json(const std::vector<Times>& rows, const Options& options) {
  nlohmann::json out = {{"device", options.device}, {"repeat", options.repeat}, {"models", nlohmann::json::array()}};
  for (const Times& t : rows)
    out["models"].push_back({{"model", t.model},
                             {"npu_ops", t.npu_ops},
                             {"ops", t.ops},
                             {"npu_macs", t.npu_macs},
                             {"import_ms", t.import},
                             {"passes_ms", t.passes},
                             {"compile_ms", t.compile},
                             {"load_ms", t.load},
                             {"npu_run_ms", t.npu_run},
                             {"cpu_run_ms", t.cpu_run},
                             {"run_ms", t.run},
                             {"ref_ms", t.reference}});
  fmt::print("{}\n", out.dump(2));
}

// The demo model, and the MobileNets beside the repository if they exist.
std::vector<std::string> default_models() {
  std::vector<std::string> out = {"models/digits.tflite"};
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("../shared/models", none))
    if (entry.path().extension() == ".tflite" &&
        entry.path().filename().string().find("mobilenet_v") != std::string::npos)
      out.push_back(entry.path().string());
  if (none) fmt::print(stderr, "bench: no folder ../shared/models, so only the demo model\n");
  std::ranges::sort(out);
  return out;
}

int bench(Options options) {
  if (options.models.empty()) options.models = default_models();
  std::vector<Times> rows;
  bool failed = false;
  for (const std::string& model : options.models) {
    auto times = time_model(model, options);
    if (times.ok()) {
      rows.push_back(std::move(times).value());
    } else {
      fmt::print(stderr, "bench: {}\n", times.error().message);
      failed = true;
    }
  }
  if (options.json)
    print_json(rows, options);
  else
    print_text(rows, options);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace skillet::tools

int main(int argc, char** argv) {
  skillet::tools::Options options;
  skillet::tools::CommandLine app("Times importing, compiling and simulating models, stage by stage.", "skillet_bench");
  app.option("MODELS", options.models, "default: the demo model and the MobileNets in ../shared/models");
  app.option("--device", options.device, "what programs are for").shows_default();
  app.option("--repeat", options.repeat, "medians of this many runs")
      .shows_default()
      .check(skillet::tools::whole_number(1, 1000));
  app.flag("--json", options.json, "machine-readable output");
  const auto said = app.parse(argc, argv);
  if (!said.ok()) {
    fmt::print(stderr, "skillet_bench: {}\n", said.error().message);
    return 2;
  }
  if (!said->empty()) {
    fmt::print("{}", *said);
    return 0;
  }
  return skillet::tools::bench(std::move(options));
}
