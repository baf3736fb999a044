// `skillet quantize`: a model file whose weights have few scales a layer, for chips that have one scale per job.
#include "graph/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "compile/advice.h"
#include "graph/import/import.h"
#include "graph/import/rewrite_file.h"
#include "graph/ref/ref.h"
#include "tools/cli/input_flags.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/model/model.h"
#include "tools/model/placed.h"
#include "tools/run/agreement.h"
#include "tools/run/apart.h"
#include "tools/run/found.h"
#include "tools/run/scores.h"
#include "tools/show/progress.h"
#include "tools/tensors/calibration_data.h"

namespace skillet::tools {
namespace {

constexpr size_t kScalesMax = 16;

struct Options {
  std::string model, output, data, device, float_pixels;
  tflite::ImportOptions import_as;
  SessionFlags session;
  double error = 0.4;
  bool json = false;
};

// The new network's outputs against the model's, on data that neither calibrated.
struct Outputs {
  size_t inferences = 0, same_class = 0;
  bool are_held = false;     // else those that calibrated: there are no others
  bool has_classes = false;  // the first output is a row of scores
  double signal = 0, noise = 0;

  double ratio_db() const { return 10 * std::log10(signal / noise); }
};

struct Report {
  quantize::Quantized quantized;
  size_t model_layers = 0;          // that have several scales
  std::vector<std::string> others;  // that have, too, and stay as they are: kinds of operations
  std::string advice;               // where no layer has several scales: how the model's numbers are stored
  size_t seen = 0, held = 0, found = 0, repeats = 0;
  Outputs outputs;
  std::optional<Placed> before, after;  // on the device, if one was named
  std::string chip;
  double cpu_alone_us = -1;  // below 0: not known
};

// ---- the work ----

Result<std::vector<Bytes>> outputs_of(ref::Interpreter& network, const ir::Graph& graph,
                                      const std::vector<Bytes>& inputs) {
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    std::ranges::copy(inputs[i], network.tensor(graph.inputs[i]).begin());
  SK_TRY(network.run());
  std::vector<Bytes> out;
  for (const ir::TensorId id : graph.outputs) {
    const auto bytes = network.tensor(id);
    out.emplace_back(bytes.begin(), bytes.end());
  }
  return out;
}

void add_noise(const ir::Tensor& tensor, std::span<const uint8_t> wanted, std::span<const uint8_t> got, Outputs& sum) {
  if (!has_numbers(tensor.dtype)) return;
  for (int64_t i = 0; i < tensor.shape.elems(); ++i) {
    const double from = real_value(tensor, wanted, i), off = real_value(tensor, got, i) - from;
    if (!std::isfinite(from) || !std::isfinite(off)) continue;
    sum.signal += from * from;
    sum.noise += off * off;
  }
}

Result<Outputs> compare(const ir::Graph& model, const ir::Graph& made, const CalibrationData& data) {
  SK_TRY_ASSIGN(ref::Interpreter old_one, ref::Interpreter::create(model));
  SK_TRY_ASSIGN(ref::Interpreter new_one, ref::Interpreter::create(made));
  Outputs out{.are_held = !data.held.empty()};
  out.has_classes =
      !model.outputs.empty() && recognise(model) == Task::classes && is_scores(model.tensor(model.outputs[0]));
  for (const std::vector<Bytes>& inputs : out.are_held ? data.held : data.seen) {
    SK_TRY_ASSIGN(const std::vector<Bytes> wanted, outputs_of(old_one, model, inputs));
    SK_TRY_ASSIGN(const std::vector<Bytes> got, outputs_of(new_one, made, inputs));
    for (size_t i = 0; i < wanted.size(); ++i) add_noise(model.tensor(model.outputs[i]), wanted[i], got[i], out);
    out.same_class += agreement_of(model, got, wanted).same_class ? 1 : 0;
    ++out.inferences;
  }
  return out;
}

// What a device of this kind takes with jobs that are proven, simulated or not.
runtime::Target as_on_a_board(runtime::Target target) {
  target.simulated = false;
  return target;
}

ir::Graph with_one_scale(const ir::Graph& model) {
  ir::Graph out = model;
  for (const ir::OpId op : quantize::layers_of(model)) {
    ir::Quant& quant = out.tensor(out.op(op).inputs[1]).quant;
    quant.scales.resize(1);
    quant.zero_points.resize(1);
  }
  return out;
}

// How many scales a layer may have. Several are several jobs, which no known driver was seen to do: only where that is
// allowed.
class ScalesMax {
 public:
  ScalesMax(const std::optional<runtime::Target>& target, const Options& options, const ir::Graph& model)
      : target_(target), most_(options.session.allow_unproven ? kScalesMax : 1), plain_(with_one_scale(model)) {}

  size_t operator()(ir::OpId op) const {
    if (!target_) return most_;
    const size_t jobs = target_->driver->weight_scales_max(target_->chip, plain_, op);
    if (jobs == SIZE_MAX) return 0;
    return takes_depthwise(op) ? 1 : std::min(jobs, most_);
  }

 private:
  // Filters that the chip takes as they are would be written out as those of a convolution, which takes longer.
  bool takes_depthwise(ir::OpId id) const {
    const ir::Op& op = plain_.op(id);
    if (op.kind != ir::OpKind::depthwise_conv_2d) return false;
    const npu::MadeConstants made = target_->driver->made_constants(target_->chip, plain_, id);
    return made.bytes <= 2 * static_cast<uint64_t>(plain_.tensor(op.inputs[1]).bytes());
  }

  const std::optional<runtime::Target>& target_;
  size_t most_;
  ir::Graph plain_;
};

// ---- words ----

std::string inferences(size_t count) { return fmt::format("{} inference{}", count, count == 1 ? "" : "s"); }

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

bool has_constant_inputs(const Report& report) {
  return !std::ranges::all_of(report.quantized.layers, &quantize::Layer::input_varies);
}

void print_layers(const Report& report) {
  TextTable table({"op", "kind", "scales", "rms", "beyond 1", "held back: rms", "beyond 1", "worst"});
  const ir::Graph& graph = report.quantized.graph;
  for (const quantize::Layer& one : report.quantized.layers) {
    const ir::Op& op = graph.op(one.op);
    table.add({fmt::format("{}", op.source_index), std::string(ir::op_name(op)),
               fmt::format("{} -> {}", one.scales_before, one.scales),
               fmt::format("{:.2f}{}", one.seen.rms(), one.input_varies ? "" : "*"), percent(one.seen.share_beyond()),
               one.held.values == 0 ? "-" : fmt::format("{:.2f}", one.held.rms()),
               one.held.values == 0 ? "-" : percent(one.held.share_beyond()),
               one.held.values == 0 ? "-" : fmt::format("{:.1f}", one.held.worst)});
  }
  out("how far each layer's result is from what its own weights make of the same inputs, in steps of the output before "
      "it is rounded\n{}\n",
      table.print());
  if (has_constant_inputs(report))
    out("* its input never changes in the data: of inputs that are spread evenly over their type\n");
}

// What the data says nothing of may be wrong for other inputs.
void warn_of_constant_inputs(const Options& options, const quantize::Quantized& quantized) {
  constexpr size_t kNamed = 4;
  size_t found = 0;
  for (const quantize::Layer& one : quantized.layers) {
    if (one.input_varies || ++found > kNamed) continue;
    const ir::Op& op = quantized.graph.op(one.op);
    log::warning("{}: op {} {}: its input '{}' never changes in the data that calibrates", options.data,
                 op.source_index, ir::op_name(op), quantized.graph.tensor(op.inputs[0]).name);
  }
  if (found > 0)
    log::warning(
        "{}: the weights of {} layer{} are rounded as if inputs were spread evenly; use data in which their inputs "
        "change",
        options.data, found, found == 1 ? "" : "s");
}

quantize::Fit all_layers(const Report& report, quantize::Fit quantize::Layer::*which) {
  quantize::Fit out;
  for (const quantize::Layer& one : report.quantized.layers) {
    const quantize::Fit& fit = one.*which;
    out.squares += fit.squares;
    out.values += fit.values;
    out.beyond += fit.beyond;
    out.worst = std::max(out.worst, fit.worst);
  }
  return out;
}

size_t layers_beyond(const Options& options, const Report& report) {
  return static_cast<size_t>(std::ranges::count_if(
      report.quantized.layers, [&](const quantize::Layer& one) { return one.seen.rms() > options.error; }));
}

std::string print_scales(const Report& report) {
  std::map<size_t, size_t> layers;
  for (const quantize::Layer& one : report.quantized.layers) ++layers[one.scales];
  std::string out;
  for (const auto& [scales, count] : layers)
    out += fmt::format("{}{} with {} scale{}", out.empty() ? "" : ", ", count, scales, scales == 1 ? "" : "s");
  return out;
}

double largest_headroom(const Report& report) {
  double out = 1;
  for (const quantize::Layer& one : report.quantized.layers) out = std::max(out, one.headroom);
  return out;
}

void print_whole(const Options& options, const Report& report) {
  const quantize::Fit held = all_layers(report, &quantize::Layer::held);
  const quantize::Fit fit = held.values > 0 ? held : all_layers(report, &quantize::Layer::seen);
  out("{} of {} layers: {}; rms {:.2f} steps, {} beyond 1, {:.1f} at most ({})\n", report.quantized.layers.size(),
      report.model_layers, print_scales(report), fit.rms(), percent(fit.share_beyond()), fit.worst,
      held.values > 0               ? "held back"
      : has_constant_inputs(report) ? "of the data that calibrated, and of inputs that are spread evenly"
                                    : "of the data that calibrated");
  if (const size_t beyond = layers_beyond(options, report); beyond > 0)
    out("{} layers are beyond rms {:g}{}\n", beyond, options.error,
        options.session.allow_unproven ? ""
                                       : ": --allow-unproven lets a layer have more scales, each a job more, which no "
                                         "known driver was seen to do");
  if (largest_headroom(report) > 1)
    out("channels in front of depthwise layers grew into unused steps, by a factor of {:.1f} at most: values beyond "
        "1.1 "
        "times the largest that the data had may be cut off\n",
        largest_headroom(report));
  const Outputs& outputs = report.outputs;
  const char* const which = outputs.are_held ? "" : " (of the data that calibrated)";
  if (outputs.has_classes)
    out("same best class as the model's: {} of {}{}\n", outputs.same_class, outputs.inferences, which);
  if (outputs.noise == 0)
    out("outputs: equal{}\n", which);
  else
    out("outputs: {:.1f} dB of signal to error{}\n", outputs.ratio_db(), which);
}

const char* which_jobs(npu::Unproven unproven) {
  switch (unproven) {
    case npu::Unproven::refuse: return "(jobs that are proven to work on such a chip only)\n";
    case npu::Unproven::verify:
      return "(jobs that are proven to work on such a chip, and others once the device has shown that they do)\n";
    default: return "";
  }
}

// On the device.
void print_places(const Options& options, const Report& report) {
  TextTable table({"", "before", "after"});
  add_rows(table, *report.before, *report.after);
  out("\n{}{}", table.print(), which_jobs(unproven_of(options.session)));
  if (!report.after->time) return;
  const double after_us = report.after->time->whole_us();
  out("{}\n", print_cpu_alone(report.chip, report.cpu_alone_us));
  // Differences within the prediction's error say nothing.
  if (report.before->time && after_us > report.before->time->whole_us() * (1 + report.after->time->error))
    out("the whole network is predicted to be slower than before\n");
  if (const std::string faster = advise_cpu(report.chip, after_us, report.cpu_alone_us); !faster.empty())
    out("{}\n", faster);
}

void print_text(const Options& options, const Report& report) {
  out("{}: {} calibrated, {} {} held back\n\n", printable(options.model), inferences(report.seen), report.held,
      report.held == 1 ? "was" : "were");
  if (!report.quantized.layers.empty()) {
    print_layers(report);
    print_whole(options, report);
  } else {
    out("nothing to do: {}; the file is a copy\n", report.model_layers == 0
                                                       ? "no int8 layer has weights with several scales"
                                                       : "the device takes a scale per channel");
    if (!report.advice.empty()) out("{}\n", report.advice);
  }
  for (const std::string& other : report.others)
    out("{} has weights with several scales too, and keeps them: operations of its kind cannot be calibrated\n", other);
  if (report.before) print_places(options, report);
  out("written to {}\n", printable(options.output));
}

nlohmann::json to_json(const quantize::Fit& fit) {
  if (fit.values == 0) return {};
  return {{"rms", fit.rms()}, {"beyond_1", fit.share_beyond()}, {"worst", fit.worst}};
}

void print_json(const Options& options, const Report& report) {
  nlohmann::json layers = nlohmann::json::array();
  for (const quantize::Layer& one : report.quantized.layers) {
    const ir::Op& op = report.quantized.graph.op(one.op);
    layers.push_back({{"op", op.source_index},
                      {"kind", std::string(ir::op_name(op))},
                      {"scales_before", one.scales_before},
                      {"scales", one.scales},
                      {"headroom", one.headroom},
                      {"input_varies", one.input_varies},
                      {"calibration", to_json(one.seen)},
                      {"held_back", to_json(one.held)}});
  }
  const Outputs& outputs = report.outputs;
  nlohmann::json all = {{"model", options.model},
                        {"file", options.output},
                        {"copy", report.quantized.layers.empty()},
                        {"error", options.error},
                        {"inferences", report.found},
                        {"calibrated", report.seen},
                        {"held_back", report.held},
                        {"repeats", report.repeats},
                        {"layers", layers},
                        {"layers_of_several_scales", report.model_layers},
                        {"layers_that_keep_scales", report.others},
                        {"layers_beyond_error", layers_beyond(options, report)},
                        {"calibration", to_json(all_layers(report, &quantize::Layer::seen))},
                        {"held", to_json(all_layers(report, &quantize::Layer::held))},
                        {"outputs", {{"inferences", outputs.inferences}, {"held_back", outputs.are_held}}}};
  if (outputs.has_classes) all["outputs"]["same_class"] = outputs.same_class;
  all["outputs"]["signal_to_error_db"] = outputs.noise > 0 ? nlohmann::json(outputs.ratio_db()) : nlohmann::json();
  if (report.before) {
    all["device"] = options.device;
    all["before"] = to_json(*report.before);
    all["after"] = to_json(*report.after);
    all["cpu_alone_ms"] = ms_or_null(report.cpu_alone_us);
  }
  out_report(std::move(all));
}

// ---- the verb ----

Result<CalibrationData> data_for(const Options& options, const ir::Graph& model, Report& report) {
  SK_TRY_ASSIGN(CalibrationData data, read_calibration_data(options.data, model, options.float_pixels));
  report.seen = data.seen.size();
  report.held = data.held.size();
  report.found = data.found;
  report.repeats = data.repeats;
  const size_t different = report.seen + report.held, taken = different + data.repeats;
  if (taken < data.found)
    log::warning("{}: {} of {} inferences are taken, evenly; more hardly change the result", options.data, taken,
                 data.found);
  if (data.repeats > 0)
    log::warning("{}: {} of {} inferences repeat others and are left out", options.data, data.repeats, taken);
  if (different < kFewInferences)
    log::warning("{}: only {}; the weights fit these, and others perhaps not: {} or more are recommended", options.data,
                 inferences(different), kFewInferences);
  return data;
}

Result<Bytes> quantized_file(const Options& options, const std::optional<runtime::Target>& target, const Bytes& file,
                             const ir::Graph& model, const CalibrationData& data, Report& report) {
  Progress progress("calibrating");
  quantize::Options how{.error = options.error};
  how.scales_max = ScalesMax(target, options, model);
  how.progress = [&](size_t done, size_t all) {
    progress.say(fmt::format("calibrating layer {} of {}", done + 1, all));
  };
  SK_TRY_ASSIGN(report.quantized, quantize::quantize(model, data.seen, data.held, how));
  if (report.quantized.layers.empty()) return file;
  warn_of_constant_inputs(options, report.quantized);
  progress.say("comparing");
  SK_TRY_ASSIGN(Bytes written, tflite::rewrite_file(file, model, report.quantized.graph));
  SK_TRY_ASSIGN(const ir::Graph again,
                tflite::import(written, options.output, options.import_as));  // what others will read
  SK_TRY_ASSIGN(report.outputs, compare(model, again, data));
  if (target) {
    const runtime::Target board = as_on_a_board(*target);
    report.chip = target->chip.name;
    report.cpu_alone_us = cpu_alone_us(report.chip, model);
    SK_TRY_ASSIGN(report.before, place(board, model, session_options(options.session)));
    SK_TRY_ASSIGN(report.after, place(board, again, session_options(options.session)));
  }
  return written;
}

constexpr std::string_view kOnnxInstead =
    "ONNX files are quantized by ONNX Runtime's Python package (reader: a CalibrationDataReader with typical inputs):\n"
    "  from onnxruntime.quantization import quantize_static, shape_inference, QuantType\n"
    "  shape_inference.quant_pre_process(\"float.onnx\", \"ready.onnx\")\n"
    "  quantize_static(\"ready.onnx\", \"int8.onnx\", reader, activation_type=QuantType.QUInt8, "
    "weight_type=QuantType.QInt8)";

Result<void> quantize_model(const Options& options, Outcome& outcome) {
  SK_TRY(check_no_onnx(options.model, "quantize", kOnnxInstead));
  SK_TRY(check_apart({{"MODEL", options.model}, {"--data", options.data}}, {{"--output", options.output}}));
  SK_TRY_ASSIGN(const Bytes file, read_file(options.model));
  SK_TRY_ASSIGN(const ir::Graph model, tflite::import(file, options.model, options.import_as));
  if (model.has_free_sizes)
    return error(ErrorCode::invalid_argument, "{}: its sizes are free; give those that it will run with: --input-shape",
                 options.model);
  std::optional<runtime::Target> target;
  if (!options.device.empty()) {
    SK_TRY_ASSIGN(target, runtime::open_target(options.device));
    if (target->driver == nullptr)
      return error(ErrorCode::invalid_argument,
                   "--device {}: the CPU takes a scale per channel; name an NPU (see skillet devices)", options.device);
  }
  SK_TRY(check_place(options.output));
  if (auto runs = ref::Interpreter::create(model); !runs.ok())
    return std::move(runs).error().with_context(options.model);
  Report report;
  report.model_layers = quantize::layers_of(model).size();
  if (report.model_layers == 0) report.advice = compile::quantization_advice(model, {});
  for (const ir::OpId op : quantize::others_of(model))
    report.others.push_back(fmt::format("op {} {}", model.op(op).source_index, ir::op_name(model.op(op))));
  SK_TRY_ASSIGN(const CalibrationData data, data_for(options, model, report));
  outcome.begin();
  SK_TRY_ASSIGN(const Bytes written, quantized_file(options, target, file, model, data, report));
  SK_TRY(write_file(options.output, written));
  if (options.json)
    print_json(options, report);
  else
    print_text(options, report);
  return {};
}

}  // namespace

void add_quantize(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb(
      "quantize",
      "Write the model anew for NPUs with one weight scale per job: weights with a scale per channel get one scale a\n"
      "layer (more with --allow-unproven), by pictures or arrays as the network will get them (docs/models.md).\n"
      "A quarter of them is held back, to measure how far the new network is from the model.\n"
      "Example: skillet quantize net.tflite -o one_scale.tflite --data pictures --device sim:a311d");
  verb.option("MODEL", options->model, "a .tflite file").required();
  verb.option("-o,--output", options->output, "file to write").required().check(not_empty());
  verb.option("--data", options->data,
              "folder of BMP, PNG and JPEG pictures, or of .npz or .npy files with an inference each; or a .npz or "
              ".npy file\nwhose arrays have the number of inferences in front")
      .required()
      .check(not_empty());
  verb.option("--device", options->device,
              "what the model is for: nothing is done if it takes a scale per channel, and the report predicts times "
              "before\nand after. " +
                  std::string(kDeviceHelp))
      .check(not_empty());
  const Option several_scales = verb.flag(
      "--allow-unproven", options->session.allow_unproven,
      "a layer may have several scales, each a job more, which no known driver ever ran on silicon: a real NPU "
      "takes\nthem with allow_unproven=1 only");
  several_scales.variable(kAllowUnprovenVariable);
  verb.option("--error", options->error,
              "with --allow-unproven: a layer gets more scales while its error is larger, rms, in steps of its output")
      .shows_default()
      .check(number_of_0_or_more())
      .needs(several_scales);
  add_input_shape(verb, options->import_as.input_shapes);
  add_float_pixels(verb, options->float_pixels);
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, &outcome] { outcome.finish(quantize_model(*options, outcome)); });
}

}  // namespace skillet::tools
