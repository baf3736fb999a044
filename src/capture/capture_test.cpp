#include "capture/capture.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/testing/in_tree.h"
#include "base/testing/noise.h"
#include "base/testing/own_folder.h"
#include "base/zstd_frame.h"
#include "capture/file_writer.h"
#include "capture/frames.h"
#include "capture/reader.h"
#include "capture_generated.h"

namespace skillet::capture {
namespace {

namespace fs = std::filesystem;

const std::string kCaptures = skillet::in_tree("tests/captures/");

Capture read_or_die(const std::string& path) {
  auto capture = read(path);
  EXPECT_TRUE(capture.ok()) << capture.error().message;
  return capture.ok() ? std::move(capture).value() : Capture{};
}

// A small capture with every kind of content.
Capture sample() {
  Capture capture;
  capture.device = {
      .kernel_driver = "etnaviv", .node = "sim:x", .compatible = "a,b", .facts = {{"model", 0x8000}, {"eco", 3}}};
  Submission first{.jobs = one_list({0x08010E03, 7})};
  first.jobs.push_back({.commands = {{.address = 0x1000, .size_bytes = 72}, {.address = 0x2000, .size_bytes = 8}}});
  first.jobs.emplace_back();
  first.buffers.push_back({.handle = 1, .address = 0x400000, .size_bytes = 4096, .content = Content::zero});
  first.buffers.push_back({.handle = 2,
                           .address = 0x401000,
                           .size_bytes = 64,
                           .read = true,
                           .listed = true,
                           .content = Content::bytes,
                           .bytes = Bytes{1, 2, 3},
                           .holds_input = true});
  Submission second = first;
  second.jobs = one_list({1});
  second.buffers.push_back({.handle = 3, .size_bytes = 5, .content = Content::unknown});
  capture.submissions = {first, second};
  return capture;
}

TEST(GoldenFolder, ReadsEtnaviv) {
  const Capture capture = read_or_die(kCaptures + "a311d_conv1x1_relu6_u8");
  EXPECT_EQ(capture.device.kernel_driver, "etnaviv");
  EXPECT_EQ(print(capture.device), "model 0x8000, revision 0x7120, product 0x45080009, customer 0x88, eco 0x0");
  ASSERT_EQ(capture.submissions.size(), 2u);
  const Submission& job = capture.submissions[1];
  EXPECT_EQ(words_of(job)->size(), 48u);
  ASSERT_EQ(job.buffers.size(), 10u);
  EXPECT_FALSE(job.buffers[0].listed);
  const BufferSnapshot& input = job.buffers[2];
  EXPECT_TRUE(input.listed && input.read && !input.write && input.holds_input);
  EXPECT_EQ(input.content, Content::unknown);
  EXPECT_EQ(input.address, 0xffff9000u);
  const BufferSnapshot& weights = job.buffers[7];  // its file is the first submission's
  EXPECT_EQ(weights.content, Content::bytes);
  EXPECT_EQ(weights.bytes.size(), 3073u);
  EXPECT_EQ(weights.bytes, capture.submissions[0].buffers[7].bytes);
}

TEST(GoldenFolder, ReadsRocket) {
  const Capture capture = read_or_die(kCaptures + "rk3588_conv1x1_relu6_u8");
  EXPECT_EQ(capture.device.kernel_driver, "rocket");
  ASSERT_EQ(capture.submissions.size(), 1u);
  const Submission& job = capture.submissions[0];
  ASSERT_EQ(job.jobs.size(), 1u);
  EXPECT_EQ(job.jobs[0].commands, std::vector<Commands>({{.address = 0x1000e000, .size_bytes = 1040}}));
  EXPECT_FALSE(words_of(job).ok());
  EXPECT_TRUE(job.buffers[2].read && !job.buffers[2].write);
  EXPECT_TRUE(job.buffers[3].write && !job.buffers[3].read);
}

TEST(CaptureFile, ReadsWhatItWrites) {
  std::vector<Capture> captures = {Capture{}, sample()};
  for (const char* name : {"a311d_conv1x1_relu6_u8", "a311d_concat2_i8", "rk3588_conv1x1_relu6_u8"})
    captures.push_back(read_or_die(kCaptures + name));
  const std::string path = own_path("one.skcap");
  for (const Capture& capture : captures) {
    ASSERT_TRUE(write(capture, path).ok());
    EXPECT_EQ(read_or_die(path), capture);
  }
  fs::remove(path);
}

TEST(CaptureFile, GrowsAndIsWholeAfterEachSubmission) {
  const std::string path = own_path("written.skcap");
  fs::remove(path);
  const Capture whole = read_or_die(kCaptures + "a311d_conv1x1_relu6_u8");
  auto writer = FileWriter::create(path, whole.device);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  EXPECT_EQ(FileWriter::create(path, whole.device).error().code, ErrorCode::io);
  Capture expected{.device = whole.device, .submissions = {}};
  EXPECT_EQ(read_or_die(path), expected);
  ASSERT_TRUE(writer->drop_last().ok());
  EXPECT_EQ(read_or_die(path), expected);
  for (const Submission& submission : whole.submissions) {
    ASSERT_TRUE(writer->append(submission).ok());
    ASSERT_TRUE(writer->drop_last().ok());
    EXPECT_EQ(read_or_die(path), expected);
    ASSERT_TRUE(writer->append(submission).ok());
    expected.submissions.push_back(submission);
    EXPECT_EQ(read_or_die(path), expected);
  }
  fs::remove(path);
}

TEST(CaptureFile, KeepsUnchangedContentsOnce) {
  Capture capture = sample();
  for (Submission& submission : capture.submissions) {
    submission.buffers[1].size_bytes = 20000;
    submission.buffers[1].bytes = skillet::testing::noise(20000);
  }
  EXPECT_LT(serialise(capture)->size(), 2 * 20000u);
  // Freed in between: the next buffer with that handle has its own contents.
  Submission without = capture.submissions[0];
  without.buffers.erase(without.buffers.begin() + 1);
  capture.submissions.insert(capture.submissions.begin() + 1, without);
  const Bytes file = serialise(capture).value();
  EXPECT_GT(file.size(), 2 * 20000u);
  EXPECT_EQ(parse(file).value(), capture);
}

// Sizes of the prefixes of a file: its start with the device, then with each further submission.
std::vector<size_t> ends_of(const Capture& capture) {
  std::vector<size_t> ends;
  Capture some{.device = capture.device, .submissions = {}};
  ends.push_back(serialise(some)->size());
  for (const Submission& one : capture.submissions) {
    some.submissions.push_back(one);
    ends.push_back(serialise(some)->size());
  }
  return ends;
}

TEST(CaptureFile, WhatIsCutOffTakesNothingElseWithIt) {
  const Capture whole = sample();
  const Bytes file = serialise(whole).value();
  const std::vector<size_t> ends = ends_of(whole);
  ASSERT_EQ(ends.back(), file.size());
  for (size_t size = 0; size <= file.size(); ++size) {
    auto reader = Reader::parse(Bytes(file.begin(), file.begin() + static_cast<ptrdiff_t>(size)));
    ASSERT_EQ(reader.ok(), size >= ends[0]) << size;
    if (!reader.ok()) continue;
    const Capture read = read_all(*reader).value();
    const auto expected = static_cast<size_t>(std::ranges::upper_bound(ends, size) - ends.begin() - 1);
    ASSERT_EQ(read.submissions.size(), expected);
    EXPECT_TRUE(std::equal(read.submissions.begin(), read.submissions.end(), whole.submissions.begin()));
    EXPECT_EQ(reader->cut_off().empty(), size == ends[expected]) << reader->cut_off();
    EXPECT_EQ(reader->cut_off().find('\n'), std::string::npos);
  }
}

// A crash may leave zeros instead of a submission; any other data there is damage.
TEST(CaptureFile, ZerosBehindTheLastSubmissionAreNone) {
  const Capture whole = sample();
  for (const size_t more : {size_t{1}, sizeof(FrameHeader) - 1, sizeof(FrameHeader), size_t{5000}}) {
    for (const uint8_t byte : {0, 1}) {
      Bytes file = serialise(whole).value();
      file.resize(file.size() + more, byte);
      auto reader = Reader::parse(file);
      ASSERT_TRUE(reader.ok()) << reader.error().message;
      const auto read = read_all(*reader);
      const bool is_damage = byte != 0 && more >= sizeof(FrameHeader);
      EXPECT_EQ(read.ok(), !is_damage) << more << " bytes of " << int{byte};
      EXPECT_EQ(reader->cut_off().empty(), is_damage);
      if (read.ok()) {
        EXPECT_EQ(read->submissions, whole.submissions);
      }
    }
  }
}

TEST(CaptureFile, NoticesEveryFlippedBit) {
  const Bytes file = serialise(sample()).value();
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    Bytes flipped = file;
    flipped[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    auto reader = Reader::parse(flipped);
    EXPECT_TRUE(!reader.ok() || !reader->cut_off().empty() || !read_all(*reader).ok()) << "bit " << bit;
  }
}

TEST(CaptureFile, OlderVersionsAreRefusedWithASentence) {
  Bytes file = serialise(sample()).value();
  file[8] = 3;
  EXPECT_EQ(parse(file).error().message, "capture file of version 3; this build reads version 4: record it again");
  EXPECT_EQ(parse({}).error().message, "is empty");
}

// Eight bytes of magic, four of the version, four of zero.
TEST(CaptureFile, TheStartSaysWhatIsWrongWithIt) {
  Bytes file = serialise(sample()).value();
  for (size_t size = 1; size < 16; ++size)
    EXPECT_EQ(parse(std::span(file).first(size)).error().message,
              size < 8 ? "not a skillet capture file" : "truncated capture file")
        << size;
  EXPECT_EQ(parse(std::span(file).first(16)).error().message, "truncated: it ends before the device is described");
  for (size_t at = 12; at < 16; ++at) {
    Bytes damaged = file;
    damaged[at] = 1;
    EXPECT_EQ(parse(damaged).error().message, "damaged start of a capture file") << at;
  }
}

TEST(Reader, GivesTheLastOnesAndStartsAgain) {
  Capture capture = sample();
  for (uint32_t i = 2; i < 5; ++i) {
    capture.submissions.push_back(capture.submissions[1]);
    capture.submissions[i].jobs = one_list({i});
  }
  auto of_file = Reader::parse(serialise(capture).value());
  ASSERT_TRUE(of_file.ok());
  Reader in_memory = Reader::of(capture);
  for (Reader* reader : {&*of_file, &in_memory}) {
    for (const size_t last : {5, 2, 9, 1}) {
      reader->only_last(last);
      reader->rewind();
      for (size_t i = last < 5 ? 5 - last : 0; i < 5; ++i) {
        EXPECT_EQ(reader->next().value(), capture.submissions[i]);
        EXPECT_EQ(reader->index(), i);
      }
      EXPECT_FALSE(reader->next().value().has_value());
    }
  }
}

// Parses a frame with a correct header and checksum as a file's only submission.
Result<Capture> parse_frame(const Bytes& frame) {
  Bytes file = serialise(Capture{}).value();
  file.insert(file.end(), frame.begin(), frame.end());
  SK_TRY_ASSIGN(Reader reader, Reader::parse(std::move(file)));
  if (!reader.cut_off().empty()) return error(ErrorCode::malformed, "{}", reader.cut_off());
  return read_all(reader);
}

Bytes table_of(const Submission& submission) {
  const Bytes frame = FrameWriter().submission(submission, 0).value();
  const uint64_t size = load_le<uint64_t>(frame.data() + offsetof(FrameHeader, table_bytes));
  return unpack_zstd(std::span(frame).subspan(sizeof(FrameHeader)), size).value();
}

// Never crashes, and an accepted capture can be written again.
TEST(CaptureFile, SurvivesDamagedTables) {
  const Bytes table = table_of(sample().submissions[0]);
  int refused = 0;
  for (size_t at = 0; at < table.size(); ++at) {
    for (const uint8_t mask : {0xFF, 0x01, 0x80}) {
      Bytes damaged = table;
      damaged[at] ^= mask;
      const auto capture = parse_frame(make_frame(FrameKind::submission, damaged, at % 2 == 0).value());
      refused += capture.ok() ? 0 : 1;
      if (capture.ok()) {
        EXPECT_EQ(parse(serialise(*capture).value()).value(), *capture);
      }
    }
    const auto cut = parse_frame(make_frame(FrameKind::submission, std::span(table).first(at), true).value());
    if (cut.ok()) {
      EXPECT_EQ(parse(serialise(*cut).value()).value(), *cut);
    }
  }
  EXPECT_GT(refused, 50);
}

// A file of a few kilobytes gets at most the memory of expansion_limit().
TEST(CaptureFile, SmallFilesGetLittleMemory) {
  const auto error_of = [](const Bytes& frame) {
    EXPECT_LT(frame.size(), 100'000u);
    const auto capture = parse_frame(frame);
    return capture.ok() ? "" : capture.error().message;
  };
  const Bytes zeros(200 << 20);
  EXPECT_NE(error_of(make_frame(FrameKind::submission, zeros, true).value()).find("more than the limit"),
            std::string::npos);
  // The same 64 KiB in nine thousand buffers.
  flatbuffers::FlatBufferBuilder to;
  const auto bytes = to.CreateVector(Bytes(65536, 1));
  std::vector<flatbuffers::Offset<fb::Buffer>> buffers;
  for (uint32_t handle = 1; handle <= 9'000; ++handle) {
    fb::BufferBuilder buffer(to);
    buffer.add_handle(handle);
    buffer.add_size_bytes(65536);
    buffer.add_content(static_cast<uint8_t>(Content::bytes));
    buffer.add_bytes(bytes);
    buffers.push_back(buffer.Finish());
  }
  const auto list = to.CreateVector(buffers);
  fb::SubmissionBuilder submission(to);
  submission.add_buffers(list);
  to.Finish(submission.Finish());
  EXPECT_NE(error_of(make_frame(FrameKind::submission, {to.GetBufferPointer(), to.GetSize()}, true).value())
                .find("the same bytes too often"),
            std::string::npos);
}

TEST(CaptureFile, ManySmallFramesGetLittleMemoryTogether) {
  Bytes file = serialise(Capture{}).value();
  Submission submission;
  for (uint32_t i = 0; i < 3; ++i) {
    Bytes mostly_zero(40 << 20);
    mostly_zero.back() = static_cast<uint8_t>(i + 1);
    BufferSnapshot one{.handle = i, .size_bytes = mostly_zero.size(), .content = Content::bytes};
    one.bytes = std::move(mostly_zero);
    submission.buffers.push_back(std::move(one));
  }
  // Like a writer without limits: the contents of each handle in a separate frame.
  for (uint32_t frame = 0; frame < 3; ++frame) {
    Submission now = submission;
    for (uint32_t i = 0; i < 3; ++i) {
      if (i == frame) continue;
      now.buffers[i].content = Content::unknown;
      now.buffers[i].bytes = {};
    }
    const Bytes one = make_frame(FrameKind::submission, table_of(now), true).value();
    file.insert(file.end(), one.begin(), one.end());
  }
  ASSERT_LT(file.size(), 30'000u);
  const auto capture = parse(file);
  ASSERT_FALSE(capture.ok());
  EXPECT_NE(capture.error().message.find("submission 1: holds 83886080 bytes, more than the limit"), std::string::npos)
      << capture.error().message;
  // Our own writer respects the limit by compressing less.
  const Capture honest{.device = {}, .submissions = {submission, submission}};
  const Bytes stored = serialise(honest).value();
  EXPECT_GT(stored.size(), 120'000'000u);
  EXPECT_EQ(parse(stored).value(), honest);
}

TEST(FileWriter, FullDiskLosesOnlyWhatDoesNotFit) {
  const std::string path = own_path("full_disk.skcap");
  Capture capture = sample();
  capture.submissions[1].buffers[1].size_bytes = 50'000;
  capture.submissions[1].buffers[1].bytes = skillet::testing::noise(50'000);
  const std::vector<size_t> ends = ends_of(capture);
  for (size_t room = ends[0]; room < ends[2]; room += 997) {
    fs::remove(path);
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{room, room};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      auto writer = FileWriter::create(path, capture.device);
      int stored = 0;
      for (const Submission& one : capture.submissions) stored += writer->append(one).ok() ? 1 : 0;
      // Submissions that fit can still be appended, and do not refer to those that did not fit.
      stored += writer->append(capture.submissions[0]).ok() ? 1 : 0;
      ::_exit(stored);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const Capture read = read_or_die(path);
    EXPECT_EQ(static_cast<size_t>(WEXITSTATUS(status)), read.submissions.size()) << room;
    for (const Submission& one : read.submissions) EXPECT_EQ(one, capture.submissions[0]);
    EXPECT_EQ(read.submissions.empty(), room < ends[1]) << room;
  }
  fs::remove(path);
}

TEST(Read, NamesFileAndCause) {
  const auto missing = read("/nonexistent/x.skc");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::io);
  EXPECT_NE(missing.error().message.find("/nonexistent/x.skc"), std::string::npos);
  const auto other = read(kCaptures + "README.md");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("not a skillet capture file"), std::string::npos);
}

class DamagedFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::copy(kCaptures + "a311d_conv1x1_relu6_u8", folder_);
    json_ = nlohmann::json::parse(read_file(folder_ + "/capture.json").value());
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string error_of_json() {
    const std::string dump = json_.dump();
    EXPECT_TRUE(
        write_file(folder_ + "/capture.json", {reinterpret_cast<const uint8_t*>(dump.data()), dump.size()}).ok());
    const auto capture = read(folder_);
    return capture.ok() ? "" : capture.error().message;
  }
  const std::string folder_ = own_path("damaged");
  nlohmann::json json_;
};

TEST_F(DamagedFolder, ErrorsNameTheField) {
  EXPECT_EQ(error_of_json(), "");
  const auto original = json_;
  const auto expect = [&](const std::string& pointer, const nlohmann::json& value, const std::string& message) {
    json_ = original;
    json_[nlohmann::json::json_pointer(pointer)] = value;
    const std::string error = error_of_json();
    EXPECT_NE(error.find(message), std::string::npos) << pointer << ": " << error;
    EXPECT_TRUE(error.empty() || error.starts_with(folder_)) << error;
  };
  expect("/submits/0/kind", "ethosu", "submits[0]: kind 'ethosu' is not ");
  expect("/submits/1/stream_size", 188, "stream_1.bin: 192 bytes, expected stream_size 188");
  expect("/submits/1/buffers/7/size", 12, "buffers[7]: handle 8: bo_8_0.bin: 3073 bytes, the buffer has 12");
  expect("/submits/1/buffers/7/size", -1, "buffers[7]: size: not a number");
  expect("/submits/1/buffers/7/file", "../../etc/passwd", "is not the name of a file in this folder");
  expect("/submits/1/buffers/2/content", "soup", "content 'soup' is not one of");
  expect("/submits/1/bos/0/handle", 99, "handle 99 is used by the submission but is not a buffer");
  expect("/submits/1/bos/0/presumed", 4096, "but the submission says 0x1000");
  expect("/submits/1/buffers", 5, "submits[1]: buffers: not a list");
  expect("/submits/0", 3, "submits[0]: kind: missing");
  expect("/device", nullptr, "device: dev: missing");
  expect("/device/model", "0x80zz", "device: model: bad number");
}

// If only a hash was stored, the contents are unknown; so are converted inputs.
TEST_F(DamagedFolder, HashOnlyContentsAreUnknown) {
  auto& buffers = json_["submits"][1]["buffers"];
  buffers[7].erase("file");
  buffers[2]["content"] = "input_converted";
  ASSERT_EQ(error_of_json(), "");
  const Capture capture = read_or_die(folder_);
  EXPECT_EQ(capture.submissions[1].buffers[7].content, Content::unknown);
  EXPECT_EQ(capture.submissions[1].buffers[2].content, Content::unknown);
  EXPECT_FALSE(capture.submissions[1].buffers[2].holds_input);
}

// A file next to "input" or "input_converted" does not have the buffer's contents.
TEST_F(DamagedFolder, ContentSaysWhetherTheFileCounts) {
  const Capture before = read_or_die(folder_);
  for (const auto& [content, held] : {std::pair{"file", Content::bytes},
                                      {"zero", Content::zero},
                                      {"input", Content::unknown},
                                      {"input_converted", Content::unknown}}) {
    auto& buffer = json_["submits"][1]["buffers"][7];
    ASSERT_TRUE(buffer.contains("file"));
    buffer["content"] = content;
    ASSERT_EQ(error_of_json(), "");
    const BufferSnapshot now = read_or_die(folder_).submissions[1].buffers[7];
    EXPECT_EQ(now.content, held) << content;
    EXPECT_EQ(now.bytes == before.submissions[1].buffers[7].bytes, held == Content::bytes) << content;
    EXPECT_EQ(now.holds_input, content == std::string("input"));
  }
}

TEST_F(DamagedFolder, ParametersThatAreNotPlainAreKept) {
  const auto parameters = [&](const std::string& field, const nlohmann::json& value) {
    const auto plain = json_;
    if (!field.empty()) json_["submits"][1][field] = value;
    EXPECT_EQ(error_of_json(), "");
    json_ = plain;
    const Capture capture = read_or_die(folder_);
    std::string text;
    for (const Parameter& one : capture.submissions[1].parameters) text += fmt::format("{}={} ", one.name, one.value);
    return text;
  };
  EXPECT_EQ(parameters("", 0), "");
  EXPECT_EQ(parameters("pipe", 1), "pipe=1 ");
  EXPECT_EQ(parameters("exec_state", 2), "exec_state=2 ");
  EXPECT_EQ(parameters("flags", 12), "flags=12 ");
  EXPECT_EQ(parameters("flags", 0), "flags=0 ");
  EXPECT_EQ(parameters("relocs", {1, 2}), "nr_relocs=2 ");
}

TEST(GoldenFolder, ReadsTheWholeSuite) {
  const std::string root = skillet::in_tree("../shared/golden");
  if (!fs::is_directory(root)) GTEST_SKIP() << "no golden suite beside the sources";
  int captures = 0;
  for (const char* chip : {"a311d", "imx8mp", "s905d3", "rk3588"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root + "/" + chip)) {
      if (entry.path().filename() != "capture.json") continue;
      const auto capture = read(entry.path().parent_path());
      ASSERT_TRUE(capture.ok()) << capture.error().message;
      EXPECT_FALSE(capture->submissions.empty());
      ++captures;
    }
  }
  EXPECT_GT(captures, 800);
}

}  // namespace
}  // namespace skillet::capture
