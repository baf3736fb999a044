#include "compile/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/macs.h"

namespace skillet::compile {
namespace {

// Of parts with more ops only the whole is weighed: runs of ops are as many as the square.
constexpr size_t kOpsMax = 2048;

int64_t in_ns(double us) { return std::llround(us * 1000); }

// Times of ops as sums from the first one on, so that a run of them is a difference.
std::vector<int64_t> sums_of(const std::vector<int64_t>& values) {
  std::vector<int64_t> out = {0};
  for (const int64_t value : values) out.push_back(out.back() + value);
  return out;
}

// Bytes that enter and leave a run of ops, which grows at its end.
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
  std::vector<int> left_;  // by tensor: operands of ops that are not in the run, and places among the outputs
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

class Scale {
 public:
  Scale(const ir::Graph& graph, const Prices& prices, const std::vector<OperationCost>& npu)
      : graph_(graph), prices_(prices), uses_(uses_of(graph)) {
    std::vector<int64_t> npu_ns, cpu_ns;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      npu_ns.push_back(in_ns(npu[i].wall_us()));
      cpu_ns.push_back(in_ns(prices.cpu.us(graph, static_cast<ir::OpId>(i))));
    }
    npu_ = sums_of(npu_ns);
    cpu_ = sums_of(cpu_ns);
    const Run run = run_of(0, graph.ops.size());
    whole_ = on_npu(0, graph.ops.size(), way(run));
  }

  Weighing weigh() const {
    const size_t count = graph_.ops.size();
    Weighing out{.ops = {}, .alternatives = {alternative(0, count), alternative(0, 0)}};
    int64_t best = 0;
    size_t first = 0, last = count;
    consider(0, 0, 0, best, first, last);
    for (size_t i = 0; i < count && count <= kOpsMax; ++i) {
      Run run(graph_, uses_);
      for (size_t end = i + 1; end <= count; ++end) {
        run.add(graph_.ops[end - 1]);
        consider(i, end, way(run), best, first, last);
      }
    }
    if (last == 0) out.chosen = 1;
    if (last != 0 && last - first != count) {
      out.chosen = 2;
      out.alternatives.push_back(alternative(first, last));
    }
    return out;
  }

 private:
  Run run_of(size_t first, size_t last) const {
    Run run(graph_, uses_);
    for (size_t i = first; i < last; ++i) run.add(graph_.ops[i]);
    return run;
  }
  int64_t way(const Run& run) const {
    return in_ns(static_cast<double>(run.enters()) / prices_.in_bytes_per_us +
                 static_cast<double>(run.leaves()) / prices_.out_bytes_per_us);
  }
  int64_t on_npu(size_t first, size_t last, int64_t way_ns) const {
    return first == last ? 0 : npu_[last] - npu_[first] + in_ns(prices_.submit_us) + way_ns;
  }
  int64_t on_cpu(size_t first, size_t last) const { return cpu_.back() - (cpu_[last] - cpu_[first]); }

  // What others than these ops take on the NPU, less what is in doubt, against what they take on the CPU.
  void consider(size_t i, size_t end, int64_t way_ns, int64_t& best, size_t& first, size_t& last) const {
    const int64_t saved = whole_ - on_npu(i, end, way_ns);
    const int64_t gain = saved - in_ns(static_cast<double>(saved) / 1000 * prices_.doubt) - on_cpu(i, end);
    if (gain <= best) return;
    best = gain, first = i, last = end;
  }
  Alternative alternative(size_t first, size_t last) const {
    const int64_t way_ns = first == last ? 0 : way(run_of(first, last));
    const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1000; };
    return {first, last, us(on_npu(first, last, 0)), us(way_ns), us(on_cpu(first, last))};
  }

  const ir::Graph& graph_;
  const Prices& prices_;
  std::vector<int> uses_;
  std::vector<int64_t> npu_, cpu_;  // ns, sums
  int64_t whole_ = 0;
};

}  // namespace

std::optional<PartitionBy> partition_by_from_name(std::string_view name) {
  const auto at = std::ranges::find(kPartitionByNames, name);
  if (at == kPartitionByNames.end()) return std::nullopt;
  return static_cast<PartitionBy>(at - kPartitionByNames.begin());
}

double CpuSpeed::us(const ir::Graph& graph, ir::OpId id) const {
  double bytes = 0;
  for (const auto* list : {&graph.op(id).inputs, &graph.op(id).outputs}) {
    for (const ir::TensorId tensor : *list)
      if (tensor != ir::kNoTensor) bytes += static_cast<double>(graph.tensor(tensor).bytes());
  }
  return static_cast<double>(ir::op_macs(graph, id)) / macs_per_us + bytes / bytes_per_us;
}

Result<Weighing> weigh(const ir::Graph& part, const driver::Program& program, const Prices& prices) {
  SK_TRY_ASSIGN(const std::vector<OperationCost> npu, price_ops(program, part, prices.judge));
  return Scale(part, prices, npu).weigh();
}

std::string why_moved(const Weighing& weighing) {
  const Alternative &whole = weighing.alternatives[0], &chosen = weighing.alternatives[weighing.chosen];
  const size_t moved = weighing.ops.size() - (chosen.last - chosen.first);
  return fmt::format(
      "{} of the {} ops of its partition are predicted to be faster on the CPU: {:.3f} ms there, {:.3f} ms "
      "on the NPU and on the way",
      moved, weighing.ops.size(), chosen.cpu_us / 1000,
      (whole.npu_us + whole.way_us - chosen.npu_us - chosen.way_us) / 1000);
}

std::string print(const ir::Graph& graph, const std::vector<Weighing>& weighings) {
  std::string out;
  for (const Weighing& one : weighings) {
    out += fmt::format("{} ops from {} to {}, predicted:\n", one.ops.size(), ir::describe_op(graph, one.ops.front()),
                       ir::describe_op(graph, one.ops.back()));
    for (size_t i = 0; i < one.alternatives.size(); ++i) {
      const Alternative& way = one.alternatives[i];
      std::string what = "all on the CPU";
      if (way.last != way.first)
        what = way.last - way.first == one.ops.size()
                   ? "all on the NPU"
                   : fmt::format("ops {} to {} on the NPU", one.ops[way.first], one.ops[way.last - 1]);
      out += fmt::format("  {} {:.3f} ms = NPU {:.3f} + way {:.3f} + CPU {:.3f}: {}\n", i == one.chosen ? "->" : "  ",
                         way.us() / 1000, way.npu_us / 1000, way.way_us / 1000, way.cpu_us / 1000, what);
    }
  }
  return out;
}

}  // namespace skillet::compile
