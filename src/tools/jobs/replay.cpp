// `skillet replay`: runs recorded submissions again, on a board or a simulated chip, unchanged or with fields set.
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "base/bytes.h"
#include "base/log.h"
#include "base/result.h"
#include "base/stop.h"
#include "capture/reader.h"
#include "kernels/api/replayer.h"
#include "lab/compare/field_edit.h"
#include "runtime/device_context.h"
#include "tools/cli/orderly_end.h"
#include "tools/cli/verbs.h"
#include "tools/jobs/beside.h"
#include "tools/jobs/checked_replay.h"
#include "tools/jobs/decoded.h"
#include "tools/jobs/edit_text.h"
#include "tools/jobs/writers.h"
#include "tools/jobs/written.h"
#include "tools/model/model_ops.h"
#include "tools/show/progress.h"
#include "tools/show/text_table.h"

namespace skillet::tools {
namespace {

// BUFFER=FILE of --input: the contents of a buffer that was not recorded.
struct GivenInput {
  uint32_t handle = 0;
  SharedBytes bytes;
  bool is_used = false;
};

Result<GivenInput> parse_input(const std::string& text) {
  GivenInput out;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out.handle);
  if (failure != std::errc() || end == text.data() + text.size() || *end != '=')
    return error(ErrorCode::invalid_argument, "--input: must be BUFFER=FILE, such as 3=input.bin, not '{}'", text);
  SK_TRY_ASSIGN(Bytes bytes, read_file(text.substr(static_cast<size_t>(end + 1 - text.data()))));
  out.bytes = std::move(bytes);
  return out;
}

struct Options {
  std::string path, device, against, output, expect, model, beside;
  std::vector<std::string> set, inputs;
  bool json = false;
};

// "job 1 nn_instruction.kernel_x_size=3"; for submission 2 only: "2:job 1 ...".
struct Change {
  std::optional<size_t> submission;
  std::string path, value;
  bool is_done = false;
  // For a change without a submission: why it fails in submission `problem_at`, and whether that one has the field.
  std::optional<Error> problem;
  size_t problem_at = 0;
  bool has_field = false;
};

Result<Change> parse_change(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return error(ErrorCode::invalid_argument, "--set: must be FIELD=VALUE, not '{}'", text);
  Change out{.submission = {}, .path = text.substr(0, equals), .value = text.substr(equals + 1)};
  size_t number = 0;
  const auto [end, failure] = std::from_chars(out.path.data(), out.path.data() + out.path.size(), number);
  if (failure == std::errc() && *end == ':') {
    const auto size = static_cast<size_t>(end + 1 - out.path.data());
    out.submission = number;
    out.path.erase(0, size);
  }
  return out;
}

struct Device {
  runtime::NamedCore core;
  std::unique_ptr<kernels::Replayer> replayer;
  CheckedReplay checked;
};

Result<Device> open_device(const std::string& name, const npu::Chip& recorded, const capture::DeviceInfo& device,
                           bool takes_no_turns) {
  SK_TRY_ASSIGN(runtime::NamedCore core, runtime::find_core_for_replay(name));
  core.core.takes_no_turns = takes_no_turns;
  if (core.chip.name != recorded.name && !is_same_hardware(*core.driver, core.core.info, device))
    return error(ErrorCode::invalid_argument, "{} is chip '{}'; the jobs were recorded for chip '{}'", name,
                 core.chip.name, recorded.name);
  SK_TRY_ASSIGN(auto replayer, kernels::open_replayer(core.core, core.calls));
  CheckedReplay checked(*core.driver, core.chip, *replayer);
  return Device{std::move(core), std::move(replayer), std::move(checked)};
}

// Outputs that a device reported as done but did not write.
struct Unwritten {
  size_t submission = 0;
  std::string device;
  std::vector<std::string> paths;  // address fields of these outputs
};

// Replays all submissions on one device, or on two side by side.
class Replays {
 public:
  Replays(const Options& options, capture::Reader reader, Device device, std::optional<Device> other)
      : options_(options), reader_(std::move(reader)), device_(std::move(device)), other_(std::move(other)) {}

  Result<void> prepare() {
    for (const std::string& text : options_.set) SK_TRY_INTO(changes_.emplace_back(), parse_change(text));
    for (const std::string& text : options_.inputs) SK_TRY_INTO(inputs_.emplace_back(), parse_input(text));
    if (!options_.output.empty()) SK_TRY(check_files(options_.output, {}));
    if (!options_.model.empty()) SK_TRY_INTO(ops_, ModelOps::load(options_.model, device_.core.chip));
    if (!options_.beside.empty()) SK_TRY(Beside::open(options_.beside, device_.core, beside_));
    return try_options();
  }

  Result<void> run() {
    while (true) {
      SK_TRY(check_stop());
      SK_TRY_ASSIGN(std::optional<capture::Submission> one, reader_.next());
      if (!one) break;
      SK_TRY(run_one(std::move(*one)).with_context(fmt::format("submission {}", reader_.index())));
    }
    return {};
  }
  const std::string& cut_off() const { return reader_.cut_off(); }
  const std::vector<Written>& written() const { return written_; }
  const std::vector<Unwritten>& unwritten() const { return unwritten_; }
  uint64_t jobs_beside() const { return jobs_beside_; }
  uint64_t overlaps() const { return overlaps_; }                        // how often both had jobs at the same time
  const std::string& problem_beside() const { return problem_beside_; }  // error in their results
  bool differs() const {
    return std::ranges::any_of(written_, [](const Written& one) { return one.differing.value_or(0) != 0; });
  }
  std::string other_side() const {
    for (const std::string& named : {options_.expect, options_.against})
      if (!named.empty()) return named;
    if (beside_) return "alone";
    return changes_.empty() ? "" : "without --set";
  }

 private:
  // Checks before the first run that everything named by the options exists.
  Result<void> try_options() {
    size_t submissions = 0;
    while (true) {
      auto one = reader_.next();
      if (!one.ok() || !*one) break;  // the error is reported when it is read again
      ++submissions;
      SK_TRY(fill_all(**one));
      SK_TRY(change(**one));
      if (!options_.expect.empty()) SK_TRY(check_expected(**one));
    }
    reader_.rewind();
    for (const Change& one : changes_) {
      if (!one.is_done || one.has_field) SK_TRY(problem_of(one, submissions));
    }
    for (const GivenInput& one : inputs_) {
      if (!one.is_used)
        return error(ErrorCode::invalid_argument, "--input: no submission has a buffer {} without contents",
                     one.handle);
    }
    return {};
  }

  Result<void> check_expected(const capture::Submission& one) const {
    for (const capture::BufferSnapshot& buffer : one.buffers) {
      const std::string path = options_.expect + "/" + file_of(buffer);
      std::error_code ignored;
      if (buffer.listed && buffer.write && !std::filesystem::exists(path, ignored))
        return error(ErrorCode::io, "--expect: {}: {}", path, std::strerror(ENOENT));
    }
    return {};
  }

  std::string file_of(const capture::BufferSnapshot& buffer) const {
    return fmt::format("submission{}_buffer{}.bin", reader_.index(), buffer.handle);
  }

  Result<void> fill_all(capture::Submission& one) {
    for (capture::BufferSnapshot& buffer : one.buffers) {
      for (GivenInput& input : inputs_) SK_TRY(fill(input, buffer));
    }
    return {};
  }

  Result<void> run_one(capture::Submission one) {
    SK_TRY(fill_all(one));
    note_missing(one);
    capture::Submission changed = one;
    SK_TRY(change(changed));
    const Progress progress(fmt::format("running submission {}", reader_.index()));
    if (!beside_) SK_TRY(run_on(device_, options_.device, changed));
    if (other_) {
      const std::string& name = options_.against.empty() ? options_.device : options_.against;
      const bool is_same = options_.against.empty() && !beside_;  // except for --set
      SK_TRY(run_on(*other_, name, is_same ? one : changed).with_context("the other side"));
    }
    if (beside_) SK_TRY(run_beside(changed));
    const auto writers = find_writers(changed);
    for (const capture::BufferSnapshot& buffer : changed.buffers) {
      if (buffer.listed && buffer.write) SK_TRY(note(buffer, writers));
    }
    return {};
  }

  Result<void> run_beside(const capture::Submission& submission) {
    constexpr uint64_t kTimes = 100, kMostTimes = 1000;  // more than kTimes only until both had jobs at the same time
    kernels::Overlaps overlaps;
    Result<void> done;
    bool same = true;
    device_.replayer->count_overlaps(&overlaps);
    beside_->begin(overlaps);
    const size_t lost = unwritten_.size();
    const auto goes_on = [&] { return done.ok() && same && unwritten_.size() == lost; };
    const auto is_short = [&](uint64_t i) {
      return i < kTimes || !beside_->has_run(kTimes) || (overlaps.count() == 0 && i < kMostTimes);
    };
    for (uint64_t i = 0; is_short(i) && goes_on(); ++i) {
      done = run_on(device_, options_.device, submission);
      for (const auto& one : submission.buffers) {
        if (!done.ok() || !one.listed || !one.write) continue;
        SK_TRY_ASSIGN(const auto bytes, device_.replayer->contents(one.handle));
        same = same && std::ranges::equal(bytes, other_->replayer->contents(one.handle).value());
      }
    }
    auto ended = beside_->end(jobs_beside_).with_context(options_.beside);
    device_.replayer->count_overlaps(nullptr);
    overlaps_ += overlaps.count();
    SK_TRY(done);
    SK_TRY_ASSIGN(problem_beside_, std::move(ended));
    return {};
  }

  // Empty if the submission cannot be decoded: a device may still take it.
  std::vector<Writer> find_writers(const capture::Submission& submission) {
    const auto decoded = device_.core.driver->decode(device_.core.chip, submission);
    if (!decoded.ok()) return {};
    return writers_of(*decoded, submission, ops_ ? ops_->of(*decoded) : std::vector<std::string>{});
  }

  // Warns of contents that were neither recorded nor written by an earlier submission: they become zeros,
  // which are seldom right.
  void note_missing(const capture::Submission& one) {
    for (const capture::BufferSnapshot& buffer : one.buffers) {
      const bool is_missing = buffer.listed && buffer.read && buffer.content == capture::Content::unknown;
      if (is_missing && known_.insert(buffer.handle).second)
        complain(
            fmt::format("submission {}: contents of buffer {} ({} bytes) were not recorded: zeros are used; give them "
                        "with --input {}=FILE",
                        reader_.index(), buffer.handle, buffer.size_bytes, buffer.handle));
      if (buffer.listed) known_.insert(buffer.handle);
    }
  }

  Result<void> run_on(Device& device, const std::string& name, const capture::Submission& submission) {
    SK_TRY_ASSIGN(const std::vector<std::string> unwritten, device.checked.run(submission));
    if (!unwritten.empty()) unwritten_.push_back({reader_.index(), name, unwritten});
    return {};
  }

  static Result<void> fill(GivenInput& input, capture::BufferSnapshot& buffer) {
    if (buffer.handle != input.handle || buffer.content != capture::Content::unknown) return {};
    if (input.bytes.size() > buffer.size_bytes)
      return error(ErrorCode::invalid_argument, "--input: {} bytes for buffer {} of {}", input.bytes.size(),
                   buffer.handle, buffer.size_bytes);
    buffer.content = capture::Content::bytes;
    buffer.bytes = input.bytes;
    input.is_used = true;
    return {};
  }

  // A field without a submission is set in every submission that has it.
  Result<void> change(capture::Submission& submission) {
    for (Change& one : changes_) {
      if (one.submission && *one.submission != reader_.index()) continue;
      const auto done = npu::set_field(*device_.core.driver, device_.core.chip, submission, one.path, one.value);
      if (done.ok())
        one.is_done = true;
      else if (one.submission)
        return done.error();
      else
        add_problem(one, submission, done.error());
    }
    return {};
  }

  // Keeps the problem of the submission that has the field; else the longest message, which names the most similar
  // fields.
  void add_problem(Change& change, const capture::Submission& submission, const Error& problem) const {
    const bool has_field = npu::has_field(*device_.core.driver, device_.core.chip, submission, change.path);
    const bool is_better = !change.problem || (has_field && !change.has_field) ||
                           (has_field == change.has_field && problem.message.size() > change.problem->message.size());
    if (!is_better) return;
    change.problem = problem;
    change.problem_at = reader_.index();
    change.has_field = has_field;
  }

  static Result<void> problem_of(const Change& change, size_t submissions) {
    if (change.submission && !change.problem)
      return error(ErrorCode::invalid_argument, "--set: there is no submission {}", *change.submission);
    if (!change.problem) return {};
    if (submissions == 1) return *change.problem;
    return error(ErrorCode::invalid_argument,
                 "--set: there are {} submissions; name one, such as --set \"{}:{}={}\": {}", submissions,
                 change.problem_at, change.path, change.value, change.problem->message);
  }

  Result<void> note(const capture::BufferSnapshot& buffer, const std::vector<Writer>& writers) {
    SK_TRY_ASSIGN(std::span<const uint8_t> bytes, device_.replayer->contents(buffer.handle));
    bytes = bytes.first(std::min<size_t>(bytes.size(), buffer.size_bytes));
    Written row{.submission = reader_.index(),
                .handle = buffer.handle,
                .size_bytes = bytes.size(),
                .hash = XXH64(bytes.data(), bytes.size(), 0),
                .differing = {},
                .first = 0,
                .largest = 0,
                .writers = {},
                .writer = {}};
    std::ranges::copy_if(writers, std::back_inserter(row.writers),
                         [&](const Writer& one) { return one.handle == buffer.handle; });
    const std::string name = file_of(buffer);
    if (other_) {
      SK_TRY_ASSIGN(const auto others, other_->replayer->contents(buffer.handle));
      count_differences(bytes, others.first(std::min(others.size(), bytes.size())), row);
    } else if (!options_.expect.empty()) {
      SK_TRY_ASSIGN(const Bytes expected, read_file(options_.expect + "/" + name));
      count_differences(bytes, expected, row);
    }
    if (!options_.output.empty()) {
      std::error_code failure;
      std::filesystem::create_directories(options_.output, failure);
      if (failure) return error(ErrorCode::io, "{}: {}", options_.output, failure.message());
      SK_TRY(write_file(options_.output + "/" + name, bytes));
    }
    written_.push_back(std::move(row));
    return {};
  }

  const Options& options_;
  capture::Reader reader_;
  Device device_;
  std::optional<Device> other_;
  std::vector<Change> changes_;
  std::vector<GivenInput> inputs_;
  std::vector<Written> written_;
  std::set<uint32_t> known_;  // buffers of earlier submissions
  std::vector<Unwritten> unwritten_;
  std::optional<ModelOps> ops_;
  std::unique_ptr<Beside> beside_;
  uint64_t jobs_beside_ = 0, overlaps_ = 0;
  std::string problem_beside_;
};

void print(const Options& options, const Replays& replays) {
  const std::string other = replays.other_side();
  if (options.json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Written& one : replays.written()) rows.push_back(json_of(one));
    nlohmann::json missing = nlohmann::json::array();
    for (const Unwritten& one : replays.unwritten())
      missing.push_back({{"submission", one.submission}, {"device", one.device}, {"fields", one.paths}});
    return out_report({{"device", options.device},
                       {"compared_with", other},
                       {"jobs_beside", replays.jobs_beside()},
                       {"overlaps", replays.overlaps()},
                       {"written", rows},
                       {"not_written", missing}});
  }
  TextTable table(
      {"submission", "buffer", "bytes", "written by", "hash", other.empty() ? "" : "differs from " + other});
  for (const Written& one : replays.written())
    table.add({fmt::format("{}", one.submission), fmt::format("{}", one.handle), print_count(one.size_bytes),
               writers_text(one), fmt::format("{:016x}", one.hash), difference_text(one)});
  out("what {} wrote\n{}", options.device, table.print());
  if (!options.beside.empty())
    out("beside {} jobs of {}; jobs of both ran at the same time {} times\n", print_count(replays.jobs_beside()),
        options.beside, print_count(replays.overlaps()));
}

Result<void> replay(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(capture::Reader reader, open_jobs(options.path));
  const capture::DeviceInfo recorded = reader.device();
  SK_TRY_ASSIGN(const npu::Chip chip, chip_of(recorded, "").with_context(options.path));
  const bool is_beside = !options.beside.empty();
  SK_TRY_ASSIGN(Device device, open_device(options.device, chip, recorded, is_beside));
  std::optional<Device> other;
  if (!options.against.empty() || is_beside || (!options.set.empty() && options.expect.empty())) {
    const std::string& name = options.against.empty() ? options.device : options.against;
    SK_TRY_ASSIGN(other, open_device(name, chip, recorded, is_beside));
  }
  Replays replays(options, std::move(reader), std::move(device), std::move(other));
  SK_TRY(replays.prepare());
  outcome.begin();
  SK_TRY(replays.run().with_context(options.path));
  print(options, replays);
  if (!replays.cut_off().empty()) log::warning("{}", replays.cut_off());
  for (const Unwritten& one : replays.unwritten())
    log::warning("submission {}: {} reported its end, but wrote nothing at {}{}", one.submission, one.device,
                 one.paths[0], one.paths.size() == 1 ? "" : fmt::format(" and {} others", one.paths.size() - 1));
  if (!replays.problem_beside().empty()) log::warning("{}: {}", options.beside, replays.problem_beside());
  const bool is_apart = is_beside && replays.overlaps() == 0;
  if (is_apart)
    log::warning("{}: its jobs and those of {} never ran at the same time, so they were not tested together",
                 options.beside, options.path);
  if (replays.differs() || !replays.cut_off().empty() || !replays.unwritten().empty() ||
      !replays.problem_beside().empty() || is_apart)
    outcome.exit_code = kFailed;
  return {};
}

}  // namespace

void add_replay(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb(
      "replay",
      "Run recorded jobs again, at the recorded addresses, and show what they write. --set changes a field first and\n"
      "compares with the unchanged jobs.\n"
      "Examples:\n"
      "  skillet replay tests/captures/a311d_conv1x1_relu6_u8 --device sim:a311d --input 3=input.bin\n"
      "  skillet replay run.capture --device sim:a311d --set 'FIELD=7'");
  verb.option("PATH", options->path, "capture file, or a folder that holds capture.json").required();
  verb.option("--device", options->device, "device to run them on: sim:CHIP, npu, /dev/...").required();
  const Option against = verb.option("--against", options->against, "run them on this device too, and compare");
  verb.option("--beside", options->beside,
              "run them 100 times while jobs of this capture run on another core, and compare with running alone")
      .excludes(against);
  verb.option("--set", options->set,
              "FIELD=VALUE, as skillet decode names fields; N:FIELD=VALUE: only in submission N (may be given again)")
      .one_at_a_time();
  verb.option("--input", options->inputs,
              "BUFFER=FILE: contents of a buffer that were not recorded (may be given again)")
      .one_at_a_time();
  verb.option("--output", options->output, "write the buffers that jobs write to this folder").check(not_empty());
  verb.option("--expect", options->expect, "compare them with such a folder")
      .check(existing_folder())
      .excludes(against)
      .excludes("--beside");
  verb.option("--model", options->model, "the .tflite file that was run, to name the operation of each job");
  verb.flag("--json", options->json, "machine-readable output");
  runs_jobs(verb, outcome, [options, &outcome] { return replay(*options, outcome); });
}

}  // namespace skillet::tools
