#include "tools/diff_side.h"

#include <filesystem>

#include "compile/compile.h"
#include "frontend/tflite/import.h"
#include "runtime/address_check.h"
#include "runtime/record_program.h"
#include "tools/decoded.h"

namespace skillet::tools {
namespace {

Result<DiffSide> recorded(std::string kind, const driver::Chip& chip, std::vector<runtime::ProgramToRecord> programs) {
  SK_TRY_ASSIGN(runtime::RecordedPrograms done, runtime::record_programs(chip.name, std::move(programs)));
  return DiffSide{std::move(kind), capture::Reader::of(std::move(done.capture)), chip, true};
}

Result<DiffSide> from_model(const std::string& path, const std::optional<driver::Chip>& chip,
                            const driver::CompileOptions& options) {
  if (!chip) return error(ErrorCode::invalid_argument, "for which chip? use --chip");
  SK_TRY_ASSIGN(ir::Graph graph, tflite::import_file(path));
  SK_TRY_ASSIGN(const driver::Driver* driver, driver::driver_of(*chip));
  compile::Options all{.driver = options, .leave_out = false};
  all.driver.allow_unproven = true;
  SK_TRY_ASSIGN(compile::Compiled compiled, compile::compile(std::move(graph), {driver, *chip}, all));
  std::vector<runtime::ProgramToRecord> programs;
  for (compile::Part& part : compiled.parts) {
    if (part.program && !part.program->jobs.empty())
      programs.push_back({std::move(*part.program), &part.partition.graph, {}});
  }
  return recorded("model", *chip, std::move(programs));
}

Result<DiffSide> from_program(driver::Program program) {
  SK_TRY_ASSIGN(const driver::Chip chip, driver::find_chip(program.chip));
  SK_TRY_ASSIGN(const driver::Driver* driver, driver::driver_of(chip));
  SK_TRY(runtime::check_addresses(*driver, chip, program));
  std::vector<runtime::ProgramToRecord> programs;
  programs.push_back({std::move(program), nullptr, {}});
  return recorded("program", chip, std::move(programs));
}

// A capture that we recorded of our own devices names its chip; sizes are then those that a program asked for.
Result<DiffSide> from_capture(const std::string& path) {
  SK_TRY_ASSIGN(capture::Reader reader, capture::Reader::open(path));
  // What is lost could be where the two differ.
  if (!reader.cut_off().empty()) return error(ErrorCode::io, "{}", reader.cut_off());
  std::optional<driver::Chip> known;
  if (auto chip = chip_of(reader.device(), ""); chip.ok()) known = *chip;
  std::error_code ignored;
  return DiffSide{"capture", std::move(reader), known, !std::filesystem::is_directory(path, ignored)};
}

}  // namespace

Result<DiffSide> load_side(const std::string& path, const std::optional<driver::Chip>& chip,
                           const driver::CompileOptions& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return from_capture(path);
  if (path.ends_with(".tflite")) return from_model(path, chip, options).with_context(path);
  auto capture = from_capture(path);
  if (capture.ok() || capture.error().code != ErrorCode::malformed) return capture;
  SK_TRY_ASSIGN(Bytes file, read_file(path));
  auto program = driver::deserialise(std::move(file));
  if (program.ok()) return from_program(std::move(program).value()).with_context(path);
  return error(ErrorCode::malformed, "{}: neither a capture ({}) nor a program ({})", path, capture.error().message,
               program.error().message);
}

}  // namespace skillet::tools
