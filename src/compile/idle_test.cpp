// Parts without an NPU job: they are not counted as running on the NPU.
#include <gtest/gtest.h>

#include "compile/report.h"
#include "graph/passes/testing/letters.h"

namespace skillet::compile {
namespace {

// Programs with one job, or with none.
class Jobs : public passes::AddMulDriver {
 public:
  bool has_job = false;
  Result<npu::Program> compile(const npu::Chip&, const ir::Graph&, const npu::CompileOptions&) const override {
    npu::Program program;
    if (has_job) program.jobs.emplace_back();
    return program;
  }
};

TEST(Idle, PartsWithoutJobsAreNotTheNpus) {
  for (const bool has_job : {false, true}) {
    passes::Letters letters("a", {"c=add(a,a)", "d=relu(c)"}, "d");
    for (int32_t i = 0; i < 2; ++i) letters.graph.ops[static_cast<size_t>(i)].source_index = i;
    Jobs driver;
    driver.has_job = has_job;
    const auto out = compile(letters.graph, {&driver, {}}, {.rewrite = false});
    ASSERT_TRUE(out.ok()) << out.error().message;
    EXPECT_EQ(works_on_npu(*out), (std::vector<bool>{has_job, false}));
    EXPECT_EQ(model_use(*out).npu_ops, has_job ? 1U : 0U);
    std::vector<OpRow> all = rows(*out);
    mark_idle(works_on_npu(*out), all);
    EXPECT_EQ(all[0].note, has_job ? "" : kNoJob);
    EXPECT_EQ(all[1].note, "") << "the CPU's own";
  }
}

// Accepts ops that only move data; rewriting removes them.
class Moves : public passes::AddMulDriver {
  npu::Support supports(const npu::Chip&, const ir::Graph& graph, ir::OpId op) const override {
    if (graph.op(op).kind == ir::OpKind::reshape) return npu::Support::yes();
    return npu::Support::no(npu::Remedy::none, "no RELU");
  }
};

TEST(Idle, AMoveAloneStaysWithItsReason) {
  passes::Letters letters("a", {"c=relu(a)", "d=same(c)", "e=relu(d)"}, "e");
  for (size_t i = 0; i < letters.graph.ops.size(); ++i) letters.graph.ops[i].source_index = static_cast<int32_t>(i);
  const Moves driver;
  const auto result = compile(letters.graph, {&driver, {}}, {});
  ASSERT_TRUE(result.ok()) << result.error().message;
  const std::vector<OpRow> all = rows(*result);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].why, "no RELU");
  EXPECT_EQ(all[1].why, "alone it would only move data");
  EXPECT_FALSE(all[1].on_npu);
}

}  // namespace
}  // namespace skillet::compile
