#include "compile/tuning_file.h"

#include <algorithm>
#include <set>

#include "compile/strict_json.h"

namespace skillet::compile {
namespace {

using Json = nlohmann::json;

constexpr int64_t kVersion = 1;

Result<TunedPart> part_of(const Json& json, const std::string& where) {
  TunedPart part;
  SK_TRY_ASSIGN(part.graph, text_of(json, where, "graph"));
  SK_TRY_ASSIGN(const Json* const switches, list_of(json, where, "switches"));
  for (const Json& one : *switches) {
    if (!one.is_string() || one.get_ref<const std::string&>().size() > kNameMax)
      return wrong_field(where + ".switches", "must be names");
    part.switches.push_back(one.get<std::string>());
  }
  SK_TRY(check_names(json, where, {"graph", "switches", "choices"}));
  SK_TRY_ASSIGN(const Json* const choices, list_of(json, where, "choices"));
  std::set<std::pair<ir::OpId, std::string>> decided;
  for (size_t i = 0; i < choices->size(); ++i) {
    const std::string at = fmt::format("{}.choices[{}]", where, i);
    npu::Choice& one = part.choices.emplace_back();
    SK_TRY_ASSIGN(one.op, number_of((*choices)[i], at, "op"));
    SK_TRY_ASSIGN(one.name, text_of((*choices)[i], at, "name"));
    SK_TRY_ASSIGN(one.value, number_of((*choices)[i], at, "value"));
    SK_TRY(check_names((*choices)[i], at, {"op", "name", "value"}));
    if (!decided.emplace(one.op, one.name).second)
      return wrong_field(at, "occurs twice: its op and name have a value already");
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
    for (const npu::Choice& one : part.choices)
      choices.push_back({{"op", one.op}, {"name", one.name}, {"value", one.value}});
    out["parts"].push_back({{"graph", part.graph}, {"switches", part.switches}, {"choices", choices}});
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

Result<TuningFile> parse(std::string_view text) {
  SK_TRY_ASSIGN(const Json json, parse_strictly(text));
  SK_TRY_ASSIGN(const Json* const version, member(json, "", "skillet_tuning"));
  if (!version->is_number_integer() || *version != kVersion)
    return wrong_field("skillet_tuning", fmt::format("must be {}: the version that this build reads", kVersion));
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
    if (!graphs.insert(part.graph).second) return wrong_field(fmt::format("parts[{}].graph", i), "occurs twice");
    file.parts.push_back(std::move(part));
  }
  return file;
}

}  // namespace

Result<TuningFile> parse_tuning_file(std::string_view text) { return parse(text).with_context("tuning file"); }

}  // namespace skillet::compile
