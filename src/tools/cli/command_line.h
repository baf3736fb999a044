// Command lines: verbs, their options and help, messages for wrong input.
// Called by the verbs and by tools of the tests. Hides the parser (CLI11), whose headers take longer to compile than
// most verbs. Must not know: any verb.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace skillet::tools {

constexpr size_t kHelpColumn = 34;  // where descriptions begin in help texts

// A check of an option's value.
struct Rule {
  std::string type;                                              // "NUMBER", as in the help
  std::function<std::string(const std::string& value)> problem;  // empty: no problem
};
// "--top: must be a whole number from 1 to 100, not 'abc'".
Rule whole_number(uint64_t lowest, uint64_t highest);
// "--tolerance: must be a number of 0 or more, not 'nan'".
Rule number_of_0_or_more();
Rule number_between(double lowest, double highest);
// For paths.
Rule not_empty();
Rule existing_file();
Rule writable_file();  // or can be created; `~/` is the home folder
Rule existing_folder();
Rule one_of(std::span<const std::string_view> names);
Rule one_of(std::initializer_list<std::string_view> names);

// An option, a flag or an argument. Each call returns the same option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option required() const;
  Option hidden() const;
  // The help shows the initial value as the default.
  Option shows_default() const;
  Option may_be_empty() const;  // one text, not a list
  Option check(Rule rule) const;
  // For several values: each value has its own option name before it.
  Option one_at_a_time() const;
  // Sets the environment variable for the default.
  Option variable(const char* name) const;
  Option excludes(Option other) const;
  Option excludes(const std::string& name) const;
  Option needs(Option other) const;

 private:
  CLI::Option* option_;
};

// Variables passed to these functions must live as long as the command line.
class Verb {
 public:
  explicit Verb(CLI::App* verb) : verb_(verb) {}
  // `names`: "--name,-n", or "NAME" for an argument. T: see the end of command_line.cpp. A text must not be empty,
  // because that is what an unset variable of a script passes.
  template <typename T>
  Option option(const std::string& names, T& place, const std::string& help) const;
  // "--name"; for a string "--name{VALUE}", where VALUE is used if no value is given.
  Option flag(const std::string& names, bool& place, const std::string& help) const;
  Option flag(const std::string& names, std::string& place, const std::string& help) const;
  void footer(const std::string& text) const;
  void runs(std::function<void()> work) const;
  std::string name() const;

 protected:
  CLI::App* verb_;
};

// A command line with options of its own (as golden has) or with verbs.
class CommandLine : public Verb {
 public:
  CommandLine(const std::string& about, const std::string& name);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Verb verb(const std::string& name, const std::string& about);
  void version(const std::string& text);

  // Runs the chosen verb. Returns text to print instead (for --help or --version); error: the input is wrong.
  Result<std::string> parse(int argc, char** argv);
  // " VERB" of the chosen verb, as in "skillet run --help".
  std::string chosen() const;

  std::vector<Verb> verbs() const;

 private:
  void parse_words(int argc, char** argv);

  std::unique_ptr<CLI::App> app_;
  std::string version_;
};

}  // namespace skillet::tools
