// `skillet cdi`: describes the NPUs of this machine for container programs (Container Device Interface).
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "runtime/device_context.h"
#include "tools/cli/verbs.h"

namespace skillet::tools {
namespace {

using nlohmann::json;

struct Options {
  std::vector<std::string> mounts;
};

// Lowest versions with the features used: names that begin with a digit, and groups.
constexpr const char* kVersion = "0.5.0";
constexpr const char* kVersionOfGroups = "0.7.0";

// JSON supports no other names: a name that is silently changed would be another file.
Result<void> check_name(const std::string& name) {
  if (printable(name) == name && is_utf8(name)) return {};
  return error(ErrorCode::invalid_argument,
               "'{}': a name with control characters, or not in UTF-8, cannot be described", name);
}

// Splits "HOST:CONTAINER".
Result<json> mount_of(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || text[0] != '/' || text.substr(colon + 1, 1) != "/")
    return error(ErrorCode::invalid_argument, "--mount: '{}' is not HOST:CONTAINER, two whole paths", text);
  SK_TRY(check_name(text).with_context("--mount"));
  return json{{"hostPath", text.substr(0, colon)},
              {"containerPath", text.substr(colon + 1)},
              {"options", json::array({"ro", "bind"})}};
}

// The group that may open a node; 0: root only.
Result<uint32_t> group_of(const std::string& node) {
  struct stat status {};
  if (::stat(node.c_str(), &status) != 0) return error(ErrorCode::io, "{}: {}", node, std::strerror(errno));
  return status.st_gid;
}

// Edits to a container that uses these nodes.
Result<json> edits_of(const std::vector<std::string>& nodes, const json& mounts, bool& has_groups) {
  json out = {{"deviceNodes", json::array()}};
  json groups = json::array();
  for (const std::string& node : nodes) {
    SK_TRY(check_name(node));
    out["deviceNodes"].push_back({{"path", node}, {"permissions", "rw"}});
    SK_TRY_ASSIGN(const uint32_t group, group_of(node));
    if (group != 0 && std::ranges::find(groups, json(group)) == groups.end()) groups.push_back(group);
  }
  if (nodes.size() == 1) out["env"] = json::array({"SKILLET_DEVICE=" + nodes[0]});
  if (!mounts.empty()) out["mounts"] = mounts;
  if (!groups.empty()) out["additionalGIDs"] = groups;
  has_groups |= !groups.empty();
  return out;
}

// Nodes with an NPU, in order, each once.
std::vector<std::string> npu_nodes() {
  std::vector<std::string> out;
  for (const runtime::FoundNpu& npu : runtime::find_npus().npus) {
    const std::string& node = npu.core.info.node;
    if (std::ranges::find(out, node) == out.end()) out.push_back(node);
  }
  return out;
}

Result<void> cdi(const Options& options, Outcome& outcome) {
  json mounts = json::array();
  for (const std::string& text : options.mounts) SK_TRY_INTO(mounts.emplace_back(), mount_of(text));
  outcome.begin();
  const std::vector<std::string> nodes = npu_nodes();
  if (nodes.empty()) return error(ErrorCode::io, "there is no NPU here to describe (skillet doctor says why)");
  bool has_groups = false;
  json devices = json::array();
  for (size_t i = 0; i < nodes.size(); ++i) {
    SK_TRY_ASSIGN(json edits, edits_of({nodes[i]}, mounts, has_groups));
    devices.push_back({{"name", std::to_string(i)}, {"containerEdits", std::move(edits)}});
  }
  SK_TRY_ASSIGN(json edits, edits_of(nodes, mounts, has_groups));
  devices.push_back({{"name", "all"}, {"containerEdits", std::move(edits)}});
  out_json({{"cdiVersion", has_groups ? kVersionOfGroups : kVersion},
            {"kind", "skillet.org/npu"},
            {"devices", std::move(devices)},
            {"containerEdits", json::object()}});
  return {};
}

}  // namespace

void add_cdi(CommandLine& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("cdi",
                             "Describe the NPUs of this machine for containers, in CDI's format (JSON).\n"
                             "Example: skillet cdi | sudo tee /etc/cdi/skillet.json; then\n"
                             "podman run --device skillet.org/npu=all ...");
  verb.option("--mount", options->mounts,
              "HOST:CONTAINER, a file that containers get too, read-only (may be given again)")
      .one_at_a_time();
  verb.runs([options, &outcome] { outcome.finish(cdi(*options, outcome)); });
}

}  // namespace skillet::tools
