// Predicted times of the CPU: by kind of work, type, core and number of cores.
#include "compile/cpu_speed.h"

#include <gtest/gtest.h>

#include "graph/ir/macs.h"
#include "graph/passes/testing/layers.h"

namespace skillet::compile {
namespace {

const passes::Layers& layers() {
  static const passes::Layers kLayers({1, 28, 28, 64},
                                      {"b=conv(a) k=3", "c=depthwise(b) k=3", "d=add(c,b)", "e=join(d,c)"}, "e");
  return kLayers;
}
constexpr CpuWork kWork[] = {CpuWork::dense, CpuWork::depthwise, CpuWork::element, CpuWork::copy};

TEST(CpuSpeed, KnowsTheKindOfWork) {
  ASSERT_EQ(layers().problem, "");
  for (size_t i = 0; i < std::size(kWork); ++i)
    EXPECT_EQ(cpu_work_of(layers().graph, static_cast<ir::OpId>(i)), kWork[i]) << "op " << i;
}

TEST(CpuSpeed, EachKindHasItsRate) {
  const ir::Graph& graph = layers().graph;
  CpuSpeed speed = plain_cpu(1, 1e9);
  speed.rates.fill({.dense = 100, .depthwise = 10, .element = 4, .table = 2, .copy = 1e9});
  const auto macs = [&](ir::OpId op) { return static_cast<double>(ir::op_macs(graph, op)); };
  EXPECT_NEAR(speed.us(graph, 0), macs(0) / 100, 1e-9);
  EXPECT_NEAR(speed.us(graph, 1), macs(1) / 10, 1e-9);
  EXPECT_NEAR(speed.us(graph, 2), 3 * 28 * 28 * 64 / 4.0, 1e-9);
  // Weights that are used once must be read, however fast a core multiplies.
  speed.rates.fill({.dense = 1e9, .depthwise = 1e9, .element = 1, .table = 1, .copy = 1});
  EXPECT_GE(speed.us(graph, 0), 2 * 28 * 28 * 64);
}

// Operations in host programs: variables, hash tables, and unknown versions of an operation.
TEST(CpuSpeed, OperationsMayHaveNoOperands) {
  for (const char* name :
       {"CALL_ONCE", "LSTM", "SVDF", "CONV_3D", "RNN", "BIDIRECTIONAL_SEQUENCE_LSTM", "CONV_2D", "BATCH_MATMUL"}) {
    const auto graph = ir::parse(fmt::format("graph \"g\"\ninputs\noutputs\nop 0 \"{}\" in=[] out=[]\n", name));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_EQ(plain_cpu(1, 1e9).us(*graph, 0), 0) << name;
  }
}

TEST(CpuSpeed, FloatsTakeLongerThanBytes) {
  for (const int core : {53, 55, 72, 73, 76}) {
    const auto speed = cpu_speed_of(core, 2, 4);
    ASSERT_TRUE(speed) << core;
    EXPECT_GT(speed->us(layers().graph, 0, CpuType::floats), 2 * speed->us(layers().graph, 0, CpuType::int8)) << core;
    for (ir::OpId op = 0; op < static_cast<ir::OpId>(std::size(kWork)); ++op)
      EXPECT_GT(speed->us(layers().graph, op), 0);
  }
}

TEST(CpuSpeed, AGraphOfFloatsIsSlower) {
  ir::Graph graph = layers().graph;
  for (ir::Tensor& tensor : graph.tensors) tensor.dtype = ir::DType::float32;
  const auto speed = cpu_speed_of(76, 2, 4);
  EXPECT_NEAR(speed->us(graph, 0), speed->us(layers().graph, 0, CpuType::floats), 1e-9);
  EXPECT_GT(speed->us(graph, 0), 2 * speed->us(layers().graph, 0));
}

TEST(CpuSpeed, FourCoresDoWhatPublishedTimesSay) {
  const auto us = [](int cores) { return cpu_speed_of(73, 2.2, cores)->us(layers().graph, 0); };
  EXPECT_NEAR(us(1) / us(4), 3.2, 1e-9);
  EXPECT_GT(us(1), us(2));
  EXPECT_GT(us(2), us(4));
  EXPECT_NEAR(cpu_speed_of(73, 1.1, 4)->us(layers().graph, 0), 2 * us(4), 1e-9);
}

TEST(CpuSpeed, OtherCoresAreNotKnown) { EXPECT_FALSE(cpu_speed_of(1, 2, 4)); }

}  // namespace
}  // namespace skillet::compile
