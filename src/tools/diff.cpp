// `skillet diff`: the fields in which two captures differ.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tools/decoded.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string path_a, path_b, chip;
  bool json = false;
};

// One field that is not the same on both sides; an empty side does not have it.
struct Difference {
  size_t submission = 0;
  std::string path, a, b;
};

std::string printed(const driver::AnnotatedField& field) {
  return field.raw.empty() || field.raw == field.value ? field.value : fmt::format("{} ({})", field.value, field.raw);
}

void diff_submission(size_t index, const driver::Annotated& a, const driver::Annotated& b,
                     std::vector<Difference>& out) {
  std::map<std::string_view, const driver::AnnotatedField*> of_b;
  for (const driver::AnnotatedField& field : b.fields) of_b.emplace(field.path, &field);
  for (const driver::AnnotatedField& field : a.fields) {
    const auto other = of_b.find(field.path);
    if (other == of_b.end()) {
      out.push_back({index, field.path, printed(field), ""});
      continue;
    }
    if (printed(field) != printed(*other->second))
      out.push_back({index, field.path, printed(field), printed(*other->second)});
    of_b.erase(other);
  }
  for (const driver::AnnotatedField& field : b.fields)
    if (of_b.contains(field.path)) out.push_back({index, field.path, "", printed(field)});
}

std::vector<Difference> diff_captures(const DecodedCapture& a, const DecodedCapture& b) {
  static const driver::Annotated kNothing;
  std::vector<Difference> out;
  for (size_t i = 0; i < std::max(a.submissions.size(), b.submissions.size()); ++i)
    diff_submission(i, i < a.submissions.size() ? a.submissions[i] : kNothing,
                    i < b.submissions.size() ? b.submissions[i] : kNothing, out);
  return out;
}

void print_text(const Options& options, const std::vector<Difference>& differences) {
  if (differences.empty()) {
    fmt::print("no field differs\n");
    return;
  }
  fmt::print("a: {}\nb: {}\n", options.path_a, options.path_b);
  size_t submission = SIZE_MAX;
  for (const Difference& difference : differences) {
    if (difference.submission != submission) fmt::print("\nsubmission {}\n", submission = difference.submission);
    fmt::print("  {}: {} -> {}\n", difference.path, difference.a.empty() ? "(none)" : difference.a,
               difference.b.empty() ? "(none)" : difference.b);
  }
  fmt::print("\n{} fields differ\n", differences.size());
}

void print_json(const Options& options, const std::vector<Difference>& differences) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Difference& row : differences)
    rows.push_back({{"submission", row.submission}, {"path", row.path}, {"a", row.a}, {"b", row.b}});
  fmt::print("{}\n", nlohmann::json{{"a", options.path_a}, {"b", options.path_b}, {"differences", rows}}.dump(2));
}

Result<void> diff(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(const DecodedCapture a, decode_capture(options.path_a, options.chip));
  SK_TRY_ASSIGN(const DecodedCapture b, decode_capture(options.path_b, options.chip));
  const std::vector<Difference> differences = diff_captures(a, b);
  if (options.json)
    print_json(options, differences);
  else
    print_text(options, differences);
  outcome.exit_code = differences.empty() ? 0 : 1;
  return {};
}

}  // namespace

void add_diff(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("diff",
                         "Compare two captures by their decoded fields. Exit code 1 when any field differs.\n"
                         "Example: skillet diff ours.skcap tests/captures/a311d_conv1x1_relu6_u8");
  verb->add_option("A", options->path_a, "capture file, or a folder that holds capture.json")->required();
  verb->add_option("B", options->path_b, "the other one")->required();
  verb->add_option("--chip", options->chip, "decode both as this chip, whatever they say");
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->callback([options, &outcome] { outcome.finish(diff(*options, outcome)); });
}

}  // namespace skillet::tools
