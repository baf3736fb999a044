#include "tools/cli/command_line.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <type_traits>

#include "base/environment.h"
#include "base/parse_number.h"
#include "base/text.h"

namespace skillet::tools {
namespace {

constexpr const char* kNotEmpty = "not empty";

Rule existing(const char* name, bool is_folder) {
  return {name, [is_folder](const std::string& text) -> std::string {
            std::error_code failure;
            const auto status = std::filesystem::status(text, failure);
            if (!std::filesystem::exists(status)) return fmt::format("{}: {}", text, failure.message());
            if (std::filesystem::is_directory(status) == is_folder) return {};
            return fmt::format("{}: is {} folder", text, is_folder ? "no" : "a");
          }};
}

std::vector<std::string_view> views(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

std::vector<CLI::App*> all_verbs(const CLI::App& app) {
  return const_cast<CLI::App&>(app).get_subcommands([](CLI::App*) { return true; });
}

std::string wrong_verb(const CLI::App& app, std::string_view given) {
  std::vector<std::string> names;
  for (const CLI::App* verb : all_verbs(app)) names.push_back(verb->get_name());
  return fmt::format("there is no verb '{}'{}", given, did_you_mean(given, views(names)));
}

// Message for the first argument that was not parsed: an unknown option, or one argument too many.
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
  const bool has_verbs = !all_verbs(app).empty();
  if (has_verbs && chosen.empty() && argc > 1)
    return argv[1][0] == '-' ? wrong_argument(app) : wrong_verb(app, argv[1]);
  const bool is_left_over = dynamic_cast<const CLI::ExtrasError*>(&failure) != nullptr;
  const CLI::App& verb = chosen.empty() ? app : *chosen[0];
  const std::string text = is_left_over && (!has_verbs || !chosen.empty()) ? wrong_argument(verb) : "";
  return text.empty() ? failure.what() : text;
}

bool is_missing(const CLI::App& verb) {
  return std::ranges::any_of(verb.get_options(), [](const CLI::Option* option) {
    return option->get_positional() && option->get_required() && option->count() == 0;
  });
}

// "run --image 1.png 2.png net.tflite --json": an option with any number of values has also taken the argument. If
// there is only one such list, returns the words with its last value moved to before the options.
std::optional<std::vector<std::string>> without_eaten_argument(const CLI::App& verb, std::span<char* const> words) {
  constexpr size_t kVerbWords = 2;  // "skillet run"
  std::vector<std::string> out(words.begin(), words.end());
  const CLI::Option* taker = nullptr;
  size_t taken = 0, last = 0, lists = 0;
  const auto end_list = [&](size_t end) {
    if (taker != nullptr && taker->get_allow_extra_args() && taken > 1) ++lists, last = end - 1;
  };
  size_t i = kVerbWords;
  for (; i < out.size() && out[i] != "--"; ++i) {
    if (out[i].size() < 2 || out[i][0] != '-') {
      ++taken;
      continue;
    }
    end_list(i);
    const size_t equals = out[i].find('=');
    taker = verb.get_option_no_throw(out[i].substr(0, equals));
    taken = equals == std::string::npos ? 0 : 1;
  }
  end_list(i);
  if (lists != 1) return std::nullopt;
  std::rotate(out.begin() + kVerbWords, out.begin() + static_cast<std::ptrdiff_t>(last),
              out.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  return out;
}

// Joins the lines of a paragraph: they are wrapped later to the terminal's width. Lines of examples stay as they are.
std::string paragraphs(const std::string& text) {
  std::string out = text;
  size_t begin = 0;
  for (size_t at = out.find('\n'); at != std::string::npos; at = out.find('\n', begin)) {
    const std::string_view next = std::string_view(out).substr(at + 1);
    const bool is_example = out[begin] == ' ' || next.starts_with(' ') || next.starts_with("Example");
    if (!is_example && at != begin && !next.starts_with('\n'))
      out[at] = ' ';
    else
      begin = at + 1;
  }
  return out;
}

}  // namespace

Rule whole_number(uint64_t lowest, uint64_t highest) {
  return {"NUMBER", [lowest, highest](const std::string& text) -> std::string {
            const auto value = parse_number<uint64_t>(text);
            if (value && *value >= lowest && *value <= highest) return {};
            return fmt::format("must be a whole number from {} to {}, not '{}'", lowest, highest, text);
          }};
}

Rule number_of_0_or_more() {
  return {"NUMBER", [](const std::string& text) -> std::string {
            const auto value = parse_number<double>(text);
            if (value && std::isfinite(*value) && *value >= 0) return {};
            return fmt::format("must be a number of 0 or more, not '{}'", text);
          }};
}

Rule number_between(double lowest, double highest) {
  return {"NUMBER", [lowest, highest](const std::string& text) -> std::string {
            const auto value = parse_number<double>(text);
            if (value && *value >= lowest && *value <= highest) return {};
            return fmt::format("must be a number from {:g} to {:g}, not '{}'", lowest, highest, text);
          }};
}

Rule not_empty() {
  return {"PATH", [](const std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }};
}

Rule writable_file() {
  return {"FILE", [](const std::string& text) -> std::string {
            const std::filesystem::path file = expand_home(text), folder = file.parent_path();
            std::error_code ignored;
            if (std::filesystem::is_directory(file, ignored)) return fmt::format("'{}' is a folder", text);
            const std::string place = std::filesystem::exists(file, ignored) ? file : folder.empty() ? "." : folder;
            return ::access(place.c_str(), W_OK) == 0 ? "" : fmt::format("'{}': {}", place, std::strerror(errno));
          }};
}

Rule existing_file() { return existing("FILE", false); }
Rule existing_folder() { return existing("DIR", true); }

Rule one_of(std::span<const std::string_view> given) {
  const std::vector<std::string> names(given.begin(), given.end());
  return {fmt::format("{{{}}}", fmt::join(names, ",")), [names](const std::string& text) -> std::string {
            if (std::ranges::find(names, text) != names.end()) return {};
            return fmt::format("must be one of {}, not '{}'{}", fmt::join(names, ", "), text,
                               did_you_mean(text, views(names)));
          }};
}
Rule one_of(std::initializer_list<std::string_view> names) { return one_of(std::span(names.begin(), names.size())); }

Option Option::required() const { return Option(option_->required()); }
Option Option::hidden() const { return Option(option_->group("")); }
Option Option::shows_default() const { return Option(option_->capture_default_str()); }
Option Option::may_be_empty() const {
  option_->get_validator(kNotEmpty)->active(false);
  return *this;
}
Option Option::check(Rule rule) const {
  const auto problem = [rule, option = option_](const std::string& value) {
    std::string why = rule.problem(value);
    const std::string variable = option->get_envname();
    const char* const said = variable.empty() ? nullptr : environment_variable(variable.c_str());
    if (!why.empty() && said != nullptr && value == said) why += fmt::format(" (as {} says)", variable);
    return why;
  };
  return Option(option_->check(CLI::Validator(problem, rule.type)));
}
Option Option::one_at_a_time() const { return Option(option_->allow_extra_args(false)); }
Option Option::variable(const char* name) const { return Option(option_->envname(name)); }
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
Option Option::excludes(const std::string& name) const { return Option(option_->excludes(name)); }
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }

template <typename T>
Option Verb::option(const std::string& names, T& place, const std::string& help) const {
  CLI::Option* const out = verb_->add_option(names, place, paragraphs(help));
  if constexpr (std::is_same_v<T, std::string>) out->check(CLI::Validator(not_empty().problem, "", kNotEmpty));
  return Option(out);
}
template Option Verb::option(const std::string&, std::string&, const std::string&) const;
template Option Verb::option(const std::string&, int&, const std::string&) const;
template Option Verb::option(const std::string&, double&, const std::string&) const;
template Option Verb::option(const std::string&, std::optional<uint64_t>&, const std::string&) const;
template Option Verb::option(const std::string&, std::optional<double>&, const std::string&) const;
template Option Verb::option(const std::string&, std::vector<std::string>&, const std::string&) const;

// CLI11 accepts any number as a flag's value, and treats 0 and below as "no".
Option Verb::flag(const std::string& names, bool& place, const std::string& help) const {
  static constexpr std::string_view kWords[] = {"1", "true", "on", "yes", "0", "false", "off", "no"};
  const auto problem = [](const std::string& text) {
    return std::ranges::find(kWords, text) != std::end(kWords)
               ? std::string()
               : fmt::format("takes no value but {}, not '{}'", fmt::join(kWords, ", "), text);
  };
  return Option(verb_->add_flag(names, place, paragraphs(help))->check(CLI::Validator(problem, "")));
}
Option Verb::flag(const std::string& names, std::string& place, const std::string& help) const {
  return Option(verb_->add_flag(names, place, paragraphs(help)));
}
void Verb::footer(const std::string& text) const { verb_->footer(paragraphs(text)); }
void Verb::runs(std::function<void()> work) const { verb_->callback(std::move(work)); }
std::string Verb::name() const { return verb_->get_name(); }

CommandLine::CommandLine(const std::string& about, const std::string& name)
    : Verb(nullptr), app_(std::make_unique<CLI::App>(paragraphs(about), name)) {
  verb_ = app_.get();
  app_->get_formatter()->column_width(kHelpColumn);
}
CommandLine::~CommandLine() = default;

Verb CommandLine::verb(const std::string& name, const std::string& about) {
  app_->require_subcommand(1);
  return Verb(app_->add_subcommand(name, paragraphs(about)));
}

void CommandLine::version(const std::string& text) {
  version_ = text;
  app_->set_version_flag("--version", text);
}

void CommandLine::parse_words(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::RequiredError&) {
    const auto chosen = app_->get_subcommands();
    if (chosen.empty() || !is_missing(*chosen[0])) throw;
    const auto words = without_eaten_argument(*chosen[0], {argv, static_cast<size_t>(argc)});
    if (!words) throw;
    app_->parse(std::vector<std::string>(words->rbegin(), words->rend() - 1));  // it takes them in reverse order
  }
}

Result<std::string> CommandLine::parse(int argc, char** argv) {
  try {
    parse_words(argc, argv);
    return std::string();
  } catch (const CLI::CallForVersion&) {
    return version_ + "\n";
  } catch (const CLI::CallForHelp&) {
    if (!all_verbs(*app_).empty() && app_->get_subcommands().empty() && argv[1][0] != '-')
      return error(ErrorCode::invalid_argument, "{}", wrong_verb(*app_, argv[1]));
    return app_->help();
  } catch (const CLI::ParseError& failure) {
    std::string text = what_is_wrong(*app_, failure, argc, argv);
    std::ranges::replace(text, '\n', ' ');
    return error(ErrorCode::invalid_argument, "{}", text);
  }
}

std::string CommandLine::chosen() const {
  const auto chosen = app_->get_subcommands();
  return chosen.empty() ? "" : " " + chosen[0]->get_name();
}

std::vector<Verb> CommandLine::verbs() const {
  std::vector<Verb> verbs;
  for (CLI::App* verb : all_verbs(*app_)) verbs.emplace_back(verb);
  return verbs;
}

}  // namespace skillet::tools
