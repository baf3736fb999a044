// What the readers of JSON files say of a value of another type or size, of a member or element that is missing, there
// twice or unknown. See graphs_test.cpp.
#include <nlohmann/json.hpp>

#include "answers/lines.h"
#include "answers/reports.h"
#include "base/log.h"

namespace skillet::answers {
namespace {

using Json = nlohmann::ordered_json;
using Take = std::function<void(const Json&)>;

constexpr const char* kFile = "tests/expectations/answers.txt";

// Around each power of two that may be the limit of a text or list.
std::vector<size_t> lengths(size_t most) {
  std::vector<size_t> out;
  for (size_t power = 8; power <= most; power *= 2)
    for (const size_t one : {power - 1, power, power + 1}) out.push_back(one);
  return out;
}

std::vector<Json> make_other_values() {
  std::vector<Json> all = {nullptr,
                           true,
                           false,
                           -1,
                           0,
                           1,
                           2,
                           1.5,
                           -0.5,
                           1e300,
                           INT64_MAX,
                           UINT64_MAX,
                           "",
                           "x",
                           "sim:a311d",
                           "2026-02-30T25:61:00Z",
                           "0123456789ABCDEF",
                           "\n",
                           Json::array(),
                           Json::object(),
                           Json::array({1}),
                           Json::object({{"name", "n"}})};
  for (const size_t length : lengths(4096)) all.emplace_back(std::string(length, 'l'));
  return all;
}
const std::vector<Json>& other_values() {
  static const std::vector<Json> all = make_other_values();
  return all;
}

// Calls take() with each change of the value at `at`, and of all values in it.
void each_change(const Json& whole, const Json::json_pointer& at, const Take& take) {
  for (const Json& other : other_values()) {
    Json changed = whole;
    if (changed[at] == other) continue;
    changed[at] = other;
    take(changed);
  }
  const Json& here = whole[at];
  if (here.is_object()) {
    Json more = whole;
    more[at]["unknown"] = 1;
    take(more);
    for (const auto& [name, value] : here.items()) {
      Json less = whole;
      less[at].erase(name);
      take(less);
      each_change(whole, at / name, take);
    }
  }
  for (size_t i = 0; here.is_array() && i < here.size(); ++i) {
    Json more = whole, less = whole;
    more[at].push_back(here[i]);
    less[at].erase(i);
    take(more);
    take(less);
    each_change(whole, at / i, take);
  }
}

// Calls take() with longer lists: as long as a reader may take, and longer by one.
void each_length(const Json& whole, const Json::json_pointer& at, const Take& take) {
  const Json& here = whole[at];
  for (const auto& [name, value] : here.items())
    if (value.is_structured()) each_length(whole, here.is_array() ? at / std::stoul(name) : at / name, take);
  if (!here.is_array() || here.empty()) return;
  for (const size_t count : lengths(2048)) {
    if (count <= here.size()) continue;
    Json longer = whole;
    for (size_t i = here.size(); i < count; ++i) {
      Json one = here[0];
      if (one.is_object() && one.contains("name")) one["name"] = fmt::format("n{}", i);
      longer[at].push_back(one);
    }
    take(longer);
  }
}

template <typename T, typename Parse>
std::string answers_to(const std::string& good, Parse parse) {
  Hash hash;
  const auto ask = [&](const Json& changed) {
    const Result<T> read = parse(changed.dump());
    hash.add(read.ok() ? print(*read) : read.error().message);
  };
  const Json whole = Json::parse(good);
  const Result<T> first = parse(whole.dump());
  EXPECT_TRUE(first.ok()) << first.error().message;
  each_change(whole, Json::json_pointer(), ask);
  each_length(whole, Json::json_pointer(), ask);
  return fmt::format("{} {}", hash.count(), hash.text());
}

TEST(Answers, OfManyJsonValues) {
  const log::ScopedLevel quiet(log::Level::error);
  expect_lines(kFile, "json ",
               {{"json trust", answers_to<runtime::TrustFile>(print(trust_file()), runtime::parse_trust_file)},
                {"json proof", answers_to<runtime::ProofReport>(print(proof_report()), runtime::parse_proof_report)},
                {"json tuning", answers_to<compile::TuningFile>(print(tuning_file()), compile::parse_tuning_file)}});
}

}  // namespace
}  // namespace skillet::answers
