// JSON of files that others may have written: sizes are bounded before anything is made of the text, a field that is
// not known or is there twice is an error that names it. Called by tuning_file.h and runtime/trust_store.h. Must not
// know: what the fields mean.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace skillet::compile {

inline constexpr size_t kNameMax = 4096;  // of any text

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
