// Fake host with ONNX Runtime's interface: models as graphs behind the table that plug-ins receive.
// Called by provider_test.cpp. Must not know: the plug-in.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "frontend/onnx/model.h"
#include "frontend/onnxruntime/ort_abi.h"

namespace skillet::onnxruntime {

struct OrtStatus {
  std::string text;
};
struct OrtLogger {
  mutable std::vector<std::string> lines;
};
struct OrtKeyValues {
  std::vector<const char*> keys, values;
};
struct OrtSessionOptions {
  OrtKeyValues entries;
};
struct OrtValueInfo {
  const onnx::Value* value;
  size_t consumers = 0;
  bool is_outside = false;  // from an enclosing graph
};
struct OrtOpAttr {
  const onnx::Attribute* attribute;
};
struct OrtNode {
  const onnx::Node* node;
  std::vector<const OrtValueInfo*> inputs, outputs;
  std::map<std::string, OrtOpAttr> attributes;
};
struct OrtGraph {
  explicit OrtGraph(const onnx::Model& model, std::string model_path = "");
  std::string path;
  std::deque<OrtValueInfo> values;
  std::deque<OrtNode> nodes;
};
struct OrtSupportInfo {
  std::vector<std::vector<const OrtNode*>> parts;
};

// Borrowed by the plug-in; of version 1.24.
const OrtApiBase& fake_host();

}  // namespace skillet::onnxruntime
