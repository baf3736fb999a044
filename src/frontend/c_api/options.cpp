// Reads skillet_options: structs of all versions, and options as text.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/int_math.h"
#include "frontend/c_api/internal.h"
#include "runtime/session_keys.h"

namespace skillet::c_api {
namespace {

// Returns the current struct for a struct of any version; members that the caller's does not have are zero.
Result<skillet_options> whole(const skillet_options& given) {
  constexpr std::array kSizes = {
      offsetof(skillet_options, cache_dir),   align_up(offsetof(skillet_options, reserved), alignof(skillet_options)),
      offsetof(skillet_options, per_channel), offsetof(skillet_options, more),
      offsetof(skillet_options, tuning_file), sizeof(skillet_options)};
  if (std::ranges::find(kSizes, given.struct_bytes) == kSizes.end())
    return error(ErrorCode::invalid_argument, "options: struct_bytes is {}, not {}", given.struct_bytes, sizeof given);
  skillet_options out = {};
  std::memcpy(&out, &given, given.struct_bytes);
  if (given.struct_bytes <= kSizes[1]) out.reserved = 0;  // padding in older structs
  return out;
}

// Other values are reserved. An uninitialized member is seldom 0 or 1.
Result<void> check_flags(const skillet_options& options) {
  const std::pair<const char*, int32_t> flags[] = {
      {"tuned", options.tuned}, {"allow_unproven", options.allow_unproven}, {"no_fallback", options.no_fallback}};
  for (const auto& [name, value] : flags)
    if (value != 0 && value != 1)
      return error(ErrorCode::invalid_argument, "options: {} is {}, not 0 or 1", name, value);
  if (options.reserved != 0)
    return error(ErrorCode::invalid_argument, "options: reserved is {}, not 0", options.reserved);
  return {};
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

Result<runtime::SessionOptions> said(const skillet_options* given) {
  runtime::SessionOptions result;
  SK_TRY(runtime::set_options_of_environment(result));
  if (given == nullptr) return result;
  SK_TRY_ASSIGN(const skillet_options options, whole(*given));
  SK_TRY(check_flags(options));
  if (options.cache_dir != nullptr) result.cache_dir = options.cache_dir;
  if (options.allow_unproven != 0) result.compile.unproven = npu::Unproven::take;
  if (options.cores < 0) return error(ErrorCode::invalid_argument, "options: cores is {}", options.cores);
  if (options.cores != 0) result.cores = options.cores;
  if (options.per_channel != nullptr) {
    const auto mode = npu::per_channel_from_name(options.per_channel);
    if (!mode)
      return error(ErrorCode::invalid_argument, "options: per_channel={}: must be exact, approximate or strict",
                   options.per_channel);
    result.compile.per_channel = *mode;
  }
  if (options.tuning_file != nullptr) result.tuning_file = options.tuning_file;
  if (options.tuned != 0) result.compile.tuning = npu::Tuning::tuned;
  if (options.no_fallback != 0) result.allow_fallback = false;
  if (options.timeout_ms != 0) result.timeout = std::chrono::milliseconds(options.timeout_ms);
  SK_TRY(set_more(options, result));
  return result;
}

}  // namespace

Result<runtime::SessionOptions> session_options(const skillet_options* given) {
  SK_TRY_ASSIGN(runtime::SessionOptions options, said(given));
  return runtime::with_defaults(std::move(options));
}

}  // namespace skillet::c_api

const char* skillet_options_help(void) {
  static const std::string* const text = new std::string(skillet::runtime::session_keys_help());
  return text->c_str();
}
