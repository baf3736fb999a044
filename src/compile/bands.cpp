#include "compile/bands.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/int_math.h"

namespace skillet::compile {
namespace {

// A prediction is no measurement: what it promises must be more than its error.
constexpr double kWorth = 0.9;  // of the time in one piece
constexpr size_t kMaxCuts = 16;

double bytes_of(const ir::Graph& graph, const std::vector<ir::TensorId>& ids) {
  double sum = 0;
  for (const ir::TensorId id : ids) sum += static_cast<double>(graph.tensor(id).bytes());
  return sum;
}

double copy_in_us(const npu::CostModel& costs, const ir::Graph& graph) {
  return bytes_of(graph, graph.inputs) / costs.host_in_bytes_per_us;
}
double copy_out_us(const npu::CostModel& costs, const ir::Graph& graph) {
  return bytes_of(graph, graph.outputs) / costs.host_out_bytes_per_us;
}

// The one place that predicts; a better model replaces of_piece() and of_bands().
class Predictor {
 public:
  explicit Predictor(const Target& target) : chip_(target.chip), costs_(*target.driver->costs(target.chip)) {}

  Prediction of_piece(const ir::Graph& graph) const {
    const double copies = copy_in_us(costs_, graph) + copy_out_us(costs_, graph);
    return {costs_.submit_us + copies + on_core(graph, 1), copies};
  }

  Prediction of_bands(const std::vector<passes::Band>& bands) const {
    std::vector<const ir::Graph*> graphs;
    std::vector<double> core_us;
    for (const passes::Band& band : bands) {
      graphs.push_back(&band.graph);
      core_us.push_back(on_core(band.graph, bands.size()));
    }
    return time_of_bands(costs_, graphs, core_us);
  }

  double compute_us(const ir::Graph& graph) const { return of(graph).compute_us; }

 private:
  npu::Cost of(const ir::Graph& graph) const {
    npu::Cost sum;
    for (size_t op = 0; op < graph.ops.size(); ++op) sum += costs_.of_op(chip_, graph, static_cast<ir::OpId>(op));
    return sum;
  }
  double on_core(const ir::Graph& graph, size_t busy_cores) const {
    const npu::Cost cost = of(graph);
    const double share =
        std::min(costs_.core_bytes_per_us, costs_.memory_bytes_per_us / static_cast<double>(busy_cores));
    return cost.start_us + cost.compute_us + cost.memory_bytes / share;
  }

  const npu::Chip& chip_;
  const npu::CostModel& costs_;
};

// One way to divide a part: so many of its row-wise ops in bands.
struct Cut {
  size_t length = 0;
  Prediction time;
  double halo = 0;  // what is computed more than once, as a share of all
};

// What predictions look at, cheap to copy: constants are borrowed.
ir::Graph skeleton_of(const ir::Graph& graph) {
  ir::Graph out;
  out.ops = graph.ops;
  out.inputs = graph.inputs;
  out.outputs = graph.outputs;
  out.tensors.reserve(graph.tensors.size());
  for (const ir::Tensor& tensor : graph.tensors)
    out.tensors.push_back({.name = {}, .dtype = tensor.dtype, .shape = tensor.shape, .quant = {}, .data = tensor.data});
  return out;
}

class Planner {
 public:
  Planner(const ir::Graph& graph, const passes::Partition& part, const Target& target, const Options& options)
      : graph_(graph), part_(part), target_(target), options_(options), predict_(target) {}

  BandPlan run() {
    ops_ = passes::row_wise_ops(part_.graph);
    std::vector<Cut> cuts = predicted_cuts();
    if (cuts.empty()) return {};
    if (options_.runs != Runs::longest)
      std::ranges::stable_sort(cuts, {}, [](const Cut& cut) { return cut.time.total; });
    whole_ = predict_.of_piece(part_.graph);
    if (options_.runs == Runs::that_pay && cuts[0].time.total > kWorth * whole_.total) {
      BandPlan plan;
      plan.note = fmt::format("in one piece; {} ops in {} bands of rows: {}", cuts[0].length, options_.cores,
                              print(cuts[0].time));
      return plan;
    }
    for (const Cut& cut : cuts) {
      if (auto plan = divided(cut)) return std::move(*plan);
    }
    return {};
  }

 private:
  // How many of the ops to take, longest first: all, and up to where one tensor leads on.
  std::vector<size_t> lengths() const {
    std::vector<size_t> readers_left(part_.graph.tensors.size());
    for (const ir::Op& op : part_.graph.ops) {
      for (const ir::TensorId id : op.inputs) readers_left[static_cast<size_t>(std::max(id, 0))] += id >= 0 ? 1 : 0;
    }
    std::vector<size_t> out;
    size_t open = 0;  // tensors of the run that others want
    for (size_t i = 0; i < ops_.size(); ++i) {
      const ir::Op& op = part_.graph.op(ops_[i]);
      for (const ir::TensorId id : op.inputs) {
        if (id < 0 || part_.graph.tensor(id).is_constant() || is_input(id)) continue;
        open -= --readers_left[static_cast<size_t>(id)] == 0 && !is_output(id) ? 1 : 0;
      }
      open += op.outputs.size();
      if (open == 1 || i + 1 == ops_.size()) out.push_back(i + 1);
    }
    std::ranges::reverse(out);
    const size_t step = ceil_div(out.size(), kMaxCuts);
    std::vector<size_t> some;
    for (size_t i = 0; i < out.size(); i += step) some.push_back(out[i]);
    return some;
  }
  bool is_input(ir::TensorId id) const { return std::ranges::count(part_.graph.inputs, id) != 0; }
  bool is_output(ir::TensorId id) const { return std::ranges::count(part_.graph.outputs, id) != 0; }

  std::vector<Cut> predicted_cuts() const {
    const ir::Graph skeleton = skeleton_of(part_.graph);
    passes::Partition all{.on_npu = true, .op_map = std::vector<ir::OpId>(skeleton.ops.size())};
    std::iota(all.op_map.begin(), all.op_map.end(), 0);
    std::vector<Cut> cuts;
    for (const size_t length : lengths()) {
      const auto parts = passes::cut(skeleton, all, std::span(ops_).first(length));
      const auto bands = passes::split_bands(parts[0].graph, options_.cores);
      if (bands.empty()) continue;
      Cut& cut = cuts.emplace_back(Cut{.length = length, .time = predict_.of_bands(bands)});
      double computed = 0;
      for (const passes::Band& band : bands) computed += predict_.compute_us(band.graph);
      cut.halo = computed / std::max(predict_.compute_us(parts[0].graph), 1e-9) - 1;
      if (parts.size() == 1) continue;
      const Prediction rest = predict_.of_piece(parts[1].graph);
      cut.time.total += rest.total;
      cut.time.copies += rest.copies;
    }
    return cuts;
  }

  std::string print(const Prediction& time) const {
    return fmt::format("predicted {:.2f} ms instead of {:.2f} in one piece, the host's copies {:.2f} instead of {:.2f}",
                       time.total / 1000, whole_.total / 1000, time.copies / 1000, whole_.copies / 1000);
  }

  // Nothing where the driver does not take an op with the rows of a band.
  std::optional<BandPlan> divided(const Cut& cut) const {
    BandPlan plan{.parts = passes::cut(graph_, part_, std::span(ops_).first(cut.length)), .bands = {}, .note = {}};
    plan.bands = passes::split_bands(plan.parts[0].graph, options_.cores);
    const auto is_taken = [&](const npu::Support& support) {
      return support.ok && (!support.rests_on_assumptions() || options_.driver.takes_unproven());
    };
    for (const passes::Band& band : plan.bands) {
      if (!std::ranges::all_of(passes::supports(band.graph, target_), is_taken)) return std::nullopt;
    }
    plan.note = fmt::format("in {} bands of rows, {:.0f} % more to compute; {}{}", plan.bands.size(), cut.halo * 100,
                            plan.parts.size() > 1 ? "with the part that follows " : "", print(cut.time));
    return plan;
  }

  const ir::Graph& graph_;
  const passes::Partition& part_;
  const Target& target_;
  const Options& options_;
  const Predictor predict_;
  std::vector<ir::OpId> ops_;  // row-wise ones of the part
  Prediction whole_;           // in one piece
};

}  // namespace

Prediction time_of_bands(const npu::CostModel& costs, std::span<const ir::Graph* const> bands,
                         std::span<const double> core_us) {
  Prediction out;
  std::vector<double> ready;
  for (size_t i = 0; i < bands.size(); ++i) {
    const double in = copy_in_us(costs, *bands[i]);
    out.total += in + costs.submit_us;
    out.copies += in + copy_out_us(costs, *bands[i]);
    ready.push_back(out.total + core_us[i]);
  }
  for (size_t i = 0; i < bands.size(); ++i) out.total = std::max(out.total, ready[i]) + copy_out_us(costs, *bands[i]);
  return out;
}

BandPlan plan_bands(const ir::Graph& graph, const passes::Partition& part, const Target& target,
                    const Options& options) {
  return Planner(graph, part, target, options).run();
}

}  // namespace skillet::compile
