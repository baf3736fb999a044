#include "tools/cli/session_flags.h"

#include <fmt/ranges.h>

#include <vector>

#include "base/bytes.h"
#include "base/environment.h"
#include "base/parse_cores.h"
#include "base/text.h"
#include "runtime/device_pool.h"
#include "runtime/session_keys.h"
#include "tools/show/output.h"

namespace skillet::tools {
namespace {

constexpr const char* kCacheVariable = "SKILLET_CACHE_DIR";

// True if the session accepts the value.
bool is_option(std::string_view key, const std::string& value) {
  runtime::SessionOptions ignored;
  return runtime::set_option(ignored, key, value).ok();
}

void set(std::string_view key, const std::string& value, runtime::SessionOptions& session) {
  if (value.empty()) return;
  [[maybe_unused]] const auto taken = runtime::set_option(session, key, value);
}

Rule value_of(std::string_view key, std::string_view must_be) {
  return {std::string(must_be), [key, must_be](const std::string& text) {
            return is_option(key, text) ? std::string() : fmt::format("must be {}, not '{}'", must_be, text);
          }};
}

void add_cores(const Verb& verb, std::string& cores) {
  const auto problem = [](const std::string& text) {
    int ignored = 0;
    return parse_cores(text, ignored)
               ? std::string()
               : fmt::format("must be auto or a number of cores from 1 to {}, not '{}'", kMostCores, text);
  };
  verb.option("--cores", cores,
              "how many NPU cores may share one inference, each with a band of rows: auto: as many as are predicted to "
              "be faster; 1: no sharing; 2 or more: wherever possible")
      .shows_default()
      .variable(kCoresVariable)
      .check({"auto or a number", problem});
}

}  // namespace

void add_tuning_file(const Verb& verb, SessionFlags& flags) {
  verb.option("--tuning-file", flags.tuning_file,
              "tuning file of `skillet tune` for this model, chip and build; implies --tuning tuned")
      .variable("SKILLET_TUNING_FILE");
}

void add_unproven(const Verb& verb, SessionFlags& flags) {
  verb.option(
          "--unproven", flags.unproven,
          "operations that no known driver ever ran on silicon: refuse (the CPU runs them), verify (the NPU runs them "
          "after a comparison with the CPU on this device) or take (the NPU runs them unchecked). Default: verify")
      .check(one_of(npu::kUnprovenNames))
      .variable(kUnprovenVariable);
  verb.flag("--allow-unproven", flags.allow_unproven, "the old name of --unproven take").hidden();
  verb.flag("--only-proven", flags.only_proven, "the old name of --unproven refuse").hidden();
}

void add_per_channel(const Verb& verb, SessionFlags& flags) {
  verb.option("--per-channel", flags.per_channel,
              "weights with more scales than the chip takes: exact (each layer within 1 of its exact result, else on "
              "the CPU), approximate, or strict: as exact, and operations are rewritten only if results stay the same "
              "bit by bit; otherwise within 1 (docs/models.md)")
      .shows_default()
      .check(one_of(npu::kPerChannelNames))
      .variable("SKILLET_PER_CHANNEL");
}

void add_partition(const Verb& verb, SessionFlags& flags) {
  verb.option("--partition", flags.partition,
              "which parts go to the NPU: all that it takes; predicted: those predicted to be faster there, copies "
              "included; work: those with enough work per byte moved. Default: predicted")
      .check(one_of(compile::kPartitionByNames))
      .variable("SKILLET_PARTITION");
  verb.option("--host-threads", flags.host_threads,
              "for --partition predicted: how many large CPU cores compute the parts on the CPU. Default: 1")
      .variable("SKILLET_HOST_THREADS")
      .check(value_of("host_threads", "auto or a number of cores"));
  verb.option("--min-macs-per-byte", flags.min_macs_per_byte,
              "for --partition work: least multiply-accumulates per byte that enters or leaves a part. Default: 4")
      .variable("SKILLET_MIN_MACS_PER_BYTE")
      .check(value_of("min_macs_per_byte", "a number"));
}

void add_session(const Verb& verb, SessionFlags& flags, Tunings tunings) {
  const std::string ours = "proven: only what is known to work on silicon; tuned: our own choices too";
  if (tunings == Tunings::ours)
    verb.option("--tuning", flags.tuning, ours)
        .shows_default()
        .variable("SKILLET_TUNING")
        .check(one_of({"proven", "tuned"}));
  else
    verb.option("--tuning", flags.tuning, ours + "; recorded: as recorded drivers, for `skillet diff`")
        .shows_default()
        .variable("SKILLET_TUNING")
        .check(one_of(npu::kTuningNames));
  add_tuning_file(verb, flags);
  add_unproven(verb, flags);
  add_per_channel(verb, flags);
  add_cores(verb, flags.cores);
  add_partition(verb, flags);
  verb.option("--switches", flags.switches,
              "single tuning switches to turn on, joined by + (docs/tuned.md). Default: none")
      .variable("SKILLET_SWITCHES")
      .check(value_of("switches", "names of switches, joined by +"));
}

void add_running_session(const Verb& verb, SessionFlags& flags) {
  add_session(verb, flags);
  verb.option("--verify-every", flags.verify_every,
              "compare the NPU's results with the CPU's after every N runs, on the same inputs; wrong operations move "
              "to the CPU, in later sessions too. Default: never")
      .variable("SKILLET_VERIFY_EVERY")
      .check(value_of("verify_every", "a number of runs"));
  verb.option("--trace", flags.trace,
              "write a trace of this run to a file, for https://ui.perfetto.dev and `skillet trace` (docs/traces.md)")
      .variable("SKILLET_TRACE")
      .check(writable_file());
  verb.option("--cache-dir", flags.cache_dir, "keep compiled programs in this folder").variable(kCacheVariable);
  verb.option("--timeout-ms", flags.timeout_ms,
              "timeout in milliseconds for one run of one part on the device. Default: 10000")
      .variable("SKILLET_TIMEOUT_MS")
      .check(value_of("timeout_ms", "a number of milliseconds, 1 or more"));
  verb.option("--fallback", flags.fallback,
              "when the NPU fails: 0: the run fails; 1: the CPU computes the part. Default: 1")
      .variable("SKILLET_FALLBACK")
      .check(value_of("fallback", "1 or 0"));
}

Result<void> check_cache(const SessionFlags& flags) {
  if (!is_given(flags.cache_dir, kCacheVariable)) return {};
  return check_folder(expand_home(flags.cache_dir)).with_context("--cache-dir");
}

bool is_given(const std::string& value, const char* variable, std::string_view otherwise) {
  const char* const there = environment_variable(variable);
  return value != otherwise && (there == nullptr || value != there);
}

npu::Unproven unproven_of(const SessionFlags& flags) {
  if (flags.allow_unproven) runtime::warn_of_old_name("--allow-unproven", npu::Unproven::take);
  if (flags.only_proven) runtime::warn_of_old_name("--only-proven", npu::Unproven::refuse);
  const bool is_old = flags.allow_unproven || flags.only_proven;  // has priority over the variable
  const char* const variable = environment_variable(kUnprovenVariable);
  const bool is_of_environment = variable != nullptr && flags.unproven == variable;
  if (!flags.unproven.empty() && !(is_old && is_of_environment)) return *npu::unproven_from_name(flags.unproven);
  if (flags.only_proven) return npu::Unproven::refuse;
  return flags.allow_unproven ? npu::Unproven::take : runtime::unproven_of_environment();
}

namespace {

// Reports once: verbs read the options several times. Variables are ignored: they may be meant for other verbs.
void complain_of_partition(const SessionFlags& flags) {
  static bool is_said = false;
  if (std::exchange(is_said, true)) return;
  const bool is_ours = is_given(flags.partition, "SKILLET_PARTITION");
  const bool is_all = is_ours && flags.partition == "all", is_work = is_ours && flags.partition == "work";
  if (is_given(flags.min_macs_per_byte, "SKILLET_MIN_MACS_PER_BYTE") && is_ours && !is_work)
    complain(fmt::format("--min-macs-per-byte: used with --partition work; with {} it counts {}", flags.partition,
                         is_all ? "for nothing" : "only on chips without a timing model"));
  if (is_given(flags.host_threads, "SKILLET_HOST_THREADS") && (is_all || is_work))
    complain(fmt::format("--host-threads: used with --partition predicted; with {} it is ignored", flags.partition));
}

}  // namespace

runtime::SessionOptions session_options(const SessionFlags& flags) {
  complain_of_partition(flags);
  runtime::SessionOptions out;
  out.compile.tuning = *npu::tuning_from_name(flags.tuning);
  out.compile.unproven = unproven_of(flags);
  out.compile.per_channel = *npu::per_channel_from_name(flags.per_channel);
  out.tuning_file = flags.tuning_file;
  parse_cores(flags.cores, out.cores);
  set("verify_every", flags.verify_every, out);
  set("trace", flags.trace, out);
  set("switches", flags.switches, out);
  set("cache_dir", flags.cache_dir, out);
  set("timeout_ms", flags.timeout_ms, out);
  set("fallback", flags.fallback, out);
  set("partition", flags.partition, out);
  set("host_threads", flags.host_threads, out);
  set("min_macs_per_byte", flags.min_macs_per_byte, out);
  return runtime::with_defaults(std::move(out));
}

void complain_of_cores(const SessionFlags& flags, const runtime::Target& target) {
  const int cores = target.pool != nullptr ? static_cast<int>(target.pool->most()) : 1;
  int asked = 0;
  if (parse_cores(flags.cores, asked) && asked > cores && target.driver != nullptr)
    complain(fmt::format("--cores {}: {} has only {}", asked, target.name, cores));
}

void complain_of_no_npu(const SessionFlags& flags, const runtime::Target& target) {
  if (target.driver != nullptr) return;
  const SessionFlags unsaid;
  std::vector<std::string_view> given;
  const auto look = [&](std::string_view name, const std::string& value, const char* variable,
                        const std::string& otherwise) {
    if (is_given(value, variable, otherwise)) given.push_back(name);
  };
  look("--tuning", flags.tuning, "SKILLET_TUNING", unsaid.tuning);
  look("--tuning-file", flags.tuning_file, "SKILLET_TUNING_FILE", unsaid.tuning_file);
  look("--unproven", flags.unproven, kUnprovenVariable, unsaid.unproven);
  look("--switches", flags.switches, "SKILLET_SWITCHES", unsaid.switches);
  look("--timeout-ms", flags.timeout_ms, "SKILLET_TIMEOUT_MS", unsaid.timeout_ms);
  look("--fallback", flags.fallback, "SKILLET_FALLBACK", unsaid.fallback);
  look("--verify-every", flags.verify_every, "SKILLET_VERIFY_EVERY", unsaid.verify_every);
  look("--per-channel", flags.per_channel, "SKILLET_PER_CHANNEL", unsaid.per_channel);
  look("--cores", flags.cores, kCoresVariable, unsaid.cores);
  look("--partition", flags.partition, "SKILLET_PARTITION", unsaid.partition);
  look("--host-threads", flags.host_threads, "SKILLET_HOST_THREADS", unsaid.host_threads);
  look("--min-macs-per-byte", flags.min_macs_per_byte, "SKILLET_MIN_MACS_PER_BYTE", unsaid.min_macs_per_byte);
  if (!given.empty())
    complain(fmt::format("{}: no NPU is used, so {} for nothing (--device; see skillet devices)",
                         fmt::join(given, ", "), given.size() == 1 ? "it counts" : "they count"));
}

void complain_of_nothing(const runtime::Target& target) {
  if (runtime::computes_nothing(target))
    complain(fmt::format("{} takes jobs but computes nothing, so its outputs are not results; use sim:{}", target.name,
                         target.chip.name));
}

}  // namespace skillet::tools
