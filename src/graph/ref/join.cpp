// Ops that join or split tensors along one axis: CONCATENATION, PACK, SPLIT, SPLIT_V, UNPACK.
// All have the same structure in the whole tensor: `outer` times, one chunk of each part after the other.
#include <algorithm>
#include <cmath>

#include "graph/ref/kernel.h"

namespace skillet::ref {
namespace {

using Table = std::array<uint8_t, 256>;

struct Part {
  size_t tensor = 0;
  size_t chunk_bytes = 0;
  std::optional<Table> table;  // requantization of an 8-bit part
};

struct Parts {
  size_t outer = 1;
  size_t whole = 0;  // index of the whole tensor
  std::vector<Part> parts;
};

// Requires `axis` of the whole tensor in [0, rank).
Result<size_t> outer_count(const Context& c, const ir::Tensor& whole, int axis) {
  SK_TRY(c.elem_bytes(whole));
  size_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= dim(whole, i);
  return outer;
}

Part part_of(const ir::Tensor& tensor, size_t index, size_t outer) {
  return {.tensor = index, .chunk_bytes = static_cast<size_t>(tensor.bytes()) / outer, .table = {}};
}

KernelPtr join_kernel(Parts plan) {
  return make_kernel([plan = std::move(plan)](Tensors t) {
    uint8_t* to = t[plan.whole].data();
    for (size_t o = 0; o < plan.outer; ++o) {
      for (const Part& part : plan.parts) {
        const uint8_t* from = t[part.tensor].data() + o * part.chunk_bytes;
        if (part.table) {
          to = std::transform(from, from + part.chunk_bytes, to, [&](uint8_t raw) { return (*part.table)[raw]; });
        } else {
          to = std::copy_n(from, part.chunk_bytes, to);
        }
      }
    }
  });
}

KernelPtr cut_kernel(Parts plan) {
  return make_kernel([plan = std::move(plan)](Tensors t) {
    const uint8_t* from = t[plan.whole].data();
    for (size_t o = 0; o < plan.outer; ++o) {
      for (const Part& part : plan.parts) {
        std::copy_n(from, part.chunk_bytes, t[part.tensor].data() + o * part.chunk_bytes);
        from += part.chunk_bytes;
      }
    }
  });
}

Result<KernelPtr> cut(const Context& c, size_t input, int64_t axis) {
  const ir::Tensor& whole = c.input(input);
  Parts plan{.whole = c.input_index(input)};
  SK_TRY_ASSIGN(plan.outer, outer_count(c, whole, static_cast<int>(axis < 0 ? axis + whole.shape.rank() : axis)));
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (c.output(i).dtype != whole.dtype) return c.unsupported("output {} has a different type", i);
    plan.parts.push_back(part_of(c.output(i), c.output_index(i), plan.outer));
  }
  return cut_kernel(std::move(plan));
}

// TFLite's ConcatenationWithScaling, computed in float.
Table rescale_table(const ir::Quant& from, const ir::Quant& to) {
  const float scale = from.scale() * (1.0F / to.scale());
  const float bias = static_cast<float>(-from.zero_point()) * scale;
  Table table{};
  for (size_t raw = 0; raw < 256; ++raw) {
    const int32_t value = round_to_int(static_cast<float>(raw) * scale + bias);
    table[raw] = static_cast<uint8_t>(std::clamp(value + to.zero_point(), 0, 255));
  }
  return table;
}

// uint8 inputs may have different scales; for other types TFLite requires equal quantization.
Result<std::optional<Table>> concat_table(const Context& c, size_t i) {
  const ir::Tensor &input = c.input(i), &output = c.output();
  if (!ir::is_8bit(input.dtype) || input.quant == output.quant) return std::optional<Table>{};
  SK_TRY(c.need_quantized(input));
  SK_TRY(c.need_quantized(output));
  if (input.quant.scale() == output.quant.scale() && input.quant.zero_point() == output.quant.zero_point()) {
    return std::optional<Table>{};
  }
  if (input.dtype == ir::DType::int8)
    return c.unsupported("int8 input {} and the output have different quantization", i);
  return std::optional<Table>{rescale_table(input.quant, output.quant)};
}

}  // namespace

Result<KernelPtr> prepare_concatenation(const Context& c) {
  const auto& attrs = c.attrs<ir::ConcatAttrs>();
  if (attrs.activation != ir::Activation::none) {
    return c.unsupported("fused activation {}", ir::activation_name(attrs.activation));
  }
  Parts plan{.whole = c.output_index()};
  const int axis = attrs.axis < 0 ? attrs.axis + c.output().shape.rank() : attrs.axis;
  SK_TRY_ASSIGN(plan.outer, outer_count(c, c.output(), axis));
  for (size_t i = 0; i < c.input_count(); ++i) {
    plan.parts.push_back(part_of(c.input(i), c.input_index(i), plan.outer));
    SK_TRY_ASSIGN(plan.parts.back().table, concat_table(c, i));
  }
  return join_kernel(std::move(plan));
}

Result<KernelPtr> prepare_pack(const Context& c) {
  Parts plan{.whole = c.output_index()};
  const int32_t axis = c.attrs<ir::PackAttrs>().axis;
  SK_TRY_ASSIGN(plan.outer, outer_count(c, c.output(), axis < 0 ? axis + c.output().shape.rank() : axis));
  for (size_t i = 0; i < c.input_count(); ++i) {
    plan.parts.push_back(part_of(c.input(i), c.input_index(i), plan.outer));
  }
  return join_kernel(std::move(plan));
}

Result<KernelPtr> prepare_unpack(const Context& c) { return cut(c, 0, c.attrs<ir::UnpackAttrs>().axis); }

Result<KernelPtr> prepare_split(const Context& c) {
  SK_TRY_ASSIGN(const int64_t axis, c.constant_int(0));
  return cut(c, 1, axis);
}

Result<KernelPtr> prepare_split_v(const Context& c) {
  SK_TRY_ASSIGN(const int64_t axis, c.constant_int(2));
  SK_TRY(c.constant_ints(1));
  return cut(c, 0, axis);
}

}  // namespace skillet::ref
