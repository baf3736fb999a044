// Random trees of elementwise operations over one tensor of bytes, with constants, floats in between and results with
// other readers: after fuse_byte_functions each output has the same bytes, and no trees of multiplied tensors remain.
#include <gtest/gtest.h>

#include "base/testing/noise.h"
#include "graph/ir/testing/random_ops.h"
#include "graph/passes/passes.h"
#include "graph/passes/testing/letters.h"
#include "graph/ref/ref.h"

namespace skillet::passes {
namespace {

using ir::OpKind;
using ir::TensorId;

class TableDriver : public AddMulDriver {  // takes tables and nothing else
 public:
  npu::Support supports(const npu::Chip&, const ir::Graph& graph, ir::OpId op) const override {
    if (graph.op(op).kind == OpKind::byte_table) return npu::Support::yes();
    return npu::Support::no(npu::Remedy::none, "no table");
  }
};

class RandomTree : RandomOps {
 public:
  explicit RandomTree(uint32_t seed) : RandomOps(seed) {}

  ir::Graph make() {
    graph_.name = "tree";
    dtype_ = chance(2) ? ir::DType::uint8 : ir::DType::int8;
    graph_.inputs = {bytes_tensor()};
    made_ = graph_.inputs;
    for (int i = range(2, 7); i > 0; --i) add_op();
    graph_.outputs = {made_.back()};
    if (made_.size() > 2 && chance(3)) graph_.outputs.push_back(made_[made_.size() / 2]);
    return std::move(graph_);
  }

 private:
  TensorId bytes_tensor() { return add_activation({1, 2, 3, 2}, power(-8, -3), range(0, 255)); }
  TensorId other() {
    if (!chance(3)) return any();
    return constant<uint8_t>(dtype_, {1}, {static_cast<uint8_t>(range(0, 255))},
                             {{power(-8, -3)}, {range(-100, 100)}, 0});
  }
  TensorId any() { return made_[static_cast<size_t>(range(0, static_cast<int>(made_.size()) - 1))]; }
  void emit(OpKind kind, std::vector<TensorId> inputs, TensorId to) {
    const auto at = static_cast<int32_t>(graph_.ops.size());
    graph_.add_op({.kind = kind,
                   .attrs = ir::default_attrs(kind),
                   .inputs = std::move(inputs),
                   .outputs = {to},
                   .source_index = at});
  }
  TensorId floats() {
    return graph_.add_tensor(
        {.name = "f" + std::to_string(graph_.tensors.size()), .dtype = ir::DType::float32, .shape = {1, 2, 3, 2}});
  }

  void add_op() {
    const TensorId to = bytes_tensor();
    if (chance(5)) {
      const TensorId real = floats(), result = floats();
      emit(OpKind::dequantize, {any()}, real);
      emit(any_of(std::array{OpKind::sin, OpKind::exp, OpKind::tanh}), {real}, result);
      emit(OpKind::quantize, {result}, to);
    } else if (chance(2)) {
      emit(any_of(std::array{OpKind::logistic, OpKind::tanh, OpKind::hard_swish, OpKind::relu6, OpKind::elu,
                             OpKind::leaky_relu}),
           {any()}, to);
    } else {
      const TensorId first = any();
      emit(any_of(std::array{OpKind::mul, OpKind::add, OpKind::sub}), {first, other()}, to);
    }
    made_.push_back(to);
  }

  std::vector<TensorId> made_;
};

Result<std::vector<Bytes>> results(const ir::Graph& graph, uint32_t seed) {
  SK_TRY_ASSIGN(ref::Interpreter cpu, ref::Interpreter::create(graph));
  const std::span<uint8_t> input = cpu.tensor(graph.inputs[0]);
  const Bytes noise = testing::noise(input.size(), seed);
  std::ranges::copy(noise, input.begin());
  SK_TRY(cpu.run());
  std::vector<Bytes> out;
  for (const TensorId id : graph.outputs) out.emplace_back(cpu.tensor(id).begin(), cpu.tensor(id).end());
  return out;
}

// A table depends only on the byte: constants that differ by row, column or channel stay, single numbers are absorbed.
TEST(ByteFunctions, ConstantsThatDifferByPlaceAreNoPartOfATable) {
  struct Case {
    ir::Shape constant;
    bool is_taken;
  };
  for (const Case& row :
       {Case{{1}, true}, Case{{1, 1, 1, 1}, true}, Case{{1, 1, 256, 1}, false}, Case{{256, 1}, false},
        Case{{1, 1, 1, 2}, false}, Case{{2}, false}, Case{{1, 2, 1, 1}, false}, Case{{1, 2, 256, 2}, false}}) {
    const TableDriver driver;
    ir::Graph graph("constants");
    const auto bytes = [&](const char* name) {
      return graph.add_tensor({.name = name,
                               .dtype = ir::DType::uint8,
                               .shape = {1, 2, 256, 2},
                               .quant = {.scales = {0.01F}, .zero_points = {100}},
                               .owner = {}});
    };
    const TensorId in = bytes("in"), middle = bytes("middle"), out = bytes("out");
    ir::Tensor constant{.name = "constant",
                        .dtype = ir::DType::uint8,
                        .shape = row.constant,
                        .quant = {.scales = {0.01F}, .zero_points = {7}},
                        .owner = {}};
    uint32_t seed = 3;
    ir::set_constant(constant, testing::noise(static_cast<size_t>(row.constant.elems()), seed));
    const TensorId other = graph.add_tensor(std::move(constant));
    graph.inputs = {in};
    graph.outputs = {out};
    graph.add_op({.kind = OpKind::add,
                  .attrs = ir::default_attrs(OpKind::add),
                  .inputs = {in, other},
                  .outputs = {middle},
                  .source_index = 0});
    graph.add_op({.kind = OpKind::tanh,
                  .attrs = ir::default_attrs(OpKind::tanh),
                  .inputs = {middle},
                  .outputs = {out},
                  .source_index = 1});
    // TANH has an output with its own scale.
    graph.tensors[static_cast<size_t>(out)].quant = {.scales = {1 / 128.0F}, .zero_points = {128}};
    const auto wanted = results(graph, 1);
    ASSERT_TRUE(wanted.ok()) << wanted.error().message;
    std::vector<Rewrite> rewrites;
    Target target{.driver = &driver, .chip = {}};
    target.rewrites = &rewrites;
    fuse_byte_functions(graph, target);
    EXPECT_EQ(graph.ops.size() == 1, row.is_taken) << ir::print(graph);
    const auto got = results(graph, 1);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(*wanted, *got) << ir::print(graph);
  }
}

TEST(ByteFunctions, RandomTreesKeepEveryByte) {
  const TableDriver driver;
  size_t compared = 0, alone = 0;
  for (uint32_t seed = 1; seed <= 2000; ++seed) {
    ir::Graph graph = RandomTree(seed).make();
    SCOPED_TRACE(ir::print(graph));
    const auto wanted = results(graph, seed);
    if (!wanted.ok()) continue;  // the CPU has no kernel for these types and scales
    std::vector<Rewrite> rewrites;
    Target target{.driver = &driver, .chip = {}};
    target.rewrites = &rewrites;
    remove_dead_ops(graph, target);
    fuse_byte_functions(graph, target);
    const auto valid = ir::verify(graph);
    ASSERT_TRUE(valid.ok()) << valid.error().message;
    const auto got = results(graph, seed);
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_EQ(*wanted, *got) << ir::print(graph);
    compared += rewrites.empty() ? 0 : 1;
    alone += graph.ops.size() == graph.outputs.size() ? 1 : 0;
  }
  EXPECT_GT(compared, 1000U);
  EXPECT_GT(alone, 500U);  // the whole network is one table for each output
}

}  // namespace
}  // namespace skillet::passes
