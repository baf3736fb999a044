#include "compile/tuning_file.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>

namespace skillet::compile {
namespace {

using Json = nlohmann::json;

constexpr int64_t kVersion = 1;
constexpr size_t kTextMax = size_t{1} << 24, kListMax = 65'536, kNameMax = 4096;
// One more than a choice of a part, parts[i].choices[i], has, and of all names, numbers and lists: as many as a reader
// makes of a file whose each choice has a few lines of text.
constexpr int kDepthMax = 6;
constexpr size_t kValuesMax = size_t{1} << 19;

Error wrong(const std::string& field, std::string_view what) {
  return error(ErrorCode::malformed, "tuning file: {} {}", field, what);
}

// Before anything is made of it: what is read takes many times the memory of its text.
Result<void> check_size(std::string_view text) {
  if (text.size() > kTextMax) return wrong("the text", "is too long");
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
    if (depth > kDepthMax) return wrong("the text", "has lists within lists too deep for one");
    if (values > kValuesMax) return wrong("the text", "has too many values");
  }
  return {};
}

// Of two fields of one name in an object, a reader would take either.
Result<Json> json_of(std::string_view text) {
  std::vector<std::set<std::string>> open;  // the names of each object that is not closed
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
  if (json.is_discarded()) return wrong("the text", "is no JSON");
  if (!twice.empty()) return wrong(twice, "is there twice in one object");
  return json;
}

Result<void> check_names(const Json& object, const std::string& where, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(known, name) == known.end())
      return wrong(where.empty() ? name : where + "." + name, "is no field of it");
  }
  return {};
}

// A member of an object; the field's whole name is for messages.
Result<const Json*> member(const Json& object, const std::string& where, const char* name) {
  const std::string field = where.empty() ? name : where + "." + name;
  if (!object.is_object()) return wrong(where.empty() ? "the text" : where, "must be an object");
  const auto at = object.find(name);
  if (at == object.end()) return wrong(field, "is missing");
  return &*at;
}

Result<std::string> text_of(const Json& object, const std::string& where, const char* name) {
  SK_TRY_ASSIGN(const Json* const value, member(object, where, name));
  const std::string field = where.empty() ? name : where + "." + name;
  if (!value->is_string()) return wrong(field, "must be a text");
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > kNameMax) return wrong(field, "is too long");
  return text;
}

Result<int32_t> number_of(const Json& object, const std::string& where, const char* name) {
  SK_TRY_ASSIGN(const Json* const value, member(object, where, name));
  if (!value->is_number_integer()) return wrong(where + "." + name, "must be a whole number");
  const bool fits = value->is_number_unsigned()
                        ? value->get<uint64_t>() <= INT32_MAX
                        : value->get<int64_t>() >= INT32_MIN && value->get<int64_t>() <= INT32_MAX;
  if (!fits) return wrong(where + "." + name, "does not fit 32 bits");
  return static_cast<int32_t>(value->get<int64_t>());
}

Result<const Json*> list_of(const Json& object, const std::string& where, const char* name) {
  SK_TRY_ASSIGN(const Json* const value, member(object, where, name));
  const std::string field = where.empty() ? name : where + "." + name;
  if (!value->is_array()) return wrong(field, "must be a list");
  if (value->size() > kListMax) return wrong(field, "is too long");
  return value;
}

Result<TunedPart> part_of(const Json& json, const std::string& where) {
  TunedPart part;
  SK_TRY_ASSIGN(part.graph, text_of(json, where, "graph"));
  SK_TRY_ASSIGN(const Json* const switches, list_of(json, where, "switches"));
  for (const Json& one : *switches) {
    if (!one.is_string() || one.get_ref<const std::string&>().size() > kNameMax)
      return wrong(where + ".switches", "must be names");
    part.switches.push_back(one.get<std::string>());
  }
  SK_TRY(check_names(json, where, {"graph", "switches", "choices"}));
  SK_TRY_ASSIGN(const Json* const choices, list_of(json, where, "choices"));
  std::set<std::pair<ir::OpId, std::string>> decided;
  for (size_t i = 0; i < choices->size(); ++i) {
    const std::string at = fmt::format("{}.choices[{}]", where, i);
    driver::Choice& one = part.choices.emplace_back();
    SK_TRY_ASSIGN(one.op, number_of((*choices)[i], at, "op"));
    SK_TRY_ASSIGN(one.name, text_of((*choices)[i], at, "name"));
    SK_TRY_ASSIGN(one.value, number_of((*choices)[i], at, "value"));
    SK_TRY(check_names((*choices)[i], at, {"op", "name", "value"}));
    if (!decided.emplace(one.op, one.name).second) return wrong(at, "is there twice: its op and name have a value");
  }
  return part;
}

}  // namespace

const TunedPart* TuningFile::find(std::string_view graph) const {
  const auto at = std::ranges::find(parts, graph, &TunedPart::graph);
  return at == parts.end() ? nullptr : &*at;
}

std::string print(const TuningFile& file) {
  nlohmann::ordered_json out = {{"skillet_tuning", kVersion}, {"chip", file.chip},     {"build", file.build},
                                {"model", file.model},        {"device", file.device}, {"found", file.found}};
  out["parts"] = Json::array();
  for (const TunedPart& part : file.parts) {
    nlohmann::ordered_json choices = Json::array();
    for (const driver::Choice& one : part.choices)
      choices.push_back({{"op", one.op}, {"name", one.name}, {"value", one.value}});
    out["parts"].push_back({{"graph", part.graph}, {"switches", part.switches}, {"choices", choices}});
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<TuningFile> parse_tuning_file(std::string_view text) {
  SK_TRY(check_size(text));
  SK_TRY_ASSIGN(const Json json, json_of(text));
  SK_TRY_ASSIGN(const Json* const version, member(json, "", "skillet_tuning"));
  if (!version->is_number_integer() || *version != kVersion)
    return wrong("skillet_tuning", fmt::format("must be {}: the version that this build reads", kVersion));
  TuningFile file;
  for (const auto& [name, to] :
       {std::pair{"chip", &file.chip}, std::pair{"build", &file.build}, std::pair{"model", &file.model},
        std::pair{"device", &file.device}, std::pair{"found", &file.found}}) {
    SK_TRY_ASSIGN(*to, text_of(json, "", name));
  }
  SK_TRY_ASSIGN(const Json* const parts, list_of(json, "", "parts"));
  SK_TRY(check_names(json, "", {"skillet_tuning", "chip", "build", "model", "device", "found", "parts"}));
  std::set<std::string> graphs;
  for (size_t i = 0; i < parts->size(); ++i) {
    SK_TRY_ASSIGN(TunedPart part, part_of((*parts)[i], fmt::format("parts[{}]", i)));
    if (!graphs.insert(part.graph).second) return wrong(fmt::format("parts[{}].graph", i), "is there twice");
    file.parts.push_back(std::move(part));
  }
  return file;
}

}  // namespace skillet::compile
