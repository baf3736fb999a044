// Options of the delegate: from hosts, from the environment, and the keys of sessions.
#include "frontend/host/options.h"

#include <gtest/gtest.h>

#include <map>

#include "runtime/session_keys.h"

namespace skillet::host {
namespace {

TEST(Options, ParseAsHostsWriteThem) {
  const auto none = [](const char*) -> const char* { return nullptr; };
  Options options = parse_options({{"device", "sim-a311d"},
                                   {"tuning", "tuned"},
                                   {"strict", "True"},
                                   {"switches", "a+b"},
                                   {"allow_unproven", "yes"},
                                   {"per_channel", "approximate"},
                                   {"delegate_serialize_dir", "/x"},
                                   {"tuning_file", "/y.json"},
                                   {"log", "info"},
                                   {"cores", "2"},
                                   {"max_delegated_partitions", "3"}},
                                  none);
  EXPECT_TRUE(options.problems.empty());
  EXPECT_EQ(options.device, "sim:a311d");
  EXPECT_EQ(options.session.compile.tuning, npu::Tuning::tuned);
  EXPECT_EQ(options.session.compile.switches, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(options.strict);
  EXPECT_EQ(options.session.compile.unproven, npu::Unproven::take);
  EXPECT_EQ(options.session.compile.per_channel, npu::PerChannel::approximate);
  EXPECT_EQ(options.session.cache_dir, "/x");
  EXPECT_EQ(options.session.tuning_file, "/y.json");
  EXPECT_EQ(options.log, log::Level::info);
  EXPECT_EQ(options.max_delegated_partitions, 3);
  EXPECT_EQ(options.session.cores, 2);

  const auto environment = [](const char* name) -> const char* {
    if (std::string_view(name) == "SKILLET_DEVICE") return "cpu";
    return std::string_view(name) == "SKILLET_STRICT" ? "yes" : nullptr;
  };
  options = parse_options({{"device", "auto"}}, environment);
  EXPECT_EQ(options.device, "auto") << "the host's list wins";
  EXPECT_TRUE(options.strict);
  for (const char* bad : {"-1", "1x", "", "99999999999"})
    EXPECT_EQ(parse_options({{"max_delegated_partitions", bad}}, none).problems.size(), 1U) << bad;
  EXPECT_EQ(parse_options({{"cores", "auto"}}, none).session.cores, 0);
  for (const char* bad : {"0", "-1", "all", "", "3x", "99999999999"})
    EXPECT_EQ(parse_options({{"cores", bad}}, none).problems.size(), 1U) << bad;
  const std::string help = options_help("plug-in");
  EXPECT_NE(help.find("SKILLET_CACHE_DIR"), std::string::npos);
  for (const std::string_view name : npu::kPerChannelNames)
    EXPECT_NE(help.find(fmt::format("{}: ", name)), std::string::npos) << name;
}

TEST(Options, NoSpellingOfUnprovenTakesMoreThanIsSaid) {
  const auto none = [](const char*) -> const char* { return nullptr; };
  const auto both = [](const char* name) -> const char* {
    if (std::string_view(name) == "SKILLET_UNPROVEN") return "refuse";
    return std::string_view(name) == "SKILLET_ALLOW_UNPROVEN" ? "1" : nullptr;
  };
  using npu::Unproven;
  const auto given = [](std::vector<KeyValue> list, const char* (*environment)(const char*)) {
    return parse_options(list, environment).session.compile.unproven;
  };
  EXPECT_EQ(given({{"unproven", "refuse"}, {"allow_unproven", "1"}}, none), Unproven::refuse);
  EXPECT_EQ(given({{"allow_unproven", "1"}, {"unproven", "refuse"}}, none), Unproven::refuse);
  EXPECT_EQ(given({}, both), Unproven::refuse);
  EXPECT_EQ(given({{"allow_unproven", "1"}}, both), Unproven::take) << "the host's list counts more";
  EXPECT_EQ(given({{"unproven", "refuze"}}, none), Unproven::refuse);
  ASSERT_EQ(parse_options({{"unproven", "refuze"}}, none).problems.size(), 1U);
  EXPECT_EQ(parse_options({{"unproven", "refuze"}}, none).problems[0].instead, "taking refuse");
}

// Each key of a session has the same effect here, from the host's list and from the environment, except `fallback`:
// plug-ins have `strict` instead.
TEST(Options, TakeTheKeysOfSessions) {
  const std::map<std::string_view, const char*> values = {
      {"tuning", "tuned"},        {"switches", "a"},     {"allow_unproven", "1"},
      {"unproven", "refuse"},     {"verify_every", "7"}, {"per_channel", "approximate"},
      {"tuning_file", "/t"},      {"cache_dir", "/c"},   {"cores", "3"},
      {"min_macs_per_byte", "9"}, {"timeout_ms", "123"}, {"partition", "work"},
      {"host_threads", "2"},      {"trace", "/t"}};
  const auto none = [](const char*) -> const char* { return nullptr; };
  const auto same = [](const runtime::SessionOptions& a, const runtime::SessionOptions& b) {
    return a.compile.tuning == b.compile.tuning && a.compile.switches == b.compile.switches &&
           a.compile.unproven == b.compile.unproven && a.compile.per_channel == b.compile.per_channel &&
           a.tuning_file == b.tuning_file && a.cache_dir == b.cache_dir && a.cores == b.cores &&
           a.min_macs_per_byte == b.min_macs_per_byte && a.timeout == b.timeout && a.partition == b.partition &&
           a.host_threads == b.host_threads && a.verify_every == b.verify_every && a.trace == b.trace;
  };
  size_t seen = 0;
  for (const runtime::SessionKey& key : runtime::session_keys()) {
    if (key.key == "fallback") {
      EXPECT_EQ(parse_options({{"fallback", "0"}}, none).problems.size(), 1U);
      continue;
    }
    ASSERT_TRUE(values.contains(key.key)) << key.key;
    ++seen;
    runtime::SessionOptions wanted;
    ASSERT_TRUE(key.set(values.at(key.key), wanted)) << key.key;
    wanted = runtime::with_defaults(wanted);
    EXPECT_FALSE(same(wanted, Options().session)) << key.key;
    const Options given = parse_options({{std::string(key.key), values.at(key.key)}}, none);
    EXPECT_TRUE(given.problems.empty() && same(given.session, wanted)) << key.key;
    const std::string wrong =
        key.key == "switches" || key.key == "trace" || key.key.ends_with("_dir") || key.key.ends_with("_file") ? ""
                                                                                                               : "?";
    if (!wrong.empty()) {
      EXPECT_EQ(parse_options({{std::string(key.key), wrong}}, none).problems.size(), 1U) << key.key;
    }
    EXPECT_NE(options_help("plug-in").find(fmt::format("  {} ", key.key)), std::string::npos) << key.key;
  }
  EXPECT_EQ(seen, values.size());
  const auto environment = [](const char* name) -> const char* {
    return std::string_view(name) == "SKILLET_TIMEOUT_MS" ? "7" : nullptr;
  };
  EXPECT_EQ(parse_options({}, environment).session.timeout, std::chrono::milliseconds(7));
}

}  // namespace
}  // namespace skillet::host
