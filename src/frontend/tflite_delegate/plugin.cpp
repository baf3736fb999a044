#include "frontend/tflite_delegate/plugin.h"

#include <exception>

#include "base/caught.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/tflite_delegate/delegate.h"

namespace skillet::delegate {
namespace {

using ReportError = void (*)(const char*);

void tell(ReportError report_error, log::Level level, const std::string& message) {
  log::message(level, "{}", message);
  if (report_error != nullptr) report_error(("skillet: " + printable(message)).c_str());
}

std::vector<host::KeyValue> copy(const char* const* keys, const char* const* values, size_t count) {
  std::vector<host::KeyValue> given;
  for (size_t i = 0; i < count && keys != nullptr && values != nullptr; ++i) {
    if (keys[i] != nullptr) given.emplace_back(keys[i], values[i] == nullptr ? "" : values[i]);
  }
  return given;
}

void say_hello(const runtime::Target& target) {
  if (!log::enabled(log::Level::warning)) return;
  const capture::DeviceInfo& info = target.context->device->info();
  log::write(log::Level::info, fmt::format("Skillet {} delegate, device {} ({}), chip {}", SKILLET_VERSION, info.node,
                                           info.kernel_driver, target.chip.title));
}

Result<std::unique_ptr<Delegate>> make(std::shared_ptr<State> state, ReportError report_error) {
  host::Options& options = state->options;
  if (options.help) log::write(log::Level::info, host::options_help("Skillet delegate"));
  if (log::debug_flag("help")) log::write(log::Level::info, log::debug_flags_help());
  SK_TRY_ASSIGN(state->target, host::open_target(options));
  SK_TRY(host::tell_problems(options));
  if (state->target.driver != nullptr) {
    say_hello(state->target);
  } else if (const std::string text = "no operation goes to an NPU: " + state->target.why_none;
             options.device == "cpu") {
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
    state->options = host::parse_options(copy(keys, values, count), environment_variable);
    const log::ScopedLevel level(state->options.log);
    auto delegate = make(std::move(state), report_error);
    if (delegate.ok()) return &std::move(delegate).value().release()->host;
    tell(report_error, log::Level::error, delegate.error().message);
  } catch (const std::exception& caught) {
    if (report_error != nullptr) report_error(text_of(caught));
  } catch (...) {
    if (report_error != nullptr) report_error("an unknown exception was thrown");
  }
  return nullptr;
}

void destroy(TfLiteDelegate* delegate) { delete reinterpret_cast<Delegate*>(delegate); }

}  // namespace skillet::delegate
