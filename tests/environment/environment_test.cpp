// In a program with more rights than its caller (setuid), environment variables have no effect: neither in the C
// interface nor in the delegate. Each variable is shown to have an effect in an ordinary process.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/testing/in_tree.h"
#include "base/testing/own_folder.h"

namespace skillet {
namespace {

namespace fs = std::filesystem;
constexpr uid_t kNobody = 65534;

// Sets the ids as in a setuid root program that another user starts: the kernel compares the two user ids at exec.
bool take_more_rights() { return ::setresuid(kNobody, 0, 0) == 0; }

struct Variable {
  const char *library, *device, *name, *value;  // {}: the test's folder
};
const Variable kVariables[] = {
    {"c", "sim:a311d", "SKILLET_DEBUG", "capture={}/recorded"},
    {"c", "sim:a311d", "SKILLET_TUNING_FILE", "{}/there_is_none"},
    {"c", "sim:a311d", "SKILLET_SIM_TIE_RULE", "nonsense"},
    {"c", "sim:a311d", "SKILLET_LOG", "debug"},
    {"delegate", "", "SKILLET_DEVICE", "nonsense"},
    {"delegate", "sim:a311d", "SKILLET_TUNING_FILE", "{}/there_is_none"},
    {"delegate", "sim:a311d", "SKILLET_SWITCHES", "nonsense"},
    {"delegate", "sim:a311d", "SKILLET_TIMEOUT_MS", "nonsense"},
};

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the probe's exit code and the files that it wrote, like "0: recorded\n", then its messages.
std::string outcome(const Variable& one, bool is_set, bool has_more_rights) {
  static int runs = 0;
  const std::string folder = own_path(fmt::format("run{}", ++runs)), said = folder + ".said";
  fs::create_directory(folder);
  const std::string value = fmt::format(fmt::runtime(one.value), folder), model = in_tree("models/digits.tflite");
  const char* const library = one.library == std::string_view("c") ? C_LIBRARY : DELEGATE;
  const std::array<const char*, 6> arguments = {PROBE, one.library, library, one.device, model.c_str(), nullptr};
  const pid_t child = ::fork();
  if (child == 0) {
    if (is_set) ::setenv(one.name, value.c_str(), 1);
    if (std::freopen(said.c_str(), "w", stderr) == nullptr || (has_more_rights && !take_more_rights())) ::_exit(99);
    ::execv(PROBE, const_cast<char* const*>(arguments.data()));
    ::_exit(98);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.insert(entry.path().filename().string());
  return fmt::format("{}: {}\n{}", WIFEXITED(status) ? WEXITSTATUS(status) : -1, fmt::join(files, " "), contents(said));
}

TEST(Environment, MeansSomethingInAnOrdinaryProcess) {
  for (const Variable& one : kVariables)
    EXPECT_NE(outcome(one, true, false), outcome(one, false, false)) << one.library << " " << one.name;
}

TEST(Environment, IsNotBelievedWithMoreRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root: no process with more rights than its caller can be made";
  for (const Variable& one : kVariables) {
    const std::string plain = outcome(one, false, false);
    EXPECT_EQ(plain.substr(0, 2), "0:") << plain;
    EXPECT_EQ(outcome(one, false, true), plain) << one.library << " " << one.name;
    EXPECT_EQ(outcome(one, true, true), plain) << one.library << " " << one.name;
  }
}

}  // namespace
}  // namespace skillet
