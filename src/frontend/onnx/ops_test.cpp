// Operations of ONNX files beside numbers worked out by hand; what is computed of constants when a file is read.
#include <gtest/gtest.h>

#include <cmath>
#include <protozero/pbf_reader.hpp>

#include "answers/changes.h"
#include "answers/lines.h"
#include "base/log.h"
#include "frontend/onnx/testing/file.h"

namespace skillet::onnx {
namespace {

struct OpRow {
  const char* name;
  Parts parts;
  std::vector<float> want;
  std::vector<float> in = {-1, 3, 2, -4, 5, 6};  // two rows of three
};
std::ostream& operator<<(std::ostream& out, const OpRow& row) { return out << row.name; }

// The same, of an input of these sizes.
Parts of_sizes(const Dims& dims, Parts parts) {
  parts.inputs = {value("x", dims)};
  return parts;
}
Parts of_image(Parts parts) { return of_sizes({1, 2, 2, 2}, std::move(parts)); }

// A sum with what a node of no input makes.
Parts sum_with(const char* op, const std::string& attribute, std::vector<std::string> inputs = {},
               std::vector<std::string> constants = {}) {
  return {.nodes = {node(op, inputs, {"c"}, {attribute}), node("Add", {"x", "c"}, {"y"})},
          .constants = std::move(constants)};
}
std::string float_list(const std::string& name, const std::vector<float>& values) {
  return message([&](pbf_writer& w) {
    w.add_string(1, name);
    for (const float one : values) w.add_float(7, one);
  });
}
// Numbers of 64 bits, one after the other as the field has them.
std::string doubles(const std::string& name, const std::vector<double>& values) {
  return message([&](pbf_writer& w) {
    w.add_int64(1, static_cast<int64_t>(values.size()));
    w.add_int64(2, 11);
    w.add_string(8, name);
    for (const double one : values) w.add_double(10, one);
  });
}

// Its indices as floats.
Parts picked(const char* op, std::vector<std::string> attributes) {
  return {.nodes = {node(op, {"x"}, {"i"}, attributes), node("Cast", {"i"}, {"y"}, {number("to", kFloat)})},
          .constants = {}};
}

// A sum with what `op` makes of constants: floats {1, 2, 3} and {2, 2, 2}, or booleans {1, 1, 0} and {0, 1, 1}.
Parts logic(const std::string& op) {
  const bool is_of_numbers = op.ends_with("Equal"), is_of_one = op == "Not" || op == "Size";
  std::vector<std::string> inputs = {"k", "l"};
  if (is_of_one) inputs.pop_back();
  const auto bits = [](const char* name, std::initializer_list<int8_t> values) {
    return tensor(name, kBool, {3}, bytes_of(values));
  };
  Parts parts{.nodes = {node(op, inputs, {"b"}), node("Cast", {"b"}, {"c"}, {number("to", kFloat)}),
                        node("Add", {"x", "c"}, {"y"})},
              .constants = {bits("k", {1, 1, 0}), bits("l", {0, 1, 1})}};
  if (is_of_numbers) parts.constants = {floats("k", {3}, {1, 2, 3}), floats("l", {3}, {2, 2, 2})};
  return parts;
}

// What is computed when the file is read.
std::vector<OpRow> of_constants() {
  return {
      {"concat_of_constants",
       {.nodes = {node("Concat", {"k", "l"}, {"c"}, {number("axis", 1)}), node("Add", {"x", "c"}, {"y"})},
        .constants = {floats("k", {2, 1}, {1, 2}), floats("l", {2, 2}, {3, 4, 5, 6})}},
       {0, 6, 6, -2, 10, 12}},
      {"gather_of_a_constant",
       {.nodes = {node("Gather", {"k", "i"}, {"c"}, {number("axis", -1)}), node("Add", {"x", "c"}, {"y"})},
        .constants = {floats("k", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), int64s("i", {-1, 0, 1})}},
       {3, 4, 4, 4, 10, 12}},
      {"not_less_of_constants", logic("GreaterOrEqual"), {-1, 4, 3, -4, 6, 7}},
      {"not_greater_of_constants", logic("LessOrEqual"), {0, 4, 2, -3, 6, 6}},
      {"and_of_constants", logic("And"), {-1, 4, 2, -4, 6, 6}},
      {"or_of_constants", logic("Or"), {0, 4, 3, -3, 6, 7}},
      {"not_of_a_constant", logic("Not"), {-1, 3, 3, -4, 5, 7}},
      {"size_of_a_constant", logic("Size"), {2, 6, 5, -1, 8, 9}},
  };
}

std::vector<OpRow> operations() {
  const float a = std::sqrt(14.0F), b = std::sqrt(77.0F);
  const std::string low = floats("low", {}, {-1}), high = floats("high", {}, {4});
  const std::vector<float> image = {1, 3, 1, 3, 0, 0, 4, 4};
  return {
      {"reduce_l2", one("ReduceL2", {}, {ints("axes", {2})}), {a, b}},
      {"reduce_l2_from_the_end", one("ReduceL2", {}, {ints("axes", {-1}), number("keepdims", 0)}), {a, b}},
      {"reduce_l2_of_rows",
       one("ReduceL2", {"axes"}, {}, {int64s("axes", {1})}, 18),
       {std::sqrt(17.0F), std::sqrt(34.0F), std::sqrt(40.0F)}},
      {"arg_max", picked("ArgMax", {number("axis", 2)}), {1, 2}},
      {"arg_max_of_rows", picked("ArgMax", {number("axis", -2), number("keepdims", 0)}), {0, 1, 1}},
      {"arg_min", picked("ArgMin", {number("axis", 1)}), {1, 0, 0}},
      {"instance_norm",
       of_image(one("InstanceNormalization", {"by", "plus"}, {real("epsilon", 0)},
                    {floats("by", {2}, {2, 1}), floats("plus", {2}, {1, -1})})),
       {-1, 3, -1, 3, -2, -2, 0, 0},
       image},
      {"batch_norm",
       of_image(one("BatchNormalization", {"by", "plus", "mean", "square"}, {real("epsilon", 1)},
                    {floats("by", {2}, {2, 3}), floats("plus", {2}, {1, 0}), floats("mean", {2}, {2, 1}),
                     floats("square", {2}, {0, 8})})),
       {-1, 3, -1, 3, -1, -1, 3, 3},
       image},
      {"clip", one("Clip", {"low", "high"}, {}, {low, high}), {-1, 3, 2, -1, 4, 4}},
      {"clip_from_above", one("Clip", {"", "high"}, {}, {high}), {-1, 3, 2, -4, 4, 4}},
      {"clip_by_computed_limits",
       {.nodes = {node("ReduceMean", {"x"}, {"m"}, {number("keepdims", 0)}), node("Clip", {"x", "m", "high"}, {"y"})},
        .constants = {floats("high", {}, {5})}},
       {11.0F / 6, 3, 2, 11.0F / 6, 5, 5}},
      {"clip_as_relu6", one("Clip", {}, {real("min", 0), real("max", 6)}, {}, 6), {0, 3, 2, 0, 5, 6}},
      {"where",
       {.nodes = {node("Where", {"c", "x", "z"}, {"y"})},
        .constants = {tensor("c", kBool, {3}, bytes_of<int8_t>({1, 0, 1})), floats("z", {}, {9})}},
       {-1, 9, 2, -4, 9, 6}},
      {"sum", one("Sum", {"x", "z"}, {}, {floats("z", {1, 2, 3}, {1, 2, 3, 4, 5, 6})}), {-1, 8, 7, -4, 15, 18}},
      {"expand", one("Expand", {"s"}, {}, {int64s("s", {2, 1, 1})}), {-1, 3, 2, -4, 5, 6, -1, 3, 2, -4, 5, 6}},
      {"global_max_pool", of_image(one("GlobalMaxPool", {})), {3, 4}, image},
      {"slice_by_steps",
       one("Slice", {"a", "b", "c", "d"}, {}, {int64s("a", {0}), int64s("b", {3}), int64s("c", {2}), int64s("d", {2})}),
       {-1, 2, -4, 6}},
      {"slice_backwards",
       one("Slice", {"a", "b", "c", "d"}, {},
           {int64s("a", {-1}), int64s("b", {INT64_MIN}), int64s("c", {2}), int64s("d", {-1})}),
       {2, 3, -1, 6, 5, -4}},
      {"slice_backwards_by_steps",
       one("Slice", {"a", "b", "c", "d"}, {},
           {int64s("a", {1, 9}), int64s("b", {0, -9}), int64s("c", {1, 2}), int64s("d", {-1, -2})}),
       {6, -4}},
      {"slice_by_attributes",
       one("Slice", {}, {ints("starts", {1, 0}), ints("ends", {2, -1}), ints("axes", {1, 2})}, {}, 9),
       {-4, 5}},
      {"pad_with_zeros",
       one("Pad", {"pads", "by"}, {}, {int64s("pads", {0, 0, 1, 0, 0, 0}), floats("by", {}, {0})}),
       {0, -1, 3, 2, 0, -4, 5, 6}},
      {"pad_with_a_number",
       one("Pad", {"pads", "by"}, {}, {int64s("pads", {0, 0, 1, 0, 0, 0}), floats("by", {}, {-0.3F})}),
       {-0.3F, -1, 3, 2, -0.3F, -4, 5, 6}},
      {"pad_by_attributes",
       one("Pad", {}, {ints("pads", {0, 0, 0, 0, 0, 1}), real("value", 0.3F)}, {}, 9),
       {-1, 3, 2, 0.3F, -4, 5, 6, 0.3F}},
      // Pads last dimension first, as exporters of PyTorch's F.pad write them.
      {"pad_by_turned_pairs",
       {.nodes = {node("Reshape", {"pairs", "two"}, {"rows"}),
                  node("Slice", {"rows", "last", "least", "first", "last"}, {"turned"}),
                  node("Transpose", {"turned"}, {"columns"}), node("Reshape", {"columns", "last"}, {"list"}),
                  node("Pad", {"x", "list", "by"}, {"y"})},
        .constants = {int64s("pairs", {1, 0, 0, 0, 0, 0}), int64s("two", {-1, 2}), int64s("last", {-1}),
                      int64s("least", {INT64_MIN}), int64s("first", {0}), floats("by", {}, {0})}},
       {0, -1, 3, 2, 0, -4, 5, 6}},
      {"pad_by_reflection",
       one("Pad", {"pads"}, {word("mode", "reflect")}, {int64s("pads", {0, 0, 1, 0, 0, 1})}),
       {3, -1, 3, 2, 3, 5, -4, 5, 6, 5}},
      {"depth_first_blocks",
       of_sizes({1, 8, 1, 1}, one("DepthToSpace", {}, {number("blocksize", 2)})),
       {0, 2, 4, 6, 1, 3, 5, 7},
       {0, 1, 2, 3, 4, 5, 6, 7}},
      {"blocks_of_a_channel",
       of_sizes({1, 8, 1, 1}, one("DepthToSpace", {}, {number("blocksize", 2), word("mode", "CRD")})),
       {0, 1, 2, 3, 4, 5, 6, 7},
       {0, 1, 2, 3, 4, 5, 6, 7}},
      {"reshape_keeps", one("Reshape", {"s"}, {}, {int64s("s", {0, 3, -1})}), {-1, 3, 2, -4, 5, 6}},
      {"constant", sum_with("Constant", tensor_attribute(floats("", {3}, {1, 2, 3}))), {0, 5, 5, -3, 7, 9}},
      {"constant_number", sum_with("Constant", real("value_float", 2)), {1, 5, 4, -2, 7, 8}},
      {"constant_numbers", sum_with("Constant", float_list("value_floats", {1, 0, -1})), {0, 3, 1, -3, 5, 5}},
      {"constant_of_shape",
       sum_with("ConstantOfShape", tensor_attribute(floats("", {1}, {2.5F})), {"s"}, {int64s("s", {2, 1})}),
       {1.5F, 5.5F, 4.5F, -1.5F, 7.5F, 8.5F}},
      {"constant_doubles",
       sum_with("Cast", number("to", kFloat), {"d"}, {doubles("d", {0.5, -1, 2})}),
       {-0.5F, 2, 4, -3.5F, 4, 8}},
      {"gather_columns", one("Gather", {"i"}, {number("axis", 2)}, {int64s("i", {2, 0})}), {2, -1, 6, -4}},
      {"shape_of_a_constant",
       {.nodes = {node("Shape", {"k"}, {"s"}, {number("start", 0)}), node("Reshape", {"x", "s"}, {"y"})},
        .constants = {floats("k", {3, 2}, {1, 2, 3, 4, 5, 6})}},
       {-1, 3, 2, -4, 5, 6}},
      {"pad", one("Pad", {"pads"}, {}, {int64s("pads", {0, 1, 0, 0, 0, 1})}), {0, 0, 0, 0, -1, 3, 2, 0, -4, 5, 6, 0}},
  };
}

std::vector<OpRow> all_rows() {
  std::vector<OpRow> out = operations();
  for (OpRow& row : of_constants()) out.push_back(std::move(row));
  return out;
}

class Operation : public testing::TestWithParam<OpRow> {};

// Also behind a node that reads the result, whose size the file does not say.
TEST_P(Operation, ComputesWhatOnnxSays) {
  Parts read = GetParam().parts;
  for (const bool is_read : {false, true}) {
    if (is_read) {
      read.nodes.push_back(node("Identity", {"y"}, {"again"}));
      read.outputs = {value("again", {})};
    }
    const std::vector<float> got = run(read, GetParam().in);
    ASSERT_EQ(got.size(), GetParam().want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], GetParam().want[i], 1e-5) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Operation, testing::ValuesIn(all_rows()),
                         [](const auto& row) { return row.param.name; });

// Adds the graph that is read, or why there is none, and what is left out.
void add_reading(const Bytes& file, Hash& hash) {
  std::vector<std::string> left;
  ImportOptions options;
  options.left = &left;
  const auto graph = import(file, "m", options);
  hash.add(graph.ok() ? ir::print(*graph) : graph.error().message);
  for (const std::string& one : left) hash.add(one);
}

// Files of the operations with one byte changed: numbers, sizes and types of attributes and constants. After an
// intended change, run SKILLET_UPDATE=1 onnx_file_test to write tests/expectations/onnx.txt.
TEST(Operation, FilesWithOneByteChangedAreReadAsBefore) {
#ifdef __clang__
  GTEST_SKIP() << "the expected lines are those of GCC's builds; clang's have other signs of NaN";
#endif
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> hashes;
  for (const OpRow& row : all_rows()) {
    Hash& hash = hashes[row.name];
    answers::each_change(file(row.parts), 1, [&](const Bytes& changed) { add_reading(changed, hash); });
  }
  expect_hashes("tests/expectations/onnx.txt", "operation ", hashes);
}

struct Attribute {
  const char *op, *name;
  bool is_list = false;
  std::vector<std::string> constants = {};  // further inputs
};
std::vector<Attribute> attributes_that_are_varied() {
  const std::string numbers = int64s("c", {1, 0}), scales = floats("c", {2}, {1, 2});
  return {{"Softmax", "axis"},
          {"LogSoftmax", "axis"},
          {"ArgMax", "axis"},
          {"ArgMax", "keepdims"},
          {"ArgMin", "axis"},
          {"Concat", "axis", false, {floats("c", {1, 2, 2}, {1, 2, 3, 4})}},
          {"Gather", "axis", false, {numbers}},
          {"Flatten", "axis"},
          {"Squeeze", "axes", true},
          {"Unsqueeze", "axes", true},
          {"ReduceMean", "axes", true},
          {"ReduceSum", "axes", true},
          {"ReduceMax", "axes", true},
          {"ReduceL2", "axes", true},
          {"ReduceMean", "axes", true, {numbers}},
          {"Transpose", "perm", true},
          {"LayerNormalization", "axis", false, {scales}},
          {"InstanceNormalization", "epsilon", false, {scales}},
          {"DequantizeLinear", "axis", false, {scales}},
          {"QuantizeLinear", "axis", false, {scales}},
          {"DepthToSpace", "blocksize"},
          {"SpaceToDepth", "blocksize"},
          {"Split", "axis"},
          {"Split", "num_outputs"},
          {"TopK", "axis", false, {int64s("c", {1})}},
          {"CumSum", "reverse", false, {int64s("c", {1})}},
          {"MaxPool", "kernel_shape", true},
          {"AveragePool", "kernel_shape", true},
          {"AveragePool", "ceil_mode"},
          {"Shape", "start"},
          {"Cast", "to"}};
}

// What is said of a number or a list of an attribute, for inputs of one to five dimensions.
void vary(const Attribute& row, int64_t opset, Hash& hash) {
  const Dims all = {1, 4, 2, 2, 3};
  for (size_t rank = 1; rank <= all.size(); ++rank) {
    for (int64_t value = -7; value <= 7; ++value) {
      std::vector<std::string> attributes = {number(row.name, value)};
      if (row.is_list) {
        attributes = {ints(row.name, {value})};
        for (const int64_t more : {-1, 0, 1, 3}) attributes.push_back(ints(row.name, {value, more}));
      }
      for (const std::string& one_of_them : attributes) {
        std::vector<std::string> inputs(row.constants.size(), "c");
        const Dims dims(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rank));
        add_reading(file(of_sizes(dims, one(row.op, std::move(inputs), {one_of_them}, row.constants, opset))), hash);
      }
    }
  }
}

// Negative axes, axes outside the dimensions, and lists of any length.
TEST(Operation, AttributesInAWideRangeAreReadAsBefore) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> hashes;
  for (const Attribute& row : attributes_that_are_varied())
    for (const int64_t opset : {9, 13, 18}) vary(row, opset, hashes[fmt::format("{} {}", row.op, row.name)]);
#ifdef __clang__
  GTEST_SKIP() << "the expected lines are those of GCC's builds";
#endif
  expect_hashes("tests/expectations/onnx.txt", "attribute ", hashes);
}

// Fields of a node in a file.
constexpr uint32_t kInputs = 1, kOutputs = 2, kAttributes = 5;

// The node without some of the texts or messages of `field`; `is_left_out` is asked with each one's number.
std::string without(const std::string& node, uint32_t field, const std::function<bool(size_t)>& is_left_out) {
  return message([&](pbf_writer& w) {
    size_t seen = 0;
    for (protozero::pbf_reader from(node); from.next();) {  // all fields of a node are texts or messages
      const uint32_t tag = from.tag();
      const protozero::data_view view = from.get_view();
      if (tag != field || !is_left_out(seen++)) w.add_bytes(tag, view.data(), view.size());
    }
  });
}

// What is said of an operation without one of its attributes, inputs or outputs, and without all of them.
TEST(Operation, WithoutAttributesOrOperandsAreReadAsBefore) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> hashes;
  for (const OpRow& row : all_rows()) {
    for (size_t i = 0; i < row.parts.nodes.size(); ++i) {
      const auto ask = [&](uint32_t field, const std::function<bool(size_t)>& is_left_out) {
        Parts changed = row.parts;
        changed.nodes[i] = without(changed.nodes[i], field, is_left_out);
        if (changed.nodes[i] == row.parts.nodes[i]) return;
        for (const int64_t opset : {row.parts.opset, int64_t{6}, int64_t{10}, int64_t{21}}) {
          changed.opset = opset;
          add_reading(file(changed), hashes[row.name]);
        }
      };
      for (const uint32_t field : {kAttributes, kInputs, kOutputs}) {
        for (size_t at = 0; at < 8; ++at) ask(field, [&](size_t one) { return one == at; });
        ask(field, [](size_t) { return true; });
      }
    }
  }
#ifdef __clang__
  GTEST_SKIP() << "the expected lines are those of GCC's builds";
#endif
  expect_hashes("tests/expectations/onnx.txt", "without ", hashes);
}

// Operations on constants, whose results are computed when the file is read: with other sizes of the result than they
// have, without one of the operands, and with other numbers in attributes.
TEST(Operation, OfConstantsAreReadAsBefore) {
  const log::ScopedLevel quiet(log::Level::error);
  const Dims results[] = {{}, {0}, {1}, {2}, {6}, {7}, {2, 3}, {3, 2}, {1, 2, 3}, {1, 8, 1, 1}, {1, 1000, 1000}};
  const std::string raw(24, '\1');
  std::map<std::string, Hash> hashes;
  for (const OpRow& row : all_rows()) {
    const auto ask = [&](const std::string& changed) {
      Parts parts = row.parts;
      parts.nodes.back() = changed;
      for (const Dims& x : {Dims{6}, Dims{2, 3}, Dims{1, 6, 1, 1}, Dims{}}) {
        parts.constants = row.parts.constants;
        parts.constants.push_back(tensor("x", x.size() == 1 ? kInt64 : kFloat, x, x.size() == 1 ? raw + raw : raw));
        parts.inputs = {value("z", {1})};
        for (const Dims& result : results) {
          parts.outputs = {value("y", result, x.size() == 1 ? kInt64 : kFloat)};
          add_reading(file(parts), hashes[row.name]);
        }
      }
    };
    const std::string node = row.parts.nodes.back();
    ask(node);
    for (size_t at = 0; at < 4; ++at) ask(without(node, kInputs, [&](size_t one) { return one == at; }));
    for (const int64_t value : {-9, -1, 0, 1, 5, 1000}) {
      std::vector<std::string> attributes;
      for (protozero::pbf_reader from(node); from.next();)
        if (from.tag() == kAttributes)
          attributes.push_back(with_number(std::string(from.get_view()), 0, value));
        else
          from.skip();
      std::string changed = without(node, kAttributes, [](size_t) { return true; });
      pbf_writer more(changed);
      for (const std::string& one : attributes)
        if (!one.empty()) more.add_message(kAttributes, one);
      if (!attributes.empty()) ask(changed);
    }
  }
#ifdef __clang__
  GTEST_SKIP() << "the expected lines are those of GCC's builds";
#endif
  expect_hashes("tests/expectations/onnx.txt", "constants ", hashes);
}

// Three numbers, in each field that a tensor can have them in: only one field is right for a type.
TEST(Operation, ConstantsOfEachTypeInEachFieldAreReadAsBefore) {
  const log::ScopedLevel quiet(log::Level::error);
  std::map<std::string, Hash> hashes;
  for (int type = 1; type <= 16; ++type) {
    for (const uint32_t field : {4, 5, 7, 10, 11}) {
      const std::string constant = message([&](pbf_writer& w) {
        w.add_int64(1, 3);
        w.add_int64(2, type);
        w.add_string(8, "c");
        for (const int one : {1, 2, 200}) {
          if (field == 4) w.add_float(field, static_cast<float>(one));
          if (field == 10) w.add_double(field, one);
          if (field != 4 && field != 10) w.add_int64(field, one);
        }
      });
      const Parts parts = {
          .nodes = {node("Cast", {"c"}, {"d"}, {number("to", kFloat)}), node("Add", {"x", "d"}, {"y"})},
          .constants = {constant}};
      add_reading(file(parts), hashes[fmt::format("{}", type)]);
    }
  }
  expect_hashes("tests/expectations/onnx.txt", "constants_of_type ", hashes);
}

TEST(Operation, IsLeftWithASentence) {
  struct Row {
    Parts parts;
    const char* sentence;
  };
  const Row left[] = {
      {picked("ArgMax", {number("select_last_index", 1)}), "select_last_index is not supported"},
      {of_image(one("BatchNormalization", {"x", "x", "x", "x"})), "its input 1 is not a constant"},
      {one("InstanceNormalization", {"by", "by"}, {}, {floats("by", {3}, {1, 2, 3})}),
       "does not have one number per channel"},
      {one("Pad", {"pads"}, {word("mode", "odd")}, {int64s("pads", {0, 0, 1, 0, 0, 1})}), "its mode is odd"},
      {one("Mod", {"x"}, {number("fmod", 1)}), "fmod is not supported"},
      {one("Clip", {"x"}), "its limits are not numbers"},
      {one("ReduceL2", {}, {number("noop_with_empty_axes", 1)}, {}, 18), "it has no axis"},
  };
  for (const Row& row : left) {
    std::vector<std::string> told;
    ImportOptions options;
    options.left = &told;
    ASSERT_TRUE(import(file(row.parts), "m", options).ok()) << row.sentence;
    ASSERT_FALSE(told.empty()) << row.sentence;
    EXPECT_NE(told[0].find(row.sentence), std::string::npos) << told[0];
  }
}

}  // namespace
}  // namespace skillet::onnx
