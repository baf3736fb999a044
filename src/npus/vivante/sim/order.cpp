#include "npus/vivante/sim/order.h"

#include <algorithm>
#include <numeric>

#include "npus/vivante/sim/field_check.h"

namespace skillet::sim::vivante {
namespace {

constexpr uint32_t kLastPart = 0;  // event of the last job of an operation
constexpr int kFlushesAtEnd = 2;

std::string_view name_of(Unit unit) { return unit == kNn ? "NN" : "TP"; }

}  // namespace

void Order::start(Unit unit, uint32_t event, std::string name, size_t word, Run run) {
  jobs_.push_back({.unit = unit,
                   .event = event,
                   .name = std::move(name),
                   .word = word,
                   .run = std::move(run),
                   .held_back = no_flush_[unit],
                   .unordered = unit == kNn && !small_batch_,
                   .operation = operation_});
  if (event == kLastPart) ++operation_;
  ++jobs_since_flush_;
  flushes_ = 0;
}

Result<void> Order::wait(uint32_t event) {
  SK_TRY(run_started());
  const auto over = std::ranges::find_if(jobs_, [event](const Job& job) { return job.event == event && !job.waited; });
  if (over == jobs_.end()) return {};
  // The first of them: a wait has only the event.
  for (Job& job : jobs_) {
    if (job.operation == over->operation) job.waited = true;
  }
  SK_TRY(check_flushed(*over));
  std::erase_if(jobs_, [](const Job& job) { return job.waited && !job.unordered; });
  return {};
}

void Order::flush_all() {
  if (any_runs() && !options_.leniency.warns_of(Rule::waits)) return;  // running jobs write after the flush
  unseen_.clear();
  std::erase_if(jobs_, [](const Job& job) { return !job.run; });
  jobs_since_flush_ = 0;
  ++flushes_;
}

void Order::start_of_stream() {
  jobs_.clear();
  unseen_.clear();
  no_flush_ = {};
  jobs_since_flush_ = flushes_ = parts_open_ = 0;
}

Result<void> Order::end_of_stream() {
  SK_TRY(run_started());
  if (parts_open_ > 0)
    return error(ErrorCode::device, "the stream ends after {} TP jobs with no_flush set and none that flushes",
                 parts_open_);
  if (any_runs()) {
    const Job& first = *std::ranges::find_if(jobs_, [](const Job& job) { return !job.waited; });
    SK_TRY(options_.leniency.broken(Rule::waits, "the stream ends while {} runs: no wait_event for event {} after it",
                                    first.place(), first.event));
  }
  if (jobs_since_flush_ > 0)
    return error(ErrorCode::device,
                 "the stream ends without flush_cache after its last {} jobs: nobody can see the results",
                 jobs_since_flush_);
  if (flushes_ > 0 && flushes_ < kFlushesAtEnd)
    return options_.leniency.broken(Rule::end_flushes, "the stream ends after {} flush_cache of {}", flushes_,
                                    kFlushesAtEnd);
  return {};
}

bool Order::any_runs() const {
  return std::ranges::any_of(jobs_, [](const Job& job) { return !job.waited; });
}

// Runs all jobs started since the last call, in any order; checks their results in the order of the stream.
Result<void> Order::run_started() {
  std::vector<size_t> indices;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].run) indices.push_back(i);
  }
  const auto in_stream = indices;
  if (options_.seed != 0 && !options_.leniency.warns_of(Rule::waits)) {
    for (size_t left = indices.size(); left > 1; --left)
      std::swap(indices[left - 1], indices[static_cast<size_t>(random_.next() % left)]);
  }
  std::vector<Result<Accesses>> done(indices.size(), Accesses{});
  for (const size_t index : indices) done[index - in_stream[0]] = std::exchange(jobs_[index].run, nullptr)();
  for (const size_t index : in_stream) {
    auto looked_at = account(index, std::move(done[index - in_stream[0]]));
    if (!looked_at.ok()) return std::move(looked_at).with_context(jobs_[index].place());
  }
  return {};
}

Result<void> Order::account(size_t index, Result<Accesses> done) {
  Job& job = jobs_[index];
  SK_TRY_ASSIGN(job.accesses, std::move(done));
  SK_TRY(check_parts(job));
  SK_TRY(check_races(job, std::span(jobs_).first(index)));
  const Accesses::Range& read = job.accesses.read;
  for (const Unseen& unseen : unseen_) {
    if (unseen.range.meets(read))
      return error(ErrorCode::device, "{}: {} bytes at {:#x} were written by a {} job that has not been flushed",
                   read.what, read.size, read.begin, name_of(unseen.unit));
  }
  note_written(job);
  return {};
}

Result<void> Order::check_parts(const Job& job) {
  if (job.unit != kTp) return {};
  parts_open_ = job.accesses.is_a_part ? parts_open_ + 1 : 0;
  if (parts_open_ < tp_cores_) return {};
  return field_error("tp_instruction.no_flush", 1, "{} jobs without one that flushes, on {} cores", parts_open_,
                     tp_cores_);
}

// Parts of one operation may write between each other's bytes.
Result<void> Order::check_races(const Job& job, std::span<const Job> before) const {
  for (const Job& other : before) {
    const Accesses &mine = job.accesses, &its = other.accesses;
    const bool reads = mine.read.meets(its.written);
    const bool writes =
        mine.written.meets(its.read) || (mine.written.meets(its.written) && job.operation != other.operation);
    if (!reads && !writes) continue;
    const Accesses::Range& range = reads ? mine.read : mine.written;
    SK_TRY(options_.leniency.broken(other.waited ? Rule::small_batch : Rule::waits,
                                    "{}: {} bytes at {:#x} are what {} {}, which runs at the same time", range.what,
                                    range.size, range.begin, other.place(),
                                    range.meets(its.written) ? "writes" : "reads"));
  }
  return {};
}

// A completed operation must be flushed: its last job flushes for all its parts.
Result<void> Order::check_flushed(const Job& job) const {
  if (job.accesses.flushes && !job.held_back) return {};
  const std::string_view why = job.held_back     ? "vip_flush_control"
                               : job.unit == kNn ? "nn_instruction.nn_layer_flush, no_flush"
                                                 : "tp_instruction.no_flush";
  return options_.leniency
      .broken(Rule::last_flushes, "the last {} job of an operation does not flush: {}", name_of(job.unit), why)
      .with_context(job.place());
}

// A job that flushes also makes earlier writes of its unit visible.
void Order::note_written(const Job& job) {
  if (job.accesses.flushes && !job.held_back)
    std::erase_if(unseen_, [&](const Unseen& one) { return one.unit == job.unit; });
  else
    unseen_.push_back({job.unit, job.accesses.written});
}

}  // namespace skillet::sim::vivante
