#include "runtime/program_cache.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/log.h"
#include "base/own_file.h"
#include "base/text.h"
#include "compile/build_id.h"
#include "runtime/address_check.h"
#include "runtime/content_hash.h"
#include "runtime/loaded_program.h"
#include "runtime/session_keys.h"

namespace skillet::runtime {
namespace {

constexpr uint64_t kLimitBytes = 1ULL << 30;  // no program file is larger

// Not packed, so that constants are used in place in the file.
Result<void> save(const std::string& path, const std::string& key, const npu::Program& program) {
  SK_TRY_ASSIGN(Bytes body, npu::serialise(program, false));
  CompiledModel entry;
  entry.programs.push_back({key, program.chip, std::move(body)});
  SK_TRY_ASSIGN(const Bytes file, save_compiled(entry));
  return replace_own_file(path, {file});
}

// Stops reading if the file has another key, or another length than its header states.
Result<std::optional<SharedBytes>> read(const std::string& path, const std::string& key) {
  return read_own_file(path, kLimitBytes, [&](std::span<const uint8_t> start, uint64_t size_bytes) {
    return check_compiled_start(start, size_bytes, key).with_context(path);
  });
}

class Hash {
 public:
  void add(std::string_view text) {
    const uint64_t size_bytes = text.size();  // so that "ab" + "c" differs from "a" + "bc"
    hash_.add(&size_bytes, sizeof size_bytes);
    hash_.add(text.data(), text.size());
  }
  // Hashes contents as bytes: printing scales per channel takes as long as compiling some networks.
  void add(const ir::Graph& graph) {
    add(ir::print_without_constants(graph));
    for (const ir::Tensor& tensor : graph.tensors) {
      const std::vector<float>& scales = tensor.quant.scales;
      add({reinterpret_cast<const char*>(scales.data()), scales.size() * sizeof(float)});
      add({reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()});
    }
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

// Checks what load() checks. A bad program that is not replaced here would fail to load each time.
Result<npu::Program> CachingDriver::check(const npu::Chip& chip, const ir::Graph& graph,
                                          const SharedBytes& file) const {
  SK_TRY_ASSIGN(npu::Program program, npu::deserialise(file));
  auto checked = check_program(program, chip.name, graph);
  if (checked.ok()) checked = check_addresses(inner(), chip, program);
  SK_TRY(std::move(checked));
  return program;
}

std::optional<npu::Program> CachingDriver::from_store(const npu::Chip& chip, const ir::Graph& graph,
                                                      const std::string& key) const {
  {
    const std::lock_guard lock(store_->mutex_);
    if (const auto found = store_->kept_.find(key); found != store_->kept_.end()) return found->second.program;
  }
  const auto found = store_->given_.find(key);
  if (found == store_->given_.end()) return std::nullopt;
  auto program = check(chip, graph, found->second.file);
  if (!program.ok()) {
    log::warning("a stored program is damaged ({}); compiling", program.error().message);
    return std::nullopt;
  }
  ++store_->taken_;
  return std::move(program).value();
}

std::optional<npu::Program> CachingDriver::load(const npu::Chip& chip, const ir::Graph& graph, const std::string& path,
                                                const std::string& key) const {
  auto file = read(path, key);
  if (!file.ok()) {
    log::warning("cache: {}; compiling", file.error().message);
    return std::nullopt;
  }
  if (!*file) return std::nullopt;
  const auto entry = read_compiled(**file);
  auto program = entry.ok() ? check(chip, graph, entry->programs[0].file) : Result<npu::Program>(entry.error());
  if (program.ok()) return std::move(program).value();
  log::warning("cache: {} is damaged ({}); compiling", path, program.error().message);
  return std::nullopt;
}

std::string CachingDriver::path_of(const std::string& key) const { return fmt::format("{}/{}.skp", folder_, key); }

void CachingDriver::forget(const npu::Chip& chip, const ir::Graph& graph, const npu::CompileOptions& options) const {
  std::error_code ignored;
  std::filesystem::remove(path_of(cache_key(chip, graph, options, extra_)), ignored);
}

Result<npu::Program> CachingDriver::compile(const npu::Chip& chip, const ir::Graph& graph,
                                            const npu::CompileOptions& options) const {
  std::string exact = exact_key(graph);
  const std::string key = cache_key_of(chip, exact, options, extra_);
  if (store_ == nullptr) return from_folder(chip, graph, options, key);
  std::optional<npu::Program> stored = from_store(chip, graph, key);
  if (!stored) SK_TRY_INTO(stored, from_folder(chip, graph, options, key));
  const std::lock_guard lock(store_->mutex_);
  store_->kept_.insert_or_assign(key, ProgramStore::Kept{std::move(exact), *stored});
  return std::move(*stored);
}

Result<npu::Program> CachingDriver::from_folder(const npu::Chip& chip, const ir::Graph& graph,
                                                const npu::CompileOptions& options, const std::string& key) const {
  if (folder_.empty()) return inner().compile(chip, graph, options);
  const std::string path = path_of(key);
  if (auto program = load(chip, graph, path, key)) {
    log::debug("cache: {}", path);
    return std::move(*program);
  }
  SK_TRY_ASSIGN(npu::Program program, inner().compile(chip, graph, options));
  // load() would refuse such a program. The tuning `recorded` copies a recorded driver's faults.
  if (auto checked = check_addresses(inner(), chip, program); !checked.ok()) {
    log::debug("cache: program not stored: {}", checked.error().message);
    return program;
  }
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  if (auto saved = save(path, key, program); !saved.ok())
    log::warning("cache: {}; cache_dir (SKILLET_CACHE_DIR) names the folder", saved.error().message);
  return program;
}

}  // namespace skillet::runtime
