#include "base/own_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "base/testing/file_faults.h"
#include "base/testing/open_files.h"
#include "base/testing/own_folder.h"
#include "base/text.h"

namespace skillet {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLimit = 1 << 20;
const CheckStart kAny = [](std::span<const uint8_t>, uint64_t) -> Result<void> { return {}; };

class OwnFile : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    open_ = skillet::testing::open_files();
  }
  void TearDown() override {
    EXPECT_EQ(skillet::testing::open_files(), open_) << "a file was left open";
    fs::remove_all(folder_);
  }
  size_t open_ = 0;
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }
  Bytes contents() const {
    const auto file = read_own_file(path_, kLimit, kAny);
    return file.ok() && *file ? Bytes((*file)->begin(), (*file)->end()) : Bytes{};
  }
  // In a separate process that may write files of at most `limit` bytes, as on a full disk.
  int replace_in_child(const Bytes& bytes, rlim_t limit, sighandler_t when_full) const {
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(SIGXFSZ, when_full);
      const rlimit size{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &size);
      ::_exit(replace_own_file(path_, {bytes}).ok() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  const fs::path folder_ = own_path("files");
  const std::string path_ = (folder_ / "entry").string();
};

const Bytes kOld(3000, 1), kNew(100'000, 2);

// A file that has grown is not read if its first bytes are wrong.
TEST_F(OwnFile, IsReadWhenItsStartIsRight) {
  constexpr uint64_t kGrown = 1ULL << 33;
  ASSERT_TRUE(replace_own_file(path_, {Bytes{1, 2}}).ok());
  fs::resize_file(path_, kGrown);
  const auto file = read_own_file(path_, kGrown, [&](std::span<const uint8_t> start, uint64_t size) -> Result<void> {
    EXPECT_EQ(start.size(), kStartBytes);
    EXPECT_EQ(start[1], 2);
    EXPECT_EQ(size, kGrown);
    return error(ErrorCode::malformed, "too long");
  });
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().message, "too long");
}

// Truncated or overwritten in place, before its bytes are read or afterwards: bytes that were read stay complete.
TEST_F(OwnFile, StaysAsItWasRead) {
  for (const size_t size : {size_t{0}, size_t{1}, kStartBytes, kNew.size()}) {
    ASSERT_TRUE(replace_own_file(path_, {std::span(kNew).first(size)}).ok());
    const auto file = read_own_file(path_, kLimit, kAny).value();
    fs::resize_file(path_, 0);
    EXPECT_EQ(Bytes(file->begin(), file->end()), Bytes(size, 2));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file->data()) % kReadAlignment, 0u);
  }
  ASSERT_TRUE(replace_own_file(path_, {kNew}).ok());
  const auto cut_off = read_own_file(path_, kLimit, [&](std::span<const uint8_t>, uint64_t) -> Result<void> {
    fs::resize_file(path_, kNew.size() - 1);
    return {};
  });
  ASSERT_FALSE(cut_off.ok());
  EXPECT_EQ(cut_off.error().message, path_ + ": was cut off while it was read");
}

TEST_F(OwnFile, KeepsPartsInOrder) {
  EXPECT_FALSE(read_own_file(path_, kLimit, kAny).value().has_value());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(replace_own_file(path_, {Bytes{1, 2}, Bytes{}, Bytes{3}}).ok());
    EXPECT_EQ(contents(), Bytes({1, 2, 3}));
  }
  EXPECT_EQ(files(), 1u);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

struct Impostor {
  const char* what;
  std::function<void(const std::string&)> make;
  const char* message;
};

TEST_F(OwnFile, TakesOnlyRegularFilesOfThisUser) {
  const std::string victim = (folder_ / "victim").string();
  const Impostor impostors[] = {
      {"FIFO", [](const std::string& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); }, "not a regular file"},
      {"link", [&](const std::string& path) { fs::create_symlink(victim, path); }, "is a link"},
      {"hanging link", [](const std::string& path) { fs::create_symlink("nowhere", path); }, "is a link"},
      {"3 GiB without a byte on the disk",
       [](const std::string& path) {
         ASSERT_TRUE(write_file(path, {}).ok());
         fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
         fs::resize_file(path, 3ULL << 30);
       },
       "3221225472 bytes, more than 1048576"},
      {"its group may write",
       [](const std::string& path) {
         ASSERT_TRUE(write_file(path, kOld).ok());
         ASSERT_EQ(::chmod(path.c_str(), 0620), 0);
       },
       "other users may write it"},
      {"other users may write",
       [](const std::string& path) {
         ASSERT_TRUE(write_file(path, kOld).ok());
         ASSERT_EQ(::chmod(path.c_str(), 0602), 0);
       },
       "other users may write it"},
      {"another user's",
       [](const std::string& path) {
         ASSERT_TRUE(write_file(path, kOld).ok());
         ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
         if (::chown(path.c_str(), 12345, ~gid_t{0}) != 0) fs::permissions(path, fs::perms::none);
       },
       ::geteuid() == 0 ? "belongs to user 12345" : "Permission denied"},
      {"device", [](const std::string& path) { fs::create_symlink("/dev/zero", path); }, "is a link"},
  };
  for (const Impostor& one : impostors) {
    SCOPED_TRACE(one.what);
    ASSERT_TRUE(write_file(victim, kOld).ok());
    fs::remove(path_);
    one.make(path_);
    const auto file = read_own_file(path_, kLimit, kAny);
    ASSERT_FALSE(file.ok());
    EXPECT_NE(file.error().message.find(one.message), std::string::npos) << file.error().message;
    // It is replaced by the right file, and nothing that it points to is changed.
    ASSERT_TRUE(replace_own_file(path_, {kNew}).ok());
    EXPECT_EQ(contents(), kNew);
    EXPECT_EQ(read_file(victim).value(), kOld);
  }
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_NE(read_own_file(path_, kLimit, kAny).error().message.find("not a regular file"), std::string::npos);
  EXPECT_FALSE(replace_own_file(path_, {kNew}).ok());
  EXPECT_EQ(files(), 2u) << "no temporary file stays";
}

TEST_F(OwnFile, FullDiskLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(replace_own_file(path_, {kOld}).ok());
  for (const rlim_t room : {0, 1, 4096, 99'999}) {
    const int status = replace_in_child(kNew, room, SIG_IGN);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << room;
    EXPECT_EQ(contents(), kOld);
    EXPECT_EQ(files(), 1u);
  }
  EXPECT_EQ(replace_in_child(kNew, 100'000, SIG_IGN), 0);
  EXPECT_EQ(contents(), kNew);
}

// The name of the temporary file beside it must not be longer.
TEST_F(OwnFile, MayHaveTheLongestName) {
  for (const std::string& name : {std::string(255, 'n'), std::string(217, 'n') + "\xC3\xA4" + std::string(36, 'n')}) {
    const std::string path = (folder_ / name).string();
    ASSERT_EQ(name.size(), 255u);
    const auto done = replace_own_file(path, {kNew});
    ASSERT_TRUE(done.ok()) << done.error().message;
    const auto temporary = temporary_name(path);
    ASSERT_TRUE(temporary.ok());
    EXPECT_LE(fs::path(*temporary).filename().string().size(), 255u);
    EXPECT_TRUE(is_utf8(*temporary)) << *temporary;
    EXPECT_EQ(files(), 1u);
    fs::remove(path);
  }
}

// For any call: the old or the new file exists, nothing else, and an error names a file.
TEST_F(OwnFile, IsReplacedWholeWhicheverCallGoesOtherwise) {
  using skillet::testing::FileFault;
  for (const FileFault fault : {FileFault::interrupted, FileFault::one_byte, FileFault::fails}) {
    std::string call = "first";
    int syncs = 0;  // of the file, then of its folder
    for (int at = 0; !call.empty(); ++at) {
      ASSERT_TRUE(replace_own_file(path_, {kOld}).ok());
      Result<void> done;
      call = skillet::testing::with_fault(at, fault, [&] { done = replace_own_file(path_, {kNew, kOld}); });
      if (fault != FileFault::fails || call.empty()) {
        ASSERT_TRUE(done.ok()) << call;
      }
      const bool loses_bytes = call == "write" || call == "rename" || (call == "fsync" && ++syncs == 1);
      if (fault == FileFault::fails && loses_bytes) {
        ASSERT_FALSE(done.ok()) << call;
      }
      if (!done.ok()) {
        EXPECT_NE(done.error().message.find(path_), std::string::npos) << done.error().message;
      }
      EXPECT_EQ(files(), 1u) << call;
      EXPECT_EQ(contents().size(), done.ok() ? kNew.size() + kOld.size() : kOld.size()) << call;
    }
  }
}

TEST_F(OwnFile, IsReadWholeWhicheverCallGoesOtherwise) {
  using skillet::testing::FileFault;
  ASSERT_TRUE(replace_own_file(path_, {kNew}).ok());
  for (const FileFault fault :
       {FileFault::interrupted, FileFault::one_byte, FileFault::end_of_file, FileFault::fails}) {
    std::string call = "first";
    for (int at = 0; !call.empty(); ++at) {
      Bytes read;
      call = skillet::testing::with_fault(at, fault, [&] { read = contents(); });
      const bool is_cut = fault == FileFault::end_of_file || fault == FileFault::fails;
      EXPECT_EQ(read, is_cut && (call == "pread" || call == "open") ? Bytes() : kNew) << call;
    }
  }
}

// As after power loss: an incomplete new file with a temporary name, which is removed when it is old.
TEST_F(OwnFile, EndInTheMiddleLeavesTheOldFile) {
  ASSERT_TRUE(replace_own_file(path_, {kOld}).ok());
  const int status = replace_in_child(kNew, 4096, SIG_DFL);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(contents(), kOld);
  ASSERT_EQ(files(), 2u);
  ASSERT_TRUE(replace_own_file(path_, {kOld}).ok());
  EXPECT_EQ(files(), 2u) << "somebody may still be writing it";
  for (const auto& one : fs::directory_iterator(folder_))
    fs::last_write_time(one, fs::file_time_type::clock::now() - std::chrono::hours(2));
  const std::string other = (folder_ / "entry2.tmp").string();
  ASSERT_TRUE(write_file(other, kOld).ok());
  fs::last_write_time(other, fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_TRUE(replace_own_file(path_, {kNew}).ok());
  EXPECT_EQ(files(), 2u);
  EXPECT_TRUE(fs::exists(other)) << "not ours";
  EXPECT_EQ(contents(), kNew);
}

// Neither a moved-from lock nor a child of fork() with the open file releases or holds it.
TEST_F(OwnFile, OneHoldsItsLock) {
  const auto is_free = [&] { return !OwnFileLock(path_, std::chrono::milliseconds(0)).is_busy(); };
  pid_t child = 0;
  {
    auto first = std::make_unique<OwnFileLock>(path_);
    EXPECT_FALSE(first->is_busy());
    EXPECT_FALSE(is_free());
    const OwnFileLock second(std::move(*first));
    first.reset();
    EXPECT_FALSE(is_free());
    child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  EXPECT_TRUE(is_free());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// A process that replaces files holds the lock for longer than the limit for one wait, but not forever.
TEST_F(OwnFile, WhoIsAtWorkIsWaitedFor) {
  ASSERT_TRUE(replace_own_file(path_, {kOld}).ok());
  for (const bool ends : {true, false}) {
    const std::chrono::milliseconds patience(ends ? 200 : 50), work(ends ? 600 : 20'000);
    auto held = std::make_unique<OwnFileLock>(path_);
    ASSERT_FALSE(held->is_busy());
    std::atomic<bool> has_given_up{false};
    std::thread holder([&] {
      const auto end = std::chrono::steady_clock::now() + work;
      while (!has_given_up && std::chrono::steady_clock::now() < end) {
        fs::last_write_time(path_, fs::file_time_type::clock::now());
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      held.reset();
    });
    const bool is_busy = OwnFileLock(path_, patience).is_busy();
    has_given_up = true;
    holder.join();
    EXPECT_EQ(is_busy, !ends);
  }
}

TEST_F(OwnFile, AnyNumberOfWritersAndReaders) {
  ASSERT_TRUE(replace_own_file(path_, {kOld}).ok());
  const auto work = [&](uint8_t number) {
    int failures = 0;
    for (int i = 0; i < 20; ++i) {
      failures += replace_own_file(path_, {Bytes(10'000, number), Bytes(10'000, number)}).ok() ? 0 : 1;
      const Bytes read = contents();
      failures += !read.empty() && (read == kOld || read == Bytes(20'000, read[0])) ? 0 : 1;
    }
    return failures;
  };
  std::vector<pid_t> children;
  for (uint8_t process = 0; process < 3; ++process) {
    children.push_back(::fork());
    if (children.back() == 0) ::_exit(work(10 + process));
  }
  std::vector<int> failures(4);
  std::vector<std::thread> threads;
  for (uint8_t t = 0; t < 4; ++t) threads.emplace_back([&, t] { failures[t] = work(20 + t); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(4));
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace skillet
