#include "tools/model/quantize_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/cli/verbs.h"
#include "tools/model/model.h"

namespace skillet::tools {
namespace {

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

bool has_constant_inputs(const QuantizeReport& report) {
  return !std::ranges::all_of(report.quantized.layers, &quantize::Layer::input_varies);
}

void print_layers(const QuantizeReport& report) {
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
  out("difference of each layer's result from that of its original weights on the same inputs, in steps of the output "
      "before rounding\n"
      "{}\n",
      table.print());
  if (has_constant_inputs(report))
    out("* its input never changes in the data: measured with inputs spread evenly over their type\n");
}

quantize::Fit all_layers(const QuantizeReport& report, quantize::Fit quantize::Layer::*which) {
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

size_t layers_beyond(const QuantizeOptions& options, const QuantizeReport& report) {
  return static_cast<size_t>(std::ranges::count_if(
      report.quantized.layers, [&](const quantize::Layer& one) { return one.seen.rms() > options.error; }));
}

bool is_copy(const QuantizeReport& report) { return report.quantized.layers.empty() && report.quantizer.empty(); }

std::string print_scales(const QuantizeReport& report) {
  std::map<size_t, size_t> layers;
  for (const quantize::Layer& one : report.quantized.layers) ++layers[one.scales];
  std::string out;
  for (const auto& [scales, count] : layers)
    out += fmt::format("{}{} with {} scale{}", out.empty() ? "" : ", ", count, scales, scales == 1 ? "" : "s");
  return out;
}

double largest_headroom(const QuantizeReport& report) {
  double out = 1;
  for (const quantize::Layer& one : report.quantized.layers) out = std::max(out, one.headroom);
  return out;
}

void print_layers_in_all(const QuantizeOptions& options, const QuantizeReport& report) {
  const quantize::Fit held = all_layers(report, &quantize::Layer::held);
  const quantize::Fit fit = held.values > 0 ? held : all_layers(report, &quantize::Layer::seen);
  out("{} of {} layers: {}; rms {:.2f} steps, {} beyond 1, {:.1f} at most ({})\n", report.quantized.layers.size(),
      report.model_layers, print_scales(report), fit.rms(), percent(fit.share_beyond()), fit.worst,
      held.values > 0               ? "held back"
      : has_constant_inputs(report) ? "calibration data, and evenly distributed inputs"
                                    : "calibration data");
  if (const size_t beyond = layers_beyond(options, report); beyond > 0)
    out("{} layers are beyond rms {:g}{}\n", beyond, options.error,
        options.session.allow_unproven ? ""
                                       : ": --allow-unproven lets a layer have more scales, each with its own job, "
                                         "which no known driver ever ran");
  if (largest_headroom(report) > 1)
    out("channels before depthwise layers were scaled up to use more steps, by a factor of {:.1f} at most: values "
        "beyond 1.1 times the largest in the data may be cut off\n",
        largest_headroom(report));
}

void print_outputs(const QuantizeReport& report) {
  const QuantizeOutputs& outputs = report.outputs;
  if (outputs.inferences == 0) return;
  const char* const which = outputs.are_held ? "" : " (calibration data)";
  if (outputs.has_classes)
    out("same best class as the model's: {} of {}{}{}\n", outputs.same_class, outputs.inferences, which,
        outputs.lost_margin < 0
            ? ""
            : fmt::format("; in the others the model's best class leads by {:g} at most", outputs.lost_margin));
  const auto differs = [](const Difference& one) { return one.differing > 0; };
  if (std::ranges::none_of(outputs.differences, differs))
    out("outputs: equal{}\n", which);
  else if (outputs.noise > 0)
    out("outputs: {:.1f} dB of signal to error{}\n", outputs.ratio_db(), which);
  for (size_t i = 0; i < outputs.differences.size(); ++i) {
    const Difference& one = outputs.differences[i];
    if (one.differing == 0) continue;
    out("  '{}': {}\n", printable(outputs.names[i]), print(one));
    if (i < outputs.noise_of.size()) out("    {}: {}\n", kNoise, print(outputs.noise_of[i]));
  }
}

const char* which_jobs(npu::Unproven unproven) {
  switch (unproven) {
    case npu::Unproven::refuse: return "(only jobs that are proven to work on such a chip)\n";
    case npu::Unproven::verify:
      return "(jobs that are proven to work on such a chip, and others after a comparison with the CPU)\n";
    default: return "";
  }
}

// Prints how the model runs on the device, before and after.
void print_places(const QuantizeOptions& options, const QuantizeReport& report) {
  TextTable table({"", "before", "after"});
  add_rows(table, *report.before, *report.after, is_onnx(options.model) ? "" : "the delegate");
  const std::string claims = is_onnx(options.model) ? "" : why_claims_differ(*report.before, *report.after);
  out("\n{}{}{}", table.print(), claims, which_jobs(unproven_of(options.session)));
  if (!report.after->time) return;
  const double after_us = report.after->time->whole_us();
  out("{}\n", print_cpu_alone(report.chip, report.cpu_alone_us));
  // Differences within the prediction's error are not reported.
  if (report.before->time && after_us > report.before->time->whole_us() * (1 + report.after->time->error))
    out("the whole network is predicted to be slower than before\n");
  const bool may_divide = may_divide_by_cores(session_options(options.session));
  if (const std::string faster = advise_cpu(report.chip, after_us, report.cpu_alone_us, may_divide); !faster.empty())
    out("{}\n", faster);
}

nlohmann::json to_json(const quantize::Fit& fit) {
  if (fit.values == 0) return {};
  return {{"rms", fit.rms()}, {"beyond_1", fit.share_beyond()}, {"worst", fit.worst}};
}

}  // namespace

std::string inferences(size_t count) { return fmt::format("{} inference{}", count, count == 1 ? "" : "s"); }

void print_text(const QuantizeOptions& options, const QuantizeReport& report) {
  if (!is_copy(report))
    out("{}: {} calibrated, {} {} held back\n\n", printable(options.model), inferences(report.seen), report.held,
        report.held == 1 ? "was" : "were");
  if (!report.quantizer.empty()) out("weights and activations quantized to 8 bits by {}\n", report.quantizer);
  if (!report.quantized.layers.empty()) {
    print_layers(report);
    print_layers_in_all(options, report);
  } else if (report.quantizer.empty()) {
    out("{}: nothing to do: {}; the file is a copy\n", printable(options.model),
        report.model_layers == 0 ? "no int8 layer has weights with several scales"
                                 : "the device takes a scale per channel");
  }
  print_outputs(report);
  for (const std::string& other : report.others)
    out("{} also has weights with several scales and keeps them: operations of its kind cannot be calibrated\n", other);
  if (report.before) print_places(options, report);
  out("written to {}\n", printable(options.output));
}

void print_json(const QuantizeOptions& options, const QuantizeReport& report) {
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
  const QuantizeOutputs& outputs = report.outputs;
  nlohmann::json all = {{"model", options.model},
                        {"file", options.output},
                        {"quantizer", report.quantizer.empty() ? nlohmann::json() : nlohmann::json(report.quantizer)},
                        {"copy", is_copy(report)},
                        {"error", options.error},
                        {"inferences", report.found},
                        {"calibrated", is_copy(report) ? 0 : report.seen},
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
  for (size_t i = 0; i < outputs.differences.size(); ++i) {
    nlohmann::json one = to_json(outputs.differences[i]);
    if (i < outputs.noise_of.size()) one["noise"] = to_json(outputs.noise_of[i]);
    all["outputs"]["differences"].push_back(std::move(one));
  }
  if (outputs.lost_margin >= 0) all["outputs"]["lost_margin"] = outputs.lost_margin;
  if (report.before) {
    all["device"] = options.device;
    all["before"] = to_json(*report.before);
    all["after"] = to_json(*report.after);
    all["cpu_alone_ms"] = ms_or_null(report.cpu_alone_us);
  }
  out_report(std::move(all));
}

}  // namespace skillet::tools
