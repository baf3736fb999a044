// `skillet decode`: what a captured program sent to the chip, field by field.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/decoded.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string path, chip;
  int submission = -1;
  bool json = false;
};

nlohmann::json to_json(const DecodedCapture& capture, int only) {
  nlohmann::json submissions = nlohmann::json::array();
  for (size_t i = 0; i < capture.submissions.size(); ++i) {
    if (only >= 0 && static_cast<size_t>(only) != i) continue;
    nlohmann::json fields = nlohmann::json::array();
    for (const driver::AnnotatedField& field : capture.submissions[i].fields)
      fields.push_back({{"path", field.path}, {"value", field.value}, {"raw", field.raw}, {"unknown", field.unknown}});
    submissions.push_back({{"submission", i}, {"fields", std::move(fields)}});
  }
  return {{"chip", capture.chip.name}, {"kernel_driver", capture.device.kernel_driver}, {"submissions", submissions}};
}

Result<void> decode(const Options& options) {
  SK_TRY_ASSIGN(const DecodedCapture capture, decode_capture(options.path, options.chip));
  if (options.submission >= static_cast<int>(capture.submissions.size()))
    return error(ErrorCode::invalid_argument, "{} has {} submissions (counted from 0), no {}", options.path,
                 capture.submissions.size(), options.submission);
  if (options.json) {
    out_json(to_json(capture, options.submission));
    return {};
  }
  out("{} ({}), {} submissions\n", capture.chip.name, capture.chip.title, capture.submissions.size());
  for (size_t i = 0; i < capture.submissions.size(); ++i) {
    if (options.submission >= 0 && static_cast<size_t>(options.submission) != i) continue;
    out("\nsubmission {}\n{}", i, capture.submissions[i].text);
  }
  return {};
}

}  // namespace

void add_decode(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("decode",
                                      "Print a capture, command by command and field by field.\n"
                                      "Example: skillet decode tests/captures/a311d_conv1x1_relu6_u8");
  verb->add_option("PATH", options->path, "capture file, or a folder that holds capture.json")->required();
  verb->add_option("--chip", options->chip, "decode as this chip, whatever the capture says (see skillet devices)");
  verb->add_option("--submission", options->submission, "only this one, counted from 0")->check(CLI::NonNegativeNumber);
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->callback([options, &outcome] { outcome.finish(decode(*options)); });
}

}  // namespace skillet::tools
