#include "tools/jobs/preload.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/environment.h"
#include "tools/show/output.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kSignalBase = 128;

volatile sig_atomic_t g_child = 0;

Result<std::string> find_library(const std::string& name) {
  std::error_code ec;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ec).parent_path();
  const fs::path candidates[] = {folder / name, folder / "../lab/interpose" / name,
                                 folder / ".." / SKILLET_PRELOAD_DIR / name};
  for (const fs::path& one : candidates) {
    if (fs::exists(one, ec)) return fs::canonical(one, ec).string();
  }
  return error(ErrorCode::io, "{} is neither in {} nor in {}", name, folder.string(),
               (folder / ".." / SKILLET_PRELOAD_DIR).lexically_normal().string());
}

// The recorder must come before the virtual node: the first library in the list gets a call first.
std::string preload_list(const std::string& library, PreloadOrder order) {
  const char* const others = environment_variable("LD_PRELOAD");
  if (others == nullptr || *others == '\0') return library;
  return order == PreloadOrder::before_others ? library + ":" + others : others + (":" + library);
}

[[noreturn]] void become(const PreloadedCommand& what, const std::string& preload) {
  ::setenv("LD_PRELOAD", preload.c_str(), 1);
  for (const auto& [name, value] : what.environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& one : what.command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  std::signal(SIGXFSZ, SIG_DFL);
  ::execvp(arguments[0], arguments.data());
  const int number = errno;
  complain(fmt::format("{}: {}", what.command[0], std::strerror(number)));
  ::_exit(number == ENOENT ? kNotFound : kCannotRun);
}

void pass_on(int number) {
  if (g_child > 0) ::kill(g_child, number);
}

Result<int> wait_for(pid_t child) {
  // The terminal sends its signals to the child too; signals sent to this process alone are passed on.
  g_child = child;
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  for (const int number : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) std::signal(number, pass_on);
  int status = 0;
  pid_t ended = -1;
  do {
    ended = ::waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  const int number = errno;
  g_child = 0;
  if (ended != child)
    return error(ErrorCode::io, "the program's exit status is unknown: wait: {}", std::strerror(number));
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
}

}  // namespace

Result<int> run_preloaded(const PreloadedCommand& what) {
  if (what.command.empty()) return error(ErrorCode::invalid_argument, "no command to run");
  SK_TRY_ASSIGN(const std::string library, find_library(what.library));
  const std::string preload = preload_list(library, what.order);
  const pid_t child = ::fork();
  if (child < 0) return error(ErrorCode::io, "fork: {}", std::strerror(errno));
  if (child == 0) become(what, preload);
  return wait_for(child);
}

}  // namespace skillet::tools
