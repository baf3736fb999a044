// Small graphs in text form for the simulated chip, and the check of their results.
// Called by graphs_test.cpp, moves_test.cpp and rules_test.cpp.
// Must not know: what the graphs are for.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "base/bytes.h"
#include "graph/ref/ref.h"
#include "runtime/session.h"

namespace skillet::rockchip_graphs {

inline std::string ints(std::initializer_list<int32_t> values) {
  std::string text = "const=hex:";
  for (const int32_t value : values) {
    for (int i = 0; i < 4; ++i) text += fmt::format("{:02x}", static_cast<uint32_t>(value) >> (8 * i) & 255);
  }
  return text;
}
inline std::string tensor(int id, const char* shape, float scale, int zero, const char* type = "uint8") {
  return fmt::format("tensor {0} \"t{0}\" {1} {2} scale={3} zero={4}\n", id, type, shape, scale, zero);
}
// Weights, as zeros that fill() replaces with random bytes.
inline std::string weights(int id, const char* shape, int zero = 120, const char* type = "uint8") {
  return fmt::format("tensor {0} \"w{0}\" {1} {2} scale=0.01 zero={3} const=zeros\n", id, type, shape, zero);
}
inline std::string numbers(int id, const char* shape, std::initializer_list<int32_t> values) {
  return fmt::format("tensor {0} \"n{0}\" int32 {1} {2}\n", id, shape, ints(values));
}
inline std::string op(const char* text) { return fmt::format("op {}\n", text); }

inline void fill(ir::Graph& graph, std::mt19937& random) {
  for (ir::Tensor& one : graph.tensors) {
    if (!one.is_constant() || one.name[0] != 'w') continue;
    Bytes bytes(one.data.size());
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    ir::set_constant(one, std::move(bytes));
  }
}

struct Row {
  const char* what;
  std::string text;
  size_t operations;  // on the device; 0: any number
};

inline std::vector<Bytes> run(runtime::Session& session, uint32_t seed) {
  std::mt19937 random(seed);
  for (size_t i = 0; i < session.graph().inputs.size(); ++i) {
    Bytes bytes(static_cast<size_t>(session.graph().tensor(session.graph().inputs[i]).bytes()));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    EXPECT_TRUE(session.set_input(i, bytes).ok());
  }
  const auto ran = session.run();
  EXPECT_TRUE(ran.ok()) << ran.error().message;
  std::vector<Bytes> outputs;
  for (size_t i = 0; ran.ok() && i < session.graph().outputs.size(); ++i) {
    const auto bytes = session.output(i).value();
    outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return outputs;
}

// Without verification, which would move wrong operations to the CPU before the test sees them.
inline const npu::CompileOptions kUnseen{.unproven = npu::Unproven::take};

// Compares each operation with the CPU kernel on the same inputs, with all tensors kept. Outputs do not depend on that.
inline void judge(const Row& row, int tolerance, const npu::CompileOptions& options = kUnseen,
                  const char* device = "sim:rk3588") {
  std::mt19937 random(7);
  auto graph = ir::parse("graph \"\"\n" + row.text);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  fill(*graph, random);
  std::vector<Bytes> outputs[2];
  for (const bool keep : {true, false}) {
    const auto target = runtime::open_target(device);
    const auto session = runtime::Session::create(
        *graph, *target, {.compile = options, .allow_fallback = false, .keep_intermediates = keep, .cores = 1});
    ASSERT_TRUE(session.ok()) << session.error().message;
    ASSERT_EQ((*session)->report().parts.size(), 1U) << "not all on the NPU";
    const auto programs = (*session)->programs(0);
    ASSERT_EQ(programs.size(), 1U);
    if (row.operations != 0) {
      EXPECT_EQ(programs[0]->operations.size(), row.operations);
    }
    outputs[keep] = run(**session, 5);
    const auto layers = (*session)->compare_layers();
    ASSERT_TRUE(!keep || layers.ok());
    ASSERT_TRUE(!keep || !layers->empty());
    EXPECT_EQ((*session)->report().parts[0].fallback, "");
    for (size_t i = 0; keep && i < layers->size(); ++i)
      EXPECT_LE((*layers)[i].max_abs_diff, tolerance) << ir::describe_op(*graph, (*layers)[i].op);
  }
  EXPECT_TRUE(!outputs[true].empty() && outputs[true] == outputs[false]);
}
inline void judge(std::span<const Row> rows, int tolerance, const char* device = "sim:rk3588") {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    judge(row, tolerance, kUnseen, device);
  }
}

}  // namespace skillet::rockchip_graphs
