#include "frontend/onnxruntime/provider.h"

#include <algorithm>
#include <filesystem>

#include "base/environment.h"
#include "base/log.h"
#include "frontend/host/target.h"

namespace skillet::onnxruntime {
namespace {

Provider& from_host(OrtEp* ep) { return *reinterpret_cast<Provider*>(ep); }

void say(const Provider& provider, int level, const std::string& text) {
  provider.ort->log(provider.logger, level, text);
}

// Maps the fused node's inputs and outputs to the part's ports.
struct Compute {
  OrtNodeComputeInfo host;  // first
  std::shared_ptr<const Ort> ort;
  std::shared_ptr<Part> part;
  std::vector<size_t> inputs, outputs;
  std::optional<log::Level> log;
};

Result<void> compute(const Compute& self, OrtKernelContext* context) {
  const log::ScopedLevel level(self.log);
  const Ort& ort = *self.ort;
  std::vector<std::span<const uint8_t>> inputs(self.inputs.size());
  std::vector<void*> outputs(self.outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const OrtValue* value = nullptr;
    size_t bytes = 0;
    SK_TRY(ort.attempt(kContextInput, context, self.inputs[i], &value));
    const void* data = nullptr;
    if (value == nullptr)
      return error(ErrorCode::invalid_argument, "input '{}' is missing", self.part->inputs()[i].name);
    SK_TRY(ort.attempt(kGetSizeInBytes, value, &bytes));
    SK_TRY(ort.attempt(kGetData, value, &data));
    inputs[i] = {static_cast<const uint8_t*>(data), bytes};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    OrtValue* value = nullptr;
    const std::vector<int64_t>& dims = self.part->outputs()[i].dims;
    SK_TRY(ort.attempt(kContextOutput, context, self.outputs[i], dims.data(), dims.size(), &value));
    SK_TRY(ort.attempt(kGetMutableData, value, &outputs[i]));
  }
  return self.part->run(inputs, outputs);
}

Result<std::vector<size_t>> places(std::span<const Port> ports, const std::vector<std::string>& names) {
  std::vector<size_t> out;
  for (const Port& port : ports) {
    const auto found = std::ranges::find(names, port.name);
    if (found == names.end()) return error(ErrorCode::internal, "the host does not give '{}'", port.name);
    out.push_back(static_cast<size_t>(found - names.begin()));
  }
  return out;
}

std::unique_ptr<Compute> new_compute(const Provider& provider, std::shared_ptr<Part> part) {
  auto made = std::make_unique<Compute>();
  made->host = {.version = provider.ort->version(),
                .create_state = [](OrtNodeComputeInfo* info, void*, void** state) -> OrtStatus* {
                  *state = info;
                  return nullptr;
                },
                .compute = [](OrtNodeComputeInfo* info, void*, OrtKernelContext* context) -> OrtStatus* {
                  const auto& self = *reinterpret_cast<const Compute*>(info);
                  return guarded(*self.ort, [&] { return compute(self, context); });
                },
                .release_state = [](OrtNodeComputeInfo*, void*) {}};
  made->ort = provider.ort;
  made->part = std::move(part);
  made->log = provider.options.log;
  return made;
}

// "model_ctx_skillet_0.bin" beside "model_ctx.onnx". Empty: the bytes are in the model, or the model is no file.
std::string file_beside(Provider& provider) {
  const std::filesystem::path model(provider.context_path);
  if (!provider.saves_beside || !model.has_filename()) return {};
  std::filesystem::path out = model;
  std::error_code none;
  do {  // keeps the files of the model that was read
    out.replace_filename(fmt::format("{}_skillet_{}.bin", model.stem().string(), provider.saved_files++));
  } while (provider.reads_compiled && std::filesystem::exists(out, none));
  return out;
}

// Sets the path as the host names its output file, if the user gives none.
Result<void> set_context_path(Provider& provider, const OrtGraph* graph) {
  const char* path = nullptr;
  if (!provider.saves_context || !provider.context_path.empty()) return {};
  SK_TRY(provider.ort->attempt(kGraphModelPath, graph, &path));
  if (path == nullptr || *path == '\0') return {};
  std::filesystem::path model(path);
  provider.context_path = model.replace_filename(model.stem().string() + "_ctx.onnx");
  return {};
}

// Parts are made in get_capability(). This finds the places of their inputs and outputs.
Result<void> compile(Provider& provider, const OrtNode* fused, OrtNodeComputeInfo** out, OrtNode** context) {
  SK_TRY_ASSIGN(const auto inputs, names_of(*provider.ort, fused, false));
  SK_TRY_ASSIGN(const auto outputs, names_of(*provider.ort, fused, true));
  std::shared_ptr<Part> part;
  {
    const std::lock_guard lock(provider.mutex);
    for (const std::string& name : outputs) {
      const auto found = provider.pending.find(name);
      if (found != provider.pending.end()) part = found->second;
    }
  }
  if (part == nullptr) return error(ErrorCode::internal, "the host compiles nodes that were not claimed");
  auto made = new_compute(provider, part);
  SK_TRY_ASSIGN(made->inputs, places(part->inputs(), inputs));
  SK_TRY_ASSIGN(made->outputs, places(part->outputs(), outputs));
  if (provider.saves_context) {
    const char* name = nullptr;
    SK_TRY(provider.ort->attempt(kNodeName, fused, &name));
    const std::string file = file_beside(provider);
    if (file.empty()) SK_TRY(check_fits_model(provider.embedded_bytes += part->saved.size()));
    SK_TRY_ASSIGN(*context, context_node(*provider.ort, name, *part, provider.target.chip.name, file));
    part->saved = {};
  }
  *out = &made.release()->host;
  return {};
}

Result<void> compile_all(Provider& provider, const OrtNode** fused, size_t count, OrtNodeComputeInfo** out,
                         OrtNode** contexts) {
  for (size_t i = 0; i < count; ++i) SK_TRY(compile(provider, fused[i], &out[i], &contexts[i]));
  const std::lock_guard lock(provider.mutex);
  provider.pending.clear();
  provider.has_compiled = true;
  return {};
}

// The reason why the host cannot run parts of that graph well; empty: it can.
Result<std::string_view> why_no_part(const Provider& provider, const OrtGraph* graph, const HostGraph& read) {
  const Ort& ort = *provider.ort;
  const OrtNode* parent = nullptr;
  SK_TRY(ort.attempt(kGraphParent, graph, &parent));
  bool has_graphs = parent != nullptr || read.reads_outside;
  if (ort.version() < kNamesOfGraphsSince && (has_graphs || provider.has_compiled))
    return std::string_view("this ONNX Runtime confuses parts of several graphs");
  if (!provider.saves_context) return std::string_view();
  for (const OrtNode* node : read.nodes) {
    size_t graphs = 0;
    SK_TRY(ort.attempt(kNodeNumGraphs, node, &graphs));
    has_graphs |= graphs != 0;
  }
  if (has_graphs) return std::string_view("ONNX Runtime writes no compiled parts of a model with graphs inside nodes");
  return std::string_view(provider.has_compiled ? "ONNX Runtime writes no compiled parts after the first ones" : "");
}

void log_result(const Provider& provider, const Capability& made) {
  for (const std::string& line : made.told.refusals) say(provider, kLogInfo, line);
  for (const auto& part : made.parts) say(provider, kLogInfo, "partition of " + part->summary());
  if (!made.told.compared.empty()) say(provider, kLogInfo, made.told.compared);
  say(provider, kLogInfo, made.told.count);
  const std::string& why = made.told.advice.empty() ? made.told.such_as : made.told.advice;
  if (!why.empty() && !provider.has_claimed) say(provider, kLogWarning, why);
}

Result<void> claim(Provider& provider, const HostGraph& graph, const Part& part, OrtSupportInfo* info) {
  std::vector<const OrtNode*> nodes;
  for (const int node : part.nodes()) nodes.push_back(graph.nodes[static_cast<size_t>(node)]);
  const OrtFusionOptions fusion{provider.ort->version(), true};
  return provider.ort->attempt_ep(kAddNodesToFuse, info, nodes.data(), nodes.size(), &fusion);
}

Result<void> claim_all(Provider& provider, const HostGraph& graph, std::vector<std::unique_ptr<Part>> parts,
                       OrtSupportInfo* info) {
  provider.has_claimed |= !parts.empty();
  for (auto& part : parts) {
    SK_TRY(claim(provider, graph, *part, info));
    const std::shared_ptr<Part> shared = std::move(part);
    const std::lock_guard lock(provider.mutex);
    for (const Port& port : shared->outputs()) provider.pending[port.name] = shared;
  }
  return {};
}

// For a model with stored parts: claims only those, because no other provider can run them.
Result<void> claim_stored(Provider& provider, const HostGraph& graph, const OrtGraph* host, std::span<const int> nodes,
                          OrtSupportInfo* info) {
  std::vector<std::unique_ptr<Part>> parts;
  const char* read = nullptr;
  bool is_told = false;  // report once: all parts were written with the same options
  SK_TRY(provider.ort->attempt(kGraphModelPath, host, &read));
  const std::string path = read == nullptr || *read == '\0' ? provider.context_path : read;
  for (const int node : nodes) {
    const std::string name = fmt::format("the compiled part '{}'", graph.model.node(node).name);
    auto stored = part_from(graph.model, node, path, provider.target, provider.options, parts.empty());
    if (!stored.ok()) return std::move(stored).error().with_context(name);
    say(provider, kLogInfo, "stored partition of " + stored->part->summary());
    if (!stored->unused.empty() && !is_told) say(provider, kLogWarning, fmt::format("{}: {}", name, stored->unused));
    is_told |= !stored->unused.empty();
    provider.reads_compiled = true;
    if (!provider.saves_context) stored->part->saved = {};
    parts.push_back(std::move(stored->part));
  }
  return claim_all(provider, graph, std::move(parts), info);
}

// All errors are found here, while the host can still run the nodes itself. Later the part's CPU kernels take over.
Result<void> get_capability(Provider& provider, const OrtGraph* host, OrtSupportInfo* info) {
  const log::ScopedLevel level(provider.options.log);
  SK_TRY_ASSIGN(const HostGraph graph, read_graph(*provider.ort, host));
  std::vector<int> stored;
  for (size_t i = 0; i < graph.model.nodes.size(); ++i)
    if (is_context(graph.model.nodes[i]) && !graph.model.nodes[i].is_taken) stored.push_back(static_cast<int>(i));
  if (!stored.empty()) return claim_stored(provider, graph, host, stored, info);
  if (provider.target.driver == nullptr) return {};
  SK_TRY(set_context_path(provider, host));
  SK_TRY_ASSIGN(const std::string_view why, why_no_part(provider, host, graph));
  if (!why.empty()) {
    say(provider, kLogInfo, fmt::format("{} nodes stay with the host: {}", graph.model.nodes.size(), why));
    return {};
  }
  SK_TRY_ASSIGN(Capability made, capability_of(graph.model, provider.target, provider.options, provider.saves_context));
  // The host calls this again after it has inlined functions, and for graphs inside nodes. Then only nodes without a
  // provider count.
  if (made.told.ops != 0) log_result(provider, made);
  return claim_all(provider, graph, std::move(made.parts), info);
}

void set_functions(Provider& provider) {
  OrtEp& ep = provider.host;
  ep = {};  // zeros for functions of newer hosts
  ep.version = provider.ort->version();
  ep.get_name = [](const OrtEp*) { return kProviderName; };
  ep.get_capability = [](OrtEp* self, const OrtGraph* graph, OrtSupportInfo* info) -> OrtStatus* {
    Provider& one = from_host(self);
    return guarded(*one.ort, [&] { return get_capability(one, graph, info); });
  };
  ep.compile = [](OrtEp* self, const OrtGraph**, const OrtNode** fused, size_t count, OrtNodeComputeInfo** out,
                  OrtNode** contexts) -> OrtStatus* {
    Provider& one = from_host(self);
    return guarded(*one.ort, [&] { return compile_all(one, fused, count, out, contexts); });
  };
  ep.release_compute_infos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
    for (size_t i = 0; i < count; ++i) delete reinterpret_cast<Compute*>(infos[i]);
  };
  ep.is_concurrent_run_supported = [](OrtEp*, bool* supported) -> OrtStatus* {
    *supported = true;
    return nullptr;
  };
}

}  // namespace

Result<std::unique_ptr<Provider>> make_provider(std::shared_ptr<const Ort> ort, const OrtLogger* logger,
                                                const std::vector<host::KeyValue>& options,
                                                const std::map<std::string, std::string>& session) {
  const auto entry = [&](const char* key) {
    const auto found = session.find(key);
    return found == session.end() ? std::string() : found->second;
  };
  auto made = std::make_unique<Provider>();
  made->ort = std::move(ort);
  made->logger = logger;
  made->saves_context = entry("ep.context_enable") == "1";
  made->saves_beside = entry("ep.context_embed_mode") == "0";
  made->context_path = entry("ep.context_file_path");
  // A ModelCompiler without a file writes to memory, or to a file whose name it does not pass on.
  if (made->saves_beside && made->context_path.empty() && session.contains("session.disable_model_compile")) {
    made->saves_beside = false;
    say(*made, kLogWarning,
        "the host names no output file: the compiled parts are in the model, not in files beside it");
  }
  set_functions(*made);
  made->options = host::parse_options(options, environment_variable);
  const log::ScopedLevel level(made->options.log);
  if (made->options.help) say(*made, kLogWarning, host::options_help("Skillet provider"));
  SK_TRY_ASSIGN(made->target, host::open_target(made->options));
  for (const host::Problem& problem : made->options.problems) {
    if (made->options.strict) return error(ErrorCode::invalid_argument, "{}", problem.text);
    say(*made, kLogWarning, fmt::format("{}; {}", problem.text, problem.instead));
  }
  if (made->options.profile) say(*made, kLogWarning, "option profile has no effect here");
  if (made->target.driver == nullptr) {
    say(*made, made->options.device == "cpu" ? kLogInfo : kLogWarning,
        "no node goes to an NPU: " + made->target.why_none);
  } else {
    say(*made, kLogInfo,
        fmt::format("Skillet {}, {}, chip {}", SKILLET_VERSION, made->target.name, made->target.chip.title));
  }
  return made;
}

}  // namespace skillet::onnxruntime
