// `skillet virtual`: runs any program with a simulated chip behind a device node of the mainline kernel driver.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "interpose/environment.h"
#include "sim/sim.h"
#include "standin/fault_plan.h"
#include "tools/preload.h"
#include "tools/verbs.h"

namespace skillet::tools {
namespace {

struct Options {
  std::string chip = "a311d", fail, on_fault = "reset";
  bool trace = false;
  std::vector<std::string> command;
};

// A folder for the /dev and /sys that the program sees, shared by all its processes; gone at the end.
class Root {
 public:
  static Result<Root> create() {
    std::string path = (std::filesystem::temp_directory_path() / "skillet-virtual-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) return error(ErrorCode::io, "{}: no temporary folder", path);
    return Root(std::move(path));
  }
  Root(Root&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~Root() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit Root(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Result<int> run_virtual(const Options& options) {
  SK_TRY(sim::create(options.chip));
  SK_TRY(standin::FaultPlan::parse(options.fail));
  SK_TRY_ASSIGN(const Root root, Root::create());
  return run_preloaded({.command = options.command,
                        .library = "libskillet-virtual.so",
                        .order = PreloadOrder::after_others,
                        .environment = {{interpose::kChipVariable, options.chip},
                                        {interpose::kRootVariable, root.path()},
                                        {interpose::kFailVariable, options.fail},
                                        {interpose::kFaultVariable, options.on_fault},
                                        {interpose::kTraceVariable, options.trace ? "1" : "0"}}});
}

}  // namespace

void add_virtual(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "virtual",
      "Run any program with a simulated NPU: it finds /dev/dri/renderD128 and speaks to it as to the mainline etnaviv\n"
      "driver. The exit code is the program's.\n"
      "Example: skillet virtual --chip a311d -- skillet run net.tflite --device /dev/dri/renderD128");
  verb->add_option("--chip", options->chip, "which chip is there")->capture_default_str();
  verb->add_option(
      "--fail", options->fail,
      "let calls fail: a comma list of CALL:N:WHAT, such as submit:3:EIO or\ngem_new:2-5:ENOMEM; N may also be 2-* or "
      "*; a submit may also hang or reset");
  verb->add_option("--on-fault", options->on_fault,
                   "what a job does that the simulator stops: reset, as hardware does (it ends,\nits outputs are not "
                   "written), or error (the submit fails with EIO)")
      ->check(CLI::IsMember({"reset", "error"}))
      ->capture_default_str();
  verb->add_flag("--trace", options->trace, "print a line for each call to the device");
  verb->add_option("COMMAND", options->command, "after --: the program and its arguments")->required();
  verb->callback([options, &outcome] {
    const Result<int> code = run_virtual(*options);
    if (code.ok()) {
      outcome.exit_code = *code;
    } else {
      outcome.finish(code.error());
    }
  });
}

}  // namespace skillet::tools
