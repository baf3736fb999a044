#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/leaked.h"
#include "base/log_sink.h"
#include "base/process_lock.h"
#include "base/text.h"

namespace skillet::log {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"error", "warning", "info", "debug"};

struct Flag {
  std::string_view name, argument, help;
};
constexpr std::array kFlags = {
    Flag{"help", "", "print this text"},
    Flag{"ir", "", "print the graph after import"},
    Flag{"passes", "", "print the graph after each pass"},
    Flag{"stream", "", "print the device operations and the command stream of each compiled program"},
    Flag{"sim", "", "print each job that a simulator executes"},
    Flag{"submit", "", "print each submission"},
    Flag{"capture", "=FILE", "record the submissions to each device of this process"},
};

constexpr int kNotScoped = -1;
thread_local int t_level = kNotScoped;

// Without a sink the lock is not taken; in a child of fork() it is free.
constinit ProcessLock g_sink_lock;
constinit thread_local bool t_has_sink_lock = false;  // a sink may log, or set another sink
std::atomic<int> g_sink_level = kNotScoped;

class SinkGuard {
 public:
  SinkGuard() : is_outer_(!std::exchange(t_has_sink_lock, true)) {
    if (is_outer_) g_sink_lock.lock();
  }
  ~SinkGuard() {
    if (!is_outer_) return;
    t_has_sink_lock = false;
    g_sink_lock.unlock();
  }

 private:
  const bool is_outer_;
};

Sink& sink_of_program() {
  return leaked([] { return Sink(); });
}

bool write_to_sink(Level level, const std::string& text) {
  if (g_sink_level == kNotScoped) return false;
  const SinkGuard guard;
  const Sink sink = sink_of_program();  // it may be replaced while it runs
  if (sink) sink(level, text.c_str());
  return static_cast<bool>(sink);
}

// Warns at any level, because the user's setting has no effect.
void tell_misspelt_variables() {
  for (const std::string& text : misspelt_variables(environ)) write(Level::warning, text);
}

Level level_from_environment() {
  tell_misspelt_variables();
  const char* text = environment_variable("SKILLET_LOG");
  if (text == nullptr || *text == '\0') return Level::warning;
  if (const auto level = parse_level(text)) return *level;
  write(Level::warning, fmt::format("SKILLET_LOG={}: must be error, warning, info or debug{}; taking warning", text,
                                    did_you_mean(text, kLevelNames)));
  return Level::warning;
}

Level current_level() {
  if (t_level != kNotScoped) return static_cast<Level>(t_level);
  if (const int level = g_sink_level; level != kNotScoped) return static_cast<Level>(level);
  return leaked([] { return level_from_environment(); });
}

// "capture=FILE" is "capture" and "FILE".
struct Item {
  std::string_view name;
  std::optional<std::string_view> value;
};

std::vector<Item> items() {
  const char* text = environment_variable("SKILLET_DEBUG");
  std::string_view rest = text == nullptr ? std::string_view{} : std::string_view{text};
  std::vector<Item> out;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    const size_t equals = std::min(one.find('='), one.size());
    out.push_back({one.substr(0, equals), {}});
    if (equals != one.size()) out.back().value = one.substr(equals + 1);
  }
  return out;
}

bool tell_wrong_flags() {
  std::array<std::string_view, kFlags.size()> names;
  std::ranges::transform(kFlags, names.begin(), &Flag::name);
  for (const Item& item : items()) {
    if (item.name.empty()) continue;
    if (const auto flag = std::ranges::find(kFlags, item.name, &Flag::name); flag != kFlags.end()) {
      if (!flag->argument.empty() && item.value.value_or("").empty())
        write(Level::warning,
              fmt::format("SKILLET_DEBUG: '{0}' does nothing: it must be {0}{1}", flag->name, flag->argument));
      continue;
    }
    write(Level::warning, fmt::format("SKILLET_DEBUG: there is no '{}'{} (SKILLET_DEBUG=help lists all)", item.name,
                                      did_you_mean(item.name, names)));
  }
  return true;
}

}  // namespace

std::optional<Level> parse_level(std::string_view name) {
  const auto found = std::ranges::find(kLevelNames, name);
  if (found == kLevelNames.end()) return std::nullopt;
  return static_cast<Level>(found - kLevelNames.begin());
}

bool enabled(Level level) { return level <= current_level(); }

void write(Level level, std::string_view message) {
  const bool is_one_line = level == Level::error || level == Level::warning;  // names in it may contain line ends
  const std::string text = printable(message, !is_one_line);
  if (write_to_sink(level, text)) return;
  const std::string line = fmt::format("skillet: {}: {}\n", kLevelNames[static_cast<size_t>(level)], text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void set_sink(Sink sink, Level level) {
  const SinkGuard guard;
  g_sink_level = sink ? static_cast<int>(level) : kNotScoped;
  sink_of_program() = std::move(sink);
}

ScopedLevel::ScopedLevel(std::optional<Level> level) : before_(t_level) {
  if (level) t_level = static_cast<int>(*level);
}

ScopedLevel::~ScopedLevel() { t_level = before_; }

bool debug_flag(std::string_view flag) {
  const bool is_checked = leaked([] { return tell_wrong_flags(); });
  const std::vector<Item> all = items();
  return is_checked && std::ranges::find(all, flag, &Item::name) != all.end();
}

std::optional<std::string> debug_value(std::string_view flag) {
  const std::vector<Item> all = items();
  const auto found = std::ranges::find(all, flag, &Item::name);
  if (found == all.end() || !found->value) return std::nullopt;
  return std::string(*found->value);
}

std::string debug_flags_help() {
  std::string text = "SKILLET_DEBUG is a comma list of:\n";
  for (const Flag& flag : kFlags)
    text += fmt::format("  {:<13} {}\n", fmt::format("{}{}", flag.name, flag.argument), flag.help);
  return text;
}

}  // namespace skillet::log
