#include "tools/jobs/old_capture.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/own_folder.h"
#include "capture/file_writer.h"

namespace skillet::tools {
namespace {

namespace fs = std::filesystem;

class OldCaptureTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  void record(std::string_view node) {
    ASSERT_TRUE(capture::FileWriter::create(path_, {.node = std::string(node)}).ok());
  }
  Bytes now() const {
    auto bytes = read_file(path_);
    return bytes.ok() ? *bytes : Bytes{};
  }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  const std::string folder_ = own_path("old_capture");
  const std::string path_ = folder_ + "/recorded";
};

TEST_F(OldCaptureTest, ComesBackUnlessANewOneIsThere) {
  record("old");
  const Bytes old = now();
  {
    auto found = OldCapture::at(path_);
    ASSERT_TRUE(found.ok()) << found.error().message;
    ASSERT_TRUE(found->set_aside().ok());
    EXPECT_FALSE(fs::exists(path_));
  }
  EXPECT_EQ(now(), old);
  {
    auto found = OldCapture::at(path_);
    ASSERT_TRUE(found.ok() && found->set_aside().ok());
    record("new one");
    found->discard();
  }
  EXPECT_NE(now(), old);
  EXPECT_EQ(files(), 1u);
}

TEST_F(OldCaptureTest, OneThatIsWrittenMeanwhileStays) {
  for (const bool is_first : {true, false}) {
    fs::remove(path_);
    if (!is_first) record("old");
    auto found = OldCapture::at(path_);
    ASSERT_TRUE(found.ok());
    fs::remove(path_);
    record("another process");
    const Bytes theirs = now();
    EXPECT_EQ(found->set_aside().ok(), false);
    { const OldCapture gone = std::move(*found); }
    EXPECT_EQ(now(), theirs);
    EXPECT_EQ(files(), 1u);
  }
}

TEST_F(OldCaptureTest, OneThatIsBeingWrittenIsLeftAlone) {
  auto writer = capture::FileWriter::create(path_, {.node = "another process"});
  ASSERT_TRUE(writer.ok());
  const auto found = OldCapture::at(path_);
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("is being written"), std::string::npos);
}

}  // namespace
}  // namespace skillet::tools
