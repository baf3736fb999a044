// Log lines to stderr: "skillet: warning: ...". Level from SKILLET_LOG (error, warning, info, debug).
// Called everywhere; tools print their results directly to stdout.
// Must not know: anything above base/.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

namespace skillet::log {

enum class Level { error, warning, info, debug };

// None: no level has this name.
std::optional<Level> parse_level(std::string_view name);

bool enabled(Level level);
void write(Level level, std::string_view message);

// Sets the level of this thread for its lifetime: a process may have several delegates, each with its own level.
class ScopedLevel {
 public:
  explicit ScopedLevel(std::optional<Level> level);  // none: unchanged
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

// True if SKILLET_DEBUG (comma-separated list) contains `flag`; see debug_flags_help() for the flags.
bool debug_flag(std::string_view flag);
// The text after "flag=" in it; none: the flag is not set.
std::optional<std::string> debug_value(std::string_view flag);
std::string debug_flags_help();

}  // namespace skillet::log
