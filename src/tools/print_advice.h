// What follows a table of operations: why those on the CPU are there, in groups, and what can be done about it.
// Called by check and run.
// Must not know: the table.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>

#include "compile/advice.h"

namespace skillet::tools {

inline std::string print_advice(std::span<const compile::OpRow> rows, const std::string& advice) {
  constexpr size_t kShown = 8;
  std::string text;
  const auto groups = compile::group_reasons(rows);
  for (size_t i = 0; i < std::min(groups.size(), kShown); ++i)
    text += fmt::format("  {} op{}: {}\n    remedy: {}\n", groups[i].ops, groups[i].ops == 1 ? "" : "s",
                        groups[i].reason, groups[i].remedy_text());
  size_t more = 0;
  for (size_t i = kShown; i < groups.size(); ++i) more += groups[i].ops;
  if (more != 0) text += fmt::format("  {} more: {} other reasons (--json has all)\n", more, groups.size() - kShown);
  if (!text.empty()) text = "not on the NPU\n" + text;
  return text + (advice.empty() ? "" : "advice: " + advice + "\n");
}

}  // namespace skillet::tools
