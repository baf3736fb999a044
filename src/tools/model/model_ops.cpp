#include "tools/model/model_ops.h"

#include <algorithm>

#include "base/align.h"
#include "base/log.h"
#include "compile/compile.h"
#include "runtime/record_program.h"
#include "tools/model/model.h"

namespace skillet::tools {
namespace {

std::vector<std::string> keys_of(const npu::Annotated& decoded) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < decoded.operations.size(); ++i)
    keys.push_back(fmt::format("{} {}", decoded.operations[i], i < decoded.shapes.size() ? decoded.shapes[i] : ""));
  return keys;
}

}  // namespace

std::vector<ir::OpId> executed_ops(const npu::Program& program, const npu::HardwareRows& rows) {
  std::vector<ir::OpId> ops;
  for (const npu::DebugEntry& entry : program.debug_map) {
    const bool is_descriptor =
        std::ranges::any_of(rows.descriptors, [&](const bits::Descriptor* one) { return one->name == entry.what; });
    if (!is_descriptor && program.buffers[entry.buffer].role != npu::BufferRole::commands) continue;
    ops.push_back(entry.operation < 0 ? -1 : program.operations[static_cast<size_t>(entry.operation)].op);
  }
  return ops;
}

Result<ModelOps::Sequence> ModelOps::sequence(const ir::Graph& graph, const npu::Chip& chip, npu::Tuning tuning) {
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  compile::Options options;
  options.driver.tuning = tuning;
  options.driver.unproven = npu::Unproven::take;
  // Quiet: operations that this tuning leaves to the CPU are not relevant for recognising jobs.
  const log::ScopedLevel quiet(log::enabled(log::Level::info) ? std::optional<log::Level>() : log::Level::error);
  SK_TRY_ASSIGN(compile::Compiled compiled, compile::compile(graph, {driver, chip}, options));
  Sequence out;
  for (compile::Part& part : compiled.parts) {
    if (!part.program || part.program->jobs.empty()) continue;
    const std::vector<ir::OpId> ops = executed_ops(*part.program, driver->hardware_rows(chip));
    std::vector<runtime::ProgramToRecord> programs;
    programs.push_back({std::move(*part.program), &part.partition.graph, {}});
    SK_TRY_ASSIGN(const runtime::RecordedPrograms done, runtime::record_programs(chip.name, std::move(programs)));
    std::vector<std::string> keys;
    for (const capture::Submission& one : done.capture.submissions) {
      SK_TRY_ASSIGN(const npu::Annotated decoded, driver->decode(chip, one));
      std::ranges::move(keys_of(decoded), std::back_inserter(keys));
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      const ir::OpId own = i < ops.size() && ops.size() == keys.size() ? ops[i] : -1;
      const ir::OpId op = own < 0 ? -1 : part.partition.op_map[static_cast<size_t>(own)];
      out.ops.push_back(
          op < 0 ? "" : fmt::format("{} {}", compiled.graph.op(op).source_index, ir::op_name(compiled.graph.op(op))));
    }
    std::ranges::move(keys, std::back_inserter(out.keys));
  }
  return out;
}

Result<ModelOps> ModelOps::load(const std::string& path, const npu::Chip& chip) {
  SK_TRY_ASSIGN(const ir::Graph graph, import_model(path));
  ModelOps out;
  std::optional<Error> problem;
  for (const npu::Tuning tuning : {npu::Tuning::recorded, npu::Tuning::proven, npu::Tuning::tuned}) {
    auto one = sequence(graph, chip, tuning);
    if (!one.ok()) {
      problem = std::move(one).error().with_context(path);
    } else if (!one->keys.empty()) {
      out.sequences_.push_back(std::move(one).value());
    }
  }
  if (out.sequences_.empty() && problem) return std::move(*problem);
  return out;
}

std::vector<std::string> ModelOps::of(const npu::Annotated& decoded) {
  const std::vector<std::string> keys = keys_of(decoded);
  std::vector<std::string> best(keys.size());
  size_t most = 0;
  for (Sequence& one : sequences_) {
    std::vector<std::string> own(one.keys);
    std::rotate(own.begin(), own.begin() + static_cast<ptrdiff_t>(one.next), own.end());
    std::vector<std::string> ops(keys.size());
    size_t matched = 0, last = 0;
    for (const AlignedPair& pair : align(keys, own)) {
      if (!pair.a || !pair.b) continue;
      ++matched;
      last = (*pair.b + one.next + 1) % own.size();
      ops[*pair.a] = one.ops[(*pair.b + one.next) % own.size()];
    }
    if (matched > 0) one.next = last;
    if (matched <= most) continue;
    most = matched;
    best = std::move(ops);
  }
  found_ += most;
  return best;
}

}  // namespace skillet::tools
