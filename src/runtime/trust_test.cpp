// The trust file of a device: concurrent writers, full disks, folders that cannot be written, and untrusted files.
#include "runtime/trust.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <thread>

#include "base/log.h"
#include "base/testing/own_folder.h"
#include "compile/build_id.h"
#include "runtime/toy_session.h"

namespace skillet::runtime {
namespace {

namespace fs = std::filesystem;

const DeviceIdentity kDevice{.chip = "toy", .kernel_driver = "toy, Linux 6.18", .facts = {"serial=1"}};

TrustEntry entry(std::string name, bool confirmed = true) {
  return {.kind = TrustKind::assumption,
          .name = std::move(name),
          .confirmed = confirmed,
          .build = {},
          .date = {},
          .evidence = "seen"};
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

class TrustStore : public testing::Test {
 protected:
  TrustStore() { fs::remove_all(folder_); }
  ~TrustStore() override { fs::remove_all(folder_); }

  // Runs in a separate process; false: it failed.
  template <typename Work>
  static pid_t in_child(Work work) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work() ? 0 : 1);
    return child;
  }
  static bool ended_well(pid_t child) {
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  fs::path file() const { return folder_ / kDevice.file_name(); }

  const log::ScopedLevel quiet_{log::Level::error};
  const fs::path folder_ = own_path("trust_store");
};

TEST_F(TrustStore, ProcessesThatAddAtOnceKeepWhatEachSaw) {
  constexpr int kProcesses = 6, kEach = 12;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process)
    children.push_back(in_child([&] {
      Trust trust(kDevice, folder_.string());
      for (int i = 0; i < kEach; ++i) trust.add({entry(fmt::format("p{}_{}", process, i), i % 3 != 0)});
      return true;
    }));
  for (const pid_t child : children) EXPECT_TRUE(ended_well(child));
  const Trust trust(kDevice, folder_.string());
  for (int process = 0; process < kProcesses; ++process)
    for (int i = 0; i < kEach; ++i) {
      const auto found = trust.find(TrustKind::assumption, fmt::format("p{}_{}", process, i));
      ASSERT_TRUE(found) << process << " " << i;
      EXPECT_EQ(found->confirmed, i % 3 != 0);
    }
}

TEST_F(TrustStore, WhatOneProcessRefutesNoOtherConfirms) {
  Trust first(kDevice, folder_.string()), second(kDevice, folder_.string());
  first.add({entry("a", false)});
  second.add({entry("a", true)});
  EXPECT_TRUE(second.is_refuted(TrustKind::assumption, "a"));
  EXPECT_TRUE(Trust(kDevice, folder_.string()).is_refuted(TrustKind::assumption, "a"));
}

// A board without a battery-backed clock starts at 1970 after each boot. This build's observations take precedence over
// later ones of others.
TEST_F(TrustStore, AClockThatWentBackLosesNothing) {
  Trust(kDevice, folder_.string()).add({entry("wrong"), entry("right", false), entry("same")});
  std::ifstream in(file());
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto replace = [&](const std::regex& what, const char* by) { text = std::regex_replace(text, what, by); };
  replace(std::regex("\"date\": \"20[0-9]+"), "\"date\": \"2931");
  for (const bool is_other_build : {true, false}) {
    std::string other = text;
    if (is_other_build) other = std::regex_replace(text, std::regex("\"build\": \"[^\"]*"), "\"build\": \"another");
    std::ofstream(file()) << other;
    Trust trust(kDevice, folder_.string());
    trust.add({entry("wrong", false), entry("right", is_other_build), entry("same")});
    const Trust again(kDevice, folder_.string());
    for (const Trust* one : {static_cast<const Trust*>(&trust), &again}) {
      EXPECT_TRUE(one->is_refuted(TrustKind::assumption, "wrong")) << is_other_build;
      EXPECT_EQ(one->is_refuted(TrustKind::assumption, "right"), !is_other_build);
      ASSERT_TRUE(one->find(TrustKind::assumption, "same"));
    }
    EXPECT_EQ(trust.file().entries.size(), 3U) << "one verdict of each";
  }
}

TEST_F(TrustStore, ForgettingKeepsWhatOthersAddedMeanwhile) {
  Trust first(kDevice, folder_.string()), second(kDevice, folder_.string());
  first.add({entry("a"), entry("b")});
  second.add({entry("c")});
  const auto gone = first.forget("a");
  EXPECT_TRUE(gone.ok() && *gone == 1U);
  const Trust now(kDevice, folder_.string());
  EXPECT_FALSE(now.find(TrustKind::assumption, "a"));
  EXPECT_TRUE(now.find(TrustKind::assumption, "b") && now.find(TrustKind::assumption, "c"));
}

TEST_F(TrustStore, ProgramsGoWithAnAssumptionThatTheyStandOn) {
  Trust trust(kDevice, folder_.string());
  const auto program = [](const char* name, std::optional<std::vector<std::string>> stands_on) {
    TrustEntry one = entry(name);
    one.kind = TrustKind::program;
    one.stands_on = std::move(stands_on);
    return one;
  };
  trust.add({entry("a"), entry("b"), program("of a", {{"c", "a"}}), program("of b", {{"b"}}), program("of none", {{}}),
             program("unknown", {})});
  EXPECT_EQ(*trust.forget("none"), 0U);
  for (const char* name : {"of a", "of b", "of none", "unknown"}) EXPECT_TRUE(trust.find(TrustKind::program, name));
  EXPECT_EQ(*trust.forget("a"), 1U);
  const Trust now(kDevice, folder_.string());
  for (const char* name : {"of a", "unknown"}) EXPECT_FALSE(now.find(TrustKind::program, name)) << name;
  for (const char* name : {"of b", "of none"}) EXPECT_TRUE(now.find(TrustKind::program, name)) << name;
  EXPECT_TRUE(now.find(TrustKind::assumption, "b"));
}

// A refuted program would refuse the operation again without a test.
TEST_F(TrustStore, RefutedProgramsGoWithAnOperation) {
  Trust trust(kDevice, folder_.string());
  const auto of = [](TrustKind kind, const char* name, bool confirmed) {
    TrustEntry one = entry(name, confirmed);
    one.kind = kind;
    return one;
  };
  trust.add({of(TrustKind::operation, "o", false), of(TrustKind::operation, "p", false),
             of(TrustKind::program, "bad", false), of(TrustKind::program, "good", true)});
  EXPECT_EQ(trust.forget("o").value(), 1U);
  EXPECT_FALSE(trust.find(TrustKind::operation, "o"));
  EXPECT_FALSE(trust.find(TrustKind::program, "bad"));
  EXPECT_TRUE(trust.find(TrustKind::operation, "p"));
  EXPECT_TRUE(trust.find(TrustKind::program, "good"));
}

// Older versions do not store the assumptions of a program.
TEST_F(TrustStore, ReadsTheVersionBefore) {
  {
    Trust trust(kDevice, folder_.string());
    TrustEntry program = entry("program");
    program.kind = TrustKind::program;
    trust.add({entry("a"), program});
  }
  std::string text = text_of(file());
  text.replace(text.find("\"skillet_trust\": 3"), 18, "\"skillet_trust\": 2");
  std::ofstream(file()) << text;
  const Trust now(kDevice, folder_.string());
  EXPECT_TRUE(now.find(TrustKind::assumption, "a") && now.find(TrustKind::program, "program"));
}

TEST_F(TrustStore, NothingCanBeForgottenOfNoFile) {
  Trust trust(kDevice, folder_.string());
  const auto gone = trust.forget("");
  EXPECT_TRUE(gone.ok() && *gone == 0U);
}

TEST_F(TrustStore, AFullDiskKeepsTheOldFileWhole) {
  {
    Trust trust(kDevice, folder_.string());
    trust.add({entry("old")});
  }
  const auto before = fs::file_size(file());
  for (const rlim_t limit_bytes : {rlim_t{0}, rlim_t{before / 2}, rlim_t{before + 10}}) {
    EXPECT_TRUE(ended_well(in_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{limit_bytes, limit_bytes};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      Trust trust(kDevice, folder_.string());
      trust.add({entry("new", false)});
      return trust.is_refuted(TrustKind::assumption, "new");  // in this process
    }))) << limit_bytes;
    const Trust trust(kDevice, folder_.string());
    EXPECT_TRUE(trust.find(TrustKind::assumption, "old")) << limit_bytes;
    EXPECT_FALSE(trust.find(TrustKind::assumption, "new")) << limit_bytes;
    EXPECT_EQ(fs::file_size(file()), before) << limit_bytes;
  }
}

// A lock that another process never releases, a folder that is a file: observations hold in this process.
TEST_F(TrustStore, NothingIsWaitedForForever) {
  fs::create_directories(folder_);
  std::ofstream(file().string() + ".lock") << "another program";
  Trust trust(kDevice, folder_.string(), std::chrono::milliseconds(500));
  trust.add({entry("a")});
  EXPECT_TRUE(Trust(kDevice, folder_.string()).find(TrustKind::assumption, "a"));

  // Held: one wait, one warning; and nothing is removed while the other process may write it back.
  fs::remove(file().string() + ".lock");
  const OwnFileLock held(file().string());
  ASSERT_FALSE(held.is_busy());
  trust.add({entry("a2")});
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) trust.add({entry(fmt::format("more{}", i))});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "it waits for each again";
  EXPECT_FALSE(trust.forget("").ok());
  EXPECT_TRUE(Trust(kDevice, folder_.string()).find(TrustKind::assumption, "a2"));

  Trust nowhere(kDevice, (file() / "below").string());
  nowhere.add({entry("b", false)});
  EXPECT_TRUE(nowhere.is_refuted(TrustKind::assumption, "b"));
  Trust unkept(kDevice, "");
  unkept.add({entry("c")});
  EXPECT_TRUE(unkept.find(TrustKind::assumption, "c"));
  EXPECT_FALSE(fs::exists(".lock"));
}

// A thread writes the file while its process forks: the child has no such thread, and the mutex stays locked.
TEST_F(TrustStore, AChildOfForkWaitsForNoThreadOfItsParent) {
  Target target = open_target("sim:toy").value();
  target.trust = std::make_shared<Trust>(kDevice, folder_.string());
  target.trust->add({entry("first")});
  auto held = std::make_unique<OwnFileLock>(file().string(), std::chrono::milliseconds(0));
  ASSERT_FALSE(held->is_busy());
  std::thread adds([&] { target.trust->add({entry("second")}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (const bool plans : {false, true}) {
    const pid_t child = in_child([&] {
      ::alarm(5);
      const auto said = plans ? plan_for(target, chain(), {}).error() : Session::create(chain(), target).error();
      return said.message.find("before a fork()") != std::string::npos;
    });
    EXPECT_TRUE(ended_well(child)) << plans;
  }
  held.reset();
  adds.join();
  EXPECT_TRUE(Trust(kDevice, folder_.string()).find(TrustKind::assumption, "second"));
}

// For a user other than root. A folder from a relative path in a variable would depend on the working directory.
TEST_F(TrustStore, IsInTheFolderThatTheEnvironmentNames) {
  using Variables = std::vector<std::pair<const char*, const char*>>;
  const struct {
    Variables variables;
    bool simulated;
    const char* folder;
  } rows[] = {
      {{{"HOME", "/h"}}, false, "/h/.local/state/skillet/trust"},
      {{{"HOME", "/h"}, {"XDG_STATE_HOME", "/s"}}, false, "/s/skillet/trust"},
      {{{"HOME", "/h"}, {"XDG_STATE_HOME", "s"}}, false, "/h/.local/state/skillet/trust"},
      {{{"HOME", "/h"}, {"XDG_STATE_HOME", ""}}, false, "/h/.local/state/skillet/trust"},
      {{{"HOME", "h"}}, false, ""},
      {{{"HOME", "/h"}}, true, ""},
      {{{"HOME", "/h"}, {"SKILLET_TRUST_DIR", "~/t"}}, true, "/h/t"},
      {{{"HOME", "/h"}, {"SKILLET_TRUST_DIR", ""}}, true, ""},
      {{{"HOME", "/h"}, {"SKILLET_VIRTUAL_CHIP", "rk3588"}}, false, ""},
      {{{"HOME", "/h"}, {"SKILLET_VIRTUAL_CHIP", "rk3588"}, {"SKILLET_VIRTUAL_ROOT", "/v"}}, false, "/v/trust"}};
  for (const auto& row : rows) {
    EXPECT_TRUE(ended_well(in_child([&] {
      for (const char* name : {"XDG_STATE_HOME", "SKILLET_TRUST_DIR", "SKILLET_VIRTUAL_CHIP", "SKILLET_VIRTUAL_ROOT"})
        ::unsetenv(name);
      for (const auto& one : row.variables) ::setenv(one.first, one.second, 1);
      return (::geteuid() != 0 || ::seteuid(65534) == 0) && trust_folder(row.simulated) == row.folder;
    }))) << &row - rows;
  }
}

TEST_F(TrustStore, FilesThatOthersMayWriteOrThatAreDamagedAreNotBelieved) {
  Trust(kDevice, folder_.string()).add({entry("a")});
  const std::string text = text_of(file());
  ASSERT_TRUE(Trust(kDevice, folder_.string()).find(TrustKind::assumption, "a"));

  fs::permissions(file(), fs::perms::group_write, fs::perm_options::add);
  EXPECT_FALSE(Trust(kDevice, folder_.string()).find(TrustKind::assumption, "a"));
  for (size_t size = 0; size + 1 < text.size(); size += 7) {  // the last byte ends a line
    std::ofstream(file(), std::ios::trunc) << text.substr(0, size);
    fs::permissions(file(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_FALSE(Trust(kDevice, folder_.string()).find(TrustKind::assumption, "a")) << size;
  }
  std::string foreign = text;
  foreign.replace(foreign.find("serial=1"), 8, "serial=2");
  std::ofstream(file(), std::ios::trunc) << foreign;
  EXPECT_FALSE(Trust(kDevice, folder_.string()).find(TrustKind::assumption, "a"));
  std::ofstream(file(), std::ios::trunc) << text;
  EXPECT_TRUE(Trust(kDevice, folder_.string()).find(TrustKind::assumption, "a"));
  fs::rename(file(), folder_ / "elsewhere");
  fs::create_symlink("elsewhere", file());
  EXPECT_FALSE(Trust(kDevice, folder_.string()).find(TrustKind::assumption, "a"));
}

TEST_F(TrustStore, WhatIsWrittenCanBeReadAgain) {
  Trust trust(kDevice, folder_.string());
  TrustEntry wordy = entry("wordy");
  wordy.confirmed = false;
  for (int i = 0; i < 3000; ++i) wordy.evidence += "\xc3\xa4\\\n";
  trust.add({wordy});
  std::vector<TrustEntry> many;
  for (const TrustKind kind : {TrustKind::assumption, TrustKind::program, TrustKind::operation}) {
    for (int i = 0; i < 3000; ++i) {
      many.push_back(entry(fmt::format("{:050}", i)));
      many.back().kind = kind;
      many.back().evidence = std::string(600, '\x01');
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // later entries are newer
  trust.add(many);
  trust.add({entry("newest")});
  const Trust again(kDevice, folder_.string());
  EXPECT_TRUE(again.is_refuted(TrustKind::assumption, "wordy")) << "what was wrong is not lost";
  EXPECT_TRUE(again.find(TrustKind::assumption, "newest"));
  EXPECT_EQ(again.file().entries.size(), 3 * 512U);
  EXPECT_TRUE(again.file().entries == trust.file().entries);
}

// The texts of a device tree may be arbitrary; a serial number that was never set is often all ones.
TEST_F(TrustStore, OfADeviceWithOddFactsIsReadAgain) {
  std::set<std::string> names;
  for (const std::string& odd : {std::string(300, 'x'), std::string(301, 'x'), std::string(16, '\xff'),
                                 std::string("a\nb"), std::string("vendor,npu")}) {
    const DeviceIdentity device = identity_of("toy", {.kernel_driver = "toy", .compatible = odd}, true);
    names.insert(device.file_name());
    Trust(device, folder_.string()).add({entry("seen")});
    EXPECT_TRUE(Trust(device, folder_.string()).find(TrustKind::assumption, "seen")) << device.text();
  }
  EXPECT_EQ(names.size(), 5U);
  const std::string quirks = ",quirk=" + std::string(300, 'q');
  const DeviceIdentity differs = identity_of("toy", {.kernel_driver = "toy", .node = "sim:toy" + quirks}, true);
  EXPECT_TRUE(parse_trust_file(print({differs, {}})).ok());
  EXPECT_EQ(identity_of("toy", {.kernel_driver = "toy", .node = "sim:toy,quirk=a+b"}, true).facts,
            std::vector<std::string>{"quirk=a+b"});
}

// As after an update: refuted entries of another build take no space from those of this build.
TEST_F(TrustStore, EntriesOfOtherBuildsGoFirst) {
  std::vector<TrustEntry> many;
  for (int i = 0; i < 512; ++i) many.push_back(entry(fmt::format("{}", i), false));
  Trust(kDevice, folder_.string()).add(many);
  std::string others = text_of(file());
  const std::string ours = "\"build\": \"" + std::string(compile::build_id());
  for (size_t at = 0; (at = others.find(ours, at)) != std::string::npos;)
    others.replace(at, ours.size(), "\"build\": \"old");
  std::ofstream(file(), std::ios::trunc) << others;
  Trust(kDevice, folder_.string()).add({entry("new")});
  const Trust again(kDevice, folder_.string());
  EXPECT_TRUE(again.find(TrustKind::assumption, "new"));
  EXPECT_EQ(again.file().entries.size(), 512U);
}

// Another build's results do not apply to this one's programs; its measured costs do, until this build has its own.
TEST_F(TrustStore, OfAnotherBuildCostsAloneCount) {
  const std::string ours(compile::build_id());
  const auto with = [&](const std::vector<TrustEntry>& entries) {
    fs::create_directories(folder_);
    std::ofstream(file(), std::ios::trunc) << print(TrustFile{kDevice, entries});
    return std::make_unique<Trust>(kDevice, folder_.string());
  };
  for (const bool is_ours : {false, true}) {
    TrustEntry one = entry("a", false);
    one.build = is_ours ? ours : "old";
    const auto trust = with({one});
    EXPECT_EQ(trust->find(TrustKind::assumption, "a").has_value(), is_ours);
    EXPECT_EQ(trust->is_refuted(TrustKind::assumption, "a"), is_ours);
    EXPECT_EQ(trust->refutes(TrustKind::assumption), is_ours);
    EXPECT_FALSE(trust->refutes(TrustKind::program));
  }
  const auto cost = [](double value, std::string build, std::string date) {
    return TrustEntry{.kind = TrustKind::cost,
                      .name = "c",
                      .confirmed = true,
                      .build = std::move(build),
                      .date = std::move(date),
                      .evidence = {},
                      .value = value};
  };
  std::vector<TrustEntry> rising = {cost(1, "old", "2001"), cost(2, "older", "2931"), cost(3, ours, "1970")};
  for (size_t count = 1; count <= rising.size(); ++count) {
    std::vector<TrustEntry> some(rising.begin(), rising.begin() + static_cast<std::ptrdiff_t>(count));
    for (int turn = 0; turn < 2; ++turn) {
      const auto costs = with(some)->costs();
      ASSERT_EQ(costs.size(), 1U);
      EXPECT_EQ(costs[0].name, "c");
      EXPECT_EQ(costs[0].value, static_cast<double>(count));
      std::ranges::reverse(some);
    }
  }
}

TEST_F(TrustStore, AFileOfANewerBuildStaysAsItIs) {
  Trust(kDevice, folder_.string()).add({entry("a")});
  std::string newer = text_of(file());
  newer.replace(newer.find("\"skillet_trust\": 3"), 18, "\"skillet_trust\": 4");
  std::ofstream(file(), std::ios::trunc) << newer;
  Trust trust(kDevice, folder_.string());
  trust.add({entry("b")});
  EXPECT_TRUE(trust.find(TrustKind::assumption, "b"));
  EXPECT_FALSE(trust.find(TrustKind::assumption, "a"));
  EXPECT_FALSE(trust.forget("b").ok());
  EXPECT_EQ(text_of(file()), newer);
}

TEST_F(TrustStore, ADamagedFileIsKeptBesideTheNewOne) {
  Trust(kDevice, folder_.string()).add({entry("a")});
  const std::string damaged = text_of(file()).substr(0, 200);
  std::ofstream(file(), std::ios::trunc) << damaged;
  Trust trust(kDevice, folder_.string());
  trust.add({entry("b")});
  trust.add({entry("c")});
  EXPECT_EQ(text_of(file().string() + ".unreadable"), damaged);
  const Trust again(kDevice, folder_.string());
  EXPECT_TRUE(again.find(TrustKind::assumption, "b") && again.find(TrustKind::assumption, "c"));
}

TEST_F(TrustStore, AFileOfAnotherUserStaysAsItIs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give a file to another user";
  Trust(kDevice, folder_.string()).add({entry("a")});
  const std::string text = text_of(file());
  ASSERT_EQ(::chown(file().c_str(), 12345, ~gid_t{0}), 0);
  Trust trust(kDevice, folder_.string());
  trust.add({entry("b")});
  EXPECT_TRUE(trust.find(TrustKind::assumption, "b"));
  EXPECT_FALSE(trust.find(TrustKind::assumption, "a"));
  EXPECT_EQ(text_of(file()), text);
  EXPECT_FALSE(fs::exists(file().string() + ".unreadable"));
  const auto kept = trust.add_kept({entry("b")});
  ASSERT_FALSE(kept.ok());
  EXPECT_NE(kept.error().message.find("belongs to another user"), std::string::npos) << kept.error().message;
}

TEST_F(TrustStore, AFileThatIsIgnoredIsKeptBesideTheNewOne) {
  Trust(kDevice, folder_.string()).add({entry("a")});
  const std::string text = text_of(file()), aside = file().string() + ".unreadable";
  const std::string large = text + std::string((4 << 20) + 1, ' ');
  for (const std::string& old : {large, text}) {
    std::ofstream(file(), std::ios::trunc) << old;
    if (old == text) fs::permissions(file(), fs::perms::others_write, fs::perm_options::add);
    Trust(kDevice, folder_.string()).add({entry("b")});
    EXPECT_TRUE(text_of(aside) == old);
    const Trust again(kDevice, folder_.string());
    EXPECT_FALSE(again.find(TrustKind::assumption, "a"));
    EXPECT_TRUE(again.find(TrustKind::assumption, "b"));
  }
  fs::remove(aside);
  fs::create_directory(aside);
  std::ofstream(file(), std::ios::trunc) << "damaged";
  Trust trust(kDevice, folder_.string());
  trust.add({entry("c")});
  EXPECT_TRUE(trust.find(TrustKind::assumption, "c"));
  EXPECT_EQ(text_of(file()), "damaged") << "it cannot be kept, so nothing takes its place";
}

// There is no trust file: the folder is wrong.
TEST_F(TrustStore, AFolderThatIsAFileIsSaid) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "text";
  Trust trust(kDevice, (folder_ / "file").string());
  trust.add({entry("a")});
  EXPECT_TRUE(trust.find(TrustKind::assumption, "a"));
  const auto gone = trust.forget("a");
  ASSERT_FALSE(gone.ok());
  EXPECT_NE(gone.error().message.find("Not a directory"), std::string::npos) << gone.error().message;
  EXPECT_EQ(gone.error().message.find("old file"), std::string::npos) << gone.error().message;
}

TEST_F(TrustStore, WhatIsForgottenMeanwhileStaysForgotten) {
  Trust running(kDevice, folder_.string());
  running.add({entry("a"), entry("b")});
  ASSERT_TRUE(Trust(kDevice, folder_.string()).forget("a").ok());
  running.add({entry("c")});
  const Trust again(kDevice, folder_.string());
  EXPECT_FALSE(again.find(TrustKind::assumption, "a"));
  EXPECT_TRUE(again.find(TrustKind::assumption, "b") && again.find(TrustKind::assumption, "c"));
  fs::remove(file());
  running.add({entry("d")});
  EXPECT_EQ(Trust(kDevice, folder_.string()).file().entries.size(), 1U);
}

}  // namespace
}  // namespace skillet::runtime
