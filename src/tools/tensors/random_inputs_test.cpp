// Random inputs of networks that use them as indices.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "base/bytes.h"
#include "graph/ref/ref.h"
#include "tools/tensors/tensor_file.h"

namespace skillet::tools {
namespace {

// Embeddings of Keras: an index below 0 counts from the end.
TEST(TensorFile, RandomIndicesAreWithinTheRowsThatTheySelect) {
  for (const std::string_view type : {"int32", "int64"}) {
    const auto graph = ir::parse(
        fmt::format("graph \"embedding\"\ntensor 0 \"i\" {0} 64\ntensor 1 \"zero\" {0} 1 const=[0]\ntensor 2 \"n\" {0} "
                    "1 const=[5]\n"
                    "tensor 3 \"below\" boolean 64\ntensor 4 \"sum\" {0} 64\ntensor 5 \"at\" {0} 64\n"
                    "tensor 6 \"rows\" int8 5x1 scale=1 const=[1 2 3 4 5]\ntensor 7 \"out\" int8 64x1 scale=1\n"
                    "tensor 8 \"other\" {0} 64\ntensor 9 \"twice\" {0} 64\ninputs 0 8\noutputs 7 9\n"
                    "op 0 LESS in=[0 1] out=[3]\nop 1 ADD in=[0 2] out=[4]\nop 2 SELECT in=[3 4 0] out=[5]\n"
                    "op 3 GATHER in=[6 5] out=[7]\nop 4 ADD in=[8 8] out=[9]\n",
                    type));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto inputs = random_inputs(1, *graph);
    ASSERT_TRUE(inputs.ok());
    int below = 0, beyond = 0, largest = 0;
    for (size_t i = 0; i < 64; ++i) {
      const auto at = [&](const Bytes& bytes) { return static_cast<int8_t>(bytes[i * bytes.size() / 64]); };
      largest = std::max(largest, int{at((*inputs)[0])});
      below += at((*inputs)[0])<0, beyond += at((*inputs)[0])> 4;
    }
    EXPECT_EQ(below + beyond, 0) << type;
    EXPECT_EQ(largest, 4) << type;
    EXPECT_NE((*inputs)[1], (*inputs)[0]) << "an input that selects nothing keeps its values";
    auto cpu = ref::Interpreter::create(*graph);
    ASSERT_TRUE(cpu.ok()) << cpu.error().message;
    std::ranges::copy((*inputs)[0], cpu->tensor(0).begin());
    EXPECT_TRUE(cpu->run().ok());
  }
}

// Each index is a tuple of two numbers, for dimensions of 9 and 4.
TEST(TensorFile, RandomTuplesAreWithinTheDimensionsThatTheySelect) {
  for (const char* text : {"tensor 0 \"i\" int32 64x2\ntensor 1 \"from\" int8 9x4 scale=1 const=zeros\n"
                           "tensor 2 \"out\" int8 64 scale=1\ninputs 0\noutputs 2\nop 0 GATHER_ND in=[1 0] out=[2]\n",
                           "tensor 0 \"i\" int32 64x2\ntensor 1 \"values\" int32 64 const=zeros\n"
                           "tensor 2 \"shape\" int32 2 const=[9 4]\ntensor 3 \"out\" int32 9x4\ninputs 0\noutputs 3\n"
                           "op 0 SCATTER_ND in=[0 1 2] out=[3]\n"}) {
    const auto graph = ir::parse(fmt::format("graph \"tuples\"\n{}", text));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto inputs = random_inputs(1, *graph);
    ASSERT_TRUE(inputs.ok());
    int32_t largest = 0;
    for (size_t at = 0; at < (*inputs)[0].size(); at += 4)
      largest = std::max(largest, load_le<int32_t>((*inputs)[0].data() + at));
    EXPECT_EQ(largest, 3) << text;
    auto cpu = ref::Interpreter::create(*graph);
    ASSERT_TRUE(cpu.ok()) << cpu.error().message;
    std::ranges::copy((*inputs)[0], cpu->tensor(0).begin());
    EXPECT_TRUE(cpu->run().ok()) << text;
  }
}

}  // namespace
}  // namespace skillet::tools
