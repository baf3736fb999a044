// The report of `skillet run`: text for people, JSON for programs.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/model.h"
#include "tools/run_result.h"
#include "tools/text_table.h"

namespace skillet::tools {
namespace {

using runtime::PartReport;
using runtime::Session;

struct Where {
  size_t npu_ops = 0, cpu_ops = 0, npu_parts = 0, jobs = 0;
};

bool runs_on_npu(const PartReport& part) { return part.on_npu && part.fallback.empty(); }

Where count(const Session& session) {
  Where out;
  for (size_t i = 0; i < session.report().parts.size(); ++i) {
    const PartReport& part = session.report().parts[i];
    (runs_on_npu(part) ? out.npu_ops : out.cpu_ops) += part.ops.size();
    out.npu_parts += runs_on_npu(part) ? 1 : 0;
    if (const driver::Program* program = session.program(i)) out.jobs += program->jobs.size();
  }
  return out;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

std::string unit(const std::string& type) { return type.starts_with("float") ? "" : " LSB"; }

// "seven (0.99, 254/255)"
std::string caption(const TopClass& top) {
  const std::string name = top.label.empty() ? fmt::format("class {}", top.index) : top.label;
  return fmt::format("{} ({:.2f})", name, top.score);
}

// Drawings side by side, each with its name and best class below.
std::string gallery(const std::vector<Inference>& inferences) {
  constexpr int kColumns = 22, kPerRow = 4;
  std::string out;
  for (size_t first = 0; first < inferences.size(); first += kPerRow) {
    const size_t count = std::min<size_t>(kPerRow, inferences.size() - first);
    std::vector<std::vector<std::string>> drawings;
    size_t height = 0;
    for (size_t i = first; i < first + count; ++i) {
      const Inference& inference = inferences[i];
      drawings.push_back(inference.picture ? draw(*inference.picture, kColumns) : std::vector<std::string>{});
      const bool known = !inference.outputs.empty() && !inference.outputs[0].top.empty();
      drawings.back().push_back(inference.input + (known ? " -> " + caption(inference.outputs[0].top[0]) : ""));
      height = std::max(height, drawings.back().size());
    }
    for (size_t row = 0; row < height; ++row) {
      std::string line;
      for (const auto& drawing : drawings)
        line += fmt::format("  {:<{}}", row < drawing.size() ? drawing[row] : "", kColumns);
      line.resize(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    out += "\n";
  }
  return out;
}

std::string print_output(const OutputResult& output) {
  std::string out = fmt::format("output '{}' {}", output.name, output.type);
  if (output.top.empty()) {
    out += fmt::format(": values {:.6g} to {:.6g}\n", output.low, output.high);
  } else {
    TextTable table({"class", "score", "stored", "label"});
    for (const TopClass& top : output.top)
      table.add({fmt::format("{}", top.index), fmt::format("{:.4f}", top.score), top.raw, top.label});
    out += fmt::format(", best {}\n{}", output.top.size(), table.print());
  }
  if (output.difference)
    out += fmt::format("  largest difference from the CPU kernels: {:g}{}\n", *output.difference, unit(output.type));
  return out;
}

std::string print_inferences(const RunResult& result) {
  std::string out;
  const bool drawn = std::ranges::any_of(result.inferences, [](const Inference& i) { return i.picture.has_value(); });
  if (drawn) out += gallery(result.inferences);
  if (result.inferences.size() == 1) {
    for (const OutputResult& output : result.inferences[0].outputs) out += print_output(output);
    return out + "\n";
  }
  TextTable table({"picture", "best class", "score", "stored", "largest difference from cpu"});
  for (const Inference& inference : result.inferences) {
    if (inference.outputs.empty()) continue;
    const OutputResult& output = inference.outputs[0];
    const TopClass top = output.top.empty() ? TopClass{} : output.top[0];
    table.add({inference.input, top.label.empty() ? fmt::format("{}", top.index) : top.label,
               fmt::format("{:.4f}", top.score), top.raw,
               output.difference ? fmt::format("{:g}{}", *output.difference, unit(output.type)) : ""});
  }
  return out + table.print() + "\n";
}

std::string print_ops(const Session& session) {
  TextTable table({"op", "kind", "output", "part", "where", "reason"});
  for (size_t i = 0; i < session.report().ops.size(); ++i) {
    const auto op = static_cast<ir::OpId>(i);
    const runtime::OpReport& report = session.report().ops[i];
    const PartReport& part = session.report().parts[report.part];
    const bool on_npu = report.on_npu && runs_on_npu(part);
    std::string reason = report.unproven ? "unproven: " + report.reason : report.reason;
    if (report.on_npu && !on_npu) reason = part.fallback;
    table.add({fmt::format("{}", i), std::string(ir::op_name(session.graph().op(op))),
               output_shape(session.graph(), op), fmt::format("{}", report.part), on_npu ? "npu" : "cpu", reason});
  }
  return table.print();
}

std::string print_layers(const Session& session, const std::vector<runtime::LayerDiff>& layers) {
  TextTable table({"op", "kind", "output", "differing", "largest difference"});
  size_t compared = 0;
  double worst = 0;
  for (const runtime::LayerDiff& layer : layers) {
    const std::string kind(ir::op_name(session.graph().op(layer.op)));
    const std::string shape = session.graph().tensor(layer.tensor).shape.to_string();
    if (!layer.compared) {
      table.add({fmt::format("{}", layer.op), kind, shape, "-", "not kept by the NPU (part of a later operation)"});
      continue;
    }
    ++compared;
    worst = std::max(worst, layer.max_abs_diff);
    table.add({fmt::format("{}", layer.op), kind, shape,
               fmt::format("{} of {}", print_count(static_cast<uint64_t>(layer.differing)),
                           print_count(static_cast<uint64_t>(layer.elems))),
               fmt::format("{:g} LSB", layer.max_abs_diff)});
  }
  return fmt::format("NPU operations against the CPU kernels, each given the NPU's own inputs\n{}", table.print()) +
         fmt::format("{} of {} layers compared, largest difference {:g} LSB\n\n", compared, layers.size(), worst);
}

std::string print_times(const RunResult& result, const Session& session) {
  TextTable table({"stage", "time", "what"});
  table.add({"import", print_ms(result.import_ms), "reading and checking the model"});
  table.add({"passes", print_ms(session.report().passes_ms), "making the graph ready, dividing it"});
  for (size_t i = 0; i < session.report().parts.size(); ++i) {
    const PartReport& part = session.report().parts[i];
    const std::string what =
        fmt::format("part {} on the {}: {} operations", i, runs_on_npu(part) ? "NPU" : "CPU", part.ops.size());
    table.add({"compile", print_ms(part.compile_ms), what});
    if (runs_on_npu(part)) table.add({"load", print_ms(part.load_ms), what});
    table.add({"run", print_ms(part.run_ms), what});
  }
  std::vector<double> runs;
  for (const Inference& inference : result.inferences)
    runs.insert(runs.end(), inference.run_ms.begin(), inference.run_ms.end());
  table.add(
      {"inference", print_ms(median(runs)), runs.size() > 1 ? fmt::format("median of {}", runs.size()) : "all parts"});
  if (result.reference_ms > 0)
    table.add({"reference", print_ms(result.reference_ms / static_cast<double>(result.inferences.size())),
               "the whole network on the CPU kernels"});
  return table.print();
}

nlohmann::json outputs_json(const Inference& inference) {
  nlohmann::json out = nlohmann::json::array();
  for (const OutputResult& output : inference.outputs) {
    nlohmann::json top = nlohmann::json::array();
    for (const TopClass& one : output.top)
      top.push_back({{"class", one.index}, {"score", one.score}, {"stored", one.raw}, {"label", one.label}});
    nlohmann::json row = {
        {"name", output.name}, {"type", output.type}, {"low", output.low}, {"high", output.high}, {"top", top}};
    if (output.difference) row["max_difference"] = *output.difference;
    out.push_back(std::move(row));
  }
  return out;
}

nlohmann::json inferences_json(const RunResult& result) {
  nlohmann::json out = nlohmann::json::array();
  for (const Inference& inference : result.inferences) {
    nlohmann::json row = {
        {"input", inference.input}, {"run_ms", inference.run_ms}, {"outputs", outputs_json(inference)}};
    for (const runtime::LayerDiff& layer : inference.layers)
      row["layers"].push_back({{"op", layer.op},
                               {"tensor", layer.tensor},
                               {"compared", layer.compared},
                               {"elems", layer.elems},
                               {"differing", layer.differing},
                               {"max_difference", layer.max_abs_diff}});
    out.push_back(std::move(row));
  }
  return out;
}

nlohmann::json parts_json(const Session& session) {
  nlohmann::json out = nlohmann::json::array();
  for (size_t i = 0; i < session.report().parts.size(); ++i) {
    const PartReport& part = session.report().parts[i];
    const driver::Program* program = session.program(i);
    out.push_back({{"where", runs_on_npu(part) ? "npu" : "cpu"},
                   {"ops", part.ops},
                   {"fallback", part.fallback},
                   {"jobs", program ? program->jobs.size() : 0},
                   {"compile_ms", part.compile_ms},
                   {"load_ms", part.load_ms},
                   {"run_ms", part.run_ms}});
  }
  return out;
}

nlohmann::json ops_json(const Session& session) {
  nlohmann::json out = nlohmann::json::array();
  for (size_t i = 0; i < session.report().ops.size(); ++i) {
    const runtime::OpReport& op = session.report().ops[i];
    out.push_back({{"op", i},
                   {"kind", ir::op_name(session.graph().ops[i])},
                   {"part", op.part},
                   {"reason", op.reason},
                   {"output", output_shape(session.graph(), static_cast<ir::OpId>(i))},
                   {"unproven", op.unproven},
                   {"where", op.on_npu && runs_on_npu(session.report().parts[op.part]) ? "npu" : "cpu"}});
  }
  return out;
}

}  // namespace

std::string print_text(const RunResult& result, const Session& session) {
  const Where where = count(session);
  std::string out = fmt::format("model   {}\n", result.model);
  out += fmt::format("input   {}\n", result.input_note);
  out += fmt::format("device  {}: {} operations on the NPU ({} part(s), {} jobs), {} on the CPU\n\n", result.device,
                     where.npu_ops, where.npu_parts, where.jobs, where.cpu_ops);
  out += print_inferences(result);
  for (const Inference& inference : result.inferences)
    if (!inference.layers.empty()) out += print_layers(session, inference.layers);
  out += fmt::format("where each operation ran\n{}\n", print_ops(session));
  out += fmt::format("times\n{}", print_times(result, session));
  return out;
}

std::string print_json(const RunResult& result, const Session& session) {
  const Where where = count(session);
  const nlohmann::json out = {{"model", result.model},
                              {"device", result.device},
                              {"npu_ops", where.npu_ops},
                              {"cpu_ops", where.cpu_ops},
                              {"jobs", where.jobs},
                              {"import_ms", result.import_ms},
                              {"passes_ms", session.report().passes_ms},
                              {"create_ms", result.create_ms},
                              {"reference_ms", result.reference_ms},
                              {"parts", parts_json(session)},
                              {"ops", ops_json(session)},
                              {"runs", inferences_json(result)}};
  return out.dump(2) + "\n";
}

}  // namespace skillet::tools
