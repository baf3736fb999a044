#include "runtime/proof_report.h"

#include <algorithm>

#include "compile/strict_json.h"
#include "npu/driver.h"
#include "runtime/content_hash.h"

namespace skillet::runtime {
namespace {

using Json = nlohmann::json;

constexpr int64_t kVersion = 2;
constexpr size_t kFirstBytes = 128;
constexpr size_t kHashDigits = 32;
constexpr std::string_view kSerial = "serial=", kHashed = "serial=hash:";

bool is_hexadecimal(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Index of a text in a list.
template <size_t N>
Result<size_t> choice_of(const Json& json, const std::string& where, const char* name,
                         const std::array<std::string_view, N>& names) {
  SK_TRY_ASSIGN(const std::string text, compile::text_of(json, where, name));
  const auto found = std::ranges::find(names, text);
  if (found == names.end())
    return compile::wrong_field(where + "." + name, fmt::format("must be one of {}", fmt::join(names, ", ")));
  return static_cast<size_t>(found - names.begin());
}

Result<ProofOutput> output_of(const Json& json, const std::string& where) {
  SK_TRY(compile::check_names(json, where, {"bytes", "hash", "first"}));
  ProofOutput out;
  SK_TRY_ASSIGN(out.bytes, compile::number_of(json, where, "bytes"));
  SK_TRY_ASSIGN(out.hash, compile::text_of(json, where, "hash"));
  SK_TRY_ASSIGN(out.first, compile::text_of(json, where, "first"));
  if (out.bytes < 0) return compile::wrong_field(where + ".bytes", "must not be negative");
  if (out.hash.size() != kHashDigits || !is_hexadecimal(out.hash))
    return compile::wrong_field(where + ".hash", fmt::format("must be {} hexadecimal digits", kHashDigits));
  if (out.first.size() > 2 * kFirstBytes || !is_hexadecimal(out.first))
    return compile::wrong_field(where + ".first", "must be hexadecimal digits, two a byte");
  return out;
}

Result<ProofStep> step_of(const Json& json, const std::string& where) {
  SK_TRY(compile::check_names(json, where, {"kind", "name", "outcome", "what", "outputs", "ns", "spread_ns"}));
  ProofStep step;
  SK_TRY_ASSIGN(const size_t kind, choice_of(json, where, "kind", kProofKindNames));
  SK_TRY_ASSIGN(const size_t outcome, choice_of(json, where, "outcome", kProofOutcomeNames));
  step.kind = static_cast<ProofKind>(kind);
  step.outcome = static_cast<ProofOutcome>(outcome);
  SK_TRY_ASSIGN(step.name, compile::text_of(json, where, "name"));
  SK_TRY_ASSIGN(step.what, compile::text_of(json, where, "what"));
  for (const auto& [name, to] : {std::pair{"ns", &step.ns}, std::pair{"spread_ns", &step.spread_ns}}) {
    SK_TRY_ASSIGN(*to, compile::wide_number_of(json, where, name));
    if (*to < 0) return compile::wrong_field(fmt::format("{}.{}", where, name), "must not be negative");
  }
  SK_TRY_ASSIGN(const Json* const outputs, compile::list_of(json, where, "outputs"));
  for (size_t i = 0; i < outputs->size(); ++i) {
    SK_TRY_INTO(step.outputs.emplace_back(), output_of((*outputs)[i], fmt::format("{}.outputs[{}]", where, i)));
  }
  return step;
}

// Checks that names are those of the chip's family: only names of this build's tables are printed and trusted.
Result<void> check_steps(const ProofReport& report) {
  const auto chip = npu::find_chip(report.device.chip);
  if (!chip.ok()) return compile::wrong_field("device.chip", "must be a chip that this build knows");
  SK_TRY_ASSIGN(const npu::Driver* const family, npu::driver_of(*chip));
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const ProofStep& step = report.steps[i];
    const std::string where = fmt::format("steps[{}].name", i);
    for (size_t j = 0; j < i; ++j)
      if (report.steps[j].kind == step.kind && report.steps[j].name == step.name)
        return compile::wrong_field(where, "is used by another step");
    const auto& rows = family->assumptions(*chip);
    if (step.kind == ProofKind::assumption && std::ranges::find(rows, step.name, &npu::Assumption::name) == rows.end())
      return compile::wrong_field(where, fmt::format("must be an assumption about {}", chip->name));
  }
  return {};
}

constexpr size_t kStepsMax = 512;

Result<ProofReport> parse(std::string_view text) {
  SK_TRY_ASSIGN(const Json json, compile::parse_strictly(text));
  if (json.is_object() && json.contains("skillet_trust"))
    return error(ErrorCode::malformed, "it is a trust file, not a report: use skillet trust --import");
  SK_TRY_ASSIGN(const Json* const version, compile::member(json, "", "skillet_prove"));
  if (!version->is_number_integer() || *version != kVersion)
    return compile::wrong_field("skillet_prove",
                                fmt::format("must be {}: the version that this build reads", kVersion));
  SK_TRY(compile::check_names(json, "", {"skillet_prove", "device", "build", "date", "facts", "ended", "steps"}));
  ProofReport report;
  SK_TRY_ASSIGN(report.device, parse_identity(json));
  for (const auto& [name, to] :
       {std::pair{"build", &report.build}, std::pair{"date", &report.date}, std::pair{"ended", &report.ended}}) {
    SK_TRY_ASSIGN(*to, compile::text_of(json, "", name));
  }
  SK_TRY_ASSIGN(const Json* const facts, compile::list_of(json, "", "facts"));
  for (size_t i = 0; i < facts->size(); ++i) {
    const std::string where = fmt::format("facts[{}]", i);
    SK_TRY(compile::check_names((*facts)[i], where, {"name", "value"}));
    SK_TRY_ASSIGN(std::string name, compile::text_of((*facts)[i], where, "name"));
    SK_TRY_ASSIGN(std::string value, compile::text_of((*facts)[i], where, "value"));
    report.facts.emplace_back(std::move(name), std::move(value));
  }
  SK_TRY_ASSIGN(const Json* const steps, compile::list_of(json, "", "steps"));
  if (steps->size() > kStepsMax) return compile::wrong_field("steps", fmt::format("must be at most {}", kStepsMax));
  for (size_t i = 0; i < steps->size(); ++i) {
    SK_TRY_INTO(report.steps.emplace_back(), step_of((*steps)[i], fmt::format("steps[{}]", i)));
  }
  SK_TRY(check_steps(report));
  return report;
}

nlohmann::ordered_json json_of(const ProofStep& step) {
  nlohmann::ordered_json out = {{"kind", kProofKindNames[static_cast<size_t>(step.kind)]},
                                {"name", step.name},
                                {"outcome", name_of(step.outcome)},
                                {"what", step.what},
                                {"ns", step.ns},
                                {"spread_ns", step.spread_ns},
                                {"outputs", Json::array()}};
  for (const ProofOutput& one : step.outputs)
    out["outputs"].push_back(
        {{"bytes", one.bytes}, {"hash", one.hash}, {"first", step.outcome == ProofOutcome::right ? "" : one.first}});
  return out;
}

}  // namespace

ProofOutput proof_output(const Bytes& bytes) {
  ProofOutput out{.bytes = static_cast<int32_t>(bytes.size()), .hash = hash_text(bytes), .first = ""};
  for (size_t i = 0; i < std::min(bytes.size(), kFirstBytes); ++i) out.first += fmt::format("{:02x}", bytes[i]);
  return out;
}

ProofStep* ProofReport::find(ProofKind kind, std::string_view name) {
  const auto at =
      std::ranges::find_if(steps, [&](const ProofStep& one) { return one.kind == kind && one.name == name; });
  return at == steps.end() ? nullptr : &*at;
}

std::string& ProofReport::fact(std::string_view name) {
  const auto at = std::ranges::find_if(facts, [&](const auto& one) { return one.first == name; });
  return at == facts.end() ? facts.emplace_back(name, "").second : at->second;
}

DeviceIdentity without_serial(DeviceIdentity device) {
  for (std::string& fact : device.facts) {
    if (!fact.starts_with(kSerial) || fact.starts_with(kHashed)) continue;
    const std::string serial = fact.substr(kSerial.size());
    fact = fmt::format("{}{}", kHashed, hash_text(serial));
  }
  return device;
}

std::string print(const ProofReport& report) {
  nlohmann::ordered_json out = {{"skillet_prove", kVersion}, {"device", json_of(report.device)},
                                {"build", report.build},     {"date", report.date},
                                {"facts", Json::array()},    {"ended", report.ended},
                                {"steps", Json::array()}};
  for (const auto& [name, value] : report.facts) out["facts"].push_back({{"name", name}, {"value", value}});
  for (const ProofStep& step : report.steps) out["steps"].push_back(json_of(step));
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ProofReport> parse_proof_report(std::string_view text) {
  return parse(text).with_context("report of skillet prove");
}

}  // namespace skillet::runtime
