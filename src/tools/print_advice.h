// What follows a table of operations: why those on the CPU are there, in groups, and what can be done about it.
// Called by check and run.
// Must not know: the table.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "compile/advice.h"
#include "tools/text_table.h"

namespace skillet::tools {

inline std::string print_advice(std::span<const compile::OpRow> rows, const std::string& advice) {
  constexpr size_t kShown = 8;
  std::string text;
  const auto groups = compile::group_reasons(rows);
  for (size_t i = 0; i < std::min(groups.size(), kShown); ++i) {
    const std::string ops = fmt::format("  {} op{}: ", groups[i].ops, groups[i].ops == 1 ? "" : "s");
    text += wrapped(ops + groups[i].reason, 4) + "\n" + wrapped("    remedy: " + groups[i].remedy_text(), 6) + "\n";
  }
  size_t more = 0;
  for (size_t i = kShown; i < groups.size(); ++i) more += groups[i].ops;
  if (more != 0) text += fmt::format("  {} more: {} other reasons (--json has all)\n", more, groups.size() - kShown);
  const bool has_costs = std::ranges::any_of(groups, [](const auto& group) { return group.cpu_us >= 0; });
  if (!text.empty()) text = fmt::format("not on the NPU{}\n", has_costs ? ", what costs most first" : "") + text;
  return text + (advice.empty() ? "" : wrapped("advice: " + advice, 2) + "\n");
}

}  // namespace skillet::tools
