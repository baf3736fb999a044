// If nodes of ONNX files: the branch that is taken stands in their place.
#include <gtest/gtest.h>

#include "frontend/onnx/testing/file.h"

namespace skillet::onnx {
namespace {

using Texts = std::vector<std::string>;

std::string graph_of(const Texts& nodes, const Texts& outputs, const Texts& constants = {}, const Texts& inputs = {}) {
  return message([&](pbf_writer& w) {
    for (const std::string& one : nodes) w.add_message(1, one);
    for (const std::string& one : constants) w.add_message(5, one);
    for (const std::string& one : inputs) w.add_message(11, value(one, {}));
    for (const std::string& one : outputs) w.add_message(12, value(one, {}));
  });
}
std::string branch(const std::string& name, const std::string& graph) {
  return message([&](pbf_writer& w) {
    w.add_string(1, name);
    w.add_message(6, graph);
  });
}
std::string if_node(const std::string& condition, const std::string& then, const std::string& otherwise,
                    const Texts& outputs = {"y"}) {
  return node("If", {condition}, outputs, {branch("then_branch", then), branch("else_branch", otherwise)});
}
std::string truth(const std::string& name, bool yes, const Dims& dims = {}) {
  return tensor(name, kBool, dims, std::string(1, yes ? '\1' : '\0'));
}

const std::string kNegative = graph_of({node("Neg", {"x"}, {"t"})}, {"t"});
const std::string kTwice = graph_of({node("Add", {"x", "x"}, {"t"})}, {"t"});  // with the same name inside
const std::vector<float> kIn = {-1, 3, 2, -4, 5, 6}, kNegated = {1, -3, -2, 4, -5, -6},
                         kDoubled = {-2, 6, 4, -8, 10, 12};

TEST(Branches, AConstantConditionTakesOne) {
  for (const bool yes : {true, false}) {
    for (const Dims& dims : {Dims{}, Dims{1}}) {
      const Parts parts{.nodes = {if_node("c", kNegative, kTwice)}, .constants = {truth("c", yes, dims)}};
      EXPECT_EQ(run(parts, kIn), yes ? kNegated : kDoubled);
    }
  }
}

// As PyTorch writes a squeeze of a dimension that may not be 1.
TEST(Branches, AConditionMayFollowFromSizes) {
  for (const int64_t wanted : {1, 2}) {
    const Parts parts{.nodes = {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "first"}, {"d"}),
                                node("Equal", {"d", "wanted"}, {"c"}),
                                if_node("c", graph_of({node("Squeeze", {"x", "axes"}, {"t"})}, {"t"}),
                                        graph_of({node("Identity", {"x"}, {"t"})}, {"t"}))},
                      .constants = {int64s("first", {0}), int64s("wanted", {wanted}), int64s("axes", {0})}};
    EXPECT_EQ(run(parts, kIn), kIn);
    const auto graph = import(file(parts), "m");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_EQ(graph->tensor(graph->outputs[0]).shape.rank(), wanted == 1 ? 2 : 3);
  }
}

TEST(Branches, ReadTheValuesOutside) {
  const std::string inner =
      if_node("no", kNegative, graph_of({node("Add", {"a", "k"}, {"t"})}, {"t"}, {floats("k", {1}, {1})}), {"inner"});
  const Parts parts{.nodes = {node("Add", {"x", "x"}, {"a"}), if_node("c", graph_of({inner}, {"inner"}), kTwice, {"u"}),
                              node("Neg", {"u"}, {"t"}), node("Identity", {"t"}, {"y"})},
                    .constants = {truth("c", true), truth("no", false)}};
  EXPECT_EQ(run(parts, kIn), (std::vector<float>{1, -7, -5, 7, -11, -13}));
  const Parts outside{.nodes = {node("Neg", {"x"}, {"a"}), if_node("c", graph_of({}, {"a"}), kTwice)},
                      .constants = {truth("c", true)}};
  EXPECT_EQ(run(outside, kIn), kNegated);
}

TEST(Branches, SeveralResults) {
  const std::string both = graph_of({node("Neg", {"x"}, {"t"}), node("Add", {"t", "t"}, {"u"})}, {"t", "u"});
  const Parts parts{.nodes = {if_node("c", both, both, {"p", "q"}), node("Sub", {"q", "p"}, {"y"})},
                    .constants = {truth("c", false)}};
  EXPECT_EQ(run(parts, kIn), kNegated);
  const Parts one{.nodes = {if_node("c", both, both, {"", "y"})}, .constants = {truth("c", false)}};
  EXPECT_EQ(run(one, kIn), (std::vector<float>{2, -6, -4, 8, -10, -12}));
}

// The reasons why nodes are left; or the error.
std::string left_of(const Parts& parts) {
  Texts left;
  const auto graph = import(file(parts), "m", {.left = &left});
  return graph.ok() ? fmt::format("{}", fmt::join(left, "; ")) : graph.error().message;
}

TEST(Branches, WhatCannotBeReplacedIsLeft) {
  const Texts yes = {truth("c", true)};
  const std::string left = "node 'n' If: operation If is not supported";
  const auto with = [&](const std::string& then) {
    return Parts{.nodes = {if_node("c", then, kTwice)}, .constants = yes};
  };
  EXPECT_EQ(left_of(with(kNegative)), "");
  EXPECT_EQ(
      left_of({.nodes = {if_node("c", kNegative, kTwice)}, .inputs = {value("x", {1, 2, 3}), value("c", {}, kBool)}}),
      left)
      << "not known before the run";
  EXPECT_EQ(left_of({.nodes = {if_node("c", kNegative, kTwice)}, .constants = {tensor("c", kBool, {2}, "\1\1")}}),
            left);
  EXPECT_EQ(left_of(with(graph_of({}, {}))), left) << "no result";
  EXPECT_EQ(left_of(with(graph_of({}, {"z"}))), left) << "a result that nothing computes";
  EXPECT_EQ(left_of(with(graph_of({node("Neg", {"z"}, {"t"})}, {"t"}))), left);
  EXPECT_EQ(left_of(with(graph_of({node("Neg", {"x"}, {"x"})}, {"x"}))), left) << "computed twice";
  EXPECT_EQ(left_of(with(graph_of({node("Neg", {"x"}, {"t"})}, {"t"}, {}, {"i"}))), left) << "with an input";
  EXPECT_EQ(left_of({.nodes = {node("If", {"c"}, {"y"}, {branch("else_branch", kTwice)})}, .constants = yes}), left);
  EXPECT_EQ(left_of({.nodes = {node("If", {"c"}, {"y"})}, .constants = yes}), left);
}

TEST(Branches, NamesInsideAreNotKnownOutside) {
  const Parts parts{.nodes = {if_node("c", kNegative, kTwice, {"u"}), node("Neg", {"t"}, {"y"})},
                    .constants = {truth("c", true)}};
  EXPECT_EQ(left_of(parts), "model 'm': node 'n' Neg: it reads 't', which no earlier node computes");
}

TEST(Branches, DepthHasALimit) {
  for (const int depth : {8, 9}) {
    std::string graph = kNegative;
    for (int i = 1; i < depth; ++i) graph = graph_of({if_node("c", graph, kTwice, {"t"})}, {"t"});
    const std::string left = left_of({.nodes = {if_node("c", graph, kTwice)}, .constants = {truth("c", true)}});
    EXPECT_EQ(left.empty(), depth == 8) << left;
  }
}

}  // namespace
}  // namespace skillet::onnx
