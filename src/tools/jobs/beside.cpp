#include "tools/jobs/beside.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <thread>

#include "capture/reader.h"
#include "kernels/api/kernels.h"
#include "tools/jobs/checked_replay.h"
#include "tools/jobs/decoded.h"
#include "tools/jobs/edit_text.h"

namespace skillet::tools {

struct Beside::State {
  // What the jobs of a submission write when they run alone.
  struct Expected {
    capture::Submission submission;
    std::map<uint32_t, Bytes> written;
  };
  // Holds the NPU's turn, so that no other program runs jobs on it.
  std::optional<kernels::DrmFile> turn;
  std::unique_ptr<kernels::Replayer> replayer;
  std::unique_ptr<CheckedReplay> checked;
  std::vector<Expected> submissions;
  std::thread thread;
  std::atomic<bool> stops = false, ended = false;
  std::atomic<uint64_t> jobs = 0;
  std::string problem;
  Result<void> done;

  // Results of each submission are compared before the next one overwrites them.
  Result<void> run_all() {
    for (const Expected& one : submissions) {
      SK_TRY_ASSIGN(const std::vector<std::string> unwritten, checked->run(one.submission));
      jobs += one.submission.jobs.size();
      if (!unwritten.empty()) problem = "jobs reported their end, but wrote nothing at " + unwritten[0];
      for (const auto& [handle, alone] : one.written) {
        SK_TRY_ASSIGN(const auto now, replayer->contents(handle));
        if (problem.empty() && !std::ranges::equal(now, alone))
          problem = fmt::format("buffer {} differs from what its jobs write alone", handle);
      }
    }
    return {};
  }

  void run() {
    while (!stops && done.ok() && problem.empty()) done = run_all();
    ended = true;
  }

  Result<void> add(capture::Submission one) {
    Expected out;
    SK_TRY_ASSIGN(const std::vector<std::string> unwritten, checked->run(one));
    if (!unwritten.empty())
      return error(ErrorCode::fault, "alone, its jobs reported their end, but wrote nothing at {}", unwritten[0]);
    for (const capture::BufferSnapshot& buffer : one.buffers) {
      if (!buffer.listed || !buffer.write) continue;
      SK_TRY_ASSIGN(const auto bytes, replayer->contents(buffer.handle));
      out.written[buffer.handle] = Bytes(bytes.begin(), bytes.end());
    }
    out.submission = std::move(one);
    submissions.push_back(std::move(out));
    return {};
  }
};

Beside::Beside(std::unique_ptr<State> state) : state_(std::move(state)) {}
Beside::~Beside() {
  state_->stops = true;
  if (state_->thread.joinable()) state_->thread.join();
}

Result<void> Beside::open(const std::string& path, const runtime::NamedCore& core, std::unique_ptr<Beside>& out) {
  SK_TRY_ASSIGN(capture::Reader reader, open_jobs(path));
  SK_TRY_ASSIGN(const npu::Chip recorded, chip_of(reader.device(), "").with_context(path));
  if (recorded.name != core.chip.name)
    return error(ErrorCode::invalid_argument, "{} was recorded on chip '{}', not '{}'", path, recorded.name,
                 core.chip.name);
  if (core.core.info.fact(kernels::kCoresFact) < 2)
    return error(ErrorCode::invalid_argument,
                 "{}: it has one core, so its jobs never run at the same time (skillet doctor shows how many cores the "
                 "kernel drives)",
                 core.core.info.node);
  auto state = std::make_unique<State>();
  SK_TRY_ASSIGN(kernels::DrmFile turn, kernels::hold_turn(core.core, core.calls));
  state->turn.emplace(std::move(turn));
  SK_TRY_ASSIGN(state->replayer, kernels::open_replayer(core.core, core.calls));
  state->checked = std::make_unique<CheckedReplay>(*core.driver, core.chip, *state->replayer);
  while (true) {
    SK_TRY_ASSIGN(std::optional<capture::Submission> one, reader.next());
    if (!one) break;
    SK_TRY(state->add(std::move(*one)).with_context(fmt::format("{}: submission {}", path, reader.index())));
  }
  if (state->submissions.empty()) return error(ErrorCode::invalid_argument, "{}: no submission", path);
  out.reset(new Beside(std::move(state)));
  return {};
}

void Beside::begin(kernels::Overlaps& overlaps) {
  state_->replayer->count_overlaps(&overlaps);
  state_->stops = state_->ended = false;
  state_->jobs = 0;
  state_->thread = std::thread([this] { state_->run(); });
}

bool Beside::has_run(uint64_t jobs) const { return state_->ended || state_->jobs >= jobs; }

Result<std::string> Beside::end(uint64_t& jobs) {
  state_->stops = true;
  state_->thread.join();
  state_->replayer->count_overlaps(nullptr);
  jobs += state_->jobs;
  SK_TRY(std::exchange(state_->done, Result<void>()));
  return state_->problem;
}

}  // namespace skillet::tools
