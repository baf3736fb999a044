// Log lines to stderr: "skillet: warning: ...". Level from SKILLET_LOG (error, warning, info, debug).
// Called by everyone; tools print their results to stdout, never through here.
// Must not know: anything above base/.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

namespace skillet::log {

enum class Level { error, warning, info, debug };

// By its name; none: there is no such level.
std::optional<Level> parse_level(std::string_view name);

bool enabled(Level level);
void write(Level level, std::string_view message);

// While one lives, the level of this thread: a process may hold several delegates, each with its own.
class ScopedLevel {
 public:
  explicit ScopedLevel(std::optional<Level> level);  // none: as it is
  ~ScopedLevel();
  ScopedLevel(const ScopedLevel&) = delete;
  ScopedLevel& operator=(const ScopedLevel&) = delete;

 private:
  int before_;
};

template <typename... Args>
void message(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(level)) write(level, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  message(Level::warning, format, std::forward<Args>(args)...);
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  message(Level::info, format, std::forward<Args>(args)...);
}
template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  message(Level::debug, format, std::forward<Args>(args)...);
}

// True when SKILLET_DEBUG (comma list) contains `flag`; see debug_flags_help() for the flags.
bool debug_flag(std::string_view flag);
// What follows "flag=" in it; none: the flag is not there.
std::optional<std::string> debug_value(std::string_view flag);
std::string debug_flags_help();

}  // namespace skillet::log
