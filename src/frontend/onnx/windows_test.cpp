// Convolutions and pools of ONNX files compared with ONNX's definition: equal, or left. Selection by indices.
#include <gtest/gtest.h>

#include "frontend/onnx/testing/file.h"

namespace skillet::onnx {
namespace {

constexpr int64_t kHigh = 7, kWide = 6;

struct WindowRow {
  const char* op;
  int64_t kernel, stride;
  Dims pads;  // top, left, bottom, right
  int64_t dilation = 1;
  bool is_ceil = false, counts_pads = false;
  const char* automatic = "NOTSET";
  bool is_left = false;  // left with a reason: we have no kernel
  Dims sized = {};       // output_shape
};
std::ostream& operator<<(std::ostream& out, const WindowRow& row) {
  return out << row.op << ' ' << row.kernel << " by " << row.stride << ", pads " << testing::PrintToString(row.pads)
             << ", dilation " << row.dilation << (row.is_ceil ? ", ceil" : "") << (row.counts_pads ? ", counts" : "")
             << ' ' << row.automatic;
}

struct Windowed {
  Parts parts;
  std::vector<float> in, want;

  explicit Windowed(const WindowRow& row) {
    for (int64_t i = 0; i < kHigh * kWide; ++i) in.push_back(static_cast<float>(i * i * 5 % 37) - 20);
    const bool is_transposed = std::string_view(row.op) == "ConvTranspose";
    const Dims out = is_transposed ? transposed(row) : pooled(row);
    std::vector<std::string> attributes = {ints("strides", {row.stride, row.stride}), ints("pads", row.pads),
                                           ints("dilations", {row.dilation, row.dilation}),
                                           ints("kernel_shape", {row.kernel, row.kernel}),
                                           word("auto_pad", row.automatic)};
    if (!row.sized.empty()) attributes.push_back(ints("output_shape", row.sized));
    if (row.is_ceil) attributes.push_back(number("ceil_mode", 1));
    if (row.counts_pads) attributes.push_back(number("count_include_pad", 1));
    parts = {.nodes = {node(row.op, is_transposed ? std::vector<std::string>{"x", "w"} : std::vector<std::string>{"x"},
                            {"y"}, attributes)},
             .inputs = {value("x", {1, 1, kHigh, kWide})},
             .outputs = {value("y", out)}};
    if (!is_transposed) return;
    std::string taps;
    for (int64_t i = 0; i < row.kernel * row.kernel; ++i) taps += bytes_of({static_cast<float>(i + 1)});
    parts.constants.push_back(tensor("w", kFloat, {1, 1, row.kernel, row.kernel}, taps));
  }

  // Begin of the first window for auto_pad, before the image or (below 0) inside it, halved as in ONNX Runtime.
  static int64_t begin_of(const WindowRow& row, int64_t size, int64_t count) {
    const int64_t needed = (count - 1) * row.stride + (row.kernel - 1) * row.dilation + 1 - size;
    return (std::string_view(row.automatic) == "SAME_LOWER" ? needed + 1 : needed) / 2;
  }

  Dims pooled(const WindowRow& row) {
    Dims out = {1, 1}, before = row.pads;
    const int64_t extent = (row.kernel - 1) * row.dilation + 1;
    for (size_t i = 0; i < 2; ++i) {
      if (std::string_view(row.automatic) == "VALID") before[i] = before[i + 2] = 0;
      const int64_t size = i == 0 ? kHigh : kWide, room = size + before[i] + before[i + 2] - extent;
      if (std::string_view(row.automatic).starts_with("SAME")) {
        out.push_back((size + row.stride - 1) / row.stride);
        before[i] = begin_of(row, size, out.back());
        continue;
      }
      int64_t count = (room + (row.is_ceil ? row.stride - 1 : 0)) / row.stride + 1;
      if ((count - 1) * row.stride >= size + before[i]) --count;
      out.push_back(count);
    }
    for (int64_t at = 0; at < out[2] * out[3]; ++at) {
      float most = std::numeric_limits<float>::lowest(), sum = 0, count = 0;
      for (int64_t tap = 0; tap < row.kernel * row.kernel; ++tap) {
        const int64_t y = at / out[3] * row.stride - before[0] + tap / row.kernel * row.dilation;
        const int64_t x = at % out[3] * row.stride - before[1] + tap % row.kernel * row.dilation;
        const bool is_inside = y >= 0 && y < kHigh && x >= 0 && x < kWide;
        if (is_inside || row.counts_pads) ++count;
        if (!is_inside) continue;
        most = std::max(most, in[static_cast<size_t>(y * kWide + x)]);
        sum += in[static_cast<size_t>(y * kWide + x)];
      }
      want.push_back(std::string_view(row.op) == "MaxPool" ? most : sum / count);
    }
    return out;
  }

  Dims transposed(const WindowRow& row) {
    Dims out = {1, 1, (kHigh - 1) * row.stride + row.kernel - row.pads[0] - row.pads[2],
                (kWide - 1) * row.stride + row.kernel - row.pads[1] - row.pads[3]};
    Dims pads = row.pads;
    for (size_t i = 0; i < row.sized.size(); ++i) {  // an odd pixel is cut off in front
      pads[i] = (out[i + 2] - row.sized[i] + 1) / 2;
      out[i + 2] = row.sized[i];
    }
    want.assign(static_cast<size_t>(out[2] * out[3]), 0);
    for (int64_t i = 0; i < kHigh * kWide; ++i) {
      for (int64_t tap = 0; tap < row.kernel * row.kernel; ++tap) {
        const int64_t y = i / kWide * row.stride + tap / row.kernel - pads[0];
        const int64_t x = i % kWide * row.stride + tap % row.kernel - pads[1];
        if (y >= 0 && y < out[2] && x >= 0 && x < out[3])
          want[static_cast<size_t>(y * out[3] + x)] += in[static_cast<size_t>(i)] * static_cast<float>(tap + 1);
      }
    }
    return out;
  }
};

class Windows : public testing::TestWithParam<WindowRow> {};

TEST_P(Windows, AreAsOnnxSaysOrLeft) {
  const Windowed made(GetParam());
  const auto graph = import(file(made.parts), "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto is_opaque = [](const ir::Op& op) { return op.kind == ir::OpKind::opaque; };
  ASSERT_EQ(std::ranges::any_of(graph->ops, is_opaque), GetParam().is_left);
  if (GetParam().is_left) return;
  const std::vector<float> got = run(made.parts, made.in);
  ASSERT_EQ(got.size(), made.want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], made.want[i], 1e-4) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Windows,
    testing::Values(WindowRow{"MaxPool", 3, 2, {0, 0, 0, 0}}, WindowRow{"MaxPool", 3, 2, {1, 1, 1, 1}},
                    WindowRow{"MaxPool", 3, 2, {1, 1, 0, 0}}, WindowRow{"MaxPool", 3, 2, {0, 0, 1, 1}},
                    WindowRow{"MaxPool", 3, 2, {1, 0, 1, 1}}, WindowRow{"MaxPool", 3, 1, {1, 1, 1, 1}},
                    WindowRow{"MaxPool", 3, 1, {2, 1, 0, 1}}, WindowRow{"MaxPool", 3, 1, {1, 2, 1, 0}},
                    WindowRow{"MaxPool", 2, 2, {0, 0, 0, 0}, 1, true},
                    WindowRow{"MaxPool", 3, 2, {1, 1, 1, 1}, 1, true},
                    WindowRow{"MaxPool", 2, 1, {0, 0, 0, 0}, 2, false, false, "NOTSET", true},
                    WindowRow{"MaxPool", 3, 1, {2, 2, 2, 2}, 2, false, false, "NOTSET", true},
                    WindowRow{"AveragePool", 3, 2, {0, 0, 0, 0}}, WindowRow{"AveragePool", 3, 1, {1, 1, 1, 1}},
                    WindowRow{"AveragePool", 3, 2, {1, 0, 1, 1}},
                    WindowRow{"AveragePool", 3, 2, {0, 0, 1, 1}, 1, false, false, "NOTSET", true},
                    WindowRow{"AveragePool", 3, 1, {2, 1, 0, 1}, 1, false, false, "NOTSET", true},
                    WindowRow{"AveragePool", 3, 1, {1, 2, 1, 0}, 1, false, false, "NOTSET", true},
                    WindowRow{"AveragePool", 3, 1, {1, 1, 1, 1}, 1, false, true},
                    WindowRow{"AveragePool", 3, 2, {1, 1, 0, 0}, 1, false, true},
                    WindowRow{"AveragePool", 2, 2, {0, 0, 0, 0}, 1, true, true, "NOTSET", true},
                    WindowRow{"AveragePool", 3, 2, {1, 1, 1, 1}, 1, true, true, "NOTSET", true},
                    WindowRow{"MaxPool", 3, 2, {0, 0, 0, 0}, 1, false, false, "SAME_UPPER"},
                    WindowRow{"MaxPool", 3, 2, {0, 0, 0, 0}, 1, false, false, "SAME_LOWER"},
                    WindowRow{"MaxPool", 1, 3, {0, 0, 0, 0}, 1, false, false, "SAME_UPPER"},
                    WindowRow{"MaxPool", 1, 3, {0, 0, 0, 0}, 1, false, false, "SAME_LOWER"},
                    WindowRow{"AveragePool", 1, 3, {0, 0, 0, 0}, 1, false, false, "SAME_UPPER"},
                    WindowRow{"AveragePool", 1, 3, {0, 0, 0, 0}, 1, false, false, "SAME_LOWER"},
                    WindowRow{"MaxPool", 3, 2, {1, 1, 1, 1}, 1, false, false, "VALID"},
                    WindowRow{"ConvTranspose", 4, 2, {0, 0, 0, 0}, 1, false, false, "NOTSET", false, {13, 11}},
                    WindowRow{"ConvTranspose", 3, 2, {0, 0, 0, 0}}, WindowRow{"ConvTranspose", 4, 2, {1, 1, 1, 1}},
                    WindowRow{"ConvTranspose", 3, 2, {1, 1, 0, 0}}, WindowRow{"ConvTranspose", 3, 2, {0, 0, 1, 1}},
                    WindowRow{"ConvTranspose", 3, 2, {0, 1, 1, 0}}, WindowRow{"ConvTranspose", 4, 1, {2, 1, 1, 2}},
                    WindowRow{"ConvTranspose", 3, 2, {0, 0, 1, 1}, 1, false, false, "SAME_UPPER", true},
                    WindowRow{"ConvTranspose", 3, 2, {0, 0, 0, 0}, 2, false, false, "NOTSET", true}));

// A sequence gives the results of an image of one row; all attributes get a second number for it.
struct Sequence {
  const char* op;
  Dims filter;  // empty: a pool
  int64_t kernel, stride, dilation;
  Dims pads;
  int64_t length;        // of the result
  int64_t channels = 6;  // of the result
  int64_t groups = 1;
};
std::ostream& operator<<(std::ostream& out, const Sequence& row) {
  return out << row.op << ' ' << row.kernel << " by " << row.stride << ", groups " << row.groups;
}

Parts parts_of(const Sequence& row, bool is_image) {
  const auto with_row = [&](Dims dims, std::ptrdiff_t at, int64_t number) {
    if (is_image) dims.insert(dims.begin() + at, number);
    return dims;
  };
  const auto is_global = std::string_view(row.op).starts_with("Global");
  std::vector<std::string> attributes, inputs = {"x"};
  if (!is_global) {
    attributes = {ints("kernel_shape", with_row({row.kernel}, 0, 1)), ints("strides", with_row({row.stride}, 0, 1)),
                  ints("pads", is_image ? Dims{0, row.pads[0], 0, row.pads[1]} : row.pads)};
    if (row.dilation != 1) attributes.push_back(ints("dilations", with_row({row.dilation}, 0, 1)));
    if (row.groups != 1) attributes.push_back(number("group", row.groups));
    if (std::string_view(row.op) == "AveragePool") attributes.push_back(number("count_include_pad", 1));
  }
  Parts parts{.inputs = {value("x", with_row({1, 6, 17}, 2, 1))},
              .outputs = {value("y", with_row({1, row.channels, row.length}, 2, 1))}};
  if (!row.filter.empty()) {
    inputs.push_back("w");
    std::string taps;
    for (int64_t i = 0; i < row.filter[0] * row.filter[1] * row.filter[2]; ++i)
      taps += bytes_of({static_cast<float>(i * 7 % 13) - 6});
    parts.constants.push_back(tensor("w", kFloat, with_row(row.filter, 2, 1), taps));
  }
  parts.nodes = {node(row.op, inputs, {"y"}, attributes)};
  return parts;
}

class Sequences : public testing::TestWithParam<Sequence> {};
TEST_P(Sequences, AreImagesOfOneRow) {
  std::vector<float> in;
  for (int64_t i = 0; i < 6 * 17; ++i) in.push_back(static_cast<float>(i * i * 5 % 37) - 20);
  const std::vector<float> got = run(parts_of(GetParam(), false), in);
  EXPECT_EQ(std::ssize(got), GetParam().channels * GetParam().length);
  EXPECT_EQ(got, run(parts_of(GetParam(), true), in));
}
INSTANTIATE_TEST_SUITE_P(Onnx, Sequences,
                         testing::Values(Sequence{"Conv", {4, 6, 3}, 3, 2, 1, {1, 0}, 8, 4},
                                         Sequence{"Conv", {4, 6, 3}, 3, 1, 2, {2, 2}, 17, 4},
                                         Sequence{"Conv", {6, 1, 5}, 5, 1, 1, {2, 2}, 17, 6, 6},
                                         Sequence{"Conv", {4, 3, 2}, 2, 1, 1, {0, 0}, 16, 4, 2},
                                         Sequence{"ConvTranspose", {6, 3, 4}, 4, 2, 1, {1, 1}, 34, 3},
                                         Sequence{"ConvTranspose", {6, 2, 3}, 3, 2, 1, {0, 0}, 35, 2},
                                         Sequence{"MaxPool", {}, 3, 2, 1, {1, 1}, 9},
                                         Sequence{"AveragePool", {}, 4, 3, 1, {0, 2}, 6},
                                         Sequence{"GlobalAveragePool", {}, 1, 1, 1, {}, 1},
                                         Sequence{"GlobalMaxPool", {}, 1, 1, 1, {}, 1}));

TEST(Gather, CountsComputedIndicesFromTheEndToo) {
  for (const int64_t type : {6, 7}) {  // int32, int64
    const Parts parts{.nodes = {node("Cast", {"x"}, {"i"}, {number("to", type)}), node("Gather", {"x", "i"}, {"y"})},
                      .constants = {},
                      .inputs = {value("x", {4})},
                      .outputs = {value("y", {4})}};
    EXPECT_EQ(run(parts, std::vector<float>{0, -1, 1, -4}), (std::vector<float>{0, -4, -1, 0})) << type;
  }
}

}  // namespace
}  // namespace skillet::onnx
