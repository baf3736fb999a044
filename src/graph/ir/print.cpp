#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "graph/ir/attrs_fields.h"
#include "graph/ir/graph.h"

namespace skillet::ir {
namespace {

constexpr size_t kMaxPrintedElems = 16;

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c < 0x20 || c > 0x7e) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string text_of(float value) {
  return std::isfinite(value) ? fmt::format("{}", value) : fmt::format("bits:{:08x}", std::bit_cast<uint32_t>(value));
}
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int32_t value) { return fmt::format("{}", value); }
std::string text_of(Padding padding) { return padding == Padding::same ? "same" : "valid"; }
std::string text_of(const std::optional<RowPads>& rows) {
  return rows ? fmt::format("[{} {}]", rows->top, rows->bottom) : "";
}
std::string text_of(Activation activation) { return std::string(activation_name(activation)); }

template <typename T>
std::string text_of(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values) out += (out.size() > 1 ? " " : "") + text_of(value);
  return out + "]";
}

// One value if all are equal, else the list.
template <typename T>
std::string text_of_channels(const std::vector<T>& values) {
  const bool uniform = std::all_of(values.begin(), values.end(), [&](const T& v) { return v == values.front(); });
  return uniform && !values.empty() ? text_of(values.front()) : text_of(values);
}

template <typename T>
std::string integers(const Tensor& tensor) {
  const std::vector<T> values = tensor.values<T>();
  return fmt::format("[{}]", fmt::join(std::vector<int64_t>(values.begin(), values.end()), " "));
}

std::string constant_in_full(const Tensor& tensor) {
  switch (tensor.dtype) {
    case DType::float32: return text_of(tensor.values<float>());
    case DType::boolean:
    case DType::uint8: return integers<uint8_t>(tensor);
    case DType::int8: return integers<int8_t>(tensor);
    case DType::int16: return integers<int16_t>(tensor);
    case DType::uint16: return integers<uint16_t>(tensor);
    case DType::int32: return integers<int32_t>(tensor);
    case DType::uint32: return integers<uint32_t>(tensor);
    case DType::int64: return integers<int64_t>(tensor);
    default: return fmt::format("hex:{:02x}", fmt::join(tensor.data, ""));
  }
}

std::string constant_text(const Tensor& tensor) {
  // Types without a fixed element size count bytes.
  const size_t elem_bytes = static_cast<size_t>(std::max(dtype_bytes(tensor.dtype), 1));
  if (tensor.data.size() <= kMaxPrintedElems * elem_bytes && tensor.data.size() % elem_bytes == 0) {
    return constant_in_full(tensor);
  }
  const bool zeros = std::all_of(tensor.data.begin(), tensor.data.end(), [](uint8_t byte) { return byte == 0; });
  if (zeros) return fmt::format("zeros:{}", tensor.data.size());
  return fmt::format("xxh3:{:016x}:{}", XXH3_64bits(tensor.data.data(), tensor.data.size()), tensor.data.size());
}

enum class Contents : uint8_t { text, sizes };

std::string tensor_line(size_t id, const Tensor& tensor, Contents contents) {
  std::string line =
      fmt::format("tensor {} {} {} {}", id, in_quotes(tensor.name), dtype_name(tensor.dtype), tensor.shape.to_string());
  const Quant& quant = tensor.quant;
  if (!quant.empty()) {
    // Scales are a list even if all are equal: its length makes the tensor per-channel.
    if (quant.per_channel() && contents == Contents::sizes)
      line += fmt::format(" scales={}", quant.scales.size());
    else
      line += " scale=" + (quant.per_channel() ? text_of(quant.scales) : text_of(quant.scales[0]));
    line += " zero=" + text_of_channels(quant.zero_points);
    if (quant.axis != 0) line += fmt::format(" axis={}", quant.axis);
  }
  if (tensor.is_variable) line += " variable";
  if (tensor.planned_at) line += fmt::format(" planned={}", *tensor.planned_at);
  if (tensor.data.data() == nullptr) return line;
  line += " const=" + (contents == Contents::sizes ? fmt::format("{}", tensor.data.size()) : constant_text(tensor));
  return line;
}

std::string operands(const std::vector<TensorId>& ids) {
  std::string out = "[";
  for (TensorId id : ids) out += (out.size() > 1 ? " " : "") + (id == kNoTensor ? "-" : fmt::format("{}", id));
  return out + "]";
}

template <typename T>
void append_attrs(std::string& line, const T& attrs) {
  const T defaults;
  std::vector<std::string> plain;  // the same fields of the defaults, in the same order
  for_each_field(defaults,
                 [&](std::string_view, const auto& field, std::string_view) { plain.push_back(text_of(field)); });
  size_t i = 0;
  for_each_field(attrs, [&](std::string_view name, const auto& field, std::string_view) {
    const std::string text = text_of(field);
    if (text != plain[i++]) line += fmt::format(" {}={}", name, text);
  });
}

std::string op_line(size_t id, const Op& op) {
  const std::string name = op.kind == OpKind::opaque ? in_quotes(op.opaque_name) : std::string(op_kind_name(op.kind));
  std::string line = fmt::format("op {} {} in={} out={}", id, name, operands(op.inputs), operands(op.outputs));
  std::visit([&](const auto& attrs) { append_attrs(line, attrs); }, op.attrs);
  if (op.source_index != static_cast<int32_t>(id)) line += fmt::format(" source={}", op.source_index);
  return line;
}

std::string print(const Graph& graph, Contents contents) {
  std::string out = fmt::format("graph {}\n", in_quotes(graph.name));
  for (size_t i = 0; i < graph.tensors.size(); ++i) out += tensor_line(i, graph.tensors[i], contents) + "\n";
  out += fmt::format("inputs {}\n", fmt::join(graph.inputs, " "));
  out += fmt::format("outputs {}\n", fmt::join(graph.outputs, " "));
  for (size_t i = 0; i < graph.ops.size(); ++i) out += op_line(i, graph.ops[i]) + "\n";
  return out;
}

}  // namespace

std::string print(const Graph& graph) { return print(graph, Contents::text); }
std::string print_without_constants(const Graph& graph) { return print(graph, Contents::sizes); }

}  // namespace skillet::ir
