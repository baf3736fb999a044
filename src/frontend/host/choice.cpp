#include "frontend/host/choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/log.h"
#include "compile/advice.h"
#include "graph/ir/macs.h"
#include "graph/passes/divide/images.h"
#include "graph/passes/passes.h"
#include "runtime/verify.h"

namespace skillet::host {
namespace {

// Dropping one part may change how the rest is divided; each round drops at least one.
constexpr int kMaxRounds = 16;

constexpr const char* kInPart = "the NPU takes only some of the operations that passes make of it; not: ";

// True for a split or concatenation of a batch that passes added. It only copies, as the host would.
bool is_of_batch(const ir::Graph& graph, ir::OpId id) {
  const ir::Op& op = graph.op(id);
  const bool divides = op.kind == ir::OpKind::split;
  if (!divides && op.kind != ir::OpKind::concatenation) return false;
  const ir::TensorId batch = divides ? op.inputs.back() : op.outputs[0];
  const ir::TensorId image = divides ? op.outputs[0] : op.inputs[0];
  return graph.tensor(image).name == passes::image_name(graph.tensor(batch).name, 0);
}

// Operations that are not on the NPU, with those that passes merged into others. `left`: receives the numbers of all
// operations that still exist in some form.
std::vector<Refusal> not_on_npu(const compile::Compiled& compiled, std::span<const compile::OpRow> rows,
                                std::set<int>& left) {
  std::vector<Refusal> out;
  std::set<int> taken;  // some operations that passes made of it are on the NPU
  for (const compile::OpRow& row : rows)
    if (row.on_npu) taken.insert(row.source);
  const auto add = [&](int node, const compile::OpRow& row) {
    if (row.on_npu || (taken.contains(row.source) && is_of_batch(compiled.graph, row.op))) return;
    Refusal& refusal = out.emplace_back(Refusal{.node = node,
                                                .reason = row.why,
                                                .by_cost = row.remedy == npu::Remedy::take_all,
                                                .plain = row.plain,
                                                .remedy = row.remedy});
    const bool is_unproven = row.remedy == npu::Remedy::unproven || row.remedy == npu::Remedy::one_job;
    if (!taken.contains(row.source) || is_unproven || refusal.by_cost) return;
    refusal.reason = kInPart + refusal.reason;
    refusal.plain = kInPart + refusal.plain;
    refusal.remedy = npu::Remedy::fix;
  };
  for (const compile::OpRow& row : rows) {
    left.insert(row.source);
    add(row.source, row);
  }
  for (const auto& [gone, now] : compile::absorbed_by(compiled.rewrites)) {
    if (!left.insert(gone).second) continue;  // it still exists under its own number
    for (const compile::OpRow& row : rows)
      if (row.source == now) add(gone, row);
  }
  return out;
}

}  // namespace

runtime::SessionOptions session_options(const Options& options) {
  runtime::SessionOptions out = options.session;
  out.allow_fallback = !options.strict;
  // Operations are chosen when partitions are proposed. A partition that the host has handed over goes to the NPU.
  out.partition = compile::PartitionBy::all;
  return out;
}

std::vector<Node> numbered(size_t count) {
  std::vector<Node> out(count);
  for (size_t i = 0; i < count; ++i) out[i].index = static_cast<int>(i);
  return out;
}

std::vector<Refusal> refusals_of(const compile::Compiled& compiled, std::span<const int> nodes,
                                 const std::set<int>& for_cpu) {
  std::set<int> left;
  std::vector<Refusal> out = not_on_npu(compiled, compile::rows(compiled), left);
  std::erase_if(out, [&](const Refusal& refusal) { return for_cpu.contains(refusal.node); });
  if (out.empty() && compile::npu_parts(compiled) == 0)
    for (const int node : nodes) out.push_back({.node = node, .reason = compile::kNoJob});
  return out;
}

Result<void> advise_unproven(std::vector<compile::OpRow>& rows, const compile::Compiled& compiled,
                             const runtime::Target& target, const ir::Graph& graph, runtime::SessionOptions session) {
  if (target.driver == nullptr || session.compile.takes_unproven()) return {};
  session.compile.unproven = npu::Unproven::take;
  SK_TRY_ASSIGN(const compile::Compiled with_unproven, runtime::plan_for(target, graph, session));
  compile::advise_unproven(rows, compiled, with_unproven);
  return {};
}

ir::Graph graph_of(const ir::Graph& whole, const Set& set) {
  std::vector<ir::OpId> all(set.nodes.size());
  std::iota(all.begin(), all.end(), 0);
  const passes::Partition part{.on_npu = true, .op_map = set.nodes};
  return std::move(passes::cut(whole, part, all)[0].graph);
}

void Choice::refuse(Refusal refusal) {
  if (refusal.reason.empty()) refusal.reason = "the NPU's driver does not take it";
  if (refusal.plain.empty()) refusal.plain = refusal.reason;
  const auto kept = kept_.find(refusal.node);
  refusals_.try_emplace(refusal.node, kept == kept_.end() ? std::move(refusal) : kept->second);
}

const Refusal* Choice::refusal(int node) const {
  const auto found = refusals_.find(node);
  return found == refusals_.end() ? nullptr : &found->second;
}

const Refusal* Choice::kept(int node) const {
  const auto found = kept_.find(node);
  return found == kept_.end() || !is_ours(node) ? nullptr : &found->second;
}

std::vector<int> Choice::ours() const {
  std::vector<int> out;
  for (const Node& node : nodes_)
    if (is_ours(node.index)) out.push_back(node.index);
  return out;
}

Result<void> Choice::ask(ir::Graph whole, Roles roles) {
  if (whole.ops.empty()) return {};
  roles_ = std::move(roles);
  for (size_t i = 0; i < whole.ops.size(); ++i) {
    macs_[whole.ops[i].source_index] += ir::op_macs(whole, static_cast<ir::OpId>(i));
    if (compile::keeps_state_or_branches(whole.ops[i])) quiet_.insert(whole.ops[i].source_index);
  }
  whole_ = whole;
  const runtime::SessionOptions session = session_options(options_);
  SK_TRY_ASSIGN(const compile::Compiled planned, runtime::plan_for(target_, whole, session));
  std::vector<compile::OpRow> rows = compile::rows(planned);
  SK_TRY(advise_unproven(rows, planned, target_, whole, session));
  for (const compile::OpRow& row : rows)
    if (!row.stands_on.empty()) unseen_.insert(planned.graph.op(row.op).source_index);
  add_only_sized();
  std::set<int> left = roles_.together;
  left.insert(roles_.shapes.begin(), roles_.shapes.end());
  for (Refusal& refusal : not_on_npu(planned, rows, left))
    if (!roles_.for_cpu.contains(refusal.node) && !only_sizes(refusal.node)) refuse(std::move(refusal));
  for (const Node& node : nodes_)
    if (!left.contains(node.index)) refuse(node.index, "nothing reads what it computes");
  return {};
}

// Adds operations whose outputs only shape computations read, and only for the shape: nothing computes their values.
void Choice::add_only_sized() {
  if (roles_.shapes.empty()) return;
  for (size_t i = nodes_.size(); i-- > 0;) {
    bool is_read = false, is_needed = false;
    for (const Node& reader : nodes_) {
      const auto reads = [&](int id) { return std::ranges::count(reader.inputs, id) != 0; };
      if (std::ranges::none_of(nodes_[i].outputs, reads)) continue;
      is_read = true;
      is_needed |= !only_sizes(reader.index);
    }
    if (is_read && !is_needed) roles_.shapes.insert(nodes_[i].index);
  }
}

// The size of a tensor that the host reshapes at run time is not known in advance, so the NPU could not read it. Our
// CPU kernels run such an operation.
void Choice::keep_sizes() {
  std::set<int> read_by_npu;
  for (const Node& node : nodes_)
    if (is_ours(node.index) && !only_sizes(node.index)) read_by_npu.insert(node.inputs.begin(), node.inputs.end());
  for (const Node& node : nodes_) {
    const auto is_read = [&](int id) { return read_by_npu.contains(id); };
    if (is_ours(node.index) || !std::ranges::any_of(node.outputs, is_read)) continue;
    if (roles_.sized.erase(node.index) == 0) continue;  // once: a partition may have been dropped
    kept_.insert(refusals_.extract(node.index));
    roles_.for_cpu.insert(node.index);
  }
}

// The host computes the shapes that its own nodes read. Other shape computations go with the nodes that read them.
void Choice::refuse_shapes() {
  std::set<int> read_by_host;
  for (size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    const auto is_read = [&](int id) { return read_by_host.contains(id); };
    if (only_sizes(node.index) && std::ranges::any_of(node.outputs, is_read))
      refuse(node.index, "the host needs the shape it computes");
    if (!is_ours(node.index)) read_by_host.insert(node.inputs.begin(), node.inputs.end());
  }
}

// Operations in `together` share values in memory, which the host does not know of: all are ours, or none.
void Choice::refuse_together() {
  const auto refused = std::ranges::find_if(roles_.together, [&](int node) { return !is_ours(node); });
  if (refused == roles_.together.end()) return;
  for (const int node : roles_.together)
    refuse(node, fmt::format("it shares memory with op {}, which stays with the host", *refused));
}

Result<void> Choice::divide(const Ways& host) {
  for (int round = 0; round < kMaxRounds; ++round) {
    keep_sizes();
    refuse_shapes();
    refuse_together();
    SK_TRY_ASSIGN(parts_, host.divide());
    bool all_stay = true;
    for (const Set& set : parts_) all_stay &= judge(set, host);
    all_stay &= limit();
    if (all_stay) return {};
  }
  parts_.clear();
  for (const Node& node : nodes_) refuse(node.index, "the partitions of the other operations keep changing");
  return {};
}

bool Choice::drop(const Set& set, const std::string& reason) {
  for (const int node : set.nodes) refuse(node, reason);
  return false;
}

// Compiles the set to see which operations the NPU runs. False: some operations were refused.
bool Choice::judge(const Set& set, const Ways& host) {
  if (fit_.contains(set)) return true;
  if (static_cast<int>(set.nodes.size()) < options_.min_nodes_per_partition)
    return drop(set, fmt::format("its partition has {} ops, fewer than min_nodes_per_partition={}", set.nodes.size(),
                                 options_.min_nodes_per_partition));
  // Costs cut a set once: on the smaller set that remains they would cut off more, again and again.
  const bool is_weighed = std::ranges::all_of(set.nodes, [&](int node) { return weighed_.contains(node); });
  auto refusals = host.propose(set, !is_weighed);
  if (!refusals.ok()) return drop(set, refusals.error().message);
  if (std::ranges::all_of(*refusals, &Refusal::by_cost)) weighed_.insert(set.nodes.begin(), set.nodes.end());
  const bool fits = refusals->empty();
  if (fits) fit_.insert(set);
  for (Refusal& refusal : *refusals) refuse(std::move(refusal));
  return fits;
}

uint64_t Choice::macs(const Set& set) const {
  uint64_t out = 0;
  for (const int node : set.nodes) {
    const auto found = macs_.find(node);
    if (found != macs_.end()) out += found->second;
  }
  return out;
}

// Keeps the parts with the most work. True: nothing was dropped.
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

// Counts claimed operations that are unproven, and reports whether they are verified on this device.
std::string Choice::print_unseen() const {
  const auto count = std::ranges::count_if(unseen_, [&](int node) { return is_ours(node); });
  if (count == 0 || parts_.empty()) return "";
  const bool is_verified = runtime::verifies(target_, options_.session);
  return fmt::format("; {} unproven, {}", count,
                     is_verified ? "verified on this device" : "never seen right on silicon (unproven=take)");
}

Told Choice::told(const std::function<std::string(int)>& name) const {
  Told out;
  const auto said = [&](const Refusal& one) { return compile::in_words(words_, one.reason); };
  std::string most_telling;  // a refusal that an option would lift, else one of an operation that the NPU could compute
  for (const Node& node : nodes_) {
    const Refusal* const why = refusal(node.index);
    if (const Refusal* const own = kept(node.index); own != nullptr)
      out.kept.push_back(fmt::format("{}: {}; Skillet's CPU kernels compute it", name(node.index), said(*own)));
    if (why == nullptr) continue;
    const std::string& line = out.refusals.emplace_back(
        fmt::format("{}: {}{}", name(node.index), said(*why), why->by_cost ? kTakenByAll : ""));
    const bool would_go = why->by_cost && !most_telling.ends_with(kTakenByAll);
    if (would_go || (most_telling.empty() && !quiet_.contains(node.index))) most_telling = line;
  }
  out.ops = nodes_.size();
  out.count = fmt::format("{} of {} ops claimed, {} partitions{}", nodes_.size() - out.refusals.size(), nodes_.size(),
                          parts_.size(), print_unseen());
  out.compared = runtime::text_of(compared_);
  if (!parts_.empty()) return out;
  // No warning for graphs that only set variables or call other graphs.
  if (!most_telling.empty()) out.such_as = "nothing is claimed, such as " + most_telling;
  out.advice = compile::quantization_advice(
      whole_, {target_.driver, target_.chip, options_.session.compile.per_channel}, words_, compile::Rest::in_the_host);
  return out;
}

Result<void> Choice::check_strict(const Told& told) const {
  constexpr size_t kShown = 8;
  if (!options_.strict) return {};
  std::vector<std::string> lines = told.refusals;
  lines.insert(lines.end(), told.kept.begin(), told.kept.end());
  if (lines.empty()) return {};
  const auto shown = std::span(lines).first(std::min(lines.size(), kShown));
  return error(ErrorCode::unsupported,
               "strict=1, but {} of {} ops would run on the CPU: {}{}",  // one line, because hosts print it
               lines.size(), nodes_.size(), fmt::join(shown, "; "), lines.size() > kShown ? "; and more" : "");
}

void log_told(const Told& told, std::span<const std::string> parts) {
  for (const auto* lines : {&told.refusals, &told.kept})
    for (const std::string& line : *lines) log::info("{}", line);
  for (const std::string& line : parts) log::info("partition of {}", line);
  if (!told.compared.empty()) log::info("{}", told.compared);
  if (!log::enabled(log::Level::warning)) return;
  const bool untold = !told.refusals.empty() && !log::enabled(log::Level::info);
  log::write(log::Level::info, told.count + (untold ? "; log=info shows why not the others" : ""));
  if (untold && !told.such_as.empty()) log::warning("{}", told.such_as);
  if (!told.advice.empty()) log::warning("{}", told.advice);
}

}  // namespace skillet::host
