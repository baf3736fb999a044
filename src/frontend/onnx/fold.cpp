// Computes constants from other constants and from sizes: the operations that exporters write around Reshape, Resize,
// Expand and Slice, and weights that are quantized, moved or reshaped.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/onnx/settle.h"
#include "frontend/onnx/units.h"

namespace skillet::onnx {

constexpr int64_t kMostWeights = 1 << 28;

std::optional<int64_t> elems_of(const Value& value) {
  if (!value.dims) return std::nullopt;
  int64_t elems = 1;
  for (const int64_t dim : *value.dims) {
    if (dim < 0 || dim > kMostWeights || (elems *= dim) > kMostWeights) return std::nullopt;
  }
  return elems;
}

namespace {

using Numbers = std::vector<double>;

template <typename T>
Bytes stored_as(const Numbers& numbers) {
  using Limits = std::numeric_limits<T>;
  Bytes out(numbers.size() * sizeof(T));
  for (size_t i = 0; i < numbers.size(); ++i) {
    T one;
    if constexpr (std::is_floating_point_v<T>)
      one = static_cast<T>(numbers[i]);
    else if (std::isnan(numbers[i]))
      one = 0;
    else if (numbers[i] >= static_cast<double>(Limits::max()))
      one = Limits::max();
    else
      one = static_cast<T>(std::max(numbers[i], static_cast<double>(Limits::min())));
    std::memcpy(out.data() + i * sizeof(T), &one, sizeof(T));
  }
  return out;
}

std::optional<Bytes> stored(ir::DType dtype, const Numbers& numbers) {
  switch (dtype) {
    case ir::DType::float32: return stored_as<float>(numbers);
    case ir::DType::int8: return stored_as<int8_t>(numbers);
    case ir::DType::uint8: return stored_as<uint8_t>(numbers);
    case ir::DType::int32: return stored_as<int32_t>(numbers);
    case ir::DType::int64: return stored_as<int64_t>(numbers);
    case ir::DType::boolean: return stored_as<uint8_t>(numbers);
    default: return std::nullopt;
  }
}

class Folder {
 public:
  Folder(ModelFile& file, const Node& node) : file_(file), model_(file.model), node_(node) {}

  bool run() {
    if (node_.outputs.size() != 1 || node_.outputs[0] == kNone || !node_.domain.empty()) return false;
    if (node_.op == "Constant") return constant();
    if (node_.op == "Shape") return shape();
    if (node_.op == "Size") return size();
    for (const int id : node_.inputs)
      if (id != kNone && !model_.value(id).is_constant) return false;
    if (std::ranges::count(kSameBytes, std::string_view(node_.op)) != 0) return same_bytes();
    if (node_.op == "QuantizeLinear") return quantize();
    if (node_.op == "Transpose") return transpose();
    return numbers_of_node();
  }

 private:
  static constexpr std::string_view kSameBytes[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};

  Value& out() { return model_.values[static_cast<size_t>(node_.outputs[0])]; }
  const Value* in(size_t i) const {
    return i < node_.inputs.size() && node_.inputs[i] != kNone ? &model_.value(node_.inputs[i]) : nullptr;
  }
  bool is(std::string_view op) const { return node_.op == op; }

  bool set(std::span<const uint8_t> data, ir::DType dtype, std::vector<int64_t> dims) {
    out().data = data;
    out().dtype = dtype;
    out().dims = std::move(dims);
    out().is_constant = true;
    return true;
  }
  bool set(const Numbers& numbers, ir::DType dtype, std::vector<int64_t> dims) {
    auto bytes = stored(dtype, numbers);
    return bytes && set(file_.keep(std::move(*bytes)), dtype, std::move(dims));
  }

  bool constant() {
    const auto value = node_.attributes.find("value");
    if (value != node_.attributes.end() && value->second.tensor != nullptr) {
      const Value& from = *value->second.tensor;
      return set(from.data, from.dtype, *from.dims);
    }
    for (const auto& [name, attribute] : node_.attributes) {
      const bool is_list = name.ends_with("s");
      const Numbers ints(attribute.ints.begin(), attribute.ints.end());
      const Numbers floats(attribute.floats.begin(), attribute.floats.end());
      const auto dims = [&](const Numbers& of) {
        return is_list ? std::vector<int64_t>{std::ssize(of)} : std::vector<int64_t>();
      };
      if (name == "value_int" || name == "value_ints") return set(ints, ir::DType::int64, dims(ints));
      if (name == "value_float" || name == "value_floats") return set(floats, ir::DType::float32, dims(floats));
    }
    return false;
  }

  // The shape of a constant or of a computed value.
  bool shape() {
    if (in(0) == nullptr || !elems_of(*in(0)) || !out().dims || out().dims->size() != 1) return false;
    const std::vector<int64_t>& dims = *in(0)->dims;
    const auto rank = static_cast<int64_t>(dims.size());
    int64_t start = int_of(node_, "start", 0);
    start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
    const int64_t count = out().dims->front();
    if (count < 0 || count > rank - start) return false;
    return set(Numbers(dims.begin() + start, dims.begin() + start + count), ir::DType::int64, {count});
  }

  bool size() {
    const auto elems = in(0) == nullptr ? std::nullopt : elems_of(*in(0));
    return elems && set(Numbers{static_cast<double>(*elems)}, ir::DType::int64, {});
  }

  bool same_bytes() {
    if (in(0) == nullptr || !out().dims || elems_of(*in(0)) != elems_of(out())) return false;
    return set(in(0)->data, in(0)->dtype, *out().dims);
  }

  bool quantize() {
    const auto quant = quant_of_node(model_, node_);
    const auto real = in(0) == nullptr ? std::nullopt : numbers(*in(0));
    if (!quant.ok() || !real || !in(0)->dims || (!out().is_8bit() && out().dtype != ir::DType::int32)) return false;
    const std::vector<int64_t>& dims = *in(0)->dims;
    int64_t inner = 1;
    if (quant->per_channel()) {
      const auto axis = static_cast<size_t>(quant->axis);
      if (axis >= dims.size() || std::ssize(quant->scales) != dims[axis]) return false;
      for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
    }
    Numbers made(real->size());
    for (size_t i = 0; i < made.size(); ++i) {
      const size_t c = i / static_cast<size_t>(inner) % quant->scales.size();
      made[i] = std::nearbyint(static_cast<float>((*real)[i]) / quant->scales[c]) + quant->zero_points[c];
    }
    return set(made, out().dtype, dims);
  }

  bool transpose() {
    const auto elems = elems_of(out());
    if (in(0) == nullptr || ir::dtype_bytes(in(0)->dtype) == 0 || !elems || elems_of(*in(0)) != elems) return false;
    const std::vector<int64_t>& from = *in(0)->dims;
    std::vector<int64_t> perm = ints_of(node_, "perm");
    if (perm.empty()) {
      perm.resize(from.size());
      std::iota(perm.rbegin(), perm.rend(), 0);
    }
    for (int64_t& one : perm) one += one < 0 ? std::ssize(from) : 0;
    return set(file_.keep(permuted(*in(0), from, perm)), in(0)->dtype, *out().dims);
  }

  // Computes the node on its inputs as numbers.
  bool numbers_of_node() {
    const auto elems = elems_of(out());
    if (!elems || *elems > kMostElems) return false;
    std::vector<Numbers> read;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (in(i) == nullptr) return false;
      const auto size = elems_of(*in(i));
      auto one = size && *size <= kMostElems ? numbers(*in(i)) : std::nullopt;
      if (!one) return false;
      read.push_back(std::move(*one));
    }
    auto made = compute(read, static_cast<size_t>(*elems));
    return made && std::ssize(*made) == *elems && set(*made, out().dtype, *out().dims);
  }

  std::optional<Numbers> compute(const std::vector<Numbers>& read, size_t count) {
    if (is("ConstantOfShape")) {
      const auto value = node_.attributes.find("value");
      const bool given = value != node_.attributes.end() && value->second.tensor != nullptr;
      const auto filler = given ? numbers(*value->second.tensor) : std::nullopt;
      if (given && (!filler || filler->size() != 1)) return std::nullopt;
      return Numbers(count, given ? filler->front() : 0);
    }
    if (read.empty()) return std::nullopt;
    if (is("Concat")) return concat(read, count);
    if (is("Gather") && read.size() == 2) return gather(read, count);
    if (is("Slice")) return slice(read[0], count);
    if (is("Range")) {
      if (read.size() != 3 || std::ranges::any_of(read, &Numbers::empty)) return std::nullopt;
      Numbers made(count);
      for (size_t i = 0; i < count; ++i) made[i] = read[0][0] + static_cast<double>(i) * read[2][0];
      return made;
    }
    if (read.size() > 3) return std::nullopt;
    if (read.size() == 3 && is("Where"))
      return elementwise(read, count, [](const auto& v) { return v[0] != 0 ? v[1] : v[2]; });
    if (read.size() == 2) return binary(read, count);
    return read.size() == 1 ? unary(read[0]) : std::nullopt;
  }

  // The attribute `axis` for input 0, counted from the front; none: it has no such dimension.
  std::optional<size_t> axis(int64_t otherwise) const {
    const auto rank = std::ssize(*in(0)->dims);
    const int64_t given = int_of(node_, "axis", otherwise), at = given < 0 ? given + rank : given;
    return at < 0 || at >= rank ? std::nullopt : std::optional(static_cast<size_t>(at));
  }
  // Number of elements in the dimensions from `first` on.
  static size_t inner_of(const std::vector<int64_t>& dims, size_t first) {
    size_t elems = 1;
    for (size_t i = first; i < dims.size(); ++i) elems *= static_cast<size_t>(dims[i]);
    return elems;
  }

  std::optional<Numbers> concat(const std::vector<Numbers>& read, size_t count) const {
    const auto at = axis(1);
    Numbers made;
    if (!at || count == 0) return at ? std::optional(made) : std::nullopt;
    std::vector<size_t> begun(read.size());
    while (made.size() < count) {
      for (size_t i = 0; i < read.size(); ++i) {
        const size_t inner = inner_of(*in(i)->dims, *at);
        if (begun[i] + inner > read[i].size()) return std::nullopt;
        const auto from = read[i].begin() + static_cast<std::ptrdiff_t>(begun[i]);
        made.insert(made.end(), from, from + static_cast<std::ptrdiff_t>(inner));
        begun[i] += inner;
      }
    }
    return made;
  }

  std::optional<Numbers> gather(const std::vector<Numbers>& read, size_t count) const {
    const auto at = axis(0);
    Numbers made;
    if (!at || count == 0) return at ? std::optional(made) : std::nullopt;
    const auto size = static_cast<double>((*in(0)->dims)[*at]);
    const size_t inner = inner_of(*in(0)->dims, *at + 1), block = inner_of(*in(0)->dims, *at);
    for (size_t outer = 0; outer < read[0].size(); outer += block) {
      for (double index : read[1]) {
        if (index < 0) index += size;
        if (!(index >= 0 && index < size)) return std::nullopt;
        const auto from = read[0].begin() + static_cast<std::ptrdiff_t>(outer + static_cast<size_t>(index) * inner);
        made.insert(made.end(), from, from + static_cast<std::ptrdiff_t>(inner));
      }
    }
    return made;
  }

  // The first element along each dimension, and the step to the next one.
  struct Walk {
    std::vector<int64_t> first, step;
  };

  std::optional<Walk> walk_of_slice() const {
    const auto list = [&](const char* name, size_t i) {
      return in(i) == nullptr ? std::optional(ints_of(node_, name)) : integers(*in(i));
    };
    const auto starts = list("starts", 1), axes = list("axes", 3), steps = list("steps", 4);
    const std::vector<int64_t>& dims = *in(0)->dims;
    const auto rank = std::ssize(dims);
    if (!starts || !axes || !steps) return std::nullopt;
    Walk out{std::vector<int64_t>(dims.size(), 0), std::vector<int64_t>(dims.size(), 1)};
    for (size_t i = 0; i < starts->size(); ++i) {
      if ((!axes->empty() && i >= axes->size()) || (!steps->empty() && i >= steps->size())) return std::nullopt;
      int64_t axis = axes->empty() ? static_cast<int64_t>(i) : (*axes)[i];
      axis += axis < 0 ? rank : 0;
      if (axis < 0 || axis >= rank) return std::nullopt;
      const auto at = static_cast<size_t>(axis);
      const int64_t dim = dims[at], by = steps->empty() ? 1 : (*steps)[i], start = (*starts)[i];
      const int64_t last = by > 0 ? dim : std::max<int64_t>(dim - 1, 0);
      out.first[at] = std::clamp<int64_t>(start < 0 ? std::max(start, -dim) + dim : start, 0, last);
      out.step[at] = std::clamp(by, -dim - 1, dim + 1);
    }
    return out;
  }

  std::optional<Numbers> slice(const Numbers& from, size_t count) {
    const auto walk = walk_of_slice();
    const std::vector<int64_t>&dims = *in(0)->dims, &to = *out().dims;
    if (!walk || dims.size() != to.size()) return std::nullopt;
    Numbers made;
    for (size_t i = 0; i < count; ++i) {
      int64_t element = 0, inner = 1, left = static_cast<int64_t>(i);
      for (size_t d = dims.size(); d-- > 0; inner *= dims[d]) {
        const int64_t at = walk->first[d] + left % to[d] * walk->step[d];
        if (at < 0 || at >= dims[d]) return std::nullopt;
        element += at * inner;
        left /= to[d];
      }
      made.push_back(from[static_cast<size_t>(element)]);
    }
    return made;
  }

  template <typename F>
  std::optional<Numbers> elementwise(const std::vector<Numbers>& read, size_t count, F&& f) const {
    for (const Numbers& one : read)
      if (one.size() != 1 && one.size() != count) return std::nullopt;
    Numbers made;
    std::vector<double> now(read.size());
    for (size_t i = 0; i < count; ++i) {
      for (size_t k = 0; k < read.size(); ++k) now[k] = read[k][read[k].size() == 1 ? 0 : i];
      made.push_back(f(now));
    }
    return made;
  }

  std::optional<Numbers> binary(const std::vector<Numbers>& read, size_t count) {
    struct Row {
      std::string_view op;
      double (*f)(double, double);
    };
    static constexpr Row kRows[] = {
        {"Add", [](double a, double b) { return a + b; }},
        {"Sub", [](double a, double b) { return a - b; }},
        {"Mul", [](double a, double b) { return a * b; }},
        {"Div", [](double a, double b) { return a / b; }},
        {"Min", [](double a, double b) { return std::min(a, b); }},
        {"Max", [](double a, double b) { return std::max(a, b); }},
        {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
        {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
        {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
        {"GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
        {"LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
        {"And", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
        {"Or", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }},
    };
    const auto row = std::ranges::find(kRows, std::string_view(node_.op), &Row::op);
    if (row == std::end(kRows)) return std::nullopt;
    const bool truncates = is("Div") && out().dtype != ir::DType::float32;
    if (truncates && std::ranges::count(read[1], 0.0) != 0) return std::nullopt;
    return elementwise(read, count, [&](const auto& v) {
      const double one = row->f(v[0], v[1]);
      return truncates ? std::trunc(one) : one;
    });
  }

  std::optional<Numbers> unary(const Numbers& from) {
    struct Row {
      std::string_view op;
      double (*f)(double);
    };
    static constexpr Row kRows[] = {
        {"Floor", [](double a) { return std::floor(a); }},    {"Ceil", [](double a) { return std::ceil(a); }},
        {"Sqrt", [](double a) { return std::sqrt(a); }},      {"Round", [](double a) { return std::nearbyint(a); }},
        {"Not", [](double a) { return a == 0 ? 1.0 : 0.0; }}, {"Neg", [](double a) { return -a; }}};
    Numbers made = from;
    if (is("Cast")) {
      const bool whole = out().dtype != ir::DType::float32;
      for (double& one : made)
        one = out().dtype == ir::DType::boolean ? (one != 0 ? 1.0 : 0.0) : whole ? std::trunc(one) : one;
      return made;
    }
    const auto row = std::ranges::find(kRows, std::string_view(node_.op), &Row::op);
    if (row == std::end(kRows)) return std::nullopt;
    std::ranges::transform(made, made.begin(), row->f);
    return made;
  }

  ModelFile& file_;
  Model& model_;
  const Node& node_;
};

}  // namespace

bool fold(ModelFile& file, const Node& node) { return Folder(file, node).run(); }

}  // namespace skillet::onnx
