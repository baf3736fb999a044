// `skillet edit`: converts a capture to an editable text, and back.
#include <nlohmann/json.hpp>

#include "tools/cli/verbs.h"
#include "tools/jobs/edit_text.h"
#include "tools/run/apart.h"
#include "tools/show/output.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string path, output, chip;
  bool json = false;
};

void report(const Options& options, const char* made, size_t submissions) {
  if (options.json)
    out_report({{"path", options.path}, {"output", options.output}, {"made", made}, {"submissions", submissions}});
}

Result<void> edit(const Options& options, Outcome& outcome) {
  SK_TRY(check_apart({{"PATH", options.path}}, {{"--output", options.output}}));
  SK_TRY(check_place(options.output));
  SK_TRY_ASSIGN(capture::Reader reader, open_jobs(options.path, options.chip));
  // A capture that was cut off is refused: the lost part could not be restored.
  if (!reader.cut_off().empty()) return error(ErrorCode::io, "{}", reader.cut_off());
  if (is_edit_text(options.path)) {
    SK_TRY_ASSIGN(const capture::Capture capture, capture::read_all(reader).with_context(options.path));
    outcome.begin();
    SK_TRY(capture::write(capture, options.output));
    report(options, "capture", capture.submissions.size());
    return {};
  }
  SK_TRY_ASSIGN(const std::string text, edit_text(reader, options.chip).with_context(options.path));
  outcome.begin();
  SK_TRY(write_file(options.output, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  report(options, "text", reader.count());
  return {};
}

}  // namespace

void add_edit(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("edit",
                             "Write a capture as a text of named fields and words, or such a text as a capture.\n"
                             "skillet replay, decode and diff take the text as it is.\n"
                             "Examples:\n"
                             "  skillet edit tests/captures/a311d_conv1x1_relu6_u8 -o job.txt\n"
                             "  skillet replay job.txt --device sim:a311d\n"
                             "  skillet edit job.txt -o job.skcap");
  verb.option("PATH", options->path, "capture file, folder that holds capture.json, or text of this verb").required();
  verb.option("-o,--output", options->output, "the text, or the capture").required().check(not_empty());
  verb.option("--chip", options->chip, "read it as this chip, whichever it names (see skillet devices)");
  verb.flag("--json", options->json, "machine-readable output: what was written");
  verb.runs([options, &outcome] { outcome.finish(edit(*options, outcome)); });
}

}  // namespace skillet::tools
