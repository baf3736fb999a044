#include "tools/jobs/diff_side.h"

#include <filesystem>

#include "capture/hardware.h"
#include "compile/compile.h"
#include "graph/import/import.h"
#include "runtime/address_check.h"
#include "runtime/record_program.h"
#include "tools/jobs/decoded.h"
#include "tools/jobs/edit_text.h"

namespace skillet::tools {
namespace {

void add_tensors(DiffSide& side, std::string_view what, const std::vector<npu::TensorBinding>& bindings,
                 const std::vector<runtime::PlacedTensor>& places) {
  for (size_t i = 0; i < bindings.size(); ++i) {
    const npu::ImageShape& s = bindings[i].shape;
    side.tensors.push_back({fmt::format("{} {}", what, i), places[i].handle, places[i].offset_bytes,
                            fmt::format("{}x{}x{}x{} of {} bytes, {}", s.images, s.height, s.width, s.channels,
                                        s.elem_bytes, npu::print(bindings[i].layout))});
  }
}

Result<DiffSide> recorded(std::string kind, const npu::Chip& chip, std::vector<runtime::ProgramToRecord> programs) {
  std::vector<std::pair<std::vector<npu::TensorBinding>, std::vector<npu::TensorBinding>>> bindings;
  for (const runtime::ProgramToRecord& one : programs) bindings.emplace_back(one.program.inputs, one.program.outputs);
  SK_TRY_ASSIGN(runtime::RecordedPrograms done, runtime::record_programs(chip.name, std::move(programs)));
  DiffSide side{std::move(kind), capture::Reader::of(std::move(done.capture)), chip, true};
  for (size_t i = 0; i < bindings.size(); ++i) {
    add_tensors(side, fmt::format("program {} input", i), bindings[i].first, done.programs[i].inputs);
    add_tensors(side, fmt::format("program {} output", i), bindings[i].second, done.programs[i].outputs);
  }
  return side;
}

Result<DiffSide> from_model(const std::string& path, const std::optional<npu::Chip>& chip,
                            const npu::CompileOptions& options) {
  if (!chip) return error(ErrorCode::invalid_argument, "name the chip with --chip");
  SK_TRY_ASSIGN(ir::Graph graph, tflite::import_file(path));
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(*chip));
  compile::Options all{.driver = options, .leave_out = false};
  all.driver.unproven = npu::Unproven::take;
  SK_TRY_ASSIGN(compile::Compiled compiled, compile::compile(std::move(graph), {driver, *chip}, all));
  std::vector<runtime::ProgramToRecord> programs;
  for (compile::Part& part : compiled.parts) {
    if (part.program && !part.program->jobs.empty())
      programs.push_back({std::move(*part.program), &part.partition.graph, {}});
  }
  return recorded("model", *chip, std::move(programs));
}

// All programs for one chip: the wanted one, or the only one.
Result<DiffSide> from_compiled(const runtime::CompiledModel& model, const std::optional<npu::Chip>& wanted) {
  if (model.programs.empty()) return error(ErrorCode::unsupported, "it has no program");
  if (!wanted && model.chips() != model.programs[0].chip)
    return error(ErrorCode::invalid_argument, "it has programs for {}: name the chip with --chip", model.chips());
  SK_TRY_ASSIGN(const npu::Chip chip, wanted ? Result<npu::Chip>(*wanted) : npu::find_chip(model.programs[0].chip));
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  std::vector<runtime::ProgramToRecord> programs;
  for (const runtime::StoredProgram& one : model.programs) {
    if (one.chip != chip.name) continue;
    SK_TRY_ASSIGN(npu::Program program, npu::deserialise(one.file));
    SK_TRY(runtime::check_addresses(*driver, chip, program));
    programs.push_back({std::move(program), nullptr, {}});
  }
  if (programs.empty())
    return error(ErrorCode::invalid_argument, "it has programs for {}, none for {}", model.chips(), chip.name);
  return recorded("program", chip, std::move(programs));
}

// Captures of our own devices name the chip; their buffer sizes are then those that a program requested.
Result<DiffSide> from_capture(const std::string& path) {
  SK_TRY_ASSIGN(capture::Reader reader, open_jobs(path));
  // A capture that was cut off is refused: the difference may be in the lost part.
  if (!reader.cut_off().empty()) return error(ErrorCode::io, "{}", reader.cut_off());
  std::optional<npu::Chip> known;
  if (auto chip = chip_of(reader.device(), ""); chip.ok()) known = *chip;
  std::error_code ignored;
  const bool is_exact = !std::filesystem::is_directory(path, ignored) && !capture::is_of_hardware(reader.device());
  return DiffSide{"capture", std::move(reader), known, is_exact};
}

}  // namespace

Result<DiffSide> load_side(const std::string& path, const std::optional<npu::Chip>& chip,
                           const npu::CompileOptions& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return from_capture(path);
  if (path.ends_with(".tflite")) return from_model(path, chip, options).with_context(path);
  auto capture = from_capture(path);
  if (capture.ok() || capture.error().code != ErrorCode::malformed) return capture;
  SK_TRY_ASSIGN(const bool is_compiled, runtime::is_compiled_model(path));
  if (!is_compiled)
    return error(ErrorCode::malformed, "{}: neither a capture ({}) nor a compiled model", path,
                 capture.error().message);
  SK_TRY_ASSIGN(Bytes file, read_file(path));
  SK_TRY_ASSIGN(runtime::CompiledModel model, runtime::read_compiled(std::move(file)).with_context(path));
  SK_TRY_ASSIGN(DiffSide side, from_compiled(model, chip).with_context(path));
  side.compiled = std::move(model);
  return side;
}

Result<npu::CaptureComparison> compare(const npu::Chip& chip, DiffSide a, DiffSide b) {
  SK_TRY_ASSIGN(const npu::Driver* driver, npu::driver_of(chip));
  if (a.tensors.empty() || b.tensors.empty()) a.tensors = b.tensors = {};
  const auto side = [](DiffSide& of) {
    const bool is_of_hardware = capture::is_of_hardware(of.reader.device());
    return npu::ComparedSide{std::move(of.reader), std::move(of.tensors), of.exact_sizes, is_of_hardware};
  };
  if (capture::is_of_hardware(a.reader.device()) && !capture::is_of_hardware(b.reader.device()))
    return error(ErrorCode::invalid_argument, "a capture of the hardware ({}) must be the second one",
                 a.reader.device().node);
  return npu::compare(*driver, chip, side(a), side(b));
}

}  // namespace skillet::tools
