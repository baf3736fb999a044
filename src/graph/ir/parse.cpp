#include <bit>
#include <charconv>
#include <type_traits>

#include "base/parse_number.h"
#include "base/splitmix64.h"
#include "graph/ir/attrs_fields.h"
#include "graph/ir/rules.h"

namespace skillet::ir {
namespace {

// Limit of zeros that replace hashed constants: they take memory that the text does not have.
constexpr size_t kMaxZeroBytes = size_t{1} << 31;

Error syntax(std::string_view what, std::string_view got) {
  constexpr size_t kShown = 60;
  return error(ErrorCode::malformed, "{}: '{}'", what, got.substr(0, kShown));
}

// --- splits a line into fields at blanks, but not within "..." and [...] ---
Result<std::vector<std::string_view>> split_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  size_t begin = 0;
  bool in_string = false, in_list = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    const char c = i < line.size() ? line[i] : '\n';
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == ']')) {
      in_list = c == '[';
    } else if (c == '\n' || (!in_string && (c == '#' || (!in_list && (c == ' ' || c == '\t' || c == '\r'))))) {
      if (i > begin) fields.push_back(line.substr(begin, i - begin));
      begin = i + 1;
      if (c == '#') break;
    }
  }
  if (in_string || in_list) return syntax("a string or list is not closed", line);
  return fields;
}

Result<std::string> unquoted(std::string_view field) {
  if (field.size() < 2 || field.front() != '"' || field.back() != '"') return syntax("expected a string", field);
  std::string out;
  for (size_t i = 1; i + 1 < field.size(); ++i) {
    if (field[i] != '\\') {
      out += field[i];
    } else if (field[i + 1] == 'x' && i + 4 < field.size()) {
      uint8_t byte = 0;
      const auto [end, code] = std::from_chars(&field[i + 2], &field[i + 4], byte, 16);
      if (code != std::errc{} || end != &field[i + 4]) return syntax("bad \\x in a string", field);
      out += static_cast<char>(byte);
      i += 3;
    } else if (i + 2 < field.size() && (field[i + 1] == '"' || field[i + 1] == '\\')) {
      out += field[++i];
    } else {
      return syntax("bad \\ in a string", field);
    }
  }
  return out;
}

// --- values ---
template <typename T>
Result<void> read(std::string_view text, T& value) {
  const auto parsed = parse_number<T>(text);
  if (!parsed) return syntax("expected a number", text);
  value = *parsed;
  return {};
}

Result<void> read(std::string_view text, float& value) {
  constexpr std::string_view kBits = "bits:";
  if (text.substr(0, kBits.size()) != kBits) return read<float>(text, value);
  const auto bits = parse_number<uint32_t>(text.substr(kBits.size()), 16);
  if (!bits) return syntax("expected the bits of a float", text);
  value = std::bit_cast<float>(*bits);
  return {};
}

Result<void> read(std::string_view text, bool& value) {
  value = text == "true";
  if (!value && text != "false") return syntax("expected true or false", text);
  return {};
}

Result<void> read(std::string_view text, Padding& value) {
  value = text == "same" ? Padding::same : Padding::valid;
  if (value == Padding::valid && text != "valid") return syntax("expected same or valid", text);
  return {};
}

Result<void> read(std::string_view text, Activation& value) {
  for (int i = 0; i <= static_cast<int>(Activation::sign_bit); ++i) {
    value = static_cast<Activation>(i);
    if (activation_name(value) == text) return {};
  }
  return syntax("no such activation", text);
}

Result<std::vector<std::string_view>> list_items(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return syntax("expected a list", text);
  return split_fields(text.substr(1, text.size() - 2));
}

template <typename T>
Result<void> read(std::string_view text, std::vector<T>& values) {
  values.clear();
  if (!text.empty() && text.front() != '[') {
    values.emplace_back();
    return read(text, values.back());
  }
  SK_TRY_ASSIGN(const auto items, list_items(text));
  for (std::string_view item : items) {
    T value{};
    SK_TRY(read(item, value));
    values.push_back(value);
  }
  return {};
}

Result<void> read(std::string_view text, std::optional<RowPads>& value) {
  std::vector<int32_t> pads;
  SK_TRY(read(text, pads));
  if (pads.size() != 2) return syntax("expected [top bottom]", text);
  value = RowPads{pads[0], pads[1]};
  return {};
}

Result<Shape> read_shape(std::string_view text) {
  Shape shape;
  if (text == "scalar") return shape;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('x', begin), text.size());
    shape.dims.emplace_back();
    SK_TRY(read(text.substr(begin, end - begin), shape.dims.back()).with_context("shape"));
    begin = end + 1;
  }
  return shape;
}

// --- constants ---
template <typename T>
Result<Bytes> number_bytes(std::string_view text) {
  SK_TRY_ASSIGN(const auto items, list_items(text));
  Bytes bytes(items.size() * sizeof(T));
  for (size_t i = 0; i < items.size(); ++i) {
    T value{};
    SK_TRY(read(items[i], value));
    store_le(&bytes[i * sizeof(T)], value);
  }
  return bytes;
}

Result<Bytes> list_bytes(DType dtype, std::string_view text) {
  switch (dtype) {
    case DType::float32: return number_bytes<float>(text);
    case DType::boolean:
    case DType::uint8: return number_bytes<uint8_t>(text);
    case DType::int8: return number_bytes<int8_t>(text);
    case DType::int16: return number_bytes<int16_t>(text);
    case DType::uint16: return number_bytes<uint16_t>(text);
    case DType::int32: return number_bytes<int32_t>(text);
    case DType::uint32: return number_bytes<uint32_t>(text);
    case DType::int64: return number_bytes<int64_t>(text);
    default: return error(ErrorCode::malformed, "{} constants are written as hex:", dtype_name(dtype));
  }
}

Result<Bytes> hex_bytes(std::string_view text) {
  Bytes bytes(text.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char* at = text.data() + 2 * i;
    const auto [end, code] = std::from_chars(at, at + 2, bytes[i], 16);
    if (code != std::errc{} || end != at + 2) return syntax("expected hex digits", text);
  }
  if (text.size() % 2 != 0) return syntax("expected pairs of hex digits", text);
  return bytes;
}

class Parser {
 public:
  Result<Graph> run(std::string_view text) {
    int line_number = 1;
    for (size_t begin = 0; begin < text.size(); ++line_number) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      SK_TRY_IN_CONTEXT(line(text.substr(begin, end - begin)), fmt::format("line {}", line_number));
      begin = end + 1;
    }
    return std::move(graph_);
  }

 private:
  using Fields = std::vector<std::string_view>;

  Result<void> line(std::string_view text) {
    SK_TRY_ASSIGN(const Fields fields, split_fields(text));
    if (fields.empty()) return {};
    if (fields[0] == "tensor") return tensor_line(fields);
    if (fields[0] == "op") return op_line(fields);
    if (fields[0] == "inputs") return id_line(fields, graph_.inputs);
    if (fields[0] == "outputs") return id_line(fields, graph_.outputs);
    if (fields[0] != "graph" || fields.size() != 2) return syntax("unknown line", text);
    SK_TRY_ASSIGN(graph_.name, unquoted(fields[1]));
    return {};
  }

  static Result<void> id_line(const Fields& fields, std::vector<TensorId>& ids) {
    for (size_t i = 1; i < fields.size(); ++i) {
      ids.emplace_back();
      SK_TRY(read(fields[i], ids.back()));
    }
    return {};
  }

  static Result<void> numbered(const Fields& fields, size_t fields_min, size_t expected) {
    size_t number = 0;
    if (fields.size() < fields_min) return syntax("fields are missing after", fields.back());
    SK_TRY(read(fields[1], number));
    if (number != expected) return error(ErrorCode::malformed, "number {} should be {}", number, expected);
    return {};
  }

  Result<void> tensor_line(const Fields& fields) {
    SK_TRY(numbered(fields, 5, graph_.tensors.size()));
    Tensor tensor;
    SK_TRY_ASSIGN(tensor.name, unquoted(fields[2]));
    const auto dtype = dtype_from_name(fields[3]);
    if (!dtype) return syntax("no such type", fields[3]);
    tensor.dtype = *dtype;
    SK_TRY_ASSIGN(tensor.shape, read_shape(fields[4]));
    for (size_t i = 5; i < fields.size(); ++i) SK_TRY(tensor_field(fields[i], tensor));
    // A single zero point applies to all channels.
    Quant& quant = tensor.quant;
    if (quant.zero_points.size() <= 1) quant.zero_points.resize(quant.scales.size(), quant.zero_point());
    graph_.add_tensor(std::move(tensor));
    return {};
  }

  Result<void> tensor_field(std::string_view field, Tensor& tensor) {
    const size_t equals = std::min(field.find('='), field.size());
    const std::string_view key = field.substr(0, equals);
    const std::string_view value = field.substr(std::min(equals + 1, field.size()));
    if (key == "scale") return read(value, tensor.quant.scales);
    if (key == "zero") return read(value, tensor.quant.zero_points);
    if (key == "axis") return read(value, tensor.quant.axis);
    if (key == "const") return constant(value, tensor);
    if (key == "planned") return read(value, tensor.planned_at.emplace());
    if (field != "variable") return syntax("unknown field", field);
    tensor.is_variable = true;
    return {};
  }

  // Counts memory for constants that the text does not contain.
  Result<void> claim(size_t size_bytes, std::string_view text) {
    if (size_bytes > kMaxZeroBytes - zero_bytes_) return syntax("the constants are too large", text);
    zero_bytes_ += size_bytes;
    return {};
  }

  // The same text gives the same constants on every machine. Bytes take any value; wider integers stay small, like sums
  // of products of bytes.
  Result<void> random_constant(std::string_view seed_text, Tensor& tensor) {
    SK_TRY(checked_elems(tensor.shape));
    uint64_t seed = 0;
    SK_TRY(read(seed_text, seed));
    SplitMix64 random(seed);
    SK_TRY(claim(static_cast<size_t>(tensor.bytes()), seed_text));
    Bytes bytes(static_cast<size_t>(tensor.bytes()));
    if (is_8bit(tensor.dtype)) {
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
    } else if (tensor.dtype == DType::int32) {
      constexpr uint64_t kRange = 4096;
      for (size_t at = 0; at < bytes.size(); at += sizeof(int32_t))
        store_le(&bytes[at], static_cast<int32_t>(random.next() % (2 * kRange + 1)) - static_cast<int32_t>(kRange));
    } else {
      return syntax("only 8-bit and int32 constants can be random, not", dtype_name(tensor.dtype));
    }
    set_constant(tensor, std::move(bytes));
    return {};
  }

  Result<void> constant(std::string_view text, Tensor& tensor) {
    constexpr std::string_view kHex = "hex:", kZeros = "zeros", kHash = "xxh3:", kRandom = "random:";
    if (text.substr(0, kRandom.size()) == kRandom) return random_constant(text.substr(kRandom.size()), tensor);
    if (text.substr(0, kHex.size()) == kHex) {
      SK_TRY_ASSIGN(Bytes bytes, hex_bytes(text.substr(kHex.size())));
      set_constant(tensor, std::move(bytes));
      return {};
    }
    if (text.substr(0, kZeros.size()) != kZeros && text.substr(0, kHash.size()) != kHash) {
      SK_TRY_ASSIGN(Bytes bytes, list_bytes(tensor.dtype, text));
      set_constant(tensor, std::move(bytes));
      return {};
    }
    size_t size_bytes = 0;
    if (text == kZeros) {
      SK_TRY(checked_elems(tensor.shape));
      size_bytes = static_cast<size_t>(tensor.bytes());
    } else {
      SK_TRY(read(text.substr(text.rfind(':') + 1), size_bytes));
    }
    SK_TRY(claim(size_bytes, text));
    set_constant(tensor, Bytes(size_bytes));
    return {};
  }

  Result<void> op_line(const Fields& fields) {
    SK_TRY(numbered(fields, 3, graph_.ops.size()));
    Op op;
    op.source_index = static_cast<int32_t>(graph_.ops.size());
    if (fields[2].front() == '"') {
      SK_TRY_ASSIGN(op.opaque_name, unquoted(fields[2]));
    } else {
      const auto kind = op_kind_from_name(fields[2]);
      if (!kind) return syntax("no such operation", fields[2]);
      op.kind = *kind;
    }
    op.attrs = default_attrs(op.kind);
    for (size_t i = 3; i < fields.size(); ++i) SK_TRY(op_field(fields[i], op));
    graph_.add_op(std::move(op));
    return {};
  }

  static Result<void> op_field(std::string_view field, Op& op) {
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos) return syntax("expected name=value", field);
    const std::string_view key = field.substr(0, equals), value = field.substr(equals + 1);
    if (key == "in") return operands(value, op.inputs);
    if (key == "out") return operands(value, op.outputs);
    if (key == "source") return read(value, op.source_index);
    Result<void> result = syntax("unknown field", field);
    const auto visit = [&](std::string_view name, auto& attr, std::string_view) {
      if (name == key) result = read(value, attr);
    };
    std::visit([&](auto& attrs) { for_each_field(attrs, visit); }, op.attrs);
    return result;
  }

  static Result<void> operands(std::string_view text, std::vector<TensorId>& ids) {
    SK_TRY_ASSIGN(const auto items, list_items(text));
    for (std::string_view item : items) {
      ids.push_back(kNoTensor);
      if (item != "-") SK_TRY(read(item, ids.back()));
    }
    return {};
  }

  Graph graph_;
  size_t zero_bytes_ = 0;
};

}  // namespace

Result<Graph> parse(std::string_view text) { return Parser().run(text); }

}  // namespace skillet::ir
