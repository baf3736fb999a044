// Runs a command with one of our libraries preloaded.
// Called by `skillet virtual` and `skillet capture`.
// Must not know: what the libraries do.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace skillet::tools {

enum class PreloadOrder { before_others, after_others };

struct PreloadedCommand {
  std::vector<std::string> command;
  std::string library;  // "libskillet-virtual.so": beside this program, in the build tree, or installed
  PreloadOrder order = PreloadOrder::before_others;
  std::vector<std::pair<std::string, std::string>> environment;
};

// Exit codes of a command that cannot be run, as shells have them.
inline constexpr int kCannotRun = 126, kNotFound = 127;

// Waits for the end of the command; its exit code, 128 + the signal that killed it, 126 or 127 when it cannot be run.
Result<int> run_preloaded(const PreloadedCommand& what);

}  // namespace skillet::tools
