// skillet_options: structs of all ages, options as text, the environment.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/int_math.h"
#include "base/parse_bool.h"
#include "base/parse_cores.h"
#include "frontend/c_api/internal.h"
#include "runtime/session_keys.h"

namespace skillet::c_api {
namespace {

Result<void> set_per_channel(const char* what, const char* text, runtime::SessionOptions& options) {
  const auto mode = driver::per_channel_from_name(text);
  if (!mode) return error(ErrorCode::invalid_argument, "{}={}: must be exact or approximate", what, text);
  options.compile.per_channel = *mode;
  return {};
}

Result<runtime::SessionOptions> options_of_environment() {
  runtime::SessionOptions result;
  constexpr const char* kUnproven = "SKILLET_ALLOW_UNPROVEN";
  if (const char* text = std::getenv(kUnproven); text != nullptr && !parse_bool(text, result.compile.allow_unproven))
    return error(ErrorCode::invalid_argument, "{}={}: must be 1 or 0", kUnproven, text);
  if (const char* text = std::getenv(kCoresVariable);
      text != nullptr && *text != '\0' && !parse_cores(text, result.cores))
    return error(ErrorCode::invalid_argument, "{}={}: must be auto or a number of cores", kCoresVariable, text);
  if (const char* text = std::getenv("SKILLET_PER_CHANNEL"); text != nullptr && *text != '\0')
    SK_TRY(set_per_channel("SKILLET_PER_CHANNEL", text, result));
  if (const char* text = std::getenv("SKILLET_TUNING_FILE"); text != nullptr) result.tuning_file = text;
  return result;
}

// What the struct was at any time; members that the caller's does not have are zero.
Result<skillet_options> whole(const skillet_options& given) {
  constexpr std::array kSizes = {
      offsetof(skillet_options, cache_dir),   align_up(offsetof(skillet_options, reserved), alignof(skillet_options)),
      offsetof(skillet_options, per_channel), offsetof(skillet_options, more),
      offsetof(skillet_options, tuning_file), sizeof(skillet_options)};
  if (std::ranges::find(kSizes, given.struct_bytes) == kSizes.end())
    return error(ErrorCode::invalid_argument, "options: struct_bytes is {}, not {}", given.struct_bytes, sizeof given);
  skillet_options out = {};
  std::memcpy(&out, &given, given.struct_bytes);
  if (given.struct_bytes <= kSizes[1]) out.reserved = 0;  // what older structs have there is padding
  return out;
}

Result<void> set_more(const skillet_options& options, runtime::SessionOptions& result) {
  if (options.more == nullptr && options.more_count != 0) return null_argument("options: more");
  for (size_t i = 0; i < options.more_count; ++i) {
    const skillet_option& one = options.more[i];
    if (one.key == nullptr || one.value == nullptr) return null_argument("options: a key or value of more");
    SK_TRY(runtime::set_option(result, one.key, one.value));
  }
  return {};
}

}  // namespace

Result<runtime::SessionOptions> session_options(const skillet_options* given) {
  SK_TRY_ASSIGN(runtime::SessionOptions result, options_of_environment());
  if (given == nullptr) return result;
  SK_TRY_ASSIGN(const skillet_options options, whole(*given));
  if (options.cache_dir != nullptr) result.cache_dir = options.cache_dir;
  if (options.allow_unproven != 0) result.compile.allow_unproven = true;
  if (options.cores < 0) return error(ErrorCode::invalid_argument, "options: cores is {}", options.cores);
  if (options.cores != 0) result.cores = options.cores;
  if (options.per_channel != nullptr) SK_TRY(set_per_channel("options: per_channel", options.per_channel, result));
  if (options.tuning_file != nullptr) result.tuning_file = options.tuning_file;
  if (options.tuned != 0) result.compile.tuning = driver::Tuning::tuned;
  result.allow_fallback = options.no_fallback == 0;
  if (options.timeout_ms != 0) result.timeout = std::chrono::milliseconds(options.timeout_ms);
  SK_TRY(set_more(options, result));
  return result;
}

}  // namespace skillet::c_api

const char* skillet_options_help(void) {
  static const std::string* const text = new std::string(skillet::runtime::session_keys_help());
  return text->c_str();
}
