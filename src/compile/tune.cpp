#include "compile/tune.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace skillet::compile {
namespace {

// Possible cost of a task beyond the model: fits of end-to-end times leave 0 to 18 us for each.
constexpr double kTaskMarginUs = 5;

double score(const OperationCost& cost) { return cost.wall_us() + kTaskMarginUs * static_cast<double>(cost.tasks); }

double score(const std::vector<OperationCost>& costs) {
  double sum = 0;
  for (const OperationCost& cost : costs) sum += score(cost);
  return sum;
}

// The possible values of one choice, by op.
struct Question {
  std::string name;
  std::vector<std::vector<int32_t>> values;

  size_t rounds() const {
    size_t most = 0;
    for (const auto& one : values) most = std::max(most, one.size());
    return most;
  }
};

std::vector<Question> questions_of(const std::vector<npu::Choice>& choices, size_t ops) {
  std::vector<Question> out;
  for (const npu::Choice& one : choices) {
    auto at = std::ranges::find(out, one.name, &Question::name);
    if (at == out.end()) at = out.insert(out.end(), {one.name, std::vector<std::vector<int32_t>>(ops)});
    at->values.at(static_cast<size_t>(one.op)).push_back(one.value);
  }
  return out;
}

class Search {
 public:
  Search(const npu::Driver& driver, const npu::Chip& chip, const ir::Graph& graph, const npu::CompileOptions& options,
         const ProgramCosts& program_costs)
      : driver_(driver), chip_(chip), graph_(graph), options_(options), program_costs_(program_costs) {
    options_.choices.clear();
  }

  Result<Tuned> run() {
    SK_TRY_ASSIGN(out_.before, try_with({}));
    SK_TRY_ASSIGN(const std::vector<npu::Choice> open, driver_.choices(chip_, graph_, options_));
    out_.after = out_.before;
    for (const Question& question : questions_of(open, graph_.ops.size())) SK_TRY(ask(question));
    std::ranges::stable_sort(out_.choices, {}, &npu::Choice::op);
    return std::move(out_);
  }

 private:
  // All ops take their next value in the same program: the cost of an op does not depend on the others' values.
  Result<void> ask(const Question& question) {
    const std::vector<npu::Choice> before = out_.choices;
    std::vector<OperationCost> best = out_.after;
    std::vector<int32_t> chosen(graph_.ops.size());
    for (size_t round = 0; round < question.rounds(); ++round) {
      std::vector<int32_t> values(graph_.ops.size());
      for (size_t op = 0; op < values.size(); ++op)
        values[op] = round < question.values[op].size() ? question.values[op][round] : 0;
      SK_TRY_ASSIGN(const std::vector<OperationCost> costs, try_with(joined(before, question.name, values)));
      for (size_t op = 0; op < values.size(); ++op) {
        if (values[op] == 0 || score(costs[op]) >= score(best[op])) continue;
        best[op] = costs[op];
        chosen[op] = values[op];
      }
    }
    return keep(joined(before, question.name, chosen));
  }

  // Values that are better alone may be worse together: a shared cost was counted for one of the ops.
  Result<void> keep(std::vector<npu::Choice> choices) {
    if (choices == out_.choices) return {};
    SK_TRY_ASSIGN(std::vector<OperationCost> costs, try_with(choices));
    if (score(costs) >= score(out_.after)) return {};
    out_.choices = std::move(choices);
    out_.after = std::move(costs);
    return {};
  }

  static std::vector<npu::Choice> joined(std::vector<npu::Choice> choices, const std::string& name,
                                         const std::vector<int32_t>& values) {
    for (size_t op = 0; op < values.size(); ++op) {
      if (values[op] != 0) choices.push_back({static_cast<ir::OpId>(op), name, values[op]});
    }
    return choices;
  }

  Result<std::vector<OperationCost>> try_with(std::vector<npu::Choice> choices) {
    npu::CompileOptions options = options_;
    options.choices = std::move(choices);
    ++out_.tried;
    SK_TRY_ASSIGN(const npu::Program program, driver_.compile(chip_, graph_, options));
    return operation_costs(program, graph_, program_costs_);
  }

  const npu::Driver& driver_;
  const npu::Chip& chip_;
  const ir::Graph& graph_;
  npu::CompileOptions options_;
  const ProgramCosts& program_costs_;
  Tuned out_;
};

}  // namespace

OperationCost& OperationCost::operator+=(const OperationCost& other) {
  device_us += other.device_us;
  start_us += other.start_us;
  dram_bytes += other.dram_bytes;
  tasks += other.tasks;
  return *this;
}

OperationCost sum_of(const std::vector<OperationCost>& costs) {
  OperationCost sum;
  for (const OperationCost& cost : costs) sum += cost;
  return sum;
}

Result<std::vector<OperationCost>> operation_costs(const npu::Program& program, const ir::Graph& graph,
                                                   const ProgramCosts& program_costs) {
  SK_TRY_ASSIGN(const std::vector<OperationCost> costs, program_costs(program));
  std::vector<OperationCost> by_op(graph.ops.size());
  ir::OpId op = static_cast<ir::OpId>(graph.ops.size()) - 1;  // of what stands behind all
  for (size_t i = program.operations.size(); i-- > 0;) {
    if (program.operations[i].op >= 0) op = program.operations[i].op;
    if (op >= 0) by_op.at(static_cast<size_t>(op)) += costs.at(i);
  }
  return by_op;
}

Result<Tuned> tune(const npu::Driver& driver, const npu::Chip& chip, const ir::Graph& graph,
                   const npu::CompileOptions& options, const ProgramCosts& program_costs) {
  return Search(driver, chip, graph, options, program_costs).run();
}

}  // namespace skillet::compile
