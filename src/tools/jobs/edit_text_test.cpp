// Captures as text and back: the same, bit for bit; and what is said of a text that is wrong.
#include "tools/jobs/edit_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <tuple>

#include "base/testing/in_tree.h"
#include "lab/compare/field_edit.h"
#include "tools/jobs/decoded.h"

namespace skillet::tools {
namespace {

const std::string kConv = in_tree("tests/captures/a311d_conv1x1_relu6_u8");

std::string text_of(const capture::Capture& capture) {
  capture::Reader reader = capture::Reader::of(capture);
  auto text = edit_text(reader, "");
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? *text : "";
}

// What follows `before` in `text`, as far as `end`.
std::string between(const std::string& text, const std::string& before, const char* end) {
  const size_t at = text.find(before);
  return at == std::string::npos ? "" : text.substr(at + before.size(), text.find(end, at) - at - before.size());
}

uint64_t number_of(const bits::Row& row, const std::string& initialiser) {
  const std::string offset = between(initialiser, ".offset = ", "}"), plain = offset.empty() ? initialiser : offset;
  if (row.kind == bits::ValueKind::boolean && (plain == "true" || plain == "false")) return plain == "true";
  if (row.kind == bits::ValueKind::float32) return std::bit_cast<uint32_t>(std::strtof(plain.c_str(), nullptr));
  if (row.kind == bits::ValueKind::signed_int) return static_cast<uint64_t>(std::strtoll(plain.c_str(), nullptr, 0));
  for (const bits::EnumName& one : row.names.values) {
    if (plain == fmt::format("{}::{}", row.names.type, one.name)) return one.value;
  }
  const std::string cast = between(plain, "(", ")");
  return std::strtoull(cast.empty() ? plain.c_str() : cast.c_str(), nullptr, 0);
}

// The words that an initialiser of `skillet decode --as-source` gives; what it does not name is 0.
Result<std::vector<uint32_t>> words_of_source(const bits::Descriptor& descriptor, const std::string& source) {
  bits::Unpacked out;
  for (const bits::Row& row : descriptor.rows) {
    const std::string value = between(source, fmt::format("    .{} = ", row.name), ",\n");
    out.values.push_back({.integer = value.empty() ? 0 : number_of(row, value)});
  }
  for (int w = 0; w < descriptor.words; ++w) {
    const std::string bits = between(source, fmt::format("// unclaimed word {}: ", w), "\n");
    out.unclaimed.push_back(static_cast<uint32_t>(std::strtoull(bits.c_str(), nullptr, 0)));
  }
  return bits::repack(descriptor, out);
}

// How many descriptors and registers were compared.
size_t sources_give_their_words(const capture::Capture& capture, const std::string& what) {
  size_t count = 0;
  const auto chip = chip_of(capture.device, "");
  const auto driver = npu::driver_of(*chip);
  for (const capture::Submission& submission : capture.submissions) {
    const auto decoded = (*driver)->decode(*chip, submission);
    if (!decoded.ok()) continue;
    std::set<std::tuple<const bits::Descriptor*, uint64_t, uint32_t>> seen;
    for (const npu::AnnotatedField& field : decoded->fields) {
      if (field.descriptor == nullptr || !field.place) continue;
      if (!seen.emplace(field.descriptor, field.place->address, field.place->first_bit).second) continue;
      const auto words = npu::words_of(field, submission);
      if (!words.ok()) continue;
      const std::string source = bits::as_source(*field.descriptor, bits::unpack(*field.descriptor, *words));
      const auto again = words_of_source(*field.descriptor, source);
      EXPECT_TRUE(again.ok() && *again == *words) << what << ": " << source;
      ++count;
    }
  }
  return count;
}

size_t round_trips(const std::string& root) {
  size_t count = 0, sources = 0;
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
    sources += sources_give_their_words(*recorded, folder);
    ++count;
  }
  EXPECT_GT(sources, 5 * count);
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

TEST(EditText, TabsAreBlanks) {
  const auto recorded = capture::read(kConv);
  std::string text = text_of(*recorded);
  const size_t at = text.find("\nbuffer 2 ");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 10, "\nbuffer\t2\t ");
  const auto read = parse_edit_text(text, "");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(*read == *recorded);
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
