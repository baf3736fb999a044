// Small graphs as text, and rows that change them, shared by the tests of supports() and lower().
// Called by those tests.
// Must not know: their expected results.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace skillet::npus::vivante {

inline constexpr const char* kConv = R"(graph ""
tensor 0 "in" uint8 1x8x8x4 scale=0.5 zero=128
tensor 1 "filter" uint8 8x3x3x4 scale=0.25 zero=127 const=zeros
tensor 2 "bias" int32 8 scale=0.125 zero=0 const=zeros
tensor 3 "out" uint8 1x8x8x8 scale=8 zero=7
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3]
)";
inline constexpr const char* kPointwise = R"(graph ""
tensor 0 "in" uint8 1x1x1x4 scale=0.5 zero=128
tensor 1 "filter" uint8 8x1x1x4 scale=0.25 zero=127 const=zeros
tensor 2 "out" uint8 1x1x1x8 scale=8 zero=7
inputs 0
outputs 2
op 0 CONV_2D in=[0 1 -] out=[2]
)";
inline constexpr const char* kDepthwise = R"(graph ""
tensor 0 "in" uint8 1x9x9x4 scale=0.5 zero=128
tensor 1 "filter" uint8 1x3x3x4 scale=0.25 zero=127 const=zeros
tensor 2 "out" uint8 1x9x9x4 scale=8 zero=7
inputs 0
outputs 2
op 0 DEPTHWISE_CONV_2D in=[0 1 -] out=[2]
)";
inline constexpr const char* kFullyConnected = R"(graph ""
tensor 0 "in" int8 1x40 scale=0.5 zero=3
tensor 1 "filter" int8 10x40 scale=0.25 zero=0 const=zeros
tensor 2 "out" int8 1x10 scale=8 zero=7
inputs 0
outputs 2
op 0 FULLY_CONNECTED in=[0 1 -] out=[2]
)";
inline constexpr const char* kAdd = R"(graph ""
tensor 0 "a" uint8 1x4x4x8 scale=1 zero=128
tensor 1 "b" uint8 1x4x4x8 scale=1 zero=127
tensor 2 "out" uint8 1x4x4x8 scale=2 zero=0
inputs 0 1
outputs 2
op 0 ADD in=[0 1] out=[2]
)";
inline constexpr const char* kConcatenation = R"(graph ""
tensor 0 "a" uint8 1x4x4x8 scale=1 zero=128
tensor 1 "b" uint8 1x4x4x8 scale=1 zero=128
tensor 2 "out" uint8 1x4x4x16 scale=1 zero=128
inputs 0 1
outputs 2
op 0 CONCATENATION in=[0 1] out=[2] axis=3
)";
inline constexpr const char* kSplit = R"(graph ""
tensor 0 "axis" int32 scalar const=[3]
tensor 1 "in" uint8 1x4x4x8 scale=1 zero=128
tensor 2 "a" uint8 1x4x4x4 scale=1 zero=128
tensor 3 "b" uint8 1x4x4x4 scale=1 zero=128
inputs 1
outputs 2 3
op 0 SPLIT in=[0 1] out=[2 3] count=2
)";
inline constexpr const char* kPad = R"(graph ""
tensor 0 "in" uint8 1x4x4x8 scale=1 zero=128
tensor 1 "paddings" int32 4x2 const=[0 0 1 1 1 1 0 0]
tensor 2 "out" uint8 1x6x6x8 scale=1 zero=128
inputs 0
outputs 2
op 0 PAD in=[0 1] out=[2]
)";
inline constexpr const char* kReshape = R"(graph ""
tensor 0 "in" uint8 1x4x4x8 scale=1 zero=128
tensor 1 "shape" int32 2 const=[1 128]
tensor 2 "out" uint8 1x128 scale=1 zero=128
inputs 0
outputs 2
op 0 RESHAPE in=[0 1] out=[2] shape=[1 128]
)";
inline constexpr const char* kTranspose = R"(graph ""
tensor 0 "in" uint8 1x4x4x4 scale=1 zero=128
tensor 1 "permutation" int32 4 const=[0 3 1 2]
tensor 2 "out" uint8 1x4x4x4 scale=1 zero=128
inputs 0
outputs 2
op 0 TRANSPOSE in=[0 1] out=[2]
)";
inline constexpr const char* kRelu = R"(graph ""
tensor 0 "in" uint8 1x4x4x8 scale=1 zero=128
tensor 1 "out" uint8 1x4x4x8 scale=1 zero=0
inputs 0
outputs 1
op 0 RELU in=[0] out=[1]
)";
inline constexpr const char* kLogistic = R"(graph ""
tensor 0 "in" uint8 1x4x4x8 scale=1 zero=128
tensor 1 "out" uint8 1x4x4x8 scale=0.00390625 zero=0
inputs 0
outputs 1
op 0 LOGISTIC in=[0] out=[1]
)";

// ---- rows ----

// In `graph`, each text of `find` is replaced by the one at its place in `refused`, or in `accepted`; ; separates them.
// No `accepted`: the unchanged graph.
struct Row {
  const char* graph;
  const char* find;
  const char* refused;
  const char* accepted;
  const char* reason;
};

inline std::vector<std::string> parts_of(std::string text) {
  std::vector<std::string> parts;
  for (size_t at = 0; (at = text.find(';')) != std::string::npos; text = text.substr(at + 1))
    parts.push_back(text.substr(0, at));
  parts.push_back(text);
  return parts;
}

// One pass, so that inserted text is not replaced again.
inline std::string replaced(const std::string& text, const std::vector<std::string>& from,
                            const std::vector<std::string>& to) {
  std::string out;
  std::vector<bool> found(from.size());
  for (size_t at = 0; at < text.size();) {
    size_t i = 0;
    while (i < from.size() && text.compare(at, from[i].size(), from[i]) != 0) ++i;
    out += i < from.size() ? to[i] : text.substr(at, 1);
    at += i < from.size() ? from[i].size() : 1;
    if (i < from.size()) found[i] = true;
  }
  for (size_t i = 0; i < from.size(); ++i) EXPECT_TRUE(found[i]) << "'" << from[i] << "' is not in\n" << text;
  return out;
}

inline std::optional<ir::Graph> graph_of(const Row& row, const char* replacement) {
  const auto from = parts_of(row.find), to = parts_of(replacement);
  if (from.size() != to.size()) {
    ADD_FAILURE() << row.find << " -> " << replacement << ": not as many parts";
    return std::nullopt;
  }
  const std::string text = replaced(row.graph, from, to);
  auto graph = ir::parse(text);
  if (graph.ok()) return std::move(graph).value();
  ADD_FAILURE() << graph.error().message << "\n" << text;
  return std::nullopt;
}

// Functions by table: the refused value, its accepted neighbour, and the reason.
inline constexpr Row kTableRows[] = {
    {kRelu, "scale=1 zero=128;scale=1 zero=0", "scale=bits:1fffffff zero=128;scale=1 zero=0",
     "scale=bits:20000000 zero=128;scale=1 zero=0", "requantization scale"},
    // 2^-63 is 1.0842022e-19; at the upper end 255 << 23 is the largest that the CPU's 32 bits hold.
    {kRelu, "scale=1 zero=128", "scale=1.0842e-19 zero=128", "scale=1.08421e-19 zero=128", "requantization scale"},
    {kRelu, "scale=1 zero=128", "scale=8388608 zero=128", "scale=8388607 zero=128", "requantization scale"},
    {kRelu, "scale=1 zero=128;RELU", "scale=1.0842e-19 zero=128;ABS", "scale=1.08421e-19 zero=128;ABS",
     "requantization scale"},
    {kRelu, "scale=1 zero=128;RELU", "scale=8388608 zero=128;ABS", "scale=8388607 zero=128;ABS",
     "requantization scale"},
    {kRelu, "scale=1 zero=128;scale=1 zero=0", "scale=1e+20 zero=128;scale=1e-20 zero=0",
     "scale=1e+20 zero=128;scale=1e+20 zero=0", "requantization scale"},
    {kLogistic, "scale=0.00390625", "scale=0.000488", "scale=0.00048828125", "finer than the chip's table"},
    {kRelu, "inputs 0;RELU in=[0]", "tensor 2 \"t\" uint8 256 const=random:1\ninputs 0;BYTE_TABLE in=[0 2]",
     "inputs 0;TANH in=[0]", "linear between its entries"},
    {kLogistic, "scale=0.00390625", "scale=9.3e+18", "scale=9.2e+18", "requantization scale"},
};

}  // namespace skillet::npus::vivante
