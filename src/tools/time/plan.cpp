// `skillet plan`: predicts times of a model, a list of layers or recorded jobs on each chip, without hardware.
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "capture/frames.h"
#include "runtime/compiled_model.h"
#include "runtime/cost_model.h"
#include "runtime/costs.h"
#include "runtime/device_context.h"
#include "runtime/session.h"
#include "runtime/tuned_driver.h"
#include "sim/timing.h"
#include "tools/cli/input_flags.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/jobs/decoded.h"
#include "tools/model/model.h"
#include "tools/show/text_table.h"
#include "tools/time/chip_plan.h"
#include "tools/time/layer_file.h"
#include "tools/time/layer_graph.h"
#include "tools/time/program_timing.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string model, program = "open", tuning, device;
  tflite::ImportOptions import_as;
  std::vector<std::string> layers, chips, sets;
  SessionFlags session;
  bool json = false;
};

Result<std::vector<sim::ParameterValue>> overrides(const Options& options) {
  std::vector<sim::ParameterValue> values;
  for (const std::string& text : options.sets)
    SK_TRY_INTO(values.emplace_back(), sim::parse_parameter(text).with_context("--set"));
  return values;
}

Result<sim::Jobs> jobs_of(const Options& options) {
  const auto at = std::ranges::find(sim::kJobsNames, options.program);
  if (at == sim::kJobsNames.end())
    return error(ErrorCode::invalid_argument, "--program {}: must be open or vendor", options.program);
  return static_cast<sim::Jobs>(at - sim::kJobsNames.begin());
}

// ---- a model on the chips with a compiler --------------------------------------------------------------------

Result<npu::Tuning> tuning_of(const Options& options, std::string_view otherwise) {
  const auto tuning = npu::tuning_from_name(options.tuning.empty() ? otherwise : options.tuning);
  if (tuning) return *tuning;
  return error(ErrorCode::invalid_argument, "--tuning {}: must be recorded, proven or tuned", options.tuning);
}

// Options that decide the programs. The file is for one chip; null: none.
struct Tuned {
  npu::Tuning tuning = npu::Tuning::proven;
  std::shared_ptr<const compile::TuningFile> file;
};

// Parameters measured on the device named by the options, if any.
struct Known {
  std::shared_ptr<runtime::Trust> trust;
  std::vector<sim::ParameterValue> measured;
  std::vector<sim::ParameterValue> values;  // the measured ones, and those of --set
};

Result<compile::Compiled> compile_for(const ir::Graph& graph, const npu::Chip& chip, const Tuned& tuned,
                                      const Options& given, const Known& known) {
  SK_TRY_ASSIGN(const npu::Driver* const driver, npu::driver_of(chip));
  runtime::SessionOptions options = session_options(given.session);
  options.tuning_file.clear();  // already read
  options.compile.tuning = tuned.tuning;
  if (tuned.file && tuned.file->chip == chip.name) options.tuning = tuned.file;
  return runtime::compile_for({.name = chip.name, .chip = chip, .driver = driver, .trust = known.trust}, graph,
                              options);
}

Result<ChipPlan> plan_chip(const ir::Graph& graph, const std::string& name, const Tuned& tuned, const Options& options,
                           const Known& known) {
  ChipPlan plan{.chip = name};
  const std::span<const sim::ParameterValue> values = known.values;
  const auto timer = sim::create_timer(name, sim::Jobs::open, values);
  const auto chip = npu::find_chip(name);
  if (!timer.ok() || !chip.ok()) {
    plan.refusal = !timer.ok() ? timer.error().message : chip.error().message;
    return plan;
  }
  SK_TRY_ASSIGN(const compile::Compiled compiled, compile_for(graph, *chip, tuned, options, known));
  for (const compile::Part& part : compiled.parts) {
    if (!part.program) continue;
    for (const npu::Buffer& buffer : part.program->buffers) plan.memory_bytes += buffer.size_bytes;
  }
  const std::vector<bool> works = compile::works_on_npu(compiled);
  for (size_t i = 0; i < compiled.ops.size(); ++i) {
    const auto id = static_cast<ir::OpId>(i);
    (works[i] ? plan.npu_ops : plan.cpu_ops) += 1;
    if (!compiled.ops[i].on_npu) plan.cpu_us += runtime::cpu_speed(**timer).us(compiled.graph, id);
  }
  SK_TRY_ASSIGN(plan.timing, time_parts(name, compiled.parts, values));
  SK_TRY_ASSIGN(plan.states, time_states(name, compiled.parts, values));
  plan.use = compile::model_use(compiled);
  plan.cpu_alone_us = cpu_alone_us(**timer, graph);
  plan.may_divide = may_divide_by_cores(session_options(options.session));
  plan.nowhere = ops_nowhere(compiled);
  return plan;
}

Result<std::vector<ChipPlan>> plan_chips(const ir::Graph& graph, const std::vector<std::string>& names,
                                         const Tuned& tuned, const Options& options, const Known& known) {
  std::vector<ChipPlan> out;
  for (const std::string& name : names) SK_TRY_INTO(out.emplace_back(), plan_chip(graph, name, tuned, options, known));
  return out;
}

// The requested chips, each once, or all chips with a timing model and boards to buy. Error: unknown chip, or unknown
// parameter of it.
Result<std::vector<std::string>> chips_of(const Options& options, std::span<const sim::ParameterValue> values) {
  const std::vector<std::string_view> timed = sim::timed_chips(sim::Jobs::open);
  std::vector<std::string> out;
  for (const std::string& chip : options.chips) {
    const bool is_timed = std::ranges::find(timed, chip) != timed.end();
    if (!is_timed) SK_TRY(npu::find_chip(chip));
    if (std::ranges::find(out, chip) == out.end()) out.push_back(chip);
  }
  if (out.empty()) {
    for (const std::string_view name : timed) {
      const auto chip = npu::find_chip(name);
      if (!chip.ok() || chip->is_sold) out.emplace_back(name);
    }
  }
  for (const std::string& chip : out)
    if (std::ranges::find(timed, chip) != timed.end()) SK_TRY(sim::create_timer(chip, sim::Jobs::open, values));
  return out;
}

Result<Tuned> tuned_for(const Options& options, npu::Tuning tuning, const std::vector<std::string>& names) {
  std::vector<npu::Chip> chips;
  for (const std::string& name : names)
    if (auto chip = npu::find_chip(name); chip.ok()) chips.push_back(std::move(chip).value());
  Tuned out{.tuning = tuning, .file = nullptr};
  SK_TRY_ASSIGN(out.file, runtime::tuning_file_for(options.session.tuning_file, chips));
  return out;
}

Result<Known> known_of(Options& options) {
  Known known;
  if (!options.device.empty()) {
    SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
    if (target.driver == nullptr)
      return error(ErrorCode::invalid_argument, "--device {}: it is not an NPU; name one", options.device);
    options.chips = {target.chip.name};
    known.trust = target.trust;
    known.measured = runtime::measured_parameters(target.chip, target.trust.get());
  }
  known.values = known.measured;
  SK_TRY_ASSIGN(const std::vector<sim::ParameterValue> given, overrides(options));
  for (const sim::ParameterValue& one : given) {
    std::erase_if(known.values, [&](const sim::ParameterValue& other) { return other.name == one.name; });
    known.values.push_back(one);
  }
  return known;
}

Result<void> plan_model(Options& options, npu::Tuning tuning, Outcome& outcome) {
  SK_TRY_ASSIGN(const ir::Graph graph, import_model(options.model, options.import_as));
  SK_TRY_ASSIGN(const Known known, known_of(options));
  const npu::MadeFor made = npu::made_for(graph);
  if (options.chips.empty())
    for (const npu::Chip& chip : made.chips) options.chips.push_back(chip.name);
  SK_TRY_ASSIGN(const std::vector<std::string> chips, chips_of(options, known.values));
  SK_TRY_ASSIGN(const Tuned tuned, tuned_for(options, tuning, chips));
  auto planned = plan_chips(graph, chips, tuned, options, known);
  outcome.begin_with(planned);
  SK_TRY_ASSIGN(const std::vector<ChipPlan> plans, std::move(planned));
  const bool timed = std::ranges::any_of(plans, [](const ChipPlan& plan) { return plan.refusal.empty(); });
  if (!timed && !options.json)
    return error(ErrorCode::unsupported, "{}{}", plans[0].refusal,
                 made.accelerator.empty() ? "" : "; the network was compiled for " + made.accelerator);
  if (options.json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const ChipPlan& plan : plans) rows.push_back(json_of(plan));
    out_report({{"model", options.model}, {"chips", rows}, {"measured", json_of(known.measured)}});
  } else {
    print(options.model, plans);
    if (!known.measured.empty()) out("\n{}", print_measured(options.device, known.measured));
  }
  const bool runs = timed && std::ranges::all_of(plans, [](const ChipPlan& plan) { return plan.nowhere == 0; });
  outcome.exit_code = runs ? kFine : kFailed;
  return {};
}

// ---- recorded jobs ---------------------------------------------------------------------------------------------

// An error for options that compile models: jobs of a capture are fixed. Variables of the environment are ignored.
Result<void> check_for_capture(const Options& options) {
  const SessionFlags& flags = options.session;
  struct Row {
    const char* name;
    bool is_there;
  };
  const Row rows[] = {{"--tuning", !options.tuning.empty()},
                      {"--input-shape", !options.import_as.input_shapes.empty()},
                      {"--signature", !options.import_as.signature.empty()},
                      {"--tuning-file", is_given(flags.tuning_file, "SKILLET_TUNING_FILE")},
                      {"--unproven", is_given(flags.unproven, kUnprovenVariable)},
                      {"--per-channel", is_given(flags.per_channel, "SKILLET_PER_CHANNEL", "exact")},
                      {"--partition", is_given(flags.partition, "SKILLET_PARTITION")},
                      {"--host-threads", is_given(flags.host_threads, "SKILLET_HOST_THREADS")},
                      {"--min-macs-per-byte", is_given(flags.min_macs_per_byte, "SKILLET_MIN_MACS_PER_BYTE")}};
  for (const Row& row : rows)
    if (row.is_there)
      return error(ErrorCode::invalid_argument, "{}: only for a model; {} is a capture", row.name, options.model);
  if (options.chips.size() > 1)
    return error(ErrorCode::invalid_argument, "--chip: the jobs of a capture are for one chip");
  return {};
}

Result<void> plan_capture(const Options& options, Outcome& outcome) {
  auto opened = capture::Reader::open(options.model);
  if (!opened.ok() && opened.error().message.ends_with(capture::kNoCapture))
    return error(ErrorCode::malformed, "{}: neither a model, whose name ends with .tflite or .onnx, nor a capture",
                 options.model);
  SK_TRY_ASSIGN(capture::Reader reader, std::move(opened));
  SK_TRY_ASSIGN(const npu::Chip chip,
                chip_of(reader.device(), options.chips.empty() ? std::string() : options.chips[0]));
  SK_TRY(check_for_capture(options));
  SK_TRY_ASSIGN(const std::vector<sim::ParameterValue> values, overrides(options));
  SK_TRY_ASSIGN(const auto timer, sim::create_timer(chip.name, sim::Jobs::open, values));
  outcome.begin();
  const std::string cut_off = reader.cut_off();
  SK_TRY_ASSIGN(const ProgramTiming t, time_capture(*timer, std::move(reader)));
  if (options.json) {
    ChipPlan plan{.chip = chip.name, .timing = t};
    out_report({{"capture", options.model}, {"chips", nlohmann::json::array({json_of(plan)})}});
  } else {
    out("{} on {}: {} on the device, {} with the mainline kernel; {} tasks, {} of DRAM traffic\n",
        printable(options.model), chip.name, print_simulated(t.device_us, t), print_simulated(t.wall_us, t), t.tasks,
        print_bytes(static_cast<uint64_t>(t.read_bytes + t.written_bytes)));
  }
  if (!cut_off.empty()) log::warning("{}", cut_off);
  outcome.exit_code = cut_off.empty() ? kFine : kFailed;
  return {};
}

// ---- lists of layers -------------------------------------------------------------------------------------------

struct LayersTime {
  std::string name, chip;
  bool table = false;
  std::vector<sim::Cost> costs;
  double us = 0, wall_us = 0, error = 0;
  sim::Clock clock;
  size_t left_out = 0;
  nlohmann::json cpu_alone_ms;  // for open programs, by type
};

// Predicted times of the board's CPU for all layers, by element type and by kind of work.
nlohmann::json cpu_times(const sim::Timer& timer, const ir::Graph& graph) {
  nlohmann::json out;
  const compile::CpuSpeed speed = runtime::cpu_speed(timer);
  for (size_t type = 0; type < compile::kCpuTypeNames.size(); ++type) {
    std::array<double, compile::kCpuWorkNames.size()> ms{};
    for (ir::OpId op = 0; op < static_cast<ir::OpId>(graph.ops.size()); ++op)
      ms[static_cast<size_t>(compile::cpu_work_of(graph, op))] +=
          speed.us(graph, op, static_cast<compile::CpuType>(type)) / 1000;
    for (size_t work = 0; work < ms.size(); ++work)
      out[std::string(compile::kCpuTypeNames[type])][std::string(compile::kCpuWorkNames[work])] = ms[work];
  }
  return out;
}

Result<LayersTime> time_layers(const LayerFile& file, const std::string& chip, sim::Jobs jobs, const Options& options) {
  SK_TRY_ASSIGN(const std::vector<sim::ParameterValue> values, overrides(options));
  SK_TRY_ASSIGN(const auto timer, sim::create_timer(chip, jobs, values));
  LayersTime out{.name = file.name,
                 .chip = chip,
                 .table = file.fusion == sim::Fusion::alone,
                 .error = timer->error(),
                 .clock = timer->clock()};
  if (jobs == sim::Jobs::vendor) {
    SK_TRY_ASSIGN(out.costs, timer->time_layers(file.layers, file.fusion));
    out.us = sim::total(out.costs).us;
    return out;
  }
  SK_TRY_ASSIGN(const npu::Tuning tuning, tuning_of(options, "recorded"));
  SK_TRY_ASSIGN(const npu::Chip found, npu::find_chip(chip));
  SK_TRY_ASSIGN(const LayerGraph made, graph_of(file.layers));
  SK_TRY_ASSIGN(const compile::Compiled compiled, compile_for(made.graph, found, {tuning, nullptr}, options, {}));
  SK_TRY_ASSIGN(ProgramTiming timing, time_parts(chip, compiled.parts, values));
  for (const compile::OpPlace& op : compiled.ops) out.left_out += op.on_npu ? 0 : 1;
  out.left_out += made.left_out;
  out.cpu_alone_ms = cpu_times(*timer, made.graph);
  out.us = timing.device_us;
  out.wall_us = timing.wall_us;
  out.costs = std::move(timing.costs);
  return out;
}

// For open programs the wall time, as in the published numbers of such programs.
double shown_us(const LayersTime& time) { return time.wall_us > 0 ? time.wall_us : time.us; }

nlohmann::json json_of(const LayersTime& time, const Options& options) {
  nlohmann::json row = {{"chip", time.chip},
                        {"program", options.program},
                        {"simulated", true},
                        {"clock_mhz", mhz_or_null(time.clock)},
                        {"error", time.error}};
  if (time.table) {
    row["table"] = time.name;
    row["rows"] = nlohmann::json::array();
    for (const sim::Cost& cost : time.costs)
      row["rows"].push_back({{"table", time.name}, {"id", cost.id}, {"us", cost.us}, {"busiest", cost.busiest().unit}});
    return row;
  }
  row["net"] = time.name;
  row["ms"] = shown_us(time) / 1000;
  row["device_ms"] = time.us / 1000;
  row["left_out"] = time.left_out;
  if (!time.cpu_alone_ms.is_null()) row["cpu_alone_ms"] = time.cpu_alone_ms;
  const sim::Totals sum = sim::total(time.costs);
  row["dram_bytes"] = sum.read_bytes + sum.written_bytes;
  return row;
}

void print_rows(const std::vector<LayersTime>& times, const Options& options) {
  bool net = false, table = false;
  for (const LayersTime& time : times) {
    if (time.table) {
      if (!std::exchange(table, true)) out("table,id,us\n");
      for (const sim::Cost& cost : time.costs) out("{},{},{:.1f}\n", time.name, cost.id, cost.us);
      continue;
    }
    if (!std::exchange(net, true)) out("net,chip,ms,program\n");
    out("{},{},{:.3f},{}\n", time.name, time.chip, shown_us(time) / 1000, options.program);
  }
}

// The columns are fixed, so clock and error are printed beside the table.
void print_errors(const std::vector<LayersTime>& times) {
  std::string text;
  for (const LayersTime& time : times) {
    const std::string one = fmt::format("{}{}, +-{:.0f} %", time.chip, at_clock(time.clock), time.error * 100);
    if (text.find(one) == std::string::npos) text += fmt::format("{}{}", text.empty() ? "" : "; ", one);
    if (time.left_out > 0)
      complain(fmt::format("{} on {}: {} layers run on the CPU and are not in the time", time.name, time.chip,
                           time.left_out));
  }
  complain(fmt::format("simulated: {}", text));
}

Result<void> plan_layers(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(const sim::Jobs jobs, jobs_of(options));
  if (options.chips.empty()) return error(ErrorCode::invalid_argument, "--layers needs --chip");
  if (is_given(options.session.tuning_file, "SKILLET_TUNING_FILE"))
    return error(ErrorCode::invalid_argument, "--tuning-file: only for a model, not for --layers");
  std::vector<LayerFile> files;
  for (const std::string& path : options.layers) {
    SK_TRY_ASSIGN(LayerFile file, read_layers(path));
    if (!file.unknown.empty())
      complain(fmt::format("{}: only the bytes of '{}' are known: counted as copies", file.name,
                           fmt::join(file.unknown, "', '")));
    files.push_back(std::move(file));
  }
  std::vector<LayersTime> times;
  for (const std::string& chip : options.chips) {
    for (const LayerFile& file : files) {
      if (jobs == sim::Jobs::open && file.fusion == sim::Fusion::alone)
        return error(ErrorCode::unsupported, "{}: a table of layers describes a vendor's program", file.name);
      auto time = time_layers(file, chip, jobs, options);
      if (!time.ok()) return std::move(time).error().with_context(file.name);
      times.push_back(std::move(time).value());
    }
  }
  outcome.begin();
  if (options.json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const LayersTime& time : times) rows.push_back(json_of(time, options));
    out_report({{"layers", rows}});
  } else {
    print_rows(times, options);
    print_errors(times);
  }
  outcome.exit_code = kFine;
  return {};
}

void list_parameters() {
  nlohmann::json rows = nlohmann::json::array();
  for (const sim::TimingParameter& row : sim::timing_parameters()) {
    nlohmann::json& one = rows.emplace_back(nlohmann::json{{"chip", row.chip},
                                                           {"jobs", row.jobs},
                                                           {"name", row.name},
                                                           {"value", row.value},
                                                           {"unit", row.unit},
                                                           {"mark", row.mark},
                                                           {"source", row.source}});
    if (row.high > 0) one["low"] = row.low, one["high"] = row.high;
  }
  out_report({{"parameters", rows}});
}

Result<void> plan(Options& options, bool parameters, Outcome& outcome) {
  if (parameters) {
    list_parameters();
    outcome.exit_code = kFine;
    return {};
  }
  if (options.model.empty() && options.layers.empty())
    return error(ErrorCode::invalid_argument, "one of MODEL and --layers is needed");
  if (!options.model.empty() && !options.layers.empty())
    return error(ErrorCode::invalid_argument, "{}: use either MODEL or --layers, not both", options.model);
  const auto is_compiled = runtime::is_compiled_model(options.model);
  const bool is_network = is_model(options.model) || (is_compiled.ok() && *is_compiled);
  if (!options.device.empty() && !is_network)
    return error(ErrorCode::invalid_argument, "--device {}: only for a model", options.device);
  if (!options.layers.empty()) return plan_layers(options, outcome);
  if (options.program != "open") return error(ErrorCode::invalid_argument, "--program is for --layers");
  SK_TRY_ASSIGN(const npu::Tuning tuning, tuning_of(options, "proven"));
  return is_network ? plan_model(options, tuning, outcome) : plan_capture(options, outcome);
}

}  // namespace

void add_plan(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  auto parameters = std::make_shared<bool>(false);
  const Verb verb = app.verb(
      "plan",
      "Predict what a model takes on each chip: time with its error, memory traffic, memory. Simulated, runs nothing.\n"
      "Example: skillet plan models/digits.tflite");
  verb.option("MODEL", options->model, "a .tflite or .onnx file, or a capture");
  add_import(verb, options->import_as);
  const auto chip =
      verb.option("--chip", options->chips, "a chip (may be given again); default: all that are timed").one_at_a_time();
  verb.option("--device", options->device,
              "an NPU instead of --chip: uses what `skillet prove --apply` measured on it (docs/prove.md)")
      .excludes(chip);
  verb.option("--tuning", options->tuning,
              "recorded, proven or tuned; default: proven for a model, recorded for --layers");
  add_tuning_file(verb, options->session);
  add_unproven(verb, options->session);
  add_per_channel(verb, options->session);
  add_partition(verb, options->session);
  verb.option("--layers", options->layers, "CSV lists of layers instead of a model: networks, or tables of layers");
  verb.option("--program", options->program, "with --layers: whose program, open or vendor").shows_default();
  verb.option("--set", options->sets, "NAME=NUMBER, another value of a timing parameter (may be given again)")
      .one_at_a_time();
  verb.flag("--parameters", *parameters, "print the timing parameters of all chips, as JSON");
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, parameters, &outcome] { outcome.finish(plan(*options, *parameters, outcome)); });
}

}  // namespace skillet::tools
