// `skillet capture`: runs any program and records its submissions to the NPU.
#include <fmt/format.h>

#include <filesystem>

#include "capture/reader.h"
#include "lab/interpose/environment.h"
#include "tools/cli/verbs.h"
#include "tools/jobs/old_capture.h"
#include "tools/jobs/preload.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string path = "capture.skcap";
  std::vector<std::string> command;
  bool trace = false;
};

// PATH, PATH.2, PATH.3, ...: one file for each time that the program opened the device.
std::string numbered(const std::string& path, int number) {
  return number == 1 ? path : fmt::format("{}.{}", path, number);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Sets earlier recordings aside, so that the program's first files get these names.
Result<std::vector<OldCapture>> set_aside_old(const std::string& path) {
  std::vector<OldCapture> old;
  for (int number = 1; number == 1 || exists(numbered(path, number)); ++number) {
    SK_TRY_ASSIGN(OldCapture one, OldCapture::at(numbered(path, number)));
    old.push_back(std::move(one));
  }
  for (OldCapture& one : old) SK_TRY(one.set_aside());
  return old;
}

struct Recorded {
  int files = 0;
  bool whole = true;  // false: recording stopped before the program
};

// Prints a line for each recorded file.
Result<Recorded> report(const std::string& path) {
  int number = 1;
  bool whole = true;
  for (; exists(numbered(path, number)); ++number) {
    SK_TRY_ASSIGN(const capture::Reader recorded, capture::Reader::open(numbered(path, number)));
    if (!recorded.cut_off().empty()) complain(recorded.cut_off());
    whole &= recorded.cut_off().empty() && recorded.count() > 0;
    complain(fmt::format("{}: {} submissions to {}", numbered(path, number), recorded.count(), recorded.device().node));
  }
  if (number == 1)
    complain(
        "nothing was recorded: the program sent no job through a kernel driver that Skillet supports, or none could be "
        "written");
  return Recorded{number - 1, whole};
}

Result<int> run_capture(const Options& options, Outcome& outcome) {
  std::error_code failure;
  const std::string path = fs::absolute(options.path, failure).string();  // the program may change its folder
  if (failure) return error(ErrorCode::io, "{}: {}", options.path, failure.message());
  SK_TRY_ASSIGN(std::vector<OldCapture> old, set_aside_old(path));
  SK_TRY_ASSIGN(const int code,
                run_preloaded({.command = options.command,
                               .library = "libskillet-record.so",
                               .order = PreloadOrder::before_others,
                               .environment = {{interpose::kCaptureVariable, path},
                                               {interpose::kCaptureTraceVariable, options.trace ? "1" : "0"}}}));
  outcome.begin();
  if ((code == kCannotRun || code == kNotFound) && !exists(path)) return code;
  const Result<Recorded> recorded = report(path);
  if (!recorded.ok() || recorded->files != 0) {  // else the old files stay; an unreadable file counts as new
    for (OldCapture& one : old) one.discard();
  }
  if (!recorded.ok()) return recorded.error();
  return code == kFine && (recorded->files == 0 || !recorded->whole) ? kFailed : code;
}

}  // namespace

void add_capture(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("capture",
                             "Run any program and record what it sends to the NPU, real or virtual. The exit "
                             "code is the program's.\n"
                             "Example: skillet capture -o job.skcap -- python3 classify.py; skillet decode job.skcap\n"
                             "         skillet capture -- skillet virtual -- python3 classify.py");
  verb.option("-o,--output", options->path, "capture file; further ones are PATH.2, PATH.3, ...").shows_default();
  verb.flag("--trace", options->trace, "print each call to the kernel driver: arguments, sizes, fences, result, time");
  verb.option("COMMAND", options->command, "after --: the program and its arguments").required();
  verb.runs([options, &outcome] {
    const Result<int> code = run_capture(*options, outcome);
    if (!code.ok()) return outcome.finish(code.error());
    outcome.exit_code = *code;
  });
}

}  // namespace skillet::tools
