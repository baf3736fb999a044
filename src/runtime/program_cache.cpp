#include "runtime/program_cache.h"

#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/log.h"
#include "base/own_file.h"
#include "compile/build_id.h"
#include "runtime/address_check.h"

namespace skillet::runtime {
namespace {

// A cache file: 64 bytes of this text, the key, spaces and a line feed; then a program file that is not packed, so that
// constants are used where they are mapped. The key carries the version of everything else.
constexpr std::string_view kMagic = "skillet-program-cache 2 ";
constexpr size_t kHeadBytes = 64;
constexpr uint64_t kLimitBytes = 1ULL << 30;  // no program file is larger

std::string head_of(const std::string& key) {
  return fmt::format("{:<{}}\n", fmt::format("{}{}", kMagic, key), kHeadBytes - 1);
}

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

Result<void> save(const std::string& path, const std::string& key, const driver::Program& program) {
  SK_TRY_ASSIGN(const Bytes body, driver::serialise(program, false));
  const std::string head = head_of(key);
  return replace_own_file(path, {{reinterpret_cast<const uint8_t*>(head.data()), head.size()}, body});
}

Result<driver::Program> parse(const SharedBytes& file, const std::string& key) {
  const std::string head = head_of(key);
  if (file.size() <= head.size() || !std::equal(head.begin(), head.end(), file.begin()))
    return error(ErrorCode::malformed, "it does not begin with its key");
  return driver::deserialise(file.subspan(head.size()));
}

}  // namespace

std::string cache_key(const driver::Chip& chip, const ir::Graph& graph, const driver::CompileOptions& options) {
  const std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  XXH3_128bits_reset(state.get());
  const auto add = [&](std::string_view text) {
    const uint64_t size_bytes = text.size();  // so that "ab" + "c" differs from "a" + "bc"
    XXH3_128bits_update(state.get(), &size_bytes, sizeof size_bytes);
    XXH3_128bits_update(state.get(), text.data(), text.size());
  };
  add(compile::build_id());
  add(chip.family + "/" + chip.name);
  add(fmt::format("tuning {}", static_cast<int>(options.tuning)));
  add(options.keep_intermediates ? "keep" : "");
  add(options.allow_unproven ? "unproven" : "");
  add(fmt::format("{} switches", options.switches.size()));
  for (const std::string& name : options.switches) add(name);
  add(ir::print(graph));
  for (const ir::Tensor& tensor : graph.tensors)
    add({reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()});
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::optional<driver::Program> CachingDriver::load(const driver::Chip& chip, const std::string& path,
                                                   const std::string& key) const {
  auto file = map_own_file(path, kLimitBytes);
  if (!file.ok()) {
    log::warning("cache: {}; compiling", file.error().message);
    return std::nullopt;
  }
  if (!*file) return std::nullopt;
  auto program = parse(**file, key);
  if (program.ok()) {
    if (auto checked = check_addresses(inner_, chip, *program); !checked.ok()) program = std::move(checked).error();
  }
  if (program.ok()) return std::move(program).value();
  log::warning("cache: {} is damaged ({}); compiling", path, program.error().message);
  return std::nullopt;
}

Result<driver::Program> CachingDriver::compile(const driver::Chip& chip, const ir::Graph& graph,
                                               const driver::CompileOptions& options) const {
  const std::string key = cache_key(chip, graph, options);
  const std::string path = fmt::format("{}/{}.skp", folder_, key);
  if (auto program = load(chip, path, key)) {
    log::debug("cache: {}", path);
    return std::move(*program);
  }
  SK_TRY_ASSIGN(driver::Program program, inner_.compile(chip, graph, options));
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  if (auto saved = save(path, key, program); !saved.ok()) log::warning("cache: {}", saved.error().message);
  return program;
}

}  // namespace skillet::runtime
