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

constexpr std::string_view kBytes = "DRAM bytes of a task";

trace::Track track_of(DeviceContext& context, std::string_view what, std::string_view unit = "") {
  const std::string file = context.file == 0 ? "" : fmt::format("file {} ", context.file);
  const std::string name = fmt::format("{} {}{}", context.device->info().node, file, what);
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
  const bool is_counted = context.use != nullptr;  // else the program is only recorded
  if (!trace::on() || program.jobs.empty() || !is_counted) return nullptr;
  auto out = std::make_unique<ProgramTrace>();
  out->npu_ = track_of(context, "NPU");
  std::string all = fmt::format("{} {}", program.jobs.size(), program.jobs.size() == 1 ? "job" : "jobs");
  out->lost_ = trace::intern(Category::npu, all + ", lost");
  std::vector<Entry> entries;
  if (const auto timer = sim::create_timer(program.chip, sim::Jobs::open); timer.ok()) {
    auto tasks = time_tasks(program, **timer);
    if (tasks.ok()) entries = out->entries_of(program, graph, std::move(*tasks), context);
    if (const std::string clock = sim::print((*timer)->clock()); tasks.ok() && !clock.empty())
      all += ", predicted " + clock;
  }
  out->all_ = trace::intern(Category::npu, all);
  out->add_events(entries);
  return out;
}

std::vector<ProgramTrace::Entry> ProgramTrace::entries_of(const npu::Program& program, const ir::Graph& graph,
                                                          std::vector<TimedTask> tasks, DeviceContext& context) {
  std::vector<Entry> entries;
  const trace::Track operations = track_of(context, "NPU operations");
  size_t begun = program.operations.size();  // the operation of operation_entry
  size_t job_entry = 0, operation_entry = 0;
  for (const TimedTask& task : tasks) {
    if (task.begins_job) {
      job_entry = entries.size();
      entries.push_back({npu_, trace::intern(Category::npu, program.jobs[task.job].name), us_, 0, {}});
    }
    const bool is_known = task.operation < program.operations.size();
    if (is_known && task.operation != std::exchange(begun, task.operation)) {
      operation_entry = entries.size();
      const std::string name = name_of(program.operations[task.operation], graph);
      entries.push_back({operations, trace::intern(Category::operation, name), us_, 0, {}});
    }
    add_task(entries, task, context);
    entries[job_entry].us += task.cost.us;
    if (is_known) entries[operation_entry].us += task.cost.us;
  }
  entries.push_back({track_of(context, kBytes, "bytes"), trace::kNoName, us_, 0, 0});  // after the last task
  return entries;
}

void ProgramTrace::add_task(std::vector<Entry>& entries, const TimedTask& task, DeviceContext& context) {
  for (const sim::UnitTime& unit : task.cost.units) {
    if (unit.us <= 0) continue;
    const trace::Name name = trace::intern(Category::unit, fmt::format("{}: {}", unit.unit, task.cost.what));
    const double us = std::min(unit.us, task.cost.us);
    entries.push_back({track_of(context, fmt::format("unit {}", unit.unit)), name, us_, us, {}});
  }
  const trace::Track bytes = track_of(context, kBytes, "bytes");
  entries.push_back({bytes, trace::kNoName, us_, 0, task.cost.read_bytes + task.cost.written_bytes});
  us_ += task.cost.us;
}

void ProgramTrace::add_events(const std::vector<Entry>& entries) {
  using trace::EventType;
  std::vector<trace::Event> events;
  const auto add = [&](double at_us, trace::Track track, trace::Name name, EventType type, double value) {
    if (track == trace::kThisThread) return;  // there are too many tracks
    events.push_back({0, track, name, type, value});
    at_us_.push_back(at_us);
  };
  add(0, npu_, all_, EventType::begin, us_);
  for (const Entry& one : entries) {
    if (one.value) {
      add(one.begin_us, one.track, trace::kNoName, EventType::count, *one.value);
      continue;
    }
    add(one.begin_us, one.track, one.name, EventType::begin, one.us);
    add(one.begin_us + one.us, one.track, trace::kNoName, EventType::end, 0);
  }
  add(us_, npu_, trace::kNoName, EventType::end, 0);
  at_ns_.resize(events.size());
  pattern_.emplace(events);
}

void ProgramTrace::begin() { begun_ns_ = trace::now_ns(); }

void ProgramTrace::lose(int64_t at_ns) const {
  if (npu_ == trace::kThisThread) return;  // there are too many tracks
  trace::begin(npu_, lost_, begun_ns_);
  trace::end(npu_, at_ns);
}

void ProgramTrace::end(int64_t now_ns) {
  if (!trace::on()) return;
  const double scale = us_ > 0 ? static_cast<double>(now_ns - begun_ns_) / us_ : 0;
  for (size_t i = 0; i < at_ns_.size(); ++i)
    at_ns_[i] = std::min(now_ns, begun_ns_ + static_cast<int64_t>(at_us_[i] * scale));
  if (!at_ns_.empty()) at_ns_.back() = now_ns;
  pattern_->add(at_ns_);
}

}  // namespace skillet::runtime
