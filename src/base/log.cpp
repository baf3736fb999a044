#include "base/log.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace skillet::log {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"error", "warning", "info", "debug"};

Level level_from_environment() {
  const char* text = std::getenv("SKILLET_LOG");
  if (text == nullptr) return Level::warning;
  for (size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == text) return static_cast<Level>(i);
  }
  return Level::warning;
}

std::atomic<Level>& current_level() {
  static std::atomic<Level> level{level_from_environment()};
  return level;
}

}  // namespace

bool enabled(Level level) { return level <= current_level().load(std::memory_order_relaxed); }

void set_level(Level level) { current_level().store(level); }

void write(Level level, std::string_view message) {
  const std::string line = fmt::format("skillet: {}: {}\n", kLevelNames[static_cast<size_t>(level)], message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

bool debug_flag(std::string_view flag) {
  const char* text = std::getenv("SKILLET_DEBUG");
  std::string_view rest = text == nullptr ? std::string_view{} : std::string_view{text};
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    if (item == flag || (item.substr(0, flag.size()) == flag && item.size() > flag.size() && item[flag.size()] == '='))
      return true;
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return false;
}

std::string_view debug_flags_help() {
  return "SKILLET_DEBUG is a comma list of:\n"
         "  help     print this text\n"
         "  ir       print the graph after import\n"
         "  passes   print the graph after each pass\n"
         "  stream   print the device operations and the command stream of each compiled program\n"
         "  sim      print each job that a simulator executes\n"
         "  submit   print each submission\n";
}

}  // namespace skillet::log
