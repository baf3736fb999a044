// The `skillet` command: reads the command line, hands over to a verb, turns its outcome into an exit code.
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/log.h"
#include "base/parse_bool.h"
#include "base/parse_cores.h"
#include "base/text.h"
#include "tools/model.h"
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
    "  skillet plan net.tflite                          how long it would take on each chip\n"
    "  skillet compile net.tflite --device sim:a311d --text\n"
    "\n"
    "Exit codes: 0 fine; 1 it ran and failed, differs or misses a tolerance; 2 it could not begin. --help of a verb\n"
    "tells its own. Environment: SKILLET_LOG=error|warning|info|debug, SKILLET_DEBUG=help lists what can be traced.";

std::string footer(const ExitCodes& codes) {
  return fmt::format("Exit codes: 0 {}; 1 {}; 2 {}.", codes.fine, codes.failed, codes.cannot_begin);
}

void add_verbs(CLI::App& app, Outcome& outcome) {
  add_run(app, outcome);
  add_bench(app, outcome);
  add_eval(app, outcome);
  add_check(app, outcome);
  add_fix(app, outcome);
  add_plan(app, outcome);
  add_tune(app, outcome);
  add_compile(app, outcome);
  add_decode(app, outcome);
  add_diff(app, outcome);
  add_lookup(app, outcome);
  add_replay(app, outcome);
  add_devices(app, outcome);
  add_doctor(app, outcome);
  add_virtual(app, outcome);
  add_capture(app, outcome);
  add_bug(app, outcome);
  add_cdi(app, outcome);
  add_pages(app, outcome);
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    if (const ExitCodes* codes = exit_codes_of(verb->get_name())) verb->footer(footer(*codes));
  }
}

std::vector<std::string_view> views(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

std::string wrong_verb(const CLI::App& app, std::string_view given) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); }))
    names.push_back(verb->get_name());
  return fmt::format("there is no verb '{}'{}", given, did_you_mean(given, views(names)));
}

// The first of what is left over: an option that there is not, or too much.
std::string wrong_argument(const CLI::App& verb) {
  const std::vector<std::string> left = verb.remaining();
  const auto option = std::ranges::find_if(left, [](const std::string& text) { return text.starts_with("-"); });
  if (option == left.end()) return left.empty() ? "" : fmt::format("'{}' is one argument too many", left[0]);
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> names = {"--help"};
  for (const CLI::Option* one : verb.get_options()) names.push_back(one->get_name());
  return fmt::format("there is no option '{}'{}", name, did_you_mean(name, views(names)));
}

std::string what_is_wrong(const CLI::App& app, const CLI::ParseError& failure, int argc, char** argv) {
  const auto chosen = app.get_subcommands();
  if (const char* said = std::getenv(kAllowUnprovenVariable); said != nullptr) {
    bool ignored = false;
    if (!parse_bool(said, ignored)) return fmt::format("{}={}: must be 1 or 0", kAllowUnprovenVariable, said);
  }
  if (chosen.empty() && argc > 1) return argv[1][0] == '-' ? wrong_argument(app) : wrong_verb(app, argv[1]);
  const bool is_left_over = dynamic_cast<const CLI::ExtrasError*>(&failure) != nullptr;
  const std::string text = is_left_over && !chosen.empty() ? wrong_argument(*chosen[0]) : "";
  return text.empty() ? failure.what() : text;
}

void run(int argc, char** argv, Outcome& outcome) {
  CLI::App app(kAbout, "skillet");
  app.set_version_flag("--version", std::string("skillet " SKILLET_VERSION));
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  add_verbs(app, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) {
    out("skillet " SKILLET_VERSION "\n");
  } catch (const CLI::CallForHelp&) {
    out(app.help());
  } catch (const CLI::ParseError& failure) {
    const auto chosen = app.get_subcommands();
    std::string text = what_is_wrong(app, failure, argc, argv);
    std::ranges::replace(text, '\n', ' ');
    complain(fmt::format("{} (see skillet {}--help)", text, chosen.empty() ? "" : chosen[0]->get_name() + " "));
    outcome.exit_code = kCannotBegin;
  }
}

// Whatever is thrown, here or in a library, ends in a line and an exit code.
void run_guarded(int argc, char** argv, Outcome& outcome) noexcept {
  try {
    log::enabled(log::Level::error);  // says so when SKILLET_LOG is wrong
    if (log::debug_flag("help")) {
      out(log::debug_flags_help());
      return;
    }
    run(argc, argv, outcome);
    return;
  } catch (const std::bad_alloc&) {
    complain("not enough memory");
  } catch (const std::exception& thrown) {
    complain(thrown.what());
  }
  outcome.exit_code = outcome.code_of_errors;
}

}  // namespace

void Outcome::finish(const Result<void>& result) {
  if (!result.ok()) finish(result.error());
}

void Outcome::finish(const Error& error) {
  complain(error.message);
  exit_code = code_of_errors;
}

void add_cores(CLI::App* verb, std::string& cores) {
  const auto check = [](const std::string& text) {
    int ignored = 0;
    return parse_cores(text, ignored) ? std::string()
                                      : fmt::format("must be auto or a number of cores, not '{}'", text);
  };
  verb->add_option("--cores", cores,
                   "of an NPU with several cores, how many may share one inference in bands of rows:\n"
                   "auto: where that is predicted to pay; 1: none; 2 or more: wherever it can be done")
      ->capture_default_str()
      ->envname(kCoresVariable)
      ->check(CLI::Validator(check, "auto or a number"));
}

void add_tuning_file(CLI::App* verb, std::string& path) {
  verb->add_option("--tuning-file", path,
                   "what `skillet tune` found for this model, chip and build; with it the tuning is tuned")
      ->envname("SKILLET_TUNING_FILE");
}

CLI::Validator whole_number(uint64_t lowest, uint64_t highest) {
  return {[lowest, highest](std::string& text) -> std::string {
            uint64_t value = 0;
            const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
            const bool is_number = failure == std::errc() && end == text.data() + text.size();
            if (is_number && value >= lowest && value <= highest) return {};
            return fmt::format("must be a whole number from {} to {}, not '{}'", lowest, highest, text);
          },
          "NUMBER"};
}

CLI::Validator number_of_0_or_more() {
  return {[](std::string& text) -> std::string {
            double value = 0;
            const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
            const bool is_number = failure == std::errc() && end == text.data() + text.size();
            if (is_number && std::isfinite(value) && value >= 0) return {};
            return fmt::format("must be a number of 0 or more, not '{}'", text);
          },
          "NUMBER"};
}

CLI::Validator not_empty() {
  return {[](std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }, "PATH"};
}

}  // namespace skillet::tools

int main(int argc, char** argv) {
  skillet::tools::keep_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails, which is said
  skillet::tools::Outcome outcome;
  skillet::tools::run_guarded(argc, argv, outcome);
  return skillet::tools::finish_output(outcome.exit_code);
}
