// Each refusal names a remedy, and the remedy helps: over the networks of docs/support.md in every type, random
// networks, and random operations at and around every limit, on all chips. Each row of npu/remedies.def answers some
// refusal.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "compile/compile.h"
#include "page.h"
#include "random_case.h"
#include "random_graph.h"

namespace skillet {
namespace {

using npu::Remedy;

struct ChipOf {
  const npu::Driver* driver;
  npu::Chip chip;
};
std::vector<ChipOf> all_chips() {
  std::vector<ChipOf> out;
  for (const npu::Driver* driver : npu::drivers()) {
    for (const npu::Chip& chip : driver->chips()) out.push_back({driver, chip});
  }
  return out;
}

// Reasons that occurred, by remedy.
std::map<Remedy, std::set<std::string>> met;

compile::Compiled planned(const ir::Graph& graph, const ChipOf& on, const compile::Options& options) {
  auto out = compile::plan(graph, {on.driver, on.chip}, options);
  EXPECT_TRUE(out.ok()) << out.error().message << "\n" << ir::print(graph);
  return out.ok() ? std::move(out).value() : compile::Compiled{};
}

bool has_numbers_of(const ir::Graph& graph, const ir::Op& op, bool (*is)(const ir::Tensor&)) {
  for (const auto* list : {&op.inputs, &op.outputs})
    for (const ir::TensorId id : *list)
      if (id != ir::kNoTensor && is(graph.tensor(id))) return true;
  return false;
}
bool can_be_quantized(const ir::Tensor& tensor) {
  return npu::remedy_of_type(tensor.dtype) == Remedy::quantize || (ir::is_8bit(tensor.dtype) && tensor.quant.empty());
}

std::map<Remedy, size_t> count(const compile::Compiled& compiled) {
  std::map<Remedy, size_t> out;
  for (const compile::OpPlace& op : compiled.ops)
    if (!op.on_npu) ++out[op.remedy];
  return out;
}

void look_at(const ir::Graph& graph, const ChipOf& on) {
  const compile::Options plain;
  compile::Options refuse = plain;
  refuse.driver.unproven = npu::Unproven::refuse;
  for (const compile::OpPlace& op : planned(graph, on, refuse).ops)
    if (!op.on_npu && (op.remedy == Remedy::unproven || op.remedy == Remedy::one_job)) met[op.remedy].insert(op.reason);
  const compile::Compiled compiled = planned(graph, on, plain);
  for (size_t i = 0; i < compiled.ops.size(); ++i) {
    const compile::OpPlace& op = compiled.ops[i];
    if (op.on_npu) continue;
    EXPECT_FALSE(op.reason.empty()) << on.chip.name << "\n" << ir::print(graph);
    ASSERT_LT(static_cast<size_t>(op.remedy), npu::kRemedyTexts.size());
    met[op.remedy].insert(op.reason);
    if (op.remedy == Remedy::quantize) {
      EXPECT_TRUE(has_numbers_of(compiled.graph, compiled.graph.ops[i], can_be_quantized)) << op.reason;
    }
  }
  // An option that a remedy names removes the refusals that name it.
  std::map<Remedy, size_t> left = count(compiled);
  compile::Options options;
  options.driver.unproven = npu::Unproven::take;
  if (left[Remedy::unproven] > 0) {
    EXPECT_EQ(count(planned(graph, on, options))[Remedy::unproven], 0U) << on.chip.name;
  }
  if (left[Remedy::share_scales] > 0) {
    options.driver.per_channel = npu::PerChannel::approximate;
    EXPECT_EQ(count(planned(graph, on, options))[Remedy::share_scales], 0U) << on.chip.name << "\n" << ir::print(graph);
  }
}

ir::Graph as_floats(ir::Graph graph) {
  for (ir::Tensor& tensor : graph.tensors) {
    if (!ir::is_8bit(tensor.dtype) && tensor.dtype != ir::DType::int32) continue;
    if (tensor.quant.empty()) continue;  // axes, shapes
    const auto count = static_cast<size_t>(tensor.shape.elems());
    if (tensor.is_constant()) ir::set_constant(tensor, Bytes(count * 4));
    tensor.dtype = ir::DType::float32;
    tensor.quant = {};
  }
  return graph;
}

TEST(Remedies, OfTheNetworksOfTheSupportPage) {
  const auto networks = support::networks();
  ASSERT_TRUE(networks.ok()) << networks.error().message;
  for (const ChipOf& on : all_chips()) {
    for (const ir::Graph& graph : *networks) {
      look_at(graph, on);
      const ir::Graph floats = as_floats(graph);
      if (ir::verify(floats).ok()) look_at(floats, on);
    }
  }
}

TEST(Remedies, OfRandomNetworks) {
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 30);
  for (uint32_t seed = first; seed < first + count; ++seed) {
    const ir::Graph graph = GraphMaker(seed).make();
    for (const ChipOf& on : all_chips())
      if (on.chip.unproven.empty()) look_at(graph, on);
  }
}

TEST(Remedies, OfOperationsAroundLimits) {
  constexpr uint32_t kOfEach = 100;  // networks take a hundred times as long
  const uint32_t first = kOfEach * (from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1) - 1) + 1;
  const uint32_t count = kOfEach * from_environment("SKILLET_RANDOM_GRAPHS", 30);
  std::vector<std::pair<ChipOf, std::vector<ir::OpKind>>> chips;
  for (const ChipOf& on : all_chips())
    if (on.chip.unproven.empty()) chips.emplace_back(on, kinds_of(on.chip));
  for (uint32_t seed = first; seed < first + count; ++seed) {
    std::map<ir::OpKind, Case> made;  // for all chips: making one takes longer than asking
    for (const auto& [on, kinds] : chips) {
      const ir::OpKind kind = kinds[seed % kinds.size()];
      if (!made.contains(kind)) made.emplace(kind, CaseMaker(seed).make(kind));
      const Case& one = made.at(kind);
      const npu::Support support = on.driver->supports(on.chip, one.graph, one.op);
      if (!support.ok) met[support.remedy].insert(support.reason);
    }
  }
}

// Networks that no generator makes.
TEST(Remedies, OfRareNetworks) {
  const char* const networks[] = {// Filters of few out of many channels: expanded to all, they would be too large.
                                  "graph \"groups\"\n"
                                  "tensor 0 \"a\" uint8 1x1x1x4096 scale=0.5 zero=3\n"
                                  "tensor 1 \"w\" uint8 8192x1x1x16 scale=0.5 zero=3 const=zeros\n"
                                  "tensor 2 \"b\" uint8 1x1x1x8192 scale=0.5 zero=3\n"
                                  "inputs 0\noutputs 2\n"
                                  "op 0 CONV_2D in=[0 1] out=[2]\n",
                                  "graph \"computed weights\"\n"
                                  "tensor 0 \"a\" uint8 1x4x4x1 scale=0.5 zero=3\n"
                                  "tensor 1 \"w\" uint8 1x1x1x1 scale=0.5 zero=3\n"
                                  "tensor 2 \"b\" uint8 1x4x4x1 scale=0.5 zero=3\n"
                                  "inputs 0 1\noutputs 2\n"
                                  "op 0 CONV_2D in=[0 1] out=[2]\n",
                                  "graph \"a bound\"\n"
                                  "tensor 0 \"a\" uint8 1x4x4x1 scale=0.5 zero=3\n"
                                  "tensor 1 \"w\" uint8 1x4x4x1 scale=0.5 zero=3 const=zeros\n"
                                  "tensor 2 \"b\" uint8 1x4x4x1 scale=0.5 zero=3\n"
                                  "inputs 0\noutputs 2\n"
                                  "op 0 MINIMUM in=[0 1] out=[2]\n",
                                  "graph \"pixels twice\"\n"
                                  "tensor 0 \"a\" uint8 1x4x1x4x1 scale=0.5 zero=3\n"
                                  "tensor 1 \"m\" int32 5 const=[1 1 2 1 1]\n"
                                  "tensor 2 \"b\" uint8 1x4x2x4x1 scale=0.5 zero=3\n"
                                  "inputs 0\noutputs 2\n"
                                  "op 0 TILE in=[0 1] out=[2]\n",
                                  "graph \"16x8\"\n"
                                  "tensor 0 \"a\" int16 1x4x4x1 scale=0.5 zero=0\n"
                                  "tensor 1 \"w\" int8 1x1x1x1 scale=0.5 zero=0 const=[1]\n"
                                  "tensor 2 \"b\" int16 1x4x4x1 scale=0.5 zero=0\n"
                                  "inputs 0\noutputs 2\n"
                                  "op 0 CONV_2D in=[0 1] out=[2]\n"};
  for (const char* text : networks) {
    const auto graph = ir::parse(text);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    for (const ChipOf& on : all_chips()) look_at(*graph, on);
  }
}

// The remedy depends on the operation: quantization first, and no operation that is the same one under another name.
TEST(Remedies, OfAnOperationThatNoChipHas) {
  const char* const kImage = "scale=0.5 zero=0";
  struct Case {
    std::string from, to, op;
    bool is_last;
    Remedy remedy;
  };
  const Case cases[] = {
      {"float32 1x4x4x8", "float32 1x4x4x8", "PRELU", true, Remedy::quantize},
      {"float32 1x4x4x8", "float32 1x4x4x8", "SOFTMAX", true, Remedy::none},
      {fmt::format("int8 1x4x4x8 {}", kImage), "float32 1x4x4x8", "DEQUANTIZE", true, Remedy::keep_bytes},
      {"float32 1x4x4x8", fmt::format("int8 1x4x4x8 {}", kImage), "QUANTIZE", false, Remedy::keep_bytes},
      {fmt::format("int8 1x4x4x8 {}", kImage), "float32 1x4x4x8", "DEQUANTIZE", false, Remedy::quantize},
      {fmt::format("int8 1x4x4x8 {}", kImage), fmt::format("int8 1x8 {}", kImage), "MEAN", true, Remedy::split},
      {fmt::format("int8 1x4x4x8 {}", kImage), fmt::format("int8 1x4x4 {}", kImage), "MEAN", true, Remedy::average},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.op);
    ir::Graph graph;
    const auto parsed =
        ir::parse(fmt::format("graph \"g\"\ntensor 0 \"a\" {}\ntensor 1 \"b\" {}\ntensor 2 \"c\" {}\ninputs 0\noutputs "
                              "{}\nop 0 RELU in=[0] out=[1]\n"
                              "op 1 RELU in=[1] out=[2]\n",
                              c.from, c.to, c.to, c.is_last ? 1 : 2));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    graph = *parsed;
    graph.ops[0].kind = *ir::op_kind_from_name(c.op);
    EXPECT_EQ(npu::remedy_name(npu::remedy_of_op(graph, 0)), npu::remedy_name(c.remedy));
  }
}

// Runs last: checks that each row answered a refusal of the other tests.
TEST(Remedies, XEachRowIsAnAnswer) {
  const auto& tests = *testing::UnitTest::GetInstance();
  if (tests.test_to_run_count() < tests.total_test_count()) GTEST_SKIP() << "some of the others were left out";
  if (from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1) != 1)
    GTEST_SKIP() << "others were drawn than those that meet all";
  // Remedies of other tests: device, take_all and report where a graph meets no compiler, or one that fails
  // (compile_test, offload_test); numbers that no converter writes; `fix` where a delegate takes less than the
  // compiler; Vela's programs that do not fit (the tests of Ethos-U); float values that are moved beside quantized
  // inputs (src/npu/remedies_test.cpp).
  const std::set<Remedy> elsewhere = {Remedy::device, Remedy::take_all,        Remedy::report,
                                      Remedy::fix,    Remedy::vendor_compiler, Remedy::move_bytes};
  for (size_t i = 0; i < npu::kRemedyTexts.size(); ++i) {
    const auto remedy = static_cast<Remedy>(i);
    std::printf("%-16s %4zu reasons\n", std::string(npu::remedy_name(remedy)).c_str(), met[remedy].size());
    if (!elsewhere.contains(remedy)) {
      EXPECT_FALSE(met[remedy].empty()) << npu::remedy_name(remedy);
    }
  }
}

}  // namespace
}  // namespace skillet
