// JSON of untrusted files: sizes are checked before parsing, and an unknown or duplicate field is an error that names
// it. Called by tuning_file.h and runtime/trust.h. Must not know: what the fields mean.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace skillet::compile {

inline constexpr size_t kNameMax = 4096;  // bytes of any text

// "parts[3].graph must be a text".
Error wrong_field(const std::string& field, std::string_view what);

Result<nlohmann::json> parse_strictly(std::string_view text);
// Members of an object; `where` is its name for messages, empty for the whole text.
Result<void> check_names(const nlohmann::json& object, const std::string& where,
                         std::initializer_list<std::string_view> known);
Result<const nlohmann::json*> member(const nlohmann::json& object, const std::string& where, const char* name);
Result<std::string> text_of(const nlohmann::json& object, const std::string& where, const char* name);
Result<int32_t> number_of(const nlohmann::json& object, const std::string& where, const char* name);
Result<int64_t> wide_number_of(const nlohmann::json& object, const std::string& where, const char* name);
Result<const nlohmann::json*> list_of(const nlohmann::json& object, const std::string& where, const char* name);

}  // namespace skillet::compile
