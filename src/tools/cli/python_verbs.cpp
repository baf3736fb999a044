#include "tools/cli/python_verbs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "tools/cli/exit_codes.h"
#include "tools/show/output.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

// Place of the Python package if the command is in such a folder: a wheel, an installation, a build. Other folders must
// not match.
struct Layout {
  std::string_view folder, package;
};
constexpr auto kLayouts = std::to_array<Layout>({{"skillet/bin", "../.."},
                                                 {"bin", "../lib/python3/dist-packages"},
                                                 {"src/tools", "../../../../src/frontend/python"}});
constexpr std::string_view kBuiltLibrary = "../frontend/c_api/libskillet_c.so.0";
// Calls no command, so that a package without the verb cannot call this program again. Removes the current folder from
// the module path.
constexpr const char* kProgram =
    "import sys\n"
    "sys.path[:] = [place for place in sys.path if place]\n"
    "try:\n"
    "    from skillet.__main__ import run_verb\n"
    "except ImportError as why:\n"
    "    print(f'skillet {sys.argv[1]}: needs the Python package of Skillet: {why} (docs/install.md)', "
    "file=sys.stderr)\n"
    "    sys.exit(2)\n"
    "run_verb(sys.argv[1:])\n";

bool is_python(std::span<char* const> arguments) {
  if (arguments.empty()) return false;
  const std::string_view verb = arguments.front();
  const auto is_page = [](const std::string_view word) { return word == "--html" || word.starts_with("--html="); };
  return std::ranges::count(kPythonVerbs, verb) != 0 || (verb == "decode" && std::ranges::any_of(arguments, is_page));
}

void put_first(const char* variable, const fs::path& folder) {
  const char* const others = environment_variable(variable);
  const bool has_others = others != nullptr && *others != '\0';
  ::setenv(variable, fmt::format("{}{}{}", folder.string(), has_others ? ":" : "", has_others ? others : "").c_str(),
           1);
}

// Sets variables so that Python finds this program's package, command, and (in a build) C interface.
void name_ours() {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  put_first("PATH", folder);
  const fs::path library = (folder / kBuiltLibrary).lexically_normal();
  if (fs::exists(library, ignored)) ::setenv("SKILLET_C_LIBRARY", library.c_str(), 0);
  const std::string where = "/" + folder.string();
  for (const Layout& one : kLayouts) {
    const fs::path package = (folder / one.package).lexically_normal();
    if (where.ends_with(fmt::format("/{}", one.folder)) && fs::exists(package / "skillet/__main__.py", ignored))
      return put_first("PYTHONPATH", package);
  }
}

}  // namespace

std::string python() {
  const char* const named = environment_variable(kPythonVariable);
  return named == nullptr || *named == '\0' ? "python3" : named;
}

std::optional<int> run_python_verb(std::span<char* const> arguments) {
  if (!is_python(arguments)) return std::nullopt;
  name_ours();
  std::string interpreter = python();
  std::string option = "-c", program = kProgram;
  std::vector<char*> words = {interpreter.data(), option.data(), program.data()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.push_back(nullptr);
  std::signal(SIGXFSZ, SIG_DFL);
  ::execvp(words[0], words.data());
  complain(fmt::format("{}: {}", interpreter, std::strerror(errno)));
  return kCannotBegin;
}

}  // namespace skillet::tools
