#include "capture/capture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "capture/archive.h"
#include "capture/capture_format.h"
#include "capture/file_writer.h"

namespace skillet::capture {
namespace {

namespace fs = std::filesystem;

const std::string kCaptures = SKILLET_SOURCE_DIR "/tests/captures/";

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
  Submission first{.stream = {0x08010E03, 7}};
  first.tasks.push_back({.job = 1, .address = 0x1000, .count = 9});
  first.buffers.push_back({.handle = 1, .address = 0x400000, .size_bytes = 4096, .content = Content::zero});
  first.buffers.push_back({.handle = 2,
                           .address = 0x401000,
                           .size_bytes = 64,
                           .read = true,
                           .listed = true,
                           .content = Content::bytes,
                           .bytes = {1, 2, 3},
                           .holds_input = true});
  Submission second = first;
  second.stream = {1};
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
  EXPECT_EQ(job.stream.size(), 48u);
  ASSERT_EQ(job.buffers.size(), 10u);
  EXPECT_FALSE(job.buffers[0].listed);
  const BufferSnapshot& input = job.buffers[2];
  EXPECT_TRUE(input.listed && input.read && !input.write && input.holds_input);
  EXPECT_EQ(input.content, Content::unknown);
  EXPECT_EQ(input.address, 0xffff9000u);
  const BufferSnapshot& weights = job.buffers[7];  // its file is that of the first submission
  EXPECT_EQ(weights.content, Content::bytes);
  EXPECT_EQ(weights.bytes.size(), 3073u);
  EXPECT_EQ(weights.bytes, capture.submissions[0].buffers[7].bytes);
}

TEST(GoldenFolder, ReadsRocket) {
  const Capture capture = read_or_die(kCaptures + "rk3588_conv1x1_relu6_u8");
  EXPECT_EQ(capture.device.kernel_driver, "rocket");
  ASSERT_EQ(capture.submissions.size(), 1u);
  const Submission& job = capture.submissions[0];
  ASSERT_EQ(job.tasks.size(), 1u);
  EXPECT_EQ(job.tasks[0], (Task{.job = 0, .address = 0x1000e000, .count = 130}));
  EXPECT_TRUE(job.buffers[2].read && !job.buffers[2].write);
  EXPECT_TRUE(job.buffers[3].write && !job.buffers[3].read);
}

TEST(CaptureFile, ReadsWhatItWrites) {
  std::vector<Capture> captures = {Capture{}, sample()};
  for (const char* name : {"a311d_conv1x1_relu6_u8", "a311d_concat2_i8", "rk3588_conv1x1_relu6_u8"})
    captures.push_back(read_or_die(kCaptures + name));
  const std::string path = ::testing::TempDir() + "/skillet_capture_test.skc";
  for (const Capture& capture : captures) {
    ASSERT_TRUE(write(capture, path).ok());
    EXPECT_EQ(read_or_die(path), capture);
  }
  fs::remove(path);
}

TEST(CaptureFile, GrowsAndIsWholeAfterEachSubmission) {
  const std::string path = ::testing::TempDir() + "/skillet_file_writer_test.skcap";
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

TEST(CaptureFile, KeepsEqualContentsOnce) {
  Capture capture = sample();
  Bytes noise(20000);
  uint32_t state = 1;
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  for (Submission& submission : capture.submissions) {
    submission.buffers[1].size_bytes = noise.size();
    submission.buffers[1].bytes = noise;
  }
  EXPECT_LT(serialise(capture)->size(), 2 * noise.size());
}

TEST(CaptureFile, RefusesEveryTruncation) {
  const Bytes file = serialise(sample()).value();
  for (size_t size = 0; size < file.size(); ++size) {
    const auto capture = parse(std::span(file).first(size));
    ASSERT_FALSE(capture.ok()) << size;
    EXPECT_FALSE(capture.error().message.empty());
  }
}

TEST(CaptureFile, RefusesEveryFlippedBit) {
  const Bytes file = serialise(sample()).value();
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    Bytes flipped = file;
    flipped[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    EXPECT_FALSE(parse(flipped).ok()) << "bit " << bit;
  }
}

// Damage behind a correct checksum: never a crash, and what is accepted is a capture that can be written again.
TEST(CaptureFile, SurvivesDamagedRecords) {
  const Bytes file = serialise(sample()).value();
  const auto records = unpack_records(kCaptureFormat, file).value();
  int refused = 0;
  for (size_t r = 0; r < records.size(); ++r) {
    for (size_t at = 0; at < records[r].bytes.size(); ++at) {
      auto damaged = records;
      damaged[r].bytes[at] ^= 0xFF;
      const auto capture = parse(pack_records(kCaptureFormat, damaged).value());
      if (!capture.ok()) {
        ++refused;
      } else {
        EXPECT_EQ(parse(serialise(*capture).value()).value(), *capture);
      }
      damaged = records;
      damaged[r].bytes.resize(at);
      EXPECT_FALSE(parse(pack_records(kCaptureFormat, damaged).value()).ok() && records[r].bytes.size() > 3)
          << "record " << r << " cut at " << at;
    }
  }
  EXPECT_GT(refused, 50);
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
  const std::string folder_ = ::testing::TempDir() + "/skillet_damaged_folder";
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
  expect("/submits/0/kind", "ethosu", "submits[0]: kind 'ethosu' is none of");
  expect("/submits/1/stream_size", 188, "stream_1.bin: 192 bytes, expected stream_size 188");
  expect("/submits/1/buffers/7/size", 12, "buffers[7]: handle 8: bo_8_0.bin: 3073 bytes, the buffer has 12");
  expect("/submits/1/buffers/7/size", -1, "buffers[7]: size: not a number");
  expect("/submits/1/buffers/7/file", "../../etc/passwd", "is not the name of a file in this folder");
  expect("/submits/1/buffers/2/content", "soup", "content 'soup' is none of");
  expect("/submits/1/bos/0/handle", 99, "handle 99 is used by the submission but is no buffer");
  expect("/submits/1/buffers", 5, "submits[1]: buffers: not a list");
  expect("/submits/0", 3, "submits[0]: kind: missing");
  expect("/device", nullptr, "device: dev: missing");
  expect("/device/model", "0x80zz", "device: model: bad number");
}

// Where only a hash was kept, the contents are unknown; so are converted inputs.
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

TEST(GoldenFolder, ReadsTheWholeSuite) {
  const std::string root = SKILLET_SOURCE_DIR "/../shared/golden";
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
