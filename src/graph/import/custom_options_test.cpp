// Options of custom operations: maps that converters wrote, and bytes that are none.
#include "graph/import/custom_options.h"

#include <flatbuffers/flexbuffers.h>
#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace skillet::tflite
