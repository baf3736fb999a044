#include "tools/partition_flags.h"

#include "runtime/session_keys.h"

namespace skillet::tools {
namespace {

// Empty: the session takes it.
std::string problem(std::string_view key, const std::string& value) {
  runtime::SessionOptions ignored;
  const auto taken = runtime::set_option(ignored, key, value);
  return taken.ok() ? "" : taken.error().message;
}

void set(std::string_view key, const std::string& value, runtime::SessionOptions& session) {
  if (value.empty()) return;
  [[maybe_unused]] const auto taken = runtime::set_option(session, key, value);
}

}  // namespace

void add_partition(const Verb& verb, PartitionFlags& flags) {
  verb.option("--partition", flags.partition,
              "which parts go to the NPU: all that it takes; predicted: those that are predicted to be faster there, "
              "the way included; work: those that do enough for the bytes that they move. Default: all")
      .check({"all, work or predicted", [](const std::string& text) { return problem("partition", text); }});
  verb.option("--host-threads", flags.host_threads,
              "of --partition predicted: how many large cores of the CPU compute what is left to it. Default: all")
      .check({"auto or a number", [](const std::string& text) { return problem("host_threads", text); }});
}

void set_partition(const PartitionFlags& flags, runtime::SessionOptions& session) {
  set("partition", flags.partition, session);
  set("host_threads", flags.host_threads, session);
}

}  // namespace skillet::tools
