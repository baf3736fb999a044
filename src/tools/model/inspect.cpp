// `skillet inspect`: describes a compiled model: a file of its own, an entry of the cache, or a part of a host's file.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"
#include "npu/driver.h"
#include "program/program.h"
#include "runtime/address_check.h"
#include "runtime/compiled_model.h"
#include "tools/cli/verbs.h"
#include "tools/model/model.h"
#include "tools/show/text_table.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string path;
  bool json = false;
};

// Finds compiled models in a host's file: hosts store the bytes unchanged, at any place.
std::vector<std::span<const uint8_t>> models_in(std::span<const uint8_t> file) {
  std::vector<std::span<const uint8_t>> out;
  if (runtime::is_compiled_model(file)) return {file};
  constexpr std::string_view mark = runtime::kCompiledMark;
  while (true) {
    const auto found = std::search(file.begin(), file.end(), mark.begin(), mark.end());
    file = file.subspan(static_cast<size_t>(found - file.begin()));
    if (file.empty()) return out;
    const uint64_t stated = std::max<uint64_t>(runtime::stated_bytes(file), mark.size());
    out.push_back(file.first(static_cast<size_t>(std::min<uint64_t>(stated, file.size()))));
    file = file.subspan(out.back().size());
  }
}

nlohmann::json tensors_of(const ir::Graph& graph, std::span<const ir::TensorId> ids) {
  nlohmann::json out = nlohmann::json::array();
  for (const ir::TensorId id : ids) {
    const ir::Tensor& one = graph.tensor(id);
    out.push_back({{"name", one.name}, {"type", ir::dtype_name(one.dtype)}, {"shape", one.shape.dims}});
  }
  return out;
}

nlohmann::json graph_of(const ir::Graph& graph, compile::Words words) {
  std::map<std::string, int> kinds;
  for (const ir::Op& op : graph.ops) ++kinds[printable(compile::op_name(words, op))];
  uint64_t constants = 0;
  for (const ir::Tensor& one : graph.tensors) constants += one.data.size();
  return {{"operations", graph.ops.size()},
          {"kinds", kinds},
          {"tensors", graph.tensors.size()},
          {"constant_bytes", constants},
          {"inputs", tensors_of(graph, graph.inputs)},
          {"outputs", tensors_of(graph, graph.outputs)}};
}

// The options that decided the compilation, one per line as runtime::deciding_options() writes them.
nlohmann::json options_of(const std::string& all) {
  nlohmann::json out = nlohmann::json::object();
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) {
    const size_t is = std::min(line.find('='), line.size());
    out[printable(line.substr(0, is))] = printable(line.substr(std::min(is + 1, line.size())));
  }
  return out;
}

Result<nlohmann::json> program_of(const runtime::StoredProgram& stored) {
  SK_TRY_ASSIGN(const npu::Program program,
                npu::deserialise(stored.file).with_context("a program for " + printable(stored.chip)));
  // The same check as on loading. A chip without a driver in this build is no error of the file.
  if (const auto chip = npu::find_chip(stored.chip); chip.ok()) {
    SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(*chip));
    SK_TRY(runtime::check_addresses(*driver, *chip, program).with_context("a program for " + chip->name));
  }
  uint64_t memory = 0;
  for (const npu::Buffer& one : program.buffers) memory += one.size_bytes;
  return nlohmann::json{{"chip", printable(stored.chip)},
                        {"key", printable(stored.key)},
                        {"bytes", stored.file.size()},
                        {"jobs", program.jobs.size()},
                        {"operations", program.operations.size()},
                        {"memory_bytes", memory}};
}

Result<nlohmann::json> model_of(std::span<const uint8_t> bytes) {
  SK_TRY_ASSIGN(const runtime::CompiledModel model, runtime::read_compiled(Bytes(bytes.begin(), bytes.end())));
  nlohmann::json programs = nlohmann::json::array();
  for (const runtime::StoredProgram& one : model.programs) SK_TRY_INTO(programs.emplace_back(), program_of(one));
  nlohmann::json out = {{"version", model.version},
                        {"build", printable(model.build)},
                        {"this_build", model.is_of_this_build},
                        {"checksum", fmt::format("{:016x}", model.checksum)},
                        {"bytes", bytes.size()},
                        {"options", options_of(model.options)},
                        {"programs", programs}};
  if (!model.graph.ops.empty()) out["graph"] = graph_of(model.graph, words_of(model));
  return out;
}

// Text: whether this build can use the model.
std::string_view use_of(const nlohmann::json& model) {
  const bool has_graph = model.contains("graph");
  if (model["this_build"].get<bool>())
    return has_graph
               ? "made by this build: its programs are used if chip and options match, else the graph is compiled again"
               : "made by this build: cached programs of one model, used when it is loaded again";
  return has_graph ? "made by another build: the graph is compiled again when it runs"
                   : "made by another build, without a graph: it is unused";
}

void print_graph(const nlohmann::json& graph) {
  std::string kinds;
  for (const auto& [kind, count] : graph["kinds"].items())
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count.get<int>(), kind);
  out("{}", wrapped_lines(fmt::format("  graph: {} operations ({}), {} tensors, {} of constants\n",
                                      graph["operations"].get<size_t>(), kinds, graph["tensors"].get<size_t>(),
                                      print_bytes(graph["constant_bytes"].get<uint64_t>())),
                          4));
  for (const char* side : {"inputs", "outputs"})
    for (const nlohmann::json& one : graph[side])
      out("  {}: {} {} {}\n", std::string_view(side).substr(0, std::string_view(side).size() - 1),
          one["name"].get<std::string>(), one["type"].get<std::string>(),
          fmt::join(one["shape"].get<std::vector<int>>(), "x"));
}

void print_model(const nlohmann::json& model) {
  out("a compiled model at byte {}: {} bytes, version {}, checksum {}\n", model["at"].get<size_t>(),
      model["bytes"].get<size_t>(), model["version"].get<uint32_t>(), model["checksum"].get<std::string>());
  out("  build {}\n{}", model["build"].get<std::string>(), wrapped_lines(fmt::format("  {}\n", use_of(model)), 4));
  std::string options;
  for (const auto& [name, value] : model["options"].items())
    if (!value.get<std::string>().empty())
      options += fmt::format("{}{}={}", options.empty() ? "" : ", ", name, value.get<std::string>());
  if (!options.empty()) out("{}", wrapped_lines(fmt::format("  compiled with {}\n", options), 4));
  if (model.contains("graph")) print_graph(model["graph"]);
  TextTable table({"program for", "bytes", "jobs", "operations", "memory", "key"});
  for (const nlohmann::json& one : model["programs"])
    table.add({one["chip"].get<std::string>(), print_count(one["bytes"].get<uint64_t>()),
               print_count(one["jobs"].get<uint64_t>()), print_count(one["operations"].get<uint64_t>()),
               print_bytes(one["memory_bytes"].get<uint64_t>()), one["key"].get<std::string>()});
  if (!table.empty()) out("{}", table.print());
}

Result<void> inspect(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(const Bytes file, read_file(options.path));
  const auto found = models_in(file);
  if (found.empty()) return error(ErrorCode::malformed, "{}: it contains no compiled model of Skillet", options.path);
  outcome.begin();
  nlohmann::json models = nlohmann::json::array();
  for (const std::span<const uint8_t> one : found) {
    const auto at = static_cast<size_t>(one.data() - file.data());
    const auto what = fmt::format("{}: the compiled model at byte {}", options.path, at);
    SK_TRY_ASSIGN(nlohmann::json model, model_of(one).with_context(what));
    model["at"] = at;
    if (!options.json) print_model(model);
    models.push_back(std::move(model));
  }
  if (options.json) out_report({{"models", models}});
  return {};
}

}  // namespace

void add_inspect(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("inspect",
                             "Describe a compiled model: version, build, chips, its network. Runs nothing.\n"
                             "Examples:\n"
                             "  skillet inspect net.program             what skillet compile -o wrote\n"
                             "  skillet inspect net_npu.tflite          each part for LiteRT");
  verb.option("PATH", options->path,
              "a file of skillet compile -o, an entry of the cache, or a file with compiled parts: .tflite of LiteRT, "
              ".onnx\nof ONNX Runtime, .pte of ExecuTorch")
      .required();
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, &outcome] { outcome.finish(inspect(*options, outcome)); });
}

}  // namespace skillet::tools
