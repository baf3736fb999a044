// `skillet pages FOLDER`, for packages: manual pages and the completion of bash, of what --help is made of.
#include <cctype>
#include <filesystem>
#include <fstream>

#include "tools/verbs.h"

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

std::string option_page(const CLI::Option& option) {
  const std::string names = option.get_name(option.get_positional(), true);
  const bool takes_value = option.get_type_size() != 0 && !option.get_positional();
  return ".TP\n\\fB" + roff(names) + "\\fR" + (takes_value ? " \\fI" + roff(option.get_type_name()) + "\\fR" : "") +
         "\n" + roff(option.get_description()) + "\n";
}

std::string title(std::string_view name, std::string_view what) {
  std::string upper;
  for (const char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(".TH {} 1 \"\" \"skillet {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n", roff(upper),
                     SKILLET_VERSION, roff(name), roff(what));
}

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  std::vector<const CLI::App*> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) verbs.push_back(verb);
  }
  return verbs;
}

std::string options_pages(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) out += option_page(*option);
  return out;
}

std::string main_page(const CLI::App& app) {
  std::string out = title("skillet", first_line(app.get_description()));
  out += "\\fBskillet\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n" + verbatim(app.get_description());
  out += ".SH OPTIONS\n" + options_pages(app) + ".SH VERBS\n";
  for (const CLI::App* verb : verbs_of(app))
    out +=
        fmt::format(".TP\n\\fBskillet\\-{}\\fR(1)\n{}\n", verb->get_name(), roff(first_line(verb->get_description())));
  return out;
}

std::string verb_page(const CLI::App& verb) {
  const std::string name = "skillet-" + verb.get_name();
  std::string out = title(name, first_line(verb.get_description()));
  out += fmt::format("\\fBskillet {}\\fR [\\fIOPTIONS\\fR]", verb.get_name());
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_positional()) out += " \\fI" + roff(option->get_name(true)) + "\\fR";
  }
  out += "\n.SH DESCRIPTION\n" + verbatim(verb.get_description()) + ".SH OPTIONS\n" + options_pages(verb);
  return out + ".SH EXIT STATUS\n" + roff(verb.get_footer()) + "\n.SH SEE ALSO\n\\fBskillet\\fR(1)\n";
}

// "--help --device ...".
std::string words(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out += (out.empty() ? "--" : " --") + name;
  }
  return out;
}

std::string completion(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* verb : verbs_of(app)) {
    names += verb->get_name() + " ";
    cases += fmt::format("    {}) words='{}' ;;\n", verb->get_name(), words(*verb));
  }
  return fmt::format(
      "# bash completion for skillet\n"
      "_skillet() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} words=\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '{}{}' -- \"$current\")\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}  esac\n"
      "  if [[ $current == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      "  fi\n"
      "}}\n"
      "complete -o filenames -F _skillet skillet\n",
      names, words(app), cases);
}

Result<void> write(const fs::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  if (stream.flush()) return {};
  return error(ErrorCode::io, "{}: cannot be written", file.string());
}

Result<void> pages(const CLI::App& app, const fs::path& folder) {
  SK_TRY(write(folder / "skillet.1", main_page(app)));
  for (const CLI::App* verb : verbs_of(app))
    SK_TRY(write(folder / ("skillet-" + verb->get_name() + ".1"), verb_page(*verb)));
  return write(folder / "skillet.bash", completion(app));
}

}  // namespace

void add_pages(CLI::App& app, Outcome& outcome) {
  auto folder = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("pages", "Write manual pages and the completion of bash, for packages.");
  verb->group("");  // not in --help
  verb->add_option("FOLDER", *folder, "where they go")->required()->check(CLI::ExistingDirectory);
  verb->callback([&app, folder, &outcome] { outcome.finish(pages(app, *folder)); });
}

}  // namespace skillet::tools
