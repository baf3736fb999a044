#include "compile/strict_json.h"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

namespace skillet::compile {

using Json = nlohmann::json;

namespace {

constexpr size_t kTextMax = size_t{1} << 24, kListMax = 65'536;
// Larger depth and number of values (names, numbers, lists) than any file that this project writes.
constexpr int kDepthMax = 6;
constexpr size_t kValuesMax = size_t{1} << 19;

// Checks the size before parsing, which takes many times the memory of the text.
Result<void> check_size(std::string_view text) {
  if (text.size() > kTextMax) return wrong_field("the text", "is too long");
  int depth = 0;
  size_t values = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    in_string = c == '"';
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == '[' || c == '{' || c == ',') ++values;
    if (depth > kDepthMax) return wrong_field("the text", "is nested too deeply");
    if (values > kValuesMax) return wrong_field("the text", "has too many values");
  }
  return {};
}

}  // namespace

Error wrong_field(const std::string& field, std::string_view what) {
  return error(ErrorCode::malformed, "{} {}", field, what);
}

// Refuses duplicate names in an object, since a reader might take either value.
Result<Json> parse_strictly(std::string_view text) {
  SK_TRY(check_size(text));
  std::vector<std::set<std::string>> open;  // names in each open object
  std::string twice;
  const auto look = [&](int, Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && twice.empty() &&
        !open.back().insert(parsed.get_ref<const std::string&>()).second)
      twice = parsed.get_ref<const std::string&>();
    return true;
  };
  Json json = Json::parse(text, look, false);
  if (json.is_discarded()) return wrong_field("the text", "is not JSON");
  if (!twice.empty()) return wrong_field(twice, "occurs twice in one object");
  return json;
}

Result<void> check_names(const Json& object, const std::string& where, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(known, name) == known.end())
      return wrong_field(where.empty() ? name : where + "." + name, "is not a field of it");
  }
  return {};
}

// Finds a member of an object; messages contain the full name of the field.
Result<const Json*> member(const Json& object, const std::string& where, const char* name) {
  const std::string field = where.empty() ? name : where + "." + name;
  if (!object.is_object()) return wrong_field(where.empty() ? "the text" : where, "must be an object");
  const auto at = object.find(name);
  if (at == object.end()) return wrong_field(field, "is missing");
  return &*at;
}

Result<std::string> text_of(const Json& object, const std::string& where, const char* name) {
  SK_TRY_ASSIGN(const Json* const value, member(object, where, name));
  const std::string field = where.empty() ? name : where + "." + name;
  if (!value->is_string()) return wrong_field(field, "must be a text");
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > kNameMax) return wrong_field(field, "is too long");
  return text;
}

namespace {

template <typename Number>
Result<Number> whole_number_of(const Json& object, const std::string& where, const char* name) {
  using Limits = std::numeric_limits<Number>;
  SK_TRY_ASSIGN(const Json* const value, member(object, where, name));
  if (!value->is_number_integer()) return wrong_field(where + "." + name, "must be a whole number");
  const bool fits = value->is_number_unsigned()
                        ? value->get<uint64_t>() <= static_cast<uint64_t>(Limits::max())
                        : value->get<int64_t>() >= Limits::min() && value->get<int64_t>() <= Limits::max();
  if (!fits) return wrong_field(where + "." + name, fmt::format("does not fit {} bits", 8 * sizeof(Number)));
  return static_cast<Number>(value->get<int64_t>());
}

}  // namespace

Result<int32_t> number_of(const Json& object, const std::string& where, const char* name) {
  return whole_number_of<int32_t>(object, where, name);
}
Result<int64_t> wide_number_of(const Json& object, const std::string& where, const char* name) {
  return whole_number_of<int64_t>(object, where, name);
}

Result<const Json*> list_of(const Json& object, const std::string& where, const char* name) {
  SK_TRY_ASSIGN(const Json* const value, member(object, where, name));
  const std::string field = where.empty() ? name : where + "." + name;
  if (!value->is_array()) return wrong_field(field, "must be a list");
  if (value->size() > kListMax) return wrong_field(field, "is too long");
  return value;
}

}  // namespace skillet::compile
