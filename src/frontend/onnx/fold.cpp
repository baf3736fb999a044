// Computes constants from other constants and from sizes: the operations that exporters write around Reshape, Resize,
// Expand and Slice, and weights that are quantized, moved or reshaped.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/text.h"
#include "frontend/onnx/settle.h"
#include "frontend/onnx/units.h"

namespace skillet::onnx {
namespace {

using Numbers = std::vector<double>;

// A few bytes of a file may describe any number of elements. Larger results are left to the program that runs the
// graph.
constexpr int64_t kMostElems = 1 << 24;
constexpr int64_t kMostWeights = 1 << 28;

std::optional<int64_t> elems_of(const Value& value) {
  if (!value.dims) return std::nullopt;
  int64_t elems = 1;
  for (const int64_t dim : *value.dims) {
    if (dim < 0 || dim > kMostWeights || (elems *= dim) > kMostWeights) return std::nullopt;
  }
  return elems;
}

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
    if (is("Concat")) return concat(read);
    if (is("Gather") && read.size() == 2) return gather(read);
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

  std::optional<Numbers> concat(const std::vector<Numbers>& read) const {
    for (size_t i = 0; i < read.size(); ++i)
      if (in(i)->dims->size() != 1) return std::nullopt;
    Numbers made;
    for (const Numbers& one : read) made.insert(made.end(), one.begin(), one.end());
    return made;
  }

  std::optional<Numbers> gather(const std::vector<Numbers>& read) const {
    if (in(0)->dims->size() != 1) return std::nullopt;
    Numbers made;
    for (double at : read[1]) {
      if (at < 0) at += static_cast<double>(read[0].size());
      if (!(at >= 0 && at < static_cast<double>(read[0].size()))) return std::nullopt;
      made.push_back(read[0][static_cast<size_t>(at)]);
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
    static constexpr Row kRows[] = {{"Floor", [](double a) { return std::floor(a); }},
                                    {"Ceil", [](double a) { return std::ceil(a); }},
                                    {"Sqrt", [](double a) { return std::sqrt(a); }},
                                    {"Round", [](double a) { return std::nearbyint(a); }},
                                    {"Neg", [](double a) { return -a; }}};
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

// True for nodes whose output is their first input.
bool passes_on(const Model& model, const Node& node) {
  if (node.inputs.empty() || node.inputs[0] == kNone || node.outputs.empty() || node.outputs[0] == kNone) return false;
  if (node.op == "Cast") return model.value(node.inputs[0]).dtype == dtype_of(int_of(node, "to", 0));
  const bool trains = node.inputs.size() > 2 && node.inputs[2] != kNone;
  return (node.op == "Identity" || (node.op == "Dropout" && !trains)) && node.domain.empty();
}

}  // namespace

bool fold(ModelFile& file, const Node& node) { return Folder(file, node).run(); }

namespace {

// Number of elements that may be computed from constants: a multiple of those in the file, plus a constant.
int64_t budget_of(const Model& model) {
  constexpr int64_t kMore = 1 << 26, kTimes = 8;
  int64_t elems = 0;
  for (const Value& one : model.values) elems += one.is_constant ? elems_of(one).value_or(0) : 0;
  return kMore + kTimes * elems;
}

Result<void> check_elements(const Model& model, const Node& node, bool is_folded, int64_t& budget) {
  if (node.outputs.empty() || node.outputs[0] == kNone) return {};
  const Value& out = model.value(node.outputs[0]);
  const auto elems = elems_of(out);
  if (is_folded) budget -= elems.value_or(0);
  const bool is_known = out.dims && std::ranges::all_of(*out.dims, [](int64_t dim) { return dim >= 0; });
  const bool fills = (node.op == "ConstantOfShape" || node.op == "Range") && is_known;  // nothing else can compute it
  if (fills && !is_folded && (!elems || *elems > kMostElems))
    return error(ErrorCode::unsupported, "'{}' has more than {} elements: write it into the file as an initializer",
                 printable(out.name), kMostElems);
  if (budget >= 0) return {};
  return error(ErrorCode::unsupported,
               "'{}': too many elements are computed from constants; write the results into the file as initializers",
               printable(out.name));
}

}  // namespace

namespace {

// Visits the nodes in order.
class Settler {
 public:
  explicit Settler(ModelFile& file) : file_(file), model_(file.model), instead_(model_.values.size()) {
    std::iota(instead_.begin(), instead_.end(), 0);
    note_reads(model_.nodes);
  }

  Result<void> run() {
    std::vector<Node> todo = std::move(model_.nodes);  // the next one last
    std::ranges::reverse(todo);
    while (!todo.empty()) {
      Node node = std::move(todo.back());
      todo.pop_back();
      for (int& id : node.inputs) id = id == kNone ? kNone : instead_[static_cast<size_t>(id)];
      for (int& id : node.inner_inputs) id = instead_[static_cast<size_t>(id)];
      if (!take_branch(node, todo)) SK_TRY(visit(std::move(node)));
    }
    model_.nodes = std::move(nodes_);
    for (const Node& node : model_.nodes)
      for (const int id : node.inner_inputs)
        model_.values[static_cast<size_t>(id)].is_output = true;  // so units end there
    for (NamedValue& out : file_.outputs) {
      out.value = instead_[static_cast<size_t>(out.value)];
      model_.values[static_cast<size_t>(out.value)].is_output = true;
    }
    return {};
  }

 private:
  void note_reads(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      read_.insert(node.inputs.begin(), node.inputs.end());
      read_.insert(node.inner_inputs.begin(), node.inner_inputs.end());
      for (const auto& [name, branch] : node.branches) {
        note_reads(branch.nodes);
        read_.insert(branch.outputs.begin(), branch.outputs.end());
      }
    }
  }

  // Puts the nodes of the branch that an If takes in its place, if its condition is known.
  bool take_branch(Node& node, std::vector<Node>& todo) const {
    if (node.branches.empty() || node.inputs.size() != 1 || node.inputs[0] == kNone) return false;
    const auto condition = numbers(model_.value(node.inputs[0]));
    if (!condition || condition->size() != 1) return false;
    const auto taken = node.branches.find((*condition)[0] != 0 ? "then_branch" : "else_branch");
    if (taken == node.branches.end() || taken->second.outputs.size() != node.outputs.size()) return false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      Node& pass = todo.emplace_back();
      pass.op = "Identity", pass.name = node.name;
      pass.inputs = {taken->second.outputs[i]}, pass.outputs = {node.outputs[i]};
    }
    std::vector<Node>& inside = taken->second.nodes;
    std::move(inside.rbegin(), inside.rend(), std::back_inserter(todo));
    return true;
  }

  Result<void> visit(Node node) {
    const bool has_more =
        std::ranges::any_of(node.outputs.begin() + std::min<std::ptrdiff_t>(1, std::ssize(node.outputs)),
                            node.outputs.end(), [&](int id) { return id != kNone && read_.contains(id); });
    if (passes_on(model_, node) && !has_more) {
      instead_[static_cast<size_t>(node.outputs[0])] = node.inputs[0];
      return {};
    }
    const auto context = [&] { return fmt::format("node '{}' {}", printable(node.name), printable(node.op)); };
    SK_TRY_IN_CONTEXT(infer(model_, node), context());
    const bool is_folded = fold(file_, node);
    SK_TRY_IN_CONTEXT(check_elements(model_, node, is_folded, budget_), context());
    if (!is_folded) nodes_.push_back(std::move(node));
    return {};
  }

  ModelFile& file_;
  Model& model_;
  std::vector<int> instead_;  // by value: the one that its readers read
  std::set<int> read_;        // values that are read, to find a used second output of Dropout
  std::vector<Node> nodes_;
  int64_t budget_ = budget_of(model_);
};

}  // namespace

Result<void> settle(ModelFile& file) { return Settler(file).run(); }

}  // namespace skillet::onnx
