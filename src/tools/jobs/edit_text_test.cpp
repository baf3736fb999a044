// Converts captures to text and back: equal bit for bit. Errors for invalid texts.
#include "tools/jobs/edit_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
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

// Text after `before` in `text`, up to `end`.
std::string between(const std::string& text, const std::string& before, const char* end) {
  const size_t at = text.find(before);
  return at == std::string::npos ? "" : text.substr(at + before.size(), text.find(end, at) - at - before.size());
}

uint64_t number_of(const bits::Row& row, const std::string& initialiser) {
  const std::string offset = between(initialiser, ".offset = ", "}"), plain = offset.empty() ? initialiser : offset;
  if (row.kind == bits::ValueKind::boolean && (plain == "true" || plain == "false")) return plain == "true";
  if (row.kind == bits::ValueKind::float32 && plain.starts_with("std::bit_cast<float>(0x"))
    return std::strtoull(between(plain, "(", "U)").c_str(), nullptr, 0);
  EXPECT_TRUE(row.kind != bits::ValueKind::float32 || plain.find_first_of("nN") == std::string::npos) << plain;
  if (row.kind == bits::ValueKind::float32) return std::bit_cast<uint32_t>(std::strtof(plain.c_str(), nullptr));
  if (row.kind == bits::ValueKind::signed_int) return static_cast<uint64_t>(std::strtoll(plain.c_str(), nullptr, 0));
  for (const bits::EnumName& one : row.names.values) {
    if (plain == fmt::format("{}::{}", row.names.type, one.name)) return one.value;
  }
  const std::string cast = between(plain, "(", ")");
  return std::strtoull(cast.empty() ? plain.c_str() : cast.c_str(), nullptr, 0);
}

// Words of an initialiser from `skillet decode --as-source`; bits that it does not name are 0.
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

// Returns the number of descriptors and registers compared.
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
    testing::Values(
        Wrong{"kernel_x_size = 1", "kernel_x_sise = 1", "did you mean"},
        Wrong{"kernel_x_size = 1", "kernel_x_size = 16", "kernel_x_size"},
        Wrong{"kernel_x_size = 1", "kernel_x_size = 1\nfield job 1 nn_instruction.kernel_x_size = 2",
              "sets it already"},
        Wrong{"kernel_x_size = 1", "kernel_x_size = many", "'many' is no value"},
        Wrong{"kernel_x_size = 1", "kernel_x_size", "must be PATH = VALUE"},
        Wrong{"\nfield job 1 ", "\nfield job 7 ", "no field 'job 7"}, Wrong{"\njob\n", "\n", "after a 'job'"},
        Wrong{"\nlist 14", "\nlist 4", "beyond the end"}, Wrong{"\nlist 14", "\nlist 99999999999", "too large"},
        Wrong{"\nbuffer 7 0x0 4096 bytes", "\nbuffer 7 0x0 16 bytes", "beyond the end"},
        Wrong{"\nbuffer 7 0x0 4096 bytes", "\nbuffer 7 0x0 4096 zero", "belong to no list and to no buffer"},
        Wrong{"\nbuffer 2 ", "\nbuffer 1 ", "occurs twice"},
        Wrong{" listed", " listed listed", "'listed' occurs twice"},
        Wrong{"\n  00000000: ", "\n  00000002: ", "begins at a multiple of 4"},
        Wrong{"\njob\n", "\n", "it must come after a 'job'"},
        Wrong{"\nbuffer 7 0x0 4096 bytes", "\nbuffer 7 0x1000 18446744073709547520 bytes", "beyond 64 bits"},
        Wrong{"\nbuffer 2 ", "\nbuffer -2 ", "'-2' is no number"}, Wrong{"\nbuffer 2 ", "\nbufer 2 ", "begins with"},
        Wrong{"\nsubmission 1", "\nsubmission 5", "the next number is 1"},
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

// The text gives the same words, or is refused.
void comes_back_or_is_refused(const capture::Capture& capture, size_t& texts, const std::string& what) {
  capture::Reader reader = capture::Reader::of(capture);
  const auto text = edit_text(reader, "");
  if (!text.ok()) return;
  ++texts;
  const auto again = parse_edit_text(*text, "");
  EXPECT_TRUE(again.ok() && *again == capture) << what << ": " << (again.ok() ? "another one" : again.error().message);
}

// Removes two words, or repeats them: a register is missing, or set twice.
Bytes without(std::span<const uint8_t> bytes, size_t at) {
  Bytes out(bytes.begin(), bytes.end());
  out.erase(out.begin() + static_cast<ptrdiff_t>(at), out.begin() + static_cast<ptrdiff_t>(at + 8));
  return out;
}
Bytes doubled(std::span<const uint8_t> bytes, size_t at) {
  Bytes out(bytes.begin(), bytes.end());
  out.insert(out.begin() + static_cast<ptrdiff_t>(at), bytes.begin() + static_cast<ptrdiff_t>(at),
             bytes.begin() + static_cast<ptrdiff_t>(at + 8));
  return out;
}

TEST(EditText, RegistersThatAreLeftOutOrDoubledComeBackOrAreRefused) {
  size_t texts = 0;
  for (const char* name : {"a311d_conv1x1_relu6_u8", "rk3588_conv1x1_relu6_u8"}) {
    const capture::Capture recorded = *capture::read(in_tree("tests/captures/") + name);
    capture::Capture one = recorded;
    one.submissions = {recorded.submissions.back()};
    const capture::Submission submission = one.submissions[0];
    const capture::Commands& list = submission.jobs[0].commands[0];
    for (const auto& change : {without, doubled}) {
      for (size_t at = 0; at + 8 <= list.words.size() * 4; at += 8) {
        const Bytes bytes = change(as_bytes(std::span(list.words)), at);
        std::vector<uint32_t>& words = one.submissions[0].jobs[0].commands[0].words;
        words.resize(bytes.size() / 4);
        std::memcpy(words.data(), bytes.data(), bytes.size());
        comes_back_or_is_refused(one, texts, fmt::format("{} byte {} of the list", name, at));
        one.submissions[0] = submission;
      }
      for (size_t i = 0; list.words.empty() && i < submission.buffers.size(); ++i) {
        const capture::BufferSnapshot& buffer = submission.buffers[i];
        if (list.address < buffer.address || list.address - buffer.address >= buffer.bytes.size()) continue;
        const size_t first = list.address - buffer.address;
        for (size_t at = first; at + 8 <= std::min<size_t>(buffer.bytes.size(), first + list.size_bytes); at += 8) {
          Bytes bytes = change(buffer.bytes, at);
          bytes.resize(std::min<size_t>(bytes.size(), buffer.size_bytes));
          capture::set_contents(one.submissions[0].buffers[i], bytes);
          comes_back_or_is_refused(one, texts, fmt::format("{} byte {} of buffer {}", name, at, buffer.handle));
          one.submissions[0] = submission;
        }
      }
    }
  }
  EXPECT_GT(texts, 100u);
}

TEST(EditText, WhatNoTextGivesBackIsRefused) {
  const auto refused = [](const auto& change) {
    capture::Capture capture = *capture::read(kConv);
    change(capture.submissions[1]);
    capture::Reader reader = capture::Reader::of(std::move(capture));
    const auto text = edit_text(reader, "");
    return text.ok() ? std::string() : text.error().message;
  };
  EXPECT_EQ(refused([](capture::Submission&) {}), "");
  const std::string twice = refused([](capture::Submission& one) { one.buffers.push_back(one.buffers[0]); });
  EXPECT_NE(twice.find("occurs twice"), std::string::npos) << twice;
  const std::string longer = refused([](capture::Submission& one) {
    one.buffers[0].content = capture::Content::bytes;
    one.buffers[0].size_bytes = 4;
    one.buffers[0].bytes = Bytes{1, 2, 3, 4, 5, 6, 7, 8};
  });
  EXPECT_NE(longer.find("beyond the end"), std::string::npos) << longer;
}

TEST(EditText, BytesThatAreAllZeroAreBytes) {
  capture::Capture capture = *capture::read(kConv);
  capture::BufferSnapshot& one = capture.submissions[1].buffers[0];
  for (const auto content : {capture::Content::zero, capture::Content::bytes, capture::Content::unknown}) {
    one.content = content, one.bytes = {};
    const auto again = parse_edit_text(text_of(capture), "");
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again->submissions[1].buffers[0].content, content);
  }
}

TEST(EditText, NamesThatAreNoLineAreRefused) {
  for (const char* name : {"x\nsubmission 7", " x", "x ", "x\x1b[2J"}) {
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
