#include "tools/run/found_boxes.h"

#include <algorithm>
#include <cmath>

#include "tools/run/scores.h"
#include "tools/tensors/picture.h"

namespace skillet::tools {
namespace {

constexpr double kLargestPart = 2;  // larger coordinates are in pixels, not in parts of the picture
constexpr size_t kMaxCandidates = 1000, kMaxDetections = 100;  // before and after suppression

const ir::Tensor& output(const ir::Graph& graph, size_t i) { return graph.tensor(graph.outputs[i]); }

// Clips a box to the picture; none if it is outside.
std::optional<Box> clipped(Box box) {
  box = {std::clamp(box.left, 0.0, 1.0), std::clamp(box.top, 0.0, 1.0), std::clamp(box.right, 0.0, 1.0),
         std::clamp(box.bottom, 0.0, 1.0)};
  if (box.right <= box.left || box.bottom <= box.top) return std::nullopt;
  return box;
}

bool is_finite(const Box& box) {
  return std::isfinite(box.left) && std::isfinite(box.top) && std::isfinite(box.right) && std::isfinite(box.bottom);
}

double area(const Box& box) { return std::max(0.0, box.right - box.left) * std::max(0.0, box.bottom - box.top); }

double overlap(const Box& a, const Box& b) {
  const double common = area(
      {std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right), std::min(a.bottom, b.bottom)});
  const double all = area(a) + area(b) - common;
  return all > 0 ? common / all : 0;
}

// Non-maximum suppression: best first, and of boxes of one class that overlap much only the best.
std::vector<Detection> suppressed(std::vector<Detection> candidates) {
  constexpr double kMaxOverlap = 0.45;
  std::ranges::stable_sort(candidates,
                           [](const Detection& a, const Detection& b) { return a.what.score > b.what.score; });
  candidates.resize(std::min(candidates.size(), kMaxCandidates));
  std::vector<Detection> out;
  for (Detection& one : candidates) {
    const bool is_new = std::ranges::none_of(out, [&](const Detection& kept) {
      return kept.what.index == one.what.index && overlap(kept.box, one.box) > kMaxOverlap;
    });
    if (is_new && out.size() < kMaxDetections) out.push_back(std::move(one));
  }
  return out;
}

bool is_postprocess(const ir::Op& op) {
  std::string name(op.opaque_name.empty() ? ir::op_name(op) : op.opaque_name);
  std::erase(name, '_');
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return name.find("detectionpostprocess") != std::string::npos;
}

std::optional<size_t> place(const ir::Graph& graph, ir::TensorId id) {
  const auto found = std::ranges::find(graph.outputs, id);
  if (found == graph.outputs.end()) return std::nullopt;
  return static_cast<size_t>(found - graph.outputs.begin());
}

// Finds the outputs by the operation that makes them.
std::optional<SsdOutputs> made_by_postprocess(const ir::Graph& graph) {
  for (const ir::Op& op : graph.ops) {
    if (!is_postprocess(op) || op.outputs.size() < 4) continue;
    const auto boxes = place(graph, op.outputs[0]), classes = place(graph, op.outputs[1]);
    const auto scores = place(graph, op.outputs[2]), count = place(graph, op.outputs[3]);
    if (boxes && classes && scores && count) return SsdOutputs{*boxes, *classes, *scores, *count};
  }
  return std::nullopt;
}

// Guesses by shapes: boxes and count are unique. Of the two rows, classes come first if boxes are the first output,
// else scores (as in TensorFlow 2 models), unless their values show the opposite.
std::optional<SsdOutputs> of_ssd_shapes(const ir::Graph& graph) {
  std::optional<size_t> boxes, count;
  std::vector<size_t> rows;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ir::Shape& shape = output(graph, i).shape;
    if (shape.rank() == 3 && shape[0] == 1 && shape[2] == 4)
      boxes = i;
    else if (shape.elems() == 1)
      count = i;
    else
      rows.push_back(i);
  }
  if (!boxes || !count || rows.size() != 2) return std::nullopt;
  const size_t classes = *boxes == 0 ? 0 : 1;
  return SsdOutputs{*boxes, rows[classes], rows[1 - classes], *count, false};
}

Result<int64_t> count_of(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t room) {
  const double value = real_value(tensor, bytes, 0);
  if (!(value >= 0 && value <= static_cast<double>(room)))
    return error(ErrorCode::malformed, "output '{}' counts {} boxes, but holds at most {}", tensor.name, value, room);
  return static_cast<int64_t>(value);
}

// Rounding may give slightly more than 1.
bool is_score(double score) { return score >= 0 && score <= 1.02; }

struct Numbers {
  const YoloOutput& yolo;
  const ir::Tensor& tensor;
  std::span<const uint8_t> bytes;
  int64_t count() const { return 4 + (yolo.has_objectness ? 1 : 0) + yolo.classes; }
  double at(int64_t candidate, int64_t number) const {
    return real_value(tensor, bytes,
                      yolo.candidates_last ? number * yolo.candidates + candidate : candidate * count() + number);
  }
};

// The best class of a candidate.
TopClass best_of(const Numbers& numbers, int64_t candidate) {
  const int64_t first = numbers.count() - numbers.yolo.classes;
  TopClass out{.index = 0, .score = numbers.at(candidate, first), .raw = {}, .label = {}};
  for (int64_t i = 1; i < numbers.yolo.classes; ++i) {
    const double score = numbers.at(candidate, first + i);
    if (score > out.score || std::isnan(score)) out.index = i, out.score = score;
    if (std::isnan(out.score)) break;
  }
  if (numbers.yolo.has_objectness) out.score *= numbers.at(candidate, 4);
  return out;
}

}  // namespace

std::optional<SsdOutputs> ssd_outputs(const ir::Graph& graph) {
  if (graph.outputs.size() != 4) return std::nullopt;
  std::optional<SsdOutputs> out = made_by_postprocess(graph);
  if (!out) out = of_ssd_shapes(graph);
  if (!out) return std::nullopt;
  const ir::Shape& boxes = output(graph, out->boxes).shape;
  const int64_t room = boxes.back(1);
  const auto is_row = [&](size_t i) {
    return output(graph, i).shape.elems() == room && output(graph, i).shape.back(0) == room;
  };
  const bool fits = boxes.back(0) == 4 && boxes.elems() == room * 4 && is_row(out->classes) && is_row(out->scores) &&
                    output(graph, out->count).shape.elems() == 1;
  const bool counts =
      std::ranges::all_of(graph.outputs, [&](ir::TensorId id) { return has_numbers(graph.tensor(id).dtype); });
  return fits && counts ? out : std::nullopt;
}

Result<std::vector<Detection>> find_ssd(SsdOutputs ssd, const ir::Graph& graph, std::span<const Bytes> outputs,
                                        const FindOptions& options) {
  const auto value = [&](size_t i, int64_t at) { return real_value(output(graph, i), outputs[i], at); };
  if (!ssd.is_told) {
    const auto all = [&](size_t i, auto is) {
      for (int64_t at = 0; at < output(graph, i).shape.elems(); ++at)
        if (!is(value(i, at))) return false;
      return true;
    };
    const auto is_class = [](double number) { return number >= 0 && number == std::floor(number); };
    const bool is_swapped = all(ssd.scores, is_class) && !all(ssd.classes, is_class) && all(ssd.classes, is_score);
    if (is_swapped) std::swap(ssd.scores, ssd.classes);
  }
  SK_TRY_ASSIGN(const int64_t count,
                count_of(output(graph, ssd.count), outputs[ssd.count], output(graph, ssd.scores).shape.elems()));
  const double threshold = options.threshold.value_or(default_threshold(Task::ssd));
  std::vector<Detection> out;
  for (int64_t i = 0; i < count; ++i) {
    const double score = value(ssd.scores, i), index = value(ssd.classes, i);
    const Box box{value(ssd.boxes, 4 * i + 1), value(ssd.boxes, 4 * i), value(ssd.boxes, 4 * i + 3),
                  value(ssd.boxes, 4 * i + 2)};
    if (!is_score(score) || !is_finite(box))
      return error(ErrorCode::malformed, "output '{}': box {} is invalid, or its score {} is not in 0 to 1",
                   output(graph, ssd.boxes).name, i, score);
    if (!(index >= 0 && index <= UINT16_MAX))
      return error(ErrorCode::malformed, "output '{}': box {} has class {}", output(graph, ssd.classes).name, i, index);
    const std::optional<Box> inside = clipped(box);
    if (score < threshold || !inside) continue;
    out.push_back(
        {*inside, {static_cast<int64_t>(index), score, {}, ssd_label(options.labels, static_cast<size_t>(index))}});
  }
  std::ranges::stable_sort(out, [](const Detection& a, const Detection& b) { return a.what.score > b.what.score; });
  return out;
}

bool is_nms(const ir::Graph& graph) {
  if (graph.outputs.size() != 1 || graph.inputs.size() != 1) return false;
  const ir::Tensor& tensor = output(graph, 0);
  if (ir::is_integer(tensor.dtype) && tensor.quant.empty()) return false;  // class numbers
  return tensor.shape.rank() == 3 && tensor.shape[0] == 1 && tensor.shape[1] > 0 && tensor.shape[2] == 6 &&
         has_numbers(tensor.dtype) && graph.tensor(graph.inputs[0]).shape.rank() == 4;
}

Result<std::vector<Detection>> find_nms(const ir::Graph& graph, std::span<const Bytes> outputs,
                                        const FindOptions& options) {
  const ir::Tensor& tensor = output(graph, 0);
  const ImageShape image = image_shape(graph.tensor(graph.inputs[0]).shape);
  const double threshold = options.threshold.value_or(default_threshold(Task::nms));
  std::vector<Detection> found;
  double largest = 0;
  for (int64_t i = 0; i < tensor.shape[1]; ++i) {
    const auto value = [&](int64_t k) { return real_value(tensor, outputs[0], 6 * i + k); };
    const Box box{value(0), value(1), value(2), value(3)};
    const double score = value(4), index = std::round(value(5));
    if (score < threshold) continue;  // keeps NaN, which is an error below
    if (!is_score(score) || !is_finite(box) || !(index >= 0 && index <= UINT16_MAX))
      return error(ErrorCode::malformed, "output '{}': box {} is invalid: score {} (0 to 1), class {}", tensor.name, i,
                   score, index);
    largest = std::max({largest, box.right, box.bottom});
    const auto at = static_cast<size_t>(index);
    found.push_back(
        {box, {static_cast<int64_t>(index), score, {}, at < options.labels.size() ? options.labels[at] : ""}});
  }
  const double width = largest > kLargestPart ? image.width : 1, height = largest > kLargestPart ? image.height : 1;
  std::vector<Detection> out;
  for (Detection& one : found) {
    const std::optional<Box> inside =
        clipped({one.box.left / width, one.box.top / height, one.box.right / width, one.box.bottom / height});
    if (inside) out.push_back({*inside, std::move(one.what)});
  }
  std::ranges::stable_sort(out, [](const Detection& a, const Detection& b) { return a.what.score > b.what.score; });
  return out;
}

int64_t yolo_cells(const ir::Graph& graph) {
  if (graph.inputs.size() != 1 || graph.tensor(graph.inputs[0]).shape.rank() != 4) return 0;
  const ImageShape image = image_shape(graph.tensor(graph.inputs[0]).shape);
  int64_t cells = 0;
  for (const int64_t stride : {8, 16, 32}) cells += (image.height / stride) * (image.width / stride);
  return cells;
}

std::optional<YoloOutput> yolo_output(const ir::Graph& graph, Task task, bool any_count) {
  if ((task != Task::yolov5 && task != Task::yolov8) || graph.outputs.size() != 1 || graph.inputs.size() != 1)
    return std::nullopt;
  const ir::Tensor& tensor = output(graph, 0);
  const ir::Shape& shape = tensor.shape;
  const ir::Shape& input = graph.tensor(graph.inputs[0]).shape;
  if (shape.rank() != 3 || shape[0] != 1 || input.rank() != 4 || !has_numbers(tensor.dtype)) return std::nullopt;
  YoloOutput out{.output = 0,
                 .candidates = shape[1],
                 .classes = shape[2],
                 .candidates_last = false,
                 .has_objectness = task == Task::yolov5};
  // The axis with the candidates: its size is the number of cells, or else the larger one.
  const int64_t cells = yolo_cells(graph);
  const bool is_told = (shape[1] == cells) != (shape[2] == cells);
  out.candidates_last = !out.has_objectness && (is_told ? shape[2] == cells : shape[2] > shape[1]);
  if (out.candidates_last) std::swap(out.candidates, out.classes);
  out.classes -= out.has_objectness ? 5 : 4;
  const bool fits = any_count || (cells > 0 && out.candidates == cells * (out.has_objectness ? 3 : 1));
  return out.classes > 0 && out.candidates > 0 && fits ? std::optional(out) : std::nullopt;
}

Result<std::vector<Detection>> find_yolo(const YoloOutput& yolo, const ir::Graph& graph, std::span<const Bytes> outputs,
                                         const FindOptions& options) {
  const ir::Tensor& tensor = output(graph, yolo.output);
  const ImageShape image = image_shape(graph.tensor(graph.inputs[0]).shape);
  const Numbers numbers{yolo, tensor, outputs[yolo.output]};
  struct Candidate {
    std::array<double, 4> centre_size;
    TopClass what;
  };
  std::vector<Candidate> candidates;
  const double threshold = options.threshold.value_or(default_threshold(Task::yolov8));
  double largest = 0;  // to detect coordinates in pixels
  for (int64_t i = 0; i < yolo.candidates; ++i) {
    TopClass what = best_of(numbers, i);
    if (what.score < threshold) continue;  // keeps NaN, which is an error below
    const Candidate one{{numbers.at(i, 0), numbers.at(i, 1), numbers.at(i, 2), numbers.at(i, 3)}, std::move(what)};
    const bool is_box = std::ranges::all_of(one.centre_size, [](double value) { return std::isfinite(value); });
    if (!is_score(one.what.score) || !is_box)
      return error(ErrorCode::malformed, "output '{}': candidate {} is invalid, or its score {} is not in 0 to 1",
                   tensor.name, i, one.what.score);
    largest = std::max(largest, std::ranges::max(one.centre_size));
    candidates.push_back(one);
  }
  const double width = largest > kLargestPart ? image.width : 1, height = largest > kLargestPart ? image.height : 1;
  std::vector<Detection> out;
  for (Candidate& one : candidates) {
    const auto [x, y, w, h] = one.centre_size;
    const std::optional<Box> box =
        clipped({(x - w / 2) / width, (y - h / 2) / height, (x + w / 2) / width, (y + h / 2) / height});
    const auto at = static_cast<size_t>(one.what.index);
    if (at < options.labels.size()) one.what.label = options.labels[at];
    if (box) out.push_back({*box, std::move(one.what)});
  }
  return suppressed(std::move(out));
}

}  // namespace skillet::tools
