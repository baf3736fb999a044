#include "frontend/host/options.h"

#include <algorithm>
#include <array>

#include "base/parse_bool.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "runtime/session_keys.h"

namespace skillet::host {
namespace {

// Parses `value` into the options. False: the value is not valid.
using Parse = bool (*)(std::string_view value, Options& options);

// Keys of plug-ins that sessions do not have.
struct Row {
  std::string_view key;
  Parse parse;
  std::string_view help;
  std::string_view instead = "ignored";  // what happens with a value that is not valid
};

bool parse_int(std::string_view text, int minimum, int& value) {
  const auto parsed = parse_number<int>(text);
  if (!parsed || *parsed < minimum) return false;
  value = *parsed;
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
bool parse_log(std::string_view value, Options& options) {
  const auto level = log::parse_level(value);
  if (level) options.log = level;
  return level.has_value();
}
// A value that does not parse counts as "on": a user who sets this key does not want the CPU.
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
bool parse_profile(std::string_view value, Options& options) { return parse_bool(value, options.profile); }
bool parse_help(std::string_view value, Options& options) { return parse_bool(value, options.help); }

constexpr std::array kRows = {
    Row{"device", parse_device,
        "auto: an NPU of this machine, else nothing is claimed; npu: as auto, but loading fails without an NPU; cpu: "
        "claim nothing; a device node; sim:CHIP or sim-CHIP: a simulated chip; null-CHIP: a device that computes "
        "nothing, for measuring the host's part (auto)"},
    Row{"log", parse_log,
        "log level of this delegate: error, warning, info (which operation runs where, and why), debug (warning)"},
    Row{"require_npu", parse_require_npu, "1: loading fails if no NPU, or not the named device, is present (0)",
        "taking 1"},
    Row{"strict", parse_strict, "1: an operation that would run on the CPU is an error (0)"},
    Row{"max_delegated_partitions", parse_max_partitions, "largest number of partitions; 0: no limit (0)"},
    Row{"min_nodes_per_partition", parse_min_nodes, "leave partitions of fewer operations to the host (1)"},
    Row{"profile", parse_profile,
        "1: report each operation to the host's profiler; the time of operations that the NPU runs together is divided "
        "by their work (0)"},
    Row{"help", parse_help, "1: print this list (0)"},
};

constexpr std::string_view kStrictSaysIt = "fallback";           // a key of sessions that plug-ins do not take
constexpr std::string_view kOfTools = "delegate_serialize_dir";  // the name of cache_dir in TensorFlow Lite's own tools

// A key of plug-ins or of sessions.
struct Key {
  std::string_view key, help;
  const Row* own = nullptr;
  const runtime::SessionKey* of_session = nullptr;

  bool set(std::string_view value, Options& options) const {
    return own != nullptr ? own->parse(value, options) : of_session->set(value, options.session);
  }
};

std::vector<Key> all_keys() {
  std::vector<Key> all;
  for (const Row& row : kRows) all.push_back({row.key, row.help, &row, nullptr});
  for (const runtime::SessionKey& row : runtime::session_keys()) {
    if (row.key != kStrictSaysIt) all.push_back({row.key, row.help, nullptr, &row});
  }
  return all;
}

void apply(const Key& key, std::string_view name, std::string_view value, Options& options) {
  if (key.set(value, options)) return;
  const bool is_unproven = key.key == "unproven";  // for a value that does not parse, the most careful one is used
  if (is_unproven) options.session.compile.unproven = npu::Unproven::refuse;
  options.problems.push_back({fmt::format("option {}: '{}' is not a valid value; {}", name, value, key.help),
                              is_unproven          ? "taking refuse"
                              : key.own != nullptr ? key.own->instead
                                                   : "ignored"});
}

// Warns of options that have no effect.
void warn_of_idle(Options& options) {
  using compile::PartitionBy;
  const runtime::SessionOptions& session = options.session;
  const PartitionBy by = runtime::partition_of(runtime::with_defaults(session));
  const auto idle = [&](std::string_view key, std::string_view where) {
    options.problems.push_back({fmt::format("option {} needs {}, but partition={}", key, where,
                                            compile::kPartitionByNames[static_cast<size_t>(by)])});
  };
  if (session.min_macs_per_byte && by == PartitionBy::all) idle("min_macs_per_byte", "partition=work");
  if (session.host_threads && by != PartitionBy::predicted) idle("host_threads", "partition=predicted");
}

}  // namespace

Options parse_options(const std::vector<KeyValue>& given, const char* (*get_environment)(const char*)) {
  Options options;
  options.session = {};  // only options that are set explicitly; defaults come last
  const std::vector<Key> keys = all_keys();
  for (const Key& key : keys) {
    const std::string name = runtime::environment_name(key.key);
    // An empty variable, as compose files leave it, counts as not set.
    const char* value = get_environment(name.c_str());
    if (value != nullptr && *value != '\0') apply(key, name, value, options);
  }
  const auto find = [&](std::string_view name) {
    return std::ranges::find(keys, name == kOfTools ? std::string_view("cache_dir") : name, &Key::key);
  };
  std::vector<KeyValue> in_order = given;  // in the order of the keys, as for the environment
  std::ranges::stable_sort(in_order, {}, [&](const KeyValue& one) { return find(one.first); });
  for (const auto& [name, value] : in_order) {
    const auto found = find(name);
    if (found != keys.end()) {
      apply(*found, name, value, options);
      continue;
    }
    std::vector<std::string_view> names;
    for (const Key& key : keys) names.push_back(key.key);
    options.problems.push_back(
        {fmt::format("unknown option '{}'{} (help=1 lists them)", name, did_you_mean(name, names))});
  }
  warn_of_idle(options);
  options.host_threads_given = options.session.host_threads.has_value();
  options.session = runtime::with_defaults(std::move(options.session));
  return options;
}

std::string options_help(std::string_view of) {
  std::string text = fmt::format("options of the {}, each also as an environment variable:\n", of);
  for (const Key& key : all_keys())
    text += fmt::format("  {:<26}{:<34}{}\n", key.key, runtime::environment_name(key.key), key.help);
  return text;
}

}  // namespace skillet::host
