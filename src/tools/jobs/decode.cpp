// `skillet decode`: prints the jobs that a captured program sent to the chip, field by field.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "capture/reader.h"
#include "runtime/compiled_model.h"
#include "tools/cli/verbs.h"
#include "tools/jobs/decode_print.h"
#include "tools/jobs/decoded.h"
#include "tools/jobs/diff_side.h"
#include "tools/jobs/edit_text.h"
#include "tools/model/model_ops.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string path, chip, extract, weights, model;
  int submission = -1, last = 0;
  bool json = false, all = false, source = false, buffers = false;
};

// Writes one JSON document piece by piece: a long capture does not fit into memory.
class JsonPrinter {
 public:
  JsonPrinter(const npu::Chip& chip, const capture::Reader& reader, const nlohmann::json& compiled) {
    nlohmann::json head = {{"chip", chip.name},
                           {"kernel_driver", reader.device().kernel_driver},
                           {"device", to_json(reader.device())},
                           {"count", reader.count()}};
    if (!reader.cut_off().empty()) head["cut_off"] = reader.cut_off();
    if (!compiled.is_null()) head["compiled"] = compiled;
    std::string text = report_text(head);
    text.resize(text.rfind("\n}"));
    out("{},\n  \"submissions\": [", text);
  }
  void add(const Decoded& decoded) {
    out("{}\n{}", is_first_ ? "" : ",", json_text(to_json(decoded)));
    is_first_ = false;
  }
  void finish(const std::optional<Error>& failure) const {
    if (failure) {
      out("\n  ],\n  \"error\": {}\n}}\n", json_text(nlohmann::json(failure->message)));
    } else {
      out("  ]\n}\n");
    }
  }

 private:
  bool is_first_ = true;
};

nlohmann::json contents_of(const runtime::CompiledModel& model) {
  nlohmann::json programs = nlohmann::json::array();
  for (const runtime::StoredProgram& one : model.programs)
    programs.push_back({{"chip", printable(one.chip)}, {"key", printable(one.key)}, {"bytes", one.file.size()}});
  return {{"operations", model.graph.ops.size()}, {"this_build", model.is_of_this_build}, {"programs", programs}};
}

void print_contents(const nlohmann::json& compiled) {
  out("a compiled model of {} operations, made by {} build\n", compiled["operations"].get<size_t>(),
      compiled["this_build"].get<bool>() ? "this" : "another");
  for (const nlohmann::json& one : compiled["programs"])
    out("  a program for {}: {} bytes, {}\n", one["chip"].get<std::string>(), one["bytes"].get<size_t>(),
        one["key"].get<std::string>());
}

// Opens a capture; or makes the submissions of a program file or of a model compiled for a chip: those are ours.
// `compiled`: facts about the program file.
Result<capture::Reader> open_any(const Options& options, bool& is_ours, nlohmann::json& compiled) {
  auto reader = open_jobs(options.path, options.chip);
  std::error_code ignored;
  if (reader.ok() || reader.error().code != ErrorCode::malformed ||
      std::filesystem::is_directory(options.path, ignored))
    return reader;
  SK_TRY_ASSIGN(const bool is_compiled, runtime::is_compiled_model(options.path));
  if (!options.path.ends_with(".tflite") && !is_compiled) return reader;
  is_ours = true;
  std::optional<npu::Chip> chip;
  if (!options.chip.empty()) SK_TRY_INTO(chip, npu::find_chip(options.chip));
  SK_TRY_ASSIGN(DiffSide side, load_side(options.path, chip, {}));
  if (side.compiled) compiled = contents_of(*side.compiled);
  return std::move(side.reader);
}

Result<capture::Reader> open_reader(const Options& options, bool& is_ours, nlohmann::json& compiled) {
  SK_TRY_ASSIGN(capture::Reader reader, open_any(options, is_ours, compiled));
  if (!reader.cut_off().empty()) log::warning("{}", reader.cut_off());
  if (options.submission >= static_cast<int64_t>(reader.count()))
    return error(ErrorCode::invalid_argument, "{} has {} submissions (counted from 0), no {}", options.path,
                 reader.count(), options.submission);
  if (options.last > 0) reader.only_last(static_cast<size_t>(options.last));
  return reader;
}

// Writes buffers with known contents to files.
Result<void> extract(const std::string& folder, const capture::Submission& submission, size_t index) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return error(ErrorCode::io, "{}: {}", folder, failure.message());
  for (const capture::BufferSnapshot& one : submission.buffers) {
    if (one.content != capture::Content::bytes) continue;
    SK_TRY(write_file(fmt::format("{}/submission{}_buffer{}.bin", folder, index, one.handle), one.bytes));
  }
  return {};
}

std::string print(const Options& options, const Decoded& decoded) {
  std::string text = fmt::format("\nsubmission {}\n{}", decoded.index, print_operations(decoded));
  if (options.buffers) text += print_buffers(decoded.fields, decoded.submission);
  if (options.source) return text + print_source(decoded.fields, decoded.submission);
  return text + (options.all ? print_all_fields(decoded.fields, decoded.submission) : decoded.fields.text);
}

// Decodes submissions one after another.
class Decoding {
 public:
  // `is_ours`: the jobs are from our compiler.
  Decoding(const Options& options, const npu::Chip& chip, const npu::Driver& driver, bool is_ours)
      : options_(options), chip_(chip), driver_(driver), is_ours_(is_ours) {}

  // Checks that need the chip but no submission.
  Result<void> prepare() {
    for (const std::string* folder : {&options_.extract, &options_.weights})
      if (!folder->empty()) SK_TRY(check_files(*folder, {}));
    const std::string& model =
        options_.model.empty() && options_.path.ends_with(".tflite") ? options_.path : options_.model;
    if (model.empty()) return {};
    // Quiet if the model was read before for its jobs: it has been reported then.
    const log::ScopedLevel level(options_.model.empty() ? std::optional(log::Level::error) : std::nullopt);
    SK_TRY_ASSIGN(ops_, ModelOps::load(model, chip_));
    return {};
  }

  Result<void> run(capture::Reader& reader, const nlohmann::json& compiled) {
    std::optional<JsonPrinter> json;
    if (options_.json)
      json.emplace(chip_, reader, compiled);
    else
      out("{} ({}), {} submissions\n", chip_.name, chip_.title, reader.count());
    const Result<void> all = submissions(reader, json);
    if (json) json->finish(all.ok() ? std::nullopt : std::optional(all.error()));
    SK_TRY(Result<void>(all));
    if (reader.count() == 0 && options_.path.ends_with(".tflite"))
      return error(ErrorCode::unsupported, "the NPU takes no operation of it (skillet check says why)");
    if (ops_ && ops_->found() == 0)
      log::warning("no job looks like one of {}", options_.model.empty() ? options_.path : options_.model);
    if (unreadable_ == 0) return {};
    return error(ErrorCode::device, "weights that cannot be read: {}{}", first_unreadable_,
                 unreadable_ == 1 ? "" : fmt::format("; and {} more", unreadable_ - 1));
  }

 private:
  Result<void> submissions(capture::Reader& reader, std::optional<JsonPrinter>& json) {
    while (true) {
      SK_TRY_ASSIGN(std::optional<capture::Submission> one, reader.next());
      if (!one) return {};
      SK_TRY(
          submission(std::move(*one), reader.index(), json).with_context(fmt::format("submission {}", reader.index())));
    }
  }

  Result<void> submission(capture::Submission one, size_t index, std::optional<JsonPrinter>& json) {
    if (!options_.weights.empty()) SK_TRY(memory_.add(one));
    const bool is_wanted = options_.submission < 0 || static_cast<size_t>(options_.submission) == index;
    if (!is_wanted && !ops_) return {};
    Decoded decoded{.fields = {}, .submission = std::move(one), .index = index, .ops = {}, .weights = {}};
    SK_TRY_ASSIGN(decoded.fields, driver_.decode(chip_, decoded.submission));
    if (ops_) decoded.ops = ops_->of(decoded.fields);
    if (!is_wanted) return {};
    if (!options_.weights.empty()) {
      SK_TRY_ASSIGN(decoded.weights, weights_of(chip_.name, decoded.submission, memory_));
      if (is_ours_) settle_order(decoded.weights, driver_.weights_order());
    }
    if (json)
      json->add(decoded);
    else
      out("{}", print(options_, decoded));
    if (!options_.extract.empty()) SK_TRY(extract(options_.extract, decoded.submission, index));
    if (options_.weights.empty()) return {};
    SK_TRY_ASSIGN(const std::string lines, write_weights(options_.weights, index, decoded.weights));
    if (!json) out("{}", lines);
    for (size_t i = 0; i < decoded.weights.size(); ++i) {
      const auto& w = decoded.weights[i];
      if (!w || w->problem.empty()) continue;
      if (unreadable_++ == 0) first_unreadable_ = fmt::format("submission {}, job {}: {}", index, i, w->problem);
    }
    return {};
  }

  const Options& options_;
  const npu::Chip& chip_;
  const npu::Driver& driver_;
  bool is_ours_;
  std::optional<ModelOps> ops_;
  size_t unreadable_ = 0;
  std::string first_unreadable_;
  RecordedMemory memory_;
};

Result<void> decode(const Options& options, Outcome& outcome) {
  bool is_ours = false;
  nlohmann::json compiled;
  SK_TRY_ASSIGN(capture::Reader reader, open_reader(options, is_ours, compiled));
  SK_TRY_ASSIGN(const npu::Chip chip, chip_of(reader.device(), options.chip).with_context(options.path));
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  Decoding decoding(options, chip, *driver, is_ours);
  SK_TRY(decoding.prepare());
  outcome.begin();
  if (!options.json && !compiled.is_null()) print_contents(compiled);
  SK_TRY(decoding.run(reader, compiled).with_context(options.path));
  if (!reader.cut_off().empty()) outcome.exit_code = kFailed;
  return {};
}

}  // namespace

void add_decode(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("decode",
                             "Print a capture: a line for each job, then command by command and field by field.\n"
                             "Examples:\n"
                             "  skillet decode tests/captures/a311d_conv1x1_relu6_u8 --buffers\n"
                             "  skillet decode net.tflite --chip a311d --all\n"
                             "  skillet decode run.capture --html page.html    (a page; needs Python)");
  verb.option("PATH", options->path,
              "capture file, a folder that holds capture.json, a compiled model of skillet compile, or\na .tflite file "
              "with --chip")
      .required();
  verb.option("--chip", options->chip, "decode as this chip, whichever the capture names (see skillet devices)");
  const Option one = verb.option("--submission", options->submission, "only this one, counted from 0")
                         .check(whole_number(0, INT32_MAX));
  verb.option("--last", options->last, kLastHelp).check(whole_number(1, INT32_MAX)).excludes(one);
  const Option all = verb.flag("--all", options->all, "every field, zeros too, with its words, bits and evidence");
  verb.flag("--as-source", options->source, "C++ initialisers of descriptors and registers, instead of fields")
      .excludes(all);
  verb.flag("--buffers", options->buffers, "a list of the buffers: address, size, hash, contents");
  verb.option("--extract", options->extract, "write the contents of buffers to this folder").check(not_empty());
  verb.option(
          "--weights", options->weights,
          "write the filters that jobs multiply with to this folder, decoded: .npy files, [kernel][plane][row][column]")
      .check(not_empty());
  verb.option("--model", options->model, "the .tflite file that was run, to name the operation of each job")
      .check(not_empty());
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, &outcome] { outcome.finish(decode(*options, outcome)); });
}

}  // namespace skillet::tools
