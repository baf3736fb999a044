// ModelFile: an ONNX file as a Model: protobuf is read, names become values, sizes are as the file or the caller says.
// Called by import.cpp. Must not know: what operations mean.
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

// Contents that values are views of: the file, files beside it, numbers in the form that we have them in.
struct Contents {
  Bytes file;
  std::map<std::string, Bytes> beside;
  std::deque<Bytes> made;
};

struct ModelFile {
  Model model;
  std::vector<int> inputs;  // those that are no constants
  std::vector<NamedValue> outputs;
  std::shared_ptr<Contents> contents;

  std::span<const uint8_t> keep(Bytes bytes);
};

// `folder`: of files beside the model; empty: there are none. Error: the file is damaged, or is of a form that is not
// read; the message names the node, the tensor or the field.
Result<ModelFile> read_model(Bytes file, const std::string& folder);

// Sizes that are not in the file, "NAME=1x3x224x224", or without a name for the only input; a batch that is free is 1.
// Error: sizes are free and not given, or do not fit.
Result<void> set_input_shapes(ModelFile& file, const std::vector<std::string>& shapes);

// The type of a TensorProto or a value; nothing: it has no counterpart.
std::optional<ir::DType> dtype_of(int64_t onnx_type);

}  // namespace skillet::onnx
