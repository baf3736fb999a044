// Files of recordings: their names, removed submissions, and reading a file on disk.
#include "capture/file_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/testing/file_faults.h"
#include "base/testing/open_files.h"
#include "base/testing/own_folder.h"
#include "capture/frames.h"
#include "capture/reader.h"

namespace skillet::capture {
namespace {

namespace fs = std::filesystem;

class Recordings : public ::testing::Test {
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
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static Submission submission(uint32_t word) { return {.jobs = one_list({word})}; }
  static std::vector<uint32_t> words_in(const std::string& path) {
    std::vector<uint32_t> words;
    const auto capture = read(path);
    EXPECT_TRUE(capture.ok()) << capture.error().message;
    for (size_t i = 0; capture.ok() && i < capture->submissions.size(); ++i)
      words.push_back(capture->submissions[i].jobs.at(0).commands.at(0).words.at(0));
    return words;
  }

  const fs::path folder_ = own_path("recordings");
  const DeviceInfo device_{.kernel_driver = "etnaviv", .node = "sim:x", .compatible = {}, .facts = {}};
};

using Words = std::vector<uint32_t>;

// Each program that records at the same time, or later, has its own file.
TEST_F(Recordings, HaveTheNextNameThatIsFree) {
  for (uint32_t i = 1; i <= 3; ++i) {
    const Sink sink = into_next_file(path("r"));
    EXPECT_FALSE(fs::exists(path(i == 1 ? "r" : fmt::format("r.{}", i)))) << "made with the first submission";
    ASSERT_TRUE(sink.append(device_, submission(i)).ok());
    ASSERT_TRUE(sink.append(device_, submission(10 * i)).ok());
  }
  EXPECT_EQ(words_in(path("r")), (Words{1, 10}));
  EXPECT_EQ(words_in(path("r.2")), (Words{2, 20}));
  EXPECT_EQ(words_in(path("r.3")), (Words{3, 30}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 3);
  EXPECT_FALSE(into_file(path("r")).append(device_, submission(1)).ok()) << "what is there is not written over";
  EXPECT_EQ(words_in(path("r")), (Words{1, 10}));
  const auto folder = into_next_file(folder_.string()).append(device_, submission(1));
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.error().message.find("is not a regular file"), std::string::npos) << folder.error().message;
  EXPECT_FALSE(into_next_file(path("no/such/folder")).append(device_, submission(1)).ok());
}

TEST_F(Recordings, TakeBackTheLastOnceOnly) {
  const Sink sink = into_file(path("r"));
  for (uint32_t i = 1; i <= 3; ++i) ASSERT_TRUE(sink.append(device_, submission(i)).ok());
  ASSERT_TRUE(sink.drop_last().ok());
  ASSERT_TRUE(sink.drop_last().ok());
  EXPECT_EQ(words_in(path("r")), (Words{1, 2}));
  ASSERT_TRUE(sink.append(device_, submission(4)).ok());
  EXPECT_EQ(words_in(path("r")), (Words{1, 2, 4}));
  ASSERT_TRUE(sink.drop_last().ok());
  EXPECT_EQ(words_in(path("r")), (Words{1, 2}));
}

// Contents that were recorded with a removed submission are recorded again.
TEST_F(Recordings, KnowContentsOnlyOfWhatIsInTheFile) {
  const Sink sink = into_file(path("r"));
  const auto with = [](uint8_t byte) {
    Submission one = submission(byte);
    one.buffers.push_back({.handle = 1, .size_bytes = 64, .content = Content::bytes, .bytes = Bytes(64, byte)});
    return one;
  };
  for (const uint8_t byte : {1, 2}) ASSERT_TRUE(sink.append(device_, with(byte)).ok());
  ASSERT_TRUE(sink.drop_last().ok());
  ASSERT_TRUE(sink.append(device_, with(2)).ok());
  ASSERT_TRUE(sink.append(device_, with(2)).ok());
  const auto capture = read(path("r"));
  ASSERT_TRUE(capture.ok()) << capture.error().message;
  ASSERT_EQ(capture->submissions.size(), 3u);
  EXPECT_EQ(capture->submissions[2], with(2));
}

TEST_F(Recordings, OnDiskAreCutOffLikeThoseInMemory) {
  {
    const Sink sink = into_file(path("r"));
    for (uint32_t i = 1; i <= 3; ++i) ASSERT_TRUE(sink.append(device_, submission(i)).ok());
  }
  const auto size = fs::file_size(path("r"));
  for (auto end = size; end > kStartBytes; --end) {
    fs::resize_file(path("r"), end);
    const auto on_disk = Reader::open(path("r"));
    const auto in_memory = Reader::parse(read_file(path("r")).value());
    ASSERT_EQ(on_disk.ok(), in_memory.ok()) << end;
    if (on_disk.ok()) {
      ASSERT_TRUE(on_disk->cut_off().ends_with(in_memory->cut_off())) << end << ": " << on_disk->cut_off();
      ASSERT_EQ(on_disk->cut_off().empty(), in_memory->cut_off().empty()) << end;
    }
  }
}

// For any call: earlier submissions are kept, and a failed one is not in the file.
TEST_F(Recordings, KeepWhatWasWrittenWhicheverCallGoesOtherwise) {
  using skillet::testing::FileFault;
  for (const FileFault fault : {FileFault::interrupted, FileFault::one_byte, FileFault::fails}) {
    std::string call = "first";
    for (int at = 0; !call.empty(); ++at) {
      fs::remove(path("r"));
      Words kept;
      call = skillet::testing::with_fault(at, fault, [&] {
        const Sink sink = into_file(path("r"));
        for (uint32_t i = 1; i <= 3; ++i) {
          if (sink.append(device_, submission(i)).ok()) kept.push_back(i);
        }
      });
      const bool may_fail = fault == FileFault::fails && !call.empty();
      EXPECT_EQ(kept.size(), may_fail && call != "close" ? 2u : 3u) << call;
      EXPECT_EQ(words_in(path("r")), kept) << call;
    }
  }
}

TEST_F(Recordings, AreReadWholeWhicheverCallGoesOtherwise) {
  using skillet::testing::FileFault;
  {
    const Sink sink = into_file(path("r"));
    for (uint32_t i = 1; i <= 3; ++i) ASSERT_TRUE(sink.append(device_, submission(i)).ok());
  }
  for (const FileFault fault :
       {FileFault::interrupted, FileFault::one_byte, FileFault::end_of_file, FileFault::fails}) {
    const bool may_fail = fault == FileFault::end_of_file || fault == FileFault::fails;
    std::string call = "first";
    for (int at = 0; !call.empty(); ++at) {
      std::string message;
      size_t count = 0;
      call = skillet::testing::with_fault(at, fault, [&] {
        const Result<Capture> all = read(path("r"));
        if (all.ok())
          count = all->submissions.size();
        else
          message = all.error().message;
      });
      if (may_fail && (call == "pread" || call == "open")) {
        EXPECT_NE(message.find(path("r")), std::string::npos) << call << " " << at << ": " << message;
      } else {
        EXPECT_EQ(count, 3u) << call << ": " << message;
      }
    }
  }
}

// A damaged submission is an error when it is read; those before it are readable.
TEST_F(Recordings, AreReadUpToWhatIsDamaged) {
  std::vector<uintmax_t> ends;
  {
    const Sink sink = into_file(path("r"));
    for (uint32_t i = 1; i <= 3; ++i) {
      ASSERT_TRUE(sink.append(device_, submission(i)).ok());
      ends.push_back(fs::file_size(path("r")));
    }
  }
  Bytes file = read_file(path("r")).value();
  file[ends[0]] ^= 0x40;  // the kind of the second one
  ASSERT_TRUE(write_file(path("r"), file).ok());
  auto reader = Reader::open(path("r"));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->next().value(), submission(1));
  const auto second = reader->next();
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("damaged"), std::string::npos) << second.error().message;
}

TEST(Frames, AHandleStandsOnce) {
  Submission twice{.jobs = one_list({1})};
  for (int i = 0; i < 2; ++i) twice.buffers.push_back({.handle = 7, .size_bytes = 64, .content = Content::zero});
  const auto file = serialise({.device = {}, .submissions = {twice}});
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto read = parse(*file);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("buffer 7 occurs twice"), std::string::npos) << read.error().message;
}

TEST(Frames, HeadersSayWhatTheyAre) {
  struct Row {
    uint32_t kind, packed;
    uint64_t table, stored;
    bool is_one;
  };
  for (const Row& row : {Row{1, 0, 8, 8, true}, Row{2, 0, 8, 8, true}, Row{2, 1, 8, 5, true}, Row{2, 1, 8, 9, true},
                         Row{2, 0, 8, 7, false}, Row{0, 1, 8, 8, false}, Row{3, 1, 8, 8, false}, Row{2, 2, 8, 8, false},
                         Row{3, 0, 8, 8, false}})
    EXPECT_EQ(is_header({.kind = static_cast<FrameKind>(row.kind),
                         .packed = row.packed,
                         .table_bytes = row.table,
                         .stored_bytes = row.stored}),
              row.is_one)
        << row.kind << " " << row.packed << " " << row.stored;
}

TEST(Words, AreThoseOfOneJobWithOneList) {
  EXPECT_EQ(words_of({.jobs = one_list({5, 6})}).value().size(), 2u);
  EXPECT_EQ(words_of({.jobs = one_list({})}).value().size(), 0u);
  Submission none, two{.jobs = one_list({1})}, lists{.jobs = one_list({1})};
  two.jobs.push_back(two.jobs[0]);
  lists.jobs[0].commands.push_back({.words = {2}});
  for (const Submission& one : {none, two, lists}) EXPECT_FALSE(words_of(one).ok());
}

}  // namespace
}  // namespace skillet::capture
