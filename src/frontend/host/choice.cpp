#include "frontend/host/choice.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"
#include "compile/advice.h"
#include "compile/report.h"
#include "graph/ir/macs.h"
#include "graph/passes/passes.h"

namespace skillet::host {
namespace {

// Dropping one part may change how the rest is divided; each round drops at least one.
constexpr int kMaxRounds = 16;

// What is not on the NPU, those that passes merged with others among it. `left`: the numbers of all that is still there
// in some form.
std::vector<Refusal> not_on_npu(const compile::Compiled& compiled, std::set<int>& left) {
  std::vector<Refusal> out;
  const auto add = [&](int node, size_t i) {
    const compile::OpPlace& place = compiled.ops[i];
    const bool by_cost = place.remedy == npu::Remedy::take_all;
    if (!place.on_npu) out.push_back({node, place.reason + std::string(by_cost ? kTakenByAll : ""), by_cost});
  };
  for (size_t i = 0; i < compiled.ops.size(); ++i) {
    left.insert(compiled.graph.ops[i].source_index);
    add(compiled.graph.ops[i].source_index, i);
  }
  for (const auto& [gone, now] : compile::absorbed_by(compiled.rewrites)) {
    if (!left.insert(gone).second) continue;  // others have its number
    for (size_t i = 0; i < compiled.ops.size(); ++i)
      if (compiled.graph.ops[i].source_index == now) add(gone, i);
  }
  return out;
}

}  // namespace

runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions out = options.session;
  out.allow_fallback = !options.strict;
  // What goes to the NPU is chosen when partitions are proposed; one that the host has handed over goes there.
  out.partition = compile::PartitionBy::all;
  return out;
}

std::vector<Refusal> refusals_of(const compile::Compiled& compiled, std::span<const int> nodes,
                                 const std::set<int>& for_cpu) {
  std::set<int> left;
  std::vector<Refusal> out = not_on_npu(compiled, left);
  std::erase_if(out, [&](const Refusal& refusal) { return for_cpu.contains(refusal.node); });
  if (out.empty() && compile::npu_parts(compiled) == 0)
    for (const int node : nodes) out.push_back({node, compile::kNoJob});
  return out;
}

void Choice::refuse(int node, const std::string& reason) {
  refusals_.try_emplace(node, reason.empty() ? "the NPU's driver does not take it" : reason);
}

std::string_view Choice::refusal(int node) const {
  const auto found = refusals_.find(node);
  return found == refusals_.end() ? std::string_view() : found->second;
}

std::vector<int> Choice::ours() const {
  std::vector<int> out;
  std::ranges::copy_if(nodes_, std::back_inserter(out), [&](int node) { return is_ours(node); });
  return out;
}

Result<void> Choice::ask(ir::Graph whole, const std::set<int>& for_cpu, const std::set<int>& carried) {
  if (whole.ops.empty()) return {};
  for (size_t i = 0; i < whole.ops.size(); ++i) {
    macs_[whole.ops[i].source_index] += ir::op_macs(whole, static_cast<ir::OpId>(i));
    if (compile::keeps_state_or_branches(whole.ops[i])) quiet_.insert(whole.ops[i].source_index);
  }
  advice_ = compile::quantization_advice(whole, {target_.driver, target_.chip, options_.session.compile.per_channel},
                                         compile::Rest::in_the_host);
  SK_TRY_ASSIGN(const compile::Compiled planned,
                runtime::plan_for(target_, std::move(whole), session_options(options_)));
  std::set<int> left = carried;
  for (const Refusal& refusal : not_on_npu(planned, left))
    if (!for_cpu.contains(refusal.node)) refuse(refusal.node, refusal.reason);
  for (const int node : nodes_)
    if (!left.contains(node)) refuse(node, "nothing reads what it computes");
  return {};
}

Result<void> Choice::divide(const Ways& host) {
  for (int round = 0; round < kMaxRounds; ++round) {
    if (host.settle) host.settle();
    SK_TRY_ASSIGN(parts_, host.divide());
    bool all_stay = true;
    for (const Set& set : parts_) all_stay &= judge(set, host);
    all_stay &= limit();
    if (all_stay) return {};
  }
  parts_.clear();
  for (const int node : nodes_) refuse(node, "the partitions of the rest keep changing");
  return {};
}

bool Choice::drop(const Set& set, const std::string& reason) {
  for (const int node : set.nodes) refuse(node, reason);
  return false;
}

// Compiles, to see what the NPU would really do. False: operations were refused.
bool Choice::judge(const Set& set, const Ways& host) {
  if (fit_.contains(set)) return true;
  if (static_cast<int>(set.nodes.size()) < options_.min_nodes_per_partition)
    return drop(set, fmt::format("its partition has {} ops, fewer than min_nodes_per_partition={}", set.nodes.size(),
                                 options_.min_nodes_per_partition));
  // What was weighed stays as it is: of a smaller set, costs would cut off more, again and again.
  const bool is_weighed = std::ranges::all_of(set.nodes, [&](int node) { return weighed_.contains(node); });
  const auto refusals = host.propose(set, !is_weighed);
  if (!refusals.ok()) return drop(set, refusals.error().message);
  if (std::ranges::all_of(*refusals, &Refusal::by_cost)) weighed_.insert(set.nodes.begin(), set.nodes.end());
  for (const Refusal& refusal : *refusals) refuse(refusal.node, refusal.reason);
  if (refusals->empty()) fit_.insert(set);
  return refusals->empty();
}

uint64_t Choice::macs(const Set& set) const {
  uint64_t out = 0;
  for (const int node : set.nodes) {
    const auto found = macs_.find(node);
    if (found != macs_.end()) out += found->second;
  }
  return out;
}

// Keeps the parts with the most work. True: all.
bool Choice::limit() {
  const auto most = static_cast<size_t>(options_.max_delegated_partitions);
  std::vector<const Set*> kept;
  for (const Set& set : parts_)
    if (fit_.contains(set)) kept.push_back(&set);
  if (most == 0 || kept.size() <= most) return true;
  std::ranges::stable_sort(kept, std::greater{}, [&](const Set* one) { return macs(*one); });
  for (size_t i = most; i < kept.size(); ++i)
    drop(*kept[i], fmt::format("max_delegated_partitions={} other partitions have more work", most));
  return false;
}

std::vector<Set> Choice::closed_sets(const ir::Graph& graph) const {
  std::vector<npu::Support> support;
  for (const ir::Op& op : graph.ops)
    support.push_back(is_ours(op.source_index) && op.source_index >= 0
                          ? npu::Support::yes()
                          : npu::Support::no(npu::Remedy::none, "the host's"));
  std::vector<Set> out;
  for (const passes::Partition& part : passes::partition(graph, support)) {
    if (!part.on_npu) continue;
    Set& set = out.emplace_back();
    for (const ir::OpId op : part.op_map) set.nodes.push_back(graph.op(op).source_index);
  }
  return out;
}

Told Choice::told(const std::function<std::string(int)>& name) const {
  Told out;
  std::string most_telling;  // what the NPU would take, else what it could compute
  for (const int node : nodes_) {
    if (is_ours(node)) continue;
    const std::string& line = out.refusals.emplace_back(fmt::format("{}: {}", name(node), refusal(node)));
    const bool would_go = line.ends_with(kTakenByAll) && !most_telling.ends_with(kTakenByAll);
    if (would_go || (most_telling.empty() && !quiet_.contains(node))) most_telling = line;
  }
  out.count = fmt::format("{} of {} ops claimed, {} partitions", nodes_.size() - out.refusals.size(), nodes_.size(),
                          parts_.size());
  if (!parts_.empty()) return out;
  // Graphs that only set variables or call others are nothing to warn of.
  if (!most_telling.empty()) out.such_as = "nothing is claimed, such as " + most_telling;
  out.advice = advice_;
  return out;
}

Result<void> Choice::check_strict(const Told& told) const {
  constexpr size_t kShown = 8;
  if (!options_.strict || told.refusals.empty()) return {};
  const auto shown = std::span(told.refusals).first(std::min(told.refusals.size(), kShown));
  return error(ErrorCode::unsupported,
               "strict=1, but {} of {} ops would run on the CPU: {}{}",  // in one line: hosts print it
               told.refusals.size(), nodes_.size(), fmt::join(shown, "; "),
               told.refusals.size() > kShown ? "; and more" : "");
}

void log_told(const Told& told, std::span<const std::string> parts) {
  for (const std::string& line : told.refusals) log::info("{}", line);
  for (const std::string& line : parts) log::info("partition of {}", line);
  if (!log::enabled(log::Level::warning)) return;
  const bool untold = !told.refusals.empty() && !log::enabled(log::Level::info);
  log::write(log::Level::info, told.count + (untold ? "; log=info says why not the others" : ""));
  if (untold && !told.such_as.empty()) log::warning("{}", told.such_as);
  if (!told.advice.empty()) log::warning("{}", told.advice);
}

}  // namespace skillet::host
