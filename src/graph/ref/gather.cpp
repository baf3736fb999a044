// GATHER, GATHER_ND and EMBEDDING_LOOKUP: slices of a tensor, selected by indices that are checked at run time.
// ONE_HOT: the reverse.
#include <algorithm>

#include "graph/ref/indices.h"

namespace skillet::ref {
namespace {

struct GatherPlan {
  std::string op;
  ir::DType index_type = ir::DType::int32;
  size_t batches = 1, outer = 1, size = 1, picked = 1, slice_bytes = 1;
};

Result<void> gather(const GatherPlan& plan, std::span<const uint8_t> from, std::span<const uint8_t> indices,
                    uint8_t* to) {
  for (size_t row = 0; row < plan.batches * plan.outer; ++row) {
    const size_t first = row / plan.outer * plan.picked;
    for (size_t i = 0; i < plan.picked; ++i, to += plan.slice_bytes) {
      const int64_t index = load_index(plan.index_type, indices, first + i);
      if (!is_inside(index, plan.size)) return outside(plan.op, index, plan.size);
      std::copy_n(from.data() + (row * plan.size + static_cast<size_t>(index)) * plan.slice_bytes, plan.slice_bytes,
                  to);
    }
  }
  return {};
}

KernelPtr gather_kernel(const Context& c, GatherPlan plan, size_t values, size_t indices) {
  return make_kernel([plan = std::move(plan), in = c.input_index(values), at = c.input_index(indices),
                      out = c.output_index()](Tensors t) { return gather(plan, t[in], t[at], t[out].data()); });
}

// Looks up rows of 8-bit values and dequantizes them.
Result<KernelPtr> dequantized_lookup(const Context& c, size_t rows, size_t row) {
  const ir::Quant& quant = c.input(1).quant;
  if (!ir::is_8bit(c.input(1).dtype) || quant.empty() || (quant.per_channel() && quant.axis != 0)) {
    return c.unsupported("rows of {} to {}", ir::dtype_name(c.input(1).dtype), ir::dtype_name(c.output().dtype));
  }
  return with_8bit(c.input(1).dtype, [&]<typename T>(T) {
    return make_kernel([=, op = c.describe(), scales = quant.scales, index_type = c.input(0).dtype,
                        count = elem_count(c.input(0)), at = c.input_index(0), from = c.input_index(1),
                        out = c.output_index()](Tensors t) -> Result<void> {
      for (size_t i = 0; i < count; ++i) {
        const int64_t index = load_index(index_type, t[at], i);
        if (!is_inside(index, rows)) return outside(op, index, rows);
        const auto first = static_cast<size_t>(index) * row;
        const double scale = scales[scales.size() == 1 ? 0 : static_cast<size_t>(index)];
        for (size_t k = 0; k < row; ++k) {
          elements<float>(t[out])[i * row + k] = static_cast<float>(load_element<T>(t[from], first + k) * scale);
        }
      }
      return {};
    });
  });
}

}  // namespace

Result<KernelPtr> prepare_gather(const Context& c) {
  const auto& attrs = c.attrs<ir::GatherAttrs>();
  const ir::Shape &input = c.input(0).shape, &indices = c.input(1).shape;
  const int axis = attrs.axis < 0 ? attrs.axis + input.rank() : attrs.axis;
  const int batch_dims = attrs.batch_dims < 0 ? attrs.batch_dims + indices.rank() : attrs.batch_dims;
  GatherPlan plan{.op = c.describe(), .index_type = c.input(1).dtype, .size = dim(c.input(0), axis)};
  SK_TRY_ASSIGN(plan.slice_bytes, c.elem_bytes(c.input(0)));
  for (int i = 0; i < input.rank(); ++i) {
    if (i == axis) continue;
    (i < batch_dims ? plan.batches : i < axis ? plan.outer : plan.slice_bytes) *= dim(c.input(0), i);
  }
  for (int i = batch_dims; i < indices.rank(); ++i) plan.picked *= dim(c.input(1), i);
  return gather_kernel(c, std::move(plan), 0, 1);
}

Result<KernelPtr> prepare_gather_nd(const Context& c) {
  const ir::Tensor &input = c.input(0), &indices = c.input(1);
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(input));
  return make_kernel([tuples = IndexTuples(c, indices, input.shape), bytes, in = c.input_index(0),
                      at = c.input_index(1), out = c.output_index()](Tensors t) -> Result<void> {
    for (size_t i = 0; i < tuples.count; ++i) {
      SK_TRY_ASSIGN(const size_t first, tuples.place(t[at], i));
      std::copy_n(t[in].data() + first * bytes, tuples.slice * bytes, t[out].data() + i * tuples.slice * bytes);
    }
    return {};
  });
}

Result<KernelPtr> prepare_embedding_lookup(const Context& c) {
  const size_t rows = dim(c.input(1), 0), row = elem_count(c.input(1)) / rows;
  if (c.input(1).dtype != c.output().dtype) {
    if (c.output().dtype == ir::DType::float32) return dequantized_lookup(c, rows, row);
    return c.unsupported("rows of {} to {}", ir::dtype_name(c.input(1).dtype), ir::dtype_name(c.output().dtype));
  }
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(1)));
  return gather_kernel(c,
                       {.op = c.describe(),
                        .index_type = c.input(0).dtype,
                        .size = rows,
                        .picked = elem_count(c.input(0)),
                        .slice_bytes = row * bytes},
                       1, 0);
}

Result<KernelPtr> prepare_one_hot(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.output()));
  SK_TRY(c.constant_ints(1));
  const int32_t given = c.attrs<ir::OneHotAttrs>().axis;
  const int axis = given < 0 ? given + c.output().shape.rank() : given;
  const size_t depth = dim(c.output(), axis);
  size_t inner = 1;
  for (int i = axis + 1; i < c.output().shape.rank(); ++i) inner *= dim(c.output(), i);
  return make_kernel([=, type = c.input(0).dtype, count = elem_count(c.output()), at = c.input_index(0),
                      on = c.input_index(2), off = c.input_index(3), out = c.output_index()](Tensors t) {
    for (size_t i = 0; i < count; ++i) {
      const size_t outer = i / (depth * inner), k = i / inner % depth;
      const bool hot = load_index(type, t[at], outer * inner + i % inner) == static_cast<int64_t>(k);
      std::copy_n(t[hot ? on : off].data(), bytes, t[out].data() + i * bytes);
    }
  });
}

}  // namespace skillet::ref
