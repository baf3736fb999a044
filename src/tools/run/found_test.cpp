// Results of networks from outputs that are made here: forms, contents, and ambiguous ones.
#include "tools/run/found.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/testing/own_folder.h"
#include "tools/run/found_print.h"
#include "tools/show/canvas.h"
#include "tools/show/paint.h"
#include "tools/show/terminal.h"

namespace skillet::tools {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

using Shapes = std::vector<ir::Shape>;

ir::Graph graph(const Shapes& outputs, ir::DType dtype = ir::DType::float32, ir::Shape input = {1, 64, 96, 3}) {
  ir::Graph out;
  out.inputs = {out.add_tensor({.name = "picture", .dtype = ir::DType::uint8, .shape = std::move(input)})};
  for (size_t i = 0; i < outputs.size(); ++i)
    out.outputs.push_back(out.add_tensor({.name = fmt::format("out{}", i), .dtype = dtype, .shape = outputs[i]}));
  return out;
}

Bytes floats(const std::vector<float>& values) {
  Bytes out(values.size() * sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) store_le(out.data() + i * sizeof(float), values[i]);
  return out;
}

const Shapes kSsd = {{1, 3, 4}, {1, 3}, {1, 3}, {1}};

TEST(Found, FormsOfOutputsAreRecognised) {
  struct Case {
    Shapes outputs;
    std::string_view task;  // empty: none
    ir::DType dtype = ir::DType::float32;
  };
  // 64 x 96: 8 * 12 + 4 * 6 + 2 * 3 = 126 cells.
  const Case kCases[] = {{{{1, 10}}, "classes"},
                         {{{1, 1, 1, 10}, {1, 7}}, "classes"},
                         {kSsd, "ssd"},
                         {{{1, 3}, {1, 3, 4}, {1}, {1, 3}}, "ssd"},
                         {{{1, 3, 5}, {1, 3}, {1, 3}, {1}}, ""},
                         {{{1, 3, 4}, {1, 2}, {1, 3}, {1}}, ""},
                         {{{2, 3, 4}, {1, 3}, {1, 3}, {1}}, ""},
                         {{{1, 3, 4}, {1, 3}, {1, 3}}, ""},
                         {{{1, 378, 85}}, "yolov5"},
                         {{{1, 84, 126}}, "yolov8"},
                         {{{1, 126, 84}}, "yolov8"},
                         {{{1, 125, 84}}, ""},
                         {{{1, 200, 126}}, "yolov8"},
                         {{{1, 126, 200}}, "yolov8"},
                         {{{1, 300, 6}}, "nms"},
                         {{{1, 378, 6}}, "yolov5"},
                         {{{1, 2000, 6}}, ""},
                         {{{1, 56, 126}}, ""},
                         {{{1, 126, 56}}, ""},
                         {{{1, 1, 4}, {1, 1}, {1, 1}, {1}}, ""},
                         {{{1, 126, 4}}, ""},
                         {{{1, 33, 33}}, "mask", ir::DType::int64},
                         {{{1, 33, 33, 1}}, "mask", ir::DType::uint8},
                         {{{1, 33, 33}}, "", ir::DType::float32},
                         {{{1, 33, 33, 21}}, "mask"},
                         {{{1, 33, 33, 3}}, ""},
                         {{{1, 33, 33, 21}}, "", ir::DType::string},
                         {{{1, 1, 17, 3}}, "pose"},
                         {{{1, 6, 56}}, "pose"},
                         {{{2, 17, 3}}, ""},
                         {{{1, 1}}, ""},
                         {{}, ""}};
  for (const Case& c : kCases) {
    const auto task = recognise(graph(c.outputs, c.dtype));
    EXPECT_EQ(task ? kTaskNames[static_cast<size_t>(*task)] : "", c.task)
        << (c.outputs.empty() ? "no output" : c.outputs[0].to_string());
  }
}

TEST(Found, WhatComputesARowSaysWhetherItHasScores) {
  const struct {
    ir::OpKind maker;
    Shapes outputs;
    bool has_scores;
    ir::Shape input = {1, 64, 96, 3};
  } kCases[] = {{ir::OpKind::softmax, {{1, 10}}, true},
                {ir::OpKind::logistic, {{1, 10}, {1, 7}}, true},
                {ir::OpKind::fully_connected, {{1, 10}}, true},
                {ir::OpKind::fully_connected, {{1, 42}, {1, 1}}, false},     // coordinates, and whether they are valid
                {ir::OpKind::fully_connected, {{1, 640}}, false, {1, 640}},  // an autoencoder
                {ir::OpKind::l2_normalization, {{1, 64}}, false}};
  for (const auto& c : kCases) {
    ir::Graph net = graph(c.outputs, ir::DType::float32, c.input);
    net.add_op({.kind = c.maker, .inputs = {net.inputs[0]}, .outputs = {net.outputs[0]}});
    EXPECT_EQ(gives_scores(net, 0), c.has_scores) << ir::print(net);
  }
}

// A tensor with a scale is a measure (a probability or a depth), whatever its type: all types give the same result.
TEST(Found, MeasuresAreNoClasses) {
  for (const ir::Shape& shape : {ir::Shape{1, 48, 64, 1}, ir::Shape{1, 48, 64}, ir::Shape{1, 10, 4}}) {
    for (const ir::DType type : {ir::DType::uint8, ir::DType::int8, ir::DType::int16, ir::DType::float32}) {
      ir::Graph net = graph({shape}, type);
      if (type != ir::DType::float32)
        net.tensor(net.outputs[0]).quant = {.scales = {1.0F / 256}, .zero_points = {0}, .axis = 0};
      EXPECT_EQ(recognise(net), std::nullopt) << ir::dtype_name(type) << " " << shape.to_string();
      EXPECT_EQ(std::ranges::count(possible(net), Task::mask), 0) << ir::dtype_name(type) << " " << shape.to_string();
    }
  }
}

// Values for --task if no task is recognised: all that find() accepts, and no others.
TEST(Found, TasksThatOutputsHaveTheFormOf) {
  const std::pair<Shapes, std::vector<Task>> kCases[] = {{{{1, 8, 8, 6}}, {Task::mask}},
                                                         {{{1, 15, 40, 21}}, {Task::mask}},
                                                         {{{1, 33, 33, 3}}, {Task::mask}},
                                                         {{{1, 56, 126}}, {Task::yolov5, Task::yolov8}},
                                                         {{{1, 33}, {1, 8, 8, 6}}, {Task::classes, Task::mask}},
                                                         {{{2, 8, 8, 6}}, {}},
                                                         {{{1, 3, 4}}, {}},
                                                         {{}, {}}};
  for (const auto& [outputs, tasks] : kCases) {
    const ir::Graph net = graph(outputs);
    EXPECT_EQ(possible(net), tasks) << (outputs.empty() ? "no output" : outputs[0].to_string());
    std::vector<Bytes> bytes;
    for (const ir::TensorId id : net.outputs) bytes.emplace_back(static_cast<size_t>(net.tensor(id).bytes()));
    for (const std::string_view name : kTaskNames) {
      const Task task = *task_from_name(name);
      EXPECT_EQ(find(task, net, bytes, {}).ok(), std::ranges::find(tasks, task) != tasks.end()) << name;
    }
  }
}

TEST(Found, AnOperationSaysWhichOutputIsWhich) {
  ir::Graph net = graph({{1, 3}, {1}, {1, 3}, {1, 3, 4}});
  net.add_op({.kind = ir::OpKind::opaque,
              .opaque_name = "TFLite_Detection_PostProcess",
              .attrs = {},
              .inputs = {},
              .outputs = {net.outputs[3], net.outputs[0], net.outputs[2], net.outputs[1]}});
  ASSERT_EQ(recognise(net), Task::ssd);
  const std::vector<Bytes> outputs = {floats({7, 1, 1}), floats({1}), floats({0.5F, 0, 0}),
                                      floats({0.25F, 0, 0.75F, 0.5F, 0, 0, 0, 0, 0, 0, 0, 0})};
  const auto found = find(Task::ssd, net, outputs, {});
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->detections.size(), 1U);
  EXPECT_EQ(found->detections[0].what.index, 7);
  EXPECT_EQ(found->detections[0].box.top, 0.25);
  EXPECT_EQ(found->detections[0].box.right, 0.5);
}

TEST(Found, BoxesOfSsd) {
  const std::vector<float> boxes = {0.1F, 0.2F, 0.5F, 0.6F, -1, -1, 2, 2, 0.5F, 0.5F, 0.4F, 0.4F};
  struct Case {
    std::string_view what;
    std::vector<float> boxes, classes, scores, count;
    std::string outcome;  // a summary, or part of the error
  };
  const Case kCases[] = {
      {"all, one upside down", boxes, {1, 0, 2}, {0.5F, 0.9F, 0.8F}, {3}, "person (0.90), car (0.50)"},
      {"low, right, without width",
       {0.5F, 0, 0.9F, 0.2F, 0, 0.5F, 0.2F, 0.9F, 0.1F, 0.3F, 0.5F, 0.3F},
       {1, 0, 2},
       {0.5F, 0.9F, 0.8F},
       {3},
       "person (0.90), car (0.50)"},
      {"only as many as are counted", boxes, {1, 0, 2}, {0.5F, 0.9F, 0.8F}, {1}, "car (0.50)"},
      {"the first below the threshold", boxes, {1, 0, 2}, {0.39F, 0.9F, 0.8F}, {3}, "person (0.90)"},
      {"below the threshold", boxes, {1, 0, 2}, {0.39F, 0.3F, 0}, {3}, "nothing"},
      {"none", boxes, {1, 0, 2}, {0.5F, 0.9F, 0.8F}, {0}, "nothing"},
      {"no label", boxes, {77, 0, 0}, {0.5F, 0, 0}, {3}, "class 77 (0.50)"},
      {"more than there is room for",
       boxes,
       {1, 0, 2},
       {0.5F, 0.9F, 0.8F},
       {4},
       "'out3' counts 4 boxes, but holds at most 3"},
      {"less than none", boxes, {1, 0, 2}, {0.5F, 0.9F, 0.8F}, {-1}, "'out3' counts -1 boxes"},
      {"no number of boxes", boxes, {1, 0, 2}, {0.5F, 0.9F, 0.8F}, {kNan}, "'out3' counts nan boxes"},
      {"no score",
       boxes,
       {1, 0, 2},
       {0.5F, kNan, 0.8F},
       {3},
       "'out0': box 1 is invalid, or its score nan is not in 0 to 1"},
      {"a score above 1", boxes, {1, 0, 2}, {0.5F, 63.9F, 0.8F}, {3}, "'out0': box 1 is invalid, or its score 63.9"},
      {"scores where classes should be", boxes, {0.5F, 0.9F, 0.8F}, {1, 0, 2}, {3}, "person (0.90), car (0.50)"},
      {"no edge", {kNan, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1}, {1, 0, 2}, {0.5F, 0, 0}, {3}, "'out0': box 0 is invalid"},
      {"endless", {0, 0, kInfinite, 1, 0, 0, 1, 1, 0, 0, 1, 1}, {1, 0, 2}, {0, 0, 0}, {3}, "'out0': box 0 is invalid"},
      {"no class", boxes, {1, kNan, 2}, {0.5F, 0.9F, 0.8F}, {3}, "'out1': box 1 has class nan"},
      {"class below none", boxes, {-2, 1, 2}, {0.5F, 0.9F, 0.8F}, {3}, "'out1': box 0 has class -2"},
      {"class of 1e30", boxes, {1, 2, 1e30F}, {0.5F, 0.9F, 0.8F}, {3}, "'out1': box 2 has class 1"}};
  for (const Case& c : kCases) {
    const std::vector<Bytes> outputs = {floats(c.boxes), floats(c.classes), floats(c.scores), floats(c.count)};
    const auto found = find(Task::ssd, graph(kSsd), outputs, {.labels = {"???", "person", "car"}, .threshold = {}});
    const std::string outcome = found.ok() ? summary(*found) : found.error().message;
    if (found.ok()) {
      EXPECT_EQ(outcome, c.outcome) << c.what;
    } else {
      EXPECT_NE(outcome.find(c.outcome), std::string::npos) << c.what << ": " << outcome;
    }
  }
}

// One candidate with these values, a neighbour with the same values shifted by `aside`, the rest zeros.
std::vector<Bytes> yolo(const std::vector<float>& one, int64_t candidates, bool candidates_last, float aside) {
  const auto numbers = static_cast<int64_t>(one.size());
  std::vector<float> values(static_cast<size_t>(numbers * candidates));
  for (int64_t i = 0; i < numbers; ++i) {
    const auto at = [&](int64_t candidate) -> float& {
      return values[static_cast<size_t>(candidates_last ? i * candidates + candidate : candidate * numbers + i)];
    };
    at(5) = one[static_cast<size_t>(i)];
    at(6) = one[static_cast<size_t>(i)] + (i < 1 ? aside : 0);
  }
  return {floats(values)};
}

TEST(Found, BoxesOfYolo) {
  struct Case {
    std::string_view what;
    Task task;
    bool candidates_last;
    std::vector<float> one;
    float aside;
    std::string outcome;
  };
  const Case kCases[] = {
      {"v8, parts of the picture",
       Task::yolov8,
       true,
       {0.5F, 0.5F, 0.5F, 0.25F, 0.1F, 0.9F},
       0.01F,
       "b (0.90) 0.25 0.375 0.75 0.625"},
      {"v8, the other way round", Task::yolov8, false, {1, 0.5F, 2, 0.5F, 0, 1}, 0.01F, "b (1.00) 0 0.25 1 0.75"},
      {"v8, few pixels", Task::yolov8, true, {1.25F, 1, 2.5F, 2, 0, 1}, 0, "b (1.00) 0 0 0.0260417 0.03125"},
      {"v8, pixels", Task::yolov8, true, {48, 32, 48, 16, 0.1F, 0.9F}, 1, "b (0.90) 0.25 0.375 0.75 0.625"},
      {"v8, two far from each other",
       Task::yolov8,
       true,
       {0.25F, 0.5F, 0.5F, 0.5F, 0.9F, 0.1F},
       0.5F,
       "a (0.90) 0 0.25 0.5 0.75, a (0.90) 0.5 0.25 1 0.75"},
      {"v5", Task::yolov5, false, {0.5F, 0.5F, 0.5F, 0.25F, 0.5F, 1, 0.9F}, 0.01F, "a (0.50) 0.25 0.375 0.75 0.625"},
      {"v5, no object", Task::yolov5, false, {0.5F, 0.5F, 0.5F, 0.25F, 0.1F, 1, 0.9F}, 0.01F, ""},
      {"no score", Task::yolov8, true, {0.5F, 0.5F, 0.5F, 0.25F, 0.1F, kNan}, 0, "candidate 5 is invalid"},
      {"no edge", Task::yolov8, true, {0.5F, kNan, 0.5F, 0.25F, 0.1F, 1}, 0, "candidate 5 is invalid"},
      {"endless", Task::yolov8, true, {0.5F, 0.5F, kInfinite, 0.25F, 0.1F, 1}, 0, "candidate 5 is invalid"}};
  for (const Case& c : kCases) {
    const auto numbers = static_cast<int32_t>(c.one.size());
    const int32_t candidates = c.task == Task::yolov5 ? 378 : 126;
    const ir::Shape shape = c.candidates_last ? ir::Shape{1, numbers, candidates} : ir::Shape{1, candidates, numbers};
    const auto found = find(c.task, graph({shape}), yolo(c.one, candidates, c.candidates_last, c.aside),
                            {.labels = {"a", "b"}, .threshold = {}});
    std::string outcome;
    if (found.ok()) {
      for (const Detection& one : found->detections)
        outcome += fmt::format("{}{} {:g} {:g} {:g} {:g}", outcome.empty() ? "" : ", ", caption_of(one.what),
                               one.box.left, one.box.top, one.box.right, one.box.bottom);
      EXPECT_EQ(outcome, c.outcome) << c.what;
    } else {
      EXPECT_NE(found.error().message.find(c.outcome), std::string::npos) << c.what << found.error().message;
    }
  }
}

// Corners in pixels of 96 x 64; the second box has a score of 0.
TEST(Found, BoxesAfterSuppression) {
  const auto of = [](float left, float score, float number) {
    return find(Task::nms, graph({{1, 2, 6}}),
                std::vector<Bytes>{floats({left, 16, 72, 48, score, number, 0, 0, 0, 0, 0, 0})},
                {.labels = {"a", "b"}, .threshold = {}});
  };
  const auto found = of(24, 0.9F, 1);
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->detections.size(), 1U);
  EXPECT_EQ(caption_of(found->detections[0].what), "b (0.90)");
  const Box box = found->detections[0].box;
  EXPECT_EQ((std::array{box.left, box.top, box.right, box.bottom}), (std::array{0.25, 0.25, 0.75, 0.75}));
  for (const auto& wrong : {of(kNan, 0.9F, 1), of(24, 2, 1), of(24, 0.9F, -1)})
    EXPECT_NE(wrong.error().message.find("box 0 is invalid"), std::string::npos);
  EXPECT_TRUE(of(24, 0.1F, 1)->detections.empty());
}

TEST(Found, MasksCountTheirPixels) {
  ir::Graph classes = graph({{1, 2, 3}}, ir::DType::int32);
  Bytes bytes(6 * 4);
  const std::vector<int32_t> values = {0, 2, 2, 2, 0, 2};
  for (size_t i = 0; i < values.size(); ++i) store_le(bytes.data() + i * 4, values[i]);
  auto found =
      find(Task::mask, classes, std::vector<Bytes>{bytes}, {.labels = {"nothing", "x", "bird"}, .threshold = {}});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(summary(*found), "bird (0.67), nothing (0.33)");
  EXPECT_EQ(found->mask->classes, (std::vector<uint16_t>{0, 2, 2, 2, 0, 2}));
  for (const int32_t wrong : {-1, 65536}) {
    store_le(bytes.data() + 8, wrong);
    found = find(Task::mask, classes, std::vector<Bytes>{bytes}, {});
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().message, fmt::format("output 'out0': pixel 2 has class {}", wrong));
  }
  // Scores of two classes for each of 2 x 2 pixels.
  found = find(Task::mask, graph({{1, 2, 2, 2}}), std::vector<Bytes>{floats({1, 0, 0, 1, 3, 4, 5, 4})}, {});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->mask->classes, (std::vector<uint16_t>{0, 1, 1, 0}));
  for (const size_t at : {2, 3}) {
    std::vector<float> scores = {1, 0, 0, 1, 3, 4, 5, 4};
    scores[at] = kNan;
    found = find(Task::mask, graph({{1, 2, 2, 2}}), std::vector<Bytes>{floats(scores)}, {});
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().message, fmt::format("output 'out0': the score of class {} of pixel 1 is nan", at - 2));
  }
}

TEST(Found, ClassesHaveScores) {
  const auto found = find(Task::classes, graph({{1, 3}}), std::vector<Bytes>{floats({1, kNan, 0})}, {});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "output 'out0': the score of class 1 is nan");
}

TEST(Found, KeyPoints) {
  std::vector<float> values(51, 0.5F);
  values[3 * 9] = 0.25F;  // y of the left wrist
  auto found = find(Task::pose, graph({{1, 1, 17, 3}}), std::vector<Bytes>{floats(values)}, {});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->poses.size(), 1U);
  EXPECT_EQ(found->poses[0].points[9].y, 0.25);
  EXPECT_EQ(found->poses[0].points[9].x, 0.5);
  values[3 * 9] = kNan;
  found = find(Task::pose, graph({{1, 1, 17, 3}}), std::vector<Bytes>{floats(values)}, {});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "output 'out0': the left wrist is at 0.5, nan with score 0.5");
  std::vector<float> people(2 * 56, 0.5F);
  people[55] = 0.1F;  // the first person is below the threshold
  found = find(Task::pose, graph({{1, 2, 56}}), std::vector<Bytes>{floats(people)}, {});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->poses.size(), 1U);
}

TEST(Found, WhatIsAskedForMustFit) {
  for (size_t i = 0; i < kTaskNames.size(); ++i) {
    const auto task = static_cast<Task>(i);
    EXPECT_EQ(task_from_name(kTaskNames[i]), task);
    const ir::Graph odd = graph({{1, 2, 3, 1}});
    const auto found = find(task, odd, std::vector<Bytes>{floats(std::vector<float>(6))}, {});
    ASSERT_FALSE(found.ok()) << kTaskNames[i];
    EXPECT_NE(found.error().message.find(fmt::format("no output has the shape of '{}'", kTaskNames[i])),
              std::string::npos);
    EXPECT_NE(found.error().message.find("the outputs are 'out0' float32 1x2x3x1"), std::string::npos);
  }
}

Picture black(int width_px, int height_px) {
  return {.width_px = width_px,
          .height_px = height_px,
          .channels = 3,
          .pixels = Bytes(static_cast<size_t>(width_px) * height_px * 3)};
}

Colour at(const Picture& picture, int x, int y) {
  const uint8_t* pixel = picture.pixels.data() + (y * picture.width_px + x) * 3;
  return {pixel[0], pixel[1], pixel[2]};
}

TEST(Paint, ABoxIsWhereItWasFound) {
  Picture picture = black(200, 100);
  const Found found{.task = Task::ssd,
                    .classes = {},
                    .detections = {{{0.25, 0.25, 0.75, 0.9}, {2, 0.5, "", "x"}}},
                    .mask = {},
                    .poses = {}};
  paint(picture, found, {});
  const Colour ink = class_colour(3);
  EXPECT_EQ(at(picture, 149, 80), ink);
  EXPECT_EQ(at(picture, 100, 89), ink);
  EXPECT_EQ(at(picture, 100, 60), (Colour{0, 0, 0})) << "inside";
  EXPECT_EQ(at(picture, 151, 60), (Colour{0, 0, 0})) << "outside";
}

TEST(Paint, AMaskLeavesTheBackground) {
  Picture picture = black(400, 200);
  const Mask mask{.width = 2, .height = 1, .classes = {0, 1}, .present = {}};
  paint(picture, {.task = Task::mask, .classes = {}, .detections = {}, .mask = mask, .poses = {}}, {});
  EXPECT_EQ(at(picture, 199, 150), (Colour{0, 0, 0}));
  EXPECT_EQ(at(picture, 200, 150), (Colour{77, 0, 0}));  // 60 % of 128
}

// For any size of the picture and any position of results.
TEST(Paint, StaysInside) {
  Found found{.task = Task::ssd,
              .classes = {{1, 0.5, "", "\xC3\xA9t\xC3\xA9 \x1B[31m"}},
              .detections = {},
              .mask = {},
              .poses = {}};
  found.detections.push_back({{0, 0, 1, 1}, {int64_t{1} << 40, 1, "", std::string(500, 'W')}});
  found.mask = Mask{.width = 1, .height = 1, .classes = {9}, .present = {{9, 1, "", ""}}};
  found.poses.push_back({std::vector<KeyPoint>(17, {1e30, -1e30, 1})});
  for (const auto& [width, height] : {std::pair{1, 1}, {3, 1}, {1, 700}, {1281, 2}, {640, 480}}) {
    Picture picture = black(width, height);
    paint(picture, found, {});
    EXPECT_EQ(picture.pixels.size(), static_cast<size_t>(width) * height * 3);
  }
}

TEST(Png, IsReadBack) {
  Picture picture = black(7, 5);
  for (size_t i = 0; i < picture.pixels.size(); ++i) picture.pixels[i] = static_cast<uint8_t>(i * 37);
  const std::string path = own_path("written.png");
  const auto png = png_of(picture);
  ASSERT_TRUE(png.ok());
  ASSERT_TRUE(write_file(path, *png).ok());
  const auto back = load_picture(path, 3);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->pixels, picture.pixels);
  std::remove(path.c_str());
}

// For the 256 colours: each channel gets the nearest level of the cube.
TEST(Terminal, ColoursAreTheNearestOfTheCube) {
  constexpr int kLevels[] = {0, 95, 135, 175, 215, 255};
  for (const int value : {0, 47, 48, 95, 114, 116, 134, 154, 156, 194, 196, 234, 236, 255}) {
    const auto nearest = std::ranges::min_element(kLevels, {}, [&](int level) { return std::abs(level - value); });
    const auto level = static_cast<int>(nearest - std::begin(kLevels));
    for (const auto& [channel, weight] : {std::pair<size_t, int>{0, 36}, {1, 6}, {2, 1}}) {
      Picture picture = black(1, 1);
      picture.pixels[channel] = static_cast<uint8_t>(value);
      EXPECT_EQ(half_blocks(picture, {80, 40}, Colours::c256),
                fmt::format("\x1b[38;5;{}m\x1b[49m\u2580\x1b[0m\n", 16 + weight * level))
          << value << " of channel " << channel;
    }
  }
}

TEST(Terminal, HalfBlocksHoldTwoPixels) {
  Picture picture = black(2, 3);
  picture.pixels[0] = 255;  // upper left: red
  EXPECT_EQ(half_blocks(picture, {80, 40}, Colours::all),
            "\x1b[38;2;255;0;0m\x1b[48;2;0;0;0m\u2580\x1b[38;2;0;0;0m\u2580\x1b[0m\n"
            "\x1b[38;2;0;0;0m\x1b[49m\u2580\u2580\x1b[0m\n");
  EXPECT_EQ(half_blocks(black(2, 2), {80, 40}, Colours::c256), "\x1b[38;5;16m\x1b[48;5;16m\u2580\u2580\x1b[0m\n");
  struct Case {
    int width_px, height_px;
    TerminalSize size;
    size_t columns, rows;
  };
  const Case kCases[] = {{100, 100, {40, 60}, 40, 20}, {100, 400, {40, 12}, 5, 10},        {1, 1000, {1, 1}, 1, 1},
                         {1000, 1, {80, 24}, 80, 1},   {1000, 1000, {900, 900}, 500, 250}, {3, 3, {80, 40}, 3, 2}};
  for (const Case& c : kCases) {
    const std::string text = half_blocks(black(c.width_px, c.height_px), c.size, Colours::all);
    size_t blocks = 0;
    for (size_t i = text.find("\u2580"); i != std::string::npos; i = text.find("\u2580", i + 1)) ++blocks;
    EXPECT_EQ(blocks, c.columns * c.rows);
    EXPECT_EQ(static_cast<size_t>(std::ranges::count(text, '\n')), c.rows);
  }
}

// Each letter that the font lacks becomes one character, whatever its number of bytes.
TEST(Canvas, CaptionsHaveOneSignForEachLetter) {
  const auto captioned = [](std::string_view text) {
    Picture picture = black(200, 20);
    caption(picture, {0, 0}, text, {200, 100, 0}, 1);
    return picture.pixels;
  };
  EXPECT_EQ(captioned("b\u00e4r"), captioned("b?r"));
  EXPECT_EQ(captioned("\u732b 1"), captioned("? 1"));
  EXPECT_EQ(captioned("a\tb\x7f"), captioned("a?b?"));
  EXPECT_NE(captioned("b?r"), captioned("b??r"));
}

// Text has its background on every side.
TEST(Canvas, CaptionsLieOnTheirGround) {
  for (const int scale : {1, 2, 3}) {
    Picture picture = black(200, 60);
    caption(picture, {0, 0}, "gb|", {90, 0, 0}, scale);
    std::set<int> ground, ink;  // rows
    for (int y = 0; y < picture.height_px; ++y) {
      for (int x = 0; x < picture.width_px; ++x) {
        const uint8_t* const pixel = picture.pixels.data() + (y * picture.width_px + x) * 3;
        if (pixel[1] == 255) ink.insert(y);
        if (pixel[0] == 90) ground.insert(y);
      }
    }
    ASSERT_FALSE(ink.empty() || ground.empty());
    EXPECT_EQ(*ground.rbegin() + 1, caption_height_px(scale));
    EXPECT_LT(*ground.begin(), *ink.begin());
    EXPECT_GT(*ground.rbegin(), *ink.rbegin());
  }
}

}  // namespace
}  // namespace skillet::tools
