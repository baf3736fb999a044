// VectorTargets: a fixture that runs each of its tests on every instruction set of this CPU.
// Called by the tests of vector loops. Must not know: what the loops compute.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <string>

namespace skillet {

class VectorTargets : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { choose(GetParam()); }
  void TearDown() override { choose(0); }

 private:
  // 0: all instruction sets of the CPU.
  static void choose(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// For INSTANTIATE_TEST_SUITE_P.
inline auto all_vector_targets() { return testing::ValuesIn(hwy::SupportedAndGeneratedTargets()); }
inline std::string vector_target_name(const testing::TestParamInfo<int64_t>& info) {
  return hwy::TargetName(info.param);
}

}  // namespace skillet
