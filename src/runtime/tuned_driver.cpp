#include "runtime/tuned_driver.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/log.h"
#include "base/text.h"
#include "compile/build_id.h"
#include "runtime/program_cache.h"

namespace skillet::runtime {

Result<npu::CompileOptions> TunedDriver::from_file(const npu::Chip& chip, const ir::Graph& graph,
                                                   npu::CompileOptions options, const compile::TunedPart& part) const {
  options.switches.insert(options.switches.end(), part.switches.begin(), part.switches.end());
  SK_TRY_ASSIGN(const std::vector<npu::Choice> open,
                inner().choices(chip, graph, options).with_context(file_->path + ": tuning file"));
  for (const npu::Choice& one : part.choices) {
    if (std::ranges::find(open, one) == open.end())
      return error(ErrorCode::invalid_argument, "{}: tuning file: part {}: op {} has no choice '{}' of {}", file_->path,
                   part.graph, one.op, one.name, one.value);
  }
  options.choices = part.choices;
  return options;
}

Result<npu::Program> TunedDriver::compile(const npu::Chip& chip, const ir::Graph& graph,
                                          const npu::CompileOptions& options) const {
  if (!options.choices.empty()) return inner().compile(chip, graph, options);
  const compile::TunedPart* const part = file_ != nullptr ? file_->find(graph_key(graph)) : nullptr;
  if (part != nullptr) {
    SK_TRY_ASSIGN(const npu::CompileOptions chosen, from_file(chip, graph, options, *part));
    return inner().compile(chip, graph, chosen);
  }
  if (file_ != nullptr)
    log::warning("{}: the tuning file has no entry for this part of {} operations", chip.name, graph.ops.size());
  SK_TRY_ASSIGN(const std::vector<npu::Choice> open, inner().choices(chip, graph, options));
  if (open.empty() || !program_costs_) return inner().compile(chip, graph, options);
  auto tuned = compile::tune(inner(), chip, graph, options, *program_costs_);
  npu::CompileOptions chosen = options;
  if (tuned.ok())
    chosen.choices = std::move(tuned->choices);
  else
    log::info("{}: no tuning choices made: {}", chip.name, tuned.error().message);
  return inner().compile(chip, graph, chosen);
}

namespace {

constexpr size_t kFileMax = 1 << 24;

Result<std::string> read_text(const std::string& path) {
  SK_TRY_ASSIGN(const Bytes bytes, read_file_start(path, kFileMax + 1));
  if (bytes.size() > kFileMax) return error(ErrorCode::malformed, "{}: is too large", path);
  return std::string(bytes.begin(), bytes.end());
}

// For any chip and build.
Result<compile::TuningFile> read_tuning_file(const std::string& path) {
  SK_TRY_ASSIGN(const std::string text, read_text(path));
  auto file = compile::parse_tuning_file(text);
  if (!file.ok()) return std::move(file).error().with_context(path);
  file->path = path;
  return file;
}

}  // namespace

Result<compile::TuningFile> load_tuning_file(const std::string& path, const npu::Chip& chip) {
  auto file = read_tuning_file(path);
  if (!file.ok()) return file;
  if (file->chip != chip.name)
    return error(ErrorCode::invalid_argument, "{}: tuning file: chip is '{}', the device has '{}'", path, file->chip,
                 chip.name);
  if (file->build != compile::build_id())
    return error(ErrorCode::invalid_argument,
                 "{}: tuning file: build is '{}', this is '{}'; make a new one with `skillet tune`", path, file->build,
                 compile::build_id());
  return file;
}

Result<std::shared_ptr<const compile::TuningFile>> tuning_file_for(const std::string& path,
                                                                   std::span<const npu::Chip> chips) {
  std::shared_ptr<const compile::TuningFile> out;
  if (path.empty() || chips.empty()) return out;
  SK_TRY_ASSIGN(const compile::TuningFile read, read_tuning_file(expand_home(path)));
  const auto at = std::ranges::find(chips, read.chip, &npu::Chip::name);
  if (at == chips.end() && chips.size() > 1)
    return error(ErrorCode::invalid_argument, "{}: tuning file: chip is '{}', which is not one of those given",
                 read.path, read.chip);
  SK_TRY_ASSIGN(compile::TuningFile file, load_tuning_file(read.path, at == chips.end() ? chips[0] : *at));
  if (chips.size() > 1) log::warning("{}: is for {}; it is not used for the other chips", file.path, file.chip);
  out = std::make_shared<const compile::TuningFile>(std::move(file));
  return out;
}

Result<void> check_tuning_file(const Target& target, const std::string& path) {
  if (path.empty()) return {};
  const std::string whole = expand_home(path);
  auto file = target.driver == nullptr ? read_tuning_file(whole) : load_tuning_file(whole, target.chip);
  return file.ok() ? Result<void>() : std::move(file).error();
}

}  // namespace skillet::runtime
