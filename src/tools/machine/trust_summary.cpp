#include "tools/machine/trust_summary.h"

#include <fmt/ranges.h>

#include "npu/driver.h"
#include "runtime/trust.h"
#include "runtime/verify.h"

namespace skillet::tools {

TrustSummary summary_of_trust(const runtime::Target& target) {
  using runtime::TrustKind;
  TrustSummary out;
  for (const npu::Assumption& one : target.driver->assumptions(target.chip)) {
    const auto known = target.trust->find(TrustKind::assumption, one.name);
    const std::string why = known ? "" : runtime::why_not_asked(target, *target.trust, one);
    if (!why.empty())
      out.not_asked.push_back({one.name, why});
    else
      (!known ? out.open : known->confirmed ? out.confirmed : out.refuted).push_back(one.name);
  }
  for (const runtime::TrustEntry& one : target.trust->file().entries) {
    if (!runtime::is_of_this_build(one)) continue;
    if (one.kind == TrustKind::program && one.confirmed) ++out.programs;
    if (one.kind == TrustKind::operation && !one.confirmed) ++out.refuted_operations;
  }
  return out;
}

std::string still_refuted(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  return fmt::format("; still refuted here: {} (use skillet trust --forget NAME, then import again)",
                     fmt::join(names, ", "));
}

}  // namespace skillet::tools
