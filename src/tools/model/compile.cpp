// `skillet compile`: writes the device programs of a model as files or as text, without running them.
#include "compile/compile.h"

#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
#include "compile/report.h"
#include "compile/tune.h"
#include "graph/ref/ref.h"
#include "npu/driver.h"
#include "program/program.h"
#include "runtime/cost_model.h"
#include "runtime/costs.h"
#include "runtime/program_cache.h"
#include "runtime/session.h"
#include "runtime/session_keys.h"
#include "runtime/tuned_driver.h"
#include "sim/timing.h"
#include "tools/cli/input_flags.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/model/model.h"
#include "tools/run/apart.h"
#include "tools/show/progress.h"
#include "tools/show/text_table.h"
#include "tools/time/npu_use.h"
#include "tools/time/program_timing.h"

namespace skillet::tools {
namespace {

// The choices of `tuned` for each operation of a part, their predicted savings, and their evidence.
struct Explanation {
  compile::Tuned tuned;
  std::vector<compile::OperationCost> proven;  // by op of the part, like OperationCosts of `tuned`
};

using compile::OperationCost;

std::string choices_text(const std::vector<npu::Choice>& choices, ir::OpId op) {
  std::vector<std::string> out;
  for (const npu::Choice& one : choices)
    if (one.op == op) out.push_back(fmt::format("{} {}", one.name, one.value));
  return out.empty() ? "-" : fmt::format("{}", fmt::join(out, ", "));
}

std::vector<std::string> row_of(std::string op, std::string choices, const OperationCost& before,
                                const OperationCost& after) {
  const auto pair = [](const std::string& a, const std::string& b) { return a == b ? a : a + " -> " + b; };
  const auto ms = [](double us) { return fmt::format("{:.3f}", us / 1000); };
  const auto bytes = [](double n) { return fmt::format("{:.0f}", n / 1000); };
  return {std::move(op),
          std::move(choices),
          pair(ms(before.device_us), ms(after.device_us)),
          pair(ms(before.wall_us()), ms(after.wall_us())),
          pair(bytes(before.dram_bytes), bytes(after.dram_bytes)),
          pair(fmt::format("{}", before.tasks), fmt::format("{}", after.tasks))};
}

Result<Explanation> explain_tuning(const npu::Driver& driver, const npu::Chip& chip, const ir::Graph& part,
                                   const npu::CompileOptions& options, const compile::ProgramCosts& program_costs) {
  npu::CompileOptions proven = options;
  proven.tuning = npu::Tuning::proven;
  proven.switches.clear();
  proven.choices.clear();
  Explanation out;
  SK_TRY_ASSIGN(const npu::Program program, driver.compile(chip, part, proven));
  SK_TRY_ASSIGN(out.proven, compile::operation_costs(program, part, program_costs));
  SK_TRY_ASSIGN(out.tuned, compile::tune(driver, chip, part, options, program_costs));
  return out;
}

// `op_map`: maps ops of the part to those of the model.
std::string print_explanation(const Explanation& explanation, const ir::Graph& part,
                              const std::vector<ir::OpId>& op_map, const npu::Driver& driver, const sim::Clock& clock) {
  const compile::Tuned& tuned = explanation.tuned;
  TextTable table({"model op", "chosen", "device ms", "wall ms", "DRAM kB", "tasks"});
  for (size_t i = 0; i < part.ops.size(); ++i)
    table.add(row_of(fmt::format("{} {}", op_map.at(i), ir::op_kind_name(part.ops[i].kind)),
                     choices_text(tuned.choices, static_cast<ir::OpId>(i)), explanation.proven[i], tuned.after[i]));
  table.add(row_of("all", fmt::format("of {} programs", tuned.tried), compile::sum_of(explanation.proven),
                   compile::sum_of(tuned.after)));
  std::string text = table.print_wrapped();
  std::set<std::string> names;
  for (const npu::Choice& one : tuned.choices) names.insert(one.name);
  for (const npu::TuningSwitch& row : driver.switches()) {
    const bool on = row.since == npu::Tuning::tuned;
    if (on || names.contains(std::string(row.name)))
      text += wrapped(fmt::format("  {}: {}", row.name, row.reason), 4) + "\n";
  }
  return text + fmt::format("  proven -> tuned, simulated{}: nothing was measured (docs/timing.md)\n", at_clock(clock));
}

struct Options {
  std::string model, device, output;
  tflite::ImportOptions import_as;
  bool text = false, json = false, report = false, explain = false;
  bool explain_partition = false;
  SessionFlags session;
};

// One program of an NPU part of the model.
struct Compiled {
  std::string title, note;
  npu::Program program;
  std::vector<ir::OpId> op_map;  // op of the part -> op of the model
  double ms = 0;
  std::string explanation;                // with --explain
  std::vector<npu::Compression> weights;  // with --report
};

// Facts about the whole model on one device.
struct Told {
  std::string device;
  compile::ModelUse use;
  std::vector<passes::Rewrite> rewrites;  // changes by the passes
  size_t npu_parts = 0;
  std::string partition;         // with --explain-partition: the alternatives
  bool may_be_nothing = false;   // there is a file, and it has programs for other devices too
  std::optional<Error> nothing;  // then: why there is no program
};

struct Sizes {
  uint64_t constant_bytes = 0, scratch_bytes = 0, on_chip_bytes = 0, command_bytes = 0, macs = 0;
};

// The op of the model that a device operation belongs to; -1: inserted by the compiler.
ir::OpId model_op(const Compiled& part, const npu::OperationInfo& operation) {
  return operation.op < 0 ? -1 : part.op_map.at(static_cast<size_t>(operation.op));
}

Sizes sizes(const npu::Program& program) {
  Sizes out;
  for (const npu::Buffer& buffer : program.buffers)
    (buffer.is_constant() ? out.constant_bytes : out.scratch_bytes) += buffer.size_bytes;
  for (const npu::Job& job : program.jobs) {
    out.on_chip_bytes = std::max(out.on_chip_bytes, job.sram_bytes);
    for (const npu::ByteRange& range : job.commands) out.command_bytes += range.size_bytes;
  }
  for (const npu::OperationInfo& operation : program.operations) out.macs += operation.macs;
  return out;
}

// Maps ops to their indices in the model file.
std::vector<ir::OpId> sources_of(const ir::Graph& graph, const std::vector<ir::OpId>& ops) {
  std::vector<ir::OpId> out;
  for (const ir::OpId op : ops) out.push_back(graph.op(op).source_index);
  return out;
}

Result<std::string> explain(const runtime::Target& target, const runtime::SessionOptions& session,
                            const ir::Graph& part, const std::vector<ir::OpId>& op_map) {
  npu::CompileOptions options = session.compile;
  const auto measured = runtime::measured_parameters(target.chip, target.trust.get());
  SK_TRY_ASSIGN(const compile::ProgramCosts program_costs, runtime::timing_costs(target.chip, measured));
  SK_TRY_ASSIGN(const Explanation found, explain_tuning(*target.driver, target.chip, part, options, program_costs));
  return print_explanation(found, part, op_map, *target.driver, clock_of(target.chip.name, measured));
}

// Operations that neither an NPU nor the CPU can compute: a file with such operations can be shown, but not run.
struct Nowhere {
  const ir::Graph* model = nullptr;      // null: no report
  std::map<int32_t, std::string> asked;  // by index in the model: why the CPU has no kernel; empty: it has one
  std::map<int32_t, std::string> ops;    // those that an NPU does not take either
  std::vector<std::string> devices;      // the devices of these NPUs
};

// Call only for operations that an NPU does not take: making a kernel packs its weights.
const std::string& why_no_kernel(Nowhere& nowhere, int32_t source) {
  const auto [found, is_new] = nowhere.asked.try_emplace(source);
  const std::vector<ir::Op>& ops = nowhere.model->ops;
  for (size_t i = 0; is_new && i < ops.size(); ++i) {
    if (ops[i].source_index != source) continue;
    const auto kernel = ref::prepare(*nowhere.model, static_cast<ir::OpId>(i));
    if (!kernel.ok()) found->second = kernel.error().message;
  }
  return found->second;
}

void add_device(Nowhere& nowhere, const compile::Compiled& compiled, const std::string& device, compile::Words words) {
  if (nowhere.model == nullptr) return;
  bool is_any = false;
  auto rows = compile::rows(compiled);
  compile::put_in_words(words, rows);
  for (const compile::OpRow& row : rows) {
    if (row.on_npu) continue;
    const std::string& why = why_no_kernel(nowhere, row.source);
    if (why.empty()) continue;
    nowhere.ops.emplace(row.source, fmt::format("{}: {}", row.kind, why));
    is_any = true;
  }
  if (is_any) nowhere.devices.push_back(device);
}

void warn_of_nowhere(const Nowhere& nowhere, const std::string& output, size_t devices) {
  if (nowhere.ops.empty()) return;
  const std::string where =
      nowhere.devices.size() == devices ? "" : fmt::format(" on {}", fmt::join(nowhere.devices, ", "));
  log::warning("{} cannot be run{}: {} can run nowhere; the first is {}", printable(output), where,
               counted(nowhere.ops.size(), "operation"), nowhere.ops.begin()->second);
}

Result<std::vector<Compiled>> compile_parts(const Options& options, const runtime::Target& target, ir::Graph graph,
                                            Outcome& outcome, Told& told, runtime::CompiledModel& file,
                                            Nowhere& nowhere) {
  runtime::SessionOptions session = session_options(options.session);
  session.programs = std::make_shared<runtime::ProgramStore>();
  if (options.explain_partition) session.partition = compile::PartitionBy::predicted;
  SK_TRY(runtime::check_tuning_file(target, options.session.tuning_file));
  const Progress progress(fmt::format("compiling for {}", target.name));
  auto made = runtime::compile_for(target, std::move(graph), session);
  outcome.begin_with(made);
  SK_TRY_ASSIGN(compile::Compiled compiled, std::move(made));
  told.use = compile::model_use(compiled);
  add_device(nowhere, compiled, target.name, words_of(options.model));
  told.npu_parts = compile::npu_parts(compiled);
  told.rewrites = std::move(compiled.rewrites);
  SK_TRY_ASSIGN(auto programs, session.programs->programs_of(compiled));
  std::ranges::move(programs, std::back_inserter(file.programs));
  if (options.explain_partition)
    told.partition =
        fmt::format("simulated{}\n{}",
                    at_clock(clock_of(target.chip.name, runtime::measured_parameters(target.chip, target.trust.get()))),
                    compile::print_offload(compiled));
  std::vector<Compiled> out;
  size_t index = 0;
  for (compile::Part& part : compiled.parts) {
    std::string note = part.note;
    for (const compile::PartProgram& one : compile::programs(part)) {
      out.push_back({.title = fmt::format("part {}{}", index, one.band),
                     .note = std::exchange(note, {}),
                     .program = std::move(*one.program),
                     .op_map = sources_of(compiled.graph, part.partition.op_map),
                     .ms = part.compile_ms});
      if (options.explain)
        SK_TRY_INTO(out.back().explanation, explain(target, session, *one.graph, part.partition.op_map));
      if (!options.report) continue;
      SK_TRY_ASSIGN(out.back().weights, target.driver->compression(target.chip, *one.graph, session.compile));
    }
    index += part.partition.on_npu ? 1 : 0;
  }
  if (out.empty() && !(is_left_to_cpu(compiled) && options.output.empty())) {
    Error why = nothing_on_npu(compiled, target.name, options.model);
    if (!told.may_be_nothing) return why;
    told.nothing = std::move(why);
  }
  return out;
}

void print_text(const Compiled& part, const std::string& device) {
  const Sizes size = sizes(part.program);
  out("{} for {}: {} device operations, {} jobs, compiled in {}\n", part.title, device, part.program.operations.size(),
      part.program.jobs.size(), print_ms(part.ms));
  if (!part.note.empty()) out("  {}\n", part.note);
  TextTable table({"device operation", "model op", "MACs"});
  for (const npu::OperationInfo& operation : part.program.operations)
    table.add({operation.kind, operation.op < 0 ? "inserted" : fmt::format("{}", model_op(part, operation)),
               operation.macs ? print_count(operation.macs) : "-"});
  out("{}", table.print());
  out("  commands {}, constants {}, working memory {}, {} MACs\n", print_bytes(size.command_bytes),
      print_bytes(size.constant_bytes), print_bytes(size.scratch_bytes), print_count(size.macs));
  out("\n");
}

std::vector<std::string> weight_row(std::string name, const std::string& op, const npu::Compression& c) {
  std::vector<std::string> row = {std::move(name), op};
  for (const uint64_t bytes : {c.raw, c.recorded, c.tuned, c.format, c.entropy})
    row.push_back(bytes == 0 ? "-" : print_count(bytes));
  return row;
}

void print_report(const Compiled& part) {
  TextTable table({"weights, bytes", "model op", "raw", "recorded", "tuned", "format's bound", "entropy"});
  npu::Compression sum;
  for (const npu::Compression& c : part.weights) {
    table.add(weight_row(c.kind, c.op < 0 ? "-" : fmt::format("{}", part.op_map.at(static_cast<size_t>(c.op))), c));
    sum.raw += c.raw;
    sum.recorded += c.recorded;
    sum.tuned += c.tuned;
    sum.format += c.format;
    sum.entropy += c.entropy;
  }
  table.add(weight_row("all", "", sum));
  out("{}\n", table.print());
}

nlohmann::json weights_json(const Compiled& part) {
  nlohmann::json rows = nlohmann::json::array();
  for (const npu::Compression& c : part.weights)
    rows.push_back({{"op", c.op < 0 ? -1 : part.op_map.at(static_cast<size_t>(c.op))},
                    {"kind", c.kind},
                    {"raw", c.raw},
                    {"recorded", c.recorded},
                    {"tuned", c.tuned},
                    {"format", c.format},
                    {"entropy", c.entropy}});
  return rows;
}

nlohmann::json to_json(const Compiled& part, const Options& options) {
  const Sizes size = sizes(part.program);
  nlohmann::json operations = nlohmann::json::array();
  for (const npu::OperationInfo& operation : part.program.operations)
    operations.push_back({{"op", model_op(part, operation)}, {"kind", operation.kind}, {"macs", operation.macs}});
  nlohmann::json out = {{"title", part.title},
                        {"note", part.note},
                        {"ops", part.op_map},
                        {"jobs", part.program.jobs.size()},
                        {"compile_ms", part.ms},
                        {"file", options.output},
                        {"command_bytes", size.command_bytes},
                        {"constant_bytes", size.constant_bytes},
                        {"scratch_bytes", size.scratch_bytes},
                        {"on_chip_bytes", size.on_chip_bytes},
                        {"macs", size.macs},
                        {"weights", weights_json(part)},
                        {"operations", std::move(operations)}};
  if (options.explain) out["explanation"] = part.explanation;
  return out;
}

nlohmann::json rewrites_json(const std::vector<passes::Rewrite>& rewrites) {
  nlohmann::json rows = nlohmann::json::array();
  for (const passes::Rewrite& one : rewrites)
    rows.push_back({{"op", one.source}, {"pass", one.pass}, {"absorbed", one.absorbed}, {"text", one.text}});
  return rows;
}

Result<void> check_explained(const Options& options, const runtime::Target& target) {
  const std::string& partition = options.session.partition;
  if (!partition.empty() && partition != "predicted")
    return error(ErrorCode::invalid_argument,
                 "--explain-partition shows what is compared by predicted time; --partition {} compares nothing",
                 partition);
  SK_TRY(runtime::timing_cost_model(target.chip));
  return {};
}

// Splits a list of devices. A name may contain commas: sim:rk3588,quirk=NAME.
std::vector<std::string> devices_in(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream pieces(list);
  for (std::string piece; std::getline(pieces, piece, ',');) {
    if (!out.empty() && piece.find('=') != std::string::npos)
      out.back() += "," + piece;
    else
      out.push_back(piece);
  }
  return out;
}

// A chip's name alone means a chip that need not be present.
Result<std::vector<runtime::Target>> open_targets(const Options& options) {
  std::vector<runtime::Target> out;
  for (const std::string& name : devices_in(options.device)) {
    const bool is_chip = npu::find_chip(name).ok();
    SK_TRY_ASSIGN(runtime::Target target, runtime::open_target(is_chip ? "null:" + name : name));
    if (is_chip) target.name = name;
    if (target.driver == nullptr)
      return error(ErrorCode::invalid_argument,
                   "--device {}: nothing is compiled for the CPU; name an NPU (see skillet devices)", name);
    if (options.explain_partition) SK_TRY(check_explained(options, target));
    out.push_back(std::move(target));
  }
  if (out.size() > 1 && options.json)
    return error(ErrorCode::invalid_argument, "--json: for one device, not {}", options.device);
  return out;
}

void print_parts(const Options& options, const std::vector<Compiled>& parts, const Told& told) {
  if (parts.empty())
    out("all of {} stays on the CPU,\nwhich is predicted to be faster; --partition all compiles what {} takes\n",
        printable(options.model), told.device);
  else
    out("{} on the NPU of {}\n", compile::print(told.use), told.device);
  for (const Compiled& part : parts) {
    print_text(part, told.device);
    if (options.report) print_report(part);
    if (options.explain) out("{}\n", part.explanation);
    if (options.text) out("{}\n", npu::print(part.program));
  }
}

void print_json(const Options& options, const std::vector<Compiled>& parts, const Told& told) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Compiled& part : parts) rows.push_back(to_json(part, options));
  nlohmann::json report = {{"model", options.model},
                           {"device", told.device},
                           {"parts", rows},
                           {"partition", told.partition},
                           {"rewrites", rewrites_json(told.rewrites)}};
  add_json(report, told.use);
  out_report(std::move(report));
}

// Lines of deciding_options() that differ from the default.
std::vector<std::string> unusual_options(const std::string& all) {
  const std::string usual = "\n" + runtime::deciding_options(session_options({}));
  std::vector<std::string> out;
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);)
    if (usual.find(fmt::format("\n{}\n", line)) == std::string::npos) out.push_back(line);
  return out;
}

Result<void> compile(const Options& options, Outcome& outcome) {
  SK_TRY(check_apart({{"MODEL", options.model}, {"--tuning-file", options.session.tuning_file}},
                     {{"--output", options.output}}));
  SK_TRY_ASSIGN(const std::vector<runtime::Target> targets, open_targets(options));
  for (const runtime::Target& target : targets) complain_of_cores(options.session, target);
  if (!options.output.empty()) SK_TRY(check_place(options.output));
  runtime::CompiledModel file;
  SK_TRY_ASSIGN(file.graph, import_model(options.model, options.import_as));
  const compile::Words words = words_of(options.model);
  file.note = note_for(words);
  size_t parts_of_all = 0;
  std::optional<Error> nothing;
  Nowhere nowhere{.model = options.output.empty() ? nullptr : &file.graph};
  for (const runtime::Target& target : targets) {
    Told told{.device = target.name, .may_be_nothing = targets.size() > 1 && !options.output.empty()};
    auto compiled = compile_parts(options, target, file.graph, outcome, told, file, nowhere);
    compile::put_in_words(words, told.rewrites);
    if (!options.json && !told.rewrites.empty()) out("{}\n", compile::print(told.rewrites));
    if (!options.json && !told.partition.empty()) out("{}\n", wrapped_lines(told.partition, 7));
    SK_TRY_ASSIGN(const std::vector<Compiled> parts, std::move(compiled));
    parts_of_all += told.npu_parts;
    if (told.nothing) {
      log::warning("{}; {} has no program for {}", told.nothing->message, printable(options.output), target.name);
      nothing = std::move(told.nothing);
      continue;
    }
    options.json ? print_json(options, parts, told) : print_parts(options, parts, told);
  }
  if (options.output.empty()) return {};
  if (nothing && parts_of_all == 0) return *std::move(nothing);
  file.options = runtime::deciding_options(session_options(options.session));
  SK_TRY_ASSIGN(const Bytes bytes, runtime::save_compiled(file));
  SK_TRY(write_file(options.output, bytes));
  warn_of_nowhere(nowhere, options.output, targets.size());
  if (!options.json)
    out("written to {}: the model, and {} of {} for {}\n", printable(options.output),
        counted(file.programs.size(), "program"), counted(parts_of_all, "part"), file.chips());
  const std::vector<std::string> other = unusual_options(file.options);
  if (!options.json && !other.empty()) out("compiled with {}: runs without it compile again\n", fmt::join(other, ", "));
  return {};
}

}  // namespace

void add_compile(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb =
      app.verb("compile",
               "Compile the NPU parts of a model; -o writes a file for run, bench, check and decode, --text prints\n"
               "all of it.\n"
               "Examples:\n"
               "  skillet compile models/digits.tflite --device sim:a311d --text\n"
               "  skillet compile models/digits.tflite --device CHIP,CHIP -o digits.skp");
  verb.option("MODEL", options->model, kModelHelp).required();
  add_import(verb, options->import_as);
  verb.option("--device", options->device,
              fmt::format("{};\n"
                          "or chips, which need not be present: CHIP,CHIP",
                          kDeviceHelp))
      .required()
      .variable(kDeviceVariable);
  verb.option("-o,--output", options->output, "file to write: the model and its programs, for all of these devices")
      .check(not_empty());
  add_session(verb, options->session, Tunings::recorded_too);
  const Option text = verb.flag("--text", options->text, "print buffers, jobs, command words and relocations");
  verb.flag("--report", options->report,
            "per device operation: bytes of weights raw, as coded by recorded drivers, at the format's minimum, that "
            "without padding, and the bound for any code of single bytes");
  verb.flag("--explain", options->explain,
            "per operation of the model: what the tuning chose, the predicted saving against proven, and its grounds");
  verb.flag("--explain-partition", options->explain_partition,
            "divide the model by predicted time, copies included, and show the compared alternatives");
  verb.flag("--json", options->json, "machine-readable summary").excludes(text);
  verb.runs([options, &outcome] { outcome.finish(compile(*options, outcome)); });
}

}  // namespace skillet::tools
