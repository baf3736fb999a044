// Ops that were rewritten for a chip but stay on the CPU: how they are found, and their predicted times there.
#include "compile/kept.h"

#include <gtest/gtest.h>

#include <array>

#include "graph/passes/testing/letters.h"

namespace skillet::compile {
namespace {

// Op 5 of the model became two, op 6 is unchanged, op 7 absorbed op 8.
Compiled rewritten(std::string_view on_npu, bool is_for_chip) {
  Compiled out;
  out.graph = passes::Letters("a", {"b=add(a,a)", "c=relu(b)", "d=add(c,c)", "e=add(d,d)"}, "e").graph;
  const int32_t sources[] = {5, 5, 6, 7};
  for (size_t i = 0; i < 4; ++i) {
    out.graph.ops[i].source_index = sources[i];
    OpPlace& place = out.ops.emplace_back();
    place.on_npu = on_npu[i] == 'n';
    if (on_npu[i] == 'c') place.remedy = npu::Remedy::take_all;
    place.reason = fmt::format("slow {}", i);
  }
  out.rewrites = {{"", 5, {}, "", 0, is_for_chip}, {"", 7, {8}, "", 0, is_for_chip}};
  return out;
}

std::string kept(std::string_view on_npu, bool is_for_chip = true) {
  Kept all;
  const Compiled compiled = rewritten(on_npu, is_for_chip);
  std::string out;
  while (keep_more(compiled, all)) {
    out += out.empty() ? "" : "then ";
    for (const auto& [source, why] : all) out += fmt::format("{}: {}; ", source, why.reason);
  }
  return out;
}

TEST(Kept, IsWhatTimeLeavesToTheCpu) {
  EXPECT_EQ(kept("nnnn"), "");
  EXPECT_EQ(kept("ccnn"), "5: slow 0; ");
  EXPECT_EQ(kept("ncnn"), "5: slow 1; ") << "a part of it";
  EXPECT_EQ(kept("nxnn"), "") << "the chip does not take it";
  EXPECT_EQ(kept("xxnn"), "5: slow 0; ") << "nor the other part";
  EXPECT_EQ(kept("nnxn"), "") << "nothing was rewritten";
  EXPECT_EQ(kept("nncn"), "") << "nothing was rewritten";
  EXPECT_EQ(kept("nccc"), "6: slow 2; 7: slow 3; then 5: slow 1; 6: slow 2; 7: slow 3; ") << "a part of 5 last";
  EXPECT_EQ(kept("cccc", false), "") << "it is simpler on the CPU, too";
}

TEST(Kept, IsWhatIsRewrittenInVain) {
  const auto graph = ir::parse(
      "graph \"g\"\ntensor 0 \"a\" int8 1x4x4x2 scale=0.5 zero=3\n"
      "tensor 1 \"w\" int8 2x1x1x2 scale=0.5 zero=0 const=[1 2 3 4]\ntensor 2 \"b\" int8 1x4x4x2 scale=0.5 zero=3\n"
      "tensor 3 \"c\" int8 1x4x4x2 scale=0.5 zero=3\ninputs 0\noutputs 3\n"
      "op 0 CONV_2D in=[0 1] out=[2]\nop 1 RELU in=[2] out=[3] source=0\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto vain = [&](bool takes_convolution, bool takes_rest, bool is_for_chip = true) {
    Compiled compiled;
    compiled.graph = *graph;
    compiled.rewrites = {{"", 0, {}, "", 0, is_for_chip}};
    const npu::Support no = npu::Support::no(npu::Remedy::share_scales, "scales"), yes = npu::Support::yes();
    const Kept kept = in_vain(compiled, std::array{takes_convolution ? yes : no, takes_rest ? yes : no});
    return kept.empty() ? "" : fmt::format("{}: {}", kept.begin()->first, kept.begin()->second.reason);
  };
  EXPECT_EQ(vain(false, true), "0: scales");
  EXPECT_EQ(vain(true, false), "") << "the rest moves data on the CPU";
  EXPECT_EQ(vain(false, false), "") << "nothing is there";
  EXPECT_EQ(vain(true, true), "");
  EXPECT_EQ(vain(false, true, false), "") << "it is simpler on the CPU, too";
}

TEST(Kept, PiecesFollowWhatMovedByTime) {
  const auto joined = [](std::string_view on_npu) {
    const Compiled compiled = rewritten(on_npu, true);
    std::vector<npu::Support> support;
    for (const OpPlace& place : compiled.ops)
      support.push_back({.ok = place.on_npu, .reason = place.reason, .remedy = place.remedy, .stands_on = {}});
    std::string out = join_pieces(compiled.graph, support) ? "" : "none: ";
    for (const npu::Support& one : support) out += one.ok ? 'n' : one.reason.back();
    return out;
  };
  EXPECT_EQ(joined("ncnn"), "11nn") << "with the reason of the other piece";
  EXPECT_EQ(joined("cnnn"), "00nn");
  EXPECT_EQ(joined("nxnn"), "none: n1nn") << "the chip does not take it";
  EXPECT_EQ(joined("ccnc"), "none: 01n3") << "no pieces are left";
}

TEST(Kept, IsSlowerBeyondTwoPercent) {
  const auto taking = [](std::optional<double> us) {
    Compiled out;
    out.network = {{.what = "other", .times = {.cpu_us = 1}, .is_chosen = false}};
    if (us) out.network.push_back({.what = "chosen", .times = {.cpu_us = *us}, .is_chosen = true});
    return out;
  };
  EXPECT_FALSE(is_slower(taking(102), taking(100), 0, 0));
  EXPECT_TRUE(is_slower(taking(102.5), taking(100), 0, 0));
  EXPECT_FALSE(is_slower(taking({}), taking(100), 0, 0));
  EXPECT_FALSE(is_slower(taking(102.5), taking({}), 0, 0));
  EXPECT_FALSE(is_slower(taking(102.5), taking(100), 0, 1)) << "which was not counted";
  EXPECT_TRUE(is_slower(taking(101), taking(100), 2, 0)) << "neither was this";
}

// A model whose op is one that a pass makes two of.
TEST(Kept, CountsWhatTheCpuComputesAsItWasMade) {
  const CpuSpeed cpu = plain_cpu(1, 1);
  ir::Graph model = passes::Letters("a", {"c=relu(a)", "d=add(c,c)", "f=add(d,d)", "e=add(f,f)"}, "e").graph;
  for (int32_t i = 0; i < 4; ++i) model.ops[static_cast<size_t>(i)].source_index = i + 5;
  const Compiled all = rewritten("nnnn", true), none = rewritten("cccc", true), half = rewritten("cnnn", true);
  const double made = cpu.us(all.graph, 0) + cpu.us(all.graph, 1), own = cpu.us(model, 0);
  EXPECT_GT(made, own);
  EXPECT_DOUBLE_EQ(excess_us(all, model, cpu), 0);
  EXPECT_DOUBLE_EQ(excess_us(none, model, cpu), made - own);
  EXPECT_DOUBLE_EQ(excess_us(half, model, cpu), (made - own) * cpu.us(all.graph, 0) / made);
}

TEST(Kept, TakesAsLongAsTheModelsOwn) {
  const CpuSpeed cpu = plain_cpu(1, 1);
  const Compiled compiled = rewritten("nnnn", true);
  const auto time = [&](ir::OpId op) { return cpu.us(compiled.graph, op); };
  ir::Graph model = passes::Letters("a", {"c=relu(a)", "d=add(c,c)", "f=add(d,d)", "e=add(f,f)"}, "e").graph;
  for (int32_t i = 0; i < 4; ++i) model.ops[static_cast<size_t>(i)].source_index = i + 5;
  const std::vector<double> got = cpu_times_us(compiled, model, cpu);
  ASSERT_EQ(got.size(), 4U);
  EXPECT_DOUBLE_EQ(got[0] + got[1], cpu.us(model, 0)) << "one, of which two were made";
  EXPECT_DOUBLE_EQ(got[0] / got[1], time(0) / time(1));
  EXPECT_DOUBLE_EQ(got[2], time(2));
  EXPECT_DOUBLE_EQ(got[3], time(3)) << "less than what it was made of";
}

}  // namespace
}  // namespace skillet::compile
