#include "frontend/tflite/delegate/delegate_options.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/parse_bool.h"
#include "base/parse_cores.h"
#include "base/text.h"

namespace skillet::delegate {
namespace {

// True when `value` is right; it is then in the options.
using Parse = bool (*)(std::string_view value, Options& options);

struct Row {
  std::string_view key;
  std::string_view alias;  // the name that TensorFlow Lite's own tools have for it; empty: none
  Parse parse;
  std::string_view help;
};

bool parse_int(std::string_view text, int minimum, int& value) {
  int parsed = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (failure != std::errc{} || end != text.data() + text.size() || parsed < minimum) return false;
  value = parsed;
  return true;
}

// Some hosts cannot pass a colon: sim-CHIP is sim:CHIP.
bool parse_device(std::string_view value, Options& options) {
  if (value.empty()) return false;
  options.device = value;
  if (value.starts_with("sim-")) options.device[3] = ':';
  if (value.starts_with("null-")) options.device[4] = ':';
  return true;
}
bool parse_tuning(std::string_view value, Options& options) {
  const std::optional<driver::Tuning> tuning = driver::tuning_from_name(value);
  if (!tuning || *tuning == driver::Tuning::recorded) return false;
  options.compile.tuning = *tuning;
  return true;
}
bool parse_switches(std::string_view value, Options& options) {
  options.compile.switches.clear();
  while (!value.empty()) {
    const size_t end = std::min(value.find('+'), value.size());
    if (end != 0) options.compile.switches.emplace_back(value.substr(0, end));
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return true;
}
bool parse_allow_unproven(std::string_view value, Options& options) {
  return parse_bool(value, options.compile.allow_unproven);
}
bool parse_per_channel(std::string_view value, Options& options) {
  const std::optional<driver::PerChannel> mode = driver::per_channel_from_name(value);
  if (mode) options.compile.per_channel = *mode;
  return mode.has_value();
}
bool parse_cache_dir(std::string_view value, Options& options) {
  options.cache_dir = value;
  return true;
}
bool parse_tuning_file(std::string_view value, Options& options) {
  options.tuning_file = value;
  return true;
}
bool parse_log(std::string_view value, Options& options) {
  const auto level = log::parse_level(value);
  if (level) options.log = level;
  return level.has_value();
}
// Who asks for it in words that we do not know does not want the CPU.
bool parse_require_npu(std::string_view value, Options& options) {
  if (parse_bool(value, options.require_npu)) return true;
  options.require_npu = true;
  return false;
}
bool parse_strict(std::string_view value, Options& options) { return parse_bool(value, options.strict); }
bool parse_max_partitions(std::string_view value, Options& options) {
  return parse_int(value, 0, options.max_delegated_partitions);
}
bool parse_min_nodes(std::string_view value, Options& options) {
  return parse_int(value, 0, options.min_nodes_per_partition);
}
bool parse_min_macs(std::string_view value, Options& options) {
  int parsed = 0;
  const bool is_right = parse_int(value, 0, parsed);
  if (is_right) options.min_macs_per_byte = parsed;
  return is_right;
}
bool parse_partition(std::string_view value, Options& options) {
  const auto by = compile::partition_by_from_name(value);
  if (by) options.partition = *by;
  return by.has_value();
}
bool parse_number_of_cores(std::string_view value, Options& options) { return parse_cores(value, options.cores); }
bool parse_timeout(std::string_view value, Options& options) { return parse_int(value, 1, options.timeout_ms); }
bool parse_profile(std::string_view value, Options& options) { return parse_bool(value, options.profile); }
bool parse_help(std::string_view value, Options& options) { return parse_bool(value, options.help); }

constexpr std::array kRows = {
    Row{"device", "", parse_device,
        "auto: an NPU of this machine, else nothing is claimed; npu: the same, but loading fails without one; cpu: "
        "claim nothing; a device node; sim:CHIP or sim-CHIP: a simulated chip; null-CHIP: a device that computes "
        "nothing, for measuring the host's part (auto)"},
    Row{"tuning", "", parse_tuning,
        "proven: only jobs as a driver that is known to work on silicon makes them; tuned: our own choices (proven)"},
    Row{"tuning_file", "", parse_tuning_file,
        "what `skillet tune` found for this model, chip and build; with it tuning is tuned (none)"},
    Row{"switches", "", parse_switches, "single tuning switches to turn on, joined by + (none)"},
    Row{"allow_unproven", "", parse_allow_unproven,
        "1: a real NPU also takes operations that no known driver ever ran on silicon; simulated ones do anyway (0)"},
    Row{"per_channel", "", parse_per_channel,
        "weights with more scales than the chip takes: exact: each layer is within 1 of its own result, or stays on "
        "the host; approximate: channels share scales (exact)"},
    Row{"cache_dir", "delegate_serialize_dir", parse_cache_dir, "folder for compiled programs (none: no cache)"},
    Row{"log", "", parse_log,
        "of this delegate: error, warning, info (which operation runs where, and why not), debug (warning)"},
    Row{"require_npu", "", parse_require_npu,
        "1: loading fails unless an NPU, or the device that is named, is there (0)"},
    Row{"strict", "", parse_strict, "1: whatever would run on the CPU is an error instead (0)"},
    Row{"max_delegated_partitions", "", parse_max_partitions, "at most so many partitions; 0: no limit (0)"},
    Row{"min_nodes_per_partition", "", parse_min_nodes, "leave partitions of fewer operations to the host (1)"},
    Row{"partition", "", parse_partition,
        "work: the NPU gets what min_macs_per_byte says; predicted: what is predicted to be faster there than on all "
        "cores of the CPU, crossings included (work)"},
    Row{"min_macs_per_byte", "", parse_min_macs,
        "leave partitions to the host that do fewer multiply-accumulates for each byte that enters or leaves, and "
        "those "
        "that only move data; 0: take all (4)"},
    Row{"cores", "", parse_number_of_cores,
        "how many cores of an NPU with several may share one inference, in bands of rows; auto: where that is "
        "predicted "
        "to pay; 1: none; 2 or more: wherever it can be done (auto)"},
    Row{"timeout_ms", "", parse_timeout,
        "milliseconds, 1 or more, that one run of one partition may take on the device (10000)"},
    Row{"profile", "", parse_profile,
        "1: tell the host's profiler each operation; those that the NPU runs together share its time by their work "
        "(0)"},
    Row{"help", "", parse_help, "1: print this list (0)"},
};

std::string environment_name(std::string_view key) {
  std::string name = "SKILLET_";
  for (const char c : key) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::vector<std::string_view> keys() {
  std::vector<std::string_view> all;
  for (const Row& row : kRows) all.push_back(row.key);
  return all;
}

void apply(const Row& row, std::string_view name, std::string_view value, Options& options) {
  if (!row.parse(value, options))
    options.problems.push_back(fmt::format("option {}: '{}' is not a value for it; {}", name, value, row.help));
}

}  // namespace

Options parse_options(const std::vector<KeyValue>& given, const char* (*get_environment)(const char*)) {
  Options options;
  for (const Row& row : kRows) {
    const std::string name = environment_name(row.key);
    // An empty variable, as compose files leave them, is one that is not set.
    const char* value = get_environment(name.c_str());
    if (value != nullptr && *value != '\0') apply(row, name, value, options);
  }
  for (const auto& [key, value] : given) {
    const auto row = std::ranges::find_if(
        kRows, [&key = key](const Row& r) { return r.key == key || (!r.alias.empty() && r.alias == key); });
    if (row == kRows.end()) {
      options.problems.push_back(
          fmt::format("unknown option '{}'{} (help=1 lists them)", key, did_you_mean(key, keys())));
    } else {
      apply(*row, key, value, options);
    }
  }
  return options;
}

std::string options_help() {
  std::string text = "options of the Skillet delegate, each also as an environment variable:\n";
  for (const Row& row : kRows) text += fmt::format("  {:<26}{:<34}{}\n", row.key, environment_name(row.key), row.help);
  return text;
}

}  // namespace skillet::delegate
