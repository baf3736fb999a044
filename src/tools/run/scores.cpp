#include "tools/run/scores.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/bytes.h"
#include "base/text.h"

namespace skillet::tools {
namespace {

template <typename T>
double element(std::span<const uint8_t> bytes, int64_t i) {
  return static_cast<double>(load_le<T>(bytes.data() + static_cast<size_t>(i) * sizeof(T)));
}

// Converts IEEE 754 binary16.
double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(fraction + 1024, exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}

int64_t element_count(const ir::Tensor& tensor, std::span<const uint8_t> bytes) {
  const int size = ir::dtype_bytes(tensor.dtype);
  return size == 0 ? 0 : static_cast<int64_t>(bytes.size()) / size;
}

bool is_separator(char c) { return c == ' ' || c == '\t' || c == ':' || c == ','; }

struct IndexedLabel {
  size_t index = 0;
  std::string_view label;
};

// Splits "653 military uniform" into 653 and "military uniform"; none if the line has another form.
std::optional<IndexedLabel> split_index(std::string_view line) {
  IndexedLabel out;
  const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), out.index);
  out.label = line.substr(static_cast<size_t>(end - line.data()));
  if (code != std::errc() || out.index > 1'000'000 || out.label.empty() || !is_separator(out.label[0]))
    return std::nullopt;
  while (!out.label.empty() && is_separator(out.label[0])) out.label.remove_prefix(1);
  if (out.label.empty()) return std::nullopt;
  return out;
}

}  // namespace

Result<std::vector<std::string_view>> text_lines(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") || text.find('\0') != std::string_view::npos)
    return error(ErrorCode::malformed, "is not UTF-8 text (a file in UTF-16?)");
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\r\n"), text.size());
    std::string_view line = text.substr(0, end);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    lines.push_back(line);
    const size_t after = std::min(text.find_first_not_of('\r', end), text.size());
    text.remove_prefix(after < text.size() && text[after] == '\n' ? after + 1 : std::min(end + 1, text.size()));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

double raw_value(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i) {
  switch (tensor.dtype) {
    case ir::DType::uint8: return element<uint8_t>(bytes, i);
    case ir::DType::int8: return element<int8_t>(bytes, i);
    case ir::DType::boolean: return element<uint8_t>(bytes, i);
    case ir::DType::int16: return element<int16_t>(bytes, i);
    case ir::DType::int32: return element<int32_t>(bytes, i);
    case ir::DType::int64: return element<int64_t>(bytes, i);
    case ir::DType::uint16: return element<uint16_t>(bytes, i);
    case ir::DType::uint32: return element<uint32_t>(bytes, i);
    case ir::DType::uint64: return element<uint64_t>(bytes, i);
    case ir::DType::float16: return half(load_le<uint16_t>(bytes.data() + static_cast<size_t>(i) * 2));
    case ir::DType::float32: return element<float>(bytes, i);
    case ir::DType::float64: return element<double>(bytes, i);
    default: return 0;
  }
}

bool has_numbers(ir::DType dtype) {
  return dtype == ir::DType::boolean || dtype == ir::DType::float16 || dtype == ir::DType::float32 ||
         dtype == ir::DType::float64 || (ir::is_integer(dtype) && ir::dtype_bytes(dtype) > 0);
}

double real_value(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i) {
  const double raw = raw_value(tensor, bytes, i);
  if (tensor.quant.empty() || tensor.quant.per_channel() || !ir::is_integer(tensor.dtype)) return raw;
  return tensor.quant.scale() * (raw - tensor.quant.zero_point());
}

std::string print_raw(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int64_t i) {
  const int raw = static_cast<int>(raw_value(tensor, bytes, i));
  if (tensor.dtype == ir::DType::uint8) return fmt::format("{}/255", raw);
  if (tensor.dtype == ir::DType::int8) return fmt::format("{} of -128..127", raw);
  return {};
}

Result<std::vector<std::string>> parse_labels(std::string_view text) {
  SK_TRY_ASSIGN(const std::vector<std::string_view> lines, text_lines(text));
  std::vector<std::string> plain(lines.begin(), lines.end()), indexed;
  std::optional<std::string> twice;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::optional<IndexedLabel> label = split_index(lines[i]);
    if (!label) return plain;
    if (indexed.size() <= label->index) indexed.resize(label->index + 1);
    if (!twice && !indexed[label->index].empty())
      twice =
          fmt::format("line {}: class {} is '{}' and '{}'", i + 1, label->index, indexed[label->index], label->label);
    indexed[label->index] = label->label;
  }
  if (twice) return error(ErrorCode::malformed, "{}", *twice);
  return indexed;
}

Result<std::vector<std::string>> read_labels(const std::string& path) {
  SK_TRY_ASSIGN(const Bytes file, read_file(path));
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const bool has_zeros = text.find('\0') != std::string_view::npos;  // another encoding: parse_labels() reports it
  if (!has_zeros && !is_utf8(text)) {
    for (size_t line = 1, at = 0; at < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', at), text.size());
      if (!is_utf8(text.substr(at, end - at)))
        return error(ErrorCode::malformed,
                     "{}: line {} is not UTF-8 text (iconv -f LATIN1 -t UTF-8 converts an old file)", path, line);
      at = end + 1;
    }
  }
  return parse_labels(text).with_context(path);
}

bool is_scores(const ir::Tensor& tensor) {
  return tensor.shape.back(0) >= 2 && tensor.shape.elems() == tensor.shape.back(0);
}

std::vector<int64_t> top_classes(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int count) {
  std::vector<int64_t> order(static_cast<size_t>(element_count(tensor, bytes)));
  std::iota(order.begin(), order.end(), 0);
  const size_t kept = std::min(order.size(), static_cast<size_t>(std::max(count, 0)));
  const auto better = [&](int64_t a, int64_t b) {
    const double value_a = raw_value(tensor, bytes, a), value_b = raw_value(tensor, bytes, b);
    if (std::isnan(value_a) != std::isnan(value_b)) return std::isnan(value_b);  // what is no number comes last
    return value_a > value_b || (!(value_b > value_a) && a < b);
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), better);
  order.resize(kept);
  return order;
}

std::vector<TopClass> best_classes(const ir::Tensor& tensor, std::span<const uint8_t> bytes, int count,
                                   const std::vector<std::string>& labels) {
  std::vector<TopClass> out;
  for (const int64_t index : top_classes(tensor, bytes, count)) {
    const auto at = static_cast<size_t>(index);
    out.push_back({index, real_value(tensor, bytes, index), print_raw(tensor, bytes, index),
                   at < labels.size() ? labels[at] : ""});
  }
  return out;
}

std::string ssd_label(const std::vector<std::string>& labels, size_t index) {
  const bool has_background = !labels.empty() && (labels[0] == "???" || labels[0] == "background");
  if (has_background) ++index;
  return index < labels.size() ? labels[index] : "";
}

}  // namespace skillet::tools
