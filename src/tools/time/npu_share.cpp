#include "tools/time/npu_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "compile/report.h"
#include "graph/ir/macs.h"
#include "runtime/cost_model.h"
#include "sim/timing.h"

namespace skillet::tools {
namespace {

std::vector<uint64_t> cpu_ps_of(const ir::Graph& graph, std::string_view chip) {
  constexpr double kPsPerUs = 1e6;
  const auto timer = sim::create_timer(chip, sim::Jobs::open);
  std::vector<uint64_t> out;
  for (size_t i = 0; timer.ok() && i < graph.ops.size(); ++i)
    out.push_back(static_cast<uint64_t>(kPsPerUs * runtime::cpu_speed(**timer).us(graph, static_cast<ir::OpId>(i))));
  return out;
}

uint64_t sum(const std::vector<uint64_t>& values) { return std::accumulate(values.begin(), values.end(), uint64_t{0}); }

// Percent of `all`; below 0 if `all` is 0.
template <typename OnNpu>
double share(const std::vector<uint64_t>& work, uint64_t all, const OnNpu& on_npu) {
  uint64_t there = 0;
  for (size_t i = 0; i < work.size(); ++i) there += on_npu(i) ? work[i] : 0;
  return all == 0 ? -1 : 100.0 * static_cast<double>(there) / static_cast<double>(all);
}

// Rounds down: 99.96 must not look like 100.
double downwards(double percent) { return std::floor(percent * 10) / 10; }
double to_a_tenth(double percent) { return std::round(percent * 10) / 10; }

}  // namespace

uint64_t ModelWork::all_macs() const { return sum(macs); }

ModelWork work_of(const ir::Graph& model, std::string_view chip) {
  ModelWork out{.macs = {}, .cpu_ps = cpu_ps_of(model, chip)};
  for (size_t i = 0; i < model.ops.size(); ++i) out.macs.push_back(ir::op_macs(model, static_cast<ir::OpId>(i)));
  return out;
}

double NpuShare::percent() const {
  if (macs < 0 && cpu_time < 0) return ops;
  if (macs < 0 || cpu_time < 0) return std::max(macs, cpu_time);
  return std::min(macs, cpu_time);
}

// Compares the time rounded to a tenth: the cost of moving a few bytes is below the prediction's error.
bool NpuShare::reaches(double percent) const {
  if (macs < 0 && cpu_time < 0) return ops >= percent;
  return (macs < 0 || macs >= percent) && (cpu_time < 0 || to_a_tenth(cpu_time) >= percent);
}

std::string NpuShare::print_macs() const { return macs < 0 ? "-" : fmt::format("{:.1f} %", downwards(macs)); }
std::string NpuShare::print_cpu_time() const {
  return cpu_time < 0 ? "-" : fmt::format("{:.1f} %", to_a_tenth(cpu_time));
}

std::string NpuShare::print() const {
  if (macs < 0 && cpu_time < 0) return fmt::format("{:.1f} % of the operations", downwards(ops));
  std::string out = macs < 0 ? "" : print_macs() + " of the MACs";
  if (cpu_time >= 0) out += fmt::format("{}{} of the CPU's time", out.empty() ? "" : ", ", print_cpu_time());
  return out;
}

nlohmann::json percent_or_null(double percent) { return percent < 0 ? nlohmann::json() : nlohmann::json(percent); }

NpuShare npu_share(const ModelWork& work, const compile::Compiled& compiled, std::string_view chip) {
  const std::vector<bool> works = compile::works_on_npu(compiled);
  const auto on_npu = [&](size_t i) { return works[i]; };
  const compile::ModelUse use = compile::model_use(compiled);
  NpuShare out{.macs = share(compile::model_macs(compiled, work.macs), work.all_macs(), on_npu)};
  if (!work.cpu_ps.empty()) {
    const std::vector<uint64_t> cpu_ps = compile::share_work(compiled, work.cpu_ps, cpu_ps_of(compiled.graph, chip));
    out.cpu_time = share(cpu_ps, sum(cpu_ps), on_npu);
  }
  if (use.ops != 0) out.ops = 100.0 * static_cast<double>(use.npu_ops) / static_cast<double>(use.ops);
  return out;
}

NpuShare npu_share(const ModelWork& work, const std::vector<bool>& on_npu) {
  const auto is_there = [&](size_t i) { return on_npu[i]; };
  NpuShare out{.macs = share(work.macs, work.all_macs(), is_there)};
  out.cpu_time = share(work.cpu_ps, sum(work.cpu_ps), is_there);
  const auto count = static_cast<double>(std::ranges::count(on_npu, true));
  if (!on_npu.empty()) out.ops = 100.0 * count / static_cast<double>(on_npu.size());
  return out;
}

}  // namespace skillet::tools
