// `skillet capture`: runs any program and records what it sends to the NPU.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "capture/reader.h"
#include "interpose/environment.h"
#include "tools/decoded.h"
#include "tools/preload.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string path = "capture.skcap";
  std::vector<std::string> command;
};

// PATH, PATH.2, PATH.3, ...: one for each time that the program opened the device.
std::string numbered(const std::string& path, int number) {
  return number == 1 ? path : fmt::format("{}.{}", path, number);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Removes what an earlier recording left.
Result<void> remove_old(const std::string& path) {
  for (int number = 1; exists(numbered(path, number)); ++number) SK_TRY(remove_capture(numbered(path, number)));
  return check_place(path);
}

// What exec would run; only then has an older recording to give way.
bool can_be_run(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// How many files there are, with a line for each.
Result<int> report(const std::string& path) {
  int number = 1;
  for (; exists(numbered(path, number)); ++number) {
    SK_TRY_ASSIGN(const capture::Reader recorded, capture::Reader::open(numbered(path, number)));
    if (!recorded.cut_off().empty()) complain(recorded.cut_off());
    complain(fmt::format("{}: {} submissions to {}", numbered(path, number), recorded.count(), recorded.device().node));
  }
  if (number == 1)
    complain("nothing was recorded: the program sent no job to an NPU behind a kernel driver that we know");
  return number - 1;
}

Result<int> run_capture(const Options& options, Outcome& outcome) {
  std::error_code failure;
  const std::string path = fs::absolute(options.path, failure).string();  // the program may change its folder
  if (failure) return error(ErrorCode::io, "{}: {}", options.path, failure.message());
  if (can_be_run(options.command.at(0))) SK_TRY(remove_old(path));
  SK_TRY_ASSIGN(const int code, run_preloaded({.command = options.command,
                                               .library = "libskillet-record.so",
                                               .order = PreloadOrder::before_others,
                                               .environment = {{interpose::kCaptureVariable, path}}}));
  outcome.begin();
  if (code == kCannotRun || code == kNotFound) return code;
  SK_TRY_ASSIGN(const int recorded, report(path));
  return code == kFine && recorded == 0 ? kFailed : code;
}

}  // namespace

void add_capture(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("capture",
                         "Run any program and record what it sends to the NPU, real or virtual. The exit "
                         "code is the program's.\n"
                         "Example: skillet capture -o job.skcap -- python3 classify.py; skillet decode job.skcap\n"
                         "         skillet capture -- skillet virtual -- python3 classify.py");
  verb->add_option("-o,--output", options->path, "capture file; further ones are PATH.2, PATH.3, ...")
      ->capture_default_str();
  verb->add_option("COMMAND", options->command, "after --: the program and its arguments")->required();
  verb->callback([options, &outcome] {
    const Result<int> code = run_capture(*options, outcome);
    if (!code.ok()) return outcome.finish(code.error());
    outcome.exit_code = *code;
  });
}

}  // namespace skillet::tools
