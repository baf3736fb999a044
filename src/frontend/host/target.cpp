#include "frontend/host/target.h"

#include <mutex>
#include <set>

#include "base/leaked.h"
#include "base/log.h"
#include "runtime/tuned_driver.h"

namespace skillet::host {
namespace {

// Checks `switches` now: an error in an option must not wait for the first graph.
void check_switches(const runtime::Target& target, Options& options) {
  if (target.driver == nullptr || options.session.compile.switches.empty()) return;
  const auto tried = runtime::check_options(target, options.session.compile);
  if (tried.ok()) return;
  options.problems.push_back({"option switches: " + tried.error().message});
  options.session.compile.switches.clear();
}

void check_tuning_file(const runtime::Target& target, Options& options) {
  const auto tried = runtime::check_tuning_file(target, options.session.tuning_file);
  if (tried.ok()) return;
  options.problems.push_back({"option tuning_file: " + tried.error().message});
  options.session.tuning_file.clear();
}

// "auto" without an NPU is an error only with strict or require_npu: otherwise the host's own kernels run.
Result<runtime::Target> open(const Options& options) {
  const bool any = options.device == "auto", must = options.strict || options.require_npu || options.device == "npu";
  auto target = runtime::open_target(any ? "npu" : options.device);
  if (target.ok() && target->driver == nullptr && (options.require_npu || options.strict))
    return error(ErrorCode::invalid_argument, "{}=1, but device={}", options.require_npu ? "require_npu" : "strict",
                 options.device);
  if (target.ok() && must) SK_TRY(runtime::check_taken(*target, options.session.compile.unproven));
  if (target.ok() || must) return target;
  return runtime::cpu_target(target.error().message);
}

}  // namespace

Result<runtime::Target> open_target(Options& options) {
  SK_TRY_ASSIGN(runtime::Target target, open(options));
  check_switches(target, options);
  check_tuning_file(target, options);
  return target;
}

Result<void> tell_problems(const Options& options) {
  for (const auto& [text, instead] : options.problems) {
    if (options.strict) return error(ErrorCode::invalid_argument, "{}", text);
    log::warning("{}; {}", text, instead);
  }
  return {};
}

Result<void> tell_problems_once(Options options) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto& told = leaked([] { return std::set<std::string>(); });
  if (!options.strict)
    std::erase_if(options.problems, [&](const Problem& one) { return !told.insert(one.text).second; });
  return tell_problems(options);
}

}  // namespace skillet::host
