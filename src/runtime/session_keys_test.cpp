// Each option of a session by its name: the meaning of values, and invalid values.
#include "runtime/session_keys.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace skillet::runtime {
namespace {

// Text of the options, with each field that a key sets.
std::string text_of(const SessionOptions& o) {
  return fmt::format(
      "tuning={} switches={} unproven={} per_channel={} tuning_file={} cache_dir={} cores={} "
      "fallback={} min_macs_per_byte={} partition={} host_threads={} timeout_ms={} verify_every={} trace={} ",
      static_cast<int>(o.compile.tuning), fmt::join(o.compile.switches, "+"), npu::unproven_name(o.compile.unproven),
      static_cast<int>(o.compile.per_channel), o.tuning_file, o.cache_dir, o.cores, o.allow_fallback,
      o.min_macs_per_byte.value_or(kMacsPerByte), static_cast<int>(partition_of(o)), o.host_threads.value_or(0),
      o.timeout.count(), o.verify_every, o.trace);
}

TEST(SessionKeys, EachSetsWhatItNames) {
  ASSERT_EQ(::setenv("HOME", "/home/someone", 1), 0);
  struct Row {
    const char *key, *value, *before, *after;  // texts in all that the options say
  };
  const auto tuning = [](npu::Tuning one) { return fmt::format("tuning={} ", static_cast<int>(one)); };
  const auto channels = [](npu::PerChannel one) { return fmt::format("per_channel={} ", static_cast<int>(one)); };
  const std::string proven = tuning(npu::Tuning::proven), tuned = tuning(npu::Tuning::tuned);
  const std::string exact = channels(npu::PerChannel::exact), other = channels(npu::PerChannel::approximate);
  const Row rows[] = {{"tuning", "tuned", proven.c_str(), tuned.c_str()},
                      {"switches", "one", "switches= ", "switches=one "},
                      {"switches", "+one++two+", "switches= ", "switches=one+two "},
                      {"allow_unproven", "Yes", "unproven=verify", "unproven=take"},
                      {"allow_unproven", "0", "unproven=verify", "unproven=refuse"},
                      {"unproven", "refuse", "unproven=verify", "unproven=refuse"},
                      {"verify_every", "100", "verify_every=0", "verify_every=100"},
                      {"per_channel", "approximate", exact.c_str(), other.c_str()},
                      {"tuning_file", "~/t", "tuning_file= ", "tuning_file=/home/someone/t "},
                      {"cache_dir", "~", "cache_dir= ", "cache_dir=/home/someone "},
                      {"cache_dir", "~x/y", "cache_dir= ", "cache_dir=~x/y "},
                      {"trace", "~/t", "trace= ", "trace=/home/someone/t "},
                      {"cores", "1", "cores=0", "cores=1"},
                      {"cores", "64", "cores=0", "cores=64"},
                      {"fallback", "off", "fallback=true", "fallback=false"},
                      {"min_macs_per_byte", "18446744073709551615", "min_macs_per_byte=4 partition=0",
                       "min_macs_per_byte=18446744073709551615 partition=1"},
                      {"partition", "work", "partition=0", "partition=1"},
                      {"partition", "predicted", "partition=0", "partition=2"},
                      {"host_threads", "3", "host_threads=0", "host_threads=3"},
                      {"timeout_ms", "1", "timeout_ms=10000", "timeout_ms=1"},
                      {"timeout_ms", "2147483648", "timeout_ms=10000", "timeout_ms=2147483648"}};
  const std::string plain = text_of({});
  for (const Row& row : rows) {
    SessionOptions options;
    const auto done = set_option(options, row.key, row.value);
    ASSERT_TRUE(done.ok()) << done.error().message;
    std::string wanted = plain;
    ASSERT_NE(wanted.find(row.before), std::string::npos) << row.before << " in " << plain;
    wanted.replace(wanted.find(row.before), std::string_view(row.before).size(), row.after);
    EXPECT_EQ(text_of(options), wanted) << row.key << "=" << row.value;
    EXPECT_NE(session_keys_help().find(fmt::format("{} ", row.key)), std::string::npos);
  }
}

TEST(SessionKeys, TheDefaultsCanBeSaid) {
  const std::pair<const char*, const char*> rows[] = {
      {"tuning", "proven"},       {"switches", ""},     {"unproven", "verify"},   {"per_channel", "exact"},
      {"tuning_file", ""},        {"cache_dir", ""},    {"cores", "auto"},        {"fallback", "1"},
      {"min_macs_per_byte", "4"}, {"partition", "all"}, {"host_threads", "auto"}, {"timeout_ms", "10000"},
      {"verify_every", "0"},      {"trace", ""}};
  SessionOptions options;
  options.compile = {.tuning = npu::Tuning::tuned,
                     .switches = {"x"},
                     .choices = {},
                     .unproven = npu::Unproven::take,
                     .per_channel = npu::PerChannel::approximate};
  options.tuning_file = options.cache_dir = options.trace = "y";
  options.cores = 3, options.min_macs_per_byte = 7, options.host_threads = 2, options.allow_fallback = false;
  options.timeout = std::chrono::milliseconds(5), options.verify_every = 9;
  for (const auto& [key, value] : rows) EXPECT_TRUE(set_option(options, key, value).ok()) << key;
  EXPECT_EQ(text_of(options), text_of({}));
}

TEST(SessionKeys, OtherValuesAreRefusedAndChangeNothing) {
  const std::pair<const char*, const char*> rows[] = {{"tuning", "recorded"},
                                                      {"tuning", ""},
                                                      {"tuning", "Tuned"},
                                                      {"switches", "+"},
                                                      {"switches", "++"},
                                                      {"allow_unproven", "2"},
                                                      {"unproven", "1"},
                                                      {"verify_every", "-1"},
                                                      {"allow_unproven", ""},
                                                      {"per_channel", "both"},
                                                      {"cores", "0"},
                                                      {"cores", "65"},
                                                      {"cores", "-1"},
                                                      {"cores", "2x"},
                                                      {"cores", ""},
                                                      {"fallback", "maybe"},
                                                      {"min_macs_per_byte", "-1"},
                                                      {"min_macs_per_byte", "1 "},
                                                      {"min_macs_per_byte", "18446744073709551616"},
                                                      {"min_macs_per_byte", ""},
                                                      {"partition", "auto"},
                                                      {"partition", ""},
                                                      {"host_threads", "0"},
                                                      {"host_threads", "-1"},
                                                      {"host_threads", "99999999999"},
                                                      {"timeout_ms", "0"},
                                                      {"timeout_ms", "2147483649"},
                                                      {"timeout_ms", "1s"},
                                                      {"timeout_ms", "-5"}};
  const std::string plain = text_of({});
  for (const auto& [key, value] : rows) {
    SessionOptions options;
    const auto done = set_option(options, key, value);
    ASSERT_FALSE(done.ok()) << key << "=" << value;
    EXPECT_EQ(done.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(done.error().message.find(fmt::format("option {}: '{}'", key, value)), std::string::npos);
    EXPECT_EQ(text_of(options), plain) << key << "=" << value;
  }
  SessionOptions options;
  const auto unknown = set_option(options, "timeot_ms", "1");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("did you mean 'timeout_ms'"), std::string::npos) << unknown.error().message;
}

// One row for each key: the value of its variable, and the effect or the message.
TEST(SessionKeys, VariablesOfTheEnvironmentCountForEverySession) {
  ASSERT_EQ(::setenv("HOME", "/home/someone", 1), 0);
  const struct {
    const char *name, *value, *after, *problem;
  } rows[] = {{"SKILLET_ALLOW_UNPROVEN", "yes", "unproven=take", ""},
              {"SKILLET_ALLOW_UNPROVEN", "maybe", "", "SKILLET_ALLOW_UNPROVEN=maybe: must be 1 or 0"},
              {"SKILLET_CORES", "2", "cores=2", ""},
              {"SKILLET_CORES", "2x", "", "SKILLET_CORES=2x: must be auto or a number of cores"},
              {"SKILLET_PER_CHANNEL", "approximate", "per_channel=1", ""},
              {"SKILLET_PER_CHANNEL", "both", "", "SKILLET_PER_CHANNEL=both: must be exact, approximate or strict"},
              {"SKILLET_HOST_THREADS", "3", "host_threads=3", ""},
              {"SKILLET_HOST_THREADS", "x", "", "SKILLET_HOST_THREADS=x: must be auto or a number of cores"},
              {"SKILLET_MIN_MACS_PER_BYTE", "9", "min_macs_per_byte=9", ""},
              {"SKILLET_TUNING", "tuned", "tuning=2", ""},
              {"SKILLET_TUNING_FILE", "~/t", "tuning_file=/home/someone/t ", ""},
              {"SKILLET_TRACE", "~/t", "trace=/home/someone/t ", ""},
              {"SKILLET_CACHE_DIR", "~/c", "cache_dir=/home/someone/c ", ""},
              {"SKILLET_FALLBACK", "0", "fallback=false", ""},
              {"SKILLET_FALLBACK", "x", "", "SKILLET_FALLBACK=x: must be 1 or 0"},
              {"SKILLET_TIMEOUT_MS", "5", "timeout_ms=5", ""},
              {"SKILLET_TIMEOUT_MS", "0", "", "SKILLET_TIMEOUT_MS=0: must be a number of milliseconds, 1 or more"}};
  for (const auto& row : rows) {
    SessionOptions options;
    for (const char* value : {row.value, ""}) {
      options = {};
      ASSERT_EQ(::setenv(row.name, value, 1), 0);
      const auto done = set_options_of_environment(options);
      ::unsetenv(row.name);
      const std::string_view problem = *value == '\0' ? "" : row.problem;
      EXPECT_EQ(done.ok() ? "" : done.error().message, problem) << row.name << "=" << value;
      if (*value == '\0' || !done.ok()) {
        EXPECT_EQ(text_of(options), text_of({})) << row.name << "=" << value;
      } else {
        EXPECT_NE(text_of(options).find(row.after), std::string::npos) << row.name << ": " << text_of(options);
      }
    }
  }
}

}  // namespace
}  // namespace skillet::runtime
