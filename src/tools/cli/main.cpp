// The `skillet` command: reads the command line, runs a verb, and returns its exit code.
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/log.h"
#include "base/parse_bool.h"
#include "tools/cli/python_verbs.h"
#include "tools/cli/session_flags.h"
#include "tools/cli/verbs.h"
#include "tools/show/text_table.h"

namespace skillet::tools {
namespace {

constexpr const char* kAbout =
    "Skillet runs quantized TensorFlow Lite networks on NPUs, real or simulated.\n\n"
    "Examples:\n"
    "  skillet devices                               what can run a network here\n"
    "  skillet doctor                                is there an NPU; what is missing and how to fix it\n"
    "  skillet check net.tflite --device sim:a311d   which operations the NPU takes, and why not the others\n"
    "  skillet run net.tflite --image cat.jpg --labels labels.txt --device sim:a311d --compare\n"
    "  skillet plan net.tflite                       how long it would take on each chip\n"
    "  skillet compile net.tflite --device sim:a311d --text\n\n"
    "More verbs, if Python is here: {}, decode --html.\n\n"
    "Exit codes: 0 success; 1 it ran and failed, differs or misses a tolerance; 2 it could not begin. --help of a "
    "verb\n"
    "lists its codes. Environment: SKILLET_LOG=error|warning|info|debug, SKILLET_DEBUG=help lists what can be traced.";

std::string footer(const ExitCodes& codes) {
  return fmt::format("Exit codes: 0 {}; 1 {}; 2 {}.", codes.fine, codes.failed, codes.cannot_begin);
}

struct VerbRow {
  std::string_view name;
  void (*add)(CommandLine& app, Outcome& outcome);
};
constexpr VerbRow kVerbs[] = {
#define VERB(name, ...) {#name, add_##name},
#include "tools/cli/verbs.def"
#undef VERB
};
// Their options have the variables of the environment whose wrong values no verb takes.
constexpr std::string_view kWithVariables[] = {"run", "quantize"};

// Adds the verb that the first argument names, or all for help and messages: their options take most of a short run's
// time.
void add_verbs(CommandLine& app, Outcome& outcome, std::string_view first) {
  const auto named = std::ranges::find(kVerbs, first, &VerbRow::name);
  for (const VerbRow& row : kVerbs) {
    if (named == std::end(kVerbs) || &row == named || std::ranges::count(kWithVariables, row.name) != 0)
      row.add(app, outcome);
  }
  for (const Verb& verb : app.verbs()) {
    if (const ExitCodes* codes = exit_codes_of(verb.name())) verb.footer(footer(*codes));
  }
}

// `skillet help VERB` is `skillet VERB --help`, and `skillet help` is `skillet --help`.
std::vector<char*> without_help_verb(std::span<char* const> words) {
  static std::string flag = "--help";
  std::vector<char*> out(words.begin(), words.end());
  if (out.size() < 2 || std::string_view(out[1]) != "help") return out;
  out.erase(out.begin() + 1);
  out.resize(std::min<size_t>(out.size(), 2));
  out.push_back(flag.data());
  return out;
}

// A variable of the environment that has no valid value and no option.
std::optional<std::string> wrong_variable() {
  const char* const said = environment_variable(kAllowUnprovenVariable);
  bool ignored = false;
  if (said == nullptr || *said == '\0' || parse_bool(said, ignored)) return std::nullopt;
  return fmt::format("{}={}: must be 1 or 0", kAllowUnprovenVariable, said);
}

// Wraps a help text: descriptions continue in their column, examples stay unbroken so that they can be copied.
std::string fitted(std::string_view page) {
  std::string out;
  while (!page.empty()) {
    const std::string_view line = page.substr(0, page.find('\n'));
    page.remove_prefix(std::min(line.size() + 1, page.size()));
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view words = line.substr(begin);
    const bool is_example =
        words.starts_with("skillet ") || words.starts_with("Example: ") || words.starts_with("ffmpeg ");
    const bool has_column = line.size() > kHelpColumn && begin < kHelpColumn && line[kHelpColumn - 1] == ' ';
    out += is_example ? std::string(line) : wrapped(line, has_column ? kHelpColumn : begin);
    out += '\n';
  }
  return out;
}

void run(int argc, char** argv, Outcome& outcome) {
  CommandLine app(fmt::format(kAbout, fmt::join(kPythonVerbs, ", ")), "skillet");
  app.version("skillet " SKILLET_VERSION);
  add_verbs(app, outcome, argc > 1 ? argv[1] : "");
  const Result<std::string> said = app.parse(argc, argv);
  if (said.ok()) {
    out(fitted(*said));
    return;
  }
  complain(fmt::format("{} (see skillet{} --help)", wrong_variable().value_or(said.error().message), app.chosen()));
  outcome.exit_code = kCannotBegin;
}

// Every exception, also of a library, ends as one line and an exit code.
void run_guarded(int argc, char** argv, Outcome& outcome) noexcept {
  try {
    log::enabled(log::Level::error);  // reports a wrong SKILLET_LOG
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

}  // namespace skillet::tools

int main(int argc, char** argv) {
  skillet::tools::keep_standard_streams();
  mallopt(M_TRIM_THRESHOLD, 1 << 28),
      mallopt(M_MMAP_THRESHOLD, 1 << 25);  // a returned page is cleared when it is used again
  std::signal(SIGCHLD, SIG_DFL);  // if the parent had it ignored, the kernel would drop our children's exit status
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the file size limit then fails with an error
  std::vector<char*> words = skillet::tools::without_help_verb({argv, static_cast<size_t>(argc)});
  if (const auto code = skillet::tools::run_python_verb(std::span(words).subspan(std::min<size_t>(1, words.size()))))
    return *code;
  skillet::tools::Outcome outcome;
  skillet::tools::run_guarded(static_cast<int>(words.size()), words.data(), outcome);
  return skillet::tools::finish_output(outcome.exit_code);
}
