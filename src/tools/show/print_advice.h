// Text after a table of operations: why operations run on the CPU, in groups, and what to do about it.
// Called by check and run.
// Must not know: the table.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>

#include "compile/advice.h"
#include "tools/show/text_table.h"

namespace skillet::tools {

// Explains byte tables, operations that only passes make; empty: there are none.
inline std::string print_tables(std::span<const compile::OpRow> rows, std::span<const passes::Rewrite> rewrites) {
  if (std::ranges::count(rows, ir::op_kind_name(ir::OpKind::byte_table), &compile::OpRow::kind) == 0) return "";
  std::set<std::string> from;
  for (const passes::Rewrite& one : rewrites)
    if (one.pass == "fuse_byte_functions") from.insert(one.text.substr(0, one.text.find(':')));
  if (from.empty()) return "";  // empty: the tables are in the file
  return wrapped(fmt::format("{}: a table of the result for each of the 256 bytes, which replaces {} (`skillet check` "
                             "lists what is rewritten)",
                             ir::op_kind_name(ir::OpKind::byte_table), fmt::join(from, "; or of ")),
                 2) +
         "\n";
}

// `model_ops`: number of the model's operations; `rows`: the operations after the passes, more or fewer.
inline std::string print_advice(std::span<const compile::OpRow> rows, size_t model_ops, const std::string& advice,
                                compile::Words words) {
  constexpr size_t kShown = 8;
  std::string text;
  const auto groups = compile::group_reasons(rows);
  for (size_t i = 0; i < std::min(groups.size(), kShown); ++i) {
    const std::string ops = fmt::format("  {} op{}: ", groups[i].ops, groups[i].ops == 1 ? "" : "s");
    text +=
        wrapped(ops + groups[i].reason, 4) + "\n" + wrapped("    remedy: " + groups[i].remedy_text(words), 6) + "\n";
  }
  size_t more = 0;
  for (size_t i = kShown; i < groups.size(); ++i) more += groups[i].ops;
  if (more != 0) text += fmt::format("  {} more: {} other reasons (--json has all)\n", more, groups.size() - kShown);
  const bool has_costs = std::ranges::any_of(groups, [](const auto& group) { return group.cpu_us >= 0; });
  const std::string made = rows.size() == model_ops
                               ? ""
                               : fmt::format(", of the {} operations that {} are rewritten to", rows.size(), model_ops);
  if (!text.empty()) text = fmt::format("not on the NPU{}{}\n", made, has_costs ? ", most expensive first" : "") + text;
  return text + (advice.empty() ? "" : wrapped("advice: " + advice, 2) + "\n");
}

}  // namespace skillet::tools
