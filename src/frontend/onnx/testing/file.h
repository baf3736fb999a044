// Writes ONNX files for tests, field by field, and computes their results.
// Called by tests of the importer. Must not know: how files are read.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "frontend/onnx/import.h"
#include "graph/ref/ref.h"

namespace skillet::onnx {

using protozero::pbf_writer;
using Dims = std::vector<int64_t>;

inline std::string message(const std::function<void(pbf_writer&)>& write) {
  std::string out;
  pbf_writer writer(out);
  write(writer);
  return out;
}

constexpr int kFloat = 1, kInt8 = 3, kInt64 = 7, kBool = 9;

inline std::string tensor(const std::string& name, int type, const Dims& dims, const std::string& raw) {
  return message([&](pbf_writer& w) {
    w.add_packed_int64(1, dims.begin(), dims.end());
    w.add_int64(2, type);
    w.add_string(8, name);
    w.add_bytes(9, raw);
  });
}

template <typename T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string out;
  for (const T one : values) out.append(reinterpret_cast<const char*>(&one), sizeof(T));
  return out;
}
inline std::string int64s(const std::string& name, std::initializer_list<int64_t> values) {
  return tensor(name, kInt64, {static_cast<int64_t>(values.size())}, bytes_of(values));
}

inline std::string value(const std::string& name, const Dims& dims, int type = kFloat) {
  const std::string shape = message([&](pbf_writer& w) {
    for (const int64_t dim : dims) w.add_message(1, message([&](pbf_writer& d) { d.add_int64(1, dim); }));
  });
  const std::string tensor_type = message([&](pbf_writer& w) {
    w.add_int64(1, type);
    w.add_message(2, shape);
  });
  return message([&](pbf_writer& w) {
    w.add_string(1, name);
    w.add_message(2, message([&](pbf_writer& t) { t.add_message(1, tensor_type); }));
  });
}

inline std::string ints(const std::string& name, const Dims& values) {
  return message([&](pbf_writer& w) {
    w.add_string(1, name);
    for (const int64_t one : values) w.add_int64(8, one);
  });
}

inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::vector<std::string>& attributes = {},
                        const std::string& domain = "") {
  return message([&](pbf_writer& w) {
    for (const auto& one : inputs) w.add_string(1, one);
    for (const auto& one : outputs) w.add_string(2, one);
    w.add_string(3, "n");
    w.add_string(4, op);
    for (const auto& one : attributes) w.add_message(5, one);
    w.add_string(7, domain);
  });
}

struct Parts {
  std::vector<std::string> nodes, constants, inputs = {value("x", {1, 2, 3})}, outputs = {value("y", {})};
  int64_t opset = 17;
};

inline Bytes file(const Parts& parts) {
  const std::string graph = message([&](pbf_writer& w) {
    for (const auto& one : parts.nodes) w.add_message(1, one);
    for (const auto& one : parts.constants) w.add_message(5, one);
    for (const auto& one : parts.inputs) w.add_message(11, one);
    for (const auto& one : parts.outputs) w.add_message(12, one);
  });
  const std::string model = message([&](pbf_writer& w) {
    w.add_int64(1, 9);
    w.add_message(7, graph);
    w.add_message(8, message([&](pbf_writer& o) { o.add_int64(2, parts.opset); }));
  });
  return {model.begin(), model.end()};
}

inline std::string number(const std::string& name, int64_t value) {
  return message([&](pbf_writer& w) {
    w.add_string(1, name);
    w.add_int64(3, value);
  });
}
inline std::string real(const std::string& name, float value) {
  return message([&](pbf_writer& w) {
    w.add_string(1, name);
    w.add_float(2, value);
  });
}
inline std::string word(const std::string& name, const std::string& value) {
  return message([&](pbf_writer& w) {
    w.add_string(1, name);
    w.add_bytes(4, value);
  });
}

// The attribute with its number at `index` replaced; empty if it has fewer.
inline std::string with_number(const std::string& attribute, size_t index, int64_t value) {
  constexpr uint32_t kNumber = 3, kNumbers = 8;
  size_t seen = 0;
  std::string out = message([&](pbf_writer& w) {
    for (protozero::pbf_reader from(attribute); from.next();) {
      const uint32_t field = from.tag();
      if (field == kNumber || field == kNumbers) {
        const int64_t old = from.get_int64();
        w.add_int64(field, seen++ == index ? value : old);
      } else if (from.wire_type() == protozero::pbf_wire_type::length_delimited) {
        w.add_string(field, std::string(from.get_view()));
      } else {
        w.add_fixed32(field, from.get_fixed32());  // a number in floating point
      }
    }
  });
  return index < seen ? out : "";
}

// `op` on the int8 input x, whose scale is 0.5, and on `more`; its output y has the same scale.
inline Parts in_halves(const std::string& op, const Dims& dims, const std::vector<std::string>& more, Parts parts = {},
                       const std::vector<std::string>& attributes = {}) {
  std::vector<std::string> inputs = {"real"};
  inputs.insert(inputs.end(), more.begin(), more.end());
  parts.nodes.push_back(node("DequantizeLinear", {"x", "half", "zero"}, {"real"}));
  parts.nodes.push_back(node(op, inputs, {"result"}, attributes));
  parts.nodes.push_back(node("QuantizeLinear", {"result", "half", "zero"}, {"y"}));
  parts.constants.push_back(tensor("half", kFloat, {}, bytes_of({0.5F})));
  parts.constants.push_back(tensor("zero", kInt8, {}, std::string(1, '\0')));
  parts.inputs = {value("x", dims, kInt8)};
  parts.outputs = {value("y", dims, kInt8)};
  return parts;
}

// Computes the output of the file on the CPU.
template <typename T>
std::vector<T> run(const Parts& parts, const std::vector<T>& in) {
  const auto graph = import(file(parts), "m");
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  if (!graph.ok()) return {};
  auto made = ref::Interpreter::create(*graph);
  EXPECT_TRUE(made.ok()) << made.error().message;
  if (!made.ok()) return {};
  std::memcpy(made->tensor(graph->inputs[0]).data(), in.data(), in.size() * sizeof(T));
  EXPECT_TRUE(made->run().ok());
  const auto bytes = made->tensor(graph->outputs[0]);
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

inline std::string floats(const std::string& name, const Dims& dims, std::initializer_list<float> values) {
  return tensor(name, kFloat, dims, bytes_of(values));
}

inline std::string tensor_attribute(const std::string& made) {
  return message([&](pbf_writer& w) {
    w.add_string(1, "value");
    w.add_message(5, made);
  });
}

// One node, and its constants.
inline Parts one(const char* op, std::vector<std::string> inputs, std::vector<std::string> attributes = {},
                 std::vector<std::string> constants = {}, int64_t opset = 17) {
  inputs.insert(inputs.begin(), "x");
  return {.nodes = {node(op, inputs, {"y"}, attributes)}, .constants = std::move(constants), .opset = opset};
}

}  // namespace skillet::onnx
