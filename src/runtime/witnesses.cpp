// LoadedProgram: detects jobs that did not run. Each job's witness is marked before the jobs start; a mark that is
// still there afterwards shows that a reset dropped the job. Buffers are marked and checked while they are open for
// other reasons, if possible.
#include <algorithm>

#include "runtime/cpu_access.h"
#include "runtime/loaded_program.h"

namespace skillet::runtime {

void LoadedProgram::watch_jobs() {
  if (!device().loses_jobs()) return;
  for (const npu::Job& job : program_.jobs) {
    if (job.witness.size_bytes == 0) continue;
    watches_.push_back({job.witness, {}});
    if (!is_watched(job.witness.buffer)) watched_.push_back(job.witness.buffer);
  }
  // The first output's buffer is open when the witnesses are checked.
  std::stable_partition(outputs_.begin(), outputs_.end(),
                        [&](const Binding& output) { return is_watched(output.buffer); });
}

bool LoadedProgram::is_watched(npu::BufferId buffer) const {
  return std::ranges::find(watched_, buffer) != watched_.end();
}

std::span<uint8_t> LoadedProgram::witness_bytes(const CpuAccess& access, const Watch& watch) const {
  const npu::ByteRange& witness = watch.witness;
  return access.bytes().subspan(places_[witness.buffer].offset_bytes + witness.offset_bytes, witness.size_bytes);
}

void LoadedProgram::mark(npu::BufferId buffer, const CpuAccess& access) {
  for (Watch& watch : watches_) {
    if (watch.witness.buffer == buffer) watch.check.mark(witness_bytes(access, watch));
  }
}

Result<void> LoadedProgram::mark_all() {
  for (Watch& watch : watches_) {
    if (watch.check.is_marked()) continue;
    SK_TRY_ASSIGN(CpuAccess access, open(watch.witness.buffer, true));
    mark(watch.witness.buffer, access);
    SK_TRY(access.end());
  }
  return {};
}

// After a failure the chip may have been reset, and marks may be lost, as in memory of the caller.
void LoadedProgram::forget_all() {
  context_->init_done.clear();
  for (Watch& watch : watches_) watch.check.forget();
}

// False: a job has not written its witness there. Otherwise the bytes are as the last run left them.
bool LoadedProgram::settle(npu::BufferId buffer, const CpuAccess& access) {
  bool written = true;
  for (Watch& watch : watches_) {
    if (watch.witness.buffer != buffer) continue;
    watch.was_written = watch.check.settle(witness_bytes(access, watch));
    written &= watch.was_written;
  }
  return written;
}

// Lists the jobs, if there are several: " (2, 3 of 5)".
std::string LoadedProgram::untouched_jobs() const {
  std::string list;
  size_t count = 0;
  for (size_t i = 0; i < watches_.size(); ++i) {
    if (watches_[i].was_written) continue;
    list += fmt::format("{}{}", count == 0 ? "" : ", ", i + 1);
    ++count;
  }
  if (watches_.size() < 2) return "";
  if (count == watches_.size()) return fmt::format(" (all of {})", count);
  const bool all_but_first = count > 1 && count + 1 == watches_.size() && watches_[0].was_written;
  if (all_but_first) return fmt::format(" (all of {} but the first)", watches_.size());
  return fmt::format(" ({} of {})", list, watches_.size());
}

}  // namespace skillet::runtime
