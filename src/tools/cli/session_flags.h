// How models are compiled and what of them goes to the NPU, as options: --tuning, --per-channel, --partition and so on.
// Called by the verbs that compile models.
// Must not know: what is done with the session.
#pragma once

#include <string>

#include "base/result.h"
#include "npu/driver.h"
#include "runtime/session.h"
#include "tools/cli/command_line.h"

namespace skillet::tools {

constexpr const char* kAllowUnprovenVariable = "SKILLET_ALLOW_UNPROVEN";  // of releases before this one
constexpr const char* kUnprovenVariable = "SKILLET_UNPROVEN";

struct SessionFlags {
  std::string tuning = "proven", tuning_file, per_channel = "exact", cores = "auto";
  std::string partition, host_threads, min_macs_per_byte, unproven, switches;  // empty: not given, as the next
  std::string verify_every, trace, cache_dir, timeout_ms, fallback;
  bool allow_unproven = false, only_proven = false;  // as --unproven take and refuse were called before
};

// Each adds the options of its name; what a verb does not take stays as it is above.
void add_tuning_file(const Verb& verb, SessionFlags& flags);
void add_unproven(const Verb& verb, SessionFlags& flags);
void add_per_channel(const Verb& verb, SessionFlags& flags);
void add_partition(const Verb& verb, SessionFlags& flags);  // --partition and --host-threads
// All, and --cores, --switches and --tuning. With `recorded` that is a tuning too.
enum class Tunings { ours, recorded_too };
void add_session(const Verb& verb, SessionFlags& flags, Tunings tunings = Tunings::ours);
// Of verbs that run models: add_session(), and what counts while they run.
void add_running_session(const Verb& verb, SessionFlags& flags);
// An option that names a cache where nothing can be kept is wrong; what the environment names may be meant for others.
Result<void> check_cache(const SessionFlags& flags);

// By an option: the environment may be meant for other verbs. `otherwise`: what it is where nothing is said.
bool is_given(const std::string& value, const char* variable, std::string_view otherwise = "");
// What was taken is right.
npu::Unproven unproven_of(const SessionFlags& flags);
runtime::SessionOptions session_options(const SessionFlags& flags);
// Says so where more cores are asked for than `target` has.
void complain_of_cores(const SessionFlags& flags, const runtime::Target& target);
// Says which options count for nothing where no NPU computes.
void complain_of_no_npu(const SessionFlags& flags, const runtime::Target& target);
// Says so where what comes out of `target` is no result ("null:CHIP").
void complain_of_nothing(const runtime::Target& target);

}  // namespace skillet::tools
