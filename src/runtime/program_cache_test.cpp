#include "runtime/program_cache.h"

#include <gtest/gtest.h>

#include <set>

#include "compile/build_id.h"
#include "runtime/toy_session.h"

namespace skillet::runtime {
namespace {

TEST(ProgramCache, EachOptionHasAKeyOfItsOwn) {
  const ir::Graph graph = without_slice();
  ir::Graph other = graph;
  other.tensor(kR).quant.zero_points = {101};
  std::set<std::string> keys;
  size_t tried = 0;
  const auto add = [&](const npu::Chip& chip, const ir::Graph& what, const npu::CompileOptions& options,
                       std::string_view extra = {}) {
    keys.insert(cache_key(chip, what, options, extra));
    EXPECT_EQ(keys.size(), ++tried);
  };
  const npu::Chip toy{.name = "toy", .family = "f"};
  add(toy, graph, {});
  add(toy, other, {});
  add({.name = "toy2", .family = "f"}, graph, {});
  add({.name = "toy", .family = "g"}, graph, {});
  add(toy, graph, {}, "extra");
  add(toy, graph, {.tuning = npu::Tuning::tuned});
  add(toy, graph, {.switches = {"a"}});
  add(toy, graph, {.switches = {"a", "b"}});
  add(toy, graph, {.switches = {"ab"}});
  add(toy, graph, {.switches = {"b"}});
  add(toy, graph, {.switches = {"ab", ""}});
  add(toy, graph, {.choices = {{0, "a", 1}}});
  add(toy, graph, {.choices = {{1, "a", 1}}});
  add(toy, graph, {.choices = {{0, "b", 1}}});
  add(toy, graph, {.choices = {{0, "a", 2}}});
  add(toy, graph, {.choices = {{0, "a", 1}, {1, "a", 1}}});
  add(toy, graph, {.keep_intermediates = true});
  add(toy, graph, {.unproven = npu::Unproven::refuse});
  add(toy, graph, {.without = {"a"}});
  add(toy, graph, {.without = {"a", "b"}});
  EXPECT_EQ(compile::build_id().size(), 32u);
  EXPECT_EQ(compile::build_id().find_first_not_of("0123456789abcdef"), std::string_view::npos);
}

// Results of `skillet tune` are found by hosts that number and name tensors differently, but for no other network.
TEST(GraphKey, KnowsWhatIsComputedAndNoNames) {
  const std::string plain = R"(graph ""
tensor 0 "in" uint8 1x4x4x16 scale=0.5 zero=128
tensor 1 "k" uint8 1x1x1x16 scale=0.25 zero=3 const=zeros
tensor 2 "sum" uint8 1x4x4x16 scale=1 zero=128
tensor 3 "out" uint8 1x4x4x16 scale=1 zero=128
inputs 0
outputs 3
op 0 ADD in=[0 1] out=[2]
op 1 RELU in=[2] out=[3]
)";
  const std::string renumbered = R"(graph "other"
tensor 0 "unused" uint8 1x9 scale=1 zero=0
tensor 1 "Identity" uint8 1x4x4x16 scale=1 zero=128
tensor 2 "x" uint8 1x4x4x16 scale=0.5 zero=128
tensor 3 "" uint8 1x4x4x16 scale=1 zero=128
tensor 4 "y" uint8 1x1x1x16 scale=0.25 zero=3 const=zeros
inputs 2
outputs 1
op 0 ADD in=[2 4] out=[3] source=7
op 1 RELU in=[3] out=[1] source=9
)";
  const auto key = [&](const std::string& text) {
    const auto graph = ir::parse(text);
    EXPECT_TRUE(graph.ok()) << graph.error().message << text;
    return graph.ok() ? graph_key(*graph) : "";
  };
  EXPECT_EQ(key(plain), key(renumbered));
  std::set<std::string> keys = {key(plain)};
  const std::pair<const char*, const char*> edits[] = {{"in=[0 1]", "in=[1 0]"},
                                                       {"in=[0 1]", "in=[0 0]"},
                                                       {"RELU in", "RELU6 in"},
                                                       {"ADD in=[0 1]", "SUB in=[0 1]"},
                                                       {"scale=0.25", "scale=0.75"},
                                                       {"zero=3", "zero=4"},
                                                       {"zeros", "hex:01000000000000000000000000000000"},
                                                       {"outputs 3", "outputs 2 3"}};
  for (const auto& [from, to] : edits) {
    std::string text = plain;
    text.replace(text.find(from), std::string_view(from).size(), to);
    EXPECT_TRUE(keys.insert(key(text)).second) << from << " -> " << to;
  }
  std::string swapped = plain;  // the last edit, in the other order
  swapped.replace(swapped.find("outputs 3"), 9, "outputs 3 2");
  EXPECT_TRUE(keys.contains(key(swapped)));
}

}  // namespace
}  // namespace skillet::runtime
