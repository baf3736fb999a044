// Field numbers of onnx.proto.
// Included by file.cpp. Must not know: the meaning of the fields.
#pragma once

namespace skillet::onnx::field {

enum Model { kIrVersion = 1, kGraph = 7, kOpsets = 8 };
enum Opset { kDomain = 1, kVersion = 2 };
enum Graph { kNode = 1, kInitializer = 5, kInput = 11, kOutput = 12, kValueInfo = 13, kSparse = 15 };
enum Node { kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kOp = 4, kAttribute = 5, kNodeDomain = 7 };
enum Attribute { kName = 1, kFloat = 2, kInt = 3, kText = 4, kTensor = 5, kBody = 6, kFloats = 7, kInts = 8 };
enum Tensor {
  kDims = 1,
  kType = 2,
  kFloatData = 4,
  kInt32Data = 5,
  kInt64Data = 7,
  kTensorName = 8,
  kRaw = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kExternal = 13,
  kLocation = 14
};
enum Entry { kKey = 1, kValue = 2 };
enum ValueInfo { kValueName = 1, kValueType = 2 };
enum Type { kTensorType = 1, kElemType = 1, kShape = 2, kDim = 1, kDimValue = 1 };

}  // namespace skillet::onnx::field
