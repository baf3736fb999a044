// Ops that place values: SCATTER_ND, DYNAMIC_UPDATE_SLICE, EMBEDDING_LOOKUP, REVERSE_SEQUENCE, MATRIX_DIAG,
// MATRIX_SET_DIAG.
#include <algorithm>

#include "graph/ref/indices.h"
#include "graph/ref/types.h"

namespace skillet::ref {
namespace {

// Integers wrap around.
template <typename T, typename Add>
KernelPtr scatter_kernel(const Context& c, Add add) {
  return make_kernel([add, tuples = IndexTuples(c, c.input(0), c.output().shape), at = c.input_index(0),
                      from = c.input_index(1), out = c.output_index()](Tensors t) -> Result<void> {
    std::fill(t[out].begin(), t[out].end(), uint8_t{0});
    for (size_t i = 0; i < tuples.count; ++i) {
      SK_TRY_ASSIGN(const size_t first, tuples.place(t[at], i));
      T* to = elements<T>(t[out]) + first;
      for (size_t k = 0; k < tuples.slice; ++k) {
        to[k] = add(to[k], load_element<T>(t[from], i * tuples.slice + k));
      }
    }
    return {};
  });
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

Result<KernelPtr> prepare_scatter_nd(const Context& c) {
  SK_TRY(c.constant_ints(2));
  return with_type(c, c.output().dtype, [&]<typename T>(T) -> Result<KernelPtr> {
    if constexpr (std::is_same_v<T, bool>) {
      return scatter_kernel<uint8_t>(c, [](uint8_t x, uint8_t y) -> uint8_t { return x != 0 || y != 0 ? 1 : 0; });
    } else {
      return scatter_kernel<T>(c, [](T x, T y) {
        if constexpr (std::is_floating_point_v<T>) return x + y;
        using U = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::common_type<T>>::type;
        return static_cast<T>(static_cast<U>(static_cast<U>(x) + static_cast<U>(y)));
      });
    }
  });
}

Result<KernelPtr> prepare_dynamic_update_slice(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  const ir::Shape &input = c.input(0).shape, &update = c.input(1).shape;
  return make_kernel([bytes, dims = input.dims, sizes = update.dims, count = elem_count(c.input(1)),
                      type = c.input(2).dtype, in = c.input_index(0), from = c.input_index(1), at = c.input_index(2),
                      out = c.output_index()](Tensors t) {
    std::copy(t[in].begin(), t[in].end(), t[out].begin());
    // An update that would exceed the end begins earlier.
    std::vector<size_t> begin(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t last = int64_t{dims[i]} - sizes[i];
      begin[i] = static_cast<size_t>(std::clamp<int64_t>(load_index(type, t[at], i), 0, last));
    }
    for (size_t k = 0; k < count; ++k) {
      size_t rest = k, to = 0, stride = 1;
      for (size_t i = dims.size(); i-- > 0;) {
        const auto size = static_cast<size_t>(sizes[i]);
        to += (begin[i] + rest % size) * stride;
        rest /= size;
        stride *= static_cast<size_t>(dims[i]);
      }
      std::copy_n(t[from].data() + k * bytes, bytes, t[out].data() + to * bytes);
    }
  });
}

Result<KernelPtr> prepare_embedding_lookup(const Context& c) {
  const size_t rows = dim(c.input(1), 0), row = elem_count(c.input(1)) / rows;
  if (c.input(1).dtype != c.output().dtype) {
    if (c.output().dtype == ir::DType::float32) return dequantized_lookup(c, rows, row);
    return c.unsupported("rows of {} to {}", ir::dtype_name(c.input(1).dtype), ir::dtype_name(c.output().dtype));
  }
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(1)));
  return make_kernel([op = c.describe(), rows, row_bytes = row * bytes, type = c.input(0).dtype,
                      count = elem_count(c.input(0)), at = c.input_index(0), from = c.input_index(1),
                      out = c.output_index()](Tensors t) -> Result<void> {
    for (size_t i = 0; i < count; ++i) {
      const int64_t index = load_index(type, t[at], i);
      if (!is_inside(index, rows)) return outside(op, index, rows);
      std::copy_n(t[from].data() + static_cast<size_t>(index) * row_bytes, row_bytes, t[out].data() + i * row_bytes);
    }
    return {};
  });
}

Result<KernelPtr> prepare_reverse_sequence(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  const auto& attrs = c.attrs<ir::ReverseSequenceAttrs>();
  const ir::Tensor& input = c.input(0);
  size_t inner = bytes;  // bytes of one step
  for (int i = attrs.axis + 1; i < input.shape.rank(); ++i) inner *= dim(input, i);
  // If the batch axis is inside the sequence axis, a step consists of one part per batch.
  const bool batch_inside = attrs.batch_axis > attrs.axis;
  size_t part = bytes;
  for (int i = attrs.batch_axis + 1; i < input.shape.rank(); ++i) part *= dim(input, i);
  const size_t size = dim(input, attrs.axis), batches = dim(input, attrs.batch_axis);
  const size_t block = batch_inside ? part : inner;
  return make_kernel([=, op = c.describe(), type = c.input(1).dtype, in = c.input_index(0), at = c.input_index(1),
                      out = c.output_index()](Tensors t) -> Result<void> {
    for (size_t b = 0; b < batches; ++b) {
      const int64_t length = load_index(type, t[at], b);
      if (length < 0 || !is_inside(length, size + 1)) return outside(op, length, size);
    }
    for (size_t first = 0; first < t[in].size(); first += block) {
      const size_t step = first / inner % size, batch = first / part % batches;
      const auto length = static_cast<size_t>(load_index(type, t[at], batch));
      const size_t from = step < length ? length - 1 - step : step;
      std::copy_n(t[in].data() + first - step * inner + from * inner, block, t[out].data() + first);
    }
    return {};
  });
}

Result<KernelPtr> prepare_matrix_diag(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  return make_kernel([bytes, size = static_cast<size_t>(c.input(0).shape.back(0)), count = elem_count(c.input(0)),
                      in = c.input_index(0), out = c.output_index()](Tensors t) {
    std::fill(t[out].begin(), t[out].end(), uint8_t{0});
    for (size_t i = 0; i < count; ++i) {
      std::copy_n(t[in].data() + i * bytes, bytes, t[out].data() + (i * size + i % size) * bytes);
    }
  });
}

Result<KernelPtr> prepare_matrix_set_diag(const Context& c) {
  SK_TRY_ASSIGN(const size_t bytes, c.elem_bytes(c.input(0)));
  return make_kernel([bytes, cols = static_cast<size_t>(c.input(0).shape.back(0)),
                      rows = static_cast<size_t>(c.input(0).shape.back(1)),
                      size = static_cast<size_t>(c.input(1).shape.back(0)), count = elem_count(c.input(1)),
                      in = c.input_index(0), diagonal = c.input_index(1), out = c.output_index()](Tensors t) {
    std::copy(t[in].begin(), t[in].end(), t[out].begin());
    for (size_t i = 0; i < count; ++i) {
      const size_t k = i % size, at = i / size * rows * cols + k * cols + k;
      std::copy_n(t[diagonal].data() + i * bytes, bytes, t[out].data() + at * bytes);
    }
  });
}

}  // namespace skillet::ref
