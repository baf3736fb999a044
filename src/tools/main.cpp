// The `skillet` command: reads the command line, hands over to a verb, turns its outcome into an exit code.
#include <fmt/format.h>

#include <cstdio>

#include "base/log.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

constexpr const char* kAbout =
    "Skillet runs quantized TensorFlow Lite networks on NPUs, real or simulated.\n"
    "\n"
    "Examples:\n"
    "  skillet devices                                  what can run a network here\n"
    "  skillet doctor                                   is there an NPU; what is missing and how to mend it\n"
    "  skillet check net.tflite --device sim:a311d      which operations the NPU takes, and why not the others\n"
    "  skillet run net.tflite --image cat.jpg --labels labels.txt --device sim:a311d --compare\n"
    "  skillet compile net.tflite --device sim:a311d --text\n"
    "\n"
    "Exit codes: 0 fine, 1 the run failed, 2 bad usage. Environment: SKILLET_LOG=error|warning|info|debug,\n"
    "SKILLET_DEBUG=help lists what can be traced.";

int run(int argc, char** argv) {
  CLI::App app(kAbout, "skillet");
  app.set_version_flag("--version", std::string("skillet " SKILLET_VERSION));
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Outcome outcome;
  add_run(app, outcome);
  add_check(app, outcome);
  add_compile(app, outcome);
  add_decode(app, outcome);
  add_diff(app, outcome);
  add_devices(app, outcome);
  add_doctor(app, outcome);
  add_virtual(app, outcome);
  add_capture(app, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    const auto chosen = app.get_subcommands();
    const bool no_verb = chosen.empty() && argc > 1 && argv[1][0] != '-';
    fmt::print(stderr, "skillet: {} (see skillet {}--help)\n",
               no_verb ? fmt::format("there is no verb '{}'", argv[1]) : e.what(),
               chosen.empty() ? "" : chosen[0]->get_name() + " ");
    return 2;
  }
  return outcome.exit_code;
}

}  // namespace

void Outcome::finish(const Result<void>& result) {
  if (result.ok()) return;
  std::fflush(stdout);
  fmt::print(stderr, "skillet: {}\n", result.error().message);
  exit_code = result.error().code == ErrorCode::invalid_argument ? 2 : 1;
}

}  // namespace skillet::tools

int main(int argc, char** argv) {
  if (skillet::log::debug_flag("help")) {
    fmt::print("{}", skillet::log::debug_flags_help());
    return 0;
  }
  return skillet::tools::run(argc, argv);
}
