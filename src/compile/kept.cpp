#include "compile/kept.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compile/report.h"
#include "graph/ir/macs.h"

namespace skillet::compile {
namespace {

// Accepted increase of the time: an operation runs in one place instead of in pieces on both.
constexpr double kKeptTime = 1.02;

std::optional<double> predicted_us(const Compiled& compiled) {
  const auto chosen = std::ranges::find_if(compiled.network, &NetworkTimes::is_chosen);
  return chosen == compiled.network.end() ? std::nullopt : std::optional(chosen->times.us());
}

}  // namespace

Kept in_vain(const Compiled& compiled, std::span<const npu::Support> support) {
  std::map<int32_t, std::pair<uint64_t, const npu::Support*>> most;
  std::set<int32_t> in_part;
  for (size_t op = 0; op < support.size(); ++op) {
    const int32_t source = compiled.graph.ops[op].source_index;
    const uint64_t macs = ir::op_macs(compiled.graph, static_cast<ir::OpId>(op));
    if (support[op].ok) in_part.insert(source);
    if (auto& known = most[source]; macs > known.first) known = {macs, &support[op]};
  }
  Kept out;
  for (const passes::Rewrite& one : compiled.rewrites) {
    if (!one.is_for_chip || !in_part.contains(one.source)) continue;
    const npu::Support* const heaviest = most[one.source].second;
    if (heaviest != nullptr && !heaviest->ok) out.emplace(one.source, *heaviest);
  }
  return out;
}

bool join_pieces(const ir::Graph& graph, std::vector<npu::Support>& support) {
  std::map<int32_t, npu::Support> moved;
  for (size_t op = 0; op < support.size(); ++op)
    if (support[op].remedy == npu::Remedy::take_all) moved.emplace(graph.ops[op].source_index, support[op]);
  moved.erase(-1);  // not in the file
  bool is_any = false;
  for (size_t op = 0; op < support.size(); ++op) {
    const auto one = moved.find(graph.ops[op].source_index);
    if (!support[op].ok || one == moved.end()) continue;
    support[op] = one->second;
    is_any = true;
  }
  return is_any;
}

bool is_slower(const Compiled& kept, const Compiled& before, double kept_excess_us, double before_excess_us) {
  const auto now = predicted_us(kept), then = predicted_us(before);
  return now && then && *now + kept_excess_us > (*then + before_excess_us) * kKeptTime;
}

double excess_us(const Compiled& compiled, const ir::Graph& model, const CpuSpeed& cpu) {
  const std::vector<double> counted = cpu_times_us(compiled, model, cpu);
  double out = 0;
  for (size_t op = 0; op < compiled.ops.size(); ++op) {
    if (!compiled.ops[op].on_npu) out += cpu.us(compiled.graph, static_cast<ir::OpId>(op)) - counted[op];
  }
  return out;
}

bool keep_more(const Compiled& compiled, Kept& kept) {
  std::set<int32_t> rewritten, on_npu;
  for (const passes::Rewrite& one : compiled.rewrites)
    if (one.is_for_chip) rewritten.insert(one.source);
  for (size_t op = 0; op < compiled.ops.size(); ++op)
    if (compiled.ops[op].on_npu) on_npu.insert(compiled.graph.ops[op].source_index);
  // Ops in pieces on both sides come last: as a whole on one side they may be slower, and the rest is kept already.
  for (const bool takes_pieces : {false, true}) {
    Kept more;
    bool is_more = false;
    for (size_t op = 0; op < compiled.ops.size(); ++op) {
      const OpPlace& place = compiled.ops[op];
      const int32_t source = compiled.graph.ops[op].source_index;
      const bool is_in_pieces = on_npu.contains(source);
      // The chip took one scale for all weights; it does not take those that the model has.
      const bool is_vain = rewritten.contains(source) && !is_in_pieces;
      if (place.on_npu || (is_in_pieces && !takes_pieces)) continue;
      if (place.remedy != npu::Remedy::take_all && !is_vain) continue;
      more.emplace(source, npu::Support::no(place.remedy, "{}", place.reason));
      is_more |= rewritten.contains(source) && !kept.contains(source);
    }
    if (!is_more) continue;
    kept.merge(more);
    return true;
  }
  return false;
}

std::vector<double> cpu_times_us(const Compiled& compiled, const ir::Graph& model, const CpuSpeed& cpu) {
  std::map<int32_t, double> as_in_model, as_made;
  const std::map<int32_t, int32_t> gone = absorbed_by(compiled.rewrites);
  for (size_t op = 0; op < model.ops.size(); ++op) {
    const int32_t source = model.ops[op].source_index;
    const auto now = gone.find(source);
    as_in_model[now == gone.end() ? source : now->second] += cpu.us(model, static_cast<ir::OpId>(op));
  }
  std::vector<double> out;
  for (size_t op = 0; op < compiled.graph.ops.size(); ++op) {
    out.push_back(cpu.us(compiled.graph, static_cast<ir::OpId>(op)));
    as_made[compiled.graph.ops[op].source_index] += out.back();
  }
  for (size_t op = 0; op < out.size(); ++op) {
    const int32_t source = compiled.graph.ops[op].source_index;
    if (as_in_model[source] < as_made[source]) out[op] *= as_in_model[source] / as_made[source];
  }
  return out;
}

}  // namespace skillet::compile
