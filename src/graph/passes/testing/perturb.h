// Changes one thing of a graph: the result is just beyond the passes' patterns, or just within.
// Called by rewrite_test.cpp.
// Must not know: the pass under test.
#pragma once

#include <algorithm>

#include "graph/ir/attrs_fields.h"
#include "graph/ir/testing/random_ops.h"

namespace skillet::passes {

class Perturb : RandomOps {
  using DType = ir::DType;
  using TensorId = ir::TensorId;

 public:
  explicit Perturb(uint32_t seed) : RandomOps(seed) {}

  // Returns the graph unchanged if no well-formed one was found.
  ir::Graph of(const ir::Graph& graph) {
    for (int attempt = 0; attempt < 12; ++attempt) {
      graph_ = graph;
      change();
      if (has_shapes() && ir::verify(graph_).ok()) return std::move(graph_);
    }
    return graph;
  }

 private:
  size_t below(size_t end) { return next() % std::max<size_t>(end, 1); }
  ir::Op& op() { return graph_.ops[below(graph_.ops.size())]; }
  ir::Tensor& tensor() { return graph_.tensors[below(graph_.tensors.size())]; }
  // There are many constants; those of integers are parameters of ops.
  ir::Tensor& constant_tensor(bool of_integers) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      ir::Tensor& one = tensor();
      if (one.is_constant() && (one.dtype == DType::int32) == of_integers) return one;
    }
    return tensor();
  }

  void change() {
    if (graph_.ops.empty()) return;
    switch (range(0, 13)) {
      case 0: return scale_of(tensor());
      case 1: return zero_point_of(tensor());
      case 2: return element_of(constant_tensor(true));
      case 3: return element_of(constant_tensor(false));
      case 4: return compute(constant_tensor(chance(2)));
      case 5: return graph_.outputs.push_back(static_cast<TensorId>(below(graph_.tensors.size())));
      case 6: tensor().is_variable = true; return;
      case 7: return type_of(tensor());
      case 8: return scales_of(tensor());
      case 9: return operands_of(op());
      case 10: return more_ranks(constant_tensor(chance(2)));
      case 11: tensor().quant = {}; return;
      default: return attribute_of(op());
    }
  }

  void scale_of(ir::Tensor& one) {
    constexpr std::array kFactors = {0.5F, 2.0F, 1.01F, 100.0F, 0.01F};
    if (!one.quant.scales.empty()) one.quant.scales[below(one.quant.scales.size())] *= any_of(kFactors);
  }
  void zero_point_of(ir::Tensor& one) {
    const int32_t by = chance(2) ? 1 : range(2, 40);
    if (!one.quant.zero_points.empty())
      one.quant.zero_points[below(one.quant.zero_points.size())] += chance(2) ? by : -by;
  }
  void scales_of(ir::Tensor& one) {
    if (one.quant.scales.size() != 1 || one.shape.rank() == 0) return;
    one.quant.axis = range(0, one.shape.rank() - 1);
    const auto count = static_cast<size_t>(one.shape[one.quant.axis]);
    const bool differ = chance(2);
    one.quant.scales.assign(count, one.quant.scales[0]);
    one.quant.zero_points.assign(count, one.quant.zero_points[0]);
    if (differ) one.quant.scales.back() *= 2;
  }

  void element_of(ir::Tensor& one) {
    Bytes bytes(one.data.begin(), one.data.end());
    if (!one.is_constant() || bytes.empty()) return;
    if (one.dtype == DType::int32) {
      const size_t at = below(bytes.size() / 4) * 4;
      const int32_t before = load_le<int32_t>(bytes.data() + at);
      store_le(bytes.data() + at, chance(4) ? -before : before + (chance(2) ? 1 : -1));
    } else {
      bytes[below(bytes.size())] ^= static_cast<uint8_t>(1U << range(0, 7));
    }
    ir::set_constant(one, std::move(bytes));
  }
  void compute(ir::Tensor& one) {
    if (!one.is_constant()) return;
    one.data = {};
    one.owner = nullptr;
    graph_.inputs.push_back(static_cast<TensorId>(&one - graph_.tensors.data()));
  }
  void type_of(ir::Tensor& one) {
    if (!ir::is_8bit(one.dtype)) return;
    const bool was_signed = one.dtype == DType::int8;
    one.dtype = was_signed ? DType::uint8 : DType::int8;
    if (chance(3)) return;
    for (int32_t& zero : one.quant.zero_points) zero += was_signed ? 128 : -128;
  }
  void more_ranks(ir::Tensor& one) {
    const int at = range(0, one.shape.rank());
    if (at < one.shape.rank() && one.shape[at] == 1 && chance(2)) {
      one.shape.dims.erase(one.shape.dims.begin() + at);
    } else {
      one.shape.dims.insert(one.shape.dims.begin() + at, 1);
    }
  }

  void operands_of(ir::Op& one) {
    if (one.inputs.empty()) return;
    const size_t a = below(one.inputs.size()), b = below(one.inputs.size());
    switch (range(0, 2)) {
      case 0: std::swap(one.inputs[a], one.inputs[b]); break;
      case 1: one.inputs[a] = one.inputs[b]; break;
      default: one.inputs[a] = ir::kNoTensor;
    }
  }

  void attribute_of(ir::Op& one) {
    const auto of_attrs = [&](auto& attrs) {
      int fields = 0;
      ir::for_each_field(attrs, [&](const char*, auto&, const char*) { ++fields; });
      int chosen = fields == 0 ? -1 : range(0, fields - 1);
      ir::for_each_field(attrs, [&](const char*, auto& field, const char*) {
        if (chosen-- == 0) set(field);
      });
    };
    std::visit(of_attrs, static_cast<ir::AttrsOfAnyKind&>(one.attrs));
  }
  template <typename T>
  void set(T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      field = !field;
    } else if constexpr (std::is_same_v<T, ir::Padding>) {
      field = field == ir::Padding::same ? ir::Padding::valid : ir::Padding::same;
    } else if constexpr (std::is_same_v<T, ir::Activation>) {
      field = field == ir::Activation::none ? ir::Activation::relu : ir::Activation::none;
    } else if constexpr (std::is_same_v<T, int32_t>) {
      field += chance(2) ? 1 : -1;
    } else if constexpr (std::is_same_v<T, float>) {
      field = -field;
    } else if constexpr (std::is_same_v<T, std::optional<ir::RowPads>>) {
      const int32_t top = range(-1, 2);
      field = ir::RowPads{top, range(-1, 2)};
    }
  }
};

}  // namespace skillet::passes
