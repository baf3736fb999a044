// Log lines to stderr: "skillet: warning: ...". Level from SKILLET_LOG (error, warning, info, debug).
// Called by everyone; tools print their results to stdout, never through here.
// Must not know: anything above base/.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace skillet::log {

enum class Level { error, warning, info, debug };

bool enabled(Level level);
void set_level(Level level);
void write(Level level, std::string_view message);

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
std::string_view debug_flags_help();

}  // namespace skillet::log
