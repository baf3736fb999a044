// `skillet bug`: packs what a report of a fault needs. What cannot be had is said in the report; packing goes on.
#include <filesystem>

#include "base/log.h"
#include "driver/driver.h"
#include "runtime/bug_report.h"
#include "tools/diagnose.h"
#include "tools/model.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string model, output, device = "auto", tuning = "proven", per_channel = "exact", note;
  bool allow_unproven = false, without_model = false;
};

runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions out;
  out.compile.tuning = *driver::tuning_from_name(options.tuning);
  out.compile.allow_unproven = options.allow_unproven;
  out.compile.per_channel = *driver::per_channel_from_name(options.per_channel);
  return out;
}

std::string findings() {
  std::string text = "\nskillet doctor\n";
  for (const Finding& finding : diagnose(gather_facts())) text += fmt::format("  {}: {}\n", finding.id, finding.what);
  return text;
}

// The graph, what the compiler made of it, and why not more.
Result<void> add_compiled(const Options& options, const runtime::Target& target, runtime::BugReport& report) {
  SK_TRY_ASSIGN(ir::Graph graph, import_model(options.model));
  report.files.emplace_back("graph.txt", text_bytes(ir::print(graph)));
  SK_TRY_ASSIGN(compile::Compiled compiled, runtime::compile_for(target, std::move(graph), session_options(options)));
  report.text += "\n" + compile::print(compiled);
  for (size_t i = 0; i < compiled.parts.size(); ++i) {
    for (const compile::PartProgram& one : compile::programs(compiled.parts[i])) {
      const std::string name = fmt::format("part{}{}", i, one.band);
      runtime::add_part(report, name, *one.graph, one.program);
      SK_TRY_ASSIGN(Bytes program, driver::serialise(*one.program, true));
      report.files.emplace_back(name + ".program", std::move(program));
    }
  }
  return {};
}

Result<void> bug(const Options& options, Outcome& outcome) {
  SK_TRY(check_place(options.output));
  SK_TRY_ASSIGN(Bytes model, read_file(options.model));
  SK_TRY_ASSIGN(const runtime::Target target, runtime::open_target(options.device));
  outcome.begin();
  runtime::BugReport report{
      .text = fmt::format("skillet   {}\nmodel     {}, {} bytes\n{}", SKILLET_VERSION, options.model, model.size(),
                          runtime::describe_environment(target, session_options(options))),
      .files = {}};
  if (!options.note.empty()) report.text += "note      " + options.note + "\n";
  if (const auto added = add_compiled(options, target, report); !added.ok())
    report.text += "\nerror: " + added.error().message + "\n";
  report.text += findings();
  if (!options.without_model) report.files.emplace_back("model.tflite", std::move(model));
  SK_TRY(write_file(options.output, report.pack()));
  out("{}: report.txt and {} more files (tar tf lists them). Please look through it before you send it{}\n",
      options.output, report.files.size(), options.without_model ? "." : ": the model is in it (--without-model).");
  return {};
}

}  // namespace

void add_bug(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "bug",
      "Pack what a report of a fault needs into one file: versions, device, options, graph, programs\n"
      "and the model. Nothing is sent anywhere.\n"
      "Example: skillet bug models/digits.tflite --device sim:a311d -o bug.tar");
  verb->add_option("MODEL", options->model, "a .tflite file")->required();
  verb->add_option("-o,--output", options->output, "file to write, a tar archive")->check(not_empty())->required();
  verb->add_option("--device", options->device, kDeviceHelp)->capture_default_str();
  verb->add_option("--note", options->note, "what went wrong, in your words");
  verb->add_option("--tuning", options->tuning, "as in run")
      ->capture_default_str()
      ->check(CLI::IsMember(driver::kTuningNames));
  verb->add_flag("--allow-unproven", options->allow_unproven, kAllowUnprovenHelp)->envname(kAllowUnprovenVariable);
  verb->add_option("--per-channel", options->per_channel, kPerChannelHelp)
      ->capture_default_str()
      ->check(CLI::IsMember(driver::kPerChannelNames))
      ->envname(kPerChannelVariable);
  verb->add_flag("--without-model", options->without_model, "leave the model file, and so its weights, out");
  verb->callback([options, &outcome] { outcome.finish(bug(*options, outcome)); });
}

}  // namespace skillet::tools
