#include <gtest/gtest.h>

#include "graph/import/import.h"
#include "graph/import/rewrite_file.h"
#include "graph/import/testing/json_file.h"
#include "graph/ref/ref.h"

namespace skillet::tflite {
namespace {

// Subgraph 0 calls others: CALLER is its operations. Tensors: 0 x, 1 and 2 results of floats, 3 and 4 of counters, 5
// and 6 constants of int32 (0 and 3), 7 a boolean input, 8 constant true, 9 an int32 input, 10 a float result. Subgraph
// 1: condition `i < 3` of (i, x). Subgraph 2: body (i + 1, x + x). 3: tanh(x); 4: -x; 5: what `OTHER` says.
constexpr std::string_view kCaller = R"({
  version: 3,
  operator_codes: [
    {deprecated_builtin_code: 119, builtin_code: 119}, {deprecated_builtin_code: 118, builtin_code: 118},
    {deprecated_builtin_code: 31, builtin_code: 31}, {deprecated_builtin_code: 127, builtin_code: 206},
    {deprecated_builtin_code: 58, builtin_code: 58}, {deprecated_builtin_code: 0, builtin_code: 0},
    {deprecated_builtin_code: 28, builtin_code: 28}, {deprecated_builtin_code: 59, builtin_code: 59},
    {deprecated_builtin_code: 32, custom_code: "Mystery"}],
  buffers: [{}, {data: [0, 0, 0, 0]}, {data: [3, 0, 0, 0]}, {data: [1, 0, 0, 0]}, {data: [1]}, {data: [0, 0, 0, 0, 0, 0, 0, 0]}],
  subgraphs: [{
    tensors: [{name: "x", shape: [2]}, {name: "y", shape: [2]}, {name: "z", shape: [2]},
              {name: "i", type: 2, shape: []}, {name: "j", type: 2, shape: []},
              {name: "zero", type: 2, shape: [], buffer: 1}, {name: "three", type: 2, shape: [], buffer: 2},
              {name: "p", type: 6, shape: []}, {name: "true", type: 6, shape: [], buffer: 4},
              {name: "n", type: 2, shape: []}, {name: "w", shape: [2]}],
    inputs: [0, 7, 9], outputs: [1], operators: [CALLER]
  }, {
    tensors: [{name: "i", type: 2, shape: []}, {name: "x", shape: [2]}, {name: "three", type: 2, shape: [], buffer: 2},
              {name: "less", type: 6, shape: []}],
    inputs: [0, 1], outputs: [3], operators: [{opcode_index: 4, inputs: [0, 2], outputs: [3]}]
  }, {
    tensors: [{name: "i", type: 2, shape: []}, {name: "x", shape: [2]}, {name: "one", type: 2, shape: [], buffer: 3},
              {name: "next", type: 2, shape: []}, {name: "twice", shape: [2]}],
    inputs: [0, 1], outputs: [3, 4],
    operators: [{opcode_index: 5, inputs: [0, 2], outputs: [3], builtin_options_type: "AddOptions", builtin_options: {}},
                {opcode_index: 5, inputs: [1, 1], outputs: [4], builtin_options_type: "AddOptions", builtin_options: {}}]
  }, {
    tensors: [{name: "a", shape: [2]}, {name: "tanh", shape: [2]}],
    inputs: [0], outputs: [1], operators: [{opcode_index: 6, inputs: [0], outputs: [1]}]
  }, {
    tensors: [{name: "a", shape: [2]}, {name: "negative", shape: [2]}],
    inputs: [0], outputs: [1], operators: [{opcode_index: 7, inputs: [0], outputs: [1]}]
  }, OTHER]
})";

// A subgraph of one operation `op`, from tensor 0 to tensor 1, both floats.
std::string subgraph_of(std::string_view op) {
  return fmt::format(R"({{tensors: [{{name: "a", shape: [2]}}, {{name: "b", shape: [2]}}], inputs: [0], outputs: [1],
    operators: [{}]}})",
                     op);
}

std::string loop(std::string_view inputs, std::string_view outputs, int condition = 1, int body = 2) {
  return fmt::format(R"({{opcode_index: 0, inputs: [{}], outputs: [{}], builtin_options_type: "WhileOptions",
    builtin_options: {{cond_subgraph_index: {}, body_subgraph_index: {}}}}})",
                     inputs, outputs, condition, body);
}
std::string branch(std::string_view inputs, int then = 3, int other = 4) {
  return fmt::format(R"({{opcode_index: 1, inputs: [{}], outputs: [1], builtin_options_type: "IfOptions",
    builtin_options: {{then_subgraph_index: {}, else_subgraph_index: {}}}}})",
                     inputs, then, other);
}
std::string call(std::string_view inputs, int subgraph) {
  return fmt::format(R"({{opcode_index: 2, inputs: [{}], outputs: [1], builtin_options_type: "CallOptions",
    builtin_options: {{subgraph: {}}}}})",
                     inputs, subgraph);
}
std::string composite(std::string_view inputs, int subgraph) {
  return fmt::format(R"({{opcode_index: 3, inputs: [{}], outputs: [1],
    builtin_options_2_type: "StableHLOCompositeOptions",
    builtin_options_2: {{name: "odml.x", decomposition_subgraph_index: {}}}}})",
                     inputs, subgraph);
}

Bytes file_with(std::string_view caller, std::string_view other = "{}") {
  std::string json(kCaller);
  json.replace(json.find("CALLER"), 6, caller);
  json.replace(json.find("OTHER"), 5, other);
  return file_of_json(json);
}

std::string ops_of(const ir::Graph& graph) {
  std::string out;
  for (const ir::Op& op : graph.ops) out += fmt::format("{}{}", out.empty() ? "" : " ", ir::op_name(op));
  return out;
}

// The operations of the model, or why it cannot be read; the file without calls has the same and gives the same graph.
std::string ops_read(std::string_view caller, std::string_view other = "{}") {
  const Bytes file = file_with(caller, other);
  const auto graph = import(file, "m");
  if (!graph) return graph.error().message;
  const auto flat = flat_file(file, *graph);
  if (!flat) return flat.error().message;
  const auto again = import(*flat, "m");
  if (!again) return "again: " + again.error().message;
  EXPECT_EQ(ops_of(*again), ops_of(*graph));
  return ops_of(*graph);
}

// The results for x = {0.5, -1} and p, of the graph and of the flat file.
std::vector<float> result_of(std::string_view caller, bool p, std::string_view other = "{}") {
  const Bytes file = file_with(caller, other);
  std::vector<std::vector<float>> results;
  auto graph = import(file, "m");
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  const auto flat = flat_file(file, *graph);
  EXPECT_TRUE(flat.ok()) << flat.error().message;
  for (const Bytes& one : {file, *flat}) {
    const auto read = import(one, "m");
    EXPECT_TRUE(read.ok()) << read.error().message;
    auto runs = ref::Interpreter::create(*read);
    EXPECT_TRUE(runs.ok()) << runs.error().message;
    store_le(runs->tensor(0).data(), 0.5F);
    store_le(&runs->tensor(0)[4], -1.0F);
    runs->tensor(7)[0] = p ? 1 : 0;
    EXPECT_TRUE(runs->run().ok());
    const auto out = runs->tensor(read->outputs[0]);
    results.push_back({load_le<float>(out.data()), load_le<float>(&out[4])});
  }
  EXPECT_EQ(results[0], results[1]);
  return results[0];
}

TEST(ControlFlow, LoopsOfAKnownNumberOfStepsAreTheirSteps) {
  EXPECT_EQ(ops_read(loop("5, 0", "3, 1")), "ADD ADD ADD");
  EXPECT_EQ(result_of(loop("5, 0", "3, 1"), false), (std::vector<float>{4, -8}));
  const auto graph = import(file_with(loop("5, 0", "3, 1")), "m");
  EXPECT_EQ(graph->tensor(graph->op(0).outputs[0]).name, "twice@0");
  EXPECT_EQ(graph->tensor(graph->op(2).outputs[0]).name, "y");
  for (size_t i = 0; i < graph->ops.size(); ++i) EXPECT_EQ(graph->ops[i].source_index, i);
  // No step: the result is the input, or, as an output of the graph, has its values.
  const std::string after = R"(, {opcode_index: 6, inputs: [2], outputs: [1]})";
  EXPECT_EQ(ops_read(loop("6, 0", "3, 2") + after), "TANH");
  // Two loops, the second reads the first one's results; and a result that is read twice.
  const std::string two = loop("5, 0", "3, 2") + "," + loop("5, 2", "4, 1");
  EXPECT_EQ(ops_read(two), "ADD ADD ADD ADD ADD ADD");
  EXPECT_EQ(result_of(two, false), (std::vector<float>{32, -64}));
}

// The body returns x + x twice.
TEST(ControlFlow, OneResultMayBeSeveral) {
  const std::string twice = R"({tensors: [{name: "a", shape: [2]}, {name: "b", shape: [2]}, {name: "sum", shape: [2]}],
    inputs: [0, 1], outputs: [2, 2],
    operators: [{opcode_index: 5, inputs: [0, 1], outputs: [2], builtin_options_type: "AddOptions", builtin_options: {}}]})";
  const std::string both = R"({opcode_index: 2, inputs: [0, 0], outputs: [2, 10], builtin_options_type: "CallOptions",
    builtin_options: {subgraph: 5}}, {opcode_index: 5, inputs: [2, 10], outputs: [1], builtin_options_type: "AddOptions",
    builtin_options: {}})";
  EXPECT_EQ(ops_read(both, twice), "ADD ADD");
  EXPECT_EQ(result_of(both, false, twice), (std::vector<float>{2, -4}));
}

TEST(ControlFlow, BranchesAreTheOneThatIsTakenOrBoth) {
  EXPECT_EQ(ops_read(branch("8, 0")), "TANH");
  EXPECT_EQ(ops_read(branch("7, 0")), "TANH NEG SELECT_V2");
  EXPECT_EQ(result_of(branch("7, 0"), true)[1], std::tanh(-1.0F));
  EXPECT_EQ(result_of(branch("7, 0"), false), (std::vector<float>{-0.5, 1}));
  EXPECT_EQ(ops_read(branch("7, 0", 3, 3)), "TANH TANH SELECT_V2");
}

TEST(ControlFlow, CallsAndCompositesAreWhatTheyRun) {
  EXPECT_EQ(ops_read(call("0", 4)), "NEG");
  EXPECT_EQ(ops_read(composite("0", 3)), "TANH");
  EXPECT_EQ(ops_read(composite("0", 5), subgraph_of(branch("7, 0"))), "STABLEHLO_COMPOSITE") << "7 is no tensor there";
  EXPECT_EQ(ops_read(call("0", 5), subgraph_of(call("0", 3))), "TANH") << "a call within a call";
  EXPECT_EQ(result_of(call("0", 5), false, subgraph_of(call("0", 4))), (std::vector<float>{-0.5, 1}));
}

TEST(ControlFlow, WhatCannotBeReplacedStaysAsItIs) {
  // The number of steps depends on an input; the caller's other operations stay, too.
  const std::string before = R"({opcode_index: 6, inputs: [0], outputs: [2]}, )";
  EXPECT_EQ(ops_read(before + loop("9, 2", "3, 1")), "TANH WHILE");
  EXPECT_EQ(ops_read(loop("5, 0", "3, 2") + "," + loop("9, 2", "4, 1")), "ADD ADD ADD WHILE");
  EXPECT_EQ(ops_read(loop("5", "1")), "WHILE") << "fewer values than the body takes";
  EXPECT_EQ(ops_read(loop("0, 0", "3, 1")), "WHILE") << "a float as counter";
  EXPECT_EQ(ops_read(loop("5, 0", "3, 1", 3, 2)), "WHILE") << "a condition with one input";
  EXPECT_EQ(ops_read(loop("5, 0", "3, 1", 2, 2)), "WHILE") << "a condition with two results";
  EXPECT_EQ(ops_read(loop("5, 0", "3, 1", 1, 1)), "WHILE") << "a body with one result";
  EXPECT_EQ(ops_read(branch("0, 0")), "IF") << "no boolean";
  EXPECT_EQ(ops_read(branch("7")), "IF");
  EXPECT_EQ(ops_read(branch("7, 0", 3, 1)), "IF");
  EXPECT_EQ(ops_read(call("0", 5), subgraph_of(call("0", 5))), "CALL") << "calls itself";
  EXPECT_EQ(ops_read(call("0", 5), subgraph_of(R"({opcode_index: 8, inputs: [0], outputs: [1]})")), "CALL");
  EXPECT_EQ(ops_read(call("0", 5), "{}"), "CALL") << "an empty subgraph";
  const std::string state = R"({tensors: [{name: "a", shape: [2]}, {name: "b", shape: [2], is_variable: true}],
    inputs: [0], outputs: [0], operators: []})";
  EXPECT_EQ(ops_read(call("0", 5), state), "CALL");
}

TEST(ControlFlow, EndlessLoopsEnd) {
  const std::string forever = R"({tensors: [{name: "i", type: 2, shape: []}, {name: "x", shape: [2]},
    {name: "true", type: 6, shape: [], buffer: 4}], inputs: [0, 1], outputs: [2], operators: []})";
  EXPECT_EQ(ops_read(loop("5, 0", "3, 1", 5, 2), forever), "WHILE");
  const std::string same = R"({tensors: [{name: "i", type: 2, shape: []}, {name: "x", shape: [2]}],
    inputs: [0, 1], outputs: [0, 1], operators: []})";
  EXPECT_EQ(ops_read(loop("5, 0", "3, 1", 1, 5), same), "WHILE") << "the counter never grows";
}

TEST(ControlFlow, SubgraphsThatTheFileDoesNotHaveAreErrors) {
  const std::string bad = "model 'm': op 0 ";
  for (const int index : {-1, 0, 6, 2147483647}) {
    const std::string why = fmt::format("subgraph {} of 6", index);
    EXPECT_EQ(ops_read(loop("5, 0", "3, 1", index)), bad + "WHILE: " + why);
    EXPECT_EQ(ops_read(loop("5, 0", "3, 1", 1, index)), bad + "WHILE: " + why);
    EXPECT_EQ(ops_read(branch("7, 0", 3, index)), bad + "IF: " + why);
    EXPECT_EQ(ops_read(composite("0", index)), bad + "STABLEHLO_COMPOSITE: " + why);
  }
  EXPECT_EQ(ops_read(call("0", 6)), bad + "CALL: subgraph 6 of 6");
  const std::string inner = subgraph_of(call("0", 7));
  EXPECT_EQ(ops_read(call("0", 5), inner), "CALL") << "in a subgraph: the caller stays as it is";
}

}  // namespace
}  // namespace skillet::tflite
