#include "runtime/compile_cache.h"

#include <filesystem>
#include <string_view>

#include "base/log.h"
#include "base/own_file.h"
#include "base/stopwatch.h"
#include "compile/stored_result.h"
#include "runtime/address_check.h"
#include "runtime/compiled_model.h"
#include "runtime/program_cache.h"

namespace skillet::runtime {
namespace {

constexpr uint64_t kLimitBytes = 1ULL << 30;  // no file is larger

}  // namespace

CompileCache::CompileCache(const std::string& folder, std::string key, const npu::Driver& driver, const npu::Chip& chip)
    : folder_(folder),
      key_(std::move(key)),
      path_(fmt::format("{}/{}.skp", folder, key_)),
      driver_(driver),
      chip_(chip) {}

Result<compile::Compiled> CompileCache::read(const SharedBytes& file, const ir::Graph& model) const {
  SK_TRY_ASSIGN(const CompiledModel entry, read_compiled(file));
  if (!entry.note.starts_with(key_)) return error(ErrorCode::malformed, "it has another key");
  const std::string_view note = std::string_view(entry.note).substr(key_.size());
  SK_TRY_ASSIGN(compile::Compiled out, compile::restore({reinterpret_cast<const uint8_t*>(note.data()), note.size()},
                                                        entry.constants, model, {.driver = &driver_, .chip = chip_}));
  size_t next = 0;
  for (compile::Part& part : out.parts) {
    for (const compile::PartProgram& one : compile::programs(part)) {
      if (next == entry.programs.size()) return error(ErrorCode::malformed, "it has too few programs");
      SK_TRY_ASSIGN(*one.program, check_stored(driver_, chip_, *one.graph, entry.programs[next].file));
      ++next;
    }
  }
  if (next != entry.programs.size()) return error(ErrorCode::malformed, "it has too many programs");
  return out;
}

std::optional<compile::Compiled> CompileCache::load(const ir::Graph& model) const {
  const Stopwatch watch;
  auto file = read_own_file(path_, kLimitBytes, [&](std::span<const uint8_t> start, uint64_t size_bytes) {
    return check_compiled_start(start, size_bytes).with_context(path_);
  });
  if (!file.ok()) {
    log::warning("cache: {}; compiling", file.error().message);
    return std::nullopt;
  }
  if (!*file) return std::nullopt;
  auto out = read(**file, model);
  if (!out.ok()) {
    log::warning("cache: {}: {}; compiling", path_, out.error().message);
    return std::nullopt;
  }
  log::debug("cache: {}", path_);
  out->kept_in = path_;
  out->passes_ms = watch.ms();
  return std::move(*out);
}

Result<Bytes> CompileCache::file_of(compile::Compiled& compiled, const ir::Graph& model) const {
  CompiledModel entry;
  for (compile::Part& part : compiled.parts) {
    if (part.partition.on_npu) part.key = program_key(part);
    for (const compile::PartProgram& one : compile::programs(part)) {
      // load() would refuse such a program. The tuning `recorded` copies a recorded driver's faults.
      SK_TRY(check_addresses(driver_, chip_, *one.program));
      SK_TRY_ASSIGN(Bytes body, npu::serialise(*one.program, false));  // not packed: constants are used in place
      entry.programs.push_back({key_, one.program->chip, std::move(body)});
    }
  }
  SK_TRY_ASSIGN(compile::StoredResult result, compile::store(compiled, model, {.driver = &driver_, .chip = chip_}));
  entry.note = key_;
  entry.note.append(result.bytes.begin(), result.bytes.end());
  entry.constants = std::move(result.constants);
  return save_compiled(entry);
}

void CompileCache::save(compile::Compiled& compiled, const ir::Graph& model) const {
  const auto file = file_of(compiled, model);
  if (!file.ok()) {
    log::debug("cache: not stored: {}", file.error().message);
    return;
  }
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  if (auto saved = replace_own_file(path_, {*file}); !saved.ok())
    return log::warning("cache: {}; cache_dir (SKILLET_CACHE_DIR) names the folder", saved.error().message);
  compiled.kept_in = path_;
}

}  // namespace skillet::runtime
