#include "tools/program_timing.h"

#include <map>

#include "runtime/record_program.h"
#include "tools/text_table.h"

namespace skillet::tools {
namespace {

// Constants and commands of the submissions, as the device has them in its memory; tensors are not there, because no
// time depends on them.
class RecordedMemory {
 public:
  Result<void> add(const capture::Submission& submission) {
    for (const capture::BufferSnapshot& buffer : submission.buffers) {
      if (buffer.content != capture::Content::bytes || buffer.address == 0) continue;
      if (const auto at = contents_.find(buffer.address); at != contents_.end()) {
        if (at->second.given.data() == buffer.bytes.data()) continue;
        memory_.unmap(buffer.address);
        contents_.erase(at);
      }
      if (buffer.size_bytes > kBytesMax - std::min(all_bytes_, kBytesMax))
        return error(ErrorCode::malformed, "buffer {} has {} bytes: too much to be timed", buffer.handle,
                     buffer.size_bytes);
      all_bytes_ += buffer.size_bytes;
      Contents& kept = contents_[buffer.address] = {buffer.bytes, Bytes(buffer.size_bytes)};
      std::ranges::copy(buffer.bytes, kept.bytes.begin());
      SK_TRY(memory_.map(buffer.address, kept.bytes, fmt::format("buffer {}", buffer.handle)));
    }
    return {};
  }
  const sim::Memory& memory() const { return memory_; }

 private:
  static constexpr uint64_t kBytesMax = uint64_t{2} << 30;
  struct Contents {
    SharedBytes given;  // the same bytes in the next submission: nothing has changed
    Bytes bytes;
  };
  std::map<uint64_t, Contents> contents_;  // by address
  uint64_t all_bytes_ = 0;
  sim::Memory memory_;
};

std::vector<sim::Commands> commands_of(const capture::Job& job) {
  std::vector<sim::Commands> out;
  for (const capture::Commands& one : job.commands) {
    const auto* const words = reinterpret_cast<const uint8_t*>(one.words.data());
    out.push_back(
        {.bytes = {words, one.words.size() * sizeof(uint32_t)}, .address = one.address, .size_bytes = one.size_bytes});
  }
  return out;
}

}  // namespace

Result<ProgramTiming> time_capture(sim::Timer& timer, capture::Reader reader) {
  ProgramTiming out{.error = timer.error()};
  RecordedMemory memory;
  while (true) {
    SK_TRY_ASSIGN(const auto submission, reader.next());
    if (!submission) break;
    SK_TRY(memory.add(*submission));
    const size_t before = out.costs.size();
    for (const capture::Job& job : submission->jobs) {
      const std::vector<sim::Commands> commands = commands_of(job);
      SK_TRY_ASSIGN(auto costs, timer.time_job({.commands = commands}, memory.memory()));
      std::move(costs.begin(), costs.end(), std::back_inserter(out.costs));
    }
    out.submissions += out.costs.size() > before ? 1 : 0;  // others only set the chip up
  }
  const sim::Totals sum = sim::total(out.costs);
  out.tasks = out.costs.size();
  out.device_us = sum.us;
  out.wall_us = timer.wall_us(sum.us, out.tasks, out.submissions);
  out.read_bytes = sum.read_bytes;
  out.written_bytes = sum.written_bytes;
  return out;
}

Result<ProgramTiming> time_parts(std::string_view chip, const std::vector<compile::Part>& parts,
                                 std::span<const sim::ParameterValue> overrides) {
  SK_TRY_ASSIGN(const auto timer, sim::create_timer(chip, sim::Jobs::open, overrides));
  std::vector<runtime::ProgramToRecord> programs;
  for (const compile::Part& part : parts) {
    if (part.program && !part.program->jobs.empty()) programs.push_back({*part.program, &part.partition.graph, {}});
  }
  if (programs.empty()) return ProgramTiming{.error = timer->error()};
  SK_TRY_ASSIGN(runtime::RecordedPrograms done, runtime::record_programs(std::string(chip), std::move(programs)));
  return time_capture(*timer, capture::Reader::of(std::move(done.capture)));
}

Result<std::optional<ProgramTiming>> time_if_known(std::string_view chip, const std::vector<compile::Part>& parts) {
  if (std::ranges::count(sim::timed_chips(sim::Jobs::open), chip) == 0) return std::optional<ProgramTiming>();
  for (const compile::Part& part : parts)
    if (!part.bands.empty()) return std::optional<ProgramTiming>();
  SK_TRY_ASSIGN(ProgramTiming timing, time_parts(chip, parts));
  return std::optional(std::move(timing));
}

double cpu_us(const sim::Timer& timer, double macs, double bytes) {
  return macs / (timer.parameter("cpu_gmacs") * 1e3) + bytes / (timer.parameter("cpu_gbps") * 1e3);
}

std::string print_simulated(double us, double error) {
  return fmt::format("{} (simulated, +-{:.0f} %)", print_ms(us / 1000), error * 100);
}

}  // namespace skillet::tools
