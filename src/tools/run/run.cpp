// `skillet run`: runs a network on inputs and a device; optionally compares it with the CPU kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "capture/file_writer.h"
#include "compile/advice.h"
#include "runtime/costs.h"
#include "runtime/session.h"
#include "runtime/tuned_driver.h"
#include "tools/cli/input_flags.h"
#include "tools/cli/orderly_end.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/jobs/old_capture.h"
#include "tools/model/model.h"
#include "tools/run/apart.h"
#include "tools/run/found.h"
#include "tools/run/results.h"
#include "tools/run/run_judge.h"
#include "tools/run/run_picture.h"
#include "tools/run/run_result.h"
#include "tools/run/scores.h"
#include "tools/show/progress.h"
#include "tools/tensors/run_inputs.h"
#include "tools/time/npu_use.h"

namespace skillet::tools {
namespace {

constexpr uint64_t kMaxCount = 1'000'000;

struct Options {
  std::string model, device = "auto", labels, compare, record;
  tflite::ImportOptions import_as;
  std::string output, expect, draw, task;
  InputOptions inputs;
  SessionFlags session;
  std::shared_ptr<runtime::ProgramStore> programs;  // programs of a compiled model
  std::optional<double> tolerance, threshold;
  int top = 5, repeat = 1;
  bool json = false, show = false, verbose = false;
};

OutputResult describe_output(const ir::Graph& graph, size_t i, std::span<const uint8_t> bytes, const Options& options,
                             const FindOptions& find, std::optional<Task> task) {
  const ir::Tensor& tensor = graph.tensor(graph.outputs[i]);
  OutputResult out{.name = tensor.name,
                   .type = fmt::format("{} {}", ir::dtype_name(tensor.dtype), tensor.shape.to_string()),
                   .top = {},
                   .difference = {},
                   .noise = {},
                   .same_class = {}};
  const int64_t elems = tensor.shape.elems();
  out.low = out.high = elems > 0 ? std::numeric_limits<double>::quiet_NaN() : 0;
  for (int64_t at = 0; at < elems; ++at) {
    const double value = real_value(tensor, bytes, at);
    out.low = std::fmin(out.low, value);
    out.high = std::fmax(out.high, value);
  }
  // For other tasks no output is a row of scores.
  const bool has_classes = options.task.empty() ? gives_scores(graph, i) : true;
  if ((!task || *task == Task::classes) && has_classes && is_scores(tensor) && has_numbers(tensor.dtype))
    out.top = best_classes(tensor, bytes, options.top, find.labels);
  return out;
}

Result<std::vector<std::string>> labels_of(const Options& options) {
  return options.labels.empty() ? std::vector<std::string>() : read_labels(options.labels);
}

void check_labels(const Options& options, const ir::Graph& graph, const std::vector<std::string>& labels,
                  std::optional<Task> task) {
  if (options.labels.empty()) return;
  const std::string wrong = misfit_of_labels(task, graph, labels.size());
  if (!wrong.empty()) complain(fmt::format("{}: {}", options.labels, wrong));
}

// Warns if --draw or --show can only show the picture, without results.
void check_drawing(const Options& options, const ir::Graph& graph, std::optional<Task> task) {
  if (task || (options.draw.empty() && !options.show)) return;
  complain(fmt::format("{}: {}", options.draw.empty() ? "--show" : "--draw", why_nothing_is_drawn(graph, "--task")));
}

// State for all inferences, created before the first one.
struct Plan {
  InputSource inputs;
  std::vector<std::string> names;  // empty: frames
  FindOptions find;
  std::optional<Task> task;
  Drawings drawings;
  std::optional<ResultPlace> output;
  std::optional<Expectation> expected;
};

Result<std::optional<ResultPlace>> output_place(const Options& options, const ir::Graph& graph,
                                                const std::vector<std::string>& names) {
  if (options.output.empty()) return std::optional<ResultPlace>();
  SK_TRY_ASSIGN(ResultPlace place, ResultPlace::create(options.output, graph, names));
  SK_TRY(place.check());
  return std::optional(std::move(place));
}

Result<void> check_options(const Options& options) {
  if (options.tolerance && options.compare.empty() && options.expect.empty())
    return error(ErrorCode::invalid_argument, "--tolerance needs --compare or --expect");
  const bool has_pictures = !options.inputs.images.empty() || !options.inputs.raw.empty();
  if (!options.draw.empty() && !has_pictures)
    return error(ErrorCode::invalid_argument, "--draw needs --image or --raw");
  return {};
}

Result<Plan> make_plan(const Options& options, const ir::Graph& graph) {
  SK_TRY(check_options(options));
  SK_TRY_ASSIGN(InputSource inputs, InputSource::create(options.inputs, graph));
  const std::vector<std::string> names = inputs.names();
  SK_TRY_ASSIGN(std::vector<std::string> labels, labels_of(options));
  const std::optional<Task> task = options.task.empty() ? recognise(graph) : task_from_name(options.task);
  check_labels(options, graph, labels, task);
  check_drawing(options, graph, task);
  SK_TRY_ASSIGN(Drawings drawings, Drawings::create(options.show, options.draw, options.threshold, names));
  SK_TRY_ASSIGN(std::optional<ResultPlace> output, output_place(options, graph, names));
  std::optional<Expectation> expected;
  if (!options.expect.empty())
    SK_TRY_INTO(expected, Expectation::read(options.expect, graph, names, options.tolerance.value_or(0)));
  SK_TRY(check_cache(options.session));
  return Plan{std::move(inputs),
              names,
              {std::move(labels), options.threshold, options.top},
              task,
              std::move(drawings),
              std::move(output),
              std::move(expected)};
}

Result<std::vector<Bytes>> run_session(runtime::Session& session, const InputSet& inputs, int repeat,
                                       std::vector<double>& run_ms) {
  for (size_t i = 0; i < inputs.tensors.size(); ++i) SK_TRY(session.set_input(i, inputs.tensors[i]));
  const Progress progress(fmt::format("running {}", inputs.name));
  for (int i = 0; i < repeat; ++i) {
    const Stopwatch clock;
    SK_TRY(session.run());
    run_ms.push_back(clock.ms());
  }
  std::vector<Bytes> outputs;
  for (size_t i = 0; i < session.graph().outputs.size(); ++i) {
    SK_TRY_ASSIGN(const auto bytes, session.output(i));
    outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return outputs;
}

// Runs inferences one after another; wrong results are reported at the end.
class Runner {
 public:
  // `by_default`: with --compare=layers, the program that runs without it; else null. `model`: the file's graph, before
  // the passes.
  Runner(const Options& options, Plan& plan, const ir::Graph& model, runtime::Session& session,
         DefaultProgram* by_default, RunResult& result)
      : options_(options), plan_(plan), model_(model), session_(session), by_default_(by_default), result_(result) {}

  Result<void> run_all() {
    if (!options_.compare.empty()) {
      if (options_.repeat > 1 && std::ranges::any_of(model_.tensors, &ir::Tensor::is_variable))
        return error(ErrorCode::invalid_argument,
                     "--repeat: '{}' has state, so each run gives other results: --compare checks one run of each "
                     "input; give several inputs",
                     options_.model);
      SK_TRY_ASSIGN(reference_, Reference::create(model_)
                                    .with_context("--compare: the CPU cannot compute the network")
                                    .with_context(options_.model));
    }
    while (!output_is_lost()) {
      SK_TRY_ASSIGN(std::optional<InputSet> set, plan_.inputs.next());
      if (!set) break;
      const std::string name = set->name;
      SK_TRY(run_one(std::move(*set)).with_context(name));
      ++count_;
    }
    return {};
  }
  // The error for the first wrong result.
  Result<void> judgement() const {
    if (failures_ == 0) return {};
    if (failures_ == 1) return *first_failure_;
    return error(first_failure_->code, "{} (and {} more)", first_failure_->message, failures_ - 1);
  }

 private:
  Result<void> run_one(InputSet set) {
    Inference one{.input = set.name, .drawing = {}, .run_ms = {}, .outputs = {}, .found = {}, .layers = {}};
    SK_TRY_ASSIGN(const std::vector<Bytes> outputs, run_session(session_, set, options_.repeat, one.run_ms));
    const ir::Graph& graph = session_.graph();
    for (size_t i = 0; i < outputs.size(); ++i)
      one.outputs.push_back(describe_output(graph, i, outputs[i], options_, plan_.find, plan_.task));
    SK_TRY(find_all(outputs, one));
    SK_TRY(plan_.drawings.add(count_, set, graph, one));
    if (plan_.output) SK_TRY(plan_.output->write(count_, outputs));
    SK_TRY(compare(set, outputs, one));
    report(std::move(one));
    return {};
  }

  // An error only if the task was set by an option or a drawing is written: a recognised task may be wrong.
  Result<void> find_all(const std::vector<Bytes>& outputs, Inference& one) const {
    if (!plan_.task) return {};
    auto found = find(*plan_.task, session_.graph(), outputs, plan_.find);
    if (found.ok()) {
      one.found = std::move(found).value();
    } else if (!options_.task.empty() || plan_.drawings.writes()) {
      return std::move(found).error();
    } else {
      complain(fmt::format("{}: not read as {}: {}", one.input, kTaskNames[static_cast<size_t>(*plan_.task)],
                           found.error().message));
    }
    return {};
  }

  Result<void> compare(const InputSet& set, const std::vector<Bytes>& outputs, Inference& one) {
    if (options_.compare == "layers") {
      const Progress progress("comparing layers");
      SK_TRY_ASSIGN(one.layers, session_.compare_layers(&model_));
    }
    if (reference_) SK_TRY(reference_->compare(set, outputs, one, result_.reference_ms));
    if (by_default_ != nullptr) note(by_default_->check(set, outputs, session_));
    if (options_.tolerance && reference_) note(check_tolerance(*options_.tolerance, one, session_.graph()));
    if (!plan_.expected) return {};
    const Result<void> judged = plan_.expected->check(count_, one.input, outputs, session_.graph());
    one.unexpected = judged.ok() ? "" : judged.error().message;
    note(judged);
    return {};
  }

  void note(const Result<void>& judged) {
    if (judged.ok()) return;
    if (!first_failure_) first_failure_ = judged.error();
    ++failures_;
  }

  // Frames are endless: the report has only the last one, with the times of all.
  void report(Inference one) {
    if (!plan_.inputs.is_stream()) {
      result_.inferences.push_back(std::move(one));
      return;
    }
    if (options_.json)
      out_drawing(print_frame_json(one));
    else
      out("{}", print_frame(one));
    flush_output();
    std::vector<double> run_ms = result_.inferences.empty() ? std::vector<double>() : result_.inferences[0].run_ms;
    run_ms.insert(run_ms.end(), one.run_ms.begin(), one.run_ms.end());
    one.run_ms = std::move(run_ms);
    result_.inferences.assign(1, std::move(one));
  }

  const Options& options_;
  Plan& plan_;
  const ir::Graph& model_;
  runtime::Session& session_;
  DefaultProgram* by_default_;
  RunResult& result_;
  std::optional<Reference> reference_;
  size_t count_ = 0, failures_ = 0;
  std::optional<Error> first_failure_;
};

runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions out = session_options(options.session);
  out.keep_intermediates = options.compare == "layers";
  out.programs = options.programs;
  return out;
}

// With --record, each submission is written to the file before it runs. `failure`: reason why recording stopped.
Result<runtime::Target> open_device(const Options& options, std::optional<Error>& failure) {
  if (options.record.empty()) return runtime::open_target(options.device);
  if (options.device == "cpu")
    return error(ErrorCode::invalid_argument, "--record: the CPU submits no jobs; name an NPU with --device");
  SK_TRY_ASSIGN(OldCapture found, OldCapture::at(options.record));
  capture::Sink sink = capture::into_file(options.record);
  // An older file is replaced at the first submission: there may be none.
  sink.append = [append = sink.append, &failure, old = std::make_shared<OldCapture>(std::move(found))](
                    const capture::DeviceInfo& device, capture::Submission one) mutable {
    Result<void> done = old ? old->set_aside() : Result<void>();
    if (done.ok()) done = append(device, std::move(one));
    if (done.ok() && old) old->discard();
    old.reset();
    if (!done.ok()) failure = done.error();
    return done;
  };
  SK_TRY_ASSIGN(runtime::Target target, runtime::open_target(options.device, sink));
  if (target.driver == nullptr)
    return error(ErrorCode::invalid_argument, "--record: there is no NPU here; name one with --device");
  return target;
}

Result<std::unique_ptr<runtime::Session>> create_session(const Options& options, ir::Graph graph,
                                                         const runtime::Target& target, RunResult& result) {
  const Stopwatch clock;
  const Progress progress(fmt::format("compiling for {}", target.name));
  result.advice = compile::quantization_advice(
      graph, {target.driver, target.chip, *npu::per_channel_from_name(options.session.per_channel)},
      words_of(options.model));
  const bool has_opaque =
      std::ranges::any_of(graph.ops, [](const ir::Op& op) { return op.kind == ir::OpKind::opaque; });
  auto created = runtime::Session::create(std::move(graph), target, session_options(options));
  if (!created.ok())
    return error(created.error().code, "{}: {}{}{}{}", options.model, created.error().message,
                 has_opaque && words_of(options.model) == compile::Words::onnx
                     ? "; ONNX Runtime may run it (docs/onnxruntime.md)"
                     : "",
                 result.advice.empty() ? "" : "; advice: ", result.advice);
  result.create_ms = clock.ms();
  if (options.programs != nullptr) log::info("{} programs as stored", options.programs->taken());
  return created;
}

// Predicted time of the simulated chip, if known. Compiles again, because a session keeps no programs.
Result<std::optional<ProgramTiming>> simulated_time(const Options& options, const runtime::Target& target,
                                                    ir::Graph graph, RunResult& result) {
  if (!target.simulated) return std::optional<ProgramTiming>();
  runtime::SessionOptions session = session_options(options);
  session.keep_intermediates = false;  // time the default program, not the one with all layers kept
  SK_TRY_ASSIGN(const compile::Compiled compiled, runtime::compile_for(target, std::move(graph), session));
  result.measured = runtime::measured_parameters(target.chip, target.trust.get());
  return time_if_known(target.chip.name, compiled, result.measured);
}

// Drawings in a folder have the names of their pictures.
Result<void> check_files(const Options& options) {
  std::vector<NamedFile> read = {{"MODEL", options.model},
                                 {"--labels", options.labels},
                                 {"--expect", options.expect},
                                 {"--tuning-file", options.session.tuning_file}};
  std::vector<NamedFile> written = {
      {"--output", options.output}, {"--draw", options.draw}, {"--record", options.record}};
  for (const std::string& path : options.inputs.inputs) read.push_back({"--input", path});
  for (const std::string& path : options.inputs.images) {
    read.push_back({"--image", path});
    if (std::error_code ignored; std::filesystem::is_directory(options.draw, ignored))
      written.push_back(
          {"--draw", (std::filesystem::path(options.draw) / std::filesystem::path(path).stem()).string() + ".png"});
  }
  // Drawings of pictures with equal names in two folders get different names later: check each path once.
  std::vector<NamedFile> once;
  for (NamedFile& one : written) {
    if (std::ranges::find(once, one.path, &NamedFile::path) == once.end() || one.option != "--draw")
      once.push_back(std::move(one));
  }
  return check_apart(read, once);
}

Result<void> run(Options& options, Outcome& outcome) {
  SK_TRY(check_files(options));
  options.device = runtime::device_meant(options.device);
  RunResult result{.model = options.model};
  const Stopwatch import_clock;
  std::optional<runtime::CompiledModel> compiled;
  SK_TRY_ASSIGN(ir::Graph graph, import_model(options.model, options.import_as, &compiled));
  result.import_ms = import_clock.ms();
  SK_TRY_ASSIGN(Plan plan, make_plan(options, graph));
  result.input_note = input_note(options.inputs, graph);
  std::optional<Error> recording_failure;
  SK_TRY_ASSIGN(const runtime::Target target, open_device(options, recording_failure));
  if (options.device != "auto") SK_TRY(runtime::check_taken(target, unproven_of(options.session)));
  complain_of_cores(options.session, target);
  complain_of_no_npu(options.session, target);
  complain_of_nothing(target);
  options.programs = programs_for(compiled, target);
  SK_TRY(runtime::check_tuning_file(target, options.session.tuning_file));
  result.device = target.name;
  result.chip = target.chip.name;
  result.verbose = options.verbose;
  const ir::Graph again = graph;  // shares the constants
  auto created = create_session(options, std::move(graph), target, result);
  outcome.begin_with(created);
  SK_TRY_ASSIGN(const std::unique_ptr<runtime::Session> session, std::move(created));
  say_unused(compiled, options.programs.get(), target, session_options(options), options.model);
  std::optional<DefaultProgram> by_default;
  if (options.compare == "layers" && npu_use(*session).npu_ops != 0) {
    const Progress progress(fmt::format("compiling for {} without kept intermediates", target.name));
    SK_TRY_ASSIGN(by_default, DefaultProgram::create(again, target, session_options(options)));
  }
  Runner runner(options, plan, again, *session, by_default ? &*by_default : nullptr, result);
  SK_TRY(runner.run_all());
  const bool is_told = plan.inputs.is_stream() && options.json;
  if (!is_told) SK_TRY_INTO(result.simulated, simulated_time(options, target, again, result));
  if (!is_told) out("{}", options.json ? print_json(result, *session) : print_text(result, *session));
  if (recording_failure) return *recording_failure;
  SK_TRY(check_npu_use(options.device, npu_use(*session)));
  return runner.judgement();
}

void add_inputs(const Verb& verb, InputOptions& options) {
  const Option image =
      verb.option("--image", options.images, "BMP, PNG or JPEG pictures, one inference each").check(existing_file());
  const Option input = verb.option("--input", options.inputs,
                                   "contents of the inputs in order: .npy, or raw bytes;\n"
                                   "or one .npz with an array for each")
                           .check(existing_file());
  const Option random =
      verb.option("--random", options.random_seed, "random values from this seed (without any input: seed 1)")
          .check(whole_number(0, UINT64_MAX));
  const Option raw = verb.option("--raw", options.raw, "frames from standard input, pixel by pixel, until it ends")
                         .check(one_of({"rgb24", "gray"}));
  verb.option("--size", options.size, "size of the frames, such as 640x480. Default: the network's input").needs(raw);
  add_float_pixels(verb, options.float_pixels);
  image.excludes(input).excludes(random).excludes(raw);
  input.excludes(random).excludes(raw);
  random.excludes(raw);
}

void add_results(const Verb& verb, Options& options) {
  verb.option("--labels", options.labels, "names of the classes, one a line, or 'INDEX name' lines");
  verb.option("--top", options.top, "how many classes to show").shows_default().check(whole_number(1, kMaxCount));
  verb.option("--output", options.output,
              "write the outputs here: F.npy, F.npz, or a folder (then a .npy for each output)")
      .check(not_empty());
  verb.option("--expect", options.expect, "compare the outputs with these, in the format of --output")
      .check(not_empty())
      .excludes("--raw");
  verb.option("--tolerance", options.tolerance,
              "with --compare or --expect: fail when an output, or a layer, differs by more\n"
              "(in units of its type; without: --expect allows 0)")
      .check(number_of_0_or_more());
  verb.flag("--show", options.show, "draw the pictures, with the results, on the terminal");
  verb.option("--draw", options.draw, "write them to this PNG file, or folder").check(not_empty());
  verb.option("--task", options.task, "kind of the outputs. Default: by their shapes").check(one_of(kTaskNames));
  verb.option("--threshold", options.threshold, "lowest score of boxes (0.4) and key points (0.3) to show")
      .check(number_of_0_or_more())
      .check(number_between(0.0, 1.0));
}

}  // namespace

void add_run(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb(
      "run",
      "Run a network and show what it found, where each operation ran, and how long it took.\n"
      "Pictures are resized (bilinear); uint8 inputs get the pixels, int8 inputs pixel - 128, float inputs -1..1.\n"
      "Examples:\n"
      "  skillet run models/digits.tflite --image models/digits/*.png --show --device sim:a311d --compare\n"
      "  skillet run net.tflite --image cat.jpg --draw found.png --labels labels.txt\n"
      "  skillet run net.tflite --input in.npz --device sim:a311d --expect out.npz --tolerance 1\n"
      "  ffmpeg -i cam.mp4 -f rawvideo -pix_fmt rgb24 - | skillet run net.tflite --raw rgb24 --size 640x480");
  verb.option("MODEL", options->model, kModelHelp).required();
  add_import(verb, options->import_as);
  verb.option("--device", options->device, kDeviceHelp).shows_default().variable(kDeviceVariable);
  add_inputs(verb, options->inputs);
  add_results(verb, *options);
  verb.flag("--compare{outputs}", options->compare,
            "also run on the CPU and show how much the outputs differ;\n"
            "--compare=layers: also for each NPU operation, with the NPU's own inputs; the program that\n"
            "runs without this option must give the same outputs")
      .check(one_of({"outputs", "layers"}));
  verb.option("--repeat", options->repeat, "run this many times, for more stable times")
      .shows_default()
      .check(whole_number(1, kMaxCount));
  add_running_session(verb, options->session);
  verb.option("--record", options->record, "write the submissions to the device to this capture file")
      .check(not_empty());
  verb.flag("--verbose", options->verbose, "also count the operations after the passes");
  verb.flag("--json", options->json, "machine-readable output").excludes("--show");
  runs_jobs(verb, outcome, [options, &outcome] { return run(*options, outcome); });
}

}  // namespace skillet::tools
