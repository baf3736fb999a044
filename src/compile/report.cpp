#include "compile/report.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "graph/ir/macs.h"

namespace skillet::compile {
namespace {

// `text` begins with a quoted name of a tensor: the length of the longest such name; npos: none.
size_t quoted_name(std::string_view text, const ir::Graph& graph) {
  size_t found = std::string_view::npos;
  for (const ir::Tensor& tensor : graph.tensors) {
    const size_t size = tensor.name.size();
    const bool is_it = text.size() > size + 1 && text[size + 1] == '\'' && text.substr(1, size) == tensor.name;
    if (is_it && (found == std::string_view::npos || size > found)) found = size;
  }
  return found;
}

void without(std::string& text, std::string_view what) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) text.erase(at, what.size());
}

std::string why(const OpPlace& place) {
  if (!place.unproven) return place.reason;
  return (place.verified ? "verified on this device, unproven elsewhere: " : "unproven: ") + place.reason;
}

std::vector<PartNote> notes(const Compiled& compiled) {
  std::vector<PartNote> out;
  for (const Part& part : compiled.parts)
    out.push_back({part.partition.on_npu, part.partition.op_map, part.note.empty() ? "" : ", " + part.note, ""});
  return out;
}

}  // namespace

std::vector<OpRow> rows(const ir::Graph& graph, std::span<const OpPlace> ops, std::span<const PartNote> parts) {
  std::vector<OpRow> out;
  for (size_t i = 0; i < ops.size(); ++i) {
    const ir::Op& op = graph.ops[i];
    const std::string& fallback = parts[ops[i].part].fallback;
    out.push_back({.op = static_cast<ir::OpId>(i),
                   .source = op.source_index,
                   .number = ir::op_number(op),
                   .kind = std::string(ir::op_name(op)),
                   .output = op.outputs.empty() ? "-" : graph.tensor(op.outputs[0]).shape.to_string(),
                   .part = ops[i].part,
                   .on_npu = ops[i].on_npu && fallback.empty(),
                   .why = ops[i].on_npu && !fallback.empty() ? fallback : why(ops[i]),
                   .plain = {},
                   .unproven = ops[i].unproven && fallback.empty(),
                   .note = fallback.empty() ? ops[i].note : "",
                   .remedy = ops[i].remedy,
                   .stands_on = fallback.empty() ? ops[i].stands_on : std::vector<const npu::Assumption*>()});
    out.back().plain = without_names(out.back().why, graph, out.back().op);
  }
  return out;
}

std::string without_names(std::string_view reason, const ir::Graph& graph, ir::OpId op) {
  constexpr std::string_view kBeforeNouns[] = {" of ", " from ", " to ", " in ", " by ", " with "};
  std::string text(reason), out;
  without(text, ir::describe_op(graph, op) + ": ");
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t open = std::min(rest.find('\''), rest.size());
    out += rest.substr(0, open);
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const size_t size = quoted_name(rest, graph);
    if (size == std::string_view::npos) {
      out += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    rest.remove_prefix(size + 2);
    if (out.ends_with(" and ") || out.ends_with(" or ")) {
      out += "another";
    } else if (out.ends_with(" -> ")) {
      out.resize(out.size() - 4);
    } else if (std::ranges::any_of(kBeforeNouns, [&](std::string_view word) { return out.ends_with(word); })) {
      out += "a tensor";
    } else if (out.ends_with(' ') && !out.ends_with("; ") && !out.ends_with(": ")) {
      out.pop_back();
    } else {
      out += "a tensor";
    }
  }
  return out;
}

std::vector<OpRow> rows(const Compiled& compiled) { return rows(compiled.graph, compiled.ops, notes(compiled)); }

std::string print(const ModelUse& use, const ir::Graph& graph, std::span<const OpPlace> ops,
                  std::span<const PartNote> parts) {
  std::string out = fmt::format("{} on the NPU, {}\n", print(use), counted(parts.size(), "part"));
  for (size_t i = 0; i < parts.size(); ++i) {
    const PartNote& part = parts[i];
    out +=
        fmt::format("part {} on {}, {}{}\n", i, part.on_npu ? "NPU" : "CPU", counted(part.ops.size(), "op"), part.note);
    if (!part.fallback.empty()) out += fmt::format("  runs on the CPU: {}\n", part.fallback);
    for (const ir::OpId id : part.ops) {
      const std::string reason = why(ops[static_cast<size_t>(id)]);
      out += fmt::format("  {}{}{}\n", ir::describe_op(graph, id), reason.empty() ? "" : ": ", reason);
      const std::string& note = ops[static_cast<size_t>(id)].note;
      if (!note.empty()) out += fmt::format("    {}\n", note);
    }
  }
  return out;
}

std::string print(const Compiled& compiled) {
  return print(model_use(compiled), compiled.graph, compiled.ops, notes(compiled)) + print(compiled.rewrites);
}

std::string print_offload(const Compiled& compiled) {
  return print(compiled.compared ? *compiled.compared : compiled.graph, compiled.network, compiled.choices);
}

std::string print(const passes::Rewrite& rewrite) {
  return fmt::format("op {}: {} ({})", rewrite.source, rewrite.text, rewrite.pass);
}

std::string print(std::span<const passes::Rewrite> rewrites) {
  std::string out;
  for (const passes::Rewrite& one : rewrites) out += print(one) + "\n";
  return out;
}

// An operation that absorbed another may itself have been absorbed later.
std::map<int32_t, int32_t> absorbed_by(std::span<const passes::Rewrite> rewrites) {
  std::map<int32_t, int32_t> out;
  for (size_t i = rewrites.size(); i-- > 0;) {
    const auto later = out.find(rewrites[i].source);
    const int32_t now = later == out.end() ? rewrites[i].source : later->second;
    for (const int32_t gone : rewrites[i].absorbed) out.emplace(gone, now);
  }
  return out;
}

bool works_on_npu(const Part& part) { return part.partition.on_npu && !(part.program && part.program->jobs.empty()); }

size_t npu_parts(const Compiled& compiled) {
  return static_cast<size_t>(
      std::ranges::count_if(compiled.parts, [](const Part& part) { return works_on_npu(part); }));
}

std::vector<bool> works_on_npu(const Compiled& compiled) {
  std::vector<bool> out;
  for (const OpPlace& place : compiled.ops) out.push_back(place.on_npu && works_on_npu(compiled.parts[place.part]));
  return out;
}

void mark_idle(const std::vector<bool>& works, std::vector<OpRow>& rows) {
  for (OpRow& row : rows) {
    if (row.on_npu && !works[static_cast<size_t>(row.op)] && row.note.empty()) row.note = kNoJob;
  }
}

ModelUse model_use(const ir::Graph& graph, std::span<const passes::Rewrite> rewrites, size_t model_ops,
                   const std::vector<bool>& on_npu) {
  constexpr int kNone = -1, kPart = 2;
  std::vector<int> all_on_npu(model_ops, kNone);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const int32_t source = graph.ops[i].source_index;
    if (source < 0 || static_cast<size_t>(source) >= model_ops) continue;
    int& known = all_on_npu[static_cast<size_t>(source)];
    const int here = on_npu[i] ? 1 : 0;
    known = known == kNone || known == here ? here : kPart;
  }
  for (const auto& [gone, now] : absorbed_by(rewrites)) {
    const auto from = static_cast<size_t>(now), to = static_cast<size_t>(gone);
    if (from < model_ops && to < model_ops && all_on_npu[to] == kNone) all_on_npu[to] = all_on_npu[from];
  }
  const auto count = [&](int place) { return static_cast<size_t>(std::ranges::count(all_on_npu, place)); };
  return {.npu_ops = count(1), .ops = model_ops, .part_ops = count(kPart), .folded_ops = count(kNone)};
}

ModelUse model_use(const Compiled& compiled) {
  return model_use(compiled.graph, compiled.rewrites, compiled.model_ops, works_on_npu(compiled));
}

std::string print(const ModelUse& use) {
  std::string more;
  if (use.part_ops != 0) more = fmt::format("{} more in part", use.part_ops);
  if (use.folded_ops != 0) more += fmt::format("{}{} folded", more.empty() ? "" : ", ", use.folded_ops);
  return fmt::format("{} of {}{}", use.npu_ops, counted(use.ops, "operation"), more.empty() ? "" : " (" + more + ")");
}

std::vector<uint64_t> share_work(const Compiled& compiled, std::vector<uint64_t> of_model,
                                 std::span<const uint64_t> of_compiled) {
  const std::vector<ir::Op>& ops = compiled.graph.ops;
  std::vector<uint64_t> out(ops.size());
  std::map<size_t, std::vector<size_t>> made_of;
  for (size_t i = 0; i < ops.size(); ++i) {
    const int32_t source = ops[i].source_index;
    if (source >= 0 && static_cast<size_t>(source) < of_model.size()) made_of[static_cast<size_t>(source)].push_back(i);
  }
  for (const auto& [gone, now] : absorbed_by(compiled.rewrites)) {
    const auto from = static_cast<size_t>(gone), to = static_cast<size_t>(now);
    if (from < of_model.size() && to < of_model.size() && !made_of.contains(from))
      of_model[to] += std::exchange(of_model[from], 0);
  }
  for (const auto& [source, made] : made_of) {
    uint64_t left = of_model[source], all = 0;
    for (const size_t i : made) all += of_compiled[i];
    for (const size_t i : made) {
      out[i] = all == 0 ? 0
                        : static_cast<uint64_t>(static_cast<double>(of_model[source]) *
                                                static_cast<double>(of_compiled[i]) / static_cast<double>(all));
      out[i] = std::min(out[i], left);
      left -= out[i];
    }
    const auto most = std::ranges::max_element(made, {}, [&](size_t i) { return of_compiled[i]; });
    out[*most] += left;
  }
  return out;
}

std::vector<uint64_t> model_macs(const Compiled& compiled, std::vector<uint64_t> macs) {
  std::vector<uint64_t> own;
  for (size_t i = 0; i < compiled.graph.ops.size(); ++i)
    own.push_back(ir::op_macs(compiled.graph, static_cast<ir::OpId>(i)));
  return share_work(compiled, std::move(macs), own);
}

}  // namespace skillet::compile
