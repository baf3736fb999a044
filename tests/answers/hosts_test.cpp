// What plug-ins and sessions make of each option, with values of many forms, alone and after another value; and of
// names that nearly are one. See graphs_test.cpp.
#include <sstream>

#include "answers/lines.h"
#include "base/log.h"
#include "frontend/host/options.h"
#include "runtime/session_keys.h"

namespace skillet::answers {
namespace {

constexpr const char* kFile = "tests/expectations/answers.txt";
constexpr const char* kValues[] = {"",
                                   " ",
                                   "0",
                                   "1",
                                   "2",
                                   "-1",
                                   "00",
                                   "+1",
                                   "1 ",
                                   "1x",
                                   "3.5",
                                   "1e3",
                                   "inf",
                                   "nan",
                                   "auto",
                                   "none",
                                   "all",
                                   "yes",
                                   "no",
                                   "TRUE",
                                   "False",
                                   "on",
                                   "off",
                                   "tru",
                                   "cpu",
                                   "npu",
                                   "sim-a311d",
                                   "sim:rk3588",
                                   "null-rk3588",
                                   "recorded",
                                   "proven",
                                   "tuned",
                                   "take",
                                   "verify",
                                   "refuse",
                                   "exact",
                                   "approximate",
                                   "strict",
                                   "work",
                                   "predicted",
                                   "info",
                                   "debug",
                                   "warning",
                                   "error",
                                   "a+b",
                                   "+",
                                   "/dev/null/x",
                                   "2147483647",
                                   "2147483648",
                                   "4294967295",
                                   "4294967296",
                                   "86400000",
                                   "86400001",
                                   "9223372036854775807",
                                   "9223372036854775808",
                                   "18446744073709551615",
                                   "18446744073709551616",
                                   "99999999999999999999"};

std::string text_of(const runtime::SessionOptions& one) {
  std::string out = runtime::deciding_options(one);
  out += fmt::format("{} {} {} {} {} {} {} {} {}", one.allow_fallback, one.keep_intermediates, one.timeout.count(),
                     one.cache_dir, one.tuning_file, one.cores, one.verify_every, one.trace, one.longest_runs);
  if (one.min_macs_per_byte) out += fmt::format(" macs {}", *one.min_macs_per_byte);
  if (one.host_threads) out += fmt::format(" threads {}", *one.host_threads);
  return out;
}

std::string text_of(const host::Options& one) {
  std::string out = fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", one.device, text_of(one.session), one.host_threads_given,
                                one.log ? static_cast<int>(*one.log) : -1, one.strict, one.require_npu,
                                one.max_delegated_partitions, one.min_nodes_per_partition, one.profile);
  out += one.help ? "|help" : "";
  for (const host::Problem& problem : one.problems) out += fmt::format("|{}: {}", problem.text, problem.instead);
  return out;
}

// The names in the list of options, so that new ones are asked for too.
std::vector<std::string> names() {
  std::istringstream lines(host::options_help("test"));
  std::vector<std::string> out;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  ")) out.push_back(line.substr(2, line.find(' ', 2) - 2));
  return out;
}

// Variables of an environment, for a function without state.
std::map<std::string, std::string> variables;
const char* variable(const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : found->second.c_str();
}

TEST(Answers, OfOptionsOfHosts) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> hashes;
  const std::vector<std::string> all = names();
  ASSERT_GT(all.size(), 15U);
  for (const std::string& name : all) {
    Hash& hash = hashes[name];
    const std::string in_environment = runtime::environment_name(name);
    for (const std::string value : kValues) {
      variables.clear();
      hash.add(text_of(host::parse_options({{name, value}}, variable)));
      hash.add(text_of(host::parse_options({{name, "1"}, {name, value}}, variable)));
      variables = {{in_environment, value}};
      hash.add(text_of(host::parse_options({}, variable)));
      hash.add(text_of(host::parse_options({{name, "1"}}, variable)));
      runtime::SessionOptions session;
      const auto set = runtime::set_option(session, name, value);
      hash.add(set.ok() ? text_of(session) : set.error().message);
    }
    variables.clear();
    for (const std::string& other : {name + "s", name.substr(1), "x" + name, name.substr(0, name.size() / 2)})
      hash.add(text_of(host::parse_options({{other, "1"}}, variable)));
    // With each other option: one may make the other one idle, or win over it.
    for (const std::string& second : all)
      for (const char* value : {"1", "all", "work", "refuse", "tuned"})
        hash.add(text_of(host::parse_options({{second, value}, {name, "2"}}, variable)));
  }
  expect_hashes(kFile, "option ", hashes);
}

TEST(Answers, OfDifferencesOfOptions) {
  std::vector<runtime::SessionOptions> all(1);
  for (const runtime::SessionKey& key : runtime::session_keys()) {
    for (const char* value : {"1", "2", "auto", "all", "work", "take", "refuse", "tuned", "approximate", "a+b"}) {
      runtime::SessionOptions one;
      if (key.set(value, one)) all.push_back(one);
    }
  }
  Hash hash;
  for (const runtime::SessionOptions& one : all)
    for (const runtime::SessionOptions& other : all)
      hash.add(runtime::print_difference(runtime::deciding_options(one), runtime::deciding_options(other)));
  expect_lines(kFile, "options_that_differ",
               {{"options_that_differ", fmt::format("{} {}", hash.count(), hash.text())}});
}

}  // namespace
}  // namespace skillet::answers
