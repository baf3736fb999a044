// Quantized operations of ONNX files with one byte changed: attributes, sizes, types, names, values of constants. See
// ops_test.cpp.
#include <gtest/gtest.h>

#include "answers/changes.h"
#include "answers/lines.h"
#include "base/log.h"
#include "frontend/onnx/testing/file.h"

namespace skillet::onnx {
namespace {

const Dims kImage = {1, 4, 6, 5};

struct Row {
  const char* op;
  std::vector<std::string> attributes = {}, constants = {}, inputs = {};  // inputs beside the first
  Dims dims = kImage;
};

std::string zeros(const std::string& name, int type, const Dims& dims, int64_t bytes_of_one) {
  int64_t bytes = bytes_of_one;
  for (const int64_t dim : dims) bytes *= dim;
  std::string raw(static_cast<size_t>(bytes), '\0');
  for (size_t i = 0; i < raw.size() && type == kInt8; ++i) raw[i] = static_cast<char>(i % 7);
  return tensor(name, type, dims, raw);
}
std::string floats(const std::string& name, const Dims& dims, std::initializer_list<float> values) {
  return tensor(name, kFloat, dims, bytes_of(values));
}

// A filter "w" of bytes with the scale 0.25.
Row with_filter(const char* op, const Dims& filter, std::vector<std::string> attributes = {}, Dims dims = kImage) {
  return {.op = op,
          .attributes = std::move(attributes),
          .constants = {zeros("w8", kInt8, filter, 1), floats("ws", {}, {0.25F}), zeros("wz", kInt8, {}, 1)},
          .inputs = {"w"},
          .dims = std::move(dims)};
}

std::vector<Row> windows() {
  const std::string kernel = ints("kernel_shape", {3, 2}), strides = ints("strides", {2, 1});
  const std::string pads = ints("pads", {1, 0, 1, 1});
  return {
      with_filter("Conv", {8, 4, 3, 3}, {ints("pads", {1, 1, 1, 1})}),
      with_filter("Conv", {8, 4, 3, 2}, {strides, pads}),
      with_filter("Conv", {4, 1, 3, 3}, {number("group", 4), ints("dilations", {2, 1})}),
      with_filter("Conv", {8, 2, 1, 1}, {number("group", 2), word("auto_pad", "SAME_UPPER")}),
      with_filter("ConvTranspose", {4, 6, 2, 2}, {ints("strides", {2, 2})}),
      with_filter("ConvTranspose", {4, 6, 3, 3}, {ints("output_padding", {1, 1}), ints("strides", {2, 2})}),
      with_filter("MatMul", {5, 8}),
      with_filter("MatMul", {4, 5, 3}),
      with_filter("Gemm", {8, 5}, {number("transB", 1)}, {6, 5}),
      with_filter("Gemm", {5, 8}, {real("alpha", 1)}, {6, 5}),
      {"AveragePool", {kernel, strides}},
      {"AveragePool", {kernel, pads, number("count_include_pad", 1)}},
      {"MaxPool", {kernel, strides, number("ceil_mode", 1)}},
      {"MaxPool", {ints("kernel_shape", {2, 2}), word("auto_pad", "SAME_LOWER")}},
      {"GlobalAveragePool"},
      {"GlobalMaxPool"},
      {"Resize",
       {word("mode", "nearest"), word("nearest_mode", "floor"), word("coordinate_transformation_mode", "asymmetric")},
       {floats("c", {4}, {1, 1, 2, 2})},
       {"", "c"}},
      {"Resize",
       {word("mode", "linear"), word("coordinate_transformation_mode", "half_pixel")},
       {int64s("c", {1, 4, 12, 10})},
       {"", "", "c"}}};
}

std::vector<Row> moves() {
  return {{"Concat", {number("axis", 1)}, {}, {"real"}},
          {"Slice", {}, {int64s("a", {1}), int64s("b", {3}), int64s("c", {2})}, {"a", "b", "c"}},
          {"Pad", {}, {int64s("c", {0, 0, 1, 2, 0, 0, 0, 1})}, {"c"}},
          {"Transpose", {ints("perm", {0, 2, 3, 1})}},
          {"Reshape", {}, {int64s("c", {1, 4, 30})}, {"c"}},
          {"Flatten", {number("axis", 2)}},
          {"Squeeze", {}, {int64s("c", {0})}, {"c"}},
          {"Unsqueeze", {}, {int64s("c", {1})}, {"c"}},
          {"Gather", {number("axis", 2)}, {int64s("c", {3, 1})}, {"c"}},
          {"Expand", {}, {int64s("c", {2, 4, 6, 5})}, {"c"}},
          {"Tile", {}, {int64s("c", {1, 1, 2, 1})}, {"c"}},
          {"DepthToSpace", {number("blocksize", 2), word("mode", "CRD")}},
          {"SpaceToDepth", {number("blocksize", 1)}}};
}

std::vector<Row> numbers() {
  std::vector<Row> out = {{"LeakyRelu", {real("alpha", 0.2F)}},
                          {"Elu", {real("alpha", 1)}},
                          {"HardSigmoid", {real("alpha", 0.125F), real("beta", 0.5F)}},
                          {"Clip", {}, {floats("a", {}, {0}), floats("b", {}, {6})}, {"a", "b"}},
                          {"PRelu", {}, {floats("c", {4, 1, 1}, {0.5F, 0.25F, 0, 1})}, {"c"}},
                          {"Softmax", {number("axis", 1)}},
                          {"Softmax", {number("axis", -1)}},
                          {"ReduceMean", {ints("axes", {2, 3})}},
                          {"ReduceMean", {number("keepdims", 0), ints("axes", {-1})}},
                          {"ReduceMax", {ints("axes", {1})}},
                          {"ReduceSum", {}, {int64s("c", {2})}, {"c"}},
                          {"Pow", {}, {floats("c", {}, {2})}, {"c"}}};
  for (const char* op : {"Relu", "HardSwish", "Sigmoid", "Tanh", "Abs", "Neg", "Exp", "Sqrt", "Erf", "Gelu", "Floor"})
    out.push_back({op});
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
    out.push_back({op, {}, {floats("c", {4, 1, 1}, {1, 0.5F, 2, 4})}, {"c"}});
    out.push_back({op, {}, {}, {"real"}});
  }
  return out;
}

Parts parts_of(const Row& row) {
  Parts parts{.nodes = {}, .constants = row.constants};
  if (std::ranges::find(row.inputs, "w") != row.inputs.end())
    parts.nodes.push_back(node("DequantizeLinear", {"w8", "ws", "wz"}, {"w"}));
  return in_halves(row.op, row.dims, row.inputs, parts, row.attributes);
}

std::string answer(const Bytes& file) {
  std::vector<std::string> left;
  ImportOptions options;
  options.left = &left;
  const auto graph = import(file, "m", options);
  std::string said = graph.ok() ? ir::print(*graph) : graph.error().message;
  for (const std::string& one : left) said += "\n" + one;
  return said;
}

TEST(QuantizedOperation, FilesWithOneByteChangedAreReadAsBefore) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> hashes;
  for (const auto& rows : {windows(), moves(), numbers()}) {
    for (const Row& row : rows) {
      Hash& hash = hashes[row.op];
      hash.add(answer(file(parts_of(row))));
      answers::each_change(file(parts_of(row)), 1, [&](const Bytes& changed) { hash.add(answer(changed)); });
    }
  }
#ifdef __clang__
  GTEST_SKIP() << "the expected lines are those of GCC's builds";
#endif
  expect_hashes("tests/expectations/onnx.txt", "quantized ", hashes);
}

// Images of other sizes, and other numbers of dimensions.
TEST(QuantizedOperation, OfOtherSizesAreReadAsBefore) {
  const log::ScopedLevel quiet(log::Level::error);
  const Dims all[] = {{1, 1, 1, 1}, {1, 4, 1, 5}, {1, 4, 6, 1},    {2, 4, 6, 5}, {1, 8, 6, 5}, {1, 4, 7, 9},  {4, 6, 5},
                      {6, 5},       {5},          {1, 4, 2, 3, 5}, {1, 4, 0, 5}, {1, 2, 6, 5}, {1, 4, 300, 5}};
  std::map<std::string, Hash> hashes;
  for (const auto& rows : {windows(), moves(), numbers()}) {
    for (Row row : rows) {
      for (const Dims& dims : all) {
        row.dims = dims;
        hashes[row.op].add(answer(file(parts_of(row))));
      }
    }
  }
#ifdef __clang__
  GTEST_SKIP() << "the expected lines are those of GCC's builds";
#endif
  expect_hashes("tests/expectations/onnx.txt", "sized ", hashes);
}

// Each number of an attribute varied, for images of other sizes, and with each kind of automatic padding.
TEST(QuantizedOperation, OfOtherNumbersAndSizesAreReadAsBefore) {
  const log::ScopedLevel quiet(log::Level::error);
  const Dims all[] = {kImage, {1, 9, 6, 6}, {1, 16, 12, 9}, {1, 36, 4, 8}, {1, 4, 12, 13}};
  std::map<std::string, Hash> hashes;
  const auto ask = [&](Row row) {
    for (const Dims& dims : all) {
      row.dims = dims;
      hashes[row.op].add(answer(file(parts_of(row))));
    }
  };
  for (const auto& rows : {windows(), moves(), numbers()}) {
    for (const Row& row : rows) {
      for (size_t at = 0; at < row.attributes.size(); ++at) {
        for (size_t index = 0; index < 4; ++index) {
          for (const int64_t value : {0, 1, 2, 3, 4, 6}) {
            Row changed = row;
            changed.attributes[at] = with_number(row.attributes[at], index, value);
            if (!changed.attributes[at].empty()) ask(std::move(changed));
          }
        }
      }
      const bool is_window = std::string_view(row.op).ends_with("Pool") || row.op[0] == 'C';
      for (const char* padding : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "odd"}) {
        for (const int64_t stride : {1, 2, 3, 5}) {
          Row changed = row;
          changed.attributes.push_back(word("auto_pad", padding));
          changed.attributes.push_back(ints("strides", {stride, stride}));
          if (is_window) ask(std::move(changed));
        }
      }
    }
  }
#ifdef __clang__
  GTEST_SKIP() << "the expected lines are those of GCC's builds";
#endif
  expect_hashes("tests/expectations/onnx.txt", "numbered ", hashes);
}

}  // namespace
}  // namespace skillet::onnx
