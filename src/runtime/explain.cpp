#include "compile/report.h"
#include "runtime/session.h"

namespace skillet::runtime {
namespace {

std::vector<compile::PartNote> notes(const Session& session) {
  std::vector<compile::PartNote> out;
  for (const PartReport& part : session.report().parts)
    out.push_back({part.on_npu, part.ops,
                   fmt::format(", prepared in {:.1f} ms{}{}", part.compile_ms + part.load_ms,
                               part.note.empty() ? "" : ", ", part.note),
                   part.fallback});
  return out;
}

}  // namespace

std::string explain(const Session& session) {
  return compile::print(model_use(session), session.graph(), session.report().ops, notes(session));
}

std::vector<compile::OpRow> rows(const Session& session) {
  return compile::rows(session.graph(), session.report().ops, notes(session));
}

size_t jobs_of(const Session& session, size_t part) {
  size_t jobs = 0;
  for (const npu::Program* program : session.programs(part)) jobs += program->jobs.size();
  return jobs;
}

std::vector<bool> works_on_npu(const Session& session) {
  std::vector<bool> out(session.graph().ops.size());
  for (size_t i = 0; i < session.report().parts.size(); ++i) {
    const PartReport& part = session.report().parts[i];
    const bool works = part.on_npu && part.fallback.empty() && jobs_of(session, i) > 0;
    for (const ir::OpId op : part.ops) out[static_cast<size_t>(op)] = works;
  }
  return out;
}

compile::ModelUse model_use(const Session& session) {
  const Report& report = session.report();
  return compile::model_use(session.graph(), report.rewrites, report.model_ops, works_on_npu(session));
}

}  // namespace skillet::runtime
