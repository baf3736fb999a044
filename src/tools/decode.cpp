// `skillet decode`: what a captured program sent to the chip, field by field.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "capture/reader.h"
#include "tools/decoded.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string path, chip;
  int submission = -1, last = 0;
  bool json = false;
};

nlohmann::json to_json(const driver::Annotated& submission, size_t index) {
  nlohmann::json fields = nlohmann::json::array();
  for (const driver::AnnotatedField& field : submission.fields)
    fields.push_back({{"path", field.path}, {"value", field.value}, {"raw", field.raw}, {"unknown", field.unknown}});
  return {{"submission", index}, {"fields", std::move(fields)}};
}

// One document, written as it goes: a long capture is more than fits into memory.
class JsonPrinter {
 public:
  JsonPrinter(const driver::Chip& chip, const capture::Reader& reader) {
    nlohmann::json head = {{"chip", chip.name}, {"kernel_driver", reader.device().kernel_driver}};
    if (!reader.cut_off().empty()) head["cut_off"] = reader.cut_off();
    std::string text = json_text(head);
    text.resize(text.rfind("\n}"));
    out("{},\n  \"submissions\": [", text);
  }
  void add(const driver::Annotated& submission, size_t index) {
    out("{}\n{}", is_first_ ? "" : ",", json_text(to_json(submission, index)));
    is_first_ = false;
  }
  void finish() const { out("  ]\n}\n"); }

 private:
  bool is_first_ = true;
};

Result<capture::Reader> open_reader(const Options& options) {
  SK_TRY_ASSIGN(capture::Reader reader, capture::Reader::open(options.path));
  if (!reader.cut_off().empty()) log::warning("{}", reader.cut_off());
  if (options.submission >= static_cast<int64_t>(reader.count()))
    return error(ErrorCode::invalid_argument, "{} has {} submissions (counted from 0), no {}", options.path,
                 reader.count(), options.submission);
  if (options.last > 0) reader.only_last(static_cast<size_t>(options.last));
  return reader;
}

Result<void> decode(const Options& options, Outcome& outcome) {
  SK_TRY_ASSIGN(capture::Reader reader, open_reader(options));
  SK_TRY_ASSIGN(const driver::Chip chip, chip_of(reader.device(), options.chip).with_context(options.path));
  SK_TRY_ASSIGN(const driver::Driver* driver, driver::driver_of(chip));
  outcome.begin();
  std::optional<JsonPrinter> json;
  if (options.json)
    json.emplace(chip, reader);
  else
    out("{} ({}), {} submissions\n", chip.name, chip.title, reader.count());
  while (true) {
    SK_TRY_ASSIGN(const std::optional<capture::Submission> one, reader.next().with_context(options.path));
    if (!one) break;
    if (options.submission >= 0 && static_cast<size_t>(options.submission) != reader.index()) continue;
    auto decoded = driver->decode(chip, *one);
    if (!decoded.ok())
      return std::move(decoded).error().with_context(fmt::format("{}: submission {}", options.path, reader.index()));
    if (json)
      json->add(*decoded, reader.index());
    else
      out("\nsubmission {}\n{}", reader.index(), decoded->text);
  }
  if (json) json->finish();
  if (!reader.cut_off().empty()) outcome.exit_code = kFailed;
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
  auto* one = verb->add_option("--submission", options->submission, "only this one, counted from 0")
                  ->check(whole_number(0, INT32_MAX));
  verb->add_option("--last", options->last, kLastHelp)->check(whole_number(1, INT32_MAX))->excludes(one);
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->callback([options, &outcome] { outcome.finish(decode(*options, outcome)); });
}

}  // namespace skillet::tools
