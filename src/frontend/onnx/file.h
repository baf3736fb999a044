// ModelFile: an ONNX file as a Model. Parses protobuf, numbers values by name, sets sizes from the file or the caller.
// Called by import.cpp. Must not know: the meaning of operations.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "frontend/onnx/model.h"

namespace skillet::onnx {

struct NamedValue {
  std::string name;
  int value = kNone;
};

// Memory that values point into: the file, files beside it, and converted numbers.
struct Contents {
  Bytes file;
  std::map<std::string, Bytes> beside;
  std::deque<Bytes> made;
};

struct ModelFile {
  Model model;
  std::vector<int> inputs;  // without constants
  std::vector<NamedValue> outputs;
  std::shared_ptr<Contents> contents;

  std::span<const uint8_t> keep(Bytes bytes);
};

// `folder`: folder of files beside the model; empty: none. Error: the file is damaged or has an unsupported form; the
// message names the node, the tensor or the field.
Result<ModelFile> read_model(Bytes file, const std::string& folder);

// Sets sizes that are not in the file: "NAME=1x3x224x224", or without a name for the only input. An unset batch becomes
// 1. Error: sizes are dynamic and not given, or do not fit.
Result<void> set_input_shapes(ModelFile& file, const std::vector<std::string>& shapes);

// The type of a TensorProto or a value; none: no equivalent type.
std::optional<ir::DType> dtype_of(int64_t onnx_type);

}  // namespace skillet::onnx
