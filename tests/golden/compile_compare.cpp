#include "compile_compare.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "capture/capture.h"
#include "compile/report.h"
#include "driver/driver.h"
#include "drivers/vivante/decode.h"
#include "frontend/tflite/import.h"

namespace skillet::golden {
namespace {

namespace hw = skillet::vivante::hw;
namespace vivante = skillet::drivers::vivante;
using driver::Program;
using vivante::StateLoad;

// An address of ours before load: buffer of a program, offset.
struct OurAddress {
  driver::BufferId buffer = 0;
  uint64_t offset = 0;
};
std::optional<OurAddress> address_at(const std::vector<driver::Relocation>& relocations, uint64_t word_offset_bytes) {
  for (const driver::Relocation& r : relocations) {
    if (r.word_offset_bytes == word_offset_bytes) return OurAddress{r.target, r.target_offset_bytes};
  }
  return std::nullopt;
}
const std::vector<driver::Relocation>& relocations_of(const Program& program, driver::BufferId buffer) {
  static const std::vector<driver::Relocation> kNone;
  for (const driver::BufferRelocations& r : program.buffer_relocations) {
    if (r.buffer == buffer) return r.relocations;
  }
  return kNone;
}

// Compares one submission with one job of ours.
class JobComparison {
 public:
  JobComparison(const capture::Submission& recorded, const Program& program, const driver::Job& job,
                std::vector<std::string>& details)
      : recorded_(recorded), program_(program), job_(job), details_(details) {}

  Result<void> run() {
    if (recorded_.stream.size() != job_.stream.size())
      note("stream length: recorded {} words, ours {}", recorded_.stream.size(), job_.stream.size());
    SK_TRY_ASSIGN(const std::vector<StateLoad> theirs, vivante::parse_stream(recorded_.stream));
    SK_TRY_ASSIGN(const std::vector<StateLoad> ours, vivante::parse_stream(job_.stream));
    note_operations(theirs, ours);
    const size_t n = std::min(theirs.size(), ours.size());
    for (size_t i = 0; i < n; ++i) {
      if (theirs[i].address != ours[i].address || theirs[i].word != ours[i].word) {
        note("word {}: recorded {}, ours {}", theirs[i].word, hw::state_name(theirs[i].address),
             hw::state_name(ours[i].address));
        return {};
      }
      SK_TRY(state(theirs[i], ours[i]));
    }
    compare_uses();
    return {};
  }

 private:
  template <typename... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    details_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  // "NN TP TP": which units the jobs of a stream start.
  static std::string operations(const std::vector<StateLoad>& loads) {
    std::string text;
    for (const StateLoad& load : loads) {
      if (load.address == static_cast<uint32_t>(hw::State::nn_instruction_address)) text += "NN ";
      if (load.address == static_cast<uint32_t>(hw::State::tp_instruction_address)) text += "TP ";
    }
    return text;
  }
  void note_operations(const std::vector<StateLoad>& theirs, const std::vector<StateLoad>& ours) {
    const std::string a = operations(theirs), b = operations(ours);
    if (a != b) note("operations: recorded {}, ours {}", a, b);
  }

  Result<void> state(const StateLoad& theirs, const StateLoad& ours) {
    const bool nn = theirs.address == static_cast<uint32_t>(hw::State::nn_instruction_address);
    const bool tp = theirs.address == static_cast<uint32_t>(hw::State::tp_instruction_address);
    const uint32_t mask = nn || tp ? 0x3f : 0xffffffff;
    if ((theirs.value & mask) != (ours.value & mask))
      note("word {} {}: recorded 0x{:x}, ours 0x{:x}", theirs.word, hw::state_name(theirs.address), theirs.value & mask,
           ours.value & mask);
    if (!nn && !tp) return {};
    const auto ours_at = address_at(job_.relocations, 4 * ours.word);
    if (!ours_at) return error(ErrorCode::internal, "word {} has no relocation", ours.word);
    const bits::Descriptor& d =
        nn ? bits::descriptor_of<hw::NnInstruction>() : bits::descriptor_of<hw::TpInstruction>();
    return descriptor(d, theirs.value & ~0x3fU, *ours_at, jobs_++);
  }

  Result<void> descriptor(const bits::Descriptor& d, uint64_t theirs_at, OurAddress ours_at, int job) {
    const auto size = static_cast<size_t>(d.words);
    SK_TRY_ASSIGN(const std::vector<uint32_t> theirs, vivante::read_words(recorded_, theirs_at, size));
    const Bytes& contents = program_.buffers[ours_at.buffer].contents;
    std::vector<uint32_t> ours(size);
    std::memcpy(ours.data(), contents.data() + ours_at.offset, size * 4);
    for (const bits::Difference& difference : bits::diff(d, theirs, ours)) {
      const auto row =
          std::find_if(d.rows.begin(), d.rows.end(), [&](const bits::Row& r) { return r.name == difference.field; });
      if (row != d.rows.end() && row->kind == bits::ValueKind::address) continue;
      note("job {} {}.{}: recorded {}, ours {}", job, d.name, difference.field, difference.a, difference.b);
    }
    const bits::Unpacked unpacked = bits::unpack(d, theirs);
    for (size_t i = 0; i < d.rows.size(); ++i) {
      const bits::Row& row = d.rows[i];
      if (row.kind != bits::ValueKind::address) continue;
      const auto symbol =
          address_at(relocations_of(program_, ours_at.buffer), ours_at.offset + row.where.pieces[0].word * 4U);
      address(fmt::format("job {} {}.{}", job, d.name, row.name), unpacked.values[i].integer, symbol);
    }
    return {};
  }

  void address(const std::string& what, uint64_t theirs, std::optional<OurAddress> ours) {
    if (theirs == 0 && !ours) return;
    if (theirs == 0 || !ours) return note("{}: recorded 0x{:x}, ours {}", what, theirs, ours ? "an address" : "0");
    const auto buffer =
        std::find_if(recorded_.buffers.begin(), recorded_.buffers.end(), [&](const capture::BufferSnapshot& b) {
          return b.address != 0 && theirs >= b.address && theirs - b.address < b.size_bytes;
        });
    if (buffer == recorded_.buffers.end()) return note("{}: recorded 0x{:x} is in no buffer", what, theirs);
    const uint64_t offset = theirs - buffer->address;
    if (program_.buffers[ours->buffer].role == driver::BufferRole::constant)
      return constant(what, *buffer, offset, *ours);
    place(what, *buffer, offset, *ours);
  }

  // Coefficients and tables: the bytes must agree; the recorded buffer is zero beyond ours.
  void constant(const std::string& what, const capture::BufferSnapshot& theirs, uint64_t offset, OurAddress ours) {
    const Bytes& a = theirs.bytes;
    const Bytes& b = program_.buffers[ours.buffer].contents;
    const size_t size = std::max<size_t>(a.size() > offset ? a.size() - offset : 0, b.size() - ours.offset);
    size_t different = 0;
    std::optional<size_t> first;
    for (size_t i = 0; i < size; ++i) {
      const uint8_t x = offset + i < a.size() ? a[offset + i] : 0;
      const uint8_t y = ours.offset + i < b.size() ? b[ours.offset + i] : 0;
      if (x == y) continue;
      ++different;
      if (!first) first = i;
    }
    if (first) note("{}: {} of {} bytes differ, the first at {}", what, different, size, *first);
  }

  // Tensors: the same recorded buffer must always be the same buffer of ours, at the same distance.
  void place(const std::string& what, const capture::BufferSnapshot& theirs, uint64_t offset, OurAddress ours) {
    const int64_t distance = static_cast<int64_t>(offset) - static_cast<int64_t>(ours.offset);
    const auto known = places_.find(theirs.handle);
    if (known == places_.end()) {
      const bool taken =
          std::any_of(places_.begin(), places_.end(), [&](const auto& p) { return p.second.buffer == ours.buffer; });
      if (taken)
        note("{}: recorded buffer {} + {} is our buffer '{}', which stands for another one", what, theirs.handle,
             offset, program_.buffers[ours.buffer].name);
      places_[theirs.handle] = {ours.buffer, distance};
    } else if (known->second.buffer != ours.buffer || known->second.distance != distance) {
      note("{}: recorded buffer {} + {}, ours '{}' + {}", what, theirs.handle, offset,
           program_.buffers[ours.buffer].name, ours.offset);
    }
  }

  // How the submission lists the tensors' buffers: read, write or both.
  void compare_uses() {
    for (const capture::BufferSnapshot& b : recorded_.buffers) {
      const auto known = places_.find(b.handle);
      if (known == places_.end()) continue;
      const auto use = std::find_if(job_.buffers.begin(), job_.buffers.end(),
                                    [&](const driver::BufferUse& u) { return u.buffer == known->second.buffer; });
      if (use == job_.buffers.end())
        note("buffer {} is not listed by our job", b.handle);
      else if (use->read != b.read || use->write != b.write)
        note("buffer {} listed read {} write {}, ours read {} write {}", b.handle, b.read, b.write, use->read,
             use->write);
    }
  }

  struct OurPlace {
    driver::BufferId buffer = 0;
    int64_t distance = 0;
  };
  const capture::Submission& recorded_;
  const Program& program_;
  const driver::Job& job_;
  std::vector<std::string>& details_;
  std::map<uint32_t, OurPlace> places_;
  int jobs_ = 0;
};

struct Compiled {
  std::vector<Program> programs;
  std::vector<std::string> refusals;
};

// Recorded jobs judge all that the driver takes; what its compiler refuses is a failure.
const compile::Options kTakeAll{.driver = {.allow_unproven = true}, .leave_out = false};

Result<Compiled> compile_model(const std::string& path, const std::string& chip_name) {
  SK_TRY_ASSIGN(ir::Graph graph, tflite::import_file(path));
  SK_TRY_ASSIGN(const driver::Chip chip, driver::find_chip(chip_name));
  SK_TRY_ASSIGN(const driver::Driver* driver, driver::driver_of(chip));
  SK_TRY_ASSIGN(compile::Compiled compiled, compile::compile(std::move(graph), {driver, chip}, kTakeAll));
  Compiled out;
  for (const compile::OpRow& row : compile::rows(compiled)) {
    if (!row.on_npu) out.refusals.push_back(fmt::format("{}: {}", describe_op(compiled.graph, row.op), row.why));
  }
  for (compile::Part& part : compiled.parts) {
    if (part.program && !part.program->jobs.empty()) out.programs.push_back(std::move(*part.program));
  }
  return out;
}

Result<void> compare_jobs(const capture::Capture& capture, const Compiled& compiled, Comparison& out) {
  std::vector<std::pair<const Program*, const driver::Job*>> jobs;
  for (const Program& program : compiled.programs) {
    for (const driver::Job& job : program.jobs) jobs.emplace_back(&program, &job);
  }
  const Program& first = compiled.programs.front();
  if (capture.submissions[0].stream != first.init_jobs[0].stream)
    out.details.push_back("the initialisation stream differs");
  const size_t recorded = capture.submissions.size() - 1;
  if (recorded != jobs.size())
    out.details.push_back(fmt::format("submissions: recorded {}, ours {}", recorded, jobs.size()));
  for (size_t i = 0; i < std::min(recorded, jobs.size()); ++i)
    SK_TRY(JobComparison(capture.submissions[i + 1], *jobs[i].first, *jobs[i].second, out.details).run());
  out.outcome = out.details.empty() ? Outcome::identical : Outcome::differs;
  return {};
}

Result<void> compare(const std::string& dir, const std::string& chip, Comparison& out) {
  SK_TRY_ASSIGN(const capture::Capture capture, capture::read(fmt::format("{}/{}/{}", dir, chip, out.name)));
  SK_TRY_ASSIGN(Compiled compiled, compile_model(fmt::format("{}/models/{}.tflite", dir, out.name), chip));
  if (capture.submissions.size() < 2) {
    out.outcome = Outcome::no_job;
    return {};
  }
  if (compiled.programs.empty()) {
    out.outcome = Outcome::refused;
    out.details = std::move(compiled.refusals);
    return {};
  }
  return compare_jobs(capture, compiled, out);
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  static constexpr std::string_view kNames[] = {"identical", "differs", "refused", "no recorded job", "failed"};
  return kNames[static_cast<size_t>(outcome)];
}

Comparison compare_case(const std::string& dir, const std::string& chip, const std::string& name) {
  Comparison out{.name = name};
  if (auto done = compare(dir, chip, out); !done.ok()) {
    out.outcome = Outcome::failed;
    out.details.push_back(done.error().message);
  }
  return out;
}

Result<std::vector<std::string>> list_captures(const std::string& dir, const std::string& chip) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code ec;
  for (const auto& set : fs::directory_iterator(fs::path(dir) / chip, ec)) {
    std::error_code inner;
    for (const auto& entry : fs::directory_iterator(set.path(), inner)) {
      if (fs::exists(entry.path() / "capture.json"))
        names.push_back(set.path().filename().string() + "/" + entry.path().filename().string());
    }
  }
  if (ec) return error(ErrorCode::io, "{}/{}: {}", dir, chip, ec.message());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace skillet::golden
