// Captures as text and back: the same, bit for bit; and what is said of a text that is wrong.
#include "tools/jobs/edit_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/testing/in_tree.h"

namespace skillet::tools {
namespace {

const std::string kConv = in_tree("tests/captures/a311d_conv1x1_relu6_u8");

std::string text_of(const capture::Capture& capture) {
  capture::Reader reader = capture::Reader::of(capture);
  auto text = edit_text(reader, "");
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? *text : "";
}

size_t round_trips(const std::string& root) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "capture.json") continue;
    const std::string folder = entry.path().parent_path();
    const auto recorded = capture::read(folder);
    if (!recorded.ok()) {
      ADD_FAILURE() << recorded.error().message;
      continue;
    }
    const auto again = parse_edit_text(text_of(*recorded), "");
    EXPECT_TRUE(again.ok() && *again == *recorded) << folder << (again.ok() ? "" : again.error().message);
    ++count;
  }
  return count;
}

TEST(EditText, EachCaptureOfTheTreeComesBack) { EXPECT_GT(round_trips(in_tree("tests/captures")), 10U); }

TEST(EditText, LongEachRecordedJobComesBack) {
  const std::string golden = in_tree("../shared/golden");
  if (!std::filesystem::exists(golden)) GTEST_SKIP() << "../shared is absent: only the captures in tests/ are read";
  EXPECT_GT(round_trips(golden), 1000U);
}

struct Wrong {
  const char *from, *to, *error;
};

class WrongText : public testing::TestWithParam<Wrong> {};

TEST_P(WrongText, IsAnErrorThatNamesTheLine) {
  std::string text = text_of(*capture::read(kConv));
  const size_t at = text.find(GetParam().from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, std::string_view(GetParam().from).size(), GetParam().to);
  const auto done = parse_edit_text(text, "");
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().message.find(GetParam().error), std::string::npos) << done.error().message;
  EXPECT_NE(done.error().message.find("line "), std::string::npos) << done.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    EditText, WrongText,
    testing::Values(Wrong{"kernel_x_size = 1", "kernel_x_sise = 1", "did you mean"},
                    Wrong{"kernel_x_size = 1", "kernel_x_size = 16", "kernel_x_size"},
                    Wrong{"kernel_x_size = 1", "kernel_x_size = many", "'many' is no value"},
                    Wrong{"kernel_x_size = 1", "kernel_x_size", "must be PATH = VALUE"},
                    Wrong{"\nfield job 1 ", "\nfield job 7 ", "no field 'job 7"},
                    Wrong{"\njob\n", "\n", "after a 'job'"}, Wrong{"\nlist 14", "\nlist 4", "beyond the end"},
                    Wrong{"\nlist 14", "\nlist 99999999999", "too large"},
                    Wrong{"\nbuffer 7 0x0 4096 bytes", "\nbuffer 7 0x0 16 bytes", "beyond the end"},
                    Wrong{"\nbuffer 7 0x0 4096 bytes", "\nbuffer 7 0x0 4096 zero", "neither in a list nor in a buffer"},
                    Wrong{"\nbuffer 2 ", "\nbuffer 1 ", "stands there twice"},
                    Wrong{"\nbuffer 2 ", "\nbuffer -2 ", "'-2' is no number"},
                    Wrong{"\nbuffer 2 ", "\nbufer 2 ", "begins no line"},
                    Wrong{"\nsubmission 1", "\nsubmission 5", "the next one is 1"},
                    Wrong{"\nsubmission 0", "", "before the first 'submission'"}));

TEST(EditText, AFieldWinsOverItsWords) {
  const auto recorded = capture::read(kConv);
  std::string text = text_of(*recorded);
  const std::string_view field = "nn_instruction.out_zero_point = ";
  text.insert(text.find(field) + field.size(), "1");
  const auto changed = parse_edit_text(text, "");
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_FALSE(*changed == *recorded);
  EXPECT_EQ(text_of(*changed).substr(0, 2000), text.substr(0, 2000));
}

TEST(EditText, NamesThatAreNoLineAreRefused) {
  for (const char* name : {"x\nsubmission 7", " x", "x "}) {
    capture::Capture capture = *capture::read(kConv);
    capture.submissions[1].parameters.push_back({name, 1});
    capture::Reader reader = capture::Reader::of(std::move(capture));
    EXPECT_FALSE(edit_text(reader, "").ok()) << name;
  }
}

TEST(EditText, ATextThatEndsAnywhereIsNoCrash) {
  const std::string text = text_of(*capture::read(kConv));
  for (size_t size = 0; size < text.size(); size += 97) (void)parse_edit_text(text.substr(0, size), "");
}

}  // namespace
}  // namespace skillet::tools
