// What follows a table of operations: why those on the CPU are there, in groups, and what can be done about it.
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

// The one kind of operation that passes make and no model has; empty: there is none.
inline std::string print_tables(std::span<const compile::OpRow> rows, std::span<const passes::Rewrite> rewrites) {
  if (std::ranges::count(rows, ir::op_kind_name(ir::OpKind::byte_table), &compile::OpRow::kind) == 0) return "";
  std::set<std::string> from;
  for (const passes::Rewrite& one : rewrites)
    if (one.pass == "fuse_byte_functions") from.insert(one.text.substr(0, one.text.find(':')));
  if (from.empty()) return "";  // the file has tables
  return wrapped(fmt::format("{}: a table of what each of the 256 bytes becomes, in place of {} (`skillet check` lists "
                             "what is rewritten)",
                             ir::op_kind_name(ir::OpKind::byte_table), fmt::join(from, "; or of ")),
                 2) +
         "\n";
}

// `model_ops`: how many the model has; passes may make more or fewer, which is what `rows` are.
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
  if (!text.empty())
    text = fmt::format("not on the NPU{}{}\n", made, has_costs ? ", what costs most first" : "") + text;
  return text + (advice.empty() ? "" : wrapped("advice: " + advice, 2) + "\n");
}

}  // namespace skillet::tools
