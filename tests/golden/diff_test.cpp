// `skillet diff` and the comparison of golden cases must agree, for all forms of the two sides.
#include <gtest/gtest.h>

#include "base/testing/in_tree.h"
#include "captures.h"
#include "compile_compare.h"
#include "compile_model.h"
#include "golden_case.h"
#include "tools/jobs/diff_side.h"

namespace skillet::golden {
namespace {

struct Counts {
  int identical = 0, differs = 0, other = 0;
};

// Compares the recorded folder with the model, and both sides again as capture files.
void check_case(const std::string& dir, const npu::Chip& chip, const std::string& name, Counts& counts) {
  const Outcome outcome = compare_case(dir, chip, name);
  if (outcome.outcome != "identical" && outcome.outcome != "differs") {
    ++counts.other;
    return;
  }
  const bool same = outcome.outcome == "identical";
  ++(same ? counts.identical : counts.differs);
  const auto c = prepare_case(dir, chip, name);
  ASSERT_TRUE(c.ok()) << c.error().message;
  const npu::Driver* driver = *npu::driver_of(chip);
  const npu::CompileOptions options{.tuning = npu::Tuning::recorded};
  auto folder = tools::load_side(fmt::format("{}/{}/{}", dir, chip.name, name), chip, options);
  auto model = tools::load_side(fmt::format("{}/models/{}.tflite", dir, name), chip, options);
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto file = [](capture::Reader& reader) { return *capture::serialise(*capture::read_all(reader)); };
  auto theirs = capture::Reader::parse(file(folder->reader));
  auto ours = capture::Reader::parse(file(model->reader));
  folder->reader.rewind();
  model->reader.rewind();
  const auto direct = tools::compare(chip, std::move(*folder), std::move(*model));
  ASSERT_TRUE(direct.ok()) << direct.error().message;
  EXPECT_EQ(direct->same(), same) << name;
  ASSERT_TRUE(theirs.ok() && ours.ok()) << name;
  const auto stored = compare(*driver, chip, {std::move(*theirs), {}, false}, {std::move(*ours), {}, true});
  ASSERT_TRUE(stored.ok()) << stored.error().message;
  EXPECT_EQ(stored->same(), same) << name;
}

Counts check_all(const std::string& dir) {
  Counts counts;
  const npu::Chip chip = *npu::find_chip("a311d");
  const auto names = list_captures(dir, chip.name);
  EXPECT_TRUE(names.ok());
  for (const std::string& name : *names) check_case(dir, chip, name, counts);
  return counts;
}

TEST(Diff, AgreesWithTheJudgeOnOurCopies) {
  const Counts counts = check_all(skillet::in_tree("tests/golden/small"));
  EXPECT_GT(counts.identical, 0);
  EXPECT_GT(counts.differs, 0);
}

TEST(Diff, AgreesWithTheJudgeOnAllCases) {
  const auto dir = find_golden_dir();
  if (!dir) GTEST_SKIP() << "no ../shared/golden: only our own copies were compared";
  const Counts counts = check_all(*dir);
  EXPECT_GT(counts.identical, counts.differs);
}

}  // namespace
}  // namespace skillet::golden
