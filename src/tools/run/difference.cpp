#include "tools/run/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "tools/run/scores.h"

namespace skillet::tools {
namespace {

constexpr double kRounding = 1 + 1e-4;  // tolerance for float steps: they are differences of two products

template <typename T>
void move_by_step(std::span<uint8_t> bytes, size_t i, double step, bool up) {
  uint8_t* const at = bytes.data() + i * sizeof(T);
  const double value = static_cast<double>(load_le<T>(at));
  const double low = std::numeric_limits<T>::lowest(), high = std::numeric_limits<T>::max();
  const double moved = value + (up ? step : -step);
  store_le<T>(at, static_cast<T>(moved < low || moved > high ? value - (moved - value) : moved));
}

// Step of an input's stored elements; 0: no steps. A float input has the steps of the QUANTIZE that reads it.
double step_of(const ir::Graph& graph, ir::TensorId input) {
  const ir::Tensor& tensor = graph.tensor(input);
  if (tensor.dtype == ir::DType::uint8 || tensor.dtype == ir::DType::int8) return 1;
  if (tensor.dtype == ir::DType::int16) return tensor.quant.empty() ? 0 : 1;
  if (tensor.dtype != ir::DType::float32) return 0;
  const auto op = std::ranges::find_if(graph.ops, [&](const ir::Op& one) {
    return one.kind == ir::OpKind::quantize && one.input(0) == input && !graph.tensor(one.outputs[0]).quant.empty();
  });
  return op == graph.ops.end() ? 0 : graph.tensor(op->outputs[0]).quant.scale();
}

void move_by_step(const ir::Tensor& tensor, std::span<uint8_t> bytes, size_t i, double step, bool up) {
  switch (tensor.dtype) {
    case ir::DType::uint8: return move_by_step<uint8_t>(bytes, i, step, up);
    case ir::DType::int8: return move_by_step<int8_t>(bytes, i, step, up);
    case ir::DType::int16: return move_by_step<int16_t>(bytes, i, step, up);
    default: return move_by_step<float>(bytes, i, step, up);
  }
}

}  // namespace

Unit unit_of(const ir::Tensor& tensor) {
  if (!tensor.quant.empty()) return Unit::step;
  return ir::is_integer(tensor.dtype) || tensor.dtype == ir::DType::boolean ? Unit::number : Unit::real;
}

void Difference::add(const Difference& other) {
  if (elems == 0) unit = other.unit, step = other.step;
  elems += other.elems;
  differing += other.differing;
  beyond_one += other.beyond_one;
  sum += other.sum;
  if (!std::isnan(largest) && !(other.largest <= largest)) largest = other.largest;
}

namespace {

// Step of floats that come from a DEQUANTIZE and were only moved since; 0: other floats.
double step_of_floats(const ir::Graph& graph, ir::TensorId id) {
  for (auto op = graph.ops.rbegin(); op != graph.ops.rend(); ++op) {  // in reverse order of execution
    if (op->outputs.empty() || op->outputs[0] != id) continue;
    if (op->kind == ir::OpKind::dequantize && !graph.tensor(op->inputs[0]).quant.empty())
      return graph.tensor(op->inputs[0]).quant.scale();
    if (op->kind != ir::OpKind::reshape && op->kind != ir::OpKind::transpose) return 0;
    id = op->inputs[0];
  }
  return 0;
}

Difference compare(const ir::Tensor& tensor, double step, std::span<const uint8_t> got,
                   std::span<const uint8_t> wanted) {
  Difference out{.unit = unit_of(tensor), .step = step};
  const size_t size = static_cast<size_t>(std::max(ir::dtype_bytes(tensor.dtype), 1));
  out.elems = static_cast<int64_t>(std::min(got.size(), wanted.size()) / size);
  for (int64_t i = 0; i < out.elems; ++i) {
    const double a = raw_value(tensor, got, i), b = raw_value(tensor, wanted, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;  // equal infinities or both NaN
    const double off = std::abs(a - b);
    ++out.differing;
    out.beyond_one += off <= step * kRounding ? 0 : 1;
    out.sum += off;
    if (!std::isnan(out.largest) && !(off <= out.largest)) out.largest = off;
  }
  return out;
}

}  // namespace

Difference difference_of(const ir::Tensor& tensor, std::span<const uint8_t> got, std::span<const uint8_t> wanted) {
  return compare(tensor, unit_of(tensor) == Unit::step ? 1 : 0, got, wanted);
}

Difference difference_of(const ir::Graph& graph, size_t output, std::span<const uint8_t> got,
                         std::span<const uint8_t> wanted) {
  const ir::TensorId id = graph.outputs[output];
  const double step = step_of_floats(graph, id);
  return step > 0 ? compare(graph.tensor(id), step, got, wanted) : difference_of(graph.tensor(id), got, wanted);
}

std::string print(const Difference& difference) {
  if (std::isnan(difference.largest))
    return fmt::format("one has NaN where the other has a number; {:.2f} % of elements differ",
                       100 * difference.share(difference.differing));
  if (difference.largest == 0) return difference.unit == Unit::step ? "0 LSB" : "0";
  if (difference.unit == Unit::number)
    return fmt::format("{:.2f} % of elements", 100 * difference.share(difference.differing));
  const bool is_raw = difference.unit == Unit::step;
  std::string out = fmt::format("{:g}{}, mean {:.3g}", difference.largest, is_raw ? " LSB" : "", difference.mean());
  if (difference.step > 0)
    out += fmt::format(", {:.2f} % beyond 1{}", 100 * difference.share(difference.beyond_one), is_raw ? "" : " step");
  return out;
}

std::string print_largest(double largest, int64_t beyond_one, int64_t elems) {
  if (beyond_one == 0) return fmt::format("{:g} LSB", largest);
  return fmt::format("{:g} LSB, {:.2f} % beyond 1", largest,
                     100 * static_cast<double>(beyond_one) / static_cast<double>(std::max<int64_t>(elems, 1)));
}

nlohmann::json to_json(const Difference& difference) {
  nlohmann::json out = {{"largest", difference.largest},
                        {"mean", difference.mean()},
                        {"differing", difference.share(difference.differing)}};
  if (difference.step > 0) out["beyond_one"] = difference.share(difference.beyond_one);
  return out;
}

SameClass same_class(const ir::Tensor& scores, std::span<const uint8_t> got, std::span<const uint8_t> wanted) {
  const std::vector<int64_t> best = top_classes(scores, wanted, 2);
  SameClass out{.is_same = top_classes(scores, got, 1) == top_classes(scores, wanted, 1)};
  if (best.size() == 2) out.margin = raw_value(scores, wanted, best[0]) - raw_value(scores, wanted, best[1]);
  return out;
}

std::string print_margin(double margin, Unit unit) {
  return fmt::format("{:g}{}", margin, unit == Unit::step ? " LSB" : "");
}

std::string print(const SameClass& found, Unit unit) {
  return fmt::format("{} {} ahead of the second",
                     found.is_same ? "the same best class," : "another best class, though theirs is",
                     print_margin(found.margin, unit));
}

std::optional<std::vector<Bytes>> with_noise(const ir::Graph& graph, std::span<const Bytes> inputs) {
  std::mt19937_64 random(1);
  std::vector<Bytes> out(inputs.begin(), inputs.end());
  bool has_steps = false;
  for (size_t k = 0; k < out.size(); ++k) {
    const ir::Tensor& tensor = graph.tensor(graph.inputs[k]);
    const double step = step_of(graph, graph.inputs[k]);
    const size_t elems = out[k].size() / static_cast<size_t>(std::max(ir::dtype_bytes(tensor.dtype), 1));
    if (step == 0 || elems == 0) continue;
    has_steps = true;
    for (size_t i = 0; i < std::max<size_t>(elems / 100, 1); ++i) {
      const uint64_t drawn = random();
      move_by_step(tensor, out[k], (drawn >> 1) % elems, step, (drawn & 1) != 0);
    }
  }
  if (!has_steps) return std::nullopt;
  return out;
}

Result<std::vector<Difference>> moved_by_noise(const ir::Graph& graph, std::span<const Bytes> inputs,
                                               std::span<const Bytes> outputs, const Run& run) {
  std::vector<Difference> out;
  const std::optional<std::vector<Bytes>> noisy = with_noise(graph, inputs);
  if (!noisy) return out;
  SK_TRY_ASSIGN(const std::vector<Bytes> moved, run(*noisy));
  for (size_t i = 0; i < moved.size(); ++i) out.push_back(difference_of(graph, i, moved[i], outputs[i]));
  return out;
}

}  // namespace skillet::tools
