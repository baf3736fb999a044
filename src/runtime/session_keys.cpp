#include "runtime/session_keys.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <sstream>

#include "base/environment.h"
#include "base/log.h"
#include "base/parse_bool.h"
#include "base/parse_cores.h"
#include "base/parse_number.h"
#include "base/text.h"

namespace skillet::runtime {
namespace {

bool at_least(uint64_t minimum, std::string_view text, uint64_t& value) {
  const auto parsed = parse_number<uint64_t>(text);
  if (!parsed || *parsed < minimum) return false;
  value = *parsed;
  return true;
}

bool tuning(std::string_view text, SessionOptions& options) {
  const auto parsed = npu::tuning_from_name(text);
  if (!parsed || *parsed == npu::Tuning::recorded) return false;
  options.compile.tuning = *parsed;
  return true;
}
bool switches(std::string_view text, SessionOptions& options) {
  if (text.find_first_not_of('+') == std::string_view::npos && !text.empty()) return false;
  options.compile.switches.clear();
  while (!text.empty()) {
    const size_t end = std::min(text.find('+'), text.size());
    if (end != 0) options.compile.switches.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}
bool unproven(std::string_view text, SessionOptions& options) {
  const auto parsed = npu::unproven_from_name(text);
  if (parsed) options.compile.unproven = *parsed;
  return parsed.has_value();
}
// The option's former name.
bool allow_unproven(std::string_view text, SessionOptions& options) {
  bool allowed = false;
  if (!parse_bool(text, allowed)) return false;
  const auto meant = allowed ? npu::Unproven::take : npu::Unproven::refuse;
  warn_of_old_name(fmt::format("allow_unproven={}", printable(text)), meant);
  options.compile.unproven = meant;
  return true;
}
bool per_channel(std::string_view text, SessionOptions& options) {
  const auto mode = npu::per_channel_from_name(text);
  if (mode) options.compile.per_channel = *mode;
  return mode.has_value();
}
bool cache_dir(std::string_view text, SessionOptions& options) {
  options.cache_dir = expand_home(text);
  return true;
}
bool tuning_file(std::string_view text, SessionOptions& options) {
  options.tuning_file = expand_home(text);
  return true;
}
bool trace(std::string_view text, SessionOptions& options) {
  options.trace = expand_home(text);
  return true;
}
bool cores(std::string_view text, SessionOptions& options) { return parse_cores(text, options.cores); }
bool fallback(std::string_view text, SessionOptions& options) { return parse_bool(text, options.allow_fallback); }
bool min_macs(std::string_view text, SessionOptions& options) {
  uint64_t value = 0;
  if (!at_least(0, text, value)) return false;
  options.min_macs_per_byte = value;
  return true;
}
bool partition(std::string_view text, SessionOptions& options) {
  const auto by = compile::partition_by_from_name(text);
  if (by) options.partition = *by;
  return by.has_value();
}
bool host_threads(std::string_view text, SessionOptions& options) {
  int threads = 0;
  if (!parse_cores(text, threads)) return false;
  options.host_threads = threads;
  return true;
}
bool verify_every(std::string_view text, SessionOptions& options) { return at_least(0, text, options.verify_every); }
bool timeout(std::string_view text, SessionOptions& options) {
  constexpr uint64_t kMost = uint64_t{1} << 31;
  uint64_t ms = 0;
  if (!at_least(1, text, ms) || ms > kMost) return false;
  options.timeout = std::chrono::milliseconds(ms);
  return true;
}

// An old name precedes the new one: options are set in this order, so the new one wins.
constexpr std::array kRows = {
    SessionKey{"tuning", tuning,
               "proven: only jobs as made by a driver that works on silicon; tuned: our own choices too (proven)",
               "proven or tuned"},
    SessionKey{"switches", switches, "single tuning switches to turn on, joined by + (none)",
               "names of switches, joined by +"},
    SessionKey{"allow_unproven", allow_unproven, "old: 1 is unproven=take, 0 is unproven=refuse", "1 or 0"},
    SessionKey{"unproven", unproven,
               "operations that no known driver ever ran on silicon: refuse: the CPU runs them; verify: the NPU runs "
               "them after a comparison with the CPU on this device; take: the NPU runs them unchecked (verify)",
               "refuse, verify or take"},
    SessionKey{"verify_every", verify_every,
               "compare the NPU's results with the CPU's after every N runs, on the same inputs; wrong operations move "
               "to the CPU, in later sessions too; 0: never (0)",
               "a number of runs, 0 for never"},
    SessionKey{
        "per_channel", per_channel,
        "weights with more scales than the chip takes: exact: each layer within 1 of its exact result, or on "
        "the CPU; approximate: channels share scales; strict: as exact, and only rewrites that give the same bits "
        "(exact)",
        "exact, approximate or strict"},
    SessionKey{"tuning_file", tuning_file,
               "tuning file of `skillet tune` for this model, chip and build; implies tuned; empty: none (empty)",
               "a file"},
    SessionKey{"trace", trace,
               "file for a trace of this process, for https://ui.perfetto.dev and `skillet trace`; %p in it is the "
               "process id; empty: none (empty)",
               "a file"},
    SessionKey{"cache_dir", cache_dir, "folder for compiled programs; empty: none (empty)", "a folder"},
    SessionKey{"cores", cores,
               "how many NPU cores may share one inference; auto: as many as are predicted to be faster (auto)",
               "auto or a number of cores"},
    SessionKey{"fallback", fallback, "0: an error instead of running an NPU part on the CPU when the NPU fails (1)",
               "1 or 0"},
    SessionKey{"partition", partition,
               "which parts go to the NPU. all: those that the chip takes; predicted: of these, those predicted to be "
               "faster there, copies included; work: those with enough work for min_macs_per_byte (predicted; work if "
               "min_macs_per_byte is given)",
               "all, predicted or work"},
    SessionKey{"min_macs_per_byte", min_macs,
               "for partition=work: parts with fewer multiply-accumulates per byte that enters or leaves stay on the "
               "CPU; also for predicted, on chips without a timing model (4)",
               "a number"},
    SessionKey{"host_threads", host_threads,
               "for partition=predicted: how many large CPU cores compute the parts on the CPU; auto: all (1)",
               "auto or a number of cores"},
    SessionKey{"timeout_ms", timeout,
               "timeout in milliseconds, 1 or more, for one run of one part on the device (10000)",
               "a number of milliseconds, 1 or more"},
};

}  // namespace

void warn_of_old_name(std::string_view given, npu::Unproven meant) {
  static std::atomic<bool> is_said = false;
  if (!is_said.exchange(true)) log::warning("{} is an old name: write unproven={}", given, npu::unproven_name(meant));
}

std::span<const SessionKey> session_keys() { return kRows; }

Result<void> set_option(SessionOptions& options, std::string_view key, std::string_view value) {
  const auto row = std::ranges::find(kRows, key, &SessionKey::key);
  if (row == kRows.end()) {
    std::array<std::string_view, kRows.size()> keys;
    std::ranges::transform(kRows, keys.begin(), &SessionKey::key);
    return error(ErrorCode::invalid_argument, "there is no option '{}'{}", printable(key), did_you_mean(key, keys));
  }
  if (row->set(value, options)) return {};
  return error(ErrorCode::invalid_argument, "option {}: '{}' is not a valid value; {}", key, printable(value),
               row->help);
}

std::string environment_name(std::string_view key) {
  std::string name = "SKILLET_";
  for (const char c : key) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

Result<void> set_options_of_environment(SessionOptions& options) {
  for (const SessionKey& row : kRows) {
    const std::string name = environment_name(row.key);
    const char* const value = environment_variable(name.c_str());
    if (value != nullptr && !row.set(value, options))
      return error(ErrorCode::invalid_argument, "{}={}: must be {}", name, printable(value), row.of_environment);
  }
  return {};
}

npu::Unproven unproven_of_environment() {
  SessionOptions options;
  [[maybe_unused]] const auto set = set_options_of_environment(options);
  return options.compile.unproven;
}

std::string deciding_options(const SessionOptions& options) {
  const auto number = [](int count) { return count == 0 ? std::string("auto") : std::to_string(count); };
  const bool has_file = options.tuning != nullptr || !options.tuning_file.empty();
  const compile::PartitionBy partition = partition_of(options);
  std::string out;
  const auto add = [&](std::string_view key, std::string_view value) { out += fmt::format("{}={}\n", key, value); };
  add("tuning", npu::tuning_name(options.compile.tuning));
  add("switches", fmt::format("{}", fmt::join(options.compile.switches, "+")));
  add("unproven", npu::unproven_name(options.compile.unproven));
  add("per_channel", npu::per_channel_name(options.compile.per_channel));
  add("tuning_file", has_file ? "given" : "");
  add("cores", number(options.cores));
  add("partition", compile::kPartitionByNames[static_cast<size_t>(partition)]);
  if (partition == compile::PartitionBy::predicted) add("host_threads", number(options.host_threads.value_or(0)));
  if (partition != compile::PartitionBy::all)
    add("min_macs_per_byte", std::to_string(options.min_macs_per_byte.value_or(kMacsPerByte)));
  if (options.keep_intermediates || options.compile.keep_intermediates) add("intermediates", "kept");
  return out;
}

namespace {

std::map<std::string, std::string, std::less<>> values_in(std::string_view text) {
  std::map<std::string, std::string, std::less<>> out;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t is = std::min(line.find('='), line.size());
    out.emplace(line.substr(0, is), line.substr(std::min(is + 1, line.size())));
  }
  return out;
}

}  // namespace

std::string print_difference(std::string_view theirs, std::string_view ours) {
  const auto there = values_in(theirs), here = values_in(ours);
  const auto named = [](const std::string& value) { return value.empty() ? std::string("none") : printable(value); };
  std::vector<std::string> out;
  for (const auto& [key, value] : there) {
    const auto found = here.find(key);
    if (found == here.end())
      out.push_back(fmt::format("{}={}", printable(key), named(value)));
    else if (found->second != value)
      out.push_back(fmt::format("{}={}, not {}", printable(key), named(value), named(found->second)));
  }
  for (const auto& [key, value] : here)
    if (!there.contains(key)) out.push_back(fmt::format("no {}={}", key, named(value)));
  return fmt::format("{}", fmt::join(out, "; "));
}

std::string session_keys_help() {
  std::string text;
  for (const SessionKey& row : kRows) text += fmt::format("{:<20}{}\n", row.key, row.help);
  return text;
}

}  // namespace skillet::runtime
