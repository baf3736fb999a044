#include "compile/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <tuple>

#include "base/is_any_of.h"

namespace skillet::compile {
namespace {

struct Counts {
  size_t weighted = 0, float_weights = 0, float_activations = 0;
  size_t wide_activations = 0;  // not supported by the chip
};

bool has_weights(ir::OpKind kind) {
  using enum ir::OpKind;
  return is_any_of(kind, {conv_2d, depthwise_conv_2d, transpose_conv, fully_connected});
}

bool differs(const std::vector<float>& scales) {
  return std::ranges::any_of(scales, [&](float scale) { return scale != scales[0]; });
}

// True for an ONNX file with 16-bit integers between quantizing and dequantizing nodes, which no kernel here runs.
bool has_wide_opaques(const ir::Graph& graph) {
  return std::ranges::any_of(graph.ops, [&](const ir::Op& op) {
    if (op.kind != ir::OpKind::opaque || op.opaque_name != "QuantizeLinear" || op.outputs.empty()) return false;
    const ir::DType dtype = graph.tensor(op.outputs[0]).dtype;
    return dtype == ir::DType::int16 || dtype == ir::DType::uint16;
  });
}

Counts count(const ir::Graph& graph, const passes::Target& target) {
  Counts out;
  const bool has_wide = has_wide_opaques(graph);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const ir::Op& op = graph.ops[i];
    if (!has_weights(op.kind) || op.input(1) == ir::kNoTensor || op.outputs.empty()) continue;
    const ir::Tensor &weights = graph.tensor(op.input(1)), &result = graph.tensor(op.outputs[0]);
    ++out.weighted;
    out.float_weights += weights.dtype == ir::DType::float32 || weights.dtype == ir::DType::float16;
    const bool is_float = result.dtype == ir::DType::float32;
    out.float_activations += is_float && !has_wide;
    out.wide_activations += is_float && has_wide;
    if (result.dtype == ir::DType::int16)
      out.wide_activations +=
          target.driver == nullptr || !target.driver->supports(target.chip, graph, static_cast<ir::OpId>(i)).ok;
  }
  return out;
}

// The graph as if all weights and biases had been quantized with one scale each.
ir::Graph per_tensor(ir::Graph graph) {
  for (const ir::Op& op : graph.ops) {
    if (!has_weights(op.kind)) continue;
    for (const ir::TensorId id : op.inputs) {
      if (id == ir::kNoTensor || !graph.tensor(id).quant.per_channel()) continue;
      ir::Quant& quant = graph.tensor(id).quant;
      quant.scales = {*std::ranges::max_element(quant.scales)};
      quant.zero_points.resize(1);
    }
  }
  return graph;
}

// Number of operations that the chip refuses only because of their scales.
size_t refused_for_their_scales(const ir::Graph& graph, const passes::Target& target) {
  if (target.driver == nullptr) return 0;
  const auto is_per_channel = [&](const ir::Op& op) {
    if (!has_weights(op.kind) || op.input(1) == ir::kNoTensor) return false;
    const std::vector<float>& scales = graph.tensor(op.input(1)).quant.scales;
    return differs(scales) && std::ranges::min(scales) > 0;  // a scale of 0 cannot be shared
  };
  if (std::ranges::none_of(graph.ops, is_per_channel)) return 0;
  if (target.per_channel == npu::PerChannel::approximate) return 0;
  const ir::Graph coarse = per_tensor(graph);
  ir::Graph shared = graph;
  passes::share_weight_scales(shared, target);
  size_t count = 0;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto id = static_cast<ir::OpId>(i);
    if (is_per_channel(graph.ops[i]) && !target.driver->supports(target.chip, shared, id).ok &&
        target.driver->supports(target.chip, coarse, id).ok)
      ++count;
  }
  return count;
}

const std::string& plain(const OpRow& row) { return row.plain.empty() ? row.why : row.plain; }

// "1x10x1x8x32", "4096", "1.5e-05" are all "#"; "int8", "CONV_2D" are names.
std::string without_numbers(std::string_view text) {
  const auto is_digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  const auto is_letter = [&](size_t i) {
    return i < text.size() && (std::isalpha(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
  };
  const auto end_of = [&](size_t i) {
    while (true) {
      const bool has_sign = i + 1 < text.size() && text[i] == 'e' && (text[i + 1] == '-' || text[i + 1] == '+');
      if (is_digit(i))
        ++i;
      else if (i < text.size() && (text[i] == 'x' || text[i] == '.' || text[i] == 'e') && is_digit(i + 1))
        i += 2;
      else if (has_sign && is_digit(i + 2))
        i += 3;
      else
        return i;
    }
  };
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t end = is_digit(i) && (i == 0 || (!is_letter(i - 1) && !is_digit(i - 1))) ? end_of(i) : i;
    if (end == i || is_letter(end)) {
      out += text[i++];
      continue;
    }
    out += '#';
    i = end;
  }
  return out;
}

// Indexed by Words.
constexpr std::array<std::string_view, 2> kHow = {
    "TensorFlow's TFLiteConverter with optimizations=[tf.lite.Optimize.DEFAULT], a representative_dataset and "
    "supported_ops=[tf.lite.OpsSet.TFLITE_BUILTINS_INT8] (docs/models.md)",
    "onnxruntime.quantization.quantize_static (docs/onnx.md)"};
constexpr std::array<std::string_view, 2> kHowNarrower = {
    "TensorFlow's TFLiteConverter with supported_ops=[tf.lite.OpsSet.TFLITE_BUILTINS_INT8] instead of the 16x8 mode "
    "(docs/models.md)",
    "onnxruntime.quantization.quantize_static with activation_type=QuantType.QUInt8 or QInt8 (docs/onnx.md)"};

struct OnnxText {
  npu::Remedy remedy;
  std::string_view text;
};
constexpr OnnxText kOnnxTexts[] = {
#define REMEDY_OF_ONNX(name, text) {npu::Remedy::name, text},
#include "npu/remedies_onnx.def"
#undef REMEDY_OF_ONNX
};

std::string_view remedy_in(Words words, npu::Remedy remedy) {
  const auto* const row = std::ranges::find(kOnnxTexts, remedy, &OnnxText::remedy);
  return words == Words::onnx && row != std::end(kOnnxTexts) ? row->text : npu::remedy_text(remedy);
}

}  // namespace

std::string remarks(const OpRow& row) {
  const std::string& why = plain(row);
  return why + (why.empty() || row.note.empty() ? "" : "; ") + row.note;
}

std::string ReasonGroup::remedy_text(Words words) const {
  if (nowhere && remedy == npu::Remedy::none)
    return "none: neither the NPU nor Skillet's CPU kernels can run it; a host program may run it itself "
           "(docs/delegate.md, docs/onnxruntime.md)";
  std::string out(remedy_in(words, remedy));
  if (remedy == npu::Remedy::fix && words == Words::tflite)
    out += "; with --partition all also operations predicted to be faster on the CPU";
  if (cpu_us < 0) return out;
  const std::string ms = cpu_us < 0.5 ? "less than 0.001 ms" : fmt::format("{:.3f} ms", cpu_us / 1000);
  return out + (remedy == npu::Remedy::none ? fmt::format(", costs {} (simulated)", ms)
                                            : fmt::format("; it now takes {} on all CPU cores (simulated)", ms));
}

void advise_unproven(std::span<OpRow> rows, const Compiled& compiled, const Compiled& with_unproven) {
  struct Taken {
    bool all = true;  // the NPU takes everything that the operation became
    std::vector<std::string_view> stands_on;
  };
  std::map<int32_t, Taken> taken;  // by operation of the model
  for (const OpRow& row : compile::rows(with_unproven)) {
    Taken& one = taken[with_unproven.graph.op(row.op).source_index];
    one.all &= row.on_npu || row.remedy == npu::Remedy::take_all;  // only predicted to be slower
    for (const std::string_view name : npu::names_of(row.stands_on))
      if (std::ranges::count(one.stands_on, name) == 0) one.stands_on.push_back(name);
  }
  for (const auto& [gone, now] : absorbed_by(with_unproven.rewrites))
    if (const auto at = taken.find(now); at != taken.end()) taken.emplace(gone, at->second);
  for (OpRow& row : rows) {
    const auto at = taken.find(compiled.graph.op(row.op).source_index);
    using enum npu::Remedy;
    // Remedies that ask for another model, although an option is enough.
    const bool is_open = row.remedy == none || row.remedy == form || row.remedy == pixels || row.remedy == one_image ||
                         row.remedy == npu::remedy_of_op(compiled.graph, row.op);
    if (row.on_npu || !is_open || at == taken.end() || !at->second.all) continue;
    row.remedy = npu::Remedy::unproven;
    row.why = row.plain = npu::why_refused("", at->second.stands_on);
  }
}

std::vector<ReasonGroup> group_reasons(std::span<const OpRow> rows) {
  std::vector<ReasonGroup> groups;
  for (const OpRow& row : rows) {
    if (row.on_npu || row.why.empty()) continue;
    const std::string& reason = plain(row);
    const std::string form = without_numbers(reason);
    const auto is_alike = [&](const ReasonGroup& one) {
      return one.form == form && one.remedy == row.remedy && one.nowhere == row.nowhere;
    };
    auto group = std::ranges::find_if(groups, is_alike);
    if (group == groups.end())
      group = groups.insert(
          groups.end(), {.reason = reason, .form = form, .remedy = row.remedy, .cpu_us = 0, .nowhere = row.nowhere});
    ++group->ops;
    group->others += reason != group->reason ? 1 : 0;
    group->cpu_us = row.nowhere || row.cpu_us < 0 || group->cpu_us < 0 ? -1 : group->cpu_us + row.cpu_us;
  }
  for (ReasonGroup& group : groups)
    if (group.others != 0) group.reason += fmt::format(" (other numbers in {} of them)", group.others);
  std::ranges::stable_sort(groups, std::greater{},
                           [](const ReasonGroup& group) { return std::tuple(group.nowhere, group.cpu_us, group.ops); });
  return groups;
}

namespace {

constexpr std::array<std::string_view, 3> kState = {"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"};
constexpr std::array<std::string_view, 4> kControlFlow = {"WHILE", "IF", "CALL", "CALL_ONCE"};

// Empty: our kernels have all operations.
std::string advise_missing(const ir::Graph& graph) {
  // Operations with state between runs, or with subgraphs: no other scale or type helps.
  for (const ir::Op& op : graph.ops) {
    if (op.kind == ir::OpKind::opaque && std::ranges::count(kState, op.opaque_name))
      return fmt::format(
          "{}: variables are not supported (docs/cpu.md); convert the model with its state as an input and an output",
          op.opaque_name);
  }
  for (const ir::Op& op : graph.ops) {
    if (op.kind != ir::OpKind::opaque || !std::ranges::count(kControlFlow, op.opaque_name)) continue;
    return fmt::format(
        "{}: loops need a number of steps that is known, branches results of one shape (docs/cpu.md); convert the "
        "model so: Keras' LSTM and GRU with a known number of steps",
        op.opaque_name);
  }
  return "";
}

}  // namespace

bool keeps_state_or_branches(const ir::Op& op) {
  return op.kind == ir::OpKind::opaque &&
         (std::ranges::count(kState, op.opaque_name) || std::ranges::count(kControlFlow, op.opaque_name));
}

std::string quantization_advice(const ir::Graph& graph, const passes::Target& target, Words words, Rest rest) {
  if (rest == Rest::on_our_cpu)
    if (std::string missing = advise_missing(graph); !missing.empty()) return missing;
  const Counts counts = count(graph, target);
  if (counts.weighted == 0) return "";
  if (counts.float_activations > counts.weighted / 2)
    return fmt::format("{}{}",
                       counts.float_weights > counts.weighted / 2
                           ? "the network is not quantized: NPUs compute with 8-bit integers; quantize it to 8 bits, "
                             "activations too, with skillet quantize or "
                           : "only the weights of the network are quantized (dynamic range): NPUs compute with 8-bit "
                             "integers; quantize the float model to 8 bits, activations too, with skillet quantize or ",
                       kHow[static_cast<size_t>(words)]);
  if (counts.wide_activations > counts.weighted / 2)
    return fmt::format(
        "the network is quantized with 16-bit activations (16x8), but the chip takes 8-bit ones only; quantize "
        "activations to {}: {}",
        words == Words::onnx ? "8 bits" : "int8", kHowNarrower[static_cast<size_t>(words)]);
  if (const size_t refused = refused_for_their_scales(graph, target); refused > 0)
    return fmt::format(
        "{} of {} operations with weights have a scale per channel, but the chip takes one per job: `skillet quantize` "
        "writes a model with one scale per layer, using typical inputs (docs/models.md); without such inputs, "
        "per_channel=approximate (--per-channel, SKILLET_PER_CHANNEL) lets channels share scales, and --compare=layers "
        "shows how much results change",
        refused, counts.weighted);
  return "";
}

}  // namespace skillet::compile
