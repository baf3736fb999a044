#include "graph/import/custom_options.h"

#include <flatbuffers/flexbuffers.h>

#include <algorithm>
#include <limits>

namespace skillet::tflite {
namespace {

// Missing fields count as 0, as TFLite has them.
class Fields {
 public:
  explicit Fields(flexbuffers::Map map) : map_(map) {}

  int32_t integer(const char* name) const {
    const int64_t value = map_[name].AsInt64();
    return static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
  }
  float real(const char* name) const {
    const double value = map_[name].AsDouble();
    constexpr double kMax = std::numeric_limits<float>::max();
    return value >= -kMax && value <= kMax ? static_cast<float>(value) : std::numeric_limits<float>::infinity();
  }
  bool flag(const char* name) const { return map_[name].AsBool(); }
  bool has(const char* name) const { return !map_[name].IsNull(); }

 private:
  flexbuffers::Map map_;
};

}  // namespace

Result<ir::Attrs> read_detection_options(const flatbuffers::Vector<uint8_t>* options) {
  if (options == nullptr || options->size() == 0) return ir::Attrs{ir::DetectionAttrs{}};
  const std::vector<uint8_t> bytes(options->begin(), options->end());  // aligned for wide values
  std::vector<uint8_t> visited;
  if (!flexbuffers::VerifyBuffer(bytes.data(), bytes.size(), &visited)) {
    return error(ErrorCode::malformed, "its options are damaged");
  }
  const auto root = flexbuffers::GetRoot(bytes.data(), bytes.size());
  if (!root.IsMap()) return error(ErrorCode::malformed, "its options are no map");
  const Fields fields(root.AsMap());
  constexpr int32_t kDefaultPerClass = 100;
  return ir::Attrs{ir::DetectionAttrs{.max_detections = fields.integer("max_detections"),
                                      .max_classes_per_detection = fields.integer("max_classes_per_detection"),
                                      .detections_per_class = fields.has("detections_per_class")
                                                                  ? fields.integer("detections_per_class")
                                                                  : kDefaultPerClass,
                                      .num_classes = fields.integer("num_classes"),
                                      .regular_nms = fields.flag("use_regular_nms"),
                                      .score_threshold = fields.real("nms_score_threshold"),
                                      .iou_threshold = fields.real("nms_iou_threshold"),
                                      .y_scale = fields.real("y_scale"),
                                      .x_scale = fields.real("x_scale"),
                                      .h_scale = fields.real("h_scale"),
                                      .w_scale = fields.real("w_scale")}};
}

}  // namespace skillet::tflite
