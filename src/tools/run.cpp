// `skillet run`: one network, some inputs, one device; optionally against the CPU kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "capture/file_writer.h"
#include "compile/advice.h"
#include "ref/ref.h"
#include "runtime/session.h"
#include "tools/model.h"
#include "tools/old_capture.h"
#include "tools/progress.h"
#include "tools/run_result.h"
#include "tools/scores.h"
#include "tools/tensor_file.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

constexpr uint64_t kMaxCount = 1'000'000;

struct Options {
  std::string model, device = "auto", labels, compare, tuning = "proven", per_channel = "exact", record, cache_dir;
  std::vector<std::string> images, inputs;
  std::optional<uint64_t> random_seed;
  std::optional<double> tolerance;
  int top = 5, repeat = 1;
  bool json = false, show = false, allow_unproven = false;
};

// The bytes of all graph inputs for one inference.
struct InputSet {
  std::string name;
  std::optional<Picture> picture;
  std::vector<Bytes> tensors;  // in Graph::inputs order
};

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

Result<std::vector<InputSet>> picture_inputs(const Options& options, const ir::Graph& graph) {
  if (graph.inputs.size() != 1)
    return error(ErrorCode::invalid_argument, "--image needs a network with one input; this one has {} (use --input)",
                 graph.inputs.size());
  const ir::Tensor& input = graph.tensor(graph.inputs[0]);
  SK_TRY(check_image_input(input));
  std::vector<InputSet> out;
  for (const std::string& path : options.images) {
    SK_TRY_ASSIGN(const Picture picture, load_picture(path, input.shape[3]));
    SK_TRY_ASSIGN(Bytes bytes, to_tensor(picture, input));
    out.push_back({file_name(path), resize(picture, input.shape[2], input.shape[1]), {std::move(bytes)}});
  }
  return out;
}

Result<std::vector<InputSet>> file_inputs(const Options& options, const ir::Graph& graph) {
  if (options.inputs.size() != graph.inputs.size())
    return error(ErrorCode::invalid_argument, "{} --input files for a network with {} inputs", options.inputs.size(),
                 graph.inputs.size());
  InputSet set;
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    SK_TRY_ASSIGN(Bytes bytes, read_tensor_file(options.inputs[i], graph.tensor(graph.inputs[i])));
    set.name += (set.name.empty() ? "" : ", ") + file_name(options.inputs[i]);
    set.tensors.push_back(std::move(bytes));
  }
  return std::vector<InputSet>{std::move(set)};
}

Result<std::vector<InputSet>> random_inputs(uint64_t seed, const ir::Graph& graph) {
  InputSet set{.name = fmt::format("random values, seed {}", seed), .picture = {}, .tensors = {}};
  RandomStream stream(seed);
  for (const ir::TensorId id : graph.inputs) {
    SK_TRY_ASSIGN(Bytes bytes, stream.fill(graph.tensor(id)));
    set.tensors.push_back(std::move(bytes));
  }
  return std::vector<InputSet>{std::move(set)};
}

Result<std::vector<InputSet>> make_inputs(const Options& options, const ir::Graph& graph) {
  if (!options.images.empty()) return picture_inputs(options, graph);
  if (!options.inputs.empty()) return file_inputs(options, graph);
  return random_inputs(options.random_seed.value_or(1), graph);
}

OutputResult describe_output(const ir::Tensor& tensor, std::span<const uint8_t> bytes, const Options& options,
                             const std::vector<std::string>& labels) {
  OutputResult out{.name = tensor.name,
                   .type = fmt::format("{} {}", ir::dtype_name(tensor.dtype), tensor.shape.to_string()),
                   .is_quantized = !tensor.quant.empty(),
                   .top = {},
                   .difference = {}};
  const int64_t elems = tensor.shape.elems();
  if (elems > 0) out.low = out.high = real_value(tensor, bytes, 0);
  for (int64_t i = 1; i < elems; ++i) {
    const double value = real_value(tensor, bytes, i);
    out.low = std::min(out.low, value);
    out.high = std::max(out.high, value);
  }
  if (!is_scores(tensor)) return out;
  for (const int64_t index : top_classes(tensor, bytes, options.top)) {
    const auto at = static_cast<size_t>(index);
    out.top.push_back({index, real_value(tensor, bytes, index), print_raw(tensor, bytes, index),
                       at < labels.size() ? labels[at] : ""});
  }
  return out;
}

// The same network on the CPU kernels alone.
class Reference {
 public:
  static Result<Reference> create(const ir::Graph& graph) {
    SK_TRY_ASSIGN(ref::Interpreter interpreter, ref::Interpreter::create(graph));
    return Reference(graph, std::move(interpreter));
  }
  // Fills the differences of `inference`; adds its time to `total_ms`.
  Result<void> compare(const InputSet& inputs, const runtime::Session& session, Inference& inference,
                       double& total_ms) {
    for (size_t i = 0; i < inputs.tensors.size(); ++i)
      std::ranges::copy(inputs.tensors[i], interpreter_.tensor(graph_->inputs[i]).begin());
    const Stopwatch clock;
    SK_TRY(interpreter_.run().with_context("on the CPU kernels"));
    total_ms += clock.ms();
    for (size_t i = 0; i < graph_->outputs.size(); ++i) {
      const ir::TensorId id = graph_->outputs[i];
      SK_TRY_ASSIGN(const auto bytes, session.output(i));
      inference.outputs[i].difference = max_difference(graph_->tensor(id), bytes, interpreter_.tensor(id));
    }
    return {};
  }

 private:
  Reference(const ir::Graph& graph, ref::Interpreter interpreter)
      : graph_(&graph), interpreter_(std::move(interpreter)) {}
  const ir::Graph* graph_;  // borrowed
  ref::Interpreter interpreter_;
};

Result<Inference> infer(runtime::Session& session, InputSet& inputs, const Options& options,
                        const std::vector<std::string>& labels) {
  Inference out{.input = inputs.name, .picture = options.show ? std::move(inputs.picture) : std::nullopt};
  for (size_t i = 0; i < inputs.tensors.size(); ++i) SK_TRY(session.set_input(i, inputs.tensors[i]));
  const Progress progress(fmt::format("running {}", inputs.name));
  for (int i = 0; i < options.repeat; ++i) {
    const Stopwatch clock;
    SK_TRY(session.run());
    out.run_ms.push_back(clock.ms());
  }
  for (size_t i = 0; i < session.graph().outputs.size(); ++i) {
    SK_TRY_ASSIGN(const auto bytes, session.output(i));
    out.outputs.push_back(describe_output(session.graph().tensor(session.graph().outputs[i]), bytes, options, labels));
  }
  if (options.compare != "layers") return out;
  const Progress comparing("comparing layers");
  SK_TRY_ASSIGN(out.layers, session.compare_layers());
  return out;
}

Result<std::vector<std::string>> labels_of(const Options& options) {
  return options.labels.empty() ? std::vector<std::string>() : read_labels(options.labels);
}

// A file of 1000 labels for 1001 classes is shifted by one, which nothing else would tell.
void check_labels(const Options& options, const ir::Graph& graph, const std::vector<std::string>& labels) {
  if (options.labels.empty()) return;
  for (const ir::TensorId id : graph.outputs) {
    const ir::Tensor& output = graph.tensor(id);
    if (!is_scores(output)) continue;
    if (static_cast<int64_t>(labels.size()) != output.shape.elems())
      complain(fmt::format("{}: {} labels for the {} classes of '{}'", options.labels, labels.size(),
                           output.shape.elems(), output.name));
    return;
  }
  complain(fmt::format("{}: not used: no output is a row of scores", options.labels));
}

Result<void> infer_all(runtime::Session& session, std::vector<InputSet>& inputs, const Options& options,
                       const std::vector<std::string>& labels, RunResult& result) {
  std::optional<Reference> reference;
  if (!options.compare.empty()) {
    SK_TRY_ASSIGN(reference, Reference::create(session.graph()));
  }
  for (InputSet& set : inputs) {
    SK_TRY_ASSIGN(Inference inference, infer(session, set, options, labels).with_context(set.name));
    if (reference) SK_TRY(reference->compare(set, session, inference, result.reference_ms));
    result.inferences.push_back(std::move(inference));
  }
  return {};
}

std::string input_note(const Options& options, const ir::Graph& graph) {
  std::string out;
  for (const ir::TensorId id : graph.inputs) {
    const ir::Tensor& input = graph.tensor(id);
    out += fmt::format("{}'{}' {} {}", out.empty() ? "" : ", ", input.name, ir::dtype_name(input.dtype),
                       input.shape.to_string());
  }
  if (!options.images.empty()) return out + ": pictures " + describe_mapping(graph.tensor(graph.inputs[0]));
  if (!options.inputs.empty()) return out + ": from files";
  return out + (options.random_seed ? ": random values" : ": random values (give --image or --input for real ones)");
}

runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions out;
  out.compile.tuning = *driver::tuning_from_name(options.tuning);
  out.compile.allow_unproven = options.allow_unproven;
  out.compile.per_channel = *driver::per_channel_from_name(options.per_channel);
  out.keep_intermediates = options.compare == "layers";
  out.cache_dir = options.cache_dir;
  return out;
}

// With --record, each submission is in the file before it runs. `failure`: why recording stopped.
Result<runtime::Target> open_device(const Options& options, std::optional<Error>& failure) {
  if (options.record.empty()) return runtime::open_target(options.device);
  if (options.device == "cpu")
    return error(ErrorCode::invalid_argument, "--record: the CPU sends nothing to a device; name an NPU with --device");
  SK_TRY_ASSIGN(OldCapture found, OldCapture::at(options.record));
  capture::Sink sink = capture::into_file(options.record);
  // An older file gives way to the first submission, not before: there may be none.
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

// The first output, or layer, that is further from the CPU kernels than --tolerance allows.
Result<void> check_tolerance(const Options& options, const RunResult& result, const runtime::Session& session) {
  if (!options.tolerance) return {};
  const auto too_far = [&](const std::string& what, double difference) {
    return error(ErrorCode::device, "{} differs by {} from the CPU kernels; --tolerance is {}", what, difference,
                 *options.tolerance);
  };
  for (const Inference& one : result.inferences) {
    for (const OutputResult& output : one.outputs) {
      if (output.difference && !(*output.difference <= *options.tolerance))
        return too_far(fmt::format("{}: output '{}'", one.input, output.name), *output.difference);
    }
    for (const runtime::LayerDiff& layer : one.layers) {
      if (layer.compared && !(layer.max_abs_diff <= *options.tolerance))
        return too_far(fmt::format("{}: {}", one.input, ir::describe_op(session.graph(), layer.op)),
                       layer.max_abs_diff);
    }
  }
  return {};
}

Result<void> run(const Options& options, Outcome& outcome) {
  if (options.tolerance && options.compare.empty())
    return error(ErrorCode::invalid_argument, "--tolerance says what --compare may find; give that too");
  RunResult result{.model = options.model};
  const Stopwatch import_clock;
  SK_TRY_ASSIGN(ir::Graph graph, import_model(options.model));
  result.import_ms = import_clock.ms();
  SK_TRY_ASSIGN(std::vector<InputSet> inputs, make_inputs(options, graph));
  result.input_note = input_note(options, graph);
  if (!options.cache_dir.empty()) SK_TRY(check_folder(expand_home(options.cache_dir)));
  SK_TRY_ASSIGN(const std::vector<std::string> labels, labels_of(options));
  check_labels(options, graph, labels);
  std::optional<Error> recording_failure;
  SK_TRY_ASSIGN(const runtime::Target target, open_device(options, recording_failure));
  if (options.device != "auto") SK_TRY(runtime::check_taken(target, options.allow_unproven));
  outcome.begin();
  result.device = target.name;
  const Stopwatch create_clock;
  auto progress = std::make_unique<Progress>(fmt::format("compiling for {}", target.name));
  const std::string advice = compile::quantization_advice(graph);
  auto created = runtime::Session::create(std::move(graph), target, session_options(options));
  if (!created.ok())
    return error(created.error().code, "{}: {}{}{}", options.model, created.error().message,
                 advice.empty() ? "" : "; advice: ", advice);
  const std::unique_ptr<runtime::Session> session = std::move(created).value();
  progress.reset();
  result.create_ms = create_clock.ms();
  SK_TRY(infer_all(*session, inputs, options, labels, result));
  out("{}", options.json ? print_json(result, *session) : print_text(result, *session));
  if (recording_failure) return *recording_failure;
  return check_tolerance(options, result, *session);
}

void add_inputs(CLI::App* verb, Options& options) {
  auto* image = verb->add_option("--image", options.images, "BMP, PNG or JPEG pictures, one inference each")
                    ->check(CLI::ExistingFile);
  auto* input = verb->add_option("--input", options.inputs, "contents of the inputs in order: .npy, or raw bytes")
                    ->check(CLI::ExistingFile);
  auto* random =
      verb->add_option("--random", options.random_seed, "random values from this seed (without any input: seed 1)")
          ->check(whole_number(0, UINT64_MAX));
  image->excludes(input)->excludes(random);
  input->excludes(random);
}

}  // namespace

void add_run(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "run",
      "Run a network and show its best classes, where each operation ran, and how long it took.\n"
      "Pictures are resized (bilinear); uint8 inputs get the pixels, int8 inputs pixel - 128, float inputs -1..1.\n"
      "Examples:\n"
      "  skillet run models/digits.tflite --image models/digits/*.png --show --device sim:a311d --compare\n"
      "  skillet run net.tflite --random 7 --device sim:a311d --compare=layers --json");
  verb->add_option("MODEL", options->model, "a .tflite file")->required();
  verb->add_option("--device", options->device, kDeviceHelp)->capture_default_str();
  add_inputs(verb, *options);
  verb->add_option("--labels", options->labels, "names of the classes, one a line, or 'INDEX name' lines");
  verb->add_option("--top", options->top, "how many classes to show")
      ->capture_default_str()
      ->check(whole_number(1, kMaxCount));
  verb->add_flag("--compare{outputs}", options->compare,
                 "run on the CPU too and show the largest difference of the outputs;\n"
                 "--compare=layers: and of each NPU operation, given the NPU's own inputs")
      ->check(CLI::IsMember({"outputs", "layers"}));
  verb->add_option("--tolerance", options->tolerance,
                   "with --compare: fail when an output, or a layer, differs by more (in units of its type)")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--repeat", options->repeat, "run this many times, for steadier times")
      ->capture_default_str()
      ->check(whole_number(1, kMaxCount));
  verb->add_option("--tuning", options->tuning,
                   "proven: only what is known to work on silicon; tuned: our own choices too")
      ->capture_default_str()
      ->check(CLI::IsMember({"proven", "tuned"}));
  verb->add_flag("--allow-unproven", options->allow_unproven, kAllowUnprovenHelp)->envname(kAllowUnprovenVariable);
  verb->add_option("--per-channel", options->per_channel, kPerChannelHelp)
      ->capture_default_str()
      ->check(CLI::IsMember(driver::kPerChannelNames))
      ->envname(kPerChannelVariable);
  verb->add_option("--cache-dir", options->cache_dir, "keep compiled programs in this folder")->check(not_empty());
  verb->add_option("--record", options->record, "write what the device was sent to this capture file")
      ->check(not_empty());
  verb->add_flag("--show", options->show, "draw the pictures, as the network sees them, with characters");
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->callback([options, &outcome] { outcome.finish(run(*options, outcome)); });
}

}  // namespace skillet::tools
