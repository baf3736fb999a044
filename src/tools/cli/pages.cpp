// `skillet pages FOLDER`, for packages: manual pages and the completion of bash, of what --help is made of.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "npu/driver.h"
#include "tools/cli/verbs.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

// Text as troff prints it as it is.
std::string roff(std::string_view text) {
  std::string out;
  bool is_start = true;
  for (const char c : text) {
    if (is_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else {
      if (c == '-') out += '\\';
      out += c;
    }
    is_start = c == '\n';
  }
  return out;
}

// Lines as they are.
std::string verbatim(const std::string& text) { return ".nf\n" + roff(text) + "\n.fi\n"; }

std::string first_line(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  return line.ends_with('.') || line.ends_with(':') ? line.substr(0, line.size() - 1) : line;
}

std::string option_page(const OptionFacts& option) {
  const bool is_option = option.argument.empty();
  return ".TP\n\\fB" + roff(option.names) + "\\fR" + (is_option ? " \\fI" + roff(option.type) + "\\fR" : "") + "\n" +
         roff(option.help) + "\n";
}

std::string title(std::string_view name, std::string_view what) {
  std::string upper;
  for (const char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(".TH {} 1 \"\" \"skillet {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n", roff(upper),
                     SKILLET_VERSION, roff(name), roff(what));
}

std::string options_pages(const VerbFacts& verb) {
  std::string out;
  for (const OptionFacts& option : verb.options) out += option_page(option);
  return out;
}

std::string main_page(const CommandLine& app) {
  const VerbFacts facts = app.facts();
  std::string out = title("skillet", first_line(facts.about));
  out += "\\fBskillet\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n" + verbatim(facts.about);
  out += ".SH OPTIONS\n" + options_pages(facts) + ".SH VERBS\n";
  for (const VerbFacts& verb : app.facts_of_verbs())
    out += fmt::format(".TP\n\\fBskillet\\-{}\\fR(1)\n{}\n", verb.name, roff(first_line(verb.about)));
  return out;
}

std::string verb_page(const VerbFacts& verb) {
  const std::string name = "skillet-" + verb.name;
  std::string out = title(name, first_line(verb.about));
  out += fmt::format("\\fBskillet {}\\fR [\\fIOPTIONS\\fR]", verb.name);
  for (const OptionFacts& option : verb.options) {
    if (!option.argument.empty()) out += " \\fI" + roff(option.argument) + "\\fR";
  }
  out += "\n.SH DESCRIPTION\n" + verbatim(verb.about) + ".SH OPTIONS\n" + options_pages(verb);
  return out + ".SH EXIT STATUS\n" + roff(verb.footer) + "\n.SH SEE ALSO\n\\fBskillet\\fR(1)\n";
}

// "--help --device ...".
std::string words(const VerbFacts& verb) {
  std::string out;
  for (const OptionFacts& option : verb.options) {
    for (const std::string& name : option.long_names) out += (out.empty() ? "--" : " --") + name;
  }
  return out;
}

// "exact approximate" of "TEXT:{exact,approximate}"; nothing of other types.
std::string values_of(const OptionFacts& option) {
  const size_t from = option.type.find('{'), to = option.type.find('}');
  if (from == std::string::npos || to == std::string::npos) return {};
  std::string out = option.type.substr(from + 1, to - from - 1);
  std::ranges::replace(out, ',', ' ');
  return out;
}

// What may follow an option, where it is not a file: "run--task) ...".
std::string value_cases(const CommandLine& app) {
  std::string chips, devices = "auto npu cpu", out;
  for (const npu::Driver* driver : npu::drivers()) {
    for (const npu::Chip& chip : driver->chips()) {
      chips += fmt::format("{}{}", chips.empty() ? "" : " ", chip.name);
      devices += fmt::format(" sim:{}", chip.name);
    }
  }
  for (const VerbFacts& verb : app.facts_of_verbs()) {
    for (const OptionFacts& option : verb.options) {
      for (const std::string& name : option.long_names) {
        const std::string values = name == "chip" ? chips : name == "device" ? devices : values_of(option);
        if (!values.empty()) out += fmt::format("    {}--{}) values='{}' ;;\n", verb.name, name, values);
      }
    }
  }
  return out;
}

// Without an answer readline, or zsh behind bashcompinit, completes names of files. Words are split at blanks only
// here: elsewhere at colons too, as in sim:a311d, of which then the last part is completed.
std::string completion(const CommandLine& app) {
  std::string names, cases;
  for (const VerbFacts& verb : app.facts_of_verbs()) {
    names += verb.name + " ";
    cases += fmt::format("    {}) words='{}' ;;\n", verb.name, words(verb));
  }
  return fmt::format(
      "# completion for skillet, of bash; of zsh after: autoload -U bashcompinit; bashcompinit\n"
      "_skillet() {{\n"
      "  local words= values= typed current before head\n"
      "  typed=${{COMP_LINE:-${{COMP_WORDS[*]}}}}\n"
      "  typed=${{typed:0:${{COMP_POINT:-${{#typed}}}}}}\n"
      "  current=${{typed##* }}\n"
      "  before=${{typed% *}}\n"
      "  before=${{before##* }}\n"
      "  COMPREPLY=()\n"
      "  if [[ $COMP_CWORD == 1 ]]; then\n"
      "    COMPREPLY=($(compgen -W '{}{}' -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}  esac\n"
      "  case ${{COMP_WORDS[1]}}$before in\n{}  esac\n"
      "  if [[ $current == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  elif [[ -n $values ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
      "    head=${{current%\"${{current##*:}}\"}}\n"
      "    [[ -n $BASH_VERSION && $COMP_WORDBREAKS == *:* ]] && COMPREPLY=(\"${{COMPREPLY[@]#\"$head\"}}\")\n"
      "  fi\n"
      "}}\n"
      "complete -o default -F _skillet skillet\n",
      names, words(app.facts()), cases, value_cases(app));
}

Result<void> write(const fs::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  if (stream.flush()) return {};
  return error(ErrorCode::io, "{}: cannot be written", file.string());
}

Result<void> pages(const CommandLine& app, const fs::path& folder) {
  SK_TRY(write(folder / "skillet.1", main_page(app)));
  for (const VerbFacts& verb : app.facts_of_verbs())
    SK_TRY(write(folder / ("skillet-" + verb.name + ".1"), verb_page(verb)));
  return write(folder / "skillet.bash", completion(app));
}

}  // namespace

void add_pages(CommandLine& app, Outcome& outcome) {
  auto folder = std::make_shared<std::string>();
  const Verb verb = app.verb("pages", "Write manual pages and the completion of bash, for packages.");
  verb.hidden();  // not in --help
  verb.option("FOLDER", *folder, "where they go").required().check(existing_folder());
  verb.runs([&app, folder, &outcome] { outcome.finish(pages(app, *folder)); });
}

}  // namespace skillet::tools
