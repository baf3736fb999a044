#include "graph/import/custom_options.h"

#include <flatbuffers/flexbuffers.h>

#include <algorithm>
#include <limits>

#include "base/bytes.h"
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

void take_transpose_conv_bias(const flatbuffers::Vector<uint8_t>* options, ir::Graph& graph, ir::Op& op) {
  enum Padding { kSame = 1, kValid = 2 };  // of the C struct {padding, stride_w, stride_h}
  if (options == nullptr || options->size() < 12 || op.inputs.size() != 3 || op.outputs.size() != 1) return;
  const auto is_there = [&](ir::TensorId id) { return id >= 0 && static_cast<size_t>(id) < graph.tensors.size(); };
  const int32_t padding = load_le<int32_t>(options->data());
  if (!is_there(op.outputs[0]) || (padding != kSame && padding != kValid)) return;
  const std::vector<int32_t> shape = graph.tensor(op.outputs[0]).shape.dims;
  Bytes bytes(shape.size() * 4);
  for (size_t i = 0; i < shape.size(); ++i) store_le(&bytes[4 * i], shape[i]);
  ir::Tensor operand{.name = graph.tensor(op.outputs[0]).name + " shape", .dtype = ir::DType::int32, .owner = {}};
  operand.shape.dims = {static_cast<int32_t>(shape.size())};
  ir::set_constant(operand, std::move(bytes));
  op.kind = ir::OpKind::transpose_conv;
  op.opaque_name.clear();
  op.attrs = ir::ConvAttrs{.padding = padding == kSame ? ir::Padding::same : ir::Padding::valid,
                           .stride_h = load_le<int32_t>(options->data() + 8),
                           .stride_w = load_le<int32_t>(options->data() + 4)};
  op.inputs = {graph.add_tensor(std::move(operand)), op.inputs[1], op.inputs[0], op.inputs[2]};
}

}  // namespace skillet::tflite
