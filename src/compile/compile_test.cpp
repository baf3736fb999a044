#include "compile/compile.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>

#include "compile/advice.h"
#include "compile/report.h"
#include "graph/passes/testing/letters.h"

namespace skillet::compile {
namespace {

using passes::Letters;

// Takes all ops except RELU; its compiler refuses ops chosen by the test.
class PickyDriver : public passes::AddMulDriver {
 public:
  std::map<std::string, npu::MadeConstants> made;  // by name of the tensor that is computed
  std::set<std::string> bad;                       // names of tensors whose ops do not compile
  size_t max_ops = SIZE_MAX;                       // of one program
  bool wrong_options = false;
  mutable int compiled = 0;

  npu::Support supports(const npu::Chip&, const ir::Graph& graph, ir::OpId op) const override {
    if (graph.op(op).kind == ir::OpKind::relu) return npu::Support::no(npu::Remedy::none, "no RELU");
    if (graph.op(op).kind == ir::OpKind::byte_table) return npu::Support::no(npu::Remedy::none, "no tables");
    return graph.op(op).kind == ir::OpKind::mul ? npu::Support::yes_unproven("MUL is new") : npu::Support::yes();
  }
  npu::MadeConstants made_constants(const npu::Chip&, const ir::Graph& graph, ir::OpId op) const override {
    const auto at = made.find(graph.tensor(graph.op(op).outputs[0]).name);
    return at == made.end() ? npu::MadeConstants{} : at->second;
  }
  Result<npu::Program> compile(const npu::Chip&, const ir::Graph& graph, const npu::CompileOptions&) const override {
    ++compiled;
    EXPECT_TRUE(ir::verify(graph).ok()) << ir::verify(graph).error().message;
    if (wrong_options) return error(ErrorCode::invalid_argument, "no switch 'x'");
    if (graph.ops.size() > max_ops) return error(ErrorCode::unsupported, "{} ops are too many", graph.ops.size());
    npu::Program program;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      const std::string& name = graph.tensor(graph.ops[i].outputs[0]).name;
      if (bad.contains(name)) return error(ErrorCode::out_of_range, "{} does not fit", name);
      program.operations.push_back({static_cast<ir::OpId>(i), name, 1000});
    }
    return program;
  }
};

// Like a chip with one scale for all weights of an operation.
class OneScaleDriver : public PickyDriver {
 public:
  npu::Support supports(const npu::Chip&, const ir::Graph& graph, ir::OpId op) const override {
    if (graph.tensor(graph.op(op).input(1)).quant.scales.size() > 1)
      return npu::Support::no(npu::Remedy::share_scales, "too many scales");
    return npu::Support::yes();
  }
};

// "N[cd] C[e]", and a line for each op that has a reason.
std::string text_of(const Compiled& compiled) {
  std::string out, reasons;
  for (const Part& part : compiled.parts) {
    out += out.empty() ? "" : " ";
    out += part.partition.on_npu ? "N[" : "C[";
    for (const ir::OpId op : part.partition.op_map) {
      const std::string& name = compiled.graph.tensor(compiled.graph.op(op).outputs[0]).name;
      const std::string& reason = compiled.ops[static_cast<size_t>(op)].reason;
      out += name;
      if (!reason.empty()) reasons += fmt::format("\n{}: {}", name, reason);
    }
    // The program is for these ops, not just for as many others.
    for (size_t i = 0; part.program && i < std::min(part.program->operations.size(), part.partition.op_map.size()); ++i)
      EXPECT_EQ(part.program->operations[i].kind,
                compiled.graph.tensor(compiled.graph.op(part.partition.op_map[i]).outputs[0]).name);
    out += "]";
    EXPECT_EQ(part.program.has_value(), part.partition.on_npu);
    EXPECT_EQ(part.program ? part.program->operations.size() : part.partition.op_map.size(),
              part.partition.op_map.size());
  }
  return out + reasons;
}

// Tests of the division: RELU must stay the op that the driver refuses.
const Options kAsTheyAre = {.rewrite = false};

std::string compiled(const Letters& letters, const PickyDriver& driver, const Options& options = kAsTheyAre) {
  auto result = compile(letters.graph, {&driver, {}}, options);
  return result.ok() ? text_of(*result) : result.error().message;
}

TEST(Compile, LeavesOutTheOpAtFaultAlone) {
  const Letters chain("a", {"c=add(a,a)", "d=add(c,c)", "e=add(d,d)", "f=add(e,c)"}, "f");
  const struct {
    std::set<std::string> bad;
    const char* text;
  } kRows[] = {
      {{}, "N[cdef]"},
      {{"c"}, "C[c] N[def]\nc: the compiler: c does not fit"},
      {{"d"}, "N[c] C[d] N[ef]\nd: the compiler: d does not fit"},
      {{"f"}, "N[cde] C[f]\nf: the compiler: f does not fit"},
      {{"c", "e"}, "C[c] N[d] C[e] N[f]\nc: the compiler: c does not fit\ne: the compiler: e does not fit"},
      {{"c", "d", "e", "f"},
       "C[cdef]\nc: the compiler: c does not fit\nd: the compiler: d does not fit\ne: the compiler: e does not fit\n"
       "f: the compiler: f does not fit"},
  };
  for (const auto& row : kRows) {
    PickyDriver driver;
    driver.bad = row.bad;
    EXPECT_EQ(compiled(chain, driver), row.text);
  }
}

// 64 MiB, plus 64 times the model's constants: here none, or the 16 bytes of K.
TEST(Compile, BoundsTheConstantsOfAllOps) {
  constexpr uint64_t kAlways = 64ULL << 20;
  const std::vector<std::string_view> kOps = {"c=add(a,a)", "d=add(c,c)", "e=add(d,d)"};
  const Letters chain("a", kOps, "e"), with_constant("a", {"c=add(a,K)", "d=add(c,c)", "e=add(d,d)"}, "e");
  const auto refused = [](uint64_t bytes, uint64_t others, uint64_t own, uint64_t limit) {
    return fmt::format(
        "\nd: its constants take {} bytes in the NPU's format, besides {} of others; a model with {} bytes of "
        "constants may take {}",
        bytes, others, own, limit);
  };
  PickyDriver driver;
  driver.made = {{"c", {kAlways, ""}}};
  EXPECT_EQ(compiled(chain, driver), "N[cde]");
  driver.made["d"] = {1, ""};
  EXPECT_EQ(compiled(chain, driver), "N[c] C[d] N[e]" + refused(1, kAlways, 0, kAlways));
  driver.made["d"] = {64 * 16, ""};
  EXPECT_EQ(compiled(with_constant, driver), "N[cde]");
  driver.made["d"] = {64 * 16 + 1, ""};
  EXPECT_EQ(compiled(with_constant, driver), "N[c] C[d] N[e]" + refused(64 * 16 + 1, kAlways, 16, kAlways + 64 * 16));
  driver.made = {{"c", {kAlways, "same"}}, {"d", {kAlways, "same"}}, {"e", {kAlways, "same"}}};
  EXPECT_EQ(compiled(chain, driver), "N[cde]") << "they are there once";
  driver.made = {{"d", {UINT64_MAX, ""}}, {"e", {kAlways, ""}}};
  EXPECT_EQ(compiled(chain, driver), "N[c] C[d] N[e]" + refused(UINT64_MAX, 0, 0, kAlways)) << "what fits stays";
}

// No op is at fault alone: the last one of the shortest prefix is left out, and the rest compiles.
TEST(Compile, DividesPartsThatAreTooLarge) {
  const Letters chain("a", {"c=add(a,a)", "d=add(c,c)", "e=add(d,d)", "f=add(e,e)"}, "f");
  PickyDriver driver;
  driver.max_ops = 2;
  EXPECT_EQ(compiled(chain, driver), "N[cd] C[e] N[f]\ne: the compiler: 3 ops are too many");
}

TEST(Compile, FindsAllOpsAtFaultInRandomGraphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::string letters = "abcdefghijklmnopqrstuvwxyz";
    std::vector<std::string> lines;
    PickyDriver driver;
    for (size_t i = 2; i < 2 + 1 + random() % 20; ++i) {
      const char* kind = random() % 4 == 0 ? "relu" : "add";
      lines.push_back(fmt::format("{}={}({}{}", letters[i], kind, letters[random() % i],
                                  kind[0] == 'r' ? std::string(")") : fmt::format(",{})", letters[random() % i])));
      if (random() % 5 == 0) driver.bad.insert(std::string(1, letters[i]));
    }
    const Letters graph("ab", {lines.begin(), lines.end()}, letters.substr(2, lines.size()));
    const auto result = compile(graph.graph, {&driver, {}}, kAsTheyAre);
    ASSERT_TRUE(result.ok()) << result.error().message;
    for (size_t i = 0; i < result->ops.size(); ++i) {
      const ir::Op& op = result->graph.ops[i];
      const std::string& name = result->graph.tensor(op.outputs[0]).name;
      EXPECT_EQ(result->ops[i].on_npu, op.kind == ir::OpKind::add && !driver.bad.contains(name)) << text_of(*result);
    }
  }
}

TEST(Compile, IsBoundedWhenNothingCompiles) {
  ir::Graph graph = Letters("a", {"c=add(a,a)"}, "c").graph;
  for (int i = 0; i < 3000; ++i) {
    ir::Tensor next = graph.tensor(graph.outputs[0]);
    next.name = fmt::format("t{}", i);
    const ir::TensorId id = graph.add_tensor(next);
    ir::Op op = graph.ops[0];
    op.inputs = {graph.outputs[0], graph.outputs[0]};
    op.outputs = {id};
    graph.add_op(std::move(op));
    graph.outputs = {id};
  }
  PickyDriver driver;
  driver.max_ops = 0;
  ::testing::internal::CaptureStderr();
  const auto result = compile(graph, {&driver, {}}, {});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("and 2936 more runs on the CPU: 2937 ops are too many"), std::string::npos) << said;
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->parts.size(), 1u);
  EXPECT_FALSE(result->parts[0].partition.on_npu);
  EXPECT_EQ(result->ops.back().reason, "the compiler: 2937 ops are too many");
  EXPECT_LT(driver.compiled, 64 * 14);
}

// Unchanged parts are compiled only once.
TEST(Compile, KeepsProgramsOfOtherParts) {
  const Letters letters("a", {"c=add(a,a)", "d=relu(c)", "e=add(d,d)", "f=add(e,e)", "g=relu(f)", "h=add(g,g)"}, "h");
  PickyDriver driver;
  driver.bad = {"f"};
  EXPECT_EQ(compiled(letters, driver),
            "N[c] C[d] N[e] C[fg] N[h]\nd: no RELU\nf: the compiler: f does not fit\ng: no RELU");
  EXPECT_EQ(driver.compiled, 3 + 1 + 1) << "three parts, a search of one step, the one that changed";
}

TEST(Compile, ErrorsWhenNothingMayBeLeftOut) {
  const Letters letters("a", {"c=add(a,a)", "d=relu(c)", "e=add(d,d)"}, "e");
  PickyDriver driver;
  driver.bad = {"e"};
  EXPECT_EQ(compiled(letters, driver, {.rewrite = false, .leave_out = false}), "part 2 (1 ops): e does not fit");
  driver.wrong_options = true;
  EXPECT_EQ(compiled(letters, driver), "no switch 'x'") << "no op's fault";
}

TEST(Compile, TakesUnprovenOpsWhenTold) {
  const Letters letters("a", {"c=add(a,a)", "d=mul(c,c)"}, "d");
  const PickyDriver driver;
  EXPECT_EQ(compiled(letters, driver, {.driver = {.unproven = npu::Unproven::refuse}}),
            "N[c] C[d]\nd: MUL is new (unproven on silicon, unproven=refuse)");
  EXPECT_EQ(compiled(letters, driver, {.driver = {.unproven = npu::Unproven::take}}), "N[cd]\nd: MUL is new");
}

// Every tensor has 16 bytes. Computes the product of `op`'s 16 inputs and a 16 x 16 matrix: 256 multiply-accumulates
// for 32 bytes.
void make_product(ir::Graph& graph, ir::Op& op) {
  op.kind = ir::OpKind::fully_connected;
  op.attrs = ir::default_attrs(op.kind);
  ir::Tensor& matrix = graph.tensor(op.input(1));
  matrix.shape = {16, 16};
  ir::set_constant(matrix, Bytes(256, 7));
  graph.tensor(op.outputs[0]).shape = {1, 16};
}

// The network's own work is counted: a chip may compute an addition as a convolution.
TEST(Compile, LeavesToTheCpuWhatIsNotWorthTheWay) {
  Letters letters("a", {"c=add(a,a)", "d=relu(c)", "e=same(d)", "f=relu(e)", "g=mul(f,W)"}, "g");
  make_product(letters.graph, letters.graph.ops[4]);
  PickyDriver driver;
  EXPECT_EQ(compiled(letters, driver), "N[c] C[d] N[e] C[f] N[g]\nd: no RELU\nf: no RELU");
  EXPECT_EQ(compiled(letters, driver, {.min_macs_per_byte = 8, .rewrite = false}),
            "C[cdef] N[g]\nc: its partition does 0 multiply-accumulates and moves 32 bytes, less than "
            "min_macs_per_byte=8\nd: no RELU\ne: its partition would only move data: the NPU would compute nothing\n"
            "f: no RELU");
  const std::string none = compiled(letters, driver, {.min_macs_per_byte = 9, .rewrite = false});
  EXPECT_TRUE(none.starts_with("C[cdefg]\n")) << none;
  EXPECT_TRUE(
      none.ends_with("g: its partition does 256 multiply-accumulates and moves 32 bytes, less than "
                     "min_macs_per_byte=9"))
      << none;
}

TEST(Advice, ReasonsAreGroupedWithoutNames) {
  ir::Graph graph;
  for (const char* const name : {"a", "a/b;c", "it's", "a' and 'b", "b", "chip's"})
    graph.tensors.push_back({.name = name});
  graph.ops.push_back({.kind = ir::OpKind::add, .inputs = {0, 0}, .outputs = {3}});
  const std::pair<const char*, const char*> cases[] = {
      {"filter 'a/b;c' is quantized per channel; the chip has one",
       "filter is quantized per channel; the chip has one"},
      {"'a' is float32", "a tensor is float32"},
      {"the size depends on values of 'a', which is odd", "the size depends on values of a tensor, which is odd"},
      {"goes from 'a' to 'b'", "goes from a tensor to a tensor"},
      {"'it's' is float32", "a tensor is float32"},
      {"'a' and 'b' is float32", "a tensor is float32"},  // one name
      {"'b' and 'a' differ", "a tensor and another differ"},
      {"the chip's driver wants 'chip's'", "the chip's driver wants"},
      {"no such; 'a' is odd", "no such; a tensor is odd"},
      {"op 0 ADD -> 'a' and 'b': no kernel", "no kernel"},
      {"odd; op 0 ADD -> 'a' and 'b': no kernel", "odd; no kernel"},
      {"it's odd, isn't it", "it's odd, isn't it"},
      {"'nobody' is odd", "'nobody' is odd"},
  };
  for (const auto& [reason, plain] : cases) EXPECT_EQ(without_names(reason, graph, 0), plain);
  const OpRow rows[] = {{.why = "no RELU"},
                        {.why = "filter 'a' is odd", .plain = "filter is odd"},
                        {.on_npu = true, .why = "unproven: x"},
                        {.why = "filter 'b' is odd", .plain = "filter is odd"},
                        {.why = "filter 'c' is odd", .plain = "filter is odd"},
                        {.why = "shape 1x2x3 of int8 CONV_2D"},
                        {.why = "shape 4 of int8 CONV_2D"},
                        {.why = "shape 4 of int16 CONV_2D"},
                        {.why = "shape 4 of int8 CONV_2D", .remedy = npu::Remedy::fold},
                        {.why = ""}};
  const auto groups = group_reasons(rows);
  ASSERT_EQ(groups.size(), 5U);
  EXPECT_EQ(groups[0].reason, "filter is odd");
  EXPECT_EQ(groups[0].ops, 3U);
  EXPECT_EQ(groups[1].reason, "shape 1x2x3 of int8 CONV_2D (other numbers in 1 of them)");
  EXPECT_EQ(groups[1].ops, 2U);
  EXPECT_EQ(groups[2].reason, "no RELU");
}

TEST(Advice, SaysHowToQuantize) {
  struct Case {
    ir::DType weights, result;
    std::vector<float> scales;
    const char* words;
    const npu::Driver* driver = nullptr;
  };
  const OneScaleDriver coarse;
  const PickyDriver fine;             // takes any scales
  const passes::AddMulDriver no_fcs;  // takes no fully connected ops, with any scales
  const Case cases[] = {
      {ir::DType::float32, ir::DType::float32, {}, "is not quantized"},
      {ir::DType::int8, ir::DType::float32, {0.5F}, "only the weights"},
      {ir::DType::int8, ir::DType::int16, {0.5F}, "16-bit activations"},
      {ir::DType::int8, ir::DType::int16, {0.5F}, "", &fine},
      {ir::DType::int8, ir::DType::int8, {0.5F, 0.25F}, "1 of 1 operations with weights have a scale", &coarse},
      {ir::DType::int8, ir::DType::int8, {0.5F, 0.25F}, "", &fine},
      {ir::DType::int8, ir::DType::int8, {0.5F, 0.25F}, "", &no_fcs},
      {ir::DType::int8, ir::DType::int8, {0.5F, 0.25F}, ""},
      {ir::DType::int8, ir::DType::int8, {0.5F, 0.5F}, "", &coarse},
      {ir::DType::uint8, ir::DType::uint8, {0.5F}, ""}};
  for (const Case& c : cases) {
    Letters letters("a", {"c=mul(a,W)"}, "c");
    letters.graph.ops[0].kind = ir::OpKind::fully_connected;
    letters.graph.tensor(letters.id('W')).dtype = c.weights;
    letters.graph.tensor(letters.id('W')).quant.scales = c.scales;
    letters.graph.tensor(letters.id('W')).quant.zero_points.assign(c.scales.size(), 0);
    letters.graph.tensor(letters.id('c')).dtype = c.result;
    const std::string advice = quantization_advice(letters.graph, {c.driver, {}}, Words::tflite);
    EXPECT_NE(advice.find(c.words), std::string::npos) << advice;
    EXPECT_EQ(advice.empty(), std::string_view(c.words).empty()) << advice;
  }
}

// More than half of the weights are floats, or at most half: networks with any number of operations.
TEST(Advice, GoesByTheGreaterPart) {
  for (size_t ops = 1; ops <= 5; ++ops) {
    for (size_t floats = 0; floats <= ops; ++floats) {
      ir::Graph graph("mixed");
      ir::Tensor plain{
          .name = "x", .dtype = ir::DType::float32, .shape = {{1, 4}}, .quant = {}, .data = {}, .owner = {}};
      graph.inputs = {graph.add_tensor(plain)};
      for (size_t i = 0; i < ops; ++i) {
        ir::Tensor weights = plain;
        weights.dtype = i < floats ? ir::DType::float32 : ir::DType::int8;
        ir::set_constant(weights, Bytes(static_cast<size_t>(weights.bytes())));
        const ir::TensorId filter = graph.add_tensor(std::move(weights)), out = graph.add_tensor(plain);
        graph.add_op({.kind = ir::OpKind::fully_connected, .inputs = {graph.inputs[0], filter}, .outputs = {out}});
        graph.outputs.push_back(out);
      }
      const std::string advice = quantization_advice(graph, {nullptr, {}}, Words::tflite);
      EXPECT_EQ(advice.find("is not quantized") != std::string::npos, 2 * floats > ops)
          << floats << " of " << ops << ": " << advice;
    }
  }
}

// No type or scale helps a loop.
TEST(Advice, SaysWhatToDoAboutLoopsAndState) {
  for (const char* name : {"WHILE", "IF", "CALL", "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "FROBNICATE"}) {
    Letters letters("a", {"c=mul(a,W)", "d=relu(c)"}, "d");
    for (ir::Tensor& tensor : letters.graph.tensors) tensor.dtype = ir::DType::float32, tensor.quant = {};
    letters.graph.ops[0].kind = ir::OpKind::fully_connected;
    ir::Op& op = letters.graph.ops[1];
    op.kind = ir::OpKind::opaque, op.opaque_name = name, op.attrs = ir::default_attrs(ir::OpKind::opaque);
    const std::string advice = quantization_advice(letters.graph, {nullptr, {}}, Words::tflite);
    const bool is_loop = std::string_view(name) != "FROBNICATE";
    const char* what =
        std::string_view(name).find("VAR") == std::string_view::npos ? "loops need" : "variables are not supported";
    EXPECT_EQ(advice.find(fmt::format("{}: {}", name, what)) == 0, is_loop) << advice;
    EXPECT_EQ(advice.find("quantize") == std::string::npos, is_loop) << advice;
    const std::string in_host = quantization_advice(letters.graph, {nullptr, {}}, Words::tflite, Rest::in_the_host);
    EXPECT_EQ(in_host.find("docs/cpu.md"), std::string::npos) << in_host;
    EXPECT_NE(in_host.find("quantize"), std::string::npos) << in_host;
  }
}

// Each kind of op with weights, alone and after a correct one.
TEST(Advice, LooksAtEveryOpWithWeights) {
  const OneScaleDriver coarse;
  constexpr std::array kKinds = {ir::OpKind::conv_2d, ir::OpKind::depthwise_conv_2d, ir::OpKind::transpose_conv,
                                 ir::OpKind::fully_connected};
  for (const ir::OpKind kind : kKinds) {
    for (const ir::OpKind before : {ir::OpKind::relu, ir::OpKind::fully_connected}) {
      Letters letters("a", {"c=mul(a,V)", "d=mul(c,W)"}, "d");
      ir::Graph& graph = letters.graph;
      graph.ops[0].kind = before, graph.ops[1].kind = kind;
      const bool two = before == ir::OpKind::fully_connected;
      if (!two) graph.ops[0].inputs.resize(1);
      graph.tensor(letters.id('W')).quant = {{0.5F, 0.25F}, {0, 0}, 0};
      const std::string advice = quantization_advice(graph, {&coarse, {}}, Words::tflite);
      EXPECT_NE(advice.find(fmt::format("1 of {} operations with weights have a scale", two ? 2 : 1)),
                std::string::npos)
          << ir::op_kind_name(kind) << ": " << advice;
      // Without weights there is no advice.
      graph.ops[1].inputs[1] = ir::kNoTensor;
      EXPECT_EQ(quantization_advice(graph, {&coarse, {}}, Words::tflite), "");
    }
  }
}

TEST(Plan, AsksTheDriverOnly) {
  Letters letters("ab", {"x=add(a,a)", "c=add(a,b)", "d=relu(c)"}, "d");
  for (int32_t i = 0; i < 3; ++i) letters.graph.ops[static_cast<size_t>(i)].source_index = i;
  PickyDriver driver;
  driver.bad = {"c"};
  const auto planned = plan(letters.graph, {&driver, {}}, kAsTheyAre);
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ(driver.compiled, 0);
  EXPECT_EQ(print(*planned),
            "1 of 3 operations (1 folded) on the NPU, 2 parts\n"
            "part 0 on NPU, 1 op\n"
            "  op 1 ADD -> 'c'\n"
            "part 1 on CPU, 1 op\n"
            "  op 2 RELU -> 'd': no RELU\n");
}

// RELU is then part of the ADD before it; not for the tuning `recorded`.
TEST(Report, SaysWhatWasRewritten) {
  Letters letters("a", {"c=add(a,a)", "d=relu(c)", "e=add(d,d)", "f=relu(e)"}, "f");
  for (size_t i = 0; i < letters.graph.ops.size(); ++i) letters.graph.ops[i].source_index = static_cast<int32_t>(i);
  const PickyDriver driver;
  const auto result = compile(letters.graph, {&driver, {}}, {}).value();
  EXPECT_EQ(text_of(result), "N[df]");
  EXPECT_EQ(print(result.rewrites),
            "op 0: ADD takes RELU in (fuse_activations)\nop 2: ADD takes RELU in (fuse_activations)\n");
  EXPECT_EQ(absorbed_by(result.rewrites), (std::map<int32_t, int32_t>{{1, 0}, {3, 2}}));
  const passes::Rewrite chain[] = {{"", 1, {0}, ""}, {"", 2, {1, 3}, ""}};
  EXPECT_EQ(absorbed_by(chain), (std::map<int32_t, int32_t>{{0, 2}, {1, 2}, {3, 2}}));
  const Options recorded = {.driver = {.tuning = npu::Tuning::recorded}};
  EXPECT_TRUE(compile(letters.graph, {&driver, {}}, recorded).value().rewrites.empty());
}

// Op 1 was written as two and absorbed op 2, op 0 is constant, op 3 is unchanged; of a model of five, op 4 is dead.
TEST(Report, CountsTheModelsOwnOps) {
  Letters letters("a", {"b=add(a,a)", "c=add(b,b)", "d=relu(c)"}, "d");
  const int32_t sources[] = {1, 1, 3};
  for (size_t i = 0; i < 3; ++i) letters.graph.ops[i].source_index = sources[i];
  const passes::Rewrite taken_in[] = {{"", 1, {2}, ""}};
  const auto count = [&](bool first, bool second, bool third) {
    const ModelUse use = model_use(letters.graph, taken_in, 5, {first, second, third});
    EXPECT_EQ(use.ops, 5u);
    return use.npu_ops;
  };
  EXPECT_EQ(count(true, true, true), 3u);
  EXPECT_EQ(count(true, true, false), 2u);
  EXPECT_EQ(count(true, false, true), 1u) << "all of what was written must be on the NPU";
  EXPECT_EQ(count(false, true, true), 1u);
  letters.graph.ops[2].source_index = 7;  // not in the model
  EXPECT_EQ(count(true, true, true), 2u);
}

// Ops made from one convolution share its work in proportion to their own; absorbed ops add theirs; if none of the ops
// multiplies, one gets all the work.
TEST(Report, DividesTheModelsWorkAmongWhatComputesIt) {
  Compiled compiled;
  ir::Graph& graph = compiled.graph;
  const auto tensor = [&](int32_t side, int32_t channels) {
    return graph.add_tensor({.name = "t", .dtype = ir::DType::uint8, .shape = {{1, side, side, channels}}});
  };
  const ir::TensorId filter = graph.add_tensor({.name = "w", .dtype = ir::DType::uint8, .shape = {{4, 1, 1, 4}}});
  const auto add = [&](int32_t source, int32_t side) {
    graph.add_op({.kind = side == 0 ? ir::OpKind::reshape : ir::OpKind::conv_2d,
                  .inputs = {tensor(side, 4), filter, ir::kNoTensor},
                  .outputs = {tensor(side, 4)},
                  .source_index = source});
  };
  for (const auto& [source, side] : {std::pair(0, 0), {0, 2}, {0, 4}, {1, 0}, {-1, 4}, {9, 4}}) add(source, side);
  compiled.rewrites = {{"", 0, {2}, ""}};
  EXPECT_EQ(model_macs(compiled, {70, 7, 32}), (std::vector<uint64_t>{0, 20, 82, 7, 0, 0}));
  EXPECT_EQ(model_macs(compiled, {0, 0, 0}), std::vector<uint64_t>(6));
}

TEST(Report, SaysWhereEachOpRuns) {
  const Letters letters("ab", {"c=add(a,b)", "d=mul(c,c)", "e=relu(d)"}, "e");
  const PickyDriver driver;
  const auto all =
      compile(letters.graph, {&driver, {}}, {.driver = {.unproven = npu::Unproven::take}, .rewrite = false}).value();
  const auto table = [](const std::vector<OpRow>& rows) {
    std::string out;
    for (const OpRow& row : rows)
      out += fmt::format("{} {} {} {} {} {}\n", row.op, row.kind, row.output, row.part, row.on_npu, row.why);
    return out;
  };
  EXPECT_EQ(table(rows(all)),
            "0 ADD 1x2x2x4 0 true \n1 MUL 1x2x2x4 0 true unproven: MUL is new\n2 RELU 1x2x2x4 1 false no RELU\n");
  const PartNote notes[] = {{true, {0, 1}, ", in no time", "it broke"}, {false, {2}, "", ""}};
  EXPECT_EQ(table(rows(all.graph, all.ops, notes)),
            "0 ADD 1x2x2x4 0 false it broke\n1 MUL 1x2x2x4 0 false it broke\n2 RELU 1x2x2x4 1 false no RELU\n");
  EXPECT_EQ(print(ModelUse{.npu_ops = 2, .ops = 3}, all.graph, all.ops, notes),
            "2 of 3 operations on the NPU, 2 parts\n"
            "part 0 on NPU, 2 ops, in no time\n"
            "  runs on the CPU: it broke\n"
            "  op 0 ADD -> 'c'\n"
            "  op 1 MUL -> 'd': unproven: MUL is new\n"
            "part 1 on CPU, 1 op\n"
            "  op 2 RELU -> 'e': no RELU\n");
}

TEST(Compile, WithoutADriverAllIsOnTheCpu) {
  const Letters letters("a", {"c=add(a,a)"}, "c");
  EXPECT_EQ(text_of(compile(letters.graph, {}, {}).value()), "C[c]\nc: no NPU was requested or found");
}

}  // namespace
}  // namespace skillet::compile
