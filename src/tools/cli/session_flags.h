// Options for compiling models and for choosing operations for the NPU: --tuning, --per-channel, --partition and so on.
// Called by the verbs that compile models.
// Must not know: what the verbs do with the session.
#pragma once

#include <string>

#include "base/result.h"
#include "npu/driver.h"
#include "runtime/session.h"
#include "tools/cli/command_line.h"

namespace skillet::tools {

constexpr const char* kAllowUnprovenVariable = "SKILLET_ALLOW_UNPROVEN";  // name in older releases
constexpr const char* kUnprovenVariable = "SKILLET_UNPROVEN";

struct SessionFlags {
  std::string tuning = "proven", tuning_file, per_channel = "exact", cores = "auto";
  std::string partition, host_threads, min_macs_per_byte, unproven, switches;  // empty: not given; the next line too
  std::string verify_every, trace, cache_dir, timeout_ms, fallback;
  bool allow_unproven = false, only_proven = false;  // old names of --unproven take and refuse
};

// Each adds the options of its name. Options that a verb does not add keep the values above.
void add_tuning_file(const Verb& verb, SessionFlags& flags);
void add_unproven(const Verb& verb, SessionFlags& flags);
void add_per_channel(const Verb& verb, SessionFlags& flags);
void add_partition(const Verb& verb, SessionFlags& flags);  // --partition and --host-threads
// Adds all of these, --cores, --switches and --tuning. recorded_too: `recorded` is a valid tuning.
enum class Tunings { ours, recorded_too };
void add_session(const Verb& verb, SessionFlags& flags, Tunings tunings = Tunings::ours);
// For verbs that run models: add_session(), and options for the run.
void add_running_session(const Verb& verb, SessionFlags& flags);
// An error if --cache-dir names a folder that is not usable. The environment's folder is not checked: it may be for
// other verbs.
Result<void> check_cache(const SessionFlags& flags);

// True if the value comes from an option. The environment may be meant for other verbs. `otherwise`: the default.
bool is_given(const std::string& value, const char* variable, std::string_view otherwise = "");
// The values must have been checked.
npu::Unproven unproven_of(const SessionFlags& flags);
runtime::SessionOptions session_options(const SessionFlags& flags);
// Reports if more cores are requested than `target` has.
void complain_of_cores(const SessionFlags& flags, const runtime::Target& target);
// Reports options that have no effect without an NPU.
void complain_of_no_npu(const SessionFlags& flags, const runtime::Target& target);
// Reports if `target` computes no results ("null:CHIP").
void complain_of_nothing(const runtime::Target& target);

}  // namespace skillet::tools
