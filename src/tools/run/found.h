// Found: results of a network (classes, boxes, a mask, key points), read from its outputs by their form.
// Called by `skillet run` and `eval`.
// Must not know: devices, drawing.
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

// ssd: boxes, classes, scores and a count, from a PostProcess operation; yolov5, yolov8: one output with a column or
// row for each candidate; nms: the same after non-maximum suppression in the network; mask: a class for each pixel;
// pose: 17 key points of a person.
enum class Task : uint8_t { classes, ssd, yolov5, yolov8, nms, mask, pose };
inline constexpr std::array<std::string_view, 7> kTaskNames = {"classes", "ssd",  "yolov5", "yolov8",
                                                               "nms",     "mask", "pose"};
std::optional<Task> task_from_name(std::string_view name);

// In parts of the picture: 0 is its left or upper edge, 1 its right or lower edge.
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
  std::vector<KeyPoint> points;  // in the order of kKeyPointNames
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
  std::optional<double> threshold;  // for boxes and key points; none: the task's default
  int top = 5;
};

// Scores below this are usually not shown.
double default_threshold(Task task);
// True for a row of scores, one for each class. If its form could also be coordinates or a vector, the operation that
// computes it decides.
bool gives_scores(const ir::Graph& graph, size_t output);
// Guesses the task from the shapes of the outputs and the size of the input.
std::optional<Task> recognise(const ir::Graph& graph);
// Tasks whose find() accepts these outputs, for a message if no task is recognised.
std::vector<Task> possible(const ir::Graph& graph);
// Error, naming the output: the outputs do not fit `task`, by shape or contents.
Result<Found> find(Task task, const ir::Graph& graph, std::span<const Bytes> outputs, const FindOptions& options);
// Number of classes of the network; none: its outputs do not show it.
std::optional<int64_t> class_count(Task task, const ir::Graph& graph);
// The problem with a label file of so many labels; empty: none.
std::string misfit_of_labels(std::optional<Task> task, const ir::Graph& graph, size_t labels);
// Why nothing can be drawn without a recognised task. `option`: the option that sets one, such as "--task".
std::string why_nothing_is_drawn(const ir::Graph& graph, std::string_view option);

}  // namespace skillet::tools
