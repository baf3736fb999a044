#include "compile_compare.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "compile_model.h"
#include "fingerprint.h"
#include "golden_case.h"
#include "graph/import/import.h"
#include "inputs.h"
#include "runtime/record_program.h"
#include "twin.h"

namespace skillet::golden {
namespace {

std::string model_path(const std::string& dir, const std::string& name) {
  return fmt::format("{}/models/{}.tflite", dir, name);
}

// Returns the unsigned twin of a signed case, if the recorded driver has one; else "".
Result<std::string> twin_of(const std::string& dir, const std::string& chip, const std::string& name) {
  constexpr std::string_view kSigned = "_i8", kUnsigned = "_u8";
  if (!name.ends_with(kSigned)) return std::string();
  std::string twin = name.substr(0, name.size() - kSigned.size()) + std::string(kUnsigned);
  if (!std::filesystem::exists(fmt::format("{}/{}/{}/capture.json", dir, chip, twin))) return std::string();
  SK_TRY_ASSIGN(const ir::Graph a, tflite::import_file(model_path(dir, name)));
  SK_TRY_ASSIGN(const ir::Graph b, tflite::import_file(model_path(dir, twin)));
  return are_twins(a, b) ? twin : std::string();
}

bool has_job(const capture::Submission& submission) {
  return std::ranges::any_of(submission.buffers, &capture::BufferSnapshot::listed);
}

// Returns the inputs of a case in the device's form: signed values plus 128. Empty if they were not kept.
std::vector<Bytes> device_inputs(const std::string& dir, const std::string& name) {
  const size_t slash = name.find('/');
  auto c = load_case(dir, name.substr(0, slash), name.substr(slash + 1));
  std::vector<Bytes> inputs;
  if (!c.ok()) return inputs;
  for (CaseInput& input : c->inputs) {
    if (input.type == "INT8") std::ranges::for_each(input.bytes, [](uint8_t& byte) { byte ^= 0x80; });
    inputs.push_back(std::move(input.bytes));
  }
  return inputs;
}

// Finds inputs in recorded buffers: by their bytes, or in order at the places where the recording has an input.
class InputSearch {
 public:
  explicit InputSearch(const capture::Submission& submission) : submission_(submission) {}

  std::optional<npu::KnownTensor> find(size_t index, const Bytes& bytes) {
    for (const capture::BufferSnapshot& buffer : submission_.buffers) {
      const uint64_t offset = next_[buffer.handle];
      if (!buffer.listed || !buffer.read || !holds(buffer, offset, bytes)) continue;
      next_[buffer.handle] = offset + bytes.size();
      return npu::KnownTensor{fmt::format("input {}", index), buffer.handle, offset};
    }
    return std::nullopt;
  }

 private:
  // Without recorded bytes, only the place of the first input is certain: at the beginning of the buffer.
  static bool holds(const capture::BufferSnapshot& buffer, uint64_t offset, const Bytes& bytes) {
    if (offset + bytes.size() > buffer.size_bytes) return false;
    if (buffer.content != capture::Content::bytes) return buffer.holds_input && offset == 0;
    Bytes stored(buffer.bytes.begin(), buffer.bytes.end());
    stored.resize(buffer.size_bytes);
    return std::equal(bytes.begin(), bytes.end(), stored.begin() + static_cast<ptrdiff_t>(offset));
  }

  const capture::Submission& submission_;
  std::map<uint32_t, uint64_t> next_;  // by handle: where the next input would begin
};

// Finds inputs, and outputs: buffers that jobs write and never read, in the order of their handles.
std::vector<npu::KnownTensor> recorded_tensors(const capture::Capture& capture, const std::vector<Bytes>& inputs) {
  std::vector<npu::KnownTensor> tensors;
  size_t outputs = 0;
  bool is_first = true;
  for (const capture::Submission& submission : capture.submissions) {
    if (!has_job(submission)) continue;
    InputSearch search(submission);
    for (size_t i = 0; is_first && i < inputs.size(); ++i) {
      if (auto found = search.find(i, inputs[i])) tensors.push_back(std::move(*found));
    }
    is_first = false;
    for (const capture::BufferSnapshot& buffer : submission.buffers) {
      if (buffer.write && !buffer.read) tensors.push_back({fmt::format("output {}", outputs++), buffer.handle, 0});
    }
  }
  return tensors;
}

// Returns inputs as the host writes them: device bytes through the binding's XOR.
std::vector<Bytes> host_inputs(const CompiledPart& part, const std::vector<Bytes>& inputs) {
  std::vector<Bytes> out;
  for (const npu::TensorBinding& binding : part.program.inputs) {
    const auto at = std::ranges::find(part.graph.inputs, binding.tensor) - part.graph.inputs.begin();
    const int32_t index = part.model_inputs[static_cast<size_t>(at)];
    out.emplace_back(binding.shape.bytes());
    if (index < 0 || static_cast<size_t>(index) >= inputs.size()) continue;
    out.back() = inputs[static_cast<size_t>(index)];
    if (part.graph.tensor(binding.tensor).dtype == ir::DType::int8)
      std::ranges::for_each(out.back(), [](uint8_t& byte) { byte ^= 0x80; });
  }
  return out;
}

// Names our tensors: inputs only if their places in the recording are known too, each once.
void name_tensors(const CompiledPart& part, const runtime::RecordedProgram& places, const std::vector<Bytes>& inputs,
                  ComparedCase& out, size_t& outputs) {
  const npu::Program& program = part.program;
  for (size_t i = 0; i < places.inputs.size(); ++i) {
    const auto at = std::ranges::find(part.graph.inputs, program.inputs[i].tensor) - part.graph.inputs.begin();
    const int32_t index = part.model_inputs[static_cast<size_t>(at)];
    const std::string name = fmt::format("input {}", index);
    if (index < 0) ++out.inputs_made_by_cpu;
    if (index >= 0 && static_cast<size_t>(index) < inputs.size())
      out.our_inputs.push_back(
          {{name, places.inputs[i].handle, places.inputs[i].offset_bytes}, inputs[static_cast<size_t>(index)]});
    const bool is_known =
        std::ranges::find(out.recorded_tensors, name, &npu::KnownTensor::name) != out.recorded_tensors.end();
    const bool is_new = std::ranges::find(out.our_tensors, name, &npu::KnownTensor::name) == out.our_tensors.end();
    if (is_known && is_new) out.our_tensors.push_back({name, places.inputs[i].handle, places.inputs[i].offset_bytes});
  }
  for (const runtime::PlacedTensor& place : places.outputs)
    out.our_tensors.push_back({fmt::format("output {}", outputs++), place.handle, place.offset_bytes});
}

// A recording does not show which of the buffers that its jobs also read are outputs.
void forget_outputs_read_by_jobs(ComparedCase& out) {
  const auto is_output = [](const npu::KnownTensor& tensor) { return tensor.name.starts_with("output"); };
  if (std::ranges::count_if(out.recorded_tensors, is_output) == std::ranges::count_if(out.our_tensors, is_output))
    return;
  std::erase_if(out.recorded_tensors, is_output);
  std::erase_if(out.our_tensors, is_output);
}

Result<void> compile_ours(const std::string& path, const npu::Chip& chip, const npu::CompileOptions& options,
                          const std::vector<Bytes>& inputs, ComparedCase& out) {
  SK_TRY_ASSIGN(CompiledModel model, compile_model(path, chip, options));
  out.refusals = std::move(model.refusals);
  std::vector<runtime::ProgramToRecord> programs;
  std::vector<const CompiledPart*> parts;
  for (const CompiledPart& part : model.parts) {
    if (part.program.jobs.empty()) continue;
    programs.push_back({part.program, &part.graph, host_inputs(part, inputs)});
    parts.push_back(&part);
  }
  out.has_our_job = !programs.empty();
  if (programs.empty()) return {};
  SK_TRY_ASSIGN(runtime::RecordedPrograms recorded, runtime::record_programs(chip.name, std::move(programs)));
  out.ours = std::move(recorded.capture);
  size_t outputs = 0;
  for (size_t i = 0; i < parts.size(); ++i) name_tensors(*parts[i], recorded.programs[i], inputs, out, outputs);
  forget_outputs_read_by_jobs(out);
  return {};
}

Result<ComparedCase> prepare_by(const std::string& dir, const npu::Chip& chip, const std::string& name,
                                const std::string& judge, const npu::CompileOptions& options) {
  ComparedCase out;
  const std::string folder = fmt::format("{}/{}/{}", dir, chip.name, judge);
  SK_TRY_ASSIGN(out.recorded, capture::read(folder));
  SK_TRY_ASSIGN(out.recorded_hashes, read_buffer_hashes(folder));
  out.has_recorded_job = std::ranges::any_of(out.recorded.submissions, has_job);
  const std::vector<Bytes> inputs = device_inputs(dir, judge);
  out.recorded_tensors = recorded_tensors(out.recorded, inputs);
  SK_TRY(compile_ours(model_path(dir, name), chip, options, inputs, out));
  return out;
}

Result<void> judge_by(const std::string& dir, const npu::Chip& chip, const std::string& judge,
                      const npu::CompileOptions& options, Outcome& out, InputCounts* counts = nullptr) {
  SK_TRY_ASSIGN(const ComparedCase c, prepare_by(dir, chip, out.name, judge, options));
  if (!c.has_recorded_job) {
    out.outcome = "no_job";
    out.details = {"the recorded driver sent no job"};
    return {};
  }
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  if (!c.has_our_job) {
    out.outcome = "refused";
    out.details = c.refusals;
    SK_TRY_ASSIGN(const uint64_t recorded, fingerprint(*driver, chip, c.recorded_side()));
    out.summary = hash_text(recorded);
    return {};
  }
  SK_TRY_ASSIGN(const npu::CaptureComparison comparison, compare_sides(*driver, chip, c, counts));
  out.outcome = comparison.same() ? "identical" : "differs";
  out.details = detail_lines(comparison);
  SK_TRY_ASSIGN(out.summary, summary_of(*driver, chip, c, comparison));
  return {};
}

// A switch of some drivers: compiles a signed model to the jobs of its twin, on chips where the recorded driver's jobs
// for signed models are wrong.
constexpr std::string_view kTwinSwitch = "unsigned_bytes";

Result<npu::CompileOptions> as_twin(const npu::Chip& chip, npu::CompileOptions options) {
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  if (std::ranges::find(driver->switches(), kTwinSwitch, &npu::TuningSwitch::name) != driver->switches().end())
    options.switches.emplace_back(kTwinSwitch);
  return options;
}

// Compares with the case's own recording, which also shows faults copied from the recorded driver. If the two differ
// and there is a twin, compares with the twin's recording too. Tunings other than `recorded` only need to match the
// twin's.
Result<void> judge(const std::string& dir, const npu::Chip& chip, const npu::CompileOptions& options, Outcome& out,
                   InputCounts* counts) {
  SK_TRY(judge_by(dir, chip, out.name, options, out, counts));
  if (out.outcome != "identical" && out.outcome != "differs") return {};
  SK_TRY_ASSIGN(const std::string twin, twin_of(dir, chip.name, out.name));
  if (twin.empty()) return {};
  SK_TRY_ASSIGN(const npu::CompileOptions raised, as_twin(chip, options));
  Outcome right{.name = out.name};
  SK_TRY(judge_by(dir, chip, out.name, raised, right));
  if (right.outcome != "identical") SK_TRY(judge_by(dir, chip, twin, raised, right));
  if (out.outcome == "identical" || options.tuning != npu::Tuning::recorded)
    out = std::move(right);
  else
    out.summary += right.outcome == "identical" ? "; twin identical" : "; twin " + right.summary;
  return {};
}

}  // namespace

bool ComparedCase::recorded_sizes_are_exact() const {
  constexpr uint64_t kPageBytes = 4096;
  const auto is_exact = [](const capture::BufferSnapshot& buffer) { return buffer.size_bytes % kPageBytes != 0; };
  return std::ranges::any_of(recorded.submissions, [&](const capture::Submission& submission) {
    return std::ranges::any_of(submission.buffers, is_exact);
  });
}

std::vector<std::string> detail_lines(const npu::CaptureComparison& comparison) {
  std::vector<std::string> lines;
  for (const auto kind : {npu::DifferenceKind::job, npu::DifferenceKind::field, npu::DifferenceKind::bytes}) {
    for (const npu::Difference& d : comparison.differences) {
      if (d.kind == kind)
        lines.push_back(fmt::format("{}: recorded {}, ours {}", d.path, d.a.empty() ? "nothing" : d.a,
                                    d.b.empty() ? "nothing" : d.b));
    }
  }
  return lines;
}

std::string hash_text(uint64_t hash) { return fmt::format("{:08x}", static_cast<uint32_t>(hash ^ hash >> 32)); }

Result<std::string> summary_of(const npu::Driver& driver, const npu::Chip& chip, const ComparedCase& c,
                               const npu::CaptureComparison& comparison) {
  if (comparison.same()) return std::string();
  SK_TRY_ASSIGN(const uint64_t recorded, fingerprint(driver, chip, c.recorded_side()));
  SK_TRY_ASSIGN(const uint64_t ours, fingerprint(driver, chip, c.our_side()));
  const auto count = [&](npu::DifferenceKind kind) { return comparison.count(kind); };
  return fmt::format("jobs {}, fields {}, bytes {}, {} {}", count(npu::DifferenceKind::job),
                     count(npu::DifferenceKind::field), count(npu::DifferenceKind::bytes), hash_text(recorded),
                     hash_text(ours));
}

Result<ComparedCase> prepare_case(const std::string& dir, const npu::Chip& chip, const std::string& name,
                                  const npu::CompileOptions& options) {
  return prepare_by(dir, chip, name, name, options);
}

Result<npu::CaptureComparison> compare_sides(const npu::Driver& driver, const npu::Chip& chip, const ComparedCase& c,
                                             InputCounts* counts) {
  SK_TRY_ASSIGN(npu::CaptureComparison comparison, compare(driver, chip, c.recorded_side(), c.our_side()));
  const InputCounts done = compare_inputs(c, comparison);
  if (counts != nullptr) *counts = done;
  return comparison;
}

Result<bool> switch_changes_jobs(const std::string& dir, const npu::Chip& chip, const std::string& name,
                                 std::string_view tuning_switch) {
  npu::CompileOptions options{.tuning = npu::Tuning::recorded, .unproven = npu::Unproven::take};
  SK_TRY_ASSIGN(const ComparedCase off, prepare_by(dir, chip, name, name, options));
  options.switches = {std::string(tuning_switch)};
  SK_TRY_ASSIGN(const ComparedCase on, prepare_by(dir, chip, name, name, options));
  if (off.has_our_job != on.has_our_job) return true;
  if (!off.has_our_job) return false;
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  SK_TRY_ASSIGN(const npu::CaptureComparison comparison, compare(*driver, chip, off.our_side(), on.our_side()));
  return !comparison.same();
}

Outcome compare_case(const std::string& dir, const npu::Chip& chip, const std::string& name,
                     const npu::CompileOptions& options, InputCounts* counts) {
  Outcome out{.name = name};
  if (auto done = judge(dir, chip, options, out, counts); !done.ok()) {
    out.outcome = "failed";
    out.details.push_back(done.error().message);
  }
  return out;
}

}  // namespace skillet::golden
