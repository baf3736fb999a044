// Options of a plug-in in a host: from the host's key/value list and from the environment.
// Called by the plug-ins: the TensorFlow Lite delegate, the ONNX Runtime provider, LiteRT's plug-in.
// Must not know: the host's structs, devices.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "runtime/session.h"

namespace skillet::host {

struct Problem {
  std::string text;
  std::string_view instead = "ignored";  // what happens instead
};

struct Options {
  std::string device = "auto";
  runtime::SessionOptions session = runtime::with_defaults({});  // by runtime/session_keys.h
  bool host_threads_given = false;                               // session.host_threads is not the default
  std::optional<log::Level> log;                                 // none: the level of the process
  bool strict = false;
  bool require_npu = false;
  int max_delegated_partitions = 0;  // 0: no limit
  int min_nodes_per_partition = 1;
  bool profile = false;
  bool help = false;
  std::vector<Problem> problems;  // unknown keys, values that do not parse
};

using KeyValue = std::pair<std::string, std::string>;

// `get_environment` (borrowed, like environment_variable()) returns SKILLET_DEVICE and so on; the host's list has
// priority.
Options parse_options(const std::vector<KeyValue>& given, const char* (*get_environment)(const char*));

// Returns one line for each option; `of`: the plug-in, for the heading.
std::string options_help(std::string_view of);

}  // namespace skillet::host
