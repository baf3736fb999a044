#include "graph/passes/passes.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "graph/passes/rewrite.h"
#include "graph/passes/testing/digests.h"
#include "graph/passes/testing/letters.h"

namespace skillet::passes {
namespace {

// "N[de] in:ab out:e | C[f]": the parts by the letters of the ops' outputs.
std::string parts_of(const Letters& letters) {
  const AddMulDriver driver;
  const ir::Graph& graph = letters.graph;
  std::string out;
  for (const Partition& part : partition(graph, supports(graph, {&driver, {}}))) {
    out += out.empty() ? "" : " | ";
    out += part.on_npu ? "N[" : "C[";
    for (const ir::OpId op : part.op_map) out += graph.tensor(graph.op(op).outputs[0]).name;
    out += "]";
    if (!part.on_npu) continue;
    out +=
        " in:" + letters.names(part.graph, part.graph.inputs) + " out:" + letters.names(part.graph, part.graph.outputs);
    EXPECT_TRUE(ir::verify(part.graph).ok()) << ir::verify(part.graph).error().message;
    EXPECT_EQ(part.graph.ops.size(), part.op_map.size());
    for (size_t i = 0; i < part.tensor_map.size(); ++i)
      EXPECT_EQ(part.graph.tensors[i].name, graph.tensor(part.tensor_map[i]).name);
  }
  return out;
}

TEST(Partition, DividesByDataFlow) {
  const struct {
    Letters graph;
    const char* parts;
  } kRows[] = {
      {{"ab", {"c=add(a,b)", "d=mul(c,c)"}, "d"}, "N[cd] in:ab out:d"},
      {{"a", {"c=relu(a)"}, "c"}, "C[c]"},
      {{"a", {"c=relu(a)", "d=add(c,K)", "e=relu(d)"}, "e"}, "C[c] | N[d] in:c out:d | C[e]"},
      // c and e cannot share a part: d is on a path between them.
      {{"ab", {"c=add(a,b)", "d=relu(c)", "e=add(c,d)"}, "e"}, "N[c] in:ab out:c | C[d] | N[e] in:cd out:e"},
      // Independent branches share parts.
      {{"ab", {"c=add(a,a)", "d=relu(b)", "e=mul(b,b)", "f=add(d,e)"}, "cf"}, "C[d] | N[cef] in:abd out:cf"},
      // An intermediate result that the graph also returns.
      {{"a", {"c=add(a,a)", "d=add(c,c)"}, "cd"}, "N[cd] in:a out:cd"},
      // Tensors that are read inside and outside the part.
      {{"a", {"c=add(a,a)", "d=add(c,c)", "e=relu(c)", "f=relu(d)"}, "ef"}, "N[cd] in:a out:cd | C[ef]"},
      {{"a", {}, "a"}, ""},
  };
  for (const auto& row : kRows) EXPECT_EQ(parts_of(row.graph), row.parts);
}

TEST(Partition, OperationsThatStandAloneHaveAPartEach) {
  const Letters chain{"a", {"c=add(a,a)", "d=add(c,c)", "e=relu(d)", "f=add(d,e)"}, "f"};
  const AddMulDriver driver;
  std::vector<npu::Support> support = supports(chain.graph, {&driver, {}});
  support[0].alone = support[1].alone = true;
  std::vector<size_t> on_npu;
  for (const Partition& part : partition(chain.graph, support)) {
    if (part.on_npu) on_npu.push_back(part.op_map.size());
  }
  EXPECT_EQ(on_npu, (std::vector<size_t>{1, 1, 1}));
}

// Every part needs only results of earlier parts, and returns what later parts need; the number of parts is unchanged.
TEST(Partition, OfRandomGraphs) {
  std::mt19937 random(3);
  std::string text;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> lines;
    const size_t count = 1 + random() % 12;
    for (size_t i = 0; i < count; ++i) {
      const char a = static_cast<char>('a' + random() % (2 + i)), b = static_cast<char>('a' + random() % (2 + i));
      const char to = static_cast<char>('c' + i);
      lines.push_back(random() % 3 == 0 ? fmt::format("{}=relu({})", to, a) : fmt::format("{}=add({},{})", to, a, b));
    }
    std::string outputs(1, static_cast<char>('c' + count - 1));
    if (random() % 2 == 0) outputs += static_cast<char>('c' + random() % count);
    const Letters letters("ab", {lines.begin(), lines.end()}, outputs);
    std::set<ir::TensorId> known(letters.graph.inputs.begin(), letters.graph.inputs.end());
    const AddMulDriver driver;
    for (const Partition& part : partition(letters.graph, supports(letters.graph, {&driver, {}}))) {
      for (const ir::OpId op : part.op_map) {
        for (const ir::TensorId id : letters.graph.op(op).inputs) EXPECT_TRUE(known.contains(id)) << round;
        known.insert(letters.graph.op(op).outputs[0]);
      }
    }
    EXPECT_EQ(known.size(), 2 + count);
    text += parts_of(letters) + "\n";
  }
  EXPECT_EQ(fmt::format("{:016x}", digest(text)), "6d10c573b9804076") << text.substr(0, 1000);
}

TEST(Partition, VariablesStayOnTheCpuInOrder) {
  Letters letters("a", {"v=add(a,a)", "c=add(a,a)", "d=relu(v)"}, "cd");
  letters.graph.tensor(letters.id('v')).is_variable = true;
  EXPECT_EQ(parts_of(letters), "C[vd] | N[c] in:a out:c");
}

// The reader of the old value waits for the NPU; the writer of the new one could run at once.
TEST(Partition, AVariableIsReadBeforeItIsWritten) {
  Letters letters("a", {"b=add(a,a)", "r=add(b,v)", "v=relu(a)"}, "r");
  letters.graph.tensor(letters.id('v')).is_variable = true;
  EXPECT_EQ(parts_of(letters), "N[b] in:a out:b | C[rv]");
}

TEST(Partition, WithoutDriverEverythingIsOneCpuPart) {
  const Letters letters("ab", {"c=add(a,b)", "d=relu(c)"}, "d");
  const auto parts = partition(letters.graph, supports(letters.graph, {}));
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_FALSE(parts[0].on_npu);
}

TEST(Pipeline, RemovesDeadOps) {
  Letters letters("ab", {"c=add(a,b)", "x=add(a,a)", "y=relu(x)", "d=relu(c)"}, "d");
  ASSERT_TRUE(run_pipeline(letters.graph, {}).ok());
  std::string left;
  for (const ir::Op& op : letters.graph.ops) left += letters.graph.tensor(op.outputs[0]).name;
  EXPECT_EQ(left, "cd");
}

// A part of an ONNX file that nobody knows, with a constant as its first input, has no tensor for it.
TEST(Pipeline, KeepsOpaqueOpsWithoutInputs) {
  const AddMulDriver driver;
  for (const bool second : {false, true}) {
    Letters letters("ab", {"c=relu(a)", "d=add(c,b)"}, "d");
    ir::Op& op = letters.graph.ops[0];
    op.kind = ir::OpKind::opaque, op.opaque_name = "Slice", op.attrs = ir::default_attrs(ir::OpKind::opaque);
    op.inputs = {ir::kNoTensor};
    if (second) op.inputs.push_back(letters.id('a'));
    const std::string before = ir::print(letters.graph);
    std::vector<Rewrite> rewrites;
    Target target{&driver, {}};
    target.rewrites = &rewrites;
    const auto run = run_pipeline(letters.graph, target);
    ASSERT_TRUE(run.ok()) << run.error().message;
    EXPECT_EQ(ir::print(letters.graph), before);
    std::vector<ir::OpId> matched;
    Rewriter(letters.graph, target, "test").for_each_op([&](ir::OpId id) { matched.push_back(id); });
    EXPECT_EQ(matched, std::vector<ir::OpId>{1});
  }
}

// Golden text: the graph before and after all passes.
TEST(Pipeline, TextBeforeAndAfter) {
  constexpr std::string_view kTensors =
      "graph \"golden\"\n"
      "tensor 0 \"in\" uint8 1x2x2x1 scale=0.5 zero=3\n"
      "tensor 1 \"used\" uint8 1x2x2x1 scale=0.5 zero=3\n"
      "tensor 2 \"unused\" uint8 1x2x2x1 scale=0.5 zero=3\n"
      "tensor 3 \"out\" uint8 1x2x2x1 scale=0.5 zero=3\n"
      "inputs 0\n"
      "outputs 3\n";
  const std::string before = std::string(kTensors) +
                             "op 0 RELU in=[0] out=[1]\n"
                             "op 1 RELU6 in=[1] out=[2]\n"
                             "op 2 RELU in=[1] out=[3]\n";
  auto graph = ir::parse(before);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  ASSERT_TRUE(run_pipeline(*graph, {}).ok());
  EXPECT_EQ(ir::print(*graph), std::string(kTensors) +
                                   "op 0 RELU in=[0] out=[1]\n"
                                   "op 1 RELU in=[1] out=[3] source=2\n");
}

TEST(Pipeline, KeepsWhatUpdatesAVariable) {
  Letters letters("ab", {"v=add(a,b)", "d=relu(a)"}, "d");
  letters.graph.tensor(letters.id('v')).is_variable = true;
  ASSERT_TRUE(run_pipeline(letters.graph, {}).ok());
  EXPECT_EQ(letters.graph.ops.size(), 2u);
}

TEST(Pipeline, RefusesABrokenGraph) {
  Letters letters("ab", {"c=add(a,b)"}, "c");
  letters.graph.ops[0].inputs[1] = 99;
  EXPECT_FALSE(run_pipeline(letters.graph, {}).ok());
}

}  // namespace
}  // namespace skillet::passes
