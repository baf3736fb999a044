// TFLite_Detection_PostProcess: decodes boxes from their offsets to anchors, then non-maximum suppression, over the
// best classes of each box (fast) or for each class (regular).
#include <algorithm>
#include <numeric>

#include "graph/ref/kernel.h"

namespace skillet::ref {
namespace {

struct Box {
  float y_min, x_min, y_max, x_max;
};

struct DetectionPlan {
  ir::DetectionAttrs attrs;
  size_t boxes = 0, encoding = 4,
         columns = 0;  // values of an encoding; scores of a box, including the background (first) if present
  std::vector<float> anchors;

  size_t classes() const { return static_cast<size_t>(attrs.num_classes); }
  size_t background() const { return columns - classes(); }
};

struct Detection {
  size_t box = 0, label = 0;
  float score = 0;
  size_t slot = 0;  // index in the output
};

struct Detections {
  std::vector<Detection> list;
  size_t count = 0;  // reported count: boxes, whatever their number of classes
};

std::vector<float> real_values(const ir::Tensor& tensor, std::span<const uint8_t> bytes) {
  std::vector<float> out(elem_count(tensor));
  const ir::Quant& quant = tensor.quant;
  for (size_t i = 0; i < out.size(); ++i) {
    if (tensor.dtype == ir::DType::float32) {
      out[i] = load_element<float>(bytes, i);
    } else {
      const int32_t value = tensor.dtype == ir::DType::int8 ? static_cast<int8_t>(bytes[i]) : bytes[i];
      out[i] = quant.scale() * static_cast<float>(value - quant.zero_point());
    }
  }
  return out;
}

std::vector<Box> decode_boxes(const DetectionPlan& plan, const std::vector<float>& encodings) {
  std::vector<Box> boxes;
  const auto& attrs = plan.attrs;
  // TFLite computes in double and rounds each result.
  const auto center = [](double code, double scale, double size, double middle) {
    return static_cast<float>(code / scale * size + middle);
  };
  const auto half = [](double code, double scale, double size) {
    return static_cast<float>(0.5 * std::exp(code / scale) * size);
  };
  for (size_t i = 0; i < plan.boxes; ++i) {
    const float *code = encodings.data() + i * plan.encoding, *anchor = plan.anchors.data() + i * 4;
    const float y = center(code[0], attrs.y_scale, anchor[2], anchor[0]);
    const float x = center(code[1], attrs.x_scale, anchor[3], anchor[1]);
    const float half_h = half(code[2], attrs.h_scale, anchor[2]), half_w = half(code[3], attrs.w_scale, anchor[3]);
    boxes.push_back({y - half_h, x - half_w, y + half_h, x + half_w});
  }
  return boxes;
}

float overlap(const Box& a, const Box& b) {
  const float area_a = (a.y_max - a.y_min) * (a.x_max - a.x_min), area_b = (b.y_max - b.y_min) * (b.x_max - b.x_min);
  if (area_a <= 0 || area_b <= 0) return 0;
  const float h = std::max(std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min), 0.0F);
  const float w = std::max(std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min), 0.0F);
  return h * w / (area_a + area_b - h * w);
}

// Indices of `scores`, the largest first, equal scores in order; only the first `count` are sorted.
std::vector<size_t> best_first(const std::vector<float>& scores, size_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto key = [&](size_t i) { return std::isnan(scores[i]) ? -INFINITY : scores[i]; };
  const auto middle = order.begin() + static_cast<ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), middle, order.end(),
                    [&](size_t a, size_t b) { return key(a) > key(b) || (key(a) == key(b) && a < b); });
  return order;
}

// Indices of the boxes that stay, the best first: those above the threshold without too much overlap with a better one.
std::vector<size_t> suppress(const DetectionPlan& plan, const std::vector<Box>& boxes, const std::vector<float>& scores,
                             size_t count_max) {
  std::vector<size_t> kept;
  for (const size_t i : best_first(scores, scores.size())) {
    if (kept.size() == count_max) break;
    if (!(scores[i] >= plan.attrs.score_threshold)) continue;
    const bool hidden = std::any_of(kept.begin(), kept.end(),
                                    [&](size_t k) { return overlap(boxes[k], boxes[i]) > plan.attrs.iou_threshold; });
    if (!hidden) kept.push_back(i);
  }
  return kept;
}

// Compares the best score of each box; each box that stays is reported with its best classes.
Detections fast(const DetectionPlan& plan, const std::vector<Box>& boxes, const float* scores) {
  const auto slots = static_cast<size_t>(plan.attrs.max_classes_per_detection);
  const size_t classes = std::min(slots, plan.classes());
  std::vector<float> best;
  for (size_t i = 0; i < plan.boxes; ++i) {
    const float* row = scores + i * plan.columns + plan.background();
    best.push_back(*std::max_element(row, row + plan.classes()));
  }
  Detections found;
  for (const size_t i : suppress(plan, boxes, best, static_cast<size_t>(plan.attrs.max_detections))) {
    const float* row = scores + i * plan.columns + plan.background();
    const std::vector<float> row_scores(row, row + plan.classes());
    const auto order = best_first(row_scores, classes);
    for (size_t k = 0; k < classes; ++k) {
      found.list.push_back({i, order[k], row[order[k]], found.count * slots + k});
    }
    ++found.count;
  }
  return found;
}

// Suppresses within each class, then keeps the best of all.
Detections regular(const DetectionPlan& plan, const std::vector<Box>& boxes, const float* scores) {
  std::vector<Detection> found;
  for (size_t label = 0; label < plan.classes(); ++label) {
    std::vector<float> column;
    for (size_t i = 0; i < plan.boxes; ++i) column.push_back(scores[i * plan.columns + plan.background() + label]);
    const auto per_class = static_cast<size_t>(plan.attrs.detections_per_class);
    for (const size_t i : suppress(plan, boxes, column, per_class)) found.push_back({i, label, column[i]});
    const auto better = [](const Detection& a, const Detection& b) { return a.score > b.score; };
    std::stable_sort(found.begin(), found.end(), better);
    found.resize(std::min(found.size(), static_cast<size_t>(plan.attrs.max_detections)));
  }
  for (size_t i = 0; i < found.size(); ++i) found[i].slot = i;
  return {found, found.size()};
}

// Unused entries are 0.
void write(const std::vector<Box>& boxes, const Detections& found, std::array<std::span<float>, 4> out) {
  for (const std::span<float> values : out) std::fill(values.begin(), values.end(), 0.0F);
  for (const Detection& detection : found.list) {
    const Box& box = boxes[detection.box];
    const float corners[] = {box.y_min, box.x_min, box.y_max, box.x_max};
    std::copy_n(corners, 4, &out[0][4 * detection.slot]);
    out[1][detection.slot] = static_cast<float>(detection.label);
    out[2][detection.slot] = detection.score;
  }
  out[3][0] = static_cast<float>(found.count);
}

Result<void> check_types(const Context& c) {
  for (size_t i : {0, 1, 2}) {
    if (c.input(i).dtype != ir::DType::float32) SK_TRY(c.need_quantized(c.input(i)));
  }
  if (c.input(0).dtype != c.input(2).dtype) return c.unsupported("encodings and anchors of different types");
  if (!c.input(2).is_constant()) return c.unsupported("the anchors are not constant");
  return {};
}

}  // namespace

Result<KernelPtr> prepare_detection_post_process(const Context& c) {
  SK_TRY(check_types(c));
  DetectionPlan plan{.attrs = c.attrs<ir::DetectionAttrs>(),
                     .boxes = dim(c.input(0), 1),
                     .encoding = dim(c.input(0), 2),
                     .columns = dim(c.input(1), 2),
                     .anchors = real_values(c.input(2), c.input(2).data)};
  return make_kernel([plan = std::move(plan), encodings = c.input(0), scores = c.input(1), in = c.input_index(0),
                      score_index = c.input_index(1), out = c.op().outputs](Tensors t) {
    const std::vector<Box> boxes = decode_boxes(plan, real_values(encodings, t[in]));
    const std::vector<float> values = real_values(scores, t[score_index]);
    std::array<std::span<float>, 4> to{};
    for (size_t i = 0; i < to.size(); ++i) {
      const auto bytes = t[static_cast<size_t>(out[i])];
      to[i] = {elements<float>(bytes), bytes.size() / sizeof(float)};
    }
    write(boxes, plan.attrs.regular_nms ? regular(plan, boxes, values.data()) : fast(plan, boxes, values.data()), to);
  });
}

}  // namespace skillet::ref
