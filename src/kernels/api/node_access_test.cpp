// Advice about permissions of a node, compared with the kernel's decision, also as another user where that is possible.
// Turns of its files.
#include "kernels/api/node_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "kernels/api/syscalls.h"

namespace skillet::kernels {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kUser = 54'321, kOther = 54'322;
constexpr gid_t kPrimary = 54'323, kSecond = 54'324, kForeign = 54'325;

class NodeAccess : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/skillet-access-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    ASSERT_EQ(::chmod(name, 0755), 0);
    node_ = (folder_ / "node").string();
    std::ofstream(node_) << "node";
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
  std::string node_;
};

// Errors in the advice about a node of this mode; empty: none.
std::string wrong_about(const std::string& node, mode_t mode, bool is_owner, bool is_member) {
  const std::string text = missing_permission(node);
  const bool may_open = ::access(node.c_str(), R_OK | W_OK) == 0;
  if (text.empty() != may_open) return may_open ? "refused: " + text : "said to be open";
  if (may_open) return "";
  const bool helps_to_join = !is_owner && !is_member && (mode & 060) == 060;
  if ((text.find("usermod -aG") != std::string::npos) != helps_to_join) return text;
  if ((text.find("chmod 0660 " + node) != std::string::npos) == helps_to_join) return text;
  return text.find(fmt::format("{:04o}", mode)) != std::string::npos ? "" : "no mode: " + text;
}

// Runs in a child as an ordinary user in two groups; 0: no errors.
int as_user(const std::function<std::string()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    const gid_t groups[] = {kPrimary, kSecond};
    if (::setgroups(2, groups) != 0 || ::setresgid(kPrimary, kPrimary, kPrimary) != 0 ||
        ::setresuid(kUser, kUser, kUser) != 0)
      ::_exit(2);
    const std::string wrong = work();
    if (!wrong.empty()) ::dprintf(STDERR_FILENO, "%s\n", wrong.c_str());
    ::_exit(wrong.empty() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(NodeAccess, IsWhatTheKernelSays) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes others";
  for (const uid_t owner : {kUser, kOther}) {
    for (const gid_t group : {kPrimary, kSecond, kForeign}) {
      ASSERT_EQ(::chown(node_.c_str(), owner, group), 0);
      for (mode_t mode = 0; mode < 01000; ++mode) {
        // The execute bits of all classes are equal: the kernel does not check them here.
        if ((mode & 0111) != 0) continue;
        ASSERT_EQ(::chmod(node_.c_str(), mode), 0);
        const int code = as_user([&] { return wrong_about(node_, mode, owner == kUser, group != kForeign); });
        if (code == 2) GTEST_SKIP() << "becoming another user is forbidden here";
        ASSERT_EQ(code, 0) << fmt::format("{} {} {:04o}", owner, group, mode);
      }
    }
  }
}

TEST_F(NodeAccess, IsNeverMissingForRootOrForWhatIsNotThere) {
  EXPECT_EQ(missing_permission((folder_ / "none").string()), "");
  ASSERT_EQ(::chmod(node_.c_str(), 0), 0);
  if (::geteuid() == 0) {
    EXPECT_EQ(missing_permission(node_), "");
  } else {
    EXPECT_NE(missing_permission(node_), "");
  }
}

TEST_F(NodeAccess, FilesOfANodeTakeTurns) {
  Syscalls& calls = *system_calls();
  const int first = calls.open(node_), second = calls.open(node_);
  ASSERT_GE(std::min(first, second), 0);
  EXPECT_EQ(calls.take_turn(first), 0);
  EXPECT_EQ(calls.take_turn(first), 0);
  EXPECT_EQ(calls.take_turn(second), -EAGAIN);
  EXPECT_EQ(calls.end_turn(first), 0);
  EXPECT_EQ(calls.take_turn(second), 0);
  EXPECT_EQ(calls.take_turn(first), -EAGAIN);
  EXPECT_EQ(calls.close(second), 0);
  EXPECT_EQ(calls.take_turn(first), 0);
  EXPECT_EQ(calls.close(first), 0);
}

}  // namespace
}  // namespace skillet::kernels
