// Tests which operation writes a byte, and to which pixel it belongs.
#include "tools/jobs/writers.h"

#include <gtest/gtest.h>

namespace skillet::tools {
namespace {

// Two planes of 3 rows of 4 pixels of 16 channels; after each row one more pixel, after each plane one more row.
constexpr npu::WrittenImage kImage{
    .height = 3, .width = 4, .channels = 20, .pixel_bytes = 16, .row_bytes = 80, .plane_bytes = 4 * 80};
constexpr uint64_t kOffset = 100;

TEST(Writers, EachByteOfAnImageIsItsPixel) {
  const Writer writer{.handle = 1, .offset = kOffset, .job = "job 0", .what = "NN", .op = "", .image = kImage};
  for (uint64_t plane = 0; plane < 3; ++plane) {
    for (uint64_t row = 0; row < 4; ++row) {
      for (uint64_t column = 0; column < 5; ++column) {
        for (uint64_t at = 0; at < 16; ++at) {
          const uint64_t byte = kOffset + plane * 320 + row * 80 + column * 16 + at, channel = plane * 16 + at;
          const bool is_there = row < 3 && column < 4 && channel < 20;
          const auto pixel = writer.pixel_at(byte);
          ASSERT_EQ(pixel.has_value(), is_there) << plane << " " << row << " " << column << " " << at;
          if (!is_there) continue;
          ASSERT_EQ(std::tuple(pixel->row, pixel->column, pixel->channel), std::tuple(row, column, channel));
        }
      }
    }
  }
  EXPECT_FALSE(writer.pixel_at(kOffset - 1));
  Writer rows = writer, planes = writer, channels = writer;  // images whose layout is not known
  rows.image.row_bytes = 0, planes.image.plane_bytes = 0, channels.image.channels = 0;
  for (const Writer& one : {rows, planes, channels}) EXPECT_FALSE(one.pixel_at(kOffset));
}

TEST(Writers, TheOneThatBeginsNearestBeforeAndOfSeveralTheLast) {
  const auto writer = [](uint32_t handle, uint64_t offset, std::string job) {
    return Writer{.handle = handle, .offset = offset, .job = std::move(job), .what = "", .op = "", .image = {}};
  };
  const std::vector<Writer> all = {writer(1, 64, "a"), writer(1, 0, "b"), writer(2, 10, "c"), writer(1, 64, "d"),
                                   writer(1, 200, "e")};
  struct Row {
    uint32_t handle;
    uint64_t byte;
    const char* job;
  };
  for (const Row& row : {Row{1, 63, "b"}, Row{1, 64, "d"}, Row{1, 199, "d"}, Row{1, 200, "e"}, Row{2, 9, ""},
                         Row{2, 10, "c"}, Row{3, 0, ""}}) {
    const Writer* const found = writer_of(all, row.handle, row.byte);
    EXPECT_EQ(found == nullptr ? "" : found->job, row.job) << row.handle << " " << row.byte;
  }
}

TEST(Writers, AreTheOutputsThatTheirJobsUse) {
  capture::Submission submission;
  submission.buffers = {{.handle = 7, .address = 0x1000, .size_bytes = 0x1000}};
  npu::Annotated decoded;
  decoded.operations = {"TP", "NN"};
  const auto add = [&](std::string path, size_t operation, uint64_t address, bool output, bool unused) {
    npu::AnnotatedField field;
    field.path = std::move(path), field.operation = operation, field.address = address;
    field.output = output, field.unused = unused;
    decoded.fields.push_back(std::move(field));
  };
  add("job 0 tp.in_address", 0, 0x1000, false, false);
  add("job 0 tp.out_address", 0, 0x1040, true, false);
  add("job 1 nn.second_out_address", 1, 0x1080, true, true);
  add("word 12 out_address", 1, 0x10c0, true, false);
  add("job 1 nn.out_address", 1, 0x9000, true, false);  // in no buffer
  add("job 2 nn.out_address", 2, 0x1000, true, false);  // beyond the last operation
  const std::vector<Writer> found = writers_of(decoded, submission, {"", "3 ADD"});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(std::tuple(found[0].handle, found[0].offset, found[0].title()), std::tuple(7U, 0x40U, "job 0 TP"));
  EXPECT_EQ(std::tuple(found[1].handle, found[1].offset, found[1].title()), std::tuple(7U, 0xc0U, "job 1 NN (3 ADD)"));
}

}  // namespace
}  // namespace skillet::tools
