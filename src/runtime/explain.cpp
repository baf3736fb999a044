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
  return compile::print(session.graph(), session.report().ops, notes(session));
}

std::vector<compile::OpRow> rows(const Session& session) {
  return compile::rows(session.graph(), session.report().ops, notes(session));
}

}  // namespace skillet::runtime
