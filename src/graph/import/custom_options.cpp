#include "graph/import/custom_options.h"

#include <flatbuffers/flexbuffers.h>

#include <algorithm>
#include <limits>

#include "graph/ir/attrs_fields.h"

namespace skillet::tflite {
namespace {

// Missing fields count as 0, as in TFLite.
class Fields {
 public:
  explicit Fields(flexbuffers::Map map) : map_(map) {}

  void read(const char* name, int32_t& to) const {
    to = static_cast<int32_t>(std::clamp<int64_t>(map_[name].AsInt64(), INT32_MIN, INT32_MAX));
  }
  void read(const char* name, float& to) const {
    const double value = map_[name].AsDouble();
    constexpr double kMax = std::numeric_limits<float>::max();
    to = value >= -kMax && value <= kMax ? static_cast<float>(value) : std::numeric_limits<float>::infinity();
  }
  void read(const char* name, bool& to) const { to = map_[name].AsBool(); }
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
  if (!root.IsMap()) return error(ErrorCode::malformed, "its options are not a map");
  const Fields fields(root.AsMap());
  ir::DetectionAttrs attrs;
  ir::for_each_field(attrs, [&](std::string_view, auto& field, const char* name) { fields.read(name, field); });
  constexpr int32_t kDefaultPerClass = 100;
  if (!fields.has("detections_per_class")) attrs.detections_per_class = kDefaultPerClass;
  return ir::Attrs{attrs};
}

}  // namespace skillet::tflite
