// Declared sizes that no kernel computes: sizes of windows, and fillers that the steps of a part cannot represent.
#include <gtest/gtest.h>

#include "frontend/onnx/capability.h"
#include "frontend/onnx/testing/qdq_net.h"
#include "frontend/onnx/units.h"

namespace skillet::onnx {
namespace {

using ir::DType;

TEST(Model, SizesBehindWindowsThatNobodyComputesAreNotKnown) {
  struct Row {
    std::vector<int64_t> pads, out;
    bool is_ceil, is_known;
  };
  // 5 x 7 pixels, a window of one pixel for every 3: 2 x 3 of them begin in the image.
  for (const Row& row : {Row{{0, 0, 0, 0}, {1, 3, 2, 3}, true, true}, Row{{0, 0, 0, 0}, {1, 3, 3, 3}, true, false},
                         Row{{2, 0, 0, 0}, {1, 3, 3, 3}, true, true}, Row{{0, 0, 2, 0}, {1, 3, 3, 3}, true, false},
                         Row{{0, 0, 2, 0}, {1, 3, 3, 3}, false, true}}) {
    QdqNet net(DType::uint8);
    const ir::Quant quant{{0.05F}, {120}};
    const int x = net.dequantized(net.value(DType::uint8, {1, 3, 5, 7}), quant);
    const int y = net.value(DType::float32, row.out), z = net.value(DType::float32, row.out);
    Node& pool = net.node("MaxPool", {x}, {y});
    pool.attributes["kernel_shape"].ints = {1, 1};
    pool.attributes["strides"].ints = {3, 3};
    pool.attributes["pads"].ints = row.pads;
    pool.attributes["ceil_mode"].ints = {row.is_ceil ? 1 : 0};
    net.node("Sigmoid", {y}, {z});
    const int inner = net.value(DType::float32, {1});
    net.node("Loop", {}, {inner}).inner_inputs = {z};
    forget_wrong_sizes(net.model);
    EXPECT_TRUE(net.model.value(x).dims.has_value());
    for (const int id : {y, z, inner}) EXPECT_EQ(net.model.value(id).dims.has_value(), row.is_known);
  }
}

// A batch follows from inputs of the same rank; an operand of another rank does not determine it.
TEST(Model, BatchesAreSettledByInputsOfOneRank) {
  for (const std::vector<int64_t>& other : std::vector<std::vector<int64_t>>{{2, 3, 4}, {1, 3, 4}, {4}}) {
    QdqNet net(DType::uint8);
    const int y = net.value(DType::float32, {-1, 3, 4});
    net.node("Add", {net.value(DType::float32, {2, 3, 4}), net.value(DType::float32, other)}, {y});
    settle_batches(net.model);
    EXPECT_EQ(net.model.value(y).dims->front(), other.size() == 3 ? 2 : -1);
  }
}

// All other sizes and the number of elements are known.
TEST(Model, BatchesOfReshapesAreThoseOfTheirElements) {
  struct Row {
    const char* op;
    std::vector<int64_t> from, to;
    int64_t first;
  };
  constexpr int64_t kLarge = 1 << 20;
  for (const Row& row :
       {Row{"Reshape", {2, 6}, {-1, 3}, 4}, Row{"Flatten", {2, 3, 4}, {-1, 12}, 2}, Row{"Unsqueeze", {6}, {-1, 1}, 6},
        Row{"Squeeze", {5, 1, 2}, {-1, 2}, 5}, Row{"Reshape", {2, 6}, {-1, 5}, -1},
        Row{"Reshape", {2, 6}, {-1, 24}, -1}, Row{"Reshape", {-1, 6}, {-1, 3}, -1}, Row{"Reshape", {0, 6}, {-1, 3}, -1},
        Row{"Identity", {2, 6}, {-1, 3}, -1}, Row{"Reshape", {kLarge, kLarge, kLarge}, {-1, 2}, -1}}) {
    QdqNet net(DType::uint8);
    const int y = net.value(DType::float32, row.to);
    net.node(row.op, {net.value(DType::float32, row.from), net.list<int64_t>(DType::int64, row.to)}, {y});
    settle_batches(net.model);
    EXPECT_EQ(net.model.value(y).dims->front(), row.first) << row.op << " " << row.from.size() << " " << row.to.back();
  }
}

TEST(Model, SizesBehindTransposedWindowsAreThoseThatAreComputed) {
  struct Row {
    const char* automatic;
    std::vector<int64_t> pads, more, given, out;
    bool is_known;
  };
  using Dims = std::vector<int64_t>;
  // 5 x 6 pixels, 3 x 3 taps, a stride of 2: 11 x 13 pixels, of which SAME leaves 10 x 12.
  for (const Row& row :
       {Row{"NOTSET", {}, {}, {}, {11, 13}, true}, Row{"NOTSET", {}, {}, {}, {11, 12}, false},
        Row{"NOTSET", {1, 0, 1, 2}, {0, 1}, {}, {9, 12}, true}, Row{"NOTSET", {1, 0, 1, 2}, {0, 1}, {}, {9, 11}, false},
        Row{"VALID", {}, {1, 0}, {}, {12, 13}, true}, Row{"SAME_UPPER", {}, {}, {}, {10, 12}, true},
        Row{"SAME_UPPER", {}, {1, 1}, {}, {10, 12}, true}, Row{"SAME_LOWER", {}, {1, 1}, {}, {11, 13}, false},
        Row{"SAME_LOWER", {}, {1, 1}, {9, 12}, {9, 12}, true}, Row{"NOTSET", {}, {}, {1, 4, 9, 12}, {9, 12}, false}}) {
    QdqNet net(DType::uint8);
    const Dims dims = {1, 4, row.out[0], row.out[1]};
    const int x = net.value(DType::float32, {1, 8, 5, 6}), w = net.value(DType::float32, {8, 4, 3, 3});
    const int y = net.value(DType::float32, dims), z = net.value(DType::float32, dims);
    Node& node = net.node("ConvTranspose", {x, w}, {y});
    node.attributes["strides"].ints = {2, 2};
    node.attributes["auto_pad"].text = row.automatic;
    node.attributes["pads"].ints = row.pads;
    node.attributes["output_padding"].ints = row.more;
    node.attributes["output_shape"].ints = row.given;
    net.node("Sigmoid", {y}, {z});
    forget_wrong_sizes(net.model);
    for (const int id : {y, z})
      EXPECT_EQ(net.model.value(id).dims.has_value(), row.is_known)
          << row.automatic << ' ' << row.out[0] << 'x' << row.out[1];
  }
}

TEST(Units, AFillerThatTheInputsStepsCannotHoldIsLeft) {
  struct Row {
    float filler;
    ir::Quant in, out;
    bool is_taken;
  };
  const ir::Quant bytes{{0.01F}, {0}}, wide{{0.05F}, {128}}, fine{{0.001F}, {0}};
  for (const Row& row : {Row{0.5F, bytes, wide, true}, Row{-1.0F, bytes, wide, false}, Row{5.0F, bytes, wide, false},
                         Row{-1.0F, bytes, bytes, false}, Row{5.0F, bytes, bytes, false},
                         Row{0.104F, bytes, fine, false}, Row{0.0F, bytes, fine, true}}) {
    QdqNet net(DType::uint8);
    const int x = net.dequantized(net.value(DType::uint8, {1, 3, 4, 4}), row.in);
    const int pads = net.list(DType::int64, std::vector<int64_t>{0, 0, 1, 1, 0, 0, 1, 1});
    const int filler = net.list(DType::float32, std::vector<float>{row.filler}, true);
    const int y = net.value(DType::float32, {1, 3, 6, 6});
    net.node("Pad", {x, pads, filler}, {y});
    net.model.values[static_cast<size_t>(net.quantized(y, row.out))].is_output = true;
    const auto whole = whole_of(net.model, links_of(net.model));
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    ASSERT_EQ(whole->units.size(), 1U);
    EXPECT_EQ(whole->units[0].refusal.empty(), row.is_taken) << row.filler << ": " << whole->units[0].refusal;
  }
}

}  // namespace
}  // namespace skillet::onnx
