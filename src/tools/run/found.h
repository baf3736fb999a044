// Found: what a network saw: classes, boxes, a mask, key points; read from its outputs, whose form says which it is.
// Called by `skillet run` and `eval`.
// Must not know: devices, how it is drawn.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "graph/ir/graph.h"
#include "tools/run/scores.h"

namespace skillet::tools {

// ssd: boxes, classes, scores and a count, of a PostProcess operation; yolov5, yolov8: one output with a column or row
// for each candidate; nms: the same after overlapping ones were dropped in the network; mask: a class for each pixel;
// pose: 17 key points of a person.
enum class Task : uint8_t { classes, ssd, yolov5, yolov8, nms, mask, pose };
inline constexpr std::array<std::string_view, 7> kTaskNames = {"classes", "ssd",  "yolov5", "yolov8",
                                                               "nms",     "mask", "pose"};
std::optional<Task> task_from_name(std::string_view name);

// Of the picture: 0 is its left or upper edge, 1 the other one.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};
struct Detection {
  Box box;
  TopClass what;
};
struct Mask {
  int width = 0, height = 0;
  std::vector<uint16_t> classes;  // row by row
  std::vector<TopClass> present;  // score: share of the pixels; most frequent first
};
struct KeyPoint {
  double x = 0, y = 0, score = 0;
};
struct Pose {
  std::vector<KeyPoint> points;  // as kKeyPointNames
};
struct Found {
  Task task = Task::classes;
  std::vector<TopClass> classes;      // best first
  std::vector<Detection> detections;  // best first
  std::optional<Mask> mask;
  std::vector<Pose> poses;
};

inline constexpr std::array<std::string_view, 17> kKeyPointNames = {
    "nose",           "left eye",   "right eye",   "left ear",   "right ear",   "left shoulder",
    "right shoulder", "left elbow", "right elbow", "left wrist", "right wrist", "left hip",
    "right hip",      "left knee",  "right knee",  "left ankle", "right ankle"};

struct FindOptions {
  std::vector<std::string> labels;
  std::optional<double> threshold;  // of boxes and key points; none: as usual for the task
  int top = 5;
};

// From which score on things are usually shown.
double default_threshold(Task task);
// A row of scores, one for each class: what computes it says so, where its form is also that of coordinates or a
// vector.
bool gives_scores(const ir::Graph& graph, size_t output);
// What the shapes of the outputs, and the size of the input, look like.
std::optional<Task> recognise(const ir::Graph& graph);
// Tasks that could be meant where none is recognised: those that find() takes outputs of these forms for.
std::vector<Task> possible(const ir::Graph& graph);
// Error, naming the output, when the outputs are not what `task` has: their shapes, or what is in them.
Result<Found> find(Task task, const ir::Graph& graph, std::span<const Bytes> outputs, const FindOptions& options);
// How many classes the network tells apart; nothing where its outputs do not say.
std::optional<int64_t> class_count(Task task, const ir::Graph& graph);
// What is wrong with a file of so many labels; empty: nothing.
std::string misfit_of_labels(std::optional<Task> task, const ir::Graph& graph, size_t labels);
// Why nothing can be drawn where no task is recognised. `option`: what names one, as "--task".
std::string why_nothing_is_drawn(const ir::Graph& graph, std::string_view option);

}  // namespace skillet::tools
