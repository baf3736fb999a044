// Options of custom operations: maps that converters wrote, and bytes that are none.
#include "graph/import/custom_options.h"

#include <flatbuffers/flexbuffers.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/import/import.h"
#include "graph/import/rewrite_file.h"
#include "graph/import/testing/json_file.h"
#include "graph/ref/ref.h"

namespace skillet::tflite {
namespace {

Result<ir::Attrs> read(const std::vector<uint8_t>& bytes) {
  flatbuffers::FlatBufferBuilder file;
  return read_detection_options(flatbuffers::GetTemporaryPointer(file, file.CreateVector(bytes)));
}

template <typename F>
std::vector<uint8_t> written(F&& write) {
  flexbuffers::Builder out;
  write(out);
  out.Finish();
  return out.GetBuffer();
}

TEST(DetectionOptions, AreThoseOfTheMap) {
  const auto attrs = read(written([](flexbuffers::Builder& out) {
    out.Map([&] {
      out.Int("max_detections", 10);
      out.Int("max_classes_per_detection", 2);
      out.Int("detections_per_class", 30);
      out.Int("num_classes", int64_t{1} << 40);
      out.Bool("use_regular_nms", true);
      out.Float("nms_score_threshold", 0.25F);
      out.Double("nms_iou_threshold", 0.5);
      out.Int("y_scale", 10);
      out.Double("x_scale", 1e300);
    });
  }));
  ASSERT_TRUE(attrs.ok()) << attrs.error().message;
  const ir::DetectionAttrs wanted{.max_detections = 10,
                                  .max_classes_per_detection = 2,
                                  .detections_per_class = 30,
                                  .num_classes = INT32_MAX,
                                  .regular_nms = true,
                                  .score_threshold = 0.25F,
                                  .iou_threshold = 0.5F,
                                  .y_scale = 10,
                                  .x_scale = INFINITY};
  EXPECT_EQ(std::get<ir::DetectionAttrs>(*attrs), wanted);
}

TEST(DetectionOptions, AreAHundredOfAClassWhereTheMapIsSilent) {
  const auto attrs = read(written([](flexbuffers::Builder& out) { out.Map([&] { out.Int("num_classes", 3); }); }));
  ASSERT_TRUE(attrs.ok()) << attrs.error().message;
  EXPECT_EQ(std::get<ir::DetectionAttrs>(*attrs), (ir::DetectionAttrs{.detections_per_class = 100, .num_classes = 3}));
  const auto none = read({});
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_EQ(std::get<ir::DetectionAttrs>(*none), ir::DetectionAttrs{});
}

TEST(DetectionOptions, ThatAreNoneAreRefused) {
  const std::pair<std::vector<uint8_t>, const char*> rows[] = {
      {written([](flexbuffers::Builder& out) { out.Int(3); }), "its options are not a map"},
      {{1, 2, 3}, "its options are damaged"}};
  for (const auto& [bytes, reason] : rows) {
    const auto attrs = read(bytes);
    ASSERT_FALSE(attrs.ok()) << reason;
    EXPECT_EQ(attrs.error().message, reason);
  }
}

// A model of one Convolution2DTransposeBias: 1x1x2x1 to the shape OUT with a filter of 1x2x2x1.
std::string transposed(std::string_view options, std::string_view out, std::string_view inputs = "0, 1, 2") {
  return fmt::format(R"({{
  version: 3, operator_codes: [{{deprecated_builtin_code: 32, custom_code: "Convolution2DTransposeBias"}}],
  buffers: [{{}}, {{data: [0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64]}}, {{data: [0, 0, 0, 63]}}],
  subgraphs: [{{
    tensors: [{{name: "in", shape: [1, 1, 2, 1]}}, {{name: "filter", shape: [1, 2, 2, 1], buffer: 1}},
              {{name: "bias", shape: [1], buffer: 2}}, {{name: "out", shape: [{}]}}],
    inputs: [0], outputs: [3],
    operators: [{{opcode_index: 0, inputs: [{}], outputs: [3], custom_options: [{}]}}]
  }}]
}})",
                     out, inputs, options);
}
constexpr std::string_view kSameByTwo = "1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0";

// Each pixel becomes the filter 1 2 / 3 4 times its value, and half is added. So does the file that names no MediaPipe.
TEST(TransposeConvBias, IsATransposeConvOfTheDeclaredShape) {
  const Bytes file = file_of_json(transposed(kSameByTwo, "1, 2, 4, 1"));
  const auto graph = import(file, "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto flat = flat_file(file, *graph);
  ASSERT_TRUE(flat.ok()) << flat.error().message;
  EXPECT_NE(*flat, file);
  for (const Bytes& one : {file, *flat}) {
    const auto read = import(one, "m");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->op(0).kind, ir::OpKind::transpose_conv);
    EXPECT_EQ(read->op(0).as<ir::ConvAttrs>(), (ir::ConvAttrs{.stride_h = 2, .stride_w = 2}));
    auto runs = ref::Interpreter::create(*read);
    ASSERT_TRUE(runs.ok()) << runs.error().message;
    store_le(runs->tensor(0).data(), 1.0F);
    store_le(&runs->tensor(0)[4], -2.0F);
    ASSERT_TRUE(runs->run().ok());
    const std::vector<float> wanted = {1.5, 2.5, -1.5, -3.5, 3.5, 4.5, -5.5, -7.5};
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(load_le<float>(&runs->tensor(read->outputs[0])[4 * i]), wanted[i]);
  }
}

TEST(TransposeConvBias, HasTheOrderOfTheStruct) {
  const auto graph = import(file_of_json(transposed("2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0", "1, 2, 5, 1")), "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->op(0).as<ir::ConvAttrs>(),
            (ir::ConvAttrs{.padding = ir::Padding::valid, .stride_h = 2, .stride_w = 3}));
}

TEST(TransposeConvBias, InAnotherFormIsLeft) {
  const auto kind_of = [](std::string_view options, std::string_view inputs) {
    const auto graph = import(file_of_json(transposed(options, "1, 2, 4, 1", inputs)), "m");
    return graph.ok() ? std::string(ir::op_name(graph->op(0))) : graph.error().message;
  };
  EXPECT_EQ(kind_of(kSameByTwo, "0, 1, 2"), "TRANSPOSE_CONV");
  EXPECT_EQ(kind_of(kSameByTwo, "0, 1"), kTransposeConvBias);
  EXPECT_EQ(kind_of("", "0, 1, 2"), kTransposeConvBias);
  EXPECT_EQ(kind_of(kSameByTwo.substr(0, kSameByTwo.size() - 3), "0, 1, 2"), kTransposeConvBias);
  for (const char* padding : {"0", "3", "255"})
    EXPECT_EQ(kind_of(padding + std::string(kSameByTwo.substr(1)), "0, 1, 2"), kTransposeConvBias);
}

TEST(TransposeConvBias, ThatDoesNotFitIsAnError) {
  for (const char* out : {"", "1, 2, 4", "2, 2, 4, 1", "1, 2, 4, 2"}) {
    const auto graph = import(file_of_json(transposed(kSameByTwo, out)), "m");
    const bool fails = !graph.ok() || !ref::Interpreter::create(*graph).ok();
    EXPECT_TRUE(fails) << out;
  }
}

}  // namespace
}  // namespace skillet::tflite
