// Session::time_jobs: times of each job of an NPU part alone, and of all of them together.
#include <algorithm>

#include "base/stop.h"
#include "base/trace.h"
#include "runtime/cost_model.h"
#include "runtime/session_part.h"

namespace skillet::runtime {
namespace {

double since_us(int64_t begin_ns) { return static_cast<double>(trace::now_ns() - begin_ns) / 1e3; }

// Adds an operation to the description of a job: "CONV_2D, ADD"; successive operations of one kind count once.
void add_operation(std::string& text, std::string_view kind) {
  constexpr std::string_view kComma = ", ";
  const size_t comma = text.rfind(kComma);
  if (std::string_view(text).substr(comma == std::string::npos ? 0 : comma + kComma.size()) == kind) return;
  text += text.empty() ? "" : kComma;
  text += kind;
}

// Adds each job's operations and predicted time, if the chip is timed.
Result<void> add_predicted(const npu::Program& program, const ir::Graph& graph, std::vector<JobTime>& jobs) {
  const auto timer = sim::create_timer(program.chip, sim::Jobs::open);
  if (!timer.ok()) return {};
  SK_TRY_ASSIGN(const std::vector<TimedTask> tasks, time_tasks(program, **timer));
  for (JobTime& one : jobs) one.predicted_us = 0;
  for (const TimedTask& task : tasks) {
    if (task.job >= jobs.size()) return error(ErrorCode::internal, "the program has {} jobs", jobs.size());
    JobTime& job = jobs[task.job];
    *job.predicted_us += task.cost.us;
    if (task.operation == program.operations.size()) continue;
    const npu::OperationInfo& info = program.operations[task.operation];
    add_operation(job.operations, info.op < 0 ? info.kind : ir::op_name(graph.op(info.op)));
  }
  return {};
}

}  // namespace

// Waits for each job before the next one is submitted. Then writes the inputs again, which jobs may have overwritten.
Result<void> LoadedProgram::time_jobs(const HostBytes& bytes_of, std::vector<double>& alone_us, double& together_us) {
  SK_TRY(context_->check_process());
  const std::lock_guard lock(context_->mutex);
  has_results_ = false;
  auto timed = time_each_job(bytes_of, alone_us, together_us);
  if (!timed.ok()) {
    forget_all();
    return timed;
  }
  return finish(bytes_of);
}

Result<void> LoadedProgram::time_each_job(const HostBytes& bytes_of, std::vector<double>& alone_us,
                                          double& together_us) {
  waited_ = {};
  if (context_->overdue) SK_TRY(wait(*context_->overdue));
  SK_TRY(make_ready(bytes_of));
  alone_us.clear();
  for (const kernels::JobId& job : jobs_) {
    waited_ = {};
    const int64_t begin_ns = trace::now_ns();
    SK_TRY_ASSIGN(const kernels::Fence fence, device().submit({&job, 1}));
    SK_TRY(wait(fence));
    alone_us.push_back(since_us(begin_ns));
  }
  forget_all();
  SK_TRY(make_ready(bytes_of));
  waited_ = {};
  const int64_t begin_ns = trace::now_ns();
  SK_TRY(submit_jobs());
  if (fence_) SK_TRY(wait(*fence_));
  together_us = since_us(begin_ns);
  return {};
}

Result<JobTimes> Session::time_jobs(size_t index, int runs) {
  JobTimes out;
  Part& part = *parts_.at(index);
  if (part.loaded == nullptr) return out;
  const auto bytes_of = [&](ir::TensorId id) {
    return spans_[static_cast<size_t>(part.partition.tensor_map[static_cast<size_t>(id)])];
  };
  SK_TRY_ASSIGN(const npu::Program program, compile_part(target_, part.partition.graph, options_));
  for (const npu::Job& job : part.loaded->program().jobs) out.jobs.push_back({.name = job.name});
  if (program.jobs.size() == out.jobs.size()) SK_TRY(add_predicted(program, part.partition.graph, out.jobs));
  std::vector<double> alone_us;
  for (int run = 0; run < runs; ++run) {
    SK_TRY(check_stop());
    double together_us = 0;
    SK_TRY(part.loaded->time_jobs(bytes_of, alone_us, together_us));
    out.together_us += together_us / runs;
    for (size_t i = 0; i < alone_us.size(); ++i) {
      if (run == 0) out.jobs[i].first_us = alone_us[i];
      out.jobs[i].mean_us += alone_us[i] / runs;
    }
  }
  return out;
}

}  // namespace skillet::runtime
