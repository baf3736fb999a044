#include "frontend/onnxruntime/testing/fake_host.h"

#include <array>
#include <cstring>

namespace skillet::onnxruntime {
namespace {

class FakeTable {
 public:
  template <typename R, typename... Args, typename F>
  void set(Slot<R(Args...)> slot, F function) {
    R (*const plain)(Args...) = function;
    functions_[slot.place] = reinterpret_cast<const void*>(plain);
  }
  // Sets two functions: the length of a list, and all its elements.
  template <typename From, typename One, typename F>
  void set_list(StatusSlot<const From*, size_t*> count, StatusSlot<const From*, One*, size_t> each, F) {
    set(count, [](const From* from, size_t* out) -> OrtStatus* {
      *out = F{}(*from).size();
      return nullptr;
    });
    set(each, [](const From* from, One* out, size_t size) -> OrtStatus* {
      const auto& all = F{}(*from);
      for (size_t i = 0; i < size && i < all.size(); ++i) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(all[i])>, One>)
          out[i] = all[i];
        else
          out[i] = &all[i];
      }
      return nullptr;
    });
  }
  // Sets a function that returns F of its first argument.
  template <typename From, typename Out, typename F>
  void set_fact(StatusSlot<const From*, Out*> slot, F) {
    set(slot, [](const From* from, Out* out) -> OrtStatus* {
      *out = F{}(*from);
      return nullptr;
    });
  }
  Table table() const { return functions_.data(); }

 private:
  std::array<const void*, 400> functions_{};
};

// A value serves as its own type and its own contents.
template <typename To>
const To* as(const OrtValueInfo& info) {
  return reinterpret_cast<const To*>(&info);
}
template <typename From>
const onnx::Value& of(const From* one) {
  return *reinterpret_cast<const OrtValueInfo*>(one)->value;
}

int element_of(ir::DType dtype) {
  return dtype == ir::DType::float32 ? kElementFloat : dtype == ir::DType::uint8 ? kElementUint8 : kElementInt8;
}

void set_values(FakeTable& table) {
  table.set_fact(kValueName, [](const OrtValueInfo& one) { return one.value->name.c_str(); });
  table.set_fact(kValueType, [](const OrtValueInfo& one) { return as<OrtTypeInfo>(one); });
  table.set_fact(kValueNumConsumers, [](const OrtValueInfo& one) { return one.consumers; });
  table.set_fact(kIsGraphOutput, [](const OrtValueInfo& one) { return one.value->is_output; });
  table.set_fact(kIsConstantInitializer, [](const OrtValueInfo& one) { return one.value->is_constant; });
  table.set_fact(kIsFromOutside, [](const OrtValueInfo& one) { return one.is_outside; });
  table.set_fact(kInitializerValue, [](const OrtValueInfo& one) { return as<OrtValue>(one); });
  table.set(kCastToTensorInfo, [](const OrtTypeInfo* type, const OrtTensorInfo** out) -> OrtStatus* {
    *out = reinterpret_cast<const OrtTensorInfo*>(type);
    return nullptr;
  });
  table.set(kGetElementType, [](const OrtTensorInfo* type, int* out) -> OrtStatus* {
    *out = element_of(of(type).dtype);
    return nullptr;
  });
  table.set(kGetDimensionsCount, [](const OrtTensorInfo* type, size_t* out) -> OrtStatus* {
    *out = of(type).dims->size();
    return nullptr;
  });
  table.set(kGetDimensions, [](const OrtTensorInfo* type, int64_t* out, size_t count) -> OrtStatus* {
    std::memcpy(out, of(type).dims->data(), count * sizeof(int64_t));
    return nullptr;
  });
  table.set(kGetSizeInBytes, [](const OrtValue* value, size_t* out) -> OrtStatus* {
    *out = of(value).data.size();
    return nullptr;
  });
  table.set(kGetData, [](const OrtValue* value, const void** out) -> OrtStatus* {
    *out = of(value).data.data();
    return nullptr;
  });
}

OrtStatus* read_attribute(const OrtOpAttr* from, int type, void* out, size_t bytes, size_t* needed) {
  const onnx::Attribute& one = *from->attribute;
  const void* data = type == kAttributeInt ? static_cast<const void*>(one.ints.data()) : one.text.data();
  *needed = type == kAttributeInt ? sizeof(int64_t) : one.text.size();
  if (bytes < *needed) return new OrtStatus{"there is more"};
  std::memcpy(out, data, *needed);
  return nullptr;
}

void set_nodes(FakeTable& table) {
  table.set_fact(kNodeName, [](const OrtNode& one) { return one.node->name.c_str(); });
  table.set_fact(kNodeOp, [](const OrtNode& one) { return one.node->op.c_str(); });
  table.set_fact(kNodeDomain, [](const OrtNode& one) { return one.node->domain.c_str(); });
  table.set_fact(kNodeSince, [](const OrtNode& one) { return one.node->since; });
  table.set_fact(kNodeProvider, [](const OrtNode& one) { return one.node->is_taken ? "Another" : ""; });
  table.set_fact(kNodeNumGraphs, [](const OrtNode&) { return size_t{0}; });
  table.set_list(
      kNodeNumInputs, kNodeInputs, [](const OrtNode& one) -> auto& { return one.inputs; });
  table.set_list(
      kNodeNumOutputs, kNodeOutputs, [](const OrtNode& one) -> auto& { return one.outputs; });
  table.set_list(kNodeNumInner, kNodeInner, [](const OrtNode&) { return std::vector<const OrtValueInfo*>(); });
  table.set(kNodeAttribute, [](const OrtNode* one, const char* name, const OrtOpAttr** out) -> OrtStatus* {
    const auto found = one->attributes.find(name);
    *out = found == one->attributes.end() ? nullptr : &found->second;
    return nullptr;
  });
  table.set_fact(kAttributeType, [](const OrtOpAttr& one) {
    return one.attribute->ints.size() == 1 ? kAttributeInt : kAttributeString;
  });
  table.set(kReadAttribute, read_attribute);
}

const FakeTable& provider_table() {
  static const FakeTable made = [] {
    FakeTable table;
    table.set(
        kAddNodesToFuse,
        [](OrtSupportInfo* info, const OrtNode* const* nodes, size_t count, const OrtFusionOptions*) -> OrtStatus* {
          info->parts.emplace_back(nodes, nodes + count);
          return nullptr;
        });
    return table;
  }();
  return made;
}

// Created nodes hold nothing: tests read the files that are written with them.
const FakeTable& editor_table() {
  static const FakeTable made = [] {
    FakeTable table;
    table.set(kCreateNode,
              [](const char*, const char*, const char*, const char* const*, size_t, const char* const*, size_t,
                 OrtOpAttr**, size_t, OrtNode** out) -> OrtStatus* {
                *out = nullptr;
                return nullptr;
              });
    return table;
  }();
  return made;
}

const FakeTable& whole_table() {
  static const FakeTable made = [] {
    FakeTable table;
    set_values(table);
    set_nodes(table);
    table.set_list(kGraphNumInputs, kGraphInputs, [](const OrtGraph&) { return std::vector<const OrtValueInfo*>(); });
    table.set_list(
        kGraphNumNodes, kGraphNodes, [](const OrtGraph& graph) -> auto& { return graph.nodes; });
    table.set_fact(kGraphModelPath, [](const OrtGraph& graph) { return graph.path.c_str(); });
    table.set_fact(kGraphParent, [](const OrtGraph&) -> const OrtNode* { return nullptr; });
    table.set(kCreateStatus, [](int, const char* text) { return new OrtStatus{text}; });
    table.set(kGetErrorMessage, [](const OrtStatus* status) { return status->text.c_str(); });
    table.set(kReleaseStatus, [](OrtStatus* status) { delete status; });
    table.set(kLogMessage,
              [](const OrtLogger* logger, int, const char* text, const char*, int, const char*) -> OrtStatus* {
                logger->lines.emplace_back(text);
                return nullptr;
              });
    table.set(kCreateAttribute, [](const char*, const void*, int, int, OrtOpAttr** out) -> OrtStatus* {
      *out = nullptr;
      return nullptr;
    });
    table.set(kReleaseAttribute, [](OrtOpAttr*) {});
    table.set(kConfigEntries, [](const OrtSessionOptions* options, OrtKeyValues** out) -> OrtStatus* {
      *out = new OrtKeyValues(options->entries);
      return nullptr;
    });
    table.set(kReleaseKeyValues, [](OrtKeyValues* held) { delete held; });
    table.set(kGetKeyValues,
              [](const OrtKeyValues* held, const char* const** keys, const char* const** values, size_t* count) {
                *keys = held->keys.data();
                *values = held->values.data();
                *count = held->keys.size();
              });
    table.set(kGetEpApi, [] { return provider_table().table(); });
    table.set(kGetModelEditorApi, [] { return editor_table().table(); });
    return table;
  }();
  return made;
}

}  // namespace

OrtGraph::OrtGraph(const onnx::Model& model, std::string model_path) : path(std::move(model_path)) {
  for (const onnx::Value& one : model.values) values.push_back({&one});
  const auto all = [&](const std::vector<int>& ids) {
    std::vector<const OrtValueInfo*> out;
    for (const int id : ids) out.push_back(id == onnx::kNone ? nullptr : &values[static_cast<size_t>(id)]);
    return out;
  };
  for (const onnx::Node& node : model.nodes) {
    for (const int id : node.inputs) values[static_cast<size_t>(id)].consumers += 1;
    nodes.push_back({&node, all(node.inputs), all(node.outputs), {}});
    for (const auto& [name, attribute] : node.attributes) nodes.back().attributes[name] = {&attribute};
  }
}

const OrtApiBase& fake_host() {
  static const OrtApiBase base{.get_api = [](uint32_t) { return whole_table().table(); },
                               .get_version = [] { return "1.24.0"; }};
  return base;
}

}  // namespace skillet::onnxruntime
