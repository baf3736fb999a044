// `skillet bug`: packs files for a bug report. A file that is not available is noted in the report; packing continues.
#include <filesystem>

#include "base/log.h"
#include "base/text.h"
#include "graph/import/import.h"
#include "npu/driver.h"
#include "runtime/bug_report.h"
#include "runtime/tuned_driver.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/machine/diagnose.h"
#include "tools/model/model.h"
#include "tools/run/apart.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string model, output, device = "auto", note;
  SessionFlags session;
  bool without_model = false;
};

std::string findings() {
  std::string text = "\nskillet doctor\n";
  for (const Finding& finding : diagnose(gather_facts())) text += fmt::format("  {}: {}\n", finding.id, finding.what);
  return text;
}

// Adds the graph, the compiled parts, and why the rest is not compiled.
Result<void> add_compiled(const Options& options, const Bytes& model, const runtime::Target& target,
                          runtime::BugReport& report) {
  SK_TRY_ASSIGN(ir::Graph graph, tflite::import_read(model, options.model));
  report.files.emplace_back("graph.txt", text_bytes(ir::print(graph)));
  SK_TRY_ASSIGN(compile::Compiled compiled,
                runtime::compile_for(target, std::move(graph), session_options(options.session)));
  report.text += "\n" + compile::print(compiled);
  for (size_t i = 0; i < compiled.parts.size(); ++i) {
    for (const compile::PartProgram& one : compile::programs(compiled.parts[i])) {
      const std::string name = fmt::format("part{}{}", i, one.band);
      SK_TRY(runtime::add_part(report, name, *one.graph, *one.program, !options.without_model));
    }
  }
  return {};
}

Result<void> bug(const Options& options, Outcome& outcome) {
  SK_TRY(check_apart({{"MODEL", options.model}, {"--tuning-file", options.session.tuning_file}},
                     {{"--output", options.output}}));
  SK_TRY(check_no_onnx(options.model, "bug", ""));
  SK_TRY(check_place(options.output));
  SK_TRY_ASSIGN(Bytes model, read_file(options.model));
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  complain_of_cores(options.session, target);
  SK_TRY(runtime::check_tuning_file(target, options.session.tuning_file));
  Bytes choices;
  if (!options.session.tuning_file.empty()) SK_TRY_INTO(choices, read_file(options.session.tuning_file));
  outcome.begin();
  runtime::BugReport report{
      .text = fmt::format("model     {}, {} bytes\n{}", printable(options.model), model.size(),
                          runtime::describe_environment(target, session_options(options.session))),
      .files = {}};
  if (!options.note.empty()) report.text += "note      " + printable(options.note, true) + "\n";
  const Result<void> added = add_compiled(options, model, target, report);
  if (!added.ok()) report.text += "\nerror: " + printable(added.error().message) + "\n";
  report.text += findings();
  if (!choices.empty()) report.files.emplace_back("tuning.json", std::move(choices));
  if (!options.without_model) report.files.emplace_back("model.tflite", std::move(model));
  SK_TRY(write_file(options.output, report.pack()));
  out("{}: report.txt and {} more files (tar tf lists them). Please look through it before you send it{}\n",
      printable(options.output), report.files.size(),
      options.without_model ? "." : ": the model is in it (--without-model).");
  // This error may be the reported bug.
  if (!added.ok())
    complain(fmt::format("the report contains this, and nothing else of the model: {}", added.error().message));
  return {};
}

}  // namespace

void add_bug(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("bug",
                             "Write one file for a bug report: versions, device, options, graph, programs\n"
                             "and the model. Nothing is sent anywhere.\n"
                             "Example: skillet bug models/digits.tflite --device sim:a311d -o bug.tar");
  verb.option("MODEL", options->model, "a .tflite file").required();
  verb.option("-o,--output", options->output, "file to write, a tar archive").check(not_empty()).required();
  verb.option("--device", options->device, kDeviceHelp).shows_default().variable(kDeviceVariable);
  verb.option("--note", options->note, "what went wrong, in your words").may_be_empty();
  add_session(verb, options->session, Tunings::recorded_too);
  verb.flag("--without-model", options->without_model,
            "leave out the model file, and programs, which contain its weights");
  verb.runs([options, &outcome] { outcome.finish(bug(*options, outcome)); });
}

}  // namespace skillet::tools
