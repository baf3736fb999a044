// Operations that Skillet lowers to others for Ethos-U, with random shapes and quantizations, on all simulated chips:
// equal to the CPU kernels' bytes. SKILLET_RANDOM_GRAPHS: number of graphs of each kind (default 6);
// SKILLET_RANDOM_GRAPHS_FIRST: first seed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/environment.h"
#include "random_cases.h"
#include "runtime/testing/run_both.h"

namespace skillet {
namespace {

constexpr const char* kChips[] = {"sim:ethos-u55-32",  "sim:ethos-u55-64",  "sim:ethos-u55-128",
                                  "sim:ethos-u55-256", "sim:ethos-u65-256", "sim:ethos-u65-512"};

// Returns the number of elements that differ; -1: the chip does not take the whole graph.
int judged(const ir::Graph& graph, const char* device, uint32_t seed) {
  const runtime::SessionOptions options{.compile = {.unproven = npu::Unproven::take}, .allow_fallback = false};
  const auto both = runtime::run_both(graph, device, options, seed);
  if (!both) return -1;
  int off = 0;
  for (size_t i = 0; i < both->wanted.size(); ++i) off += both->got[i] != both->wanted[i];
  return off;
}

uint32_t from_environment(const char* name, uint32_t otherwise) {
  const char* const text = environment_variable(name);
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::atoi(text));
}

class EthosuOperations : public testing::TestWithParam<ethosu_cases::Kind> {};

TEST_P(EthosuOperations, HaveTheBytesOfTheCpu) {
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1),
                 count = from_environment("SKILLET_RANDOM_GRAPHS", 6) / GetParam().share;
  uint32_t taken = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    const std::string text = ethosu_cases::text_of(GetParam(), seed);
    const auto graph = ir::parse(text);
    ASSERT_TRUE(graph.ok()) << graph.error().message << "\n" << text;
    bool is_taken = true;
    for (const char* chip : kChips) {
      const int off = judged(*graph, chip, seed);
      ASSERT_LE(off, 0) << chip << ", seed " << seed << "\n" << text;
      is_taken = is_taken && off == 0;
    }
    taken += is_taken;
  }
  EXPECT_GE(taken, count - count / 4) << "taken by all chips";
}
INSTANTIATE_TEST_SUITE_P(Kinds, EthosuOperations, testing::ValuesIn(ethosu_cases::kKinds),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace skillet
