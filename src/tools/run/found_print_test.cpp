// What was found, as people and programs read it.
#include "tools/run/found_print.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tools/show/paint.h"

namespace skillet::tools {
namespace {

const Found kBoxes{
    .task = Task::ssd,
    .classes = {},
    .detections = {{{0.25, 0.5, 0.75, 1}, {7, 0.875, "", "dog"}}, {{0, 0, 0.125, 0.0625}, {3, 0.5, "", ""}}},
    .mask = std::nullopt,
    .poses = {}};
const Found kMask{.task = Task::mask,
                  .classes = {},
                  .detections = {},
                  .mask = Mask{2, 2, {0, 0, 0, 4}, {{0, 0.75, "", "floor"}, {4, 0.25, "", "cat"}}},
                  .poses = {}};

Found nothing(Task task) {
  Found out;
  out.task = task;
  return out;
}

Found people(size_t count) {
  Found out = nothing(Task::pose);
  for (size_t i = 0; i < count; ++i) {
    out.poses.emplace_back().points.resize(kKeyPointNames.size());
    out.poses.back().points[1] = {0.25, 0.5, 0.875};
  }
  return out;
}

// Lines of `text` that have all of these words, in order.
size_t lines_with(const std::string& text, const std::vector<std::string>& words) {
  size_t out = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    size_t at = from;
    bool has_all = true;
    for (const std::string& word : words) {
      const size_t found = text.find(word, at);
      has_all = has_all && found != std::string::npos && found + word.size() <= end;
      at = has_all ? found + word.size() : at;
    }
    out += has_all ? 1 : 0;
    from = end + 1;
  }
  return out;
}

TEST(FoundPrint, ATableHasARowForEachThing) {
  const std::string boxes = print_found(kBoxes);
  EXPECT_EQ(lines_with(boxes, {"found 2 (0 to 1 across the picture)"}), 1U) << boxes;
  EXPECT_EQ(lines_with(boxes, {"class", "score", "left", "top", "right", "bottom", "label"}), 1U) << boxes;
  EXPECT_EQ(lines_with(boxes, {"7", "0.8750", "0.250", "0.500", "0.750", "1.000", "dog"}), 1U) << boxes;
  EXPECT_EQ(lines_with(boxes, {"3", "0.5000", "0.000", "0.000", "0.125", "0.062"}), 1U) << boxes;
  const std::string mask = print_found(kMask);
  EXPECT_EQ(lines_with(mask, {"found a mask of 2 x 2"}), 1U) << mask;
  EXPECT_EQ(lines_with(mask, {"4", "25.00 %", "cat"}), 1U) << mask;
  const std::string two = print_found(people(2));
  EXPECT_EQ(lines_with(two, {"found a person (0 to 1 across the picture)"}), 2U) << two;
  EXPECT_EQ(lines_with(two, {"left eye", "0.250", "0.500", "0.875"}), 2U) << two;
  EXPECT_EQ(lines_with(two, {"right ankle", "0.000", "0.000", "0.000"}), 2U) << two;
  Found classes = nothing(Task::classes);
  classes.classes = {{1, 0.5, "", "cat"}};
  EXPECT_EQ(print_found(classes), "");
}

TEST(FoundPrint, NothingIsNoTable) {
  EXPECT_EQ(print_found(nothing(Task::nms)), "found 0 (0 to 1 across the picture)\n");
  EXPECT_EQ(print_found(people(0)), "found nobody\n");
  EXPECT_EQ(found_json(nothing(Task::nms)), nlohmann::json::parse(R"({"task": "nms", "boxes": []})"));
  EXPECT_EQ(found_json(people(0)), nlohmann::json::parse(R"({"task": "pose", "poses": []})"));
}

TEST(FoundPrint, JsonHasTheSame) {
  EXPECT_EQ(found_json(kBoxes), nlohmann::json::parse(R"({"task": "ssd", "boxes": [
    {"class": 7, "score": 0.875, "label": "dog", "box": [0.25, 0.5, 0.75, 1.0]},
    {"class": 3, "score": 0.5, "label": "", "box": [0.0, 0.0, 0.125, 0.0625]}]})"));
  EXPECT_EQ(found_json(kMask), nlohmann::json::parse(R"({"task": "mask", "classes": [
    {"class": 0, "score": 0.75, "label": "floor"}, {"class": 4, "score": 0.25, "label": "cat"}]})"));
  const nlohmann::json one = found_json(people(1));
  ASSERT_EQ(one["poses"].size(), 1U);
  ASSERT_EQ(one["poses"][0].size(), kKeyPointNames.size());
  EXPECT_EQ(one["poses"][0][1], nlohmann::json::parse(R"({"name": "left eye", "x": 0.25, "y": 0.5, "score": 0.875})"));
}

TEST(FoundPrint, ASummaryHasTheFirstFew) {
  EXPECT_EQ(summary(people(1)), "a person");
  EXPECT_EQ(summary(people(3)), "3 people");
  EXPECT_EQ(summary(nothing(Task::ssd)), "nothing");
  Found many = kBoxes;
  many.detections.resize(7, many.detections[0]);
  const std::string text = summary(many);
  EXPECT_EQ(text.substr(text.rfind(", ")), ", 2 more") << text;
  EXPECT_EQ(lines_with(summary(kMask), {"floor", ", ", "cat"}), 1U) << summary(kMask);
}

// Of two points that are seen, the pixel between them is drawn if a bone joins them, in its side's colour.
TEST(Paint, BonesJoinTheirPointsOnly) {
  const std::map<std::string, Bytes> bones = {{"nose, left eye", {0, 200, 255}},
                                              {"left eye, left ear", {0, 200, 255}},
                                              {"left shoulder, left elbow", {0, 200, 255}},
                                              {"left elbow, left wrist", {0, 200, 255}},
                                              {"left hip, left knee", {0, 200, 255}},
                                              {"left knee, left ankle", {0, 200, 255}},
                                              {"left shoulder, left hip", {0, 200, 255}},
                                              {"nose, right eye", {255, 120, 0}},
                                              {"right eye, right ear", {255, 120, 0}},
                                              {"right shoulder, right elbow", {255, 120, 0}},
                                              {"right elbow, right wrist", {255, 120, 0}},
                                              {"right hip, right knee", {255, 120, 0}},
                                              {"right knee, right ankle", {255, 120, 0}},
                                              {"right shoulder, right hip", {255, 120, 0}},
                                              {"left shoulder, right shoulder", {240, 240, 0}},
                                              {"left hip, right hip", {240, 240, 0}}};
  for (size_t i = 0; i < kKeyPointNames.size(); ++i) {
    for (size_t j = i + 1; j < kKeyPointNames.size(); ++j) {
      Found found{.task = Task::pose, .classes = {}, .detections = {}, .mask = {}, .poses = {}};
      Pose pose{std::vector<KeyPoint>(kKeyPointNames.size())};
      pose.points[i] = {.x = 0.25, .y = 0.5, .score = 1};
      pose.points[j] = {.x = 0.75, .y = 0.5, .score = 1};
      found.poses.push_back(pose);
      Picture picture{.width_px = 64, .height_px = 64, .channels = 3, .pixels = Bytes(64 * 64 * 3)};
      paint(picture, found, 0.5);
      const auto* const middle = picture.pixels.data() + (32 * 64 + 32) * 3;
      const auto bone = bones.find(fmt::format("{}, {}", kKeyPointNames[i], kKeyPointNames[j]));
      EXPECT_EQ(Bytes(middle, middle + 3), bone == bones.end() ? Bytes(3) : bone->second) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace skillet::tools
