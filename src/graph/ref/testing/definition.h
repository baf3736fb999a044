// expect_values(): a graph in text form computes the outputs in the text from the inputs in the text.
// Called by the tests of graph/ref/.
// Must not know: any specific operation.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/ref/ref.h"

namespace skillet::ref {

// The value of a tensor that is not meant to be constant.
inline Bytes take_value(ir::Tensor& tensor) {
  const Bytes out(tensor.data.begin(), tensor.data.end());
  ir::Tensor empty{.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .quant = tensor.quant};
  tensor = std::move(empty);
  return out;
}

inline void expect_values(const char* text) {
  SCOPED_TRACE(text);
  auto graph = ir::parse(text);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  std::vector<Bytes> inputs, outputs;
  for (const ir::TensorId id : graph->inputs) inputs.push_back(take_value(graph->tensor(id)));
  for (const ir::TensorId id : graph->outputs) outputs.push_back(take_value(graph->tensor(id)));
  auto cpu = Interpreter::create(*graph);
  ASSERT_TRUE(cpu.ok()) << cpu.error().message;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::span<uint8_t> to = cpu->tensor(graph->inputs[i]);
    ASSERT_EQ(to.size(), inputs[i].size());
    std::copy(inputs[i].begin(), inputs[i].end(), to.begin());
  }
  ASSERT_TRUE(cpu->run().ok());
  for (size_t i = 0; i < outputs.size(); ++i) {
    ir::Tensor got = graph->tensor(graph->outputs[i]);
    const std::span<const uint8_t> bytes = cpu->tensor(graph->outputs[i]);
    const bool same = std::equal(bytes.begin(), bytes.end(), outputs[i].begin(), outputs[i].end());
    set_constant(got, Bytes(bytes.begin(), bytes.end()));
    ir::Graph shown;
    shown.add_tensor(std::move(got));
    EXPECT_TRUE(same) << "output " << i << " is " << ir::print(shown);
  }
}

}  // namespace skillet::ref
