#include "frontend/tflite_delegate/plugin.h"

#include <exception>

#include "base/caught.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/tflite_delegate/delegate.h"
#include "runtime/tuned_driver.h"

namespace skillet::delegate {
namespace {

using ReportError = void (*)(const char*);

void tell(ReportError report_error, log::Level level, const std::string& message) {
  log::message(level, "{}", message);
  if (report_error != nullptr) report_error(("skillet: " + printable(message)).c_str());
}

std::vector<KeyValue> copy(const char* const* keys, const char* const* values, size_t count) {
  std::vector<KeyValue> given;
  for (size_t i = 0; i < count && keys != nullptr && values != nullptr; ++i) {
    if (keys[i] != nullptr) given.emplace_back(keys[i], values[i] == nullptr ? "" : values[i]);
  }
  return given;
}

// Nothing that the user gave may be found wrong only when a graph comes.
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

// "auto" without an NPU is not an error unless somebody says so: the host's own kernels run.
Result<runtime::Target> open(const Options& options, std::string& why_none) {
  const bool any = options.device == "auto", must = options.strict || options.require_npu || options.device == "npu";
  auto target = runtime::open_target(any ? "npu" : options.device);
  if (target.ok() && target->driver == nullptr && (options.require_npu || options.strict))
    return error(ErrorCode::invalid_argument, "{}=1, but device={}", options.require_npu ? "require_npu" : "strict",
                 options.device);
  if (target.ok() && must) SK_TRY(runtime::check_taken(*target, options.session.compile.unproven));
  if (target.ok()) {
    if (target->driver == nullptr) why_none = "device=cpu";
    return target;
  }
  if (must) return std::move(target).error();
  why_none = target.error().message;
  return runtime::Target{.name = "cpu", .chip = {}, .driver = nullptr, .context = nullptr};
}

void say_hello(const runtime::Target& target) {
  if (!log::enabled(log::Level::warning)) return;
  const capture::DeviceInfo& info = target.context->device->info();
  log::write(log::Level::info, fmt::format("Skillet {} delegate, device {} ({}), chip {}", SKILLET_VERSION, info.node,
                                           info.kernel_driver, target.chip.title));
}

Result<void> tell_problems(const Options& options) {
  for (const auto& [text, instead] : options.problems) {
    if (options.strict) return error(ErrorCode::invalid_argument, "{}", text);
    log::warning("{}; {}", text, instead);
  }
  return {};
}

Result<std::unique_ptr<Delegate>> make(std::shared_ptr<State> state, ReportError report_error) {
  Options& options = state->options;
  if (options.help) log::write(log::Level::info, options_help());
  if (log::debug_flag("help")) log::write(log::Level::info, log::debug_flags_help());
  std::string why_none;
  SK_TRY_ASSIGN(state->target, open(options, why_none));
  check_switches(state->target, options);
  check_tuning_file(state->target, options);
  SK_TRY(tell_problems(options));
  if (why_none.empty()) {
    say_hello(state->target);
  } else if (const std::string text = "no operation goes to an NPU: " + why_none; options.device == "cpu") {
    log::info("{}", text);
  } else {
    tell(options.device == "auto" ? nullptr : report_error, log::Level::warning, text);
  }
  return make_delegate(std::move(state));
}

}  // namespace

TfLiteDelegate* create(const char* const* keys, const char* const* values, size_t count, ReportError report_error) {
  try {
    auto state = std::make_shared<State>();
    state->options = parse_options(copy(keys, values, count), environment_variable);
    const log::ScopedLevel level(state->options.log);
    auto delegate = make(std::move(state), report_error);
    if (delegate.ok()) return &std::move(delegate).value().release()->host;
    tell(report_error, log::Level::error, delegate.error().message);
  } catch (const std::exception& caught) {
    if (report_error != nullptr) report_error(text_of(caught));
  } catch (...) {
    if (report_error != nullptr) report_error("something unknown was thrown");
  }
  return nullptr;
}

void destroy(TfLiteDelegate* delegate) { delete reinterpret_cast<Delegate*>(delegate); }

}  // namespace skillet::delegate
