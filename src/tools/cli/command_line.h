// Command lines: verbs, their options and help, what is wrong with what was typed.
// Called by the verbs and by tools of the tests. Hides the parser (CLI11), whose headers take longer to compile than
// most verbs do. Must not know: any verb.
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

constexpr size_t kHelpColumn = 34;  // where descriptions begin in pages of help

// What a value must be.
struct Rule {
  std::string type;                                              // "NUMBER", as in the help
  std::function<std::string(const std::string& value)> problem;  // empty: there is none
};
// "--top: must be a whole number from 1 to 100, not 'abc'".
Rule whole_number(uint64_t lowest, uint64_t highest);
// "--tolerance: must be a number of 0 or more, not 'nan'".
Rule number_of_0_or_more();
Rule number_between(double lowest, double highest);
// Of names of files, for the help.
Rule not_empty();
Rule existing_file();
Rule writable_file();  // or one that can be made; `~/` is the home folder
Rule existing_folder();
Rule one_of(std::span<const std::string_view> names);
Rule one_of(std::initializer_list<std::string_view> names);

// An option, a flag or an argument. Each call returns the option itself.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option required() const;
  Option hidden() const;
  // The help shows what the value was before.
  Option shows_default() const;
  Option may_be_empty() const;  // of one text
  Option check(Rule rule) const;
  // Of several values: each has the option's name before it.
  Option one_at_a_time() const;
  // Where it comes from when it is not given.
  Option variable(const char* name) const;
  Option excludes(Option other) const;
  Option excludes(const std::string& name) const;
  Option needs(Option other) const;

 private:
  CLI::Option* option_;
};

// Places that are given must live as long as the command line does.
class Verb {
 public:
  explicit Verb(CLI::App* verb) : verb_(verb) {}
  // "--name,-n", or "NAME" of an argument. T: see the end of command_line.cpp. A text must not be empty, as an unset
  // variable of a script leaves it.
  template <typename T>
  Option option(const std::string& names, T& place, const std::string& help) const;
  // "--name"; with a string "--name{VALUE}": what --name alone stands for.
  Option flag(const std::string& names, bool& place, const std::string& help) const;
  Option flag(const std::string& names, std::string& place, const std::string& help) const;
  void footer(const std::string& text) const;
  void runs(std::function<void()> work) const;
  std::string name() const;

 protected:
  CLI::App* verb_;
};

// Options of its own, as golden has them, or verbs.
class CommandLine : public Verb {
 public:
  CommandLine(const std::string& about, const std::string& name);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Verb verb(const std::string& name, const std::string& about);
  void version(const std::string& text);

  // Runs the verb that is chosen. Text to print instead, of --help or --version; an error: what was typed wrong.
  Result<std::string> parse(int argc, char** argv);
  // " VERB" of the one that was chosen, as in "skillet run --help".
  std::string chosen() const;

  std::vector<Verb> verbs() const;

 private:
  void parse_words(int argc, char** argv);

  std::unique_ptr<CLI::App> app_;
  std::string version_;
};

}  // namespace skillet::tools
