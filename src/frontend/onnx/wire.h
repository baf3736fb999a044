// Fields of ONNX files, and reading them. Errors are exceptions of protozero. Called by file.cpp.
// Must not know: Model.
#pragma once

#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

namespace skillet::onnx {

// Field numbers of onnx.proto.
namespace field {
enum Model { kIrVersion = 1, kGraph = 7, kOpsets = 8 };
enum Opset { kDomain = 1, kVersion = 2 };
enum Graph { kNode = 1, kInitializer = 5, kInput = 11, kOutput = 12, kValueInfo = 13, kSparse = 15 };
enum Node { kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kOp = 4, kAttribute = 5, kNodeDomain = 7 };
enum Attribute { kName = 1, kFloat = 2, kInt = 3, kText = 4, kTensor = 5, kBody = 6, kFloats = 7 };
enum Lists { kInts = 8, kTexts = 9 };  // of an attribute, too
enum Tensor { kDims = 1, kType = 2, kTensorName = 8, kExternal = 13, kLocation = 14 };
enum TensorData { kFloatData = 4, kInt32Data = 5, kInt64Data = 7, kRaw = 9, kDoubleData = 10, kUint64Data = 11 };
enum Entry { kKey = 1, kValue = 2 };
enum ValueInfo { kValueName = 1, kValueType = 2 };
enum Type { kTensorType = 1, kElemType = 1, kShape = 2, kDim = 1, kDimValue = 1 };
}  // namespace field

using protozero::pbf_reader;

// Protozero only asserts that a field has the type that is read.
struct OtherType : protozero::exception {
  const char* what() const noexcept override { return "a field has the wrong type"; }
};
inline void expect(const pbf_reader& at, protozero::pbf_wire_type type) {
  if (at.wire_type() != type) throw OtherType();
}
inline protozero::data_view view(pbf_reader& at) {
  expect(at, protozero::pbf_wire_type::length_delimited);
  return at.get_view();
}
inline std::string text(pbf_reader& at) {
  const protozero::data_view read = view(at);
  return {read.data(), read.size()};
}
inline pbf_reader message(pbf_reader& at) { return pbf_reader(view(at)); }
inline int64_t integer(pbf_reader& at) {
  expect(at, protozero::pbf_wire_type::varint);
  return at.get_int64();
}
inline float number(pbf_reader& at) {
  expect(at, protozero::pbf_wire_type::fixed32);
  return at.get_float();
}
inline double wide_number(pbf_reader& at) {
  expect(at, protozero::pbf_wire_type::fixed64);
  return at.get_double();
}

// Reads a packed field or single numbers: writers may use either.
template <typename T, typename Range>
inline void append(pbf_reader& at, std::vector<T>& to, Range (pbf_reader::*packed)(), T (*single)(pbf_reader&)) {
  if (at.wire_type() != protozero::pbf_wire_type::length_delimited) return to.push_back(single(at));
  for (const T one : (at.*packed)()) to.push_back(one);
}
inline void append(pbf_reader& at, std::vector<int64_t>& to) { append(at, to, &pbf_reader::get_packed_int64, integer); }
inline void append(pbf_reader& at, std::vector<float>& to) { append(at, to, &pbf_reader::get_packed_float, number); }

}  // namespace skillet::onnx
