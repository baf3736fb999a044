#include "compile/offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/is_any_of.h"
#include "graph/ir/macs.h"

namespace skillet::compile {
namespace {

// Larger parts are only compared as a whole: the number of runs grows with the square of the ops.
constexpr size_t kOpsMax = 2048;

int64_t in_ns(double us) { return std::llround(us * 1000); }

// Prefix sums of the times of ops, so that the time of a run is a difference.
std::vector<int64_t> sums_of(const std::vector<int64_t>& values) {
  std::vector<int64_t> out = {0};
  for (const int64_t value : values) out.push_back(out.back() + value);
  return out;
}

// Bytes that enter and leave a run of ops; the run grows at its end.
class Run {
 public:
  Run(const ir::Graph& graph, const std::vector<int>& uses) : graph_(graph), left_(uses), is_in_(uses.size(), false) {}

  void add(const ir::Op& op) {
    for (const ir::TensorId id : op.inputs) {
      if (id != ir::kNoTensor && !graph_.tensor(id).is_constant()) read(static_cast<size_t>(id));
    }
    for (const ir::TensorId id : op.outputs) {
      const auto at = static_cast<size_t>(id);
      is_in_[at] = is_made_here_[at] = true;
      if (left_[at] > 0) leaves_ += graph_.tensors[at].bytes();
    }
  }
  int64_t enters() const { return enters_; }
  int64_t leaves() const { return leaves_; }

 private:
  void read(size_t at) {
    if (!is_in_[at]) enters_ += graph_.tensors[at].bytes();
    is_in_[at] = true;
    if (is_made_here_[at] && --left_[at] == 0) leaves_ -= graph_.tensors[at].bytes();
  }

  const ir::Graph& graph_;
  std::vector<int> left_;  // by tensor: uses by ops outside the run, and as outputs
  std::vector<bool> is_in_, is_made_here_ = std::vector<bool>(is_in_.size(), false);
  int64_t enters_ = 0, leaves_ = 0;
};

std::vector<int> uses_of(const ir::Graph& graph) {
  std::vector<int> out(graph.tensors.size(), 0);
  for (const ir::Op& op : graph.ops) {
    for (const ir::TensorId id : op.inputs)
      if (id != ir::kNoTensor) ++out[static_cast<size_t>(id)];
  }
  for (const ir::TensorId id : graph.outputs) ++out[static_cast<size_t>(id)];
  return out;
}

// The fastest way to run the ops so far; its last run starts at `first`.
struct Step {
  int64_t ns = 0;
  size_t first = 0;
  bool on_npu = false;
};

bool only_moves_data(ir::OpKind kind) {
  return is_any_of(kind, {ir::OpKind::concatenation, ir::OpKind::split, ir::OpKind::split_v, ir::OpKind::pad,
                          ir::OpKind::pad_v2, ir::OpKind::mirror_pad, ir::OpKind::reshape, ir::OpKind::squeeze,
                          ir::OpKind::expand_dims, ir::OpKind::transpose, ir::OpKind::strided_slice, ir::OpKind::slice,
                          ir::OpKind::gather, ir::OpKind::pack, ir::OpKind::unpack, ir::OpKind::space_to_depth,
                          ir::OpKind::depth_to_space, ir::OpKind::batch_to_space_nd, ir::OpKind::space_to_batch_nd});
}

class Scale {
 public:
  Scale(const ir::Graph& graph, const CostModel& cost_model, const std::vector<OperationCost>& npu,
        std::span<const double> cpu_us = {})
      : graph_(graph), model_(cost_model), uses_(uses_of(graph)) {
    std::vector<int64_t> npu_ns, start_ns, cpu_ns;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      npu_ns.push_back(in_ns(npu[i].device_us));
      start_ns.push_back(in_ns(npu[i].start_us));
      cpu_ns.push_back(in_ns(cpu_us.empty() ? cost_model.cpu.us(graph, static_cast<ir::OpId>(i)) : cpu_us[i]));
    }
    npu_ = sums_of(npu_ns);
    start_ = sums_of(start_ns);
    cpu_ = sums_of(cpu_ns);
  }

  OffloadChoice choose_offload() const {
    const size_t count = graph_.ops.size();
    OffloadChoice out{.ops = {}, .alternatives = {alternative({{0, count}}), alternative({})}};
    const double whole_us = out.alternatives[0].times.us(), cpu_us = out.alternatives[1].times.us();
    out.chosen = is_cpu_faster(cpu_us, whole_us, model_) ? 1 : 0;
    if (count > kOpsMax) return out;
    Alternative best = alternative(best_runs());
    const double best_us = best.times.us();
    if (best_us >= out.alternatives[out.chosen].times.us() * (1 - model_.margin)) return out;
    out.chosen = 2;
    out.alternatives.push_back(std::move(best));
    return out;
  }
  Times all_on_npu() const { return alternative({{0, graph_.ops.size()}}).times; }

 private:
  // For each number of ops from the start, finds the fastest way to run them from those for fewer ops: the cost of a
  // run depends only on its own ends.
  std::vector<Span> best_runs() const {
    const size_t count = graph_.ops.size();
    std::vector<Step> best(count + 1);
    for (size_t end = 1; end <= count; ++end) best[end].ns = std::numeric_limits<int64_t>::max();
    for (size_t first = 0; first < count; ++first) {
      const auto consider = [&](size_t end, int64_t ns, bool on_npu) {
        if (best[first].ns + ns < best[end].ns) best[end] = {best[first].ns + ns, first, on_npu};
      };
      Run run(graph_, uses_);
      for (size_t end = first + 1; end <= count; ++end) {
        run.add(graph_.ops[end - 1]);
        consider(end, on_npu(first, end) + way(run), true);
      }
      consider(first + 1, cpu_[first + 1] - cpu_[first], false);
    }
    std::vector<Span> out;
    for (size_t end = count; end > 0; end = best[end].first)
      if (best[end].on_npu) out.push_back({best[end].first, end});
    std::ranges::reverse(out);
    return out;
  }

  int64_t way(const Run& run) const {
    return in_ns(static_cast<double>(run.enters()) / model_.in_bytes_per_us +
                 static_cast<double>(run.leaves()) / model_.out_bytes_per_us);
  }
  int64_t start(size_t first, size_t last) const { return start_[last] - start_[first] + in_ns(model_.submit_us); }
  int64_t on_npu(size_t first, size_t last) const { return npu_[last] - npu_[first] + start(first, last); }

  Alternative alternative(std::vector<Span> spans) const {
    int64_t npu = 0, starts = 0, ways = 0, cpu = cpu_.back();
    Alternative out{.on_npu = std::move(spans), .times = {}};
    for (const Span& span : out.on_npu) {
      Run run(graph_, uses_);
      for (size_t i = span.first; i < span.last; ++i) run.add(graph_.ops[i]);
      npu += npu_[span.last] - npu_[span.first];
      starts += start(span.first, span.last);
      ways += way(run);
      cpu -= cpu_[span.last] - cpu_[span.first];
      out.times.crossing_bytes += static_cast<uint64_t>(run.enters() + run.leaves());
    }
    const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1000; };
    out.times.npu_us = us(npu), out.times.start_us = us(starts), out.times.transfer_us = us(ways),
    out.times.cpu_us = us(cpu);
    out.times.parts = out.on_npu.size();
    return out;
  }

  const ir::Graph& graph_;
  const CostModel& model_;
  std::vector<int> uses_;
  std::vector<int64_t> npu_, start_, cpu_;  // ns, sums
};

std::string line(const Times& times, bool is_chosen, const std::string& what) {
  return fmt::format("  {} {:.3f} ms = NPU {:.3f} + starts {:.3f} + copies {:.3f} ({} B) + CPU {:.3f}: {}\n",
                     is_chosen ? "->" : "  ", times.us() / 1000, times.npu_us / 1000, times.start_us / 1000,
                     times.transfer_us / 1000, times.crossing_bytes, times.cpu_us / 1000, what);
}

std::string what_of(const ir::Graph& graph, const OffloadChoice& choice, const Alternative& one) {
  if (one.on_npu.empty()) return "all on the CPU";
  if (one.npu_ops() == choice.ops.size()) return "all on the NPU";
  std::string runs;
  for (const Span& span : one.on_npu) {
    const std::string first = ir::op_number(graph.op(choice.ops[span.first]));
    const std::string last = ir::op_number(graph.op(choice.ops[span.last - 1]));
    runs += fmt::format("{}{}", runs.empty() ? "" : ", ", first);
    if (last != first) runs += fmt::format(" to {}", last);
  }
  return fmt::format("ops {} on the NPU", runs);
}

// Number of the model's operations that `ops` were made from; an op that is not in the file counts by itself.
size_t model_ops(const ir::Graph& graph, std::span<const ir::OpId> ops) {
  std::set<int32_t> sources;
  size_t others = 0;
  for (const ir::OpId op : ops) {
    const int32_t source = graph.op(op).source_index;
    if (source < 0)
      ++others;
    else
      sources.insert(source);
  }
  return sources.size() + others;
}

std::string name_of(const ir::Graph& graph, ir::OpId op) {
  return fmt::format("op {} {}", ir::op_number(graph.op(op)), ir::op_name(graph.op(op)));
}

}  // namespace

std::optional<PartitionBy> partition_by_from_name(std::string_view name) {
  const auto at = std::ranges::find(kPartitionByNames, name);
  if (at == kPartitionByNames.end()) return std::nullopt;
  return static_cast<PartitionBy>(at - kPartitionByNames.begin());
}

bool is_cpu_faster(double cpu_us, double npu_us, const CostModel& cost_model) {
  return cpu_us < npu_us * (1 - cost_model.margin);
}

Times& Times::operator+=(const Times& other) {
  npu_us += other.npu_us, start_us += other.start_us, transfer_us += other.transfer_us, cpu_us += other.cpu_us;
  crossing_bytes += other.crossing_bytes, parts += other.parts;
  return *this;
}

size_t Alternative::npu_ops() const {
  size_t out = 0;
  for (const Span& span : on_npu) out += span.last - span.first;
  return out;
}

Result<OffloadChoice> choose_offload(const ir::Graph& part, const npu::Program& program, const CostModel& cost_model,
                                     std::span<const double> cpu_us) {
  SK_TRY_ASSIGN(const std::vector<OperationCost> npu, operation_costs(program, part, cost_model.program_costs));
  return Scale(part, cost_model, npu, cpu_us).choose_offload();
}

bool needs_npu(const ir::Graph& part) {
  return std::ranges::find(part.ops, ir::OpKind::opaque, &ir::Op::kind) != part.ops.end();
}

std::string why_not_worth(const ir::Graph& graph, uint64_t min_macs_per_byte) {
  if (min_macs_per_byte == 0 || needs_npu(graph)) return "";
  if (std::ranges::all_of(graph.ops, [](const ir::Op& op) { return only_moves_data(op.kind); }))
    return "its partition would only move data: the NPU would compute nothing";
  uint64_t macs = 0, bytes = 0;
  for (size_t op = 0; op < graph.ops.size(); ++op) macs += ir::op_macs(graph, static_cast<ir::OpId>(op));
  for (const auto* list : {&graph.inputs, &graph.outputs}) {
    for (const ir::TensorId id : *list) bytes += static_cast<uint64_t>(graph.tensor(id).bytes());
  }
  if (macs / std::max<uint64_t>(bytes, 1) >= min_macs_per_byte) return "";
  return fmt::format("its partition does {} multiply-accumulates and moves {} bytes, less than min_macs_per_byte={}",
                     macs, bytes, min_macs_per_byte);
}

Result<Times> times_on_npu(const ir::Graph& part, const npu::Program& program, const CostModel& cost_model) {
  SK_TRY_ASSIGN(const std::vector<OperationCost> npu, operation_costs(program, part, cost_model.program_costs));
  return Scale(part, cost_model, npu).all_on_npu();
}

std::string why_moved(const ir::Graph& graph, std::span<const ir::OpId> moved, const OffloadChoice& choice,
                      int cpu_cores) {
  const Times &whole = choice.alternatives[0].times, &chosen = choice.alternatives[choice.chosen].times;
  const size_t all = model_ops(graph, choice.ops), gone = model_ops(graph, moved);
  const std::string which =
      all == 1 ? "the only op of its partition is"
               : fmt::format("{} of the {} ops of its partition {}", gone, all, gone == 1 ? "is" : "are");
  return fmt::format("{} predicted to be faster on the CPU: {:.3f} ms on {} core{}, {:.3f} ms on the NPU with copies",
                     which, chosen.cpu_us / 1000, cpu_cores, cpu_cores == 1 ? "" : "s",
                     (whole.us() - (chosen.us() - chosen.cpu_us)) / 1000);
}

std::string print(const ir::Graph& graph, const std::vector<NetworkTimes>& network,
                  const std::vector<OffloadChoice>& choices) {
  std::string out;
  if (!network.empty()) out += "the network, predicted:\n";
  for (const NetworkTimes& one : network)
    out += line(one.times, one.is_chosen, fmt::format("{}, NPU parts {}", one.what, one.times.parts));
  for (const OffloadChoice& one : choices) {
    out += fmt::format("{} ops from {} to {}, predicted:\n", one.ops.size(), name_of(graph, one.ops.front()),
                       name_of(graph, one.ops.back()));
    for (size_t i = 0; i < one.alternatives.size(); ++i)
      out += line(one.alternatives[i].times, i == one.chosen, what_of(graph, one, one.alternatives[i]));
  }
  return out;
}

}  // namespace skillet::compile
