// `skillet diff`: compares the device commands of two captures, programs or models.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/cli/verbs.h"
#include "tools/jobs/decoded.h"
#include "tools/jobs/diff_side.h"

namespace skillet::tools {
namespace {

constexpr int kSame = 0, kDiffers = 1, kTrouble = 2;

struct Options {
  std::string path_a, path_b, chip, tuning;
  int last = 0;
  bool json = false;
};

std::string_view kind_name(npu::DifferenceKind kind) {
  static constexpr std::string_view kNames[] = {"jobs", "fields", "bytes"};
  return kNames[static_cast<size_t>(kind)];
}
constexpr npu::DifferenceKind kKinds[] = {npu::DifferenceKind::job, npu::DifferenceKind::field,
                                          npu::DifferenceKind::bytes};

void print_kind(const npu::CaptureComparison& comparison, npu::DifferenceKind kind) {
  if (comparison.count(kind) == 0) return;
  out("\n{}\n", kind_name(kind));
  for (const npu::Difference& d : comparison.differences) {
    if (d.kind == kind)
      out("  submission {} {}: {} -> {}\n", d.submission, d.path, d.a.empty() ? "(none)" : d.a,
          d.b.empty() ? "(none)" : d.b);
  }
}

void print_text(const Options& options, const npu::CaptureComparison& comparison) {
  if (comparison.same()) {
    out("no field differs\n");
    return;
  }
  out("a: {}\nb: {}\n\n", options.path_a, options.path_b);
  for (const auto kind : kKinds)
    out("{} {} {}\n", comparison.count(kind), kind_name(kind),
        kind == npu::DifferenceKind::job ? "added or gone" : "differ");
  for (const std::string& line : comparison.jobs) out("{}\n", line);
  for (const auto kind : kKinds) print_kind(comparison, kind);
}

void print_json(const Options& options, const npu::CaptureComparison& comparison) {
  nlohmann::json rows = nlohmann::json::array(), counts;
  for (const auto kind : kKinds) counts[std::string(kind_name(kind))] = comparison.count(kind);
  for (const npu::Difference& d : comparison.differences)
    rows.push_back(
        {{"kind", kind_name(d.kind)}, {"submission", d.submission}, {"path", d.path}, {"a", d.a}, {"b", d.b}});
  out_report({{"a", options.path_a},
              {"b", options.path_b},
              {"same", comparison.same()},
              {"counts", counts},
              {"differences", rows}});
}

// The tuning for compiling a model: `recorded` to compare with a folder, which has recorded jobs.
npu::Tuning tuning_of(const Options& options) {
  if (!options.tuning.empty()) return *npu::tuning_from_name(options.tuning);
  std::error_code ignored;
  const bool is_recorded =
      std::filesystem::is_directory(options.path_a, ignored) || std::filesystem::is_directory(options.path_b, ignored);
  return is_recorded ? npu::Tuning::recorded : npu::Tuning::proven;
}

bool is_one_hardware(const DiffSide& a, const DiffSide& b) {
  const auto driver = npu::driver_of(*a.chip);
  return a.chip->name == b.chip->name ||
         (driver.ok() && is_same_hardware(**driver, a.reader.device(), b.reader.device()));
}

Result<npu::CaptureComparison> compare_paths(const Options& options) {
  const npu::CompileOptions compile{.tuning = tuning_of(options)};
  std::optional<npu::Chip> chip;
  if (!options.chip.empty()) SK_TRY_INTO(chip, npu::find_chip(options.chip));
  // Loads the side that determines the chip first: the other one may be a model.
  const bool b_first = options.path_a.ends_with(".tflite");
  SK_TRY_ASSIGN(DiffSide first, load_side(b_first ? options.path_b : options.path_a, chip, compile));
  if (!chip) chip = first.chip;
  SK_TRY_ASSIGN(DiffSide second, load_side(b_first ? options.path_a : options.path_b, chip, compile));
  if (!chip) chip = second.chip;
  if (options.chip.empty() && first.chip && second.chip && !is_one_hardware(first, second))
    return error(ErrorCode::invalid_argument, "{} is for {} and {} for {} (--chip reads both as one of them)",
                 b_first ? options.path_b : options.path_a, first.chip->name, b_first ? options.path_a : options.path_b,
                 second.chip->name);
  if (!chip) return error(ErrorCode::unsupported, "no driver knows the recorded devices (use --chip)");
  DiffSide &a = b_first ? second : first, &b = b_first ? first : second;
  for (DiffSide* side : {&a, &b}) {
    if (options.last > 0) side->reader.only_last(static_cast<size_t>(options.last));
  }
  return compare(*chip, std::move(a), std::move(b));
}

Result<void> diff(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(const npu::CaptureComparison comparison, compare_paths(options));
  if (options.json)
    print_json(options, comparison);
  else
    print_text(options, comparison);
  outcome.exit_code = comparison.same() ? kSame : kDiffers;
  return {};
}

}  // namespace

void add_diff(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb(
      "diff",
      "Compare the device commands of two captures, programs or models. Ignores addresses and the number of\n"
      "buffers; compares coefficients and tables.\n"
      "Example: skillet diff tests/captures/a311d_conv1x1_relu6_u8 tests/captures/a311d_conv1x1_relu6_u8/model.tflite");
  verb.option("A", options->path_a, "capture file, folder with capture.json, program file or model").required();
  verb.option("B", options->path_b, "the other one").required();
  verb.option("--chip", options->chip, "decode both as this chip, whichever they name");
  verb.option("--tuning", options->tuning,
              "of a model (default: recorded against a folder of recorded jobs, else proven)")
      .check(one_of(npu::kTuningNames));
  verb.option("--last", options->last, kLastHelp).check(whole_number(1, INT32_MAX));
  verb.flag("--json", options->json, "machine-readable output");
  verb.runs([options, &outcome] {
    const auto done = diff(*options, outcome);
    outcome.finish(done);
    if (!done.ok()) outcome.exit_code = kTrouble;
  });
}

}  // namespace skillet::tools
