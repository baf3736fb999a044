// Fields of recorded jobs set to other values: only the named field changes.
#include "lab/compare/field_edit.h"

#include <gtest/gtest.h>

#include <map>

#include "lab/compare/testing/recorded.h"

namespace skillet::npu {
namespace {

using Values = std::map<std::string, std::string>;

Values values_of(const Recorded& job, const capture::Submission& submission) {
  Values out;
  const auto decoded = job.driver->decode(job.chip, submission);
  if (!decoded.ok()) return out;
  for (const AnnotatedField& field : decoded->fields) {
    if (field.place) out[field.path] = field.raw;  // not fields that an active unit keeps from the previous task
  }
  return out;
}

// Another value that fits: a single bit is inverted, other values change by one.
std::string another_value(const AnnotatedField& field) {
  const uint64_t value = std::stoull(field.raw, nullptr, 16);
  if (field.row == nullptr || field.row->where.width() == 1) return fmt::format("{}", value ^ 1);
  const uint64_t step =
      field.row->codec.kind == bits::CodecKind::aligned ? uint64_t{1} << field.row->codec.argument : 1;
  return fmt::format("{}", value >= step ? value - step : value + step);
}

class SetField : public testing::TestWithParam<std::string> {};

TEST_P(SetField, ChangesThatFieldAlone) {
  const Recorded job = recorded(GetParam());
  size_t changed_fields = 0;
  for (const capture::Submission& submission : job.submissions) {
    const Values before = values_of(job, submission);
    const auto decoded = job.driver->decode(job.chip, submission);
    for (const AnnotatedField& field : decoded->fields) {
      // Changed addresses of commands lead elsewhere; several commands may write one register.
      if (!field.place || field.row == nullptr || field.kind == FieldKind::commands || field.unknown) continue;
      if (std::ranges::count(decoded->fields, field.path, &AnnotatedField::path) != 1) continue;
      capture::Submission changed = submission;
      const auto done = set_field(*job.driver, job.chip, changed, field.path, another_value(field));
      if (!done.ok() && field.row != nullptr && field.row->codec.kind == bits::CodecKind::log2_of) continue;
      ASSERT_TRUE(done.ok()) << done.error().message;
      Values after = values_of(job, changed);
      if (after.empty()) continue;  // it gives the place or number of commands
      ASSERT_NE(after[field.path], before.at(field.path)) << field.path;
      after[field.path] = before.at(field.path);
      EXPECT_EQ(after, before) << field.path;
      ASSERT_TRUE(set_field(*job.driver, job.chip, changed, field.path, field.raw).ok()) << field.path;
      EXPECT_EQ(changed.jobs, submission.jobs) << field.path;
      EXPECT_EQ(values_of(job, changed), before) << field.path;
      ++changed_fields;
    }
  }
  EXPECT_GT(changed_fields, 100U);
}

INSTANTIATE_TEST_SUITE_P(Recorded, SetField, testing::Values("a311d_conv1x1_relu6_u8", "rk3588_conv1x1_relu6_u8"),
                         [](const auto& test) { return test.param.substr(0, test.param.find('_')); });

TEST(FieldEdit, SaysWhatCannotBeSet) {
  const Recorded job = recorded("a311d_conv1x1_relu6_u8");
  struct Case {
    std::string path, value, message;
  };
  const Case kCases[] = {
      {"job 1 nn_instruction.kernel_x_sise", "1", "did you mean 'job 1 nn_instruction.kernel_x_size'?"},
      {"job 1 nn_instruction.kernel_x_size", "many", "'many' is no value of kernel_x_size"},
      {"job 1 nn_instruction.kernel_x_size", "", "'' is no value of kernel_x_size"},
      {"job 1 nn_instruction.kernel_x_size", "16", "kernel_x_size"},
      {"job 1 nn_instruction.kernel_x_size", "99999999999999999999", "is no value"},
      {"job 1 nn_instruction.out_address", "1x", "'1x' is no value"},
      {"", "1", "no field ''"}};
  for (const Case& c : kCases) {
    capture::Submission submission = job.submissions[1];
    const auto done = set_field(*job.driver, job.chip, submission, c.path, c.value);
    ASSERT_FALSE(done.ok()) << c.path;
    EXPECT_NE(done.error().message.find(c.message), std::string::npos) << done.error().message;
    EXPECT_EQ(submission, job.submissions[1]);
  }
}

TEST(FieldEdit, ANegativeNumberIsOne) {
  const Recorded job = recorded("rk3588_conv1x1_relu6_u8");
  const capture::Submission& submission = job.submissions[0];
  const auto decoded = job.driver->decode(job.chip, submission);
  size_t tried = 0;
  for (const AnnotatedField& field : decoded->fields) {
    if (!field.place || field.row == nullptr || field.row->kind != bits::ValueKind::signed_int) continue;
    if (std::ranges::count(decoded->fields, field.path, &AnnotatedField::path) != 1) continue;
    for (const int64_t value : {-3, 5}) {
      capture::Submission changed = submission;
      ASSERT_TRUE(set_field(*job.driver, job.chip, changed, field.path, fmt::format("{}", value)).ok()) << field.path;
      const auto words = words_of(field, changed);
      ASSERT_TRUE(words.ok());
      EXPECT_EQ(static_cast<int64_t>(bits::read_field(*field.row, *words).integer), value) << field.path;
    }
    ++tried;
  }
  EXPECT_GT(tried, 0U);
}

// A descriptor without its field fits many names: a few are listed.
TEST(FieldEdit, NamesAFewOfMany) {
  const Recorded job = recorded("a311d_conv1x1_relu6_u8");
  capture::Submission submission = job.submissions[1];
  const auto done = set_field(*job.driver, job.chip, submission, "job 1 nn_instruction", "1");
  ASSERT_FALSE(done.ok());
  size_t names = 0;
  for (size_t at = 0; (at = done.error().message.find("'job 1 nn_instruction.", at)) != std::string::npos; ++at)
    ++names;
  EXPECT_EQ(names, 3U) << done.error().message;
  EXPECT_NE(done.error().message.find(" more"), std::string::npos);
}

// Words before, at and beyond the end of the call and of a buffer.
TEST(FieldEdit, WordsThatAreNotThereAreAnError) {
  const Recorded job = recorded("a311d_conv1x1_relu6_u8");
  const capture::Submission& submission = job.submissions[1];
  const uint64_t call = capture::words_of(submission)->size() * 4;
  const capture::BufferSnapshot& buffer =
      *std::ranges::find(submission.buffers, true, &capture::BufferSnapshot::listed);
  const uint64_t end = buffer.address + buffer.size_bytes;
  struct Row {
    FieldPlace place;
    bool is_there;
  };
  for (const Row& row :
       {Row{{.in_call = true, .address = call - 4}, true}, Row{{.in_call = true, .address = call}, false},
        Row{{.in_call = true, .address = call - 3}, false}, Row{{.in_call = true, .address = call + 1000}, false},
        Row{{.address = end - 4}, true}, Row{{.address = end - 3}, false},
        Row{{.address = end + 4 * 4096 * 4096ULL}, false}}) {
    AnnotatedField field;
    field.place = row.place;
    EXPECT_EQ(words_of(field, submission).ok(), row.is_there) << row.place.in_call << " " << row.place.address;
  }
}

}  // namespace
}  // namespace skillet::npu
