// `skillet fix`: writes a model file in which operations that the chip does not take are replaced by others.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/own_file.h"
#include "base/text.h"
#include "compile/report.h"
#include "graph/import/import.h"
#include "graph/import/rewrite_file.h"
#include "graph/ref/ref.h"
#include "runtime/session.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/model/model.h"
#include "tools/model/placed.h"
#include "tools/run/apart.h"
#include "tools/run/scores.h"
#include "tools/show/progress.h"
#include "tools/show/text_table.h"

namespace skillet::tools {
namespace {

constexpr int kTrials = 4;  // inputs on which both models are compared

struct Options {
  std::string model, output, device;
  SessionFlags session;
  bool approximate = false, always = false, json = false;
};

struct Difference {
  size_t values = 0, differing = 0;
  double largest = 0, sum = 0;  // in steps of 8-bit outputs
};

struct Report {
  std::string device;
  std::vector<passes::Rewrite> rewrites;
  std::vector<std::string> approximations;
  Placed before, after;
  Difference difference;
  bool is_copy = false;     // a copy of the model: no change helps
  bool is_refused = false;  // the rewritten network is slower
};

// Smaller differences of shares and times count as equal.
constexpr double kWorth = 0.01;

runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions out = session_options(options.session);
  out.cores = 1;
  return out;
}

// True if `one` has fewer operations or parts, more claimed work, or less time.
bool is_better(const Placed& one, const Placed& than) {
  if (one.left < than.left || one.host_ops < than.host_ops) return true;
  if (one.left == than.left && one.npu_parts < than.npu_parts) return true;
  if (one.claimed_macs > than.claimed_macs + kWorth) return true;
  return one.time && than.time && one.time->whole_us() < than.time->whole_us() * (1 - kWorth);
}

// Differences within the prediction's error do not count.
bool is_slower(const Placed& one, const Placed& than) {
  return one.time && than.time && one.time->whole_us() > than.time->whole_us() * (1 + one.time->error);
}

// Runs the exact passes; with --approximate, weights share scales too.
Result<ir::Graph> fixed(const ir::Graph& model, const runtime::Target& target, const Options& options, Report& report) {
  ir::Graph graph = model;
  std::vector<passes::WeightChange> changes;
  const auto mode = options.approximate ? npu::PerChannel::approximate : npu::PerChannel::strict;
  passes::Target passes_target{target.driver, target.chip, mode, &changes};
  passes_target.takes_unproven = unproven_of(options.session) != npu::Unproven::refuse;
  passes_target.rewrites = &report.rewrites;
  passes_target.for_files = true;
  passes_target.constants_max = passes::constants_max(model);
  for (const passes::Pass& pass : passes::exact_passes())
    if (pass.for_files) pass.run(graph, passes_target);
  if (options.approximate) passes::share_weight_scales(graph, passes_target);
  SK_TRY(ir::verify(graph));
  for (const passes::WeightChange& change : changes)
    report.approximations.push_back(fmt::format("op {}: {}", graph.op(change.op).source_index, change.text()));
  for (const passes::Rewrite& one : report.rewrites)
    if (one.off != 0) report.approximations.push_back(fmt::format("op {}: {}", one.source, one.text));
  std::erase_if(report.rewrites, [](const passes::Rewrite& one) { return one.off != 0; });
  return graph;
}

// ---- comparison of results ----

void fill(const ir::Tensor& tensor, std::span<uint8_t> bytes, uint32_t& state) {
  const auto next = [&] { return (state = state * 1664525 + 1013904223) >> 16; };
  if (tensor.dtype == ir::DType::float32) {
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4)
      store_le(bytes.data() + i, static_cast<float>(next()) / 32768.0F - 1.0F);
  } else if (ir::is_8bit(tensor.dtype) || (tensor.dtype == ir::DType::int16 && !tensor.quant.empty())) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(next());
  } else if (tensor.dtype == ir::DType::boolean) {
    for (uint8_t& byte : bytes) byte = next() & 1;
  } else {
    std::ranges::fill(bytes, 0);  // a valid index
  }
}

void compare(const ir::Tensor& tensor, std::span<const uint8_t> a, std::span<const uint8_t> b, Difference& sum) {
  for (int64_t i = 0; i < tensor.shape.elems(); ++i) {
    const double x = raw_value(tensor, a, i), y = raw_value(tensor, b, i), off = std::abs(x - y);
    ++sum.values;
    sum.differing += x != y && !(std::isnan(x) && std::isnan(y)) ? 1 : 0;
    if (!std::isfinite(off)) continue;
    sum.largest = std::max(sum.largest, off);
    sum.sum += off;
  }
}

Result<Difference> difference(const ir::Graph& before, const ir::Graph& after) {
  SK_TRY_ASSIGN(ref::Interpreter old_one, ref::Interpreter::create(before));
  SK_TRY_ASSIGN(ref::Interpreter new_one, ref::Interpreter::create(after));
  Difference out;
  uint32_t state = 1;
  for (int trial = 0; trial < kTrials; ++trial) {
    for (size_t i = 0; i < before.inputs.size(); ++i) {
      const std::span<uint8_t> from = old_one.tensor(before.inputs[i]);
      fill(before.tensor(before.inputs[i]), from, state);
      std::ranges::copy(from, new_one.tensor(after.inputs[i]).begin());
    }
    SK_TRY(old_one.run());
    SK_TRY(new_one.run());
    for (size_t i = 0; i < before.outputs.size(); ++i)
      compare(before.tensor(before.outputs[i]), old_one.tensor(before.outputs[i]), new_one.tensor(after.outputs[i]),
              out);
  }
  return out;
}

// ---- output ----

std::string print_left(const Placed& placed) {
  return fmt::format("{} (with the delegate {})", placed.left, placed.host_ops);
}

// Results of passes that a published runtime computes differently.
std::string print_elsewhere(const std::vector<passes::Rewrite>& rewrites) {
  std::string out;
  for (const passes::Pass& pass : passes::exact_passes()) {
    if (pass.elsewhere.empty() || std::ranges::count(rewrites, pass.name, &passes::Rewrite::pass) == 0) continue;
    out += fmt::format("{}: {}\n", pass.name, pass.elsewhere);
  }
  return out;
}

std::string print_difference(const Difference& off) {
  if (off.differing == 0) return fmt::format("none in {} values of {} random inputs", off.values, kTrials);
  return fmt::format("{} of {} values, {:.3g} on average, {:.3g} at most", off.differing, off.values,
                     off.sum / static_cast<double>(off.values), off.largest);
}

void print_changes(const Report& report) {
  if (!report.rewrites.empty())
    out("rewritten, each with the same results on Skillet's and TensorFlow Lite's reference kernels\n"
        "{}{}\n",
        compile::print(report.rewrites), print_elsewhere(report.rewrites));
  if (!report.approximations.empty()) out("approximated\n");
  for (const std::string& line : report.approximations) out("{}\n", line);
  if (!report.approximations.empty()) out("\n");
}

std::string_view why_copied(const Report& report) {
  if (report.is_refused)
    return "the rewritten network is predicted to be slower; the file is a copy (--always writes it)";
  if (report.rewrites.empty()) return "nothing to fix; the file is a copy";
  return "nothing to fix; the file is a copy: Skillet does these rewrites when it runs a model (--always writes them "
         "for other runtimes)";
}

void print_text(const Options& options, const Report& report) {
  out("{} for {}\n\n", printable(options.model), report.device);
  if (!report.is_copy) print_changes(report);
  TextTable table({"", "before", "after"});
  add_rows(table, report.before, report.after);
  // is_better() compares these counts. Shares hide them if the number of operations changes.
  table.add({"operations left to the CPU", print_left(report.before), print_left(report.after)});
  out("{}{}", table.print(), why_claims_differ(report.before, report.after));
  if (report.is_copy) {
    out("{}\n", why_copied(report));
  } else {
    if (is_slower(report.after, report.before))
      out("the whole network is predicted to be slower on {}\n", report.device);
    out("outputs differ on the CPU kernels: {}\n", print_difference(report.difference));
  }
  out("written to {}\n", printable(options.output));
}

void print_json(const Options& options, const Report& report) {
  nlohmann::json rewrites = nlohmann::json::array();
  for (const passes::Rewrite& one : report.is_copy ? std::vector<passes::Rewrite>() : report.rewrites)
    rewrites.push_back({{"op", one.source}, {"pass", one.pass}, {"absorbed", one.absorbed}, {"text", one.text}});
  const Difference& off = report.difference;
  out_report({{"model", options.model},
              {"device", report.device},
              {"file", options.output},
              {"copy", report.is_copy},
              {"rewrites", rewrites},
              {"approximations", report.approximations},
              {"before", to_json(report.before)},
              {"after", to_json(report.after)},
              {"values", off.values},
              {"differing", off.differing},
              {"largest_difference", off.largest},
              {"mean_difference", off.values == 0 ? 0 : off.sum / static_cast<double>(off.values)}});
}

// Reports the unchanged model.
void give_back(Report& report) {
  report.is_copy = true;
  report.after = report.before;
  report.approximations.clear();
  report.difference = {.values = report.difference.values};
}

Result<void> fix(const Options& options, Outcome& outcome) {
  SK_TRY(check_no_onnx(options.model, "fix", "ONNX files are rewritten as they are read"));
  SK_TRY(check_apart({{"MODEL", options.model}}, {{"--output", options.output}}));
  SK_TRY_ASSIGN(const Bytes given, read_file(options.model));
  SK_TRY_ASSIGN(ir::Graph model, tflite::import(given, options.model));
  SK_TRY_ASSIGN(const Bytes file, tflite::flat_file(given, model).with_context(options.model));
  if (file != given) SK_TRY_INTO(model, tflite::import(file, options.model));
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  if (target.driver == nullptr)
    return error(ErrorCode::invalid_argument,
                 "--device {}: the CPU runs models as they are; name an NPU (see skillet devices)", options.device);
  SK_TRY(check_place(options.output));
  // The written model is compared with the original, on the CPU.
  if (auto runs = ref::Interpreter::create(model); !runs.ok())
    return std::move(runs).error().with_context(options.model);
  outcome.begin();
  const Progress progress(fmt::format("fixing for {}", target.name));
  Report report{.device = target.name};
  SK_TRY_ASSIGN(const ir::Graph graph, fixed(model, target, options, report));
  SK_TRY_ASSIGN(Bytes written, tflite::rewrite_file(file, model, graph));
  SK_TRY_ASSIGN(const ir::Graph again, tflite::import(written, options.output));  // as other programs read it
  SK_TRY_ASSIGN(report.before, place(target, model, session_options(options)));
  SK_TRY_ASSIGN(report.after, place(target, again, session_options(options)));
  SK_TRY_ASSIGN(report.difference, difference(model, again));
  if (report.approximations.empty() && report.difference.differing != 0)
    return error(ErrorCode::internal, "the passes changed results ({}): nothing is written",
                 print_difference(report.difference));
  const bool is_changed = !report.rewrites.empty() || !report.approximations.empty();
  const bool is_gain = is_better(report.after, report.before);
  report.is_refused = is_changed && is_gain && is_slower(report.after, report.before) && !options.always;
  if (!is_changed || report.is_refused || !(options.always || is_gain)) give_back(report);
  SK_TRY(write_file(options.output, report.is_copy ? given : written));
  if (options.json)
    print_json(options, report);
  else
    print_text(options, report);
  return {};
}

}  // namespace

void add_fix(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb(
      "fix",
      "Rewrite the model: operations that a chip takes replace those that it does not take.\n"
      "If nothing is gained, the file is a copy. Results on the CPU kernels stay the same bit by bit, except with\n"
      "--approximate. TensorFlow Lite's optimized kernels may differ by 1 from its reference kernels, in the\n"
      "model and in the new file (docs/models.md).\n"
      "Example: skillet fix models/digits.tflite -o fixed.tflite --device sim:a311d");
  verb.option("MODEL", options->model, "a .tflite file").required();
  verb.option("-o,--output", options->output, "file to write").required().check(not_empty());
  verb.option("--device", options->device, kDeviceHelp).required().variable(kDeviceVariable);
  verb.flag("--approximate", options->approximate,
            "also rewrites that change results: weights with a scale per channel share scales (docs/models.md)");
  verb.flag("--always", options->always,
            "write all rewrites, even if the device gains nothing: for runtimes that rewrite nothing themselves");
  add_unproven(verb, options->session);
  add_partition(verb, options->session);
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, &outcome] { outcome.finish(fix(*options, outcome)); });
}

}  // namespace skillet::tools
