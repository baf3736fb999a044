#include "frontend/onnxruntime/ort.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/text.h"

namespace skillet::onnxruntime {
namespace {

constexpr size_t kMostNodes = 1 << 20, kMostOperands = 1 << 16;
constexpr size_t kMostText = 1UL << 31;  // a compiled part is stored as text too

// Minor version: "1.24.4" is 24.
uint32_t minor_of(std::string_view version) {
  uint32_t minor = 0;
  if (!version.starts_with("1.")) return 0;
  std::from_chars(version.data() + 2, version.data() + version.size(), minor);
  return minor;
}

ir::DType dtype_of(int element) {
  switch (element) {
    case 1: return ir::DType::float32;
    case 2: return ir::DType::uint8;
    case 3: return ir::DType::int8;
    case 4: return ir::DType::uint16;
    case 5: return ir::DType::int16;
    case 6: return ir::DType::int32;
    case 7: return ir::DType::int64;
    case 9: return ir::DType::boolean;
    case 10: return ir::DType::float16;
    default: return ir::DType::variant;
  }
}

// Attributes that we read from a node: all that frontend/onnx uses (attributes_test.py). Others are ignored.
constexpr std::array kAttributes = {"alpha",
                                    "antialias",
                                    "approximate",
                                    "auto_pad",
                                    "axes",
                                    "axis",
                                    "beta",
                                    "bias",
                                    "block_size",
                                    "blocksize",
                                    "ceil_mode",
                                    "channels_last",
                                    "coordinate_transformation_mode",
                                    "count_include_pad",
                                    "dilations",
                                    "ends",
                                    "gamma",
                                    "group",
                                    "keep_aspect_ratio_policy",
                                    "kernel_shape",
                                    "lambd",
                                    "max",
                                    "min",
                                    "mode",
                                    "nearest_mode",
                                    "opset",
                                    "output_padding",
                                    "output_shape",
                                    "pads",
                                    "perm",
                                    "scales",
                                    "starts",
                                    "steps",
                                    "strides",
                                    "transA",
                                    "transB",
                                    "value"};
// Attributes of an EPContext node.
constexpr std::array kContextAttributes = {"embed_mode", "ep_cache_context", "notes", "partition_name", "source"};

class GraphReader {
 public:
  GraphReader(const Ort& ort, const OrtGraph* graph) : ort_(ort), graph_(graph) {}

  Result<HostGraph> run() {
    SK_TRY_ASSIGN(const auto inputs, list(kGraphNumInputs, kGraphInputs));
    for (const OrtValueInfo* info : inputs) SK_TRY(value(info));
    size_t count = 0;
    SK_TRY(ort_.attempt(kGraphNumNodes, graph_, &count));
    if (count > kMostNodes) return error(ErrorCode::unsupported, "the graph has {} nodes", count);
    out_.nodes.resize(count);
    if (count != 0) SK_TRY(ort_.attempt(kGraphNodes, graph_, out_.nodes.data(), count));
    for (const OrtNode* node : out_.nodes) SK_TRY(add_node(node));
    SK_TRY(mark_outputs());
    settle_batches(out_.model);
    forget_wrong_sizes(out_.model);
    return std::move(out_);
  }

 private:
  template <typename Host, typename Count, typename Get>
  Result<std::vector<const OrtValueInfo*>> list_of(const Host* host, Count count_slot, Get get_slot) {
    size_t count = 0;
    SK_TRY(ort_.attempt(count_slot, host, &count));
    if (count > kMostOperands) return error(ErrorCode::unsupported, "a node has {} operands", count);
    std::vector<const OrtValueInfo*> out(count, nullptr);
    if (count != 0) SK_TRY(ort_.attempt(get_slot, host, out.data(), count));
    return out;
  }
  template <typename Count, typename Get>
  Result<std::vector<const OrtValueInfo*>> list(Count count_slot, Get get_slot) {
    return list_of(graph_, count_slot, get_slot);
  }

  // Returns the value's number; kNone for an operand that is left out.
  Result<int> value(const OrtValueInfo* info) {
    if (info == nullptr) return kNone;
    const char* name = nullptr;
    SK_TRY(ort_.attempt(kValueName, info, &name));
    if (name == nullptr || *name == '\0') return kNone;
    const auto [found, is_new] = ids_.try_emplace(name, static_cast<int>(out_.model.values.size()));
    if (!is_new) return found->second;
    out_.model.values.push_back({.name = name, .dims = std::nullopt, .data = {}});
    infos_.push_back(info);
    Value& one = out_.model.values.back();
    SK_TRY(read_type(info, one));
    bool is_outside = false;
    SK_TRY(ort_.attempt(kIsFromOutside, info, &is_outside));
    out_.reads_outside |= is_outside;
    SK_TRY(ort_.attempt(kIsConstantInitializer, info, &one.is_constant));
    if (one.is_constant) SK_TRY(read_contents(info, one));
    // The host reports a scalar and an unknown shape alike. NPUs compute no scalars, so treat both as unknown.
    if (!one.is_constant && one.dims && one.dims->empty()) one.dims.reset();
    return found->second;
  }

  Result<void> read_type(const OrtValueInfo* info, Value& to) {
    const OrtTypeInfo* type = nullptr;
    const OrtTensorInfo* tensor = nullptr;
    SK_TRY(ort_.attempt(kValueType, info, &type));
    if (type != nullptr) SK_TRY(ort_.attempt(kCastToTensorInfo, type, &tensor));
    if (tensor == nullptr) return {};  // a sequence, a map, or unknown
    int element = 0;
    SK_TRY(ort_.attempt(kGetElementType, tensor, &element));
    to.dtype = dtype_of(element);
    size_t rank = 0;
    SK_TRY(ort_.attempt(kGetDimensionsCount, tensor, &rank));
    if (rank > 64) return {};
    std::vector<int64_t> dims(rank);
    if (rank != 0) SK_TRY(ort_.attempt(kGetDimensions, tensor, dims.data(), rank));
    to.dims = std::move(dims);
    return {};
  }

  Result<void> read_contents(const OrtValueInfo* info, Value& to) {
    const OrtValue* held = nullptr;
    const void* data = nullptr;
    size_t bytes = 0;
    // An initializer in a file beside the model may not be readable here: then it does not count as a constant.
    if (!ort_.attempt(kInitializerValue, info, &held).ok() || held == nullptr ||
        !ort_.attempt(kGetSizeInBytes, held, &bytes).ok() || !ort_.attempt(kGetData, held, &data).ok() ||
        (data == nullptr && bytes != 0)) {
      to.is_constant = false;
      return {};
    }
    to.data = {static_cast<const uint8_t*>(data), bytes};
    const auto size = static_cast<size_t>(std::max(ir::dtype_bytes(to.dtype), 1));
    size_t elems = 1;
    for (const int64_t dim : to.dims.value_or(std::vector<int64_t>{}))
      elems *= static_cast<size_t>(std::max<int64_t>(dim, 0));
    if (to.dims && elems * size != bytes) to.is_constant = false;  // packed in an unknown way
    return {};
  }

  Result<void> add_node(const OrtNode* host) {
    Node node;
    for (const auto& [slot, text] :
         {std::pair(kNodeName, &node.name), std::pair(kNodeOp, &node.op), std::pair(kNodeDomain, &node.domain)}) {
      const char* read = nullptr;
      SK_TRY(ort_.attempt(slot, host, &read));
      if (read != nullptr) *text = read;
    }
    SK_TRY(ort_.attempt(kNodeSince, host, &node.since));
    const char* provider = nullptr;
    SK_TRY(ort_.attempt(kNodeProvider, host, &provider));
    node.is_taken = provider != nullptr && *provider != '\0';
    SK_TRY_ASSIGN(const auto inputs, list_of(host, kNodeNumInputs, kNodeInputs));
    for (const OrtValueInfo* info : inputs) {
      SK_TRY_ASSIGN(const int id, value(info));
      node.inputs.push_back(id);
      uses_.resize(out_.model.values.size());
      if (id != kNone) ++uses_[static_cast<size_t>(id)];
    }
    SK_TRY_ASSIGN(const auto inner, list_of(host, kNodeNumInner, kNodeInner));
    for (const OrtValueInfo* info : inner) {
      SK_TRY_ASSIGN(const int id, value(info));
      if (id != kNone) node.inner_inputs.push_back(id);
    }
    SK_TRY_ASSIGN(const auto outputs, list_of(host, kNodeNumOutputs, kNodeOutputs));
    for (const OrtValueInfo* info : outputs) SK_TRY_INTO(node.outputs.emplace_back(), value(info));
    if (node.op == "EPContext")
      for (const char* name : kContextAttributes) read_attribute(host, name, node);
    else
      for (const char* name : kAttributes) read_attribute(host, name, node);
    out_.model.nodes.push_back(std::move(node));
    return {};
  }

  // A missing attribute is an error in some versions and null in others.
  void read_attribute(const OrtNode* host, const char* name, Node& node) {
    const OrtOpAttr* attribute = nullptr;
    int type = 0;
    if (!ort_.attempt(kNodeAttribute, host, name, &attribute).ok() || attribute == nullptr ||
        !ort_.attempt(kAttributeType, attribute, &type).ok())
      return;
    Attribute to;
    size_t bytes = 0;
    const auto read = [&](auto& list, size_t element, size_t first) {
      list.resize(first);
      auto done =
          ort_.attempt(kReadAttribute, attribute, type, static_cast<void*>(list.data()), first * element, &bytes);
      if (done.ok() || bytes == 0 || bytes > (element == 1 ? kMostText : kMostOperands * element)) return done.ok();
      list.resize((bytes + element - 1) / element);
      return ort_.attempt(kReadAttribute, attribute, type, static_cast<void*>(list.data()), bytes, &bytes).ok();
    };
    bool ok = false;
    if (type == kAttributeInt || type == kAttributeInts) {
      ok = read(to.ints, 8, type == kAttributeInt ? 1 : 0);
      if (type == kAttributeInts) to.ints.resize(std::min(to.ints.size(), bytes / 8));
    } else if (type == kAttributeFloat || type == kAttributeFloats) {
      ok = read(to.floats, 4, type == kAttributeFloat ? 1 : 0);
    } else if (type == kAttributeString) {
      ok = read(to.text, 1, 0);
      to.text = to.text.substr(0, std::min(to.text.size(), bytes));
    }
    if (ok) node.attributes[name] = std::move(to);
  }

  // Marks outputs of the graph, and values that only graphs inside nodes read: consumers that no node of this graph
  // lists.
  Result<void> mark_outputs() {
    uses_.resize(out_.model.values.size());
    for (size_t i = 0; i < infos_.size(); ++i) {
      Value& one = out_.model.values[i];
      SK_TRY(ort_.attempt(kIsGraphOutput, infos_[i], &one.is_output));
      size_t all = 0;
      if (!one.is_constant && ort_.attempt(kValueNumConsumers, infos_[i], &all).ok() && all > uses_[i])
        one.is_output = true;
    }
    return {};
  }

  const Ort& ort_;
  const OrtGraph* graph_;
  HostGraph out_;
  std::map<std::string, int> ids_;
  std::vector<const OrtValueInfo*> infos_;  // by value
  std::vector<size_t> uses_;                // by value
};

}  // namespace

Result<Ort> Ort::of(const OrtApiBase& base) {
  Ort ort;
  const std::string version = base.get_version == nullptr ? "" : base.get_version();
  ort.version_ = std::min(minor_of(version), kNewestVersion);
  // The oldest table already has the function that makes a status.
  if (ort.version_ < kOldestVersion) {
    if (ort.version_ != 0) ort.api_ = base.get_api(ort.version_);
    return error(ErrorCode::unsupported,
                 "ONNX Runtime {} cannot compile for plug-in providers; 1.23 or newer can: pip install -U onnxruntime",
                 printable(version));
  }
  ort.api_ = base.get_api(ort.version_);
  if (ort.api_ == nullptr)
    return error(ErrorCode::unsupported, "ONNX Runtime {} has no API table of version {}", printable(version),
                 ort.version_);
  ort.ep_api_ = ort.call(kGetEpApi);
  if (ort.ep_api_ == nullptr) return error(ErrorCode::unsupported, "this ONNX Runtime accepts no plug-in providers");
  return ort;
}

Result<void> Ort::checked(OrtStatus* status) const {
  if (status == nullptr) return {};
  const char* text = call(kGetErrorMessage, static_cast<const OrtStatus*>(status));
  Error failed = error(ErrorCode::internal, "ONNX Runtime: {}", printable(text == nullptr ? "?" : text));
  call(kReleaseStatus, status);
  return failed;
}

OrtStatus* Ort::status(const Result<void>& done, int code) const {
  if (done.ok()) return nullptr;
  return call(kCreateStatus, code, ("skillet: " + printable(done.error().message)).c_str());
}

void Ort::log(const OrtLogger* logger, int level, const std::string& text) const {
  if (logger == nullptr) return;
  const std::string line = "skillet: " + printable(text);
  (void)attempt(kLogMessage, logger, level, line.c_str(), "skillet", 0, "skillet");
}

Result<HostGraph> read_graph(const Ort& ort, const OrtGraph* graph) { return GraphReader(ort, graph).run(); }

Result<std::vector<std::string>> names_of(const Ort& ort, const OrtNode* node, bool outputs) {
  size_t count = 0;
  SK_TRY(ort.attempt(outputs ? kNodeNumOutputs : kNodeNumInputs, node, &count));
  std::vector<const OrtValueInfo*> infos(std::min(count, kMostOperands), nullptr);
  if (!infos.empty()) SK_TRY(ort.attempt(outputs ? kNodeOutputs : kNodeInputs, node, infos.data(), infos.size()));
  std::vector<std::string> names;
  for (const OrtValueInfo* info : infos) {
    const char* name = nullptr;
    if (info != nullptr) SK_TRY(ort.attempt(kValueName, info, &name));
    names.emplace_back(name == nullptr ? "" : name);
  }
  return names;
}

}  // namespace skillet::onnxruntime
