#include "graph/import/import.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/log.h"
#include "base/testing/in_tree.h"
#include "graph/import/no_attrs.h"
#include "graph/import/options.h"
#include "graph/import/testing/json_file.h"

namespace skillet::tflite {
namespace {

// A model as JSON of schema.fbs; the cases below change one place of it.
constexpr std::string_view kModel = R"({
  version: 3,
  operator_codes: [
    {deprecated_builtin_code: 3, version: 2},
    {deprecated_builtin_code: 127, builtin_code: 141},
    {deprecated_builtin_code: 32, custom_code: "MyOp"}],
  buffers: [{}, {data: [9, 8]}, {data: [1, 0, 0, 0, 2, 0, 0, 0]}, {data: []}],
  subgraphs: [{
    tensors: [
      {name: "in", type: 3, shape: [1, 4, 4, 1], shape_signature: [-1, 4, 4, 1],
       quantization: {scale: [0.5], zero_point: [128]}},
      {name: "filter", type: 3, shape: [2, 1, 1, 1], buffer: 1, quantization: {scale: [0.25], zero_point: [7]}},
      {name: "bias", type: 2, shape: [2], buffer: 2, quantization: {scale: [0.125], quantized_dimension: 3}},
      {name: "conv", type: 3, shape: [1, 9, 9, 2], buffer: 3, quantization: {min: [0], scale: [1], zero_point: [0]}},
      {name: "gelu", type: 0, shape: [1, 2, 2, 2], quantization: {min: [0], max: [1], scale: [1], zero_point: [300]}},
      {name: "state", type: 9, shape: [3], is_variable: true},
      {name: "out", type: 4, shape: []}],
    inputs: [0], outputs: [6],
    operators: [
      {opcode_index: 0, inputs: [0, 1, 2], outputs: [3], builtin_options_type: "Conv2DOptions",
       builtin_options: {padding: 1, stride_w: 2, stride_h: 3, fused_activation_function: 3}},
      {opcode_index: 1, inputs: [3], outputs: [4]},
      {opcode_index: 2, inputs: [4, -1, 5], outputs: [6]}]
  }, {}]
})";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kModel);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Import, ReadsEverything) {
  const auto graph = import(file_of_json(std::string(kModel)), "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(ir::print(*graph), R"(graph "m"
tensor 0 "in" uint8 1x4x4x1 scale=0.5 zero=128
tensor 1 "filter" uint8 2x1x1x1 scale=0.25 zero=7 const=[9 8]
tensor 2 "bias" int32 2 scale=0.125 zero=0 const=[1 2]
tensor 3 "conv" uint8 1x2x2x2 scale=1 zero=0
tensor 4 "gelu" float32 1x2x2x2
tensor 5 "state" int8 3 variable
tensor 6 "out" int64 scalar
inputs 0
outputs 6
op 0 CONV_2D in=[0 1 2] out=[3] padding=valid stride_h=3 stride_w=2 activation=relu6
op 1 "CONV_3D_TRANSPOSE" in=[3] out=[4]
op 2 "MyOp" in=[4 - 5] out=[6]
)");
}

// A model that a vendor's compiler made: offsets of its tensors in memory, and memory that only its operation uses.
TEST(Import, ReadsPlannedMemory) {
  std::string text = replaced("{data: []}]",
                              "{data: []}, {data: [0,0,0,0, 1,0,0,0, 7,0,0,0, 16,0,0,0, 255,255,255,255, "
                              "255,255,255,255, 32,0,0,0, 0,0,0,0, 0,1,0,0, 8,0,0,0]}], "
                              "metadata: [{name: \"other\"}, {name: \"OfflineMemoryAllocation\", buffer: 4}]");
  const std::string_view variable = ", is_variable: true";
  text.erase(text.find(variable), variable.size());
  const auto graph = import(file_of_json(text), "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const std::string printed = ir::print(*graph);
  EXPECT_NE(printed.find("uint8 1x4x4x1 scale=0.5 zero=128 planned=16\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find("zero=7 const=[9 8]\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find("\"state\" int8 3 planned=256 const=[0 0 0]\n"), std::string::npos) << printed;
  EXPECT_EQ(ir::print(ir::parse(printed).value()), printed);
}

TEST(Import, MemoryOfAnOperationHasALimit) {  // 256 MiB
  for (const char* size : {"268435456", "268435457"}) {
    const auto graph = import(file_of_json(replaced("[3], is_variable: true", fmt::format("[{}]", size))), "m");
    EXPECT_EQ(graph.ok() && graph->tensor(5).is_constant(), size[8] == '6') << size;
  }
}

// Two operations of a vendor that share memory; one makes its output in the place of the other's.
TEST(Import, HandsMemoryOnFromOneOperationToTheNext) {
  const auto graph = import(file_of_json(R"({
    version: 3,
    operator_codes: [{deprecated_builtin_code: 32, custom_code: "MyOp"}],
    buffers: [{}, {data: [9]}, {data: [0,0,0,0, 1,0,0,0, 5,0,0,0, 255,255,255,255, 0,0,0,0, 0,0,0,0, 2,0,0,0, 4,0,0,0]}],
    subgraphs: [{
      tensors: [{name: "code", type: 3, shape: [1], buffer: 1}, {name: "memory", type: 3, shape: [8]},
                {name: "fast", type: 3, shape: [4]}, {name: "in", type: 9, shape: [2]}, {name: "out", type: 9, shape: [2]}],
      inputs: [3], outputs: [4],
      operators: [{opcode_index: 0, inputs: [0, 1, 2, 3], outputs: []}, {opcode_index: 0, inputs: [0, 1, 2, 3], outputs: [4]},
                  {opcode_index: 0, inputs: [0, 1, 1, 4], outputs: [4]}]
    }],
    metadata: [{name: "OfflineMemoryAllocation", buffer: 2}]
  })"),
                            "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const std::string printed = ir::print(*graph);
  EXPECT_NE(printed.find("op 0 \"MyOp\" in=[0 1 2 3] out=[6]\n"
                         "op 1 \"MyOp\" in=[0 6 2 3] out=[4 7]\n"
                         "op 2 \"MyOp\" in=[0 7 7 4] out=[5]\n"),
            std::string::npos)
      << printed;
  EXPECT_NE(printed.find("outputs 5\n"), std::string::npos) << printed;
  EXPECT_FALSE(graph->tensor(6).is_constant());
  EXPECT_TRUE(graph->tensor(1).is_constant());
}

// Converters do not know the batch: they compute the new shape from it, and declare shapes with a batch of 1.
TEST(Import, KnowsWhatIsComputedFromShapes) {
  const auto graph = import(file_of_json(R"({
    version: 3,
    operator_codes: [{builtin_code: 77}, {builtin_code: 45}, {builtin_code: 83}, {builtin_code: 22}],
    buffers: [{}, {data: [0, 0, 0, 0]}, {data: [1, 0, 0, 0]}, {data: [6, 0, 0, 0]}],
    subgraphs: [{
      tensors: [
        {name: "in", type: 0, shape: [1, 2, 3], shape_signature: [-1, 2, 3]},
        {name: "dims", type: 2, shape: [3]},
        {name: "zero", type: 2, shape: [1], buffer: 1},
        {name: "one", type: 2, shape: [1], buffer: 2},
        {name: "six", type: 2, shape: [], buffer: 3},
        {name: "batch", type: 2, shape: []},
        {name: "new", type: 2, shape: [2]},
        {name: "out", type: 0, shape: [1, 1], shape_signature: [-1, -1]}],
      inputs: [0], outputs: [7, 6],
      operators: [
        {opcode_index: 0, inputs: [0], outputs: [1]},
        {opcode_index: 1, inputs: [1, 2, 3, 3], outputs: [5], builtin_options_type: "StridedSliceOptions",
         builtin_options: {shrink_axis_mask: 1}},
        {opcode_index: 2, inputs: [5, 4], outputs: [6], builtin_options_type: "PackOptions",
         builtin_options: {values_count: 2}},
        {opcode_index: 3, inputs: [0, 6], outputs: [7]}]
    }]
  })"),
                            "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const ir::Op& reshape = graph->ops[3];
  EXPECT_EQ(graph->tensor(reshape.inputs[1]).values<int32_t>(), (std::vector<int32_t>{1, 6}));
  EXPECT_EQ(graph->tensor(7).shape, (ir::Shape{1, 6}));
  EXPECT_FALSE(graph->tensor(6).is_constant()) << "which the graph returns: it is computed";
  EXPECT_EQ(graph->ops.size(), 4U);
}

// A version that lacks the field is not an error: the kernels read it. Callers can request the list.
TEST(Import, NamesFieldsThatTheVersionOfTheOperationLacks) {
  for (const int version : {1, 7, 8}) {
    for (const bool offset : {false, true}) {
      const auto file = file_of_json(fmt::format(
          R"({{version: 3, operator_codes: [{{builtin_code: 19}}, {{builtin_code: 45, version: {}}}],
           buffers: [{{}}, {{data: [1, 0, 0, 0]}}, {{data: [0, 0, 0, 0]}}],
           subgraphs: [{{
             tensors: [{{name: "in", type: 0, shape: [3]}}, {{name: "relu", type: 0, shape: [3]}},
                       {{name: "one", type: 2, shape: [1], buffer: 1}}, {{name: "out", type: 0, shape: [1]}},
                       {{name: "zero", type: 2, shape: [1], buffer: 2}}],
             inputs: [0], outputs: [3],
             operators: [
               {{opcode_index: 0, inputs: [0], outputs: [1]}},
               {{opcode_index: 1, inputs: [1, 4, 2, 2], outputs: [3], builtin_options_type: "StridedSliceOptions",
                 builtin_options: {{offset: {}}}}}]}}]}})",
          version, offset));
      std::map<ir::OpId, std::string> newer, wanted;
      if (version < 8 && offset) wanted[1] = fmt::format("op version {} has no offset, but 1 is given", version);
      const auto graph = import(file, "m", {.newer_fields = &newer});
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      EXPECT_EQ(newer, wanted);
    }
  }
}

// One input with free rows and columns, an addition with itself; and the other subgraph, a RELU of another input.
constexpr std::string_view kFree = R"({
  version: 3, operator_codes: [{builtin_code: 0}, {builtin_code: 19}], buffers: [{}],
  subgraphs: [
    {tensors: [{name: "x", type: 0, shape: [1, 1, 1, 3], shape_signature: [-1, -1, -1, 3]},
               {name: "sum", type: 0, shape: [1, 1, 1, 3]}],
     inputs: [0], outputs: [1],
     operators: [{opcode_index: 0, inputs: [0, 0], outputs: [1], builtin_options_type: "AddOptions",
                  builtin_options: {}}]},
    {tensors: [{name: "a=b", type: 0, shape: [1, 3]}, {name: "c", type: 0, shape: [2, 2]}, {name: "scalar", type: 0, shape: []},
               {name: "relu", type: 0, shape: [1, 3]}],
     inputs: [0, 1, 2], outputs: [3], operators: [{opcode_index: 1, inputs: [0], outputs: [3]}]}],
  signature_defs: [{signature_key: "add", subgraph_index: 0}, {signature_key: "relu", subgraph_index: 1},
                   {signature_key: "lost", subgraph_index: 2}]
})";

// The logged warnings, and the shape of the first output; or the error.
std::string read_as(const ImportOptions& options) {
  ::testing::internal::CaptureStderr();
  const auto graph = import(file_of_json(std::string(kFree)), "m", options);
  std::string said = ::testing::internal::GetCapturedStderr();
  return graph.ok() ? said + graph->tensor(graph->outputs[0]).shape.to_string() : graph.error().message;
}

TEST(Import, ReadsSizesAndSignaturesThatAreAskedFor) {
  const log::ScopedLevel warnings(log::Level::warning);
  const std::string which =
      "skillet: warning: m: it has signatures add, relu, lost; the first subgraph is used (--signature)\n";
  const std::string free =
      "skillet: warning: m: input 'x' has free sizes, ?x?x?x3, and is read as 1x1x1x3 (--input-shape)\n";
  EXPECT_EQ(read_as({}), which + free + "1x1x1x3");
  EXPECT_EQ(read_as({{}, "add"}), free + "1x1x1x3");
  EXPECT_EQ(read_as({{"2x5x7x3"}, "add"}), "2x5x7x3");
  EXPECT_EQ(read_as({{"x=2x5x7x3"}, "add"}), "2x5x7x3");
  EXPECT_EQ(read_as({{}, "relu"}), "1x3");
  EXPECT_EQ(read_as({{"c=4x4", "a=b=7x3"}, "relu"}), "7x3");
  EXPECT_EQ(read_as({{"a=b=0x3"}, "relu"}), "0x3");
  const std::pair<ImportOptions, std::string> kRefused[] = {
      {{{}, "no"}, "no signature 'no'; there is add, relu, lost"},
      {{{}, "lost"}, "signature 'lost' belongs to subgraph 2 of 2"},
      {{{"7x3"}, "relu"}, "input shape '7x3': NAME=SHAPE with one of a=b, c, scalar"},
      {{{"sum=1x1x1x3"}, "add"}, "input shape 'sum=1x1x1x3': NAME=SHAPE with one of x"},
      {{{"1x3"}, "add"}, "input shape '1x3': 'x' is 1x1x1x3, of 4 sizes"},
      {{{"1x2x3x4x"}, "add"}, "input shape '1x2x3x4x': 'x' is 1x1x1x3, of 4 sizes"},
      {{{""}, "add"}, "input shape '': 'x' is 1x1x1x3, of 4 sizes"},
      {{{"1x3x-3x3"}, "add"}, "input shape '1x3x-3x3': '-3' is no size"},
      {{{"1x99999999999x3x3"}, "add"}, "input shape '1x99999999999x3x3': '99999999999' is no size"},
  };
  for (const auto& [options, message] : kRefused) EXPECT_EQ(read_as(options), "model 'm': " + message);
  EXPECT_NE(read_as({{"1x99999x99999x3"}, "add"}).find("has more than 2147483647 elements"), std::string::npos);
}

TEST(Import, KeepsTheFileAlive) {
  ir::Tensor filter;
  {
    Bytes file = file_of_json(std::string(kModel));
    auto graph = import(file, "m");
    ASSERT_TRUE(graph.ok());
    filter = graph->tensors[1];
    std::fill(file.begin(), file.end(), uint8_t{0});
  }
  EXPECT_EQ(filter.values<uint8_t>(), (std::vector<uint8_t>{9, 8}));
}

struct Case {
  std::string_view find, replace, message;
};

TEST(Import, RefusesWithTheReason) {
  for (const Case& c : {
           Case{"version: 3", "version: 4", "model 'm': schema version 4, not 3"},
           {"type: 9", "type: 19", "tensor 5: 'state': element type 19 is not known"},
           {"type: 9", "type: -1", "element type -1"},
           {"shape: [1, 4, 4, 1], shape_s", "shape: [1, -4, 4, 1], shape_s", "tensor 0: 'in': shape 1x-4x4x1"},
           {"shape: [1, 4, 4, 1], shape_s", "shape: [-1, 4, 4, 1], shape_s", "tensor 0: 'in': shape -1x4x4x1"},
           {"shape: [1, 4, 4, 1], shape_s", "shape: [65536, 65536, 65536, 65536], shape_s", "more than 2147483647"},
           {"buffer: 1", "buffer: 4", "tensor 1: 'filter': buffer 4 is outside the 4 buffers"},
           {"{data: [9, 8]}", "{data: [9]}", "tensor 1 'filter' uint8 2x1x1x1: 1 bytes of contents, its shape needs 2"},
           {"{data: [9, 8]}", "{offset: 64, size: 99999}", "buffer 1 at 64 with 99999 bytes is outside the file"},
           {"{data: [9, 8]}", "{offset: 18446744073709551615, size: 2}", "is outside the file"},
           {"{data: [9, 8]}", "{offset: 2, size: 18446744073709551615}", "is outside the file"},
           {"{data: [9, 8]}", "{offset: 1, size: 2}", "is used before anything"},  // a placeholder
           {"is_variable: true", "external_buffer: 1", "its contents are in another file"},
           {"scale: [0.5], zero_point: [128]", "scale: [0.5], zero_point: [1, 2]", "1 scales but 2 zero points"},
           {"scale: [0.5], zero_point: [128]", "scale: [0.5], zero_point: [4294967296]", "zero point 4294967296"},
           {"scale: [0.5], zero_point: [128]", "scale: [0.5], zero_point: [256]", "outside 0..255"},
           {"scale: [0.5], zero_point: [128]", "scale: [1, 2], quantized_dimension: 4", "dimension 4, which"},
           {"scale: [0.5], zero_point: [128]", "scale: [1, 2], quantized_dimension: 1", "2 scales for 4 channels"},
           {"scale: [0.5], zero_point: [128]", "scale: [1], details_type: 2", "quantization of kind 2"},
           {"inputs: [0, 1, 2]", "inputs: [0, 7, 2]", "op 0 CONV_2D -> 'conv': tensor index 7 is outside"},
           {"inputs: [0, 1, 2]", "inputs: [0, 1, -2]", "tensor index -2"},
           {"inputs: [0], outputs", "inputs: [70], outputs", "graph input: tensor index 70"},
           {"opcode_index: 2", "opcode_index: 3", "op 2: operation code 3 is outside the 3 codes"},
           {"deprecated_builtin_code: 3,", "deprecated_builtin_code: -3, builtin_code: -5,", "builtin operation -3"},
           {"padding: 1", "padding: 2", "op 0: CONV_2D: unknown padding 2"},
           {"fused_activation_function: 3", "fused_activation_function: 6", "unknown activation function 6"},
           {"stride_w: 2, ", "", "op 0 CONV_2D -> 'conv': stride 3x0 is outside"},
           {"\"Conv2DOptions\"", "\"Pool2DOptions\"", "op 0: CONV_2D: options of type 5, expected 1"},
           {"name: \"in\", type: 3, shape: [1, 4, 4, 1], shape_signature: [-1, 4, 4, 1],\n       quantization: {scale: "
            "[0.5], "
            "zero_point: [128]}},\n      {name: \"filter\", type: 3",
            "name: \"in\", type: 9, shape: [1, 4, 4, 1], quantization: {scale: [0.5]}},\n      {name: \"filter\", "
            "type: 9",
            "op 0 CONV_2D -> 'conv'"},
           {"is_variable: true", "is_variable: true, buffer: 1", "tensor 5: 'state' is a variable with contents"},
       }) {
    SCOPED_TRACE(c.replace);
    const auto graph = import(file_of_json(replaced(c.find, c.replace)), "m");
    ASSERT_FALSE(graph.ok());
    EXPECT_NE(graph.error().message.find(c.message), std::string::npos) << graph.error().message;
  }
}

// The filter 2x1x1x1 as two rows with one element each, with one thing wrong.
TEST(Import, RefusesSparsityThatDoesNotFit) {
  const std::string good = R"({traversal_order: [0, 1, 2, 3], dim_metadata: [{dense_size: 2},
      {format: 1, array_segments_type: "Uint8Vector", array_segments: {values: [0, 1, 2]},
       array_indices_type: "Uint16Vector", array_indices: {values: [0, 0]}}, {dense_size: 1}, {dense_size: 1}]})";
  const auto imported = [](const std::string& sparsity) {
    return import(file_of_json(replaced("shape: [2, 1, 1, 1]", "sparsity: " + sparsity + ", shape: [2, 1, 1, 1]")),
                  "m");
  };
  const auto graph = imported(good);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->tensor(1).values<uint8_t>(), (std::vector<uint8_t>{9, 8}));
  for (const Case& c : {
           Case{"[0, 1, 2, 3]", "[0, 1, 2]", "sparsity of 4 dimensions in an order of 3, 4 are needed"},
           {"[0, 1, 2, 3]", "[0, 1, 2, 2]", "dimension 2 out of order"},
           {"[0, 1, 2, 3]", "[0, 1, 2, 4]", "dimension 4 out of order"},
           {"{dense_size: 2}", "{dense_size: 3}", "sparsity of 3 rows in a dimension of 2"},
           {"{dense_size: 2}", "{dense_size: -2}", "sparsity of 0 rows in a dimension of 2"},
           {"{dense_size: 2}", "{format: 2}", "sparsity of kind 2 is not known"},
           {"[0, 1, 2]}", "[0, 1, 3]}", "segments are out of order"},
           {"[0, 1, 2]}", "[0, 2, 1]}", "segments are out of order"},
           {"[0, 1, 2]}", "[0, 1]}", "too few segments"},
           {"[0, 0]", "[0, 1]", "sparsity names row 1 of 1"},
           {"dim_metadata", "block_map: [7], dim_metadata", "4 dimensions in an order of 4, 5 are needed"},
           {"{dense_size: 1}]", "{dense_size: 2}]", "sparsity of 2 rows in a dimension of 1"},
       }) {
    SCOPED_TRACE(c.replace);
    std::string text = good;
    text.replace(text.find(c.find), c.find.size(), c.replace);
    const auto refused = imported(text);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find(c.message), std::string::npos) << refused.error().message;
  }
}

// An op whose case is forgotten would run with default attributes, and ignore its options.
TEST(Options, OfEveryOpAreRead) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::CreateOperator(builder));
  const auto* op = flatbuffers::GetRoot<schema::Operator>(builder.GetBufferPointer());
  for (int i = 0; i < static_cast<int>(ir::OpKind::opaque); ++i) {
    const auto kind = static_cast<ir::OpKind>(i);
    const auto attrs = read_attrs(kind, *op);
    ASSERT_TRUE(attrs.ok()) << ir::op_kind_name(kind) << ": " << attrs.error().message;
    EXPECT_EQ(attrs->index(), ir::default_attrs(kind).index()) << ir::op_kind_name(kind);
  }
  EXPECT_FALSE(no_attrs(ir::OpKind::conv_2d).ok());
}

TEST(Import, AcceptsOddButHarmlessQuantization) {
  for (const auto& [find, replace] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"{scale: [0.125], quantized_dimension: 3}", "{scale: [1, 2], zero_point: [0], quantized_dimension: 3}"},
           {"{scale: [0.125], quantized_dimension: 3}", "{scale: [0], zero_point: [0]}"},
           {"{scale: [0.125], quantized_dimension: 3}", "{}"},
           {"{scale: [0.125], quantized_dimension: 3}", "{min: [-1], max: [1]}"},
           {"max: [1], scale: [1], zero_point: [300]", "max: [1]"},
       }) {
    const auto graph = import(file_of_json(replaced(find, replace)), "m");
    EXPECT_TRUE(graph.ok()) << replace << ": " << graph.error().message;
  }
}

TEST(Import, AnInputThatIsNamedTwiceIsOne) {
  const auto graph = import(file_of_json(replaced("inputs: [0], outputs", "inputs: [0, 0], outputs")), "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->inputs, std::vector<ir::TensorId>{0});
}

TEST(Import, MissingOptionsMeanTheSchemasDefaults) {
  const std::string_view options =
      "builtin_options_type: \"Conv2DOptions\",\n"
      "       builtin_options: {padding: 1, stride_w: 2, stride_h: 3, fused_activation_function: 3}";
  const auto graph = import(file_of_json(replaced(options, "")), "m");
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().message.find("stride 0x0"), std::string::npos) << graph.error().message;
}

TEST(Import, ReadsBuffersBehindTheFlatBuffer) {
  Bytes file = file_of_json(replaced("{data: [9, 8]}", "{offset: 4096, size: 2}"));
  file.resize(4096);
  file.insert(file.end(), {5, 6});
  const auto graph = import(file, "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->tensors[1].values<uint8_t>(), (std::vector<uint8_t>{5, 6}));
}

// The FlatBuffers verifier does not check that a list of 8-byte numbers is aligned to 8.
TEST(Import, ReadsUnalignedZeroPoints) {
  for (const bool padded : {false, true}) {  // one of the two is unaligned
    flatbuffers::FlatBufferBuilder builder;
    if (padded) builder.CreateVector(std::vector<int32_t>{1});
    builder.StartVector(2, sizeof(int32_t));
    builder.PushElement<int32_t>(0);
    builder.PushElement<int32_t>(77);
    const flatbuffers::Offset<flatbuffers::Vector<int64_t>> zero_points(builder.EndVector(1));
    const auto scales = builder.CreateVector(std::vector<float>{1});
    const auto quant = schema::CreateQuantizationParameters(builder, 0, 0, scales, zero_points);
    const auto shape = builder.CreateVector(std::vector<int32_t>{1});
    const auto tensor = schema::CreateTensor(builder, shape, 9, 0, 0, quant);
    const auto subgraph = schema::CreateSubGraph(builder, builder.CreateVector(&tensor, 1));
    builder.Finish(schema::CreateModel(builder, 3, 0, builder.CreateVector(&subgraph, 1)), "TFL3");
    const auto graph = import({builder.GetBufferPointer(), builder.GetSize()}, "m");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_EQ(graph->tensors[0].quant.zero_point(), 77);
  }
}

TEST(Import, RefusesSmallFilesThatUnfoldToLargeOnes) {
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString(std::string(10000, 'n'));
  std::vector<flatbuffers::Offset<schema::Tensor>> tensors;
  for (int i = 0; i < 1000; ++i) tensors.push_back(schema::CreateTensor(builder, 0, 0, 0, name));
  const auto subgraph = schema::CreateSubGraph(builder, builder.CreateVector(tensors));
  const auto subgraphs = builder.CreateVector(&subgraph, 1);
  builder.Finish(schema::CreateModel(builder, 3, 0, subgraphs), "TFL3");
  const auto graph = import({builder.GetBufferPointer(), builder.GetSize()}, "m");
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().message.find("add up to more than the file"), std::string::npos) << graph.error().message;
}

TEST(Import, SmallFilesMayNotAskForGigabytes) {
  const auto file = file_of_json(R"({version: 3, operator_codes: [{deprecated_builtin_code: 19}], buffers: [{}],
    subgraphs: [{tensors: [{type: 0, shape: [1, 16384, 16384]}, {type: 0, shape: [1, 16384, 16384]}],
      inputs: [0], outputs: [1], operators: [{inputs: [0], outputs: [1]}]}]})");
  const auto graph = import(file, "m");
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().message.find("its tensors take 2147483648 bytes"), std::string::npos)
      << graph.error().message;
}

TEST(Import, EmptyIndexListsAreConstant) {
  const auto file = file_of_json(R"({version: 3, operator_codes: [{deprecated_builtin_code: 22}], buffers: [{}],
    subgraphs: [{tensors: [{type: 0, shape: [1, 1]}, {type: 2, shape: [0]}, {type: 0, shape: []}],
      inputs: [0], outputs: [2], operators: [{inputs: [0, 1], outputs: [2]}]}]})");
  const auto graph = import(file, "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_TRUE(graph->tensors[1].is_constant());
}

TEST(Import, FilesThatAreNoModels) {
  EXPECT_NE(import({}, "m").error().message.find("is empty"), std::string::npos);
  EXPECT_EQ(import(Bytes(100, 'x'), "m").error().message, "model 'm': not a TensorFlow Lite model (no TFL3 mark)");
  for (const auto& [start, told] : {std::pair<std::string, std::string>{"PK\3\4", "a zip archive"},
                                    {std::string(257, 'a') + "ustar", "a tar archive"},
                                    {"\x89HDF\r\n", "tf.lite.TFLiteConverter"},
                                    {"\x1F\x8B", "gzip"},
                                    {"version https://git-lfs.github.com/spec/v1", "git lfs pull"},
                                    {"<!DOCTYPE html>", "a web page"},
                                    {"\x08\x07\x12\x07pytorch", "ONNX"}}) {
    const std::string said = import(Bytes(start.begin(), start.end()), "m").error().message;
    EXPECT_TRUE(said.starts_with("model 'm': not a TensorFlow Lite model (") && said.find(told) != said.npos) << said;
  }
  EXPECT_NE(import_file("/no/such/file.tflite").error().message.find("/no/such/file.tflite"), std::string::npos);
  EXPECT_NE(import(file_of_json("{version: 3}"), "m").error().message.find("no subgraph"), std::string::npos);
}

TEST(Import, BuiltinNames) {
  EXPECT_EQ(builtin_name(0), "ADD");
  EXPECT_EQ(builtin_name(118), "IF");
  EXPECT_EQ(builtin_name(209), "STABLEHLO_CASE");
  EXPECT_EQ(builtin_name(210), "");
  EXPECT_EQ(builtin_name(-1), "");
}

// op.def repeats the names and codes of its ops.
TEST(Import, OpTableAgreesWithTheBuiltinCodes) {
  const auto name_of = [](int32_t code, std::string_view name) {
    if (code == ir::kNoFileOp) return name;
    return code == ir::kCustomOp ? "TFLite_Detection_PostProcess" : builtin_name(code);
  };
#define OP(kind, name, code, attrs, ...) EXPECT_EQ(name_of(code, name), name);
  using ir::kCustomOp, ir::kNoFileOp;
#include "graph/ir/op.def"
#undef OP
}

// A folder of models next to the repository, if it exists.
TEST(Import, AllSharedModels) {
  const std::filesystem::path shared = skillet::in_tree("../shared");
  if (!std::filesystem::exists(shared)) GTEST_SKIP() << "../shared is absent: only the models in tests/ are checked";
  int models = 0;
  for (const char* folder : {"models", "golden/models"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(shared / folder)) {
      if (entry.path().extension() != ".tflite") continue;
      const auto graph = import_file(entry.path().string());
      EXPECT_TRUE(graph.ok()) << graph.error().message;
      ++models;
    }
  }
  EXPECT_GT(models, 0);
}

}  // namespace
}  // namespace skillet::tflite
