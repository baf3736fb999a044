// Parts for which the NPU has no job: nothing runs there, so nothing is counted as if it did.
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

}  // namespace
}  // namespace skillet::compile
