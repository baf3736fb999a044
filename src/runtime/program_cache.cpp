#include "runtime/program_cache.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "compile/build_id.h"
#include "compile/stored_result.h"
#include "runtime/address_check.h"
#include "runtime/content_hash.h"
#include "runtime/loaded_program.h"
#include "runtime/session_keys.h"

namespace skillet::runtime {
namespace {

class Hash {
 public:
  void add(std::string_view text) {
    const uint64_t size_bytes = text.size();  // so that "ab" + "c" differs from "a" + "bc"
    hash_.add(&size_bytes, sizeof size_bytes);
    hash_.add(text.data(), text.size());
  }
  void add(std::span<const uint8_t> bytes) { add({reinterpret_cast<const char*>(bytes.data()), bytes.size()}); }
  void add(const ir::Graph& graph) {
    add(compile::structure_of(graph));
    for (const ir::Tensor& tensor : graph.tensors) add(tensor.data);
  }
  std::string text() const { return hash_.text(); }

 private:
  ContentHash hash_;
};

// Tensors in the order in which ops name them, without names: hosts number and name them arbitrarily.
ir::Graph renumbered(const ir::Graph& graph) {
  ir::Graph out;
  std::vector<ir::TensorId> ids(graph.tensors.size(), ir::kNoTensor);
  const auto number = [&](ir::TensorId& id) {
    if (id == ir::kNoTensor) return;
    ir::TensorId& to = ids[static_cast<size_t>(id)];
    if (to == ir::kNoTensor) {
      to = static_cast<ir::TensorId>(out.tensors.size());
      out.tensors.push_back(graph.tensor(id));
      out.tensors.back().name.clear();
    }
    id = to;
  };
  out.ops = graph.ops;
  for (size_t i = 0; i < out.ops.size(); ++i) {
    out.ops[i].source_index = static_cast<int32_t>(i);
    std::ranges::for_each(out.ops[i].inputs, number);
    std::ranges::for_each(out.ops[i].outputs, number);
  }
  out.inputs = graph.inputs, out.outputs = graph.outputs;
  for (auto* list : {&out.inputs, &out.outputs}) {
    std::ranges::for_each(*list, number);
    std::ranges::sort(*list);
  }
  return out;
}

// Differs if the numbering or the names differ.
std::string exact_key(const ir::Graph& graph) {
  Hash hash;
  hash.add(graph);
  return hash.text();
}

// `graph`: its exact_key().
std::string cache_key_of(const npu::Chip& chip, const std::string& graph, const npu::CompileOptions& options,
                         std::string_view extra) {
  Hash hash;
  hash.add(compile::build_id());
  hash.add(chip.family + "/" + chip.name);
  hash.add(fmt::format("tuning {}", static_cast<int>(options.tuning)));
  hash.add(options.keep_intermediates ? "keep" : "");
  hash.add(options.takes_unproven() ? "unproven" : "");
  hash.add(fmt::format("{} switches", options.switches.size()));
  for (const std::string& name : options.switches) hash.add(name);
  hash.add(fmt::format("without {}", options.without.size()));
  for (const std::string& name : options.without) hash.add(name);
  hash.add(fmt::format("{} choices", options.choices.size()));
  for (const npu::Choice& one : options.choices) hash.add(fmt::format("{} {} {}", one.op, one.name, one.value));
  hash.add(extra);
  hash.add(graph);
  return hash.text();
}

}  // namespace

std::string cache_key(const npu::Chip& chip, const ir::Graph& graph, const npu::CompileOptions& options,
                      std::string_view extra) {
  return cache_key_of(chip, exact_key(graph), options, extra);
}

std::string graph_key(const ir::Graph& graph) {
  Hash hash;
  hash.add(renumbered(graph));
  return hash.text();
}

ProgramStore::ProgramStore(std::vector<StoredProgram> given) {
  for (StoredProgram& one : given) {
    std::string key = one.key;
    given_.emplace(std::move(key), std::move(one));
  }
}

size_t ProgramStore::given_for(std::string_view chip) const {
  return static_cast<size_t>(std::ranges::count_if(given_, [&](const auto& one) { return one.second.chip == chip; }));
}

Result<std::vector<StoredProgram>> ProgramStore::programs_of(compile::Compiled& compiled) const {
  std::vector<StoredProgram> out;
  std::set<std::string> seen;
  const std::lock_guard lock(mutex_);
  for (compile::Part& part : compiled.parts) {
    for (const compile::PartProgram& made : compile::programs(part)) {
      const std::string graph = exact_key(*made.graph);
      for (const auto& [key, one] : kept_) {
        if (one.graph != graph || !seen.insert(key).second) continue;
        SK_TRY_ASSIGN(Bytes file, npu::serialise(one.program, true));
        out.push_back({key, one.program.chip, std::move(file)});
      }
    }
  }
  return out;
}

void say_what_differs(const CompiledModel& model, const Target& target) {
  if (target.driver == nullptr)
    log::warning("a model compiled for {} runs on the CPU: {}", model.chips(), target.why_none);
  else if (std::ranges::count(model.programs, target.chip.name, &StoredProgram::chip) == 0)
    log::warning("a model compiled for {} is compiled again for {}", model.chips(), target.chip.name);
  else if (!model.is_of_this_build)
    log::warning("a model compiled by another build of Skillet is compiled again");
}

std::string what_is_unused(const CompiledModel& model, const ProgramStore& programs, const Target& target,
                           const SessionOptions& options) {
  const size_t all = target.driver == nullptr ? 0 : programs.given_for(target.chip.name);
  if (!model.is_of_this_build || programs.taken() >= all) return "";
  const size_t unused = all - programs.taken();
  const std::string differs = print_difference(model.options, deciding_options(options));
  return fmt::format("{} of {} {} not used but compiled again: {}", unused, counted(all, "program"),
                     unused == 1 ? "is" : "are",
                     differs.empty() ? "this device has other trust entries (docs/trust.md) or another number of cores"
                                     : "it was compiled with " + differs);
}

Result<npu::Program> check_stored(const npu::Driver& driver, const npu::Chip& chip, const ir::Graph& graph,
                                  const SharedBytes& file) {
  SK_TRY_ASSIGN(npu::Program program, npu::deserialise(file, true));
  auto checked = check_program(program, chip.name, graph);
  if (checked.ok()) checked = check_addresses(driver, chip, program);
  SK_TRY(std::move(checked));
  return program;
}

std::optional<npu::Program> StoringDriver::from_store(const npu::Chip& chip, const ir::Graph& graph,
                                                      const std::string& key) const {
  {
    const std::lock_guard lock(store_.mutex_);
    if (const auto found = store_.kept_.find(key); found != store_.kept_.end()) return found->second.program;
  }
  const auto found = store_.given_.find(key);
  if (found == store_.given_.end()) return std::nullopt;
  auto program = check_stored(inner(), chip, graph, found->second.file);
  if (!program.ok()) {
    log::warning("a stored program is damaged ({}); compiling", program.error().message);
    return std::nullopt;
  }
  ++store_.taken_;
  return std::move(program).value();
}

Result<npu::Program> StoringDriver::compile(const npu::Chip& chip, const ir::Graph& graph,
                                            const npu::CompileOptions& options) const {
  std::string exact = exact_key(graph);
  const std::string key = cache_key_of(chip, exact, options, extra_);
  std::optional<npu::Program> stored = from_store(chip, graph, key);
  if (!stored) SK_TRY_INTO(stored, inner().compile(chip, graph, options));
  const std::lock_guard lock(store_.mutex_);
  store_.kept_.insert_or_assign(key, ProgramStore::Kept{std::move(exact), *stored});
  return std::move(*stored);
}

std::string program_key(compile::Part& part) {
  ContentHash hash;
  const std::string graph = graph_key(part.partition.graph);
  hash.add(graph.data(), graph.size());
  for (const compile::PartProgram& one : compile::programs(part)) {
    npu::Program program = *one.program;
    program.debug_map.clear();
    for (npu::Buffer& buffer : program.buffers) {  // megabytes: hashed in place
      const uint64_t size_bytes = buffer.contents.size();
      hash.add(&size_bytes, sizeof size_bytes);
      hash.add(buffer.contents.data(), size_bytes);
      buffer.contents = {};
    }
    const auto rest = npu::serialise(program, false);
    if (!rest.ok()) return "";
    hash.add(rest->data(), rest->size());
  }
  return hash.text();
}

}  // namespace skillet::runtime
