#include "runtime/program_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/cost_model.h"
#include "runtime/device_context.h"
#include "sim/timing.h"

namespace skillet::runtime {
namespace {

using trace::Category;

trace::Track track_of(DeviceContext& context, std::string_view what, std::string_view unit = "") {
  const std::string name = fmt::format("{} {}", context.device->info().node, what);
  const auto [found, is_new] = context.tracks.try_emplace(name, trace::kThisThread);
  if (is_new) found->second = unit.empty() ? trace::add_track(name) : trace::add_counter(name, unit);
  return found->second;
}

std::string name_of(const npu::OperationInfo& operation, const ir::Graph& graph) {
  if (operation.op < 0) return operation.kind;
  return fmt::format("{} ({})", ir::describe_op(graph, operation.op), operation.kind);
}

}  // namespace

std::unique_ptr<ProgramTrace> ProgramTrace::of(const npu::Program& program, const ir::Graph& graph,
                                               DeviceContext& context) {
  if (!trace::on() || program.jobs.empty()) return nullptr;
  auto out = std::make_unique<ProgramTrace>();
  out->npu_ = track_of(context, "NPU");
  out->all_ = trace::intern(Category::npu,
                            fmt::format("{} {}", program.jobs.size(), program.jobs.size() == 1 ? "job" : "jobs"));
  const auto timer = sim::create_timer(program.chip, sim::Jobs::open);
  if (!timer.ok()) return out;
  auto tasks = time_tasks(program, **timer);
  if (tasks.ok()) out->add_tasks(program, graph, std::move(*tasks), context);
  return out;
}

void ProgramTrace::add_tasks(const npu::Program& program, const ir::Graph& graph, std::vector<TimedTask> tasks,
                             DeviceContext& context) {
  const trace::Track operations = track_of(context, "NPU operations");
  size_t begun = program.operations.size();  // the operation of operation_entry
  size_t job_entry = 0, operation_entry = 0;
  for (const TimedTask& task : tasks) {
    if (task.begins_job) {
      job_entry = entries_.size();
      entries_.push_back({npu_, trace::intern(Category::npu, program.jobs[task.job].name), us_, 0, 0});
    }
    const bool is_known = task.operation < program.operations.size();
    if (is_known && task.operation != std::exchange(begun, task.operation)) {
      operation_entry = entries_.size();
      const std::string name = name_of(program.operations[task.operation], graph);
      entries_.push_back({operations, trace::intern(Category::operation, name), us_, 0, 0});
    }
    add_task(task, context);
    entries_[job_entry].us += task.cost.us;
    if (is_known) entries_[operation_entry].us += task.cost.us;
  }
}

void ProgramTrace::add_task(const TimedTask& task, DeviceContext& context) {
  for (const sim::UnitTime& unit : task.cost.units) {
    if (unit.us <= 0) continue;
    const trace::Name name = trace::intern(Category::unit, fmt::format("{}: {}", unit.unit, task.cost.what));
    const double us = std::min(unit.us, task.cost.us);
    entries_.push_back({track_of(context, fmt::format("unit {}", unit.unit)), name, us_, us, 0});
  }
  const trace::Track bytes = track_of(context, "DRAM bytes of a task", "bytes");
  entries_.push_back({bytes, trace::kNoName, us_, 0, task.cost.read_bytes + task.cost.written_bytes});
  us_ += task.cost.us;
}

void ProgramTrace::begin() { begun_ns_ = trace::now_ns(); }

void ProgramTrace::end() {
  if (!trace::on()) return;
  const int64_t now_ns = trace::now_ns();
  const double scale = us_ > 0 ? static_cast<double>(now_ns - begun_ns_) / us_ : 0;
  const auto at = [&](double us) { return begun_ns_ + static_cast<int64_t>(us * scale); };
  trace::begin(npu_, all_, begun_ns_, us_);
  for (const Entry& one : entries_) {
    if (one.name == trace::kNoName) {
      trace::count(one.track, at(one.begin_us), one.value);
      continue;
    }
    trace::begin(one.track, one.name, at(one.begin_us), one.us);
    trace::end(one.track, std::min(now_ns, at(one.begin_us + one.us)));
  }
  trace::end(npu_, now_ns);
}

}  // namespace skillet::runtime
