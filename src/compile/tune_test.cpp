// The search for choices, with a driver whose programs only list their choices, and costs from a table; tuning files,
// right and wrong.
#include "compile/tune.h"

#include <gtest/gtest.h>

#include <cstring>

#include "compile/tuning_file.h"
#include "graph/passes/testing/letters.h"

namespace skillet::compile {
namespace {

using npu::Choice;

// One operation for each op, and an inserted one before each; the program's chip is the list of its choices.
class ListingDriver : public passes::AddMulDriver {
 public:
  explicit ListingDriver(std::vector<Choice> open) : open_(std::move(open)) {}
  Result<std::vector<Choice>> choices(const npu::Chip&, const ir::Graph&, const npu::CompileOptions&) const override {
    return open_;
  }
  Result<npu::Program> compile(const npu::Chip&, const ir::Graph& graph,
                               const npu::CompileOptions& options) const override {
    npu::Program program;
    for (size_t op = 0; op < graph.ops.size(); ++op) {
      program.operations.push_back({-1, "inserted", 0, 1});
      std::string kind;
      for (const Choice& one : options.choices)
        if (one.op == static_cast<ir::OpId>(op)) kind += fmt::format("{}{} ", one.name, one.value);
      program.operations.push_back({static_cast<ir::OpId>(op), kind, 0, 1});
    }
    program.operations.push_back({-1, "at the end", 0, 1});
    return program;
  }

 private:
  std::vector<Choice> open_;
};

// Times by the choice of an operation; 100 us for other choices, 1 us for inserted operations.
ProgramCosts costs_of(std::vector<std::pair<std::string, double>> times, std::vector<size_t> tasks = {}) {
  return [times = std::move(times),
          tasks = std::move(tasks)](const npu::Program& program) -> Result<std::vector<OperationCost>> {
    std::vector<OperationCost> out;
    for (const npu::OperationInfo& one : program.operations) {
      OperationCost& cost = out.emplace_back(OperationCost{.device_us = one.op < 0 ? 1.0 : 100.0, .tasks = 1});
      for (size_t i = 0; i < times.size(); ++i) {
        if (times[i].first != one.kind || one.op < 0) continue;
        cost.device_us = times[i].second;
        if (i < tasks.size()) cost.tasks = tasks[i];
      }
    }
    return out;
  };
}

struct Row {
  const char* what;
  std::vector<Choice> open;
  std::vector<std::pair<std::string, double>> times;
  std::vector<Choice> chosen;
  double after_us;  // of two ops, with inserted operations
  std::vector<size_t> tasks = {};
};

TEST(Tune, TakesTheBestOfEachOp) {
  const std::vector<Row> rows = {
      {"nothing is open", {}, {}, {}, 203},
      {"a better value", {{0, "a", 1}}, {{"a1 ", 50}}, {{0, "a", 1}}, 153},
      {"a worse value", {{0, "a", 1}}, {{"a1 ", 150}}, {}, 203},
      {"an equal one", {{0, "a", 1}}, {{"a1 ", 100}}, {}, 203},
      {"the best of several",
       {{0, "a", 1}, {0, "a", 2}, {0, "a", 3}},
       {{"a1 ", 60}, {"a2 ", 40}, {"a3 ", 50}},
       {{0, "a", 2}},
       143},
      {"ops choose apart",
       {{0, "a", 1}, {1, "a", 1}, {1, "a", 2}},
       {{"a1 ", 60}, {"a2 ", 30}},
       {{0, "a", 1}, {1, "a", 2}},
       93},
      {"names add up", {{0, "a", 1}, {0, "b", 1}}, {{"a1 ", 60}, {"a1 b1 ", 20}}, {{0, "a", 1}, {0, "b", 1}}, 123},
      {"the second name alone", {{1, "a", 1}, {1, "b", 7}}, {{"a1 ", 110}, {"b7 ", 20}}, {{1, "b", 7}}, 123},
      {"negative values", {{0, "a", -2}}, {{"a-2 ", 10}}, {{0, "a", -2}}, 113},
      {"too little for four more tasks", {{0, "a", 1}}, {{"a1 ", 81}}, {}, 203, {5}},
      {"enough for four more tasks", {{0, "a", 1}}, {{"a1 ", 79}}, {{0, "a", 1}}, 182, {5}},
  };
  for (const Row& row : rows) {
    const passes::Letters letters("a", {"b=add(a,a)", "c=add(b,b)"}, "c");
    const auto found = tune(ListingDriver(row.open), {}, letters.graph, {}, costs_of(row.times, row.tasks));
    ASSERT_TRUE(found.ok()) << row.what << ": " << found.error().message;
    EXPECT_EQ(found->choices, row.chosen) << row.what;
    EXPECT_DOUBLE_EQ(sum_of(found->after).device_us, row.after_us) << row.what;
    EXPECT_DOUBLE_EQ(sum_of(found->before).device_us, 203) << row.what;
  }
}

// Inserted operations count for the op after them; those at the end count for the last op.
TEST(Tune, InsertedOperationsBelongToOps) {
  const passes::Letters letters("a", {"b=add(a,a)", "c=add(b,b)"}, "c");
  const auto found = tune(ListingDriver({}), {}, letters.graph, {}, costs_of({}));
  ASSERT_TRUE(found.ok());
  EXPECT_DOUBLE_EQ(found->before.at(0).device_us, 101);
  EXPECT_DOUBLE_EQ(found->before.at(1).device_us, 102);
}

TEST(Tune, WhatIsTooMuchTogetherIsNotTaken) {
  const ProgramCosts program_costs = [](const npu::Program& program) -> Result<std::vector<OperationCost>> {
    std::vector<OperationCost> out(program.operations.size());
    const bool both = program.operations[1].kind == "a1 " && program.operations[3].kind == "b1 ";
    for (size_t i = 0; i < out.size(); ++i)
      out[i].device_us = both ? 500 : program.operations[i].kind.empty() ? 100 : 50;
    return out;
  };
  const passes::Letters letters("a", {"b=add(a,a)", "c=add(b,b)"}, "c");
  const auto found = tune(ListingDriver({{0, "a", 1}, {1, "b", 1}}), {}, letters.graph, {}, program_costs);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->choices, (std::vector<Choice>{{0, "a", 1}}));
}

TEST(Tune, AJudgeThatCannotPriceIsAnError) {
  const passes::Letters letters("a", {"b=add(a,a)"}, "b");
  const ProgramCosts program_costs = [](const npu::Program&) -> Result<std::vector<OperationCost>> {
    return error(ErrorCode::unsupported, "not this one");
  };
  const auto found = tune(ListingDriver({}), {}, letters.graph, {}, program_costs);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "not this one");
}

// ---- files -------------------------------------------------------------------------------------------------------

TuningFile example() {
  return {.chip = "chip",
          .build = "0123",
          .model = "net.tflite",
          .device = "sim:chip",
          .found = "timing model",
          .parts = {{"aa", {"shared_memory"}, {{0, "tile_rows", 4}, {7, "task_division", -2}}}, {"bb", {}, {}}}};
}

TEST(TuningFiles, AreReadAsTheyWereWritten) {
  const auto read = parse_tuning_file(print(example()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(print(*read), print(example()));
  ASSERT_NE(read->find("aa"), nullptr);
  EXPECT_EQ(read->find("aa")->choices, example().parts[0].choices);
  EXPECT_EQ(read->find("aa")->switches, example().parts[0].switches);
  EXPECT_EQ(read->find("cc"), nullptr);
}

TEST(TuningFiles, BracketsInTextsAreNoLists) {
  TuningFile file = example();
  file.device = R"([[[[[[{"{{\)" + std::string("\"[[[[[[[[[[");
  const auto read = parse_tuning_file(print(file));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->device, file.device);
}

TEST(TuningFiles, WrongOnesNameTheField) {
  struct Wrong {
    std::string from, to, message;
  };
  const std::string deep(200'000, '[');
  std::string many, values;
  for (int i = 0; i < 600'000; ++i) values += "0,";
  for (int i = 0; i < 70'000; ++i) many += "\"\",";
  const std::vector<Wrong> rows = {
      {"{", "", "the text is not JSON"},
      {"\"skillet_tuning\": 1", "\"skillet_tuning\": 2", "skillet_tuning must be 1"},
      {"\"skillet_tuning\": 1", "\"skillet_tuning\": \"1\"", "skillet_tuning must be 1"},
      {"\"skillet_tuning\": 1", "\"skillet_tuning\": " + deep, "the text is nested too deep"},
      {"\"value\": 4", "\"value\": [[4]]", "nested too deep"},
      {"\"found\"", "\"more\": [" + values + "0], \"found\"", "the text has too many values"},
      {"\"skillet_tuning\"", "\"tuning\"", "skillet_tuning is missing"},
      {"\"parts\": [", "\"parts\": {}, \"rest\": [", "parts must be a list"},
      {"\"switches\": [", "\"switches\": \"x\", \"rest\": [", "switches must be a list"},
      {"\"switches\": [", "\"switches\": [" + many, "switches is too long"},
      {"\"chip\": \"chip\"", "\"chip\": 3", "chip must be a text"},
      {"\"chip\"", "\"ship\"", "chip is missing"},
      {"\"build\": \"0123\"", "\"build\": \"" + std::string(5000, 'x') + "\"", "build is too long"},
      {"\"parts\"", "\"part\"", "parts is missing"},
      {"\"graph\": \"aa\"", "\"graph\": null", "parts[0].graph must be a text"},
      {"\"shared_memory\"", "1", "parts[0].switches must be names"},
      {"\"op\": 0", "\"op\": 0.5", "parts[0].choices[0].op must be a whole number"},
      {"\"op\": 7", "\"op\": 4294967296", "parts[0].choices[1].op does not fit 32 bits"},
      {"\"value\": -2", "\"value\": -2147483649", "parts[0].choices[1].value does not fit 32 bits"},
      {"\"value\": -2", "\"value\": 18446744073709551615", "parts[0].choices[1].value does not fit 32 bits"},
      {"\"name\": \"tile_rows\"", "\"name\": []", "parts[0].choices[0].name must be a text"},
      {"\"chip\"", "\"chip\": \"other\", \"chip\"", "chip occurs twice in one object"},
      {"\"value\": 4", "\"value\": 4, \"value\": 5", "value occurs twice in one object"},
      {"\"value\": 4", "\"value\": 4, \"rows\": 5", "parts[0].choices[0].rows is not a field of it"},
      {"\"graph\": \"aa\"", "\"graph\": \"aa\", \"switch\": 1", "parts[0].switch is not a field of it"},
      {"\"chip\"", "\"ship\": 1, \"chip\"", "ship is not a field of it"},
      {"\"graph\": \"bb\"", "\"graph\": \"aa\"", "parts[1].graph occurs twice"},
      {"\"op\": 0", R"("op": 0, "name": "tile_rows", "value": 2}, {"op": 0)", "parts[0].choices[1] occurs twice"},
  };
  for (const Wrong& row : rows) {
    std::string text = print(example());
    const size_t at = text.find(row.from);
    ASSERT_NE(at, std::string::npos) << row.from << "\n" << text;
    text.replace(at, row.from.size(), row.to);
    const auto read = parse_tuning_file(text);
    ASSERT_FALSE(read.ok()) << row.to.substr(0, 80);
    EXPECT_NE(read.error().message.find(row.message), std::string::npos) << read.error().message;
  }
}

// Arbitrary bytes give an error or a file, never a crash: damages each place of a file.
TEST(TuningFiles, DamageIsAnErrorOrAnotherFile) {
  const std::string text = print(example());
  size_t errors = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char with : {'\0', '"', '{', ']', '9', '\xff'}) {
      std::string damaged = text;
      damaged[at] = with;
      errors += parse_tuning_file(damaged).ok() ? 0 : 1;
    }
    errors += parse_tuning_file(text.substr(0, at)).ok() ? 0 : 1;
  }
  EXPECT_GT(errors, text.size());
}

}  // namespace
}  // namespace skillet::compile
