#include "compile/bands.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/int_math.h"

namespace skillet::compile {
namespace {

// The predicted gain must exceed the error of predictions.
constexpr double kWorth = 0.9;  // of the time on one core
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

// All predictions are made here.
class Predictor {
 public:
  Predictor(const Target& target, const Options& options)
      : chip_(target.chip), costs_(*target.driver->costs(target.chip, options.measured)), options_(options.driver) {}

  double of_piece(const ir::Graph& graph) const {
    return costs_.submit_us + copy_in_us(costs_, graph) + copy_out_us(costs_, graph) + on_core(graph, 1);
  }

  double of_bands(const std::vector<passes::Band>& bands) const {
    std::vector<const ir::Graph*> graphs;
    std::vector<double> core_us;
    for (const passes::Band& band : bands) {
      graphs.push_back(&band.graph);
      core_us.push_back(on_core(band.graph, bands.size()));
    }
    return time_of_bands(costs_, graphs, core_us);
  }

  double device_us(const ir::Graph& graph) const { return of(graph, 1).device_us; }

 private:
  npu::Cost of(const ir::Graph& graph, size_t busy_cores) const {
    npu::Cost sum;
    for (const npu::Cost& one : costs_.of_ops(chip_, graph, options_, busy_cores)) sum += one;
    return sum;
  }
  double on_core(const ir::Graph& graph, size_t busy_cores) const { return of(graph, busy_cores).us(); }

  const npu::Chip& chip_;
  const npu::CostModel costs_;
  const npu::CompileOptions& options_;
};

// One way to divide a part: its first `length` row-wise ops are in bands.
struct Cut {
  size_t length = 0;
  double us = 0;
  double halo = 0;  // share of the work that is computed more than once
};

// The graph without constants' contents, which predictions do not read: cheap to copy (constants are borrowed).
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
      : graph_(graph), part_(part), target_(target), options_(options), predict_(target, options) {}

  BandPlan run() {
    ops_ = passes::row_wise_ops(part_.graph);
    std::vector<Cut> cuts = predicted_cuts();
    if (cuts.empty()) return {};
    if (options_.runs != Runs::longest) std::ranges::stable_sort(cuts, {}, [](const Cut& cut) { return cut.us; });
    whole_us_ = predict_.of_piece(part_.graph);
    if (options_.runs == Runs::that_pay && cuts[0].us > kWorth * whole_us_) {
      BandPlan plan;
      plan.note = fmt::format("in one piece; {} ops in {} bands of rows are {}", cuts[0].length, options_.cores,
                              print(cuts[0]));
      return plan;
    }
    for (const Cut& cut : cuts) {
      if (auto plan = divided(cut)) return std::move(*plan);
    }
    return {};
  }

 private:
  // Numbers of ops to try, most first: all ops, and each prefix that ends in a single tensor.
  std::vector<size_t> lengths() const {
    std::vector<size_t> readers_left(part_.graph.tensors.size());
    for (const ir::Op& op : part_.graph.ops) {
      for (const ir::TensorId id : op.inputs) readers_left[static_cast<size_t>(std::max(id, 0))] += id >= 0 ? 1 : 0;
    }
    std::vector<size_t> out;
    size_t open = 0;  // tensors of the run that later ops or outputs use
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
      Cut& cut = cuts.emplace_back(Cut{.length = length, .us = predict_.of_bands(bands)});
      double computed = 0;
      for (const passes::Band& band : bands) computed += predict_.device_us(band.graph);
      cut.halo = computed / std::max(predict_.device_us(parts[0].graph), 1e-9) - 1;
      if (parts.size() == 1) continue;
      cut.us += predict_.of_piece(parts[1].graph);
    }
    return cuts;
  }

  // Prints no times: those of programs come from the timing model.
  std::string print(const Cut& cut) const {
    return fmt::format("predicted to take {:.0f} % of the time in one piece", 100 * cut.us / whole_us_);
  }

  // None: the driver does not take an op with the rows of a band.
  std::optional<BandPlan> divided(const Cut& cut) const {
    BandPlan plan{.parts = passes::cut(graph_, part_, std::span(ops_).first(cut.length)), .bands = {}, .note = {}};
    plan.bands = passes::split_bands(plan.parts[0].graph, options_.cores);
    const auto is_taken = [&](const npu::Support& support) {
      return support.ok && (!support.rests_on_assumptions() || options_.driver.takes_unproven());
    };
    for (const passes::Band& band : plan.bands) {
      if (!std::ranges::all_of(passes::supports(band.graph, target_), is_taken)) return std::nullopt;
    }
    plan.note = fmt::format("in {} bands of rows, with {:.0f} % more work; {}{}", plan.bands.size(), cut.halo * 100,
                            plan.parts.size() > 1 ? "with the following part " : "", print(cut));
    return plan;
  }

  const ir::Graph& graph_;
  const passes::Partition& part_;
  const Target& target_;
  const Options& options_;
  const Predictor predict_;
  std::vector<ir::OpId> ops_;  // row-wise ones of the part
  double whole_us_ = 0;        // on one core
};

}  // namespace

double time_of_bands(const npu::CostModel& costs, std::span<const ir::Graph* const> bands,
                     std::span<const double> core_us) {
  double us = 0;
  std::vector<double> ready;
  for (size_t i = 0; i < bands.size(); ++i) {
    us += copy_in_us(costs, *bands[i]) + costs.submit_us;
    ready.push_back(us + core_us[i]);
  }
  for (size_t i = 0; i < bands.size(); ++i) us = std::max(us, ready[i]) + copy_out_us(costs, *bands[i]);
  return us;
}

BandPlan plan_bands(const ir::Graph& graph, const passes::Partition& part, const Target& target,
                    const Options& options) {
  return Planner(graph, part, target, options).run();
}

}  // namespace skillet::compile
