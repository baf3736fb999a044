#include "tools/run/found.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/is_any_of.h"
#include "tools/run/found_boxes.h"
#include "tools/run/scores.h"

namespace skillet::tools {
namespace {

constexpr int64_t kMostAfterNms = 1000;
constexpr int kKeyPoints = static_cast<int>(kKeyPointNames.size());
constexpr int kPoseNumbers = 3 * kKeyPoints, kPersonNumbers = kPoseNumbers + 5;  // with a box and a score

const ir::Tensor& output(const ir::Graph& graph, size_t i) { return graph.tensor(graph.outputs[i]); }

// A class for each pixel, as ARG_MAX computes it: unquantized integers. A tensor with a scale is a measure (a
// probability, a depth), whatever its type.
bool is_mask(const ir::Tensor& tensor) {
  if (!tensor.quant.empty()) return false;
  const ir::Shape& shape = tensor.shape;
  const bool is_map = shape.rank() == 3 || (shape.rank() == 4 && shape[3] == 1);
  return is_map && shape[0] == 1 && shape[1] > 1 && shape[2] > 1 && ir::is_integer(tensor.dtype) &&
         has_numbers(tensor.dtype);
}

// The operation that computes the value, before operations that only move or rescale it; none: the graph does not show
// it.
std::optional<ir::OpKind> maker_of(const ir::Graph& graph, ir::TensorId id) {
  const std::vector<ir::OpId> producers = ir::producers(graph);
  for (size_t steps = 0; steps <= graph.ops.size(); ++steps) {
    const ir::OpId at = producers[static_cast<size_t>(id)];
    if (at < 0) break;
    const ir::Op& op = graph.op(at);
    const bool passes_on = op.kind == ir::OpKind::quantize || op.kind == ir::OpKind::dequantize ||
                           op.kind == ir::OpKind::reshape || op.kind == ir::OpKind::squeeze;
    if (!passes_on) return op.kind;
    id = op.inputs[0];
  }
  return std::nullopt;
}

// True for a row of scores for each pixel.
bool is_score_map(const ir::Tensor& tensor) {
  const ir::Shape& shape = tensor.shape;
  return shape.rank() == 4 && shape[0] == 1 && shape[1] > 1 && shape[2] > 1 && shape[3] > 1 &&
         has_numbers(tensor.dtype);
}

bool has_mask_form(const ir::Tensor& tensor) {
  return is_mask(tensor) || (is_score_map(tensor) && tensor.shape[3] <= UINT16_MAX);
}

bool is_pose(const ir::Tensor& tensor) {
  const ir::Shape& shape = tensor.shape;
  if (!has_numbers(tensor.dtype)) return false;
  if (shape.back(0) == 3 && shape.back(1) == kKeyPoints) return shape.elems() == kPoseNumbers;
  return shape.rank() == 3 && shape[0] == 1 && shape[1] > 0 && shape[2] == kPersonNumbers;  // several people
}

std::string label_of(const std::vector<std::string>& labels, int64_t index) {
  return index >= 0 && static_cast<size_t>(index) < labels.size() ? labels[static_cast<size_t>(index)] : "";
}

Error wrong_shape(const ir::Graph& graph, Task task, std::string_view wanted) {
  std::string outputs;
  for (const ir::TensorId id : graph.outputs)
    outputs += fmt::format("{}'{}' {} {}", outputs.empty() ? "" : ", ", graph.tensor(id).name,
                           ir::dtype_name(graph.tensor(id).dtype), graph.tensor(id).shape.to_string());
  return error(ErrorCode::invalid_argument, "no output has the shape of '{}' ({}); the outputs are {}",
               kTaskNames[static_cast<size_t>(task)], wanted, outputs);
}

// The first output of this form; an error if there is none.
template <typename Is>
Result<size_t> output_that(const ir::Graph& graph, Task task, std::string_view wanted, Is is) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (is(output(graph, i))) return i;
  }
  return wrong_shape(graph, task, wanted);
}

Result<Found> find_classes(const ir::Graph& graph, std::span<const Bytes> outputs, const FindOptions& options) {
  SK_TRY_ASSIGN(const size_t i, output_that(graph, Task::classes, "a row of two scores or more", is_scores));
  Found out{.task = Task::classes, .classes = {}, .detections = {}, .mask = {}, .poses = {}};
  const ir::Tensor& scores = output(graph, i);
  for (int64_t k = 0; k < scores.shape.elems(); ++k) {
    if (std::isnan(raw_value(scores, outputs[i], k)))
      return error(ErrorCode::malformed, "output '{}': the score of class {} is nan", scores.name, k);
  }
  out.classes = best_classes(scores, outputs[i], options.top, options.labels);
  return out;
}

Result<int64_t> class_at(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t pixel, bool is_map) {
  if (is_map) {
    const double value = raw_value(tensor, bytes, pixel);
    if (value >= 0 && value <= UINT16_MAX) return static_cast<int64_t>(value);
    return error(ErrorCode::malformed, "output '{}': pixel {} has class {}", tensor.name, pixel, value);
  }
  const int64_t count = tensor.shape.back(0);
  int64_t best = 0;
  double highest = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < count; ++i) {
    const double value = raw_value(tensor, bytes, pixel * count + i);
    if (std::isnan(value))
      return error(ErrorCode::malformed, "output '{}': the score of class {} of pixel {} is nan", tensor.name, i,
                   pixel);
    if (value > highest) highest = value, best = i;
  }
  return best;
}

Result<Found> find_mask(const ir::Graph& graph, std::span<const Bytes> outputs, const FindOptions& options) {
  SK_TRY_ASSIGN(
      const size_t at,
      output_that(graph, Task::mask, "1 x height x width classes, or scores of each for a pixel", has_mask_form));
  const ir::Tensor& tensor = output(graph, at);
  Mask mask{.width = tensor.shape[2], .height = tensor.shape[1], .classes = {}, .present = {}};
  std::map<int64_t, int64_t> counts;
  const int64_t pixels = int64_t{mask.width} * mask.height;
  for (int64_t i = 0; i < pixels; ++i) {
    SK_TRY_ASSIGN(const int64_t one, class_at(tensor, outputs[at], i, is_mask(tensor)));
    mask.classes.push_back(static_cast<uint16_t>(one));
    ++counts[one];
  }
  for (const auto& [index, count] : counts)
    mask.present.push_back(
        {index, static_cast<double>(count) / static_cast<double>(pixels), "", label_of(options.labels, index)});
  std::ranges::stable_sort(mask.present, std::greater(), &TopClass::score);
  return Found{.task = Task::mask, .classes = {}, .detections = {}, .mask = std::move(mask), .poses = {}};
}

Result<Found> find_poses(const ir::Graph& graph, std::span<const Bytes> outputs, const FindOptions& options) {
  SK_TRY_ASSIGN(const size_t at, output_that(graph, Task::pose, "17 x (y, x, score)", is_pose));
  const ir::Tensor& tensor = output(graph, at);
  const bool has_boxes = tensor.shape.back(0) == kPersonNumbers;
  const int64_t numbers = has_boxes ? kPersonNumbers : kPoseNumbers;
  Found out{.task = Task::pose, .classes = {}, .detections = {}, .mask = {}, .poses = {}};
  for (int64_t first = 0; first < tensor.shape.elems(); first += numbers) {
    const auto value = [&](int64_t i) { return real_value(tensor, outputs[at], first + i); };
    if (has_boxes && !(value(kPersonNumbers - 1) >= options.threshold.value_or(default_threshold(Task::pose))))
      continue;
    Pose pose;
    for (int i = 0; i < kKeyPoints; ++i) {
      const KeyPoint point{.x = value(3 * i + 1), .y = value(3 * i), .score = value(3 * i + 2)};
      if (!std::isfinite(point.x) || !std::isfinite(point.y) || std::isnan(point.score))
        return error(ErrorCode::malformed, "output '{}': the {} is at {}, {} with score {}", tensor.name,
                     kKeyPointNames[static_cast<size_t>(i)], point.x, point.y, point.score);
      pose.points.push_back(point);
    }
    out.poses.push_back(std::move(pose));
  }
  return out;
}

Result<Found> find_boxes(Task task, const ir::Graph& graph, std::span<const Bytes> outputs,
                         const FindOptions& options) {
  Found out{.task = task, .classes = {}, .detections = {}, .mask = {}, .poses = {}};
  if (task == Task::ssd) {
    const std::optional<SsdOutputs> ssd = ssd_outputs(graph);
    if (!ssd) return wrong_shape(graph, task, "boxes 1 x n x 4, classes 1 x n, scores 1 x n and a count");
    SK_TRY_ASSIGN(out.detections, find_ssd(*ssd, graph, outputs, options));
    return out;
  }
  if (task == Task::nms) {
    if (!is_nms(graph)) return wrong_shape(graph, task, "1 x n x (left, top, right, bottom, score, class)");
    SK_TRY_ASSIGN(out.detections, find_nms(graph, outputs, options));
    return out;
  }
  const std::optional<YoloOutput> yolo = yolo_output(graph, task, true);
  if (!yolo)
    return wrong_shape(graph, task,
                       task == Task::yolov5 ? "1 x candidates x (4 + 1 + classes)"
                                            : "1 x (4 + classes) x candidates, or the other way round");
  SK_TRY_ASSIGN(out.detections, find_yolo(*yolo, graph, outputs, options));
  return out;
}

}  // namespace

std::optional<Task> task_from_name(std::string_view name) {
  const auto found = std::ranges::find(kTaskNames, name);
  if (found == kTaskNames.end()) return std::nullopt;
  return static_cast<Task>(found - kTaskNames.begin());
}

double default_threshold(Task task) { return task == Task::pose ? 0.3 : 0.4; }

// True for boxes among four outputs whose roles are unknown.
static bool has_boxes(const ir::Graph& graph) {
  return graph.outputs.size() == 4 && std::ranges::any_of(graph.outputs, [&](ir::TensorId id) {
           const ir::Shape& shape = graph.tensor(id).shape;
           return shape.rank() == 3 && shape[0] == 1 && shape[2] == 4;
         });
}

bool gives_scores(const ir::Graph& graph, size_t i) {
  const ir::Tensor& tensor = output(graph, i);
  if (!is_scores(tensor) || !has_numbers(tensor.dtype)) return false;
  const auto is_as_large = [&](ir::TensorId id) { return graph.tensor(id).shape.elems() == tensor.shape.elems(); };
  const auto maker = maker_of(graph, graph.outputs[i]);
  if (!maker) return true;
  using enum ir::OpKind;
  if (is_any_of(*maker, {softmax, log_softmax, logistic})) return true;
  // Logits, unless there are more outputs, or it is as large as an input.
  return is_any_of(*maker, {fully_connected, batch_matmul, conv_2d, add, average_pool_2d, mean, opaque}) &&
         graph.outputs.size() == 1 && std::ranges::none_of(graph.inputs, is_as_large);
}

std::optional<Task> recognise(const ir::Graph& graph) {
  if (ssd_outputs(graph)) return Task::ssd;
  if (graph.outputs.empty() || has_boxes(graph)) return std::nullopt;
  const ir::Tensor& only = output(graph, 0);
  // Key points for each cell need another decoding, and are no classes.
  const int64_t cells = yolo_cells(graph);
  const bool has_cells = cells > 0 && (only.shape.back(0) == cells || only.shape.back(1) == cells);
  if (has_cells && (only.shape.back(0) == kPersonNumbers || only.shape.back(1) == kPersonNumbers)) return std::nullopt;
  if (gives_scores(graph, 0)) return Task::classes;  // even with other outputs
  if (graph.outputs.size() != 1) return std::nullopt;
  if (is_pose(only)) return Task::pose;
  for (const Task task : {Task::yolov5, Task::yolov8}) {
    if (yolo_output(graph, task, false)) return task;
  }
  if (is_nms(graph) && cells > 0 && only.shape[1] <= kMostAfterNms) return Task::nms;
  // With fewer channels it may be a picture.
  if (is_mask(only) || (is_score_map(only) && only.shape[3] > 4 && only.shape[1] >= 16)) return Task::mask;
  return std::nullopt;
}

std::vector<Task> possible(const ir::Graph& graph) {
  const auto any = [&](auto is) {
    return std::ranges::any_of(graph.outputs, [&](ir::TensorId id) { return is(graph.tensor(id)); });
  };
  std::vector<Task> out;
  if (any([](const ir::Tensor& one) { return is_scores(one) && has_numbers(one.dtype); })) out.push_back(Task::classes);
  if (ssd_outputs(graph)) out.push_back(Task::ssd);
  for (const Task task : {Task::yolov5, Task::yolov8}) {
    if (yolo_output(graph, task, true)) out.push_back(task);
  }
  if (is_nms(graph)) out.push_back(Task::nms);
  if (any(has_mask_form)) out.push_back(Task::mask);
  if (any(is_pose)) out.push_back(Task::pose);
  return out;
}

Result<Found> find(Task task, const ir::Graph& graph, std::span<const Bytes> outputs, const FindOptions& options) {
  switch (task) {
    case Task::classes: return find_classes(graph, outputs, options);
    case Task::mask: return find_mask(graph, outputs, options);
    case Task::pose: return find_poses(graph, outputs, options);
    case Task::ssd:
    case Task::yolov5:
    case Task::yolov8:
    case Task::nms: return find_boxes(task, graph, outputs, options);
  }
  return error(ErrorCode::internal, "no such task");
}

std::optional<int64_t> class_count(Task task, const ir::Graph& graph) {
  if (const std::optional<YoloOutput> yolo = yolo_output(graph, task, true)) return yolo->classes;
  for (const ir::TensorId id : graph.outputs) {
    const ir::Tensor& tensor = graph.tensor(id);
    if (task == Task::classes && is_scores(tensor)) return tensor.shape.elems();
    if (task == Task::mask && is_score_map(tensor)) return tensor.shape[3];
  }
  return std::nullopt;
}

// A file of 1000 labels for 1001 classes is shifted by one, which no other check finds.
std::string misfit_of_labels(std::optional<Task> task, const ir::Graph& graph, size_t labels) {
  if (!task || task == Task::pose) return "not used: no output is a row of scores, a mask or boxes";
  const std::optional<int64_t> count = class_count(*task, graph);
  if (!count || static_cast<int64_t>(labels) == *count) return "";
  return fmt::format("{} labels for the {} classes of '{}'", labels, *count, graph.tensor(graph.outputs[0]).name);
}

std::string why_nothing_is_drawn(const ir::Graph& graph, std::string_view option) {
  std::string outputs, tasks;
  for (const ir::TensorId id : graph.outputs)
    outputs += fmt::format("{}'{}' {}", outputs.empty() ? "" : ", ", graph.tensor(id).name,
                           graph.tensor(id).shape.to_string());
  for (const Task one : possible(graph))
    tasks += fmt::format("{}{}", tasks.empty() ? "" : ", ", kTaskNames[static_cast<size_t>(one)]);
  return fmt::format("only the picture is drawn: the kind of outputs is not recognised ({}); {}", outputs,
                     tasks.empty() ? fmt::format("they have the shape of no {}", option)
                                   : fmt::format("name it with {}: {}", option, tasks));
}

}  // namespace skillet::tools
