// `skillet quantize`: writes a model file with few weight scales per layer, for chips that have one scale per job.
#include "graph/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "compile/advice.h"
#include "graph/import/import.h"
#include "graph/import/rewrite_file.h"
#include "tools/cli/input_flags.h"
#include "tools/cli/orderly_end.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/model/float_model.h"
#include "tools/model/model.h"
#include "tools/model/quantize_report.h"
#include "tools/run/apart.h"
#include "tools/run/found.h"
#include "tools/run/run_judge.h"
#include "tools/run/scores.h"
#include "tools/show/progress.h"
#include "tools/tensors/calibration_data.h"

namespace skillet::tools {
namespace {

constexpr size_t kScalesMax = 16;

void add_error(const ir::Tensor& tensor, std::span<const uint8_t> wanted, std::span<const uint8_t> got,
               QuantizeOutputs& sum) {
  if (unit_of(tensor) == Unit::number) return;
  for (int64_t i = 0; i < tensor.shape.elems(); ++i) {
    const double from = real_value(tensor, wanted, i), off = real_value(tensor, got, i) - from;
    if (!std::isfinite(from) || !std::isfinite(off)) continue;
    sum.signal += from * from;
    sum.noise += off * off;
  }
}

Result<QuantizeOutputs> compare(const ir::Graph& model, const ir::Graph& made, const CalibrationData& data) {
  SK_TRY_ASSIGN(const Run old_one, cpu_kernels(model));
  SK_TRY_ASSIGN(const Run with_noise, cpu_kernels(model));
  SK_TRY_ASSIGN(const Run new_one, cpu_kernels(made));
  QuantizeOutputs out{.are_held = !data.held.empty()};
  out.has_classes = recognise(model) == Task::classes;
  for (const std::vector<Bytes>& inputs : out.are_held ? data.held : data.seen) {
    SK_TRY_ASSIGN(const std::vector<Bytes> wanted, old_one(inputs));
    SK_TRY_ASSIGN(const std::vector<Bytes> got, new_one(inputs));
    for (size_t i = 0; i < wanted.size(); ++i) add_error(model.tensor(model.outputs[i]), wanted[i], got[i], out);
    SK_TRY_ASSIGN(const std::vector<Difference> moved, moved_by_noise(model, inputs, wanted, with_noise));
    out.noise_of.resize(moved.size());
    for (size_t i = 0; i < moved.size(); ++i) out.noise_of[i].add(moved[i]);
    out.differences.resize(wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) out.differences[i].add(difference_of(model, i, got[i], wanted[i]));
    if (out.has_classes) {
      const SameClass found = same_class(model.tensor(model.outputs[0]), got[0], wanted[0]);
      out.same_class += found.is_same ? 1 : 0;
      if (!found.is_same) out.lost_margin = std::max(out.lost_margin, found.margin);
    }
    ++out.inferences;
  }
  return out;
}

// The target as real hardware, so that unproven jobs are treated alike on a simulated chip.
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

// Maximum number of scales of a layer. Several scales need several jobs, which no known driver is known to do: only
// allowed with unproven operations.
class ScalesMax {
 public:
  ScalesMax(const std::optional<runtime::Target>& target, const QuantizeOptions& options, const ir::Graph& model)
      : target_(target), most_(options.session.allow_unproven ? kScalesMax : 1), plain_(with_one_scale(model)) {}

  size_t operator()(ir::OpId op) const {
    if (!target_) return most_;
    const size_t jobs = target_->driver->weight_scales_max(target_->chip, plain_, op);
    if (jobs == SIZE_MAX) return 0;
    return takes_depthwise(op) ? 1 : std::min(jobs, most_);
  }

 private:
  // Depthwise filters that the chip takes directly would become filters of a convolution, which is slower.
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

// ---- the verb ----

// Warns of layers whose input is constant in the data: the result may be wrong for other inputs.
void warn_of_constant_inputs(const QuantizeOptions& options, const quantize::Quantized& quantized) {
  constexpr size_t kNamed = 4;
  size_t found = 0;
  for (const quantize::Layer& one : quantized.layers) {
    if (one.input_varies || ++found > kNamed) continue;
    const ir::Op& op = quantized.graph.op(one.op);
    log::warning("{}: op {} {}: its input '{}' never changes in the calibration data", options.data, op.source_index,
                 ir::op_name(op), quantized.graph.tensor(op.inputs[0]).name);
  }
  if (found > 0)
    log::warning(
        "{}: weights of {} layer{} are rounded for evenly distributed inputs; use data in which their inputs change",
        options.data, found, found == 1 ? "" : "s");
}

Result<CalibrationData> data_for(const QuantizeOptions& options, const ir::Graph& model, QuantizeReport& report) {
  SK_TRY_ASSIGN(CalibrationData data, read_calibration_data(options.data, model, options.float_pixels));
  report.seen = data.seen.size();
  report.held = data.held.size();
  report.found = data.found;
  report.repeats = data.repeats;
  const size_t different = report.seen + report.held, taken = different + data.repeats;
  if (taken < data.found)
    log::warning("{}: {} of {} inferences are used, evenly spaced; more hardly change the result", options.data, taken,
                 data.found);
  if (data.repeats > 0)
    log::warning("{}: {} of {} inferences repeat others and are skipped", options.data, data.repeats, taken);
  if (different < kFewInferences)
    log::warning("{}: only {}; the weights may fit only these: {} or more are recommended", options.data,
                 inferences(different), kFewInferences);
  return data;
}

// The file to rewrite: the model, or the 8-bit file made from a float model.
struct Source {
  Bytes file;
  ir::Graph graph;
};

Result<quantize::Quantized> with_few_scales(const QuantizeOptions& options,
                                            const std::optional<runtime::Target>& target, const ir::Graph& graph,
                                            const CalibrationData& data) {
  Progress progress("calibrating");
  quantize::Options how{.error = options.error};
  how.scales_max = ScalesMax(target, options, graph);
  how.progress = [&](size_t done, size_t all) {
    progress.say(fmt::format("calibrating layer {} of {}", done + 1, all));
  };
  return quantize::quantize(graph, data.seen, data.held, how);
}

// Compares the new network with the model.
Result<void> judge(const QuantizeOptions& options, const std::optional<runtime::Target>& target, const ir::Graph& model,
                   const ir::Graph& made, const CalibrationData& data, QuantizeReport& report) {
  const Progress progress("comparing");
  SK_TRY_ASSIGN(report.outputs, compare(model, made, data));
  for (const ir::TensorId id : made.outputs) report.outputs.names.push_back(made.tensor(id).name);
  if (!target) return {};
  const runtime::Target board = as_on_a_board(*target);
  report.chip = target->chip.name;
  report.cpu_alone_us = cpu_alone_us(report.chip, made);
  SK_TRY_ASSIGN(report.before, place(board, model, session_options(options.session)));
  SK_TRY_ASSIGN(report.after, place(board, made, session_options(options.session)));
  return {};
}

// True if an 8-bit layer has several scales. Such an ONNX file is quantized again, from its dequantized weights.
bool has_scales_per_channel(const ir::Graph& graph) {
  return std::ranges::any_of(quantize::layers_of(graph), [&](ir::OpId op) {
    return !ir::all_equal(graph.tensor(graph.op(op).inputs[1]).quant.scales);
  });
}

bool takes_scales_per_channel(const std::optional<runtime::Target>& target, const QuantizeOptions& options,
                              const ir::Graph& graph) {
  const ScalesMax scales_max(target, options, graph);
  return target && std::ranges::all_of(quantize::layers_of(graph), [&](ir::OpId op) { return scales_max(op) == 0; });
}

// Keeps the quantizer's scales for ONNX files: per channel if the device takes them for all layers, else per tensor.
Result<EightBits> with_eight_bits(const QuantizeOptions& options, const std::optional<runtime::Target>& target,
                                  const Source& source, const CalibrationData& data) {
  const OrderlyEnd end;  // the quantizer is another process with its own files
  const Progress progress("quantizing");
  const auto made_with = [&](Weights weights) {
    return quantize_float(options.model, source.file, source.graph, data.seen, weights, options.import_as);
  };
  if (!is_float_model(source.graph)) return made_with(Weights::scale_per_tensor);
  auto made = made_with(Weights::scale_per_channel);
  if (!made.ok() || !is_onnx(options.model) || takes_scales_per_channel(target, options, made->graph)) return made;
  return made_with(Weights::scale_per_tensor);
}

Result<Bytes> quantized_file(const QuantizeOptions& options, const std::optional<runtime::Target>& target,
                             Source source, const CalibrationData& data, QuantizeReport& report) {
  const ir::Graph model = source.graph;
  const bool is_anew = is_onnx(options.model) && !takes_scales_per_channel(target, options, model);
  if (is_float_model(model) || is_anew) {
    SK_TRY_ASSIGN(EightBits made, with_eight_bits(options, target, source, data));
    source = {.file = std::move(made.file), .graph = std::move(made.graph)};
    report.quantizer = printable(made.by);
    for (const std::string& note : made.notes) log::warning("{}: {}", options.model, printable(note));
  }
  report.model_layers = quantize::layers_of(source.graph).size();
  if (is_onnx(options.model)) {
    SK_TRY(judge(options, target, model, source.graph, data, report));
    return std::move(source.file);
  }
  for (const ir::OpId op : quantize::others_of(source.graph))
    report.others.push_back(
        fmt::format("op {} {}", source.graph.op(op).source_index, ir::op_name(source.graph.op(op))));
  SK_TRY_ASSIGN(report.quantized, with_few_scales(options, target, source.graph, data));
  if (report.quantized.layers.empty()) {
    if (!report.quantizer.empty()) SK_TRY(judge(options, target, model, source.graph, data, report));
    return std::move(source.file);
  }
  warn_of_constant_inputs(options, report.quantized);
  SK_TRY_ASSIGN(Bytes written, tflite::rewrite_file(source.file, source.graph, report.quantized.graph));
  SK_TRY_ASSIGN(const ir::Graph again,
                tflite::import(written, options.output, options.import_as));  // as other programs read it
  SK_TRY(judge(options, target, model, again, data, report));
  return written;
}

Result<void> check_model(const QuantizeOptions& options, const ir::Graph& model) {
  if (is_onnx(options.model) && !is_float_model(model) && !has_scales_per_channel(model))
    return error(ErrorCode::unsupported,
                 "{}: ONNX files are quantized if they are float or have a scale per channel: layers with weights have "
                 "one scale each here, or there are none",
                 options.model);
  const bool has_layers = is_float_model(model) || !quantize::layers_of(model).empty();
  if (const std::string advice = has_layers ? "" : compile::quantization_advice(model, {}, words_of(options.model));
      !advice.empty())
    return error(ErrorCode::unsupported, "{}: {}", options.model, advice);
  if (model.has_free_sizes)
    return error(ErrorCode::invalid_argument, "{}: its sizes are free; give the sizes it will run with: --input-shape",
                 options.model);
  if (is_float_model(model) && !is_onnx(options.model) && !options.import_as.input_shapes.empty())
    return error(ErrorCode::unsupported,
                 "{}: --input-shape: float .tflite files are quantized with their own sizes; export the model with the "
                 "sizes it will run with",
                 options.model);
  if (auto runs = ref::Interpreter::create(model); !runs.ok())
    return std::move(runs).error().with_context(options.model);
  return {};
}

Result<std::optional<runtime::Target>> target_of(const QuantizeOptions& options) {
  if (options.device.empty()) return std::optional<runtime::Target>();
  SK_TRY_ASSIGN(runtime::Target target, runtime::open_target(options.device));
  if (target.driver == nullptr)
    return error(ErrorCode::invalid_argument,
                 "--device {}: the CPU takes a scale per channel; name an NPU (see skillet devices)", options.device);
  return std::optional(std::move(target));
}

Result<void> quantize_model(const QuantizeOptions& options, Outcome& outcome) {
  SK_TRY(check_apart({{"MODEL", options.model}, {"--data", options.data}}, {{"--output", options.output}}));
  Source source;
  SK_TRY_ASSIGN(source.file, read_file(options.model));
  SK_TRY_ASSIGN(source.graph, import_model(options.model, options.import_as));
  if (!is_onnx(options.model))
    SK_TRY_INTO(source.file, tflite::flat_file(std::move(source.file), source.graph).with_context(options.model));
  SK_TRY_ASSIGN(const std::optional<runtime::Target> target, target_of(options));
  SK_TRY(check_place(options.output));
  SK_TRY(check_model(options, source.graph));
  QuantizeReport report;
  SK_TRY_ASSIGN(const CalibrationData data, data_for(options, source.graph, report));
  outcome.begin();
  SK_TRY_ASSIGN(const Bytes written, quantized_file(options, target, std::move(source), data, report));
  SK_TRY(write_file(options.output, written));
  if (options.json)
    print_json(options, report);
  else
    print_text(options, report);
  return {};
}

}  // namespace

void add_quantize(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<QuantizeOptions>();
  const Verb verb =
      app.verb("quantize",
               "Quantize a model for NPUs, using pictures or arrays as it will get them (docs/models.md).\n"
               "Weights with a scale per channel get one scale per layer (more with --allow-unproven), for chips\n"
               "with one per job. Float models, also ONNX, are first quantized to 8 bits by the Python packages\n"
               "ai-edge-quantizer or onnxruntime. A quarter of the data is held back, to measure how much the new\n"
               "network differs from the model.\n"
               "Example: skillet quantize net.tflite -o one_scale.tflite --data pictures --device sim:a311d");
  verb.option("MODEL", options->model,
              "a .tflite file, or an .onnx file that is float or has QuantizeLinear nodes and a scale per channel")
      .required();
  verb.option("-o,--output", options->output, "file to write").required().check(not_empty());
  verb.option("--data", options->data,
              "folder of BMP, PNG and JPEG pictures, or of .npz or .npy files with one inference each; or a .npz or "
              ".npy file whose first dimension is the inferences")
      .required()
      .check(not_empty());
  verb.option(
          "--device", options->device,
          "target of the model: a chip that takes a scale per channel gets one, and the report predicts times before\n"
          "and after. " +
              std::string(kDeviceHelp))
      .check(not_empty());
  const Option several_scales =
      verb.flag("--allow-unproven", options->session.allow_unproven,
                "layers of .tflite files may have several scales, each with its own job, which no known driver ever "
                "ran on silicon: a real NPU takes them after a comparison with the CPU (unproven=verify, the default)");
  several_scales.variable(kAllowUnprovenVariable);
  verb.option("--error", options->error,
              "with --allow-unproven: add scales to a layer while its rms error is larger, in steps of its output")
      .shows_default()
      .check(number_of_0_or_more())
      .needs(several_scales);
  add_input_shape(verb, options->import_as.input_shapes);
  add_float_pixels(verb, options->float_pixels);
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, &outcome] { outcome.finish(quantize_model(*options, outcome)); });
}

}  // namespace skillet::tools
