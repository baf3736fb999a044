// The report of `skillet run`: text for people, JSON for programs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "base/text.h"
#include "compile/advice.h"
#include "tools/model/model.h"
#include "tools/run/found_print.h"
#include "tools/run/run_result.h"
#include "tools/show/output.h"
#include "tools/show/print_advice.h"
#include "tools/show/text_table.h"
#include "tools/time/npu_use.h"

namespace skillet::tools {
namespace {

using runtime::PartReport;
using runtime::Session;

struct Where {
  NpuUse ops;
  size_t npu_parts = 0, jobs = 0;
};

bool runs_on_npu(const PartReport& part) { return part.on_npu && part.fallback.empty(); }

Where count(const Session& session) {
  Where out{.ops = npu_use(session)};
  for (size_t i = 0; i < session.report().parts.size(); ++i) {
    const PartReport& part = session.report().parts[i];
    out.npu_parts += runs_on_npu(part) && runtime::jobs_of(session, i) > 0 ? 1 : 0;
    out.jobs += runtime::jobs_of(session, i);
  }
  return out;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

// Removes blank rows at the top and the bottom.
std::vector<std::string> trimmed(std::vector<std::string> rows) {
  const auto inked = [](const std::string& row) { return row.find_first_not_of(' ') != std::string::npos; };
  rows.erase(std::find_if(rows.rbegin(), rows.rend(), inked).base(), rows.end());
  rows.erase(rows.begin(), std::ranges::find_if(rows, inked));
  return rows;
}

// Prints one row of the gallery.
std::string gallery_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += fmt::format("  {:<{}}", cell, kDrawingColumns);
  line.resize(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Prints drawings side by side, each with its name and best class below.
std::string gallery(std::span<const Inference> inferences) {
  constexpr size_t kPerRow = 4;
  std::string out;
  while (!inferences.empty()) {
    std::vector<std::vector<std::string>> drawings;
    std::vector<std::string> captions;
    size_t height = 0;
    for (const Inference& inference : inferences.first(std::min(kPerRow, inferences.size()))) {
      drawings.push_back(trimmed(inference.drawing));
      captions.push_back(printable(inference.input + (inference.found ? " -> " + summary(*inference.found) : "")));
      height = std::max(height, drawings.back().size());
    }
    for (size_t row = 0; row < height; ++row) {
      std::vector<std::string> cells;
      for (const auto& drawing : drawings) cells.push_back(row < drawing.size() ? drawing[row] : "");
      out += gallery_line(cells);
    }
    out += gallery_line(captions) + "\n";
    inferences = inferences.subspan(drawings.size());
  }
  return out;
}

std::string print_output(const OutputResult& output) {
  std::string out = fmt::format("output '{}' {}", printable(output.name), output.type);
  if (output.top.empty()) {
    out += std::isnan(output.low) ? std::string(": no numbers\n")
                                  : fmt::format(": values {:.6g} to {:.6g}\n", output.low, output.high);
  } else {
    TextTable table({"class", "score", "stored", "label"});
    for (const TopClass& top : output.top)
      table.add({fmt::format("{}", top.index), fmt::format("{:.4f}", top.score), top.raw, top.label});
    out += fmt::format(", best {}\n{}", output.top.size(), table.print());
  }
  if (!output.difference) return out;
  out += fmt::format("  {} from the CPU kernels: {}\n",
                     output.difference->unit == Unit::number ? "difference" : "largest difference",
                     print(*output.difference));
  if (output.same_class) out += fmt::format("  {} on the CPU\n", print(*output.same_class, output.difference->unit));
  if (output.noise && output.difference->differing > 0) out += fmt::format("  {}: {}\n", kNoise, print(*output.noise));
  return out;
}

// The largest difference of all outputs; for class numbers the count of differing elements is compared.
const Difference& worst_of(const Inference& inference) {
  const auto size = [](const OutputResult& output) {
    const Difference& one = *output.difference;
    if (std::isnan(one.largest)) return std::numeric_limits<double>::infinity();
    return one.unit == Unit::number ? 100 * one.share(one.differing) : one.largest;
  };
  const auto less = [&](const OutputResult& a, const OutputResult& b) { return size(a) < size(b); };
  return *std::ranges::max_element(inference.outputs, less)->difference;
}

std::string print_inferences(const RunResult& result) {
  std::string out;
  const bool drawn = std::ranges::any_of(result.inferences, [](const Inference& i) { return !i.drawing.empty(); });
  if (drawn) out += gallery(result.inferences);
  if (result.inferences.size() == 1) {
    for (const OutputResult& output : result.inferences[0].outputs) out += print_output(output);
    if (result.inferences[0].found) out += print_found(*result.inferences[0].found);
    return out + "\n";
  }
  const bool is_compared = std::ranges::any_of(result.inferences, [](const Inference& inference) {
    return !inference.outputs.empty() && inference.outputs[0].difference;
  });
  std::vector<std::string> columns = {"input", "found"};
  if (is_compared) columns.push_back("largest difference from cpu");
  TextTable table(columns);
  for (const Inference& inference : result.inferences) {
    if (inference.outputs.empty()) continue;
    const OutputResult& output = inference.outputs[0];
    std::vector<std::string> row = {inference.input, inference.found ? summary(*inference.found) : ""};
    if (output.difference) row.push_back(print(worst_of(inference)));
    table.add(std::move(row));
  }
  return out + table.print() + "\n";
}

std::string print_ops(const Session& session, const RunResult& result) {
  std::vector<compile::OpRow> rows = runtime::rows(session);
  compile::mark_idle(npu_use(session).works, rows);
  add_cpu_times(result.chip, session.graph(), rows);
  const compile::Words words = words_of(result.model);
  compile::put_in_words(words, rows);
  TextTable table({"op", "kind", "output", "part", "where", "reason"});
  for (const compile::OpRow& row : rows)
    table.add({row.number, row.kind, row.output, fmt::format("{}", row.part), row.on_npu ? "npu" : "cpu",
               compile::remarks(row)});
  return table.print_wrapped() + compile::in_words(words, print_tables(rows, session.report().rewrites)) +
         print_advice(rows, session.report().model_ops, result.advice, words);
}

std::string print_layers(const Session& session, const std::vector<runtime::LayerDiff>& layers, compile::Words words) {
  TextTable table({"op", "kind", "output", "differing", "largest difference"});
  size_t compared = 0, results = 0;
  double worst = 0;
  for (const runtime::LayerDiff& layer : layers) {
    if (!layer.is_result) continue;
    ++results;
    const ir::Op& op = session.graph().op(layer.op);
    const std::string kind = compile::op_name(words, op) + layer.place();
    const std::string shape = session.graph().tensor(layer.tensor).shape.to_string();
    if (!layer.compared) {
      table.add({ir::op_number(op), kind, shape, "-", "not kept by the NPU (part of a later operation)"});
      continue;
    }
    ++compared;
    worst = std::max(worst, layer.max_of_result);
    table.add({ir::op_number(op), kind, shape,
               fmt::format("{} of {}", print_count(static_cast<uint64_t>(layer.differing_of_result)),
                           print_count(static_cast<uint64_t>(layer.elems))),
               print_largest(layer.max_of_result, layer.beyond_one_of_result, layer.elems)});
  }
  const std::string largest =
      compared == 0 ? "nothing is known of their results" : fmt::format("largest difference {:g} LSB", worst);
  return fmt::format(
             "NPU operations against the CPU kernels, each with the NPU's own inputs\n"
             "{}",
             table.print()) +
         fmt::format("{} of {} layers compared, {}\n\n", compared, results, largest);
}

std::string print_parts(const Session& session, bool verbose) {
  std::vector<std::string> header = {"part", "where", "compile", "load", "run"};
  if (verbose) header.emplace_back("operations after the passes");
  TextTable table(std::move(header));
  std::string notes;
  for (size_t i = 0; i < session.report().parts.size(); ++i) {
    const PartReport& part = session.report().parts[i];
    const bool on_npu = runs_on_npu(part);
    std::vector<std::string> row = {fmt::format("{}", i), on_npu ? "npu" : "cpu", print_ms(part.compile_ms),
                                    on_npu ? print_ms(part.load_ms) : "-", print_ms(part.run_ms)};
    if (verbose) row.push_back(fmt::format("{}", part.ops.size()));
    table.add(std::move(row));
    if (on_npu && !part.note.empty()) notes += fmt::format("part {}: {}\n", i, part.note);
  }
  return table.print() + notes;
}

std::string print_times(const RunResult& result, const Session& session) {
  std::vector<double> runs;
  for (const Inference& inference : result.inferences)
    runs.insert(runs.end(), inference.run_ms.begin(), inference.run_ms.end());
  TextTable table({"stage", "time", "what"});
  table.add({"import", print_ms(result.import_ms), "reading and checking the model"});
  table.add({"passes", print_ms(session.report().passes_ms), "making the graph ready, dividing it"});
  const double compare_ms = session.report().verified.ms;
  if (compare_ms > 0)
    table.add({"compare", print_ms(compare_ms), "the device with the CPU, where not compared before"});
  table.add(
      {"prepare", print_ms(result.create_ms),
       compare_ms > 0 ? "all of passes, compiling, comparing and loading" : "all of passes, compiling and loading"});
  table.add(
      {"inference", print_ms(median(runs)), runs.size() > 1 ? fmt::format("median of {}", runs.size()) : "all parts"});
  if (result.simulated)
    table.add({"simulated", print_ms(result.simulated->device_us / 1000),
               fmt::format("the NPU of such a chip{}{}, +-{:.0f} %{}", on_cores(result.simulated->cores),
                           at_clock(result.simulated->clock), result.simulated->error * 100,
                           print_whole(*result.simulated))});
  if (result.reference_ms > 0)
    table.add({"reference", print_ms(result.reference_ms), "the whole network on the CPU kernels"});
  const std::string measured = result.measured.empty() ? "" : print_measured(result.device, result.measured);
  return fmt::format("{}\n{}{}", print_parts(session, result.verbose), table.print_wrapped(), measured);
}

nlohmann::json outputs_json(const Inference& inference) {
  nlohmann::json out = nlohmann::json::array();
  for (const OutputResult& output : inference.outputs) {
    nlohmann::json top = nlohmann::json::array();
    for (const TopClass& one : output.top)
      top.push_back({{"class", one.index}, {"score", one.score}, {"stored", one.raw}, {"label", one.label}});
    nlohmann::json row = {
        {"name", output.name}, {"type", output.type}, {"low", output.low}, {"high", output.high}, {"top", top}};
    if (output.difference) {
      row["max_difference"] = output.difference->largest;
      row["difference"] = to_json(*output.difference);
    }
    if (output.same_class)
      row["best_class"] = {{"same", output.same_class->is_same}, {"margin", output.same_class->margin}};
    if (output.noise) row["noise"] = to_json(*output.noise);
    out.push_back(std::move(row));
  }
  return out;
}

nlohmann::json inference_json(const Inference& inference) {
  nlohmann::json row = {{"input", inference.input}, {"run_ms", inference.run_ms}, {"outputs", outputs_json(inference)}};
  if (inference.found) row["found"] = found_json(*inference.found);
  if (inference.unexpected) row["expect"] = {{"same", inference.unexpected->empty()}, {"what", *inference.unexpected}};
  for (const runtime::LayerDiff& layer : inference.layers) {
    if (!layer.is_result) continue;
    row["layers"].push_back({{"op", layer.op},
                             {"tensor", layer.tensor},
                             {"written_as", layer.written_as},
                             {"compared", layer.compared},
                             {"elems", layer.elems},
                             {"differing", layer.differing_of_result},
                             {"beyond_one", layer.beyond_one_of_result},
                             {"max_difference", layer.max_of_result}});
  }
  return row;
}

nlohmann::json inferences_json(const RunResult& result) {
  nlohmann::json out = nlohmann::json::array();
  for (const Inference& inference : result.inferences) out.push_back(inference_json(inference));
  return out;
}

nlohmann::json parts_json(const Session& session) {
  nlohmann::json out = nlohmann::json::array();
  for (size_t i = 0; i < session.report().parts.size(); ++i) {
    const PartReport& part = session.report().parts[i];
    out.push_back({{"where", runs_on_npu(part) ? "npu" : "cpu"},
                   {"ops", part.ops},
                   {"fallback", part.fallback},
                   {"jobs", runtime::jobs_of(session, i)},
                   {"bands", session.programs(i).size() > 1 ? session.programs(i).size() : 0},
                   {"note", part.note},
                   {"compile_ms", part.compile_ms},
                   {"load_ms", part.load_ms},
                   {"run_ms", part.run_ms}});
  }
  return out;
}

nlohmann::json ops_json(const Session& session, compile::Words words) {
  nlohmann::json out = nlohmann::json::array();
  std::vector<compile::OpRow> rows = runtime::rows(session);
  compile::mark_idle(npu_use(session).works, rows);
  compile::put_in_words(words, rows);
  for (const compile::OpRow& row : rows) {
    out.push_back({{"op", row.op},
                   {"source", row.source},
                   {"kind", row.kind},
                   {"part", row.part},
                   {"reason", row.why},
                   {"note", row.note},
                   {"output", row.output},
                   {"unproven", row.unproven},
                   {"where", row.on_npu ? "npu" : "cpu"}});
  }
  return out;
}

}  // namespace

std::string print_text(const RunResult& result, const Session& session) {
  const Where where = count(session);
  std::string out = fmt::format("model   {}\n", printable(result.model));
  out += fmt::format("input   {}\n", printable(result.input_note));
  out += fmt::format("device  {}: {} on the NPU in {}, {}\n", result.device, compile::print(where.ops.model),
                     counted(where.npu_parts, "part"), counted(where.jobs, "job"));
  if (result.verbose)
    out += fmt::format("        after the passes {} operations on the NPU, {} on the CPU\n", where.ops.npu_ops,
                       where.ops.cpu_ops);
  out += "\n";
  out += print_inferences(result);
  for (const Inference& inference : result.inferences)
    if (!inference.layers.empty()) out += print_layers(session, inference.layers, words_of(result.model));
  out += fmt::format("where each operation ran\n{}\n", print_ops(session, result));
  out += fmt::format("times\n{}", print_times(result, session));
  return out;
}

std::string print_json(const RunResult& result, const Session& session) {
  const Where where = count(session);
  nlohmann::json simulated;
  if (result.simulated) simulated = json_of(*result.simulated, result.measured);
  nlohmann::json out = {{"model", result.model},
                        {"device", result.device},
                        {"simulated", simulated},
                        {"jobs", where.jobs},
                        {"import_ms", result.import_ms},
                        {"passes_ms", session.report().passes_ms},
                        {"compare_ms", session.report().verified.ms},
                        {"create_ms", result.create_ms},
                        {"reference_ms", result.reference_ms},
                        {"parts", parts_json(session)},
                        {"ops", ops_json(session, words_of(result.model))},
                        {"runs", inferences_json(result)}};
  add_json(out, where.ops);
  return report_text(out);
}

std::string print_frame(const Inference& inference) {
  const bool is_compared = !inference.outputs.empty() && inference.outputs[0].difference;
  std::string lines;
  for (const std::string& row : inference.drawing) lines += row + "\n";
  return lines + fmt::format("{}  {}  {}{}\n", printable(inference.input), print_ms(inference.run_ms.back()),
                             inference.found ? summary(*inference.found) : "",
                             is_compared ? "  largest difference " + print(worst_of(inference)) : "");
}

std::string print_frame_json(const Inference& inference) {
  return report_of(inference_json(inference)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace skillet::tools
