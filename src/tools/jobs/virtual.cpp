// `skillet virtual`: runs any program with a simulated chip behind a device node of the mainline kernel driver.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/bytes.h"
#include "base/environment.h"
#include "base/vendors.h"
#include "kernels/fake/fault_plan.h"
#include "lab/interpose/environment.h"
#include "runtime/device_context.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/temporary_folder.h"
#include "tools/cli/verbs.h"
#include "tools/jobs/preload.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string chip{default_chip()}, fail, on_fault = "reset", on_misuse = "report";
  bool trace = false;
  std::vector<std::string> command;
};

// "a311d,quirk=x": passes the chip by its name, and quirks by the variable for all simulated chips.
Result<int> run_virtual(const Options& options) {
  constexpr std::string_view kQuirk = ",quirk=";
  constexpr const char* kQuirks = "SKILLET_SIM_QUIRK";
  SK_TRY(runtime::open_target("sim:" + options.chip));
  const std::string chip = options.chip.substr(0, options.chip.find(','));
  SK_TRY(fake::FaultPlan::parse(options.fail, chip));
  // /dev and /sys for the program, shared by all its processes.
  SK_TRY_ASSIGN(const TemporaryFolder root, TemporaryFolder::create("virtual"));
  PreloadedCommand command{.command = options.command,
                           .library = "libskillet-virtual.so",
                           .order = PreloadOrder::after_others,
                           .environment = {{interpose::kChipVariable, chip},
                                           {interpose::kRootVariable, root.path()},
                                           {interpose::kFailVariable, options.fail},
                                           {interpose::kFaultVariable, options.on_fault},
                                           {interpose::kMisuseVariable, options.on_misuse},
                                           {interpose::kTraceVariable, options.trace ? "1" : "0"}}};
  if (chip != options.chip) {
    const char* const set = environment_variable(kQuirks);
    command.environment.emplace_back(
        kQuirks, options.chip.substr(chip.size() + kQuirk.size()) + (set == nullptr ? "" : fmt::format("+{}", set)));
  }
  return run_preloaded(command);
}

}  // namespace

void add_virtual(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb =
      app.verb("virtual",
               "Run any program with a simulated NPU: it sees the node of the chip's mainline driver "
               "(/dev/dri/renderD128 or an\n"
               "accel node) and uses it as with that driver. The exit code is the program's.\n"
               "Example: skillet virtual --chip a311d -- skillet run net.tflite --device /dev/dri/renderD128");
  verb.option("--chip", options->chip, "name of the chip; NAME,quirk=Q: a chip that differs (docs/dev/quirks.md)")
      .shows_default();
  verb.option(
          "--fail", options->fail,
          "let calls fail: a comma list of CALL:N:WHAT, such as submit:3:EIO or\ngem_new:1:ENOMEM; N may be "
          "*, 2-5 or 2-*;\na submit may also hang, reset, reset_before (another process's job hung) or be late;\nwhere "
          "a submit takes several jobs, job:N may do the same or drop")
      .may_be_empty();
  verb.option("--on-fault", options->on_fault,
              "what happens to a job that the simulator stops: reset, as on hardware (it ends without writing its "
              "outputs), or error (the submit fails with EIO)")
      .check(one_of({"reset", "error"}))
      .shows_default();
  verb.option("--on-misuse", options->on_misuse,
              "what happens on a call that crashes a stock kernel: report (print a line, the call continues) or abort "
              "(the program ends)")
      .variable(interpose::kMisuseVariable)
      .check(one_of({"report", "abort"}))
      .shows_default();
  verb.flag("--trace", options->trace, "print each call to the device: arguments, sizes, fences, buffers, time");
  verb.option("COMMAND", options->command, "after --: the program and its arguments").required();
  verb.runs([options, &outcome] {
    const Result<int> code = run_virtual(*options);
    if (!code.ok()) return outcome.finish(code.error());
    outcome.exit_code = *code;
  });
}

}  // namespace skillet::tools
