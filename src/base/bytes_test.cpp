#include "base/bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>

#include "base/testing/file_faults.h"
#include "base/testing/open_files.h"
#include "base/testing/own_folder.h"

namespace skillet {
namespace {

namespace fs = std::filesystem;
using skillet::testing::FileFault;
using skillet::testing::with_fault;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = own_path("bytes");
    fs::create_directory(folder_);
    open_ = skillet::testing::open_files();
  }
  void TearDown() override {
    EXPECT_EQ(skillet::testing::open_files(), open_) << "a file was left open";
    fs::remove_all(folder_);
  }
  size_t open_ = 0;
  std::string path(const char* name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

bool says(const Result<void>& result, const std::string& text) {
  return !result.ok() && result.error().code == ErrorCode::io && result.error().message.find(text) != std::string::npos;
}

Result<void> with_at_most(rlim_t size_bytes, const std::function<Result<void>()>& work) {
  rlimit before{};
  EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = size_bytes, .rlim_max = before.rlim_max};
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Result<void> done = work();
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  return done;
}

TEST_F(Files, AreReadAsTheyWereWritten) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100'000}}) {
    Bytes bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7);
    ASSERT_TRUE(write_file(path("file"), bytes).ok());
    EXPECT_EQ(read_file(path("file")).value(), bytes);
    EXPECT_EQ(read_file_start(path("file"), 10).value(),
              Bytes(bytes.begin(), bytes.begin() + std::min<std::ptrdiff_t>(10, std::ssize(bytes))));
  }
}

// For any call: an interrupted or partial call is continued; a failed one gives an error, and the old file is kept.
TEST_F(Files, AreWrittenWholeWhicheverCallGoesOtherwise) {
  const Bytes old(1000, 1), bytes(3000, 2);
  for (const FileFault fault : {FileFault::interrupted, FileFault::one_byte, FileFault::fails}) {
    for (const bool replaces : {false, true}) {
      std::string call = "first";
      for (int at = 0; !call.empty(); ++at) {
        fs::remove(path("file"));
        if (replaces) {
          ASSERT_TRUE(write_file(path("file"), old).ok());
        }
        Result<void> done;
        call = with_fault(at, fault, [&] { done = write_file(path("file"), bytes); });
        if (fault != FileFault::fails || call.empty()) {
          ASSERT_TRUE(done.ok()) << call;
        }
        if (fault == FileFault::fails && (call == "write" || call == "rename")) {
          ASSERT_FALSE(done.ok()) << call;
        }
        if (!done.ok()) {
          EXPECT_TRUE(says(done, path("file"))) << call;
        }
        ASSERT_EQ(fs::exists(path("file")), done.ok() || replaces) << call;
        if (done.ok() || replaces) {
          EXPECT_EQ(read_file(path("file")).value(), done.ok() ? bytes : old) << call;
        }
        EXPECT_LE(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1) << call;
      }
    }
  }
}

TEST_F(Files, AreReadWholeWhicheverCallGoesOtherwise) {
  const Bytes bytes(3000, 2);
  ASSERT_TRUE(write_file(path("file"), bytes).ok());
  for (const FileFault fault : {FileFault::interrupted, FileFault::one_byte, FileFault::fails}) {
    for (const size_t wanted : {size_t{10}, bytes.size() + 10}) {
      std::string call = "first";
      for (int at = 0; !call.empty(); ++at) {
        Result<Bytes> read = Bytes();
        call = with_fault(at, fault, [&] {
          read = wanted > bytes.size() ? read_file(path("file")) : read_file_start(path("file"), wanted);
        });
        ASSERT_EQ(read.ok(), fault != FileFault::fails || (call != "open" && call != "read")) << call;
        if (read.ok()) {
          EXPECT_EQ(*read, Bytes(std::min(wanted, bytes.size()), 2)) << call;
        }
      }
    }
  }
}

// A program that closes its standard files gets descriptor 0 for the next file.
TEST_F(Files, MayHaveTheDescriptorZero) {
  ASSERT_TRUE(write_file(path("name"), {}).ok());
  fs::create_hard_link(path("name"), path("names"));
  const int kept = ::dup(0);
  ::close(0);
  const Result<void> written = write_file(path("file"), Bytes(9, 1)), again = write_file(path("file"), Bytes(9, 2));
  const Result<void> in_place = write_file(path("names"), Bytes(9, 3));
  const Result<Bytes> read = read_file(path("file")), start = read_file_start(path("file"), 1);
  const Result<void> place = check_place(path("other"));
  const bool is_closed = ::fcntl(0, F_GETFD) < 0;
  if (kept >= 0) {
    ::dup2(kept, 0);
    ::close(kept);
  }
  EXPECT_TRUE(is_closed) << "a file was left open";
  EXPECT_TRUE(written.ok() && again.ok() && in_place.ok() && place.ok());
  EXPECT_EQ(read.ok() ? *read : Bytes(), Bytes(9, 2));
  EXPECT_EQ(start.ok() ? *start : Bytes(), Bytes(1, 2));
}

TEST_F(Files, WhatIsNoFileIsRefused) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  ASSERT_TRUE(write_file(path("large"), {}).ok());
  fs::resize_file(path("large"), (uint64_t{1} << 31) + 1);
  const std::pair<std::string, const char*> cases[] = {{path("pipe"), "is a pipe, not a file"},
                                                       {folder_.string(), "is a folder, not a file"},
                                                       {"/dev/zero", "is a device, not a file"},
                                                       {path("large"), "is larger than 2 GiB"},
                                                       {path("nothing"), "No such file or directory"}};
  for (const auto& [file, message] : cases) {
    const auto read = read_file(file);
    ASSERT_FALSE(read.ok()) << file;
    EXPECT_EQ(read.error().message, file + ": " + message);
  }
}

TEST_F(Files, AFullDiskIsAnErrorAndLeavesNoPart) {
  EXPECT_TRUE(says(write_file("/dev/full", Bytes(10)), "/dev/full: No space left on device"));
  EXPECT_TRUE(fs::exists("/dev/full"));
  EXPECT_TRUE(write_file("/dev/null", Bytes(10)).ok());
  const Result<void> written = with_at_most(4096, [&] { return write_file(path("file"), Bytes(10'000)); });
  EXPECT_TRUE(says(written, "File too large"));
  EXPECT_FALSE(fs::exists(path("file"))) << "half of it would be taken for the whole";
}

TEST_F(Files, PlacesAreCheckedBeforeTheWork) {
  ASSERT_TRUE(write_file(path("file"), Bytes(1)).ok());
  EXPECT_TRUE(check_place(path("file")).ok());
  EXPECT_TRUE(check_place(path("new")).ok());
  EXPECT_TRUE(says(check_place(folder_.string()), "is a folder, not a file"));
  EXPECT_TRUE(says(check_place(path("no/such")), "No such file or directory"));
  EXPECT_TRUE(says(check_place(path("file/below")), "Not a directory"));
  EXPECT_FALSE(fs::exists(path("new"))) << "nothing is made";
  EXPECT_TRUE(check_folder(folder_.string()).ok());
  EXPECT_TRUE(check_folder(path("to/be/made")).ok());
  EXPECT_TRUE(says(check_folder(path("file")), "Not a directory"));
  EXPECT_TRUE(says(check_folder(path("file/below")), "Not a directory"));
  EXPECT_FALSE(fs::exists(path("to")));
}

// Not as root, who may open every folder.
TEST_F(Files, FoldersOfResultsCanBeReadAndGoneInto) {
  fs::permissions(folder_, fs::perms{0755});
  fs::create_directory(path("sub"));
  for (const int mode : {0555, 0444, 0111, 0}) {
    fs::permissions(path("sub"), static_cast<fs::perms>(mode));
    const pid_t child = ::fork();
    if (child == 0) {
      const bool is_there =
          ::chdir(folder_.c_str()) == 0 && (::geteuid() != 0 || ::setresuid(12345, 12345, 12345) == 0);
      ::_exit(!is_there ? 2 : check_folder("sub").ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), mode == 0555 ? 0 : 1) << mode;
  }
  fs::permissions(path("sub"), fs::perms::owner_all);
}

// Some folders accept no files even from root, although access() always succeeds for root.
TEST_F(Files, FilesInFoldersAreTried) {
  EXPECT_TRUE(check_folder("/proc").ok()) << "to be read";
  EXPECT_FALSE(check_folder("/proc/new").ok());
  EXPECT_FALSE(check_files("/proc", {}).ok());
  const std::vector<std::string> names = {"one", "two"};
  EXPECT_FALSE(check_files("/proc", names).ok());
  EXPECT_FALSE(check_files("/proc/new/folder", names).ok());
  EXPECT_TRUE(check_files(folder_.string(), names).ok());
  EXPECT_TRUE(check_files(folder_.string(), {}).ok());
  EXPECT_TRUE(check_files(path("to/be/made"), names).ok());
  EXPECT_TRUE(fs::is_empty(folder_)) << "nothing is left";
  fs::create_directory(path("two"));
  EXPECT_TRUE(says(check_files(folder_.string(), names), "two: is a folder, not a file"));
  ASSERT_TRUE(write_file(path("file"), Bytes(1)).ok());
  EXPECT_TRUE(says(check_files(path("file"), {}), "Not a directory"));
}

// A folder that does not exist yet is tried where it would be made: below /, or below the current folder.
TEST_F(Files, NewFoldersAreTriedWhereTheyWouldBe) {
  const fs::path before = fs::current_path();
  const bool takes_root = ::access("/", W_OK) == 0;
  for (const std::string& here : {folder_.string(), std::string("/proc")}) {
    fs::current_path(here);
    for (const char* of_root : {"/skillet_is_not_here", "/skillet_is_not_here/below", "//skillet_is_not_here"})
      EXPECT_EQ(check_folder(of_root).ok(), takes_root) << of_root << " from " << here;
    for (const char* of_here : {"skillet_is_not_here", "skillet_is_not_here/below", "./skillet_is_not_here"})
      EXPECT_EQ(check_folder(of_here).ok(), here != "/proc") << of_here << " from " << here;
  }
  fs::current_path(before);
}

TEST_F(Files, PlacesThatOnlySeemFreeAreNone) {
  fs::create_symlink(path("gone"), path("link"));
  EXPECT_TRUE(says(check_place(path("link")), "link: is a link to a file that does not exist"));
  EXPECT_TRUE(says(check_folder(path("link")), "link: is a link to a file that does not exist"));
  EXPECT_TRUE(says(check_folder(path("link/below")), "link: is a link to a file that does not exist"));
  EXPECT_FALSE(fs::exists(path("gone")));
  ASSERT_TRUE(write_file(path("file"), Bytes(1)).ok());
  fs::create_symlink(path("file"), path("good"));
  EXPECT_TRUE(check_place(path("good")).ok());
  fs::create_directory(path("folder"));
  fs::create_symlink(path("folder"), path("good_folder"));
  EXPECT_TRUE(check_folder(path("good_folder/new")).ok());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string name = path("socket");
  ASSERT_LT(name.size(), sizeof address.sun_path);
  std::ranges::copy(name, address.sun_path);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(says(check_place(name), "is a socket, not a file"));
  ::close(fd);
}

// A process that has the old file open keeps its contents; links stay links, and files with two names stay one file.
TEST_F(Files, AreReplacedAsAWhole) {
  const auto inode = [](const std::string& name) {
    struct stat status {};
    EXPECT_EQ(::stat(name.c_str(), &status), 0);
    return status.st_ino;
  };
  ASSERT_TRUE(write_file(path("file"), Bytes(5, 1)).ok());
  ASSERT_EQ(::chmod(path("file").c_str(), 0640), 0);
  const int old = ::open(path("file").c_str(), O_RDONLY | O_CLOEXEC);
  fs::create_symlink(path("file"), path("link"));
  for (const char* name : {"file", "link"}) {
    const auto before = inode(path("file"));
    ASSERT_TRUE(write_file(path(name), Bytes(3, 2)).ok());
    EXPECT_NE(inode(path("file")), before) << name;
    EXPECT_EQ(read_file(path("file")).value(), Bytes(3, 2)) << name;
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_EQ(fs::status(path("file")).permissions(), static_cast<fs::perms>(0640));
  }
  uint8_t bytes[9];
  EXPECT_EQ(::read(old, bytes, sizeof bytes), 5);
  ::close(old);
  fs::create_hard_link(path("file"), path("other"));
  ASSERT_TRUE(write_file(path("file"), Bytes(4, 3)).ok());
  EXPECT_EQ(inode(path("file")), inode(path("other")));
  EXPECT_EQ(read_file(path("other")).value(), Bytes(4, 3));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 3) << "nothing else is left";
}

// A file with a second name is overwritten in place, where the space may not suffice.
TEST_F(Files, OfTwoNamesKeepWhatTheyHadWhereThereIsNoRoom) {
  ASSERT_TRUE(write_file(path("file"), Bytes(6000, 1)).ok());
  fs::create_hard_link(path("file"), path("other"));
  const Result<void> written = with_at_most(8192, [&] { return write_file(path("file"), Bytes(10'000, 2)); });
  EXPECT_TRUE(says(written, "File too large"));
  EXPECT_EQ(read_file(path("other")).value(), Bytes(6000, 1));
  ASSERT_TRUE(write_file(path("file"), Bytes(500, 3)).ok());
  EXPECT_EQ(read_file(path("other")).value(), Bytes(500, 3));
}

// A process that is killed during the write leaves the old file, or no file of that name.
TEST_F(Files, AreNeverHalfThere) {
  for (const bool is_there : {false, true}) {
    if (is_there) {
      ASSERT_TRUE(write_file(path("file"), Bytes(9, 1)).ok());
    }
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit small{.rlim_cur = 4096, .rlim_max = RLIM_INFINITY}, no_core{};
      std::signal(SIGXFSZ, SIG_DFL);  // ends a process that continues to write
      if (::setrlimit(RLIMIT_FSIZE, &small) == 0 && ::setrlimit(RLIMIT_CORE, &no_core) == 0)
        static_cast<void>(write_file(path("file"), Bytes(10'000, 2)));
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(fs::exists(path("file")), is_there);
  }
  EXPECT_EQ(read_file(path("file")).value(), Bytes(9, 1));
}

}  // namespace
}  // namespace skillet
